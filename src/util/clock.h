/* The two clocks that pawl reads, behind a table so that tests own the time. */
#ifndef PAWLI_UTIL_CLOCK_H
#define PAWLI_UTIL_CLOCK_H

#include <stdint.h>

#define PAWLI_NS_PER_MS INT64_C(1000000)
#define PAWLI_NS_PER_US INT64_C(1000)
#define PAWLI_NEVER INT64_MAX

struct pawli_clock {
    /* CLOCK_BOOTTIME: counts while the machine sleeps. All deadlines are on this clock. */
    int64_t (*boot_ns)(const struct pawli_clock *clock);
    /* CLOCK_REALTIME: only compared with the other, to notice a frozen virtual machine. */
    int64_t (*real_ns)(const struct pawli_clock *clock);
};

extern const struct pawli_clock pawli_system_clock;

/* a + b that sticks at PAWLI_NEVER instead of overflowing; b >= 0. */
static inline int64_t pawli_after(int64_t a, int64_t b)
{
    return a > PAWLI_NEVER - b ? PAWLI_NEVER : a + b;
}

#endif
