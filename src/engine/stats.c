/* Counters and histograms; see stats.h. Touches memory only. */
#include "engine/stats.h"

#include <string.h>

#include "util/clock.h"

/* clang-format off */
static const int64_t bounds_ms[PAWL_HIST_BUCKETS - 1] = {
    1, 2, 5, 10, 20, 50, 100, 200, 500,
    1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
};
/* clang-format on */

int64_t pawl_hist_bound_ms(int bucket)
{
    return bucket >= 0 && bucket < PAWL_HIST_BUCKETS - 1 ? bounds_ms[bucket] : -1;
}

void pawli_count_loss(struct pawli_stats *stats, int reason)
{
    switch (reason) {
    case PAWL_LOST_TAKEN:
        pawli_count(&stats->lost_taken);
        break;
    case PAWL_LOST_EXPIRED:
        pawli_count(&stats->lost_expired);
        break;
    case PAWL_LOST_UNREACHABLE:
        pawli_count(&stats->lost_unreachable);
        break;
    case PAWL_LOST_MAX_HOLD:
        pawli_count(&stats->lost_max_hold);
        break;
    case PAWL_LOST_REVOKED:
        pawli_count(&stats->lost_revoked);
        break;
    default:
        break;
    }
}

void pawli_hist_add(struct pawli_hist *hist, int64_t duration_ns)
{
    int64_t ms = duration_ns < 0 ? 0 : duration_ns / PAWLI_NS_PER_MS;
    int i = 0;

    while (i < PAWL_HIST_BUCKETS - 1 && duration_ns > bounds_ms[i] * PAWLI_NS_PER_MS)
        i++;
    pawli_count(&hist->bucket[i]);
    pawli_count(&hist->count);
    atomic_fetch_add_explicit(&hist->sum_ms, (uint64_t)ms, memory_order_relaxed);
}

static void read_hist(const struct pawli_hist *hist, struct pawl_hist *ret_hist)
{
    for (int i = 0; i < PAWL_HIST_BUCKETS; i++)
        ret_hist->bucket[i] = atomic_load_explicit(&hist->bucket[i], memory_order_relaxed);
    ret_hist->count = atomic_load_explicit(&hist->count, memory_order_relaxed);
    ret_hist->sum_ms = atomic_load_explicit(&hist->sum_ms, memory_order_relaxed);
}

void pawli_stats_read(const struct pawli_stats *stats, struct pawl_stats *ret_stats)
{
    struct pawl_stats all = { .size = ret_stats->size };
    size_t len = ret_stats->size < sizeof all ? ret_stats->size : sizeof all;

#define PAWLI_COUNTER(name) all.name = atomic_load_explicit(&stats->name, memory_order_relaxed);
    PAWLI_COUNTER_MAP(PAWLI_COUNTER)
#undef PAWLI_COUNTER
    read_hist(&stats->wait_ms, &all.wait_ms);
    read_hist(&stats->hold_ms, &all.hold_ms);
    memcpy(ret_stats, &all, len);
}
