/* Taking a store's URL apart. Connects to nothing. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy with %XX decoded; NULL without memory. */
static char *decoded(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    size_t n = 0;

    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%' && i + 2 < len && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
            copy[n++] = (char)(hex(text[i + 1]) << 4 | hex(text[i + 2]));
            i += 2;
        } else {
            copy[n++] = text[i];
        }
    }
    copy[n] = '\0';
    return copy;
}

static int parse_host(const char *host, size_t len, struct store_address *a)
{
    const char *end = host + len;
    const char *port = NULL;

    if (len > 0 && host[0] == '[') {
        const char *close = memchr(host, ']', len);

        if (close == NULL)
            return PAWL_EURL;
        a->host = strndup(host + 1, (size_t)(close - host - 1));
        port = close + 1 < end && close[1] == ':' ? close + 2 : NULL;
    } else {
        const char *colon = memchr(host, ':', len);

        a->host = strndup(host, colon == NULL ? len : (size_t)(colon - host));
        port = colon == NULL ? NULL : colon + 1;
    }
    a->port = port == NULL || port == end ? strdup("6379") : strndup(port, (size_t)(end - port));
    return a->host == NULL || a->port == NULL ? PAWL_ENOMEM : 0;
}

static const char *parse_user(const char *text, size_t len, struct store_address *a)
{
    const char *at = memrchr(text, '@', len);
    const char *colon;

    if (at == NULL)
        return text;
    colon = memchr(text, ':', (size_t)(at - text));
    a->user = decoded(text, (size_t)((colon == NULL ? at : colon) - text));
    if (colon != NULL)
        a->password = decoded(colon + 1, (size_t)(at - colon - 1));
    return at + 1;
}

int store_address_parse(const char *url, struct store_address *ret)
{
    static const char *const schemes[] = { "redis://", "rediss://", "redis+unix://" };
    const char *rest = NULL;
    const char *db;
    size_t len;

    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < 3; i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0) {
            rest = url + strlen(schemes[i]);
            ret->tls = i == 1;
            ret->unix_socket = i == 2;
        }
    }
    if (rest == NULL)
        return PAWL_EURL;
    len = strcspn(rest, "/?#");
    db = parse_user(rest, len, ret);
    len -= (size_t)(db - rest);
    rest = db;
    if (ret->unix_socket) {
        size_t path_len = strcspn(rest, "?#");

        ret->host = decoded(rest, path_len);
        db = strstr(rest + path_len, "db=");
        ret->db = db == NULL ? 0 : (int)strtol(db + 3, NULL, 10);
        return ret->host == NULL ? PAWL_ENOMEM : 0;
    }
    db = rest + len;
    ret->db = *db == '/' ? (int)strtol(db + 1, NULL, 10) : 0;
    return parse_host(rest, len, ret);
}

void store_address_done(struct store_address *a)
{
    if (a->password != NULL)
        explicit_bzero(a->password, strlen(a->password));
    free(a->password);
    free(a->user);
    free(a->host);
    free(a->port);
    memset(a, 0, sizeof *a);
}
