/* The loop of a client: descriptors, timers and work from other threads, run by one thread at a
 * time. Wraps libevent; knows nothing of locks. Only pawli_loop_post() and pawli_loop_wake() may
 * be called by a thread that does not run the loop. */
#ifndef PAWLI_NET_LOOP_H
#define PAWLI_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"
#include "util/list.h"
#include "util/timers.h"

#define PAWLI_IN 1u
#define PAWLI_OUT 2u

struct pawli_loop;

/* A watched descriptor, embedded in what owns it. Zero-initialised is "not watched". */
struct pawli_watch {
    struct pawli_loop *loop;
    void *event; /* the loop's own */
    int fd;
    unsigned what;
    void (*ready)(struct pawli_watch *watch, unsigned what);
};

/* Work posted from another thread; runs on the loop. Embedded, in one list at a time. */
struct pawli_task {
    struct pawli_list link;
    void (*run)(struct pawli_task *task);
};

/* 0, PAWL_ENOMEM or PAWL_ESYSTEM. @clock is borrowed. */
int pawli_loop_new(const struct pawli_clock *clock, struct pawli_loop **ret_loop);
/* Tasks that were posted and did not run are dropped. */
void pawli_loop_free(struct pawli_loop *loop);

/* CLOCK_BOOTTIME now, read afresh. */
int64_t pawli_loop_now_ns(const struct pawli_loop *loop);
const struct pawli_clock *pawli_loop_clock(const struct pawli_loop *loop);

/* Watch @fd for PAWLI_IN and/or PAWLI_OUT, or change what is watched (level-triggered). Errors and
 * hang-ups are reported as IN and OUT. @watch->ready must be set.
 * Returns 0, PAWL_ENOMEM or PAWL_ESYSTEM. */
int pawli_loop_watch(struct pawli_loop *loop, struct pawli_watch *watch, int fd, unsigned what);
/* Safe to call twice; call it before the descriptor is closed. */
void pawli_loop_unwatch(struct pawli_watch *watch);

/* Timers: see util/timers.h. reserve is called once per object that embeds a timer (+1), and
 * unreserve when it goes. */
int pawli_loop_timer_reserve(struct pawli_loop *loop);
void pawli_loop_timer_unreserve(struct pawli_loop *loop);
void pawli_loop_timer_set(struct pawli_loop *loop, struct pawli_timer *timer, int64_t at_ns);
void pawli_loop_timer_clear(struct pawli_loop *loop, struct pawli_timer *timer);

/* Run @task on the loop soon, in the order of posting. From any thread. The memory stays the
 * caller's. */
void pawli_loop_post(struct pawli_loop *loop, struct pawli_task *task);

/* End the pawli_loop_run() under way early, or the next one: who is about to sleep must not miss
 * it. From any thread; coalesced. */
void pawli_loop_wake(struct pawli_loop *loop);

/* Sleep until a descriptor is ready, a timer is due, work is posted, or @until_ns, then do what
 * is to be done and return. @until_ns 0: do not sleep. */
void pawli_loop_run(struct pawli_loop *loop, int64_t until_ns);

/* When the earliest timer fires; PAWLI_NEVER. */
int64_t pawli_loop_next_timer_ns(const struct pawli_loop *loop);

/* A descriptor that is readable while a watched one is ready, for a thread that waits elsewhere and
 * then runs the loop with @until_ns 0. More may be added to it with EPOLL_CTL_ADD. */
int pawli_loop_fd(const struct pawli_loop *loop);

/* Called in the posting thread after each pawli_loop_post(): wakes a loop that nobody runs. */
void pawli_loop_on_post(struct pawli_loop *loop, void (*posted)(void *arg), void *arg);

/* Work was posted and has not run yet. From any thread. */
bool pawli_loop_has_tasks(struct pawli_loop *loop);

/* Called by pawli_loop_run() before it sleeps, after all callbacks of a turn: writes out what the
 * turn collected, in one go. */
void pawli_loop_on_flush(struct pawli_loop *loop, void (*flush)(void *arg), void *arg);

#endif
