/* Names of Redisson's channels; see redisson.h. Touches no connection. */
#include "backend/redis/redisson.h"

#include <string.h>

size_t pawli_redisson_channel(const char *name, size_t name_len, char *ret_channel)
{
    bool braces = memchr(name, '{', name_len) == NULL;
    char *to = ret_channel;

    memcpy(to, PAWLI_REDISSON_PREFIX, sizeof PAWLI_REDISSON_PREFIX - 1);
    to += sizeof PAWLI_REDISSON_PREFIX - 1;
    if (braces)
        *to++ = '{';
    memcpy(to, name, name_len);
    to += name_len;
    if (braces)
        *to++ = '}';
    return (size_t)(to - ret_channel);
}

int pawli_redisson_names(const char *channel, size_t len, struct pawli_redisson_name ret_names[2])
{
    size_t prefix_len = sizeof PAWLI_REDISSON_PREFIX - 1;
    int n = 0;

    if (len <= prefix_len || memcmp(channel, PAWLI_REDISSON_PREFIX, prefix_len) != 0)
        return 0;
    channel += prefix_len;
    len -= prefix_len;
    if (memchr(channel, '{', len) == NULL)
        return 0; /* Redisson would have put braces round it */
    ret_names[n++] = (struct pawli_redisson_name){ channel, len };
    if (len > 2 && channel[0] == '{' && channel[len - 1] == '}' &&
        memchr(channel + 1, '{', len - 2) == NULL)
        ret_names[n++] = (struct pawli_redisson_name){ channel + 1, len - 2 };
    return n;
}
