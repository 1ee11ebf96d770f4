/* URLs by libevent's parser, then our own rules; see url.h. Messages never repeat what could hold
 * a password: never the whole URL, and no part of one with an '@', because a password with a bare
 * '/' or '?' in it is taken for a host, a port and a path. */
#include "backend/redis/url.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include <event2/http.h>

#include <pawl.h>

#define DEFAULT_PORT 6379
#define DB_MAX 1000000 /* the server has the last word */

struct out {
    char *text;
    size_t len;
    bool quotes; /* parts of the URL may be repeated */
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct out *out, const char *format,
                                                        ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(out->text, out->len, format, args);
    va_end(args);
    return PAWL_EURL;
}

void pawli_secret_free(char *secret)
{
    if (secret == NULL)
        return;
    explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* Percent-decode; an encoded NUL cannot be passed on in C text and is refused. */
static int decode(const char *text, const char *what, const struct out *out, char **ret_text)
{
    size_t len = 0;
    char *decoded = evhttp_uridecode(text, 0, &len);

    if (decoded == NULL)
        return PAWL_ENOMEM;
    if (strlen(decoded) != len) {
        free(decoded);
        return refuse(out, "url: %s: %%00 is not allowed", what);
    }
    *ret_text = decoded;
    return 0;
}

static int parse_user(const char *info, const struct out *out, struct pawli_redis_url *url)
{
    const char *colon;
    char *user;
    int rc = 0;

    if (info == NULL)
        return 0;
    colon = strchr(info, ':');
    user = colon == NULL ? strdup(info) : strndup(info, (size_t)(colon - info));
    if (user == NULL)
        return PAWL_ENOMEM;
    if (user[0] != '\0')
        rc = decode(user, "user name", out, &url->username);
    free(user);
    if (rc == 0 && colon != NULL)
        rc = decode(colon + 1, "password", out, &url->password);
    if (rc == 0 && url->username != NULL && url->password == NULL)
        return refuse(out, "url: a user name needs a password after ':' (or write ':password')");
    return rc;
}

static int parse_db(const char *text, const struct out *out, struct pawli_redis_url *url)
{
    char *end;
    long db;

    errno = 0;
    db = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || db > DB_MAX)
        return out->quotes
                   ? refuse(out, "url: database '%.40s': a number from 0 to %d", text, DB_MAX)
                   : refuse(out,
                            "url: the database must be a number from 0 to %d; in a password "
                            "percent-encode '/'",
                            DB_MAX);
    url->db = db;
    return 0;
}

static int parse_query(const char *query, bool is_unix, const struct out *out,
                       struct pawli_redis_url *url)
{
    if (query == NULL || query[0] == '\0')
        return 0;
    if (!is_unix)
        return refuse(out, "url: '?%.40s': no options are known here; the database is a path",
                      out->quotes ? query : "...");
    if (strncmp(query, "db=", 3) != 0 || strchr(query, '&') != NULL)
        return refuse(out, "url: '?%.40s': only ?db=N is known", out->quotes ? query : "...");
    return parse_db(query + 3, out, url);
}

static int parse_tcp(const struct evhttp_uri *uri, const struct out *out,
                     struct pawli_redis_url *url)
{
    const char *host = evhttp_uri_get_host(uri);
    const char *path = evhttp_uri_get_path(uri);
    int port = evhttp_uri_get_port(uri);
    size_t len = host == NULL ? 0 : strlen(host);
    int rc;

    if (len == 0)
        return refuse(out, "url: a host is missing");
    if (port == 0 || port > 65535)
        return out->quotes ? refuse(out, "url: port %d: from 1 to 65535", port)
                           : refuse(out, "url: the port must be from 1 to 65535");
    url->port = (uint16_t)(port < 0 ? DEFAULT_PORT : port);
    if (host[0] == '[' && host[len - 1] == ']') {
        url->host = strndup(host + 1, len - 2);
        rc = url->host == NULL ? PAWL_ENOMEM : 0;
    } else {
        rc = decode(host, "host", out, &url->host);
    }
    if (rc < 0 || path == NULL || path[0] == '\0' || strcmp(path, "/") == 0)
        return rc;
    return parse_db(path + 1, out, url);
}

static int parse_unix(const struct evhttp_uri *uri, const struct out *out,
                      struct pawli_redis_url *url)
{
    const struct sockaddr_un *addr = NULL;
    const char *host = evhttp_uri_get_host(uri);
    const char *path = evhttp_uri_get_path(uri);
    int rc;

    if (host != NULL && host[0] != '\0')
        return refuse(out, "url: redis+unix needs three slashes: redis+unix:///path");
    if (path == NULL || path[0] != '/' || path[1] == '\0')
        return refuse(out, "url: redis+unix:///path: the path is missing");
    rc = decode(path, "path", out, &url->path);
    if (rc < 0)
        return rc;
    assert(url->path != NULL);
    if (strlen(url->path) >= sizeof addr->sun_path)
        return refuse(out, "url: the socket's path is longer than %zu bytes",
                      sizeof addr->sun_path - 1);
    return 0;
}

static int parse_parts(const struct evhttp_uri *uri, const struct out *out,
                       struct pawli_redis_url *url)
{
    const char *scheme = evhttp_uri_get_scheme(uri);
    const char *fragment = evhttp_uri_get_fragment(uri);
    bool is_unix;
    int rc;

    if (scheme == NULL)
        return refuse(out, "url: a scheme is missing: redis://, rediss:// or redis+unix://");
    is_unix = strcasecmp(scheme, "redis+unix") == 0;
    url->tls = strcasecmp(scheme, "rediss") == 0;
    if (!is_unix && !url->tls && strcasecmp(scheme, "redis") != 0)
        return refuse(out, "url: scheme '%.20s': redis, rediss or redis+unix", scheme);
    if (fragment != NULL)
        return refuse(out, "url: a '#' must be written as %%23");
    rc = parse_user(evhttp_uri_get_userinfo(uri), out, url);
    if (rc == 0)
        rc = is_unix ? parse_unix(uri, out, url) : parse_tcp(uri, out, url);
    if (rc == 0)
        rc = parse_query(evhttp_uri_get_query(uri), is_unix, out, url);
    return rc;
}

int pawli_redis_url_parse(const char *text, struct pawli_redis_url *ret_url, char *detail,
                          size_t detail_len)
{
    const struct out out = { detail, detail_len, strchr(text, '@') == NULL };
    struct pawli_redis_url url = { 0 };
    struct evhttp_uri *uri = evhttp_uri_parse_with_flags(text, 0);
    int rc;

    if (uri == NULL)
        return refuse(&out, "url: not of the form scheme://[user[:password]@]host[:port][/db]; "
                            "percent-encode special characters");
    rc = parse_parts(uri, &out, &url);
    evhttp_uri_free(uri);
    if (rc < 0) {
        pawli_redis_url_done(&url);
        return rc;
    }
    *ret_url = url;
    return 0;
}

void pawli_redis_url_done(struct pawli_redis_url *url)
{
    free(url->host);
    free(url->path);
    free(url->username);
    pawli_secret_free(url->password);
    memset(url, 0, sizeof *url);
}
