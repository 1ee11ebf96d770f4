/* Stands in for src/net/loop.c: the same functions on the simulator's time. A loop gets turns from
 * the world; a call that runs it by itself (a close) runs the world meanwhile. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "net/loop.h"
#include "sim.h"
#include "sub.h"

#define WATCHES_MAX 4

struct pawli_loop {
    struct pawli_clock clock;
    struct sim_client *client;
    struct pawli_timers timers;
    struct pawli_list tasks;
    struct pawli_watch *watch[WATCHES_MAX];
    size_t n_reserved;
    void (*flush)(void *arg);
    void *flush_arg;
    void (*on_post)(void *arg);
    void *on_post_arg;
};

/* ---- clocks ---- */

/* A process may be stopped between reading the clock and using what it read. */
static void perhaps_stop(struct sim_client *client)
{
    struct sim_world *w = client->w;
    int64_t until_ns;

    if (w->nested || w->current != client || client->buried || w->healing ||
        w->plan.preempt == 0 || !sim_chance(&client->rng, w->plan.preempt))
        return;
    until_ns = w->now_ns + sim_between(&client->rng, SIM_MS, w->plan.lease_ms * SIM_MS * 3 / 2);
    sim_log(w, "preempted", client->number, until_ns - w->now_ns);
    w->nested = true;
    sim_client_pause(client, until_ns);
    sim_run_until(w, until_ns);
    w->nested = false;
}

static int64_t boot_ns(const struct pawli_clock *clock)
{
    const struct pawli_loop *loop = (const struct pawli_loop *)(const void *)clock;

    perhaps_stop(loop->client);
    return sim_boot_ns(loop->client);
}

static int64_t real_ns(const struct pawli_clock *clock)
{
    const struct pawli_loop *loop = (const struct pawli_loop *)(const void *)clock;

    return sim_real_ns(loop->client);
}

int64_t pawli_loop_now_ns(const struct pawli_loop *loop)
{
    return boot_ns(&loop->clock);
}

const struct pawli_clock *pawli_loop_clock(const struct pawli_loop *loop)
{
    return &loop->clock;
}

/* ---- making ---- */

int pawli_loop_new(const struct pawli_clock *clock, struct pawli_loop **ret_loop)
{
    struct pawli_loop *loop = calloc(1, sizeof *loop);

    (void)clock;
    if (loop == NULL)
        return PAWL_ENOMEM;
    loop->clock.boot_ns = boot_ns;
    loop->clock.real_ns = real_ns;
    loop->client = sim->current;
    loop->client->loop = loop;
    pawli_timers_init(&loop->timers);
    pawli_list_init(&loop->tasks);
    *ret_loop = loop;
    return 0;
}

void pawli_loop_free(struct pawli_loop *loop)
{
    if (loop == NULL)
        return;
    pawli_timers_done(&loop->timers);
    free(loop);
}

/* ---- descriptors ---- */

/* Nobody sleeps on it; the calls want to add theirs. */
int pawli_loop_fd(const struct pawli_loop *loop)
{
    static int fd = -1;

    (void)loop;
    if (fd < 0)
        fd = epoll_create1(EPOLL_CLOEXEC);
    return fd;
}

static unsigned ready_of(const struct pawli_loop *loop, const struct pawli_watch *watch)
{
    return sim_conn_ready(loop->client->w, watch->fd) & watch->what;
}

int pawli_loop_watch(struct pawli_loop *loop, struct pawli_watch *watch, int fd, unsigned what)
{
    size_t i = 0;

    if (watch->event != NULL && watch->fd == fd && watch->what == what)
        return 0;
    pawli_loop_unwatch(watch);
    while (i < WATCHES_MAX && loop->watch[i] != NULL)
        i++;
    if (i == WATCHES_MAX)
        return PAWL_ESYSTEM;
    loop->watch[i] = watch;
    watch->loop = loop;
    watch->event = &loop->watch[i];
    watch->fd = fd;
    watch->what = what;
    if (ready_of(loop, watch) != 0)
        sim_loop_wake(loop->client, sim->now_ns);
    return 0;
}

void pawli_loop_unwatch(struct pawli_watch *watch)
{
    if (watch->event == NULL)
        return;
    *(struct pawli_watch **)watch->event = NULL;
    watch->event = NULL;
}

/* ---- timers and tasks ---- */

int pawli_loop_timer_reserve(struct pawli_loop *loop)
{
    int rc = pawli_timers_reserve(&loop->timers, loop->n_reserved + 1);

    if (rc == 0)
        loop->n_reserved++;
    return rc;
}

void pawli_loop_timer_unreserve(struct pawli_loop *loop)
{
    loop->n_reserved--;
}

void pawli_loop_timer_set(struct pawli_loop *loop, struct pawli_timer *timer, int64_t at_ns)
{
    pawli_timers_set(&loop->timers, timer, at_ns);
}

void pawli_loop_timer_clear(struct pawli_loop *loop, struct pawli_timer *timer)
{
    pawli_timers_clear(&loop->timers, timer);
}

int64_t pawli_loop_next_timer_ns(const struct pawli_loop *loop)
{
    return pawli_timers_next_ns(&loop->timers);
}

void pawli_loop_post(struct pawli_loop *loop, struct pawli_task *task)
{
    pawli_list_append(&loop->tasks, &task->link);
    sim_loop_wake(loop->client, sim->now_ns + sim_between(&loop->client->rng, 0, 200 * SIM_US));
    if (loop->on_post != NULL)
        loop->on_post(loop->on_post_arg);
}

void pawli_loop_wake(struct pawli_loop *loop)
{
    sim_loop_wake(loop->client, sim->now_ns);
}

bool pawli_loop_has_tasks(struct pawli_loop *loop)
{
    return !pawli_list_empty(&loop->tasks);
}

void pawli_loop_on_flush(struct pawli_loop *loop, void (*flush)(void *arg), void *arg)
{
    loop->flush = flush;
    loop->flush_arg = arg;
}

void pawli_loop_on_post(struct pawli_loop *loop, void (*posted)(void *arg), void *arg)
{
    loop->on_post = posted;
    loop->on_post_arg = arg;
}

/* ---- turns ---- */

static void flush(struct pawli_loop *loop)
{
    if (loop->flush != NULL)
        loop->flush(loop->flush_arg);
}

static void run_watches(struct pawli_loop *loop)
{
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        struct pawli_watch *watch = loop->watch[i];
        unsigned ready = watch == NULL ? 0 : ready_of(loop, watch);

        if (ready != 0)
            watch->ready(watch, ready);
    }
}

static void run_tasks(struct pawli_loop *loop)
{
    struct pawli_list tasks;
    struct pawli_list *node;

    pawli_list_init(&tasks);
    pawli_list_splice(&tasks, &loop->tasks);
    while ((node = pawli_list_pop(&tasks)) != NULL) {
        struct pawli_task *task = PAWLI_CONTAINER(node, struct pawli_task, link);

        task->run(task);
    }
}

static void turn(struct pawli_loop *loop)
{
    struct sim_world *w = loop->client->w;
    struct sim_client *before = w->current;

    w->current = loop->client;
    flush(loop);
    run_watches(loop);
    run_tasks(loop);
    pawli_timers_run(&loop->timers, pawli_loop_now_ns(loop));
    flush(loop);
    w->current = before;
}

/* True time at which the loop has something to do; PAWLI_NEVER. */
static int64_t due_ns(const struct pawli_loop *loop)
{
    int64_t next_ns = pawli_timers_next_ns(&loop->timers);
    const struct sim_client *client = loop->client;

    if (!pawli_list_empty(&loop->tasks))
        return sim->now_ns;
    for (size_t i = 0; i < WATCHES_MAX; i++)
        if (loop->watch[i] != NULL && ready_of(loop, loop->watch[i]) != 0)
            return sim->now_ns;
    if (next_ns == PAWLI_NEVER || client->boot.stopped)
        return PAWLI_NEVER;
    if (next_ns <= sim_boot_ns(client))
        return sim->now_ns;
    return sim_clock_when(&client->boot, next_ns);
}

static void wake_next(struct pawli_loop *loop)
{
    int64_t next_ns = due_ns(loop);

    if (loop->client->running && next_ns != PAWLI_NEVER)
        sim_loop_wake(loop->client, next_ns);
}

void sim_loop_turn(struct pawli_loop *loop)
{
    turn(loop);
    wake_next(loop);
}

/* Free the memory of a process that is gone: its private clock jumps from timer to timer. */
static void run_buried(struct pawli_loop *loop, int64_t until_ns)
{
    struct sim_client *client = loop->client;

    turn(loop);
    if (until_ns > client->buried_ns && until_ns != PAWLI_NEVER) {
        int64_t next_ns = pawli_timers_next_ns(&loop->timers);

        client->buried_ns = next_ns < until_ns ? next_ns : until_ns;
    }
}

void pawli_loop_run(struct pawli_loop *loop, int64_t until_ns)
{
    struct sim_client *client = loop->client;
    struct sim_world *w = client->w;

    if (client->buried || sim_failed(w)) {
        client->buried_ns = sim_boot_ns(client);
        client->buried = true;
        client->alive = false;
        run_buried(loop, until_ns);
        return;
    }
    turn(loop);
    while (!client->buried && until_ns > sim_boot_ns(client) && !sim_failed(w) &&
           (sim_stopped(client) || due_ns(loop) > w->now_ns)) {
        int64_t at_ns = sim_stopped(client) ? client->paused_until_ns : due_ns(loop);
        int64_t end_ns = until_ns == PAWLI_NEVER || client->boot.stopped
                             ? PAWLI_NEVER
                             : sim_clock_when(&client->boot, until_ns);

        at_ns = end_ns < at_ns ? end_ns : at_ns;
        if (w->n_events > 0 && w->heap[0].at_ns <= at_ns)
            (void)sim_step(w);
        else if (at_ns != PAWLI_NEVER)
            sim_run_until(w, at_ns);
        else
            break;
    }
    wake_next(loop);
}
