/* The highest fencing token seen per slot, see fence.h. Touches nothing but its memory. */
#include "core/fence.h"

#include <assert.h>
#include <stdlib.h>

#include <pawl.h>

#include "core/key.h"

void pawli_fence_done(struct pawli_fence *fence)
{
    free(fence->seen);
    fence->seen = NULL;
}

uint64_t pawli_fence_floor(const struct pawli_fence *fence, uint16_t slot)
{
    assert(slot < PAWLI_SLOTS);
    return fence->seen == NULL ? 0 : fence->seen[slot];
}

int pawli_fence_saw(struct pawli_fence *fence, uint16_t slot, uint64_t token, int64_t now_us)
{
    uint64_t known = pawli_fence_floor(fence, slot);

    if (now_us > 0 && (uint64_t)now_us > known)
        known = (uint64_t)now_us;
    if (token == 0 || token > PAWLI_TOKEN_MAX ||
        (token > known && token - known > (uint64_t)PAWLI_DAY_US))
        return PAWL_EPROTOCOL;
    if (fence->seen == NULL)
        fence->seen = calloc(PAWLI_SLOTS, sizeof *fence->seen);
    if (fence->seen != NULL && fence->seen[slot] < token)
        fence->seen[slot] = token;
    return 0;
}
