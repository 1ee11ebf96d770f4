/* Counters of a client: written by the engine, read by anybody. */
#ifndef PAWLI_ENGINE_STATS_H
#define PAWLI_ENGINE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include <pawl.h>

/* X(name): the plain counters of struct pawl_stats. */
/* clang-format off */
#define PAWLI_COUNTER_MAP(X)                                                                      \
    X(acquires) X(reentries) X(waits) X(busy) X(canceled) X(failed) X(releases) X(renewals)       \
    X(late_renewals) X(failed_renewals) X(lost_taken) X(lost_expired) X(lost_unreachable)         \
    X(lost_max_hold) X(lost_revoked) X(connects) X(commands) X(held) X(waiting)
/* clang-format on */

struct pawli_hist {
    _Atomic uint64_t bucket[PAWL_HIST_BUCKETS];
    _Atomic uint64_t count;
    _Atomic uint64_t sum_ms;
};

struct pawli_stats {
#define PAWLI_COUNTER(name) _Atomic uint64_t name;
    PAWLI_COUNTER_MAP(PAWLI_COUNTER)
#undef PAWLI_COUNTER
    struct pawli_hist wait_ms;
    struct pawli_hist hold_ms;
};

static inline void pawli_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void pawli_uncount(_Atomic uint64_t *counter)
{
    atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

/* Count one lost hold under its reason. */
void pawli_count_loss(struct pawli_stats *stats, int reason);
void pawli_hist_add(struct pawli_hist *hist, int64_t duration_ns);
/* Copy to the public struct, as much of it as the caller knows. */
void pawli_stats_read(const struct pawli_stats *stats, struct pawl_stats *ret_stats);

#endif
