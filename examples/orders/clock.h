/* clock.h: the two clocks of this program, in microseconds. */
#ifndef ORDERS_CLOCK_H
#define ORDERS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* For people and for comparing the logs of instances on one host. */
static inline int64_t clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

/* For durations; goes on while the machine sleeps, as a lease does. */
static inline int64_t clock_run_us(void)
{
    return clock_read_us(CLOCK_BOOTTIME);
}

#endif
