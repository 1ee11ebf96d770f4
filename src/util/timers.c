/* Timers in a binary heap, see timers.h. Touches no clock. */
#include "util/timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <pawl.h>

#include "util/clock.h"

void pawli_timers_init(struct pawli_timers *timers)
{
    memset(timers, 0, sizeof *timers);
}

void pawli_timers_done(struct pawli_timers *timers)
{
    for (size_t i = 0; i < timers->n; i++)
        timers->heap[i]->pos = 0;
    free((void *)timers->heap);
    pawli_timers_init(timers);
}

int pawli_timers_reserve(struct pawli_timers *timers, size_t n)
{
    struct pawli_timer **heap;
    size_t room = timers->room < 16 ? 16 : timers->room;

    if (n <= timers->room)
        return 0;
    while (room < n) {
        if (room > SIZE_MAX / 2 / sizeof(struct pawli_timer *))
            return PAWL_ENOMEM;
        room *= 2;
    }
    heap = realloc((void *)timers->heap, room * sizeof(struct pawli_timer *));
    if (heap == NULL)
        return PAWL_ENOMEM;
    timers->heap = heap;
    timers->room = room;
    return 0;
}

static void put(struct pawli_timers *timers, size_t at, struct pawli_timer *timer)
{
    timers->heap[at] = timer;
    timer->pos = at + 1;
}

static void sift_up(struct pawli_timers *timers, struct pawli_timer *timer)
{
    size_t at = timer->pos - 1;

    while (at > 0) {
        size_t parent = (at - 1) / 2;

        if (timers->heap[parent]->at_ns <= timer->at_ns)
            break;
        put(timers, at, timers->heap[parent]);
        at = parent;
    }
    put(timers, at, timer);
}

static void sift_down(struct pawli_timers *timers, struct pawli_timer *timer)
{
    size_t at = timer->pos - 1;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < timers->n && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns)
            child++;
        if (child >= timers->n || timers->heap[child]->at_ns >= timer->at_ns)
            break;
        put(timers, at, timers->heap[child]);
        at = child;
    }
    put(timers, at, timer);
}

void pawli_timers_set(struct pawli_timers *timers, struct pawli_timer *timer, int64_t at_ns)
{
    assert(timer->fire != NULL);
    /* Set while firing and due already: the smallest step past this run makes it wait for the
     * next one, so that a timer that re-arms itself in the past cannot hold up the loop. */
    if (timers->running && at_ns <= timers->run_ns)
        at_ns = pawli_after(timers->run_ns, 1);
    if (timer->pos == 0) {
        assert(timers->n < timers->room);
        put(timers, timers->n, timer);
        timers->n++;
    }
    timer->at_ns = at_ns;
    sift_up(timers, timer);
    sift_down(timers, timer);
}

void pawli_timers_clear(struct pawli_timers *timers, struct pawli_timer *timer)
{
    struct pawli_timer *last;
    size_t at;

    if (timer->pos == 0)
        return;
    at = timer->pos - 1;
    timer->pos = 0;
    timers->n--;
    if (at == timers->n)
        return;
    last = timers->heap[timers->n];
    put(timers, at, last);
    sift_up(timers, last);
    sift_down(timers, last);
}

int64_t pawli_timers_next_ns(const struct pawli_timers *timers)
{
    return timers->n == 0 ? PAWLI_NEVER : timers->heap[0]->at_ns;
}

size_t pawli_timers_run(struct pawli_timers *timers, int64_t now_ns)
{
    size_t n_fired = 0;

    assert(!timers->running && now_ns < PAWLI_NEVER);
    timers->running = true;
    timers->run_ns = now_ns;
    while (timers->n > 0 && timers->heap[0]->at_ns <= now_ns) {
        struct pawli_timer *timer = timers->heap[0];

        pawli_timers_clear(timers, timer);
        timer->fire(timer); /* may free it */
        n_fired++;
    }
    timers->running = false;
    return n_fired;
}
