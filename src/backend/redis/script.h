/* Requests as script calls in a send buffer. Knows what each script takes, not how it is sent. */
#ifndef PAWLI_REDIS_SCRIPT_H
#define PAWLI_REDIS_SCRIPT_H

#include "backend/backend.h"
#include "util/buf.h"

/* The times that go with a call, in server us. */
struct pawli_redis_times {
    int64_t not_after_us; /* of an acquire */
    int64_t tombstone_us; /* how long earlier attempts of a hold id may still arrive */
};

#define PAWLI_REDIS_FULL 1u     /* EVAL with the text, not EVALSHA */
#define PAWLI_REDIS_REDISSON 2u /* what frees a lock says so to Redisson's clients */

/* Append the call for @req. 0 or PAWL_ENOMEM. */
int pawli_redis_append(struct pawli_buf *buf, const struct pawli_request *req,
                       const struct pawli_redis_times *times, unsigned how);

/* Append the probe of the user's rights. */
int pawli_redis_append_probe(struct pawli_buf *buf, const char *prefix);

#endif
