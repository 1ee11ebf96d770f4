/* Which backend serves a URL. Knows the schemes, nothing of the stores. */
#include "backend/backend.h"

#include <string.h>
#include <strings.h>

static const struct pawli_backend *const backends[] = {
    &pawli_backend_redis,
};

static bool serves(const struct pawli_backend *backend, const char *url, size_t scheme_len)
{
    const char *const *scheme;

    for (scheme = backend->schemes; *scheme != NULL; scheme++)
        if (strlen(*scheme) == scheme_len && strncasecmp(*scheme, url, scheme_len) == 0)
            return true;
    return false;
}

const struct pawli_backend *pawli_backend_for(const char *url)
{
    const char *end = strstr(url, "://");
    size_t i;

    if (end == NULL)
        return NULL;
    for (i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (serves(backends[i], url, (size_t)(end - url)))
            return backends[i];
    return NULL;
}
