/* Timers in a binary heap; knows no clock: the caller says what time it is. */
#ifndef PAWLI_UTIL_TIMERS_H
#define PAWLI_UTIL_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what it wakes. Zero-initialised is "not set". */
struct pawli_timer {
    int64_t at_ns;
    size_t pos; /* place in the heap plus one; 0: not set */
    void (*fire)(struct pawli_timer *timer);
};

struct pawli_timers {
    struct pawli_timer **heap;
    size_t n;
    size_t room;
    bool running;
    int64_t run_ns; /* while running: what is due */
};

void pawli_timers_init(struct pawli_timers *timers);
void pawli_timers_done(struct pawli_timers *timers);

/* Make room for @n timers in all, so that pawli_timers_set() cannot fail for them. Call it when
 * an object that embeds a timer is made, with the number of such objects. 0 or PAWL_ENOMEM. */
int pawli_timers_reserve(struct pawli_timers *timers, size_t n);

/* (Re-)arm; @timer->fire must be set. Room must have been reserved. */
void pawli_timers_set(struct pawli_timers *timers, struct pawli_timer *timer, int64_t at_ns);
void pawli_timers_clear(struct pawli_timers *timers, struct pawli_timer *timer);

/* When the earliest fires; PAWLI_NEVER if none is set. */
int64_t pawli_timers_next_ns(const struct pawli_timers *timers);

/* Fire what is due at @now_ns, earliest first; each is cleared before it fires and may set itself
 * again (then it waits for the next run even if due). Returns how many fired. */
size_t pawli_timers_run(struct pawli_timers *timers, int64_t now_ns);

#endif
