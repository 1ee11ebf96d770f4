/* How Redisson's RLock says that a lock was released: the name of its channel for a lock. */
#ifndef PAWLI_REDIS_REDISSON_H
#define PAWLI_REDIS_REDISSON_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl.h>

#define PAWLI_REDISSON_PREFIX "redisson_lock__channel:"
#define PAWLI_REDISSON_CHANNEL (sizeof PAWLI_REDISSON_PREFIX + PAWL_KEY_MAX + 2)

/* Fills in @ret_channel, PAWLI_REDISSON_CHANNEL bytes, not terminated; returns its length. */
size_t pawli_redisson_channel(const char *name, size_t name_len, char *ret_channel);

/* The lock names of a channel: at most two, since "x" and "{x}" share one. Returns how many; they
 * point into @channel. */
struct pawli_redisson_name {
    const char *at;
    size_t len;
};
int pawli_redisson_names(const char *channel, size_t len, struct pawli_redisson_name ret_names[2]);

#endif
