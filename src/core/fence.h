/* The highest fencing token seen per slot: the floor that goes with each acquire. */
#ifndef PAWLI_CORE_FENCE_H
#define PAWLI_CORE_FENCE_H

#include <stdint.h>

#define PAWLI_TOKEN_MAX ((UINT64_C(1) << 53) - 1)
#define PAWLI_DAY_US INT64_C(86400000000)

struct pawli_fence {
    uint64_t *seen; /* [PAWLI_SLOTS], made at the first token */
};

void pawli_fence_done(struct pawli_fence *fence);
uint64_t pawli_fence_floor(const struct pawli_fence *fence, uint16_t slot);

/* A token arrived when this machine's wall clock showed @now_us. 0 and remembered; PAWL_EPROTOCOL
 * and ignored if it is 0, above 2^53, or more than a day above both the last one of the slot and
 * that time: one server's clock in the far future must not drag the counters up for ever. Out of
 * memory only loses the floor, which is an optimisation of safety at new servers: 0 then. */
int pawli_fence_saw(struct pawli_fence *fence, uint16_t slot, uint64_t token, int64_t now_us);

#endif
