/* Growing delays with jitter between tries. Decides only; the caller keeps the time. */
#ifndef PAWLI_CORE_BACKOFF_H
#define PAWLI_CORE_BACKOFF_H

#include <stdint.h>

struct pawli_backoff {
    int64_t min_ms;
    int64_t max_ms;
    int64_t next_ms; /* before jitter */
    uint64_t seed;   /* not 0 */
};

void pawli_backoff_init(struct pawli_backoff *b, int64_t min_ms, int64_t max_ms, uint64_t seed);
void pawli_backoff_reset(struct pawli_backoff *b);
/* The next delay in ns: uniform in [1/2, 1] of the current step, which then grows by half. Never
 * below min/2, never above max. */
int64_t pawli_backoff_next_ns(struct pawli_backoff *b);

#endif
