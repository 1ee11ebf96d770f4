/* The table of error texts; see errors.h. Texts of Redis 6.0 to 8.0 and Valkey 7.2 to 8.1. */
#include "backend/redis/errors.h"

#include <string.h>

#include <pawl.h>

struct row {
    const char *prefix;
    int result;
};

/* Compared in this order. */
static const struct row rows[] = {
    { "NOSCRIPT", PAWL_ESERVER },
    { "BUSY ", PAWL_ESCRIPTBUSY },
    { "LOADING", PAWL_ELOADING },
    { "OOM", PAWL_EOOM },
    { "MISCONF", PAWL_EMISCONF },
    { "READONLY", PAWL_EREADONLY },
    { "NOREPLICAS", PAWL_ENOREPLICAS },
    { "MOVED", PAWL_EMOVED },
    { "ASK ", PAWL_EASK },
    { "TRYAGAIN", PAWL_ETRYAGAIN },
    { "CLUSTERDOWN", PAWL_ECLUSTERDOWN },
    { "MASTERDOWN", PAWL_EMASTERDOWN },
    { "WRONGPASS", PAWL_EAUTH },
    { "ERR invalid password", PAWL_EAUTH },
    { "ERR Client sent AUTH", PAWL_EAUTH },
    { "ERR AUTH <password> called without any password", PAWL_EAUTH },
    { "NOAUTH", PAWL_ENOAUTH },
    { "NOPERM", PAWL_ENOPERM },
    { "DENIED", PAWL_ENOPERM }, /* protected mode */
    { "ERR unknown command 'EVAL", PAWL_ENOSCRIPTING },
    { "ERR unknown command `EVAL", PAWL_ENOSCRIPTING },
    { "ERR unknown command 'SCRIPT", PAWL_ENOSCRIPTING },
    { "ERR command 'EVAL", PAWL_ENOSCRIPTING },
    { "WRONGTYPE", PAWL_EWRONGTYPE },
    /* An error caught inside a script has no prefix on 6.0. */
    { "The user executing the script can't", PAWL_ENOPERM },
    { "ERR The user executing the script can't", PAWL_ENOPERM },
    { "ERR ACL failure in script", PAWL_ENOPERM },
};

static bool starts(const char *text, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);

    return len >= n && memcmp(text, prefix, n) == 0;
}

static bool contains(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

int pawli_redis_caught_error(const char *text, size_t len)
{
    size_t i;

    if (len > 0 && text[0] == '-') { /* 6.0 keeps the protocol's mark in texts that scripts see */
        text++;
        len--;
    }
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (starts(text, len, rows[i].prefix))
            return rows[i].result;
    return PAWL_ESERVER;
}

/* 7.0 and later: "... script: <sha>, on @user_script:12."; before: "Error running script (call to
 * f_<sha>): @user_script:12: ...". The refusals of EVAL itself carry neither. */
static bool raised_inside(const char *text, size_t len)
{
    return contains(text, len, " script: ") || contains(text, len, "@user_script") ||
           starts(text, len, "ERR Error running script") ||
           starts(text, len, "ERR The user executing the script can't") ||
           starts(text, len, "ERR ACL failure in script") || starts(text, len, "UNKILLABLE") ||
           starts(text, len, "ERR Error compiling script");
}

int pawli_redis_error(const char *text, size_t len)
{
    if (raised_inside(text, len))
        return PAWL_ESCRIPT;
    return pawli_redis_caught_error(text, len);
}

bool pawli_redis_error_drops(int result)
{
    switch (result) {
    case PAWL_EREADONLY:
    case PAWL_EMASTERDOWN:
    case PAWL_ENOAUTH:
        return true;
    default:
        return false;
    }
}

bool pawli_redis_is_noscript(const char *text, size_t len)
{
    return starts(text, len, "NOSCRIPT");
}
