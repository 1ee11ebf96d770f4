/* The system's clocks; the only file that reads them, see clock.h. */
#include "util/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec now = { 0 };

    /* Cannot fail: both clocks exist since Linux 2.6.39 and the address is good. */
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
}

static int64_t boot_ns(const struct pawli_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_BOOTTIME);
}

static int64_t real_ns(const struct pawli_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME);
}

const struct pawli_clock pawli_system_clock = { .boot_ns = boot_ns, .real_ns = real_ns };
