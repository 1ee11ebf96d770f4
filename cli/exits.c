/* Exit codes: from a result of the library, and by name. Prints nothing. */
#include "exits.h"

#include <stddef.h>
#include <string.h>

#include <pawl.h>

static const struct {
    int code;
    const char *name;
} names[] = {
    { EXIT_OK, "ok" },
    { EXIT_NO, "no" },
    { EXIT_USAGE, "usage" },
    { EXIT_BUSY, "busy" },
    { EXIT_UNREACHABLE, "unreachable" },
    { EXIT_DENIED, "denied" },
    { EXIT_LOST, "lost" },
    { EXIT_MAX_HOLD, "max-hold" },
    { EXIT_REFUSED, "refused" },
    { EXIT_UNKNOWN, "unknown" },
};

#define N_NAMES (sizeof names / sizeof names[0])

int cli_exit_of(int result)
{
    if (result == PAWL_OK || result == PAWL_STILL_HELD)
        return EXIT_OK;
    if (result == PAWL_BUSY || result == PAWL_TIMEOUT)
        return EXIT_BUSY;
    if (result == PAWL_LOST_MAX_HOLD || result == PAWL_EXPIRING)
        return EXIT_MAX_HOLD;
    if (pawl_is_lost(result))
        return EXIT_LOST;
    if (result > 0)
        return EXIT_NO;
    switch (pawl_result_class(result)) {
    case PAWL_CLASS_USAGE:
        /* The key is fine; what lies there is not. */
        return result == PAWL_EWRONGTYPE ? EXIT_REFUSED : EXIT_USAGE;
    case PAWL_CLASS_UNAVAILABLE:
        return EXIT_UNREACHABLE;
    case PAWL_CLASS_DENIED:
        return EXIT_DENIED;
    case PAWL_CLASS_UNKNOWN:
        return EXIT_UNKNOWN;
    default:
        return EXIT_REFUSED;
    }
}

const char *cli_exit_name(int code)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (names[i].code == code)
            return names[i].name;
    return NULL;
}

int cli_exit_by_name(const char *name, unsigned long len)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0)
            return names[i].code;
    return -1;
}
