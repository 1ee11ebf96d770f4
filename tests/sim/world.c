/* True time, events in their order, clocks that run at rates of their own, and the log. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_world *sim;

/* ---- events ---- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void sift_up(struct sim_event *heap, size_t i)
{
    while (i > 0 && before(&heap[i], &heap[(i - 1) / 2])) {
        struct sim_event swap = heap[i];

        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = swap;
        i = (i - 1) / 2;
    }
}

static void sift_down(struct sim_event *heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = i;
        struct sim_event swap;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (before(&heap[child], &heap[least]))
                least = child;
        if (least == i)
            return;
        swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

void sim_at(struct sim_world *w, int64_t at_ns, sim_event_fn run, void *arg, int64_t number)
{
    struct sim_event *event;

    w->heap = fr_grow(w->heap, w->n_events, &w->room, sizeof *w->heap);
    event = &w->heap[w->n_events];
    event->at_ns = at_ns < w->now_ns ? w->now_ns : at_ns;
    event->seq = ++w->seq;
    event->run = run;
    event->arg = arg;
    event->number = number;
    sift_up(w->heap, w->n_events++);
}

bool sim_step(struct sim_world *w)
{
    struct sim_event event;
    struct sim_client *current = w->current;

    if (w->n_events == 0 || sim_failed(w))
        return false;
    event = w->heap[0];
    w->heap[0] = w->heap[--w->n_events];
    sift_down(w->heap, w->n_events, 0);
    w->now_ns = event.at_ns;
    w->n_steps++;
    event.run(w, event.arg, event.number);
    w->current = current;
    return true;
}

void sim_run_until(struct sim_world *w, int64_t until_ns)
{
    while (w->n_events > 0 && w->heap[0].at_ns <= until_ns && sim_step(w))
        ;
    if (w->now_ns < until_ns && !sim_failed(w))
        w->now_ns = until_ns;
}

/* ---- clocks ---- */

int64_t sim_clock_at(const struct sim_clock *clock, int64_t true_ns)
{
    int64_t since = true_ns - clock->true_ns;

    if (clock->stopped)
        return clock->base_ns;
    return clock->base_ns + since + since / 1000 * clock->ppm / 1000;
}

int64_t sim_clock_when(const struct sim_clock *clock, int64_t shown_ns)
{
    int64_t since = shown_ns - clock->base_ns;
    int64_t guess = since - since / 1000 * clock->ppm / 1000 - since / 1000000000 - 1;

    if (guess < 0)
        guess = 0;
    while (sim_clock_at(clock, clock->true_ns + guess) < shown_ns)
        guess += 1000;
    return clock->true_ns + guess;
}

void sim_clock_set(struct sim_clock *clock, int64_t true_ns, int64_t shown_ns)
{
    clock->true_ns = true_ns;
    clock->base_ns = shown_ns;
}

/* ---- the log ---- */

void sim_log(struct sim_world *w, const char *what, int64_t a, int64_t b)
{
    uint64_t hash = w->hash;

    for (const char *c = what; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    hash = sim_mix(hash ^ (uint64_t)w->now_ns);
    w->hash = sim_mix(hash ^ (uint64_t)a * 31 ^ (uint64_t)b * 1009);
    if (w->verbose)
        printf("%12.6f  %-24s %lld %lld\n", (double)w->now_ns / 1e9, what, (long long)a,
               (long long)b);
}

void sim_fail(struct sim_world *w, const char *format, ...)
{
    va_list args;
    int len;

    if (sim_failed(w))
        return;
    len = snprintf(w->failure, sizeof w->failure, "at %.6f s: ", (double)w->now_ns / 1e9);
    va_start(args, format);
    (void)vsnprintf(w->failure + len, sizeof w->failure - (size_t)len, format, args);
    va_end(args);
    sim_log(w, w->failure, 0, 0);
}
