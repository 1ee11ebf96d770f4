/* Growing delays with jitter, see backoff.h. Keeps no time. */
#include "core/backoff.h"

#include <assert.h>

#include "util/clock.h"
#include "util/random.h"

void pawli_backoff_init(struct pawli_backoff *b, int64_t min_ms, int64_t max_ms, uint64_t seed)
{
    assert(min_ms > 0 && max_ms >= min_ms && seed != 0);
    b->min_ms = min_ms;
    b->max_ms = max_ms;
    b->next_ms = min_ms;
    b->seed = seed;
}

void pawli_backoff_reset(struct pawli_backoff *b)
{
    b->next_ms = b->min_ms;
}

int64_t pawli_backoff_next_ns(struct pawli_backoff *b)
{
    int64_t step_ns = b->next_ms * PAWLI_NS_PER_MS;
    int64_t half_ns = step_ns / 2;
    int64_t delay_ns = half_ns + (int64_t)pawli_jitter(&b->seed, (uint64_t)half_ns + 1);

    b->next_ms += (b->next_ms + 1) / 2;
    if (b->next_ms > b->max_ms)
        b->next_ms = b->max_ms;
    return delay_ns;
}
