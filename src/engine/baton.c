/* Who runs the loop; see baton.h. Touches threads and the loop, decides nothing about locks. */
#include "engine/baton.h"

#include <string.h>
#include <time.h>

#include <pawl.h>

#include "engine/thread.h"

int pawli_baton_init(struct pawli_baton *b, struct pawli_loop *loop, bool (*at_rest)(void *arg),
                     void *arg)
{
    pthread_condattr_t attr;
    int err;

    memset(b, 0, sizeof *b);
    b->loop = loop;
    b->at_rest = at_rest;
    b->arg = arg;
    b->stood_in_ns = -PAWLI_REST_NS;
    b->driven_ns = -PAWLI_REST_NS;
    if (pthread_mutex_init(&b->mu, NULL) != 0)
        return PAWL_ESYSTEM;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    err = pthread_cond_init(&b->free, &attr);
    pthread_condattr_destroy(&attr);
    if (err != 0) {
        pthread_mutex_destroy(&b->mu);
        return PAWL_ESYSTEM;
    }
    return 0;
}

void pawli_baton_done(struct pawli_baton *b)
{
    pthread_cond_destroy(&b->free);
    pthread_mutex_destroy(&b->mu);
}

/* Nobody need listen to the sockets now: nothing is under way, or a thread that dispatches
 * listens, and nobody sleeps who would have to wait for it. */
static bool is_quiet(const struct pawli_baton *b, int64_t now_ns)
{
    if (now_ns - b->driven_ns < PAWLI_REST_NS && b->n_sleepers == 0)
        return true;
    return b->at_rest(b->arg);
}

static bool may_rest(struct pawli_baton *b, int64_t now_ns)
{
    return now_ns - b->stood_in_ns < PAWLI_REST_NS && !pawli_loop_has_tasks(b->loop) &&
           pawli_loop_next_timer_ns(b->loop) > now_ns && is_quiet(b, now_ns);
}

/* Sleep with the baton free until the next timer, a poke, or the end of the rest. The condition
 * variable's clock stops while the machine sleeps, which costs PAWLI_REST_NS at most. */
static void rest(struct pawli_baton *b, int64_t now_ns)
{
    int64_t until_ns = pawli_loop_next_timer_ns(b->loop);
    struct timespec when;
    int64_t for_ns;

    if (until_ns > b->stood_in_ns + PAWLI_REST_NS)
        until_ns = b->stood_in_ns + PAWLI_REST_NS;
    for_ns = until_ns - now_ns;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_nsec += (long)(for_ns % 1000000000);
    when.tv_sec += for_ns / 1000000000 + when.tv_nsec / 1000000000;
    when.tv_nsec %= 1000000000;
    b->resting = true;
    b->wakes_ns = until_ns;
    pthread_cond_timedwait(&b->free, &b->mu, &when);
    b->resting = false;
}

static void *engine_main(void *arg)
{
    struct pawli_baton *b = arg;

    pthread_mutex_lock(&b->mu);
    while (!b->stop) {
        int64_t now_ns = pawli_loop_now_ns(b->loop);

        if (b->holder != PAWLI_BATON_FREE) {
            pthread_cond_wait(&b->free, &b->mu);
        } else if (may_rest(b, now_ns)) {
            rest(b, now_ns);
        } else {
            b->holder = PAWLI_BATON_ENGINE;
            pthread_mutex_unlock(&b->mu);
            pawli_loop_run(b->loop, PAWLI_NEVER);
            pthread_mutex_lock(&b->mu);
            b->holder = PAWLI_BATON_FREE;
        }
    }
    pthread_mutex_unlock(&b->mu);
    return NULL;
}

int pawli_baton_start(struct pawli_baton *b)
{
    int rc = pawli_thread_start(engine_main, b, "pawl-engine", &b->thread);

    b->running = rc == 0;
    return rc;
}

void pawli_baton_stop(struct pawli_baton *b)
{
    bool running;

    pthread_mutex_lock(&b->mu);
    running = b->running;
    b->stop = true;
    pthread_cond_signal(&b->free);
    pthread_mutex_unlock(&b->mu);
    if (!running)
        return;
    pawli_loop_wake(b->loop);
    pthread_join(b->thread, NULL);
    pthread_mutex_lock(&b->mu);
    while (b->holder != PAWLI_BATON_FREE)
        pthread_cond_wait(&b->free, &b->mu);
    b->running = false;
    pthread_mutex_unlock(&b->mu);
}

bool pawli_baton_stopping(struct pawli_baton *b)
{
    bool stop;

    pthread_mutex_lock(&b->mu);
    stop = b->stop;
    pthread_mutex_unlock(&b->mu);
    return stop;
}

void pawli_baton_poke(struct pawli_baton *b)
{
    pthread_mutex_lock(&b->mu);
    if (b->holder == PAWLI_BATON_FREE)
        pthread_cond_signal(&b->free);
    pthread_mutex_unlock(&b->mu);
}

/* With the mutex held: note that a caller came, and take the baton if it is free. */
static bool take(struct pawli_baton *b, int64_t now_ns)
{
    b->stood_in_ns = now_ns;
    if (b->holder != PAWLI_BATON_FREE || !b->running || b->stop)
        return false;
    b->holder = PAWLI_BATON_CALLER;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &b->cancel_before);
    return true;
}

bool pawli_baton_take(struct pawli_baton *b)
{
    int64_t now_ns = pawli_loop_now_ns(b->loop);
    bool stale;
    bool took;

    pthread_mutex_lock(&b->mu);
    stale = now_ns - b->stood_in_ns > PAWLI_REST_NS / 5;
    took = take(b, now_ns);
    pthread_mutex_unlock(&b->mu);
    /* What was posted before goes first: a release by pawl_lock_free() and then an acquire of the
     * same lock are meant in this order. And when nobody listened to the sockets for a while, hear
     * first whether they still stand. */
    if (took && (stale || pawli_loop_has_tasks(b->loop)))
        pawli_loop_run(b->loop, 0);
    return took;
}

bool pawli_baton_take_driven(struct pawli_baton *b)
{
    int64_t now_ns = pawli_loop_now_ns(b->loop);
    bool took;

    pthread_mutex_lock(&b->mu);
    b->driven_ns = now_ns;
    took = take(b, now_ns);
    pthread_mutex_unlock(&b->mu);
    return took;
}

void pawli_baton_sleeper(struct pawli_baton *b, bool asleep)
{
    pthread_mutex_lock(&b->mu);
    if (asleep)
        b->n_sleepers++;
    else
        b->n_sleepers--;
    pthread_mutex_unlock(&b->mu);
}

void pawli_baton_leave(struct pawli_baton *b)
{
    int64_t now_ns = pawli_loop_now_ns(b->loop);
    int64_t next_ns = pawli_loop_next_timer_ns(b->loop);
    int cancel_before;

    pthread_mutex_lock(&b->mu);
    b->holder = PAWLI_BATON_FREE;
    cancel_before = b->cancel_before;
    /* Tasks are looked at under the mutex: who posts later finds the baton free and pokes. */
    if (!b->resting || next_ns < b->wakes_ns || pawli_loop_has_tasks(b->loop) ||
        !is_quiet(b, now_ns))
        pthread_cond_signal(&b->free);
    pthread_mutex_unlock(&b->mu);
    (void)pthread_setcancelstate(cancel_before, &cancel_before);
}
