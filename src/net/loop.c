/* The loop of a client on libevent; see loop.h. Knows descriptors and time, nothing of locks.
 *
 * Its timer is a timerfd on CLOCK_BOOTTIME and not libevent's: after a suspend it is due at once,
 * where one on CLOCK_MONOTONIC would sleep on for what was left before. */
#include "net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <event2/event.h>

#include <pawl.h>

struct pawli_loop {
    const struct pawli_clock *clock;
    struct event_base *base;
    int outer_fd; /* epoll: what is watched, for threads that do not sleep in the loop */
    struct pawli_timers timers;
    size_t n_reserved;
    int64_t armed_ns; /* when the timerfd fires; PAWLI_NEVER: it does not */
    struct pawli_watch timer_watch;
    struct pawli_watch wake_watch;
    void (*flush)(void *arg);
    void *flush_arg;
    void (*on_post)(void *arg);
    void *on_post_arg;
    pthread_mutex_t mu;      /* guards the rest */
    struct pawli_list tasks;
    bool asleep;             /* a poster must write to the eventfd */
    bool wanted;             /* pawli_loop_wake() was called since the last turn */
    bool woken;              /* it has been written to and not been read */
};

static void drain(int fd)
{
    uint64_t n;

    while (read(fd, &n, sizeof n) < 0 && errno == EINTR)
        ;
}

static void timer_ready(struct pawli_watch *watch, unsigned what)
{
    (void)what;
    drain(watch->fd);
    watch->loop->armed_ns = PAWLI_NEVER;
}

static void wake_ready(struct pawli_watch *watch, unsigned what)
{
    struct pawli_loop *loop = watch->loop;

    (void)what;
    pthread_mutex_lock(&loop->mu);
    drain(watch->fd);
    loop->woken = false;
    pthread_mutex_unlock(&loop->mu);
}

static int open_own_descriptors(struct pawli_loop *loop)
{
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int rc = PAWL_ESYSTEM;

    loop->timer_watch.fd = timer;
    loop->timer_watch.ready = timer_ready;
    loop->wake_watch.fd = wake;
    loop->wake_watch.ready = wake_ready;
    if (timer < 0 || wake < 0)
        return PAWL_ESYSTEM;
    rc = pawli_loop_watch(loop, &loop->timer_watch, timer, PAWLI_IN);
    if (rc < 0)
        return rc;
    return pawli_loop_watch(loop, &loop->wake_watch, wake, PAWLI_IN);
}

/* libevent ends the whole process when a base gets no descriptors (its evsig_init_()), so see first
 * that there are some: an epoll, a pair for signals, and two to spare for other threads. */
static bool has_descriptors(void)
{
    int fds[5];
    size_t n = 0;
    bool all;

    while (n < sizeof fds / sizeof fds[0] && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n++;
    all = n == sizeof fds / sizeof fds[0];
    while (n > 0)
        close(fds[--n]);
    return all;
}

static struct event_base *make_base(void)
{
    struct event_config *config = has_descriptors() ? event_config_new() : NULL;
    struct event_base *base = NULL;

    if (config == NULL)
        return NULL;
    /* One thread at a time runs the loop, so libevent needs no locks of its own. */
    if (event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
        base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

int pawli_loop_new(const struct pawli_clock *clock, struct pawli_loop **ret_loop)
{
    struct pawli_loop *loop = calloc(1, sizeof *loop);
    int rc;

    if (loop == NULL)
        return PAWL_ENOMEM;
    loop->clock = clock;
    loop->armed_ns = PAWLI_NEVER;
    loop->outer_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->timer_watch.fd = -1;
    loop->wake_watch.fd = -1;
    pawli_timers_init(&loop->timers);
    pawli_list_init(&loop->tasks);
    if (pthread_mutex_init(&loop->mu, NULL) != 0) {
        free(loop);
        return PAWL_ESYSTEM;
    }
    loop->base = make_base();
    rc = loop->base == NULL || loop->outer_fd < 0 ? PAWL_ESYSTEM : open_own_descriptors(loop);
    if (rc < 0) {
        pawli_loop_free(loop);
        return rc;
    }
    *ret_loop = loop;
    return 0;
}

void pawli_loop_free(struct pawli_loop *loop)
{
    if (loop == NULL)
        return;
    pawli_loop_unwatch(&loop->timer_watch);
    pawli_loop_unwatch(&loop->wake_watch);
    if (loop->timer_watch.fd >= 0)
        close(loop->timer_watch.fd);
    if (loop->wake_watch.fd >= 0)
        close(loop->wake_watch.fd);
    if (loop->outer_fd >= 0)
        close(loop->outer_fd);
    if (loop->base != NULL)
        event_base_free(loop->base);
    pawli_timers_done(&loop->timers);
    pthread_mutex_destroy(&loop->mu);
    free(loop);
}

int64_t pawli_loop_now_ns(const struct pawli_loop *loop)
{
    return loop->clock->boot_ns(loop->clock);
}

const struct pawli_clock *pawli_loop_clock(const struct pawli_loop *loop)
{
    return loop->clock;
}

static void event_ready(evutil_socket_t fd, short what, void *arg)
{
    struct pawli_watch *watch = arg;
    unsigned ready = 0;

    (void)fd;
    if ((what & EV_READ) != 0)
        ready |= PAWLI_IN;
    if ((what & EV_WRITE) != 0)
        ready |= PAWLI_OUT;
    watch->ready(watch, ready);
}

static short event_flags(unsigned what)
{
    unsigned flags = EV_PERSIST;

    if ((what & PAWLI_IN) != 0)
        flags |= EV_READ;
    if ((what & PAWLI_OUT) != 0)
        flags |= EV_WRITE;
    return (short)flags;
}

/* The loop's own descriptors matter only to who sleeps in it. */
static bool is_outside(const struct pawli_watch *watch)
{
    return watch != &watch->loop->timer_watch && watch != &watch->loop->wake_watch;
}

static bool watch_outside(const struct pawli_watch *watch)
{
    struct epoll_event ev = { 0 };

    if (!is_outside(watch))
        return true;
    if ((watch->what & PAWLI_IN) != 0)
        ev.events |= EPOLLIN;
    if ((watch->what & PAWLI_OUT) != 0)
        ev.events |= EPOLLOUT;
    return epoll_ctl(watch->loop->outer_fd, EPOLL_CTL_ADD, watch->fd, &ev) == 0;
}

int pawli_loop_watch(struct pawli_loop *loop, struct pawli_watch *watch, int fd, unsigned what)
{
    if (watch->event != NULL && watch->fd == fd && watch->what == what)
        return 0;
    pawli_loop_unwatch(watch);
    watch->loop = loop;
    watch->fd = fd;
    watch->what = what;
    watch->event = event_new(loop->base, fd, event_flags(what), event_ready, watch);
    if (watch->event == NULL)
        return PAWL_ENOMEM;
    if (event_add(watch->event, NULL) != 0 || !watch_outside(watch)) {
        pawli_loop_unwatch(watch);
        return PAWL_ESYSTEM;
    }
    return 0;
}

void pawli_loop_unwatch(struct pawli_watch *watch)
{
    if (watch->event == NULL)
        return;
    event_free(watch->event);
    watch->event = NULL;
    if (is_outside(watch))
        (void)epoll_ctl(watch->loop->outer_fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

int pawli_loop_fd(const struct pawli_loop *loop)
{
    return loop->outer_fd;
}

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

static void wake_locked(struct pawli_loop *loop)
{
    const uint64_t one = 1;

    if (!loop->asleep || loop->woken)
        return;
    loop->woken = true;
    while (write(loop->wake_watch.fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void pawli_loop_post(struct pawli_loop *loop, struct pawli_task *task)
{
    pthread_mutex_lock(&loop->mu);
    pawli_list_append(&loop->tasks, &task->link);
    wake_locked(loop);
    pthread_mutex_unlock(&loop->mu);
    if (loop->on_post != NULL)
        loop->on_post(loop->on_post_arg);
}

void pawli_loop_wake(struct pawli_loop *loop)
{
    pthread_mutex_lock(&loop->mu);
    loop->wanted = true;
    wake_locked(loop);
    pthread_mutex_unlock(&loop->mu);
}

bool pawli_loop_has_tasks(struct pawli_loop *loop)
{
    bool has;

    pthread_mutex_lock(&loop->mu);
    has = !pawli_list_empty(&loop->tasks);
    pthread_mutex_unlock(&loop->mu);
    return has;
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

/* Make the timerfd fire at @at_ns at the latest. One that fires too early costs a turn; one system
 * call saved in every turn is worth more. */
static void arm(struct pawli_loop *loop, int64_t at_ns)
{
    struct itimerspec when = { 0 };

    if (at_ns >= loop->armed_ns)
        return;
    when.it_value.tv_sec = at_ns / 1000000000;
    when.it_value.tv_nsec = at_ns % 1000000000;
    if (timerfd_settime(loop->timer_watch.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        loop->armed_ns = at_ns;
}

static bool fall_asleep(struct pawli_loop *loop)
{
    pthread_mutex_lock(&loop->mu);
    loop->asleep = pawli_list_empty(&loop->tasks) && !loop->wanted;
    pthread_mutex_unlock(&loop->mu);
    return loop->asleep;
}

static void run_tasks(struct pawli_loop *loop)
{
    struct pawli_list tasks;
    struct pawli_list *node;

    pawli_list_init(&tasks);
    pthread_mutex_lock(&loop->mu);
    loop->asleep = false;
    loop->wanted = false;
    pawli_list_splice(&tasks, &loop->tasks);
    pthread_mutex_unlock(&loop->mu);
    while ((node = pawli_list_pop(&tasks)) != NULL) {
        struct pawli_task *task = PAWLI_CONTAINER(node, struct pawli_task, link);

        task->run(task);
    }
}

static void flush(struct pawli_loop *loop)
{
    if (loop->flush != NULL)
        loop->flush(loop->flush_arg);
}

void pawli_loop_run(struct pawli_loop *loop, int64_t until_ns)
{
    int64_t next_ns = pawli_timers_next_ns(&loop->timers);
    bool sleep;

    flush(loop);
    if (until_ns < next_ns)
        next_ns = until_ns;
    sleep = next_ns > pawli_loop_now_ns(loop) && fall_asleep(loop);
    if (sleep)
        arm(loop, next_ns);
    event_base_loop(loop->base, sleep ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
    run_tasks(loop);
    pawli_timers_run(&loop->timers, pawli_loop_now_ns(loop));
    flush(loop);
}
