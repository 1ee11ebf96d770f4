/* submit_section.c: the protected section: the work, then one transaction. It runs between the
 * grant and the release of the lock; every path out of it ends in submit_end.c. */
#include "submit.h"

#include "clock.h"
#include "log.h"

#include <stdio.h>

static void on_stored(struct store_job *job);

/* On the database's thread, right before the commit. */
static int still_mine(void *arg)
{
    return !submit_is_lost(arg);
}

static void ask_store(struct submit *s, enum store_verb verb)
{
    s->job.verb = verb;
    s->job.done = on_stored;
    s->job.arg = s;
    store_ask(s->app->store, &s->job);
}

static void store_order(struct submit *s)
{
    if (submit_is_lost(s)) {
        submit_refuse_lost(s);
        return;
    }
    submit_move(s, STORING);
    s->order.created_us = clock_wall_us();
    s->order.token = s->job.claim.token;
    snprintf(s->order.instance, sizeof s->order.instance, "%s", s->app->config.instance);
    s->job.order = s->order;
    if (s->app->config.unsafe) {
        s->job.quantity = s->believed_stock - s->order.quantity;
        ask_store(s, STORE_UNSAFE_WRITE);
        return;
    }
    if (s->outer != NULL) {
        snprintf(s->job.claim.resource, sizeof s->job.claim.resource, "%s", s->key);
        s->job.claim.owner = pawl_owner_text(s->owner);
        s->job.claim.still_mine = still_mine;
        s->job.claim.arg = s;
    }
    ask_store(s, STORE_SUBMIT);
}

/* The business work that --work-ms stands for: a timer, as everything that takes time must be. */
void submit_work(struct submit *s)
{
    int64_t ms = s->app->config.work_ms;
    struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

    submit_move(s, WORKING);
    if (ms == 0)
        store_order(s);
    else
        evtimer_add(s->timer, &tv);
}

void submit_on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    store_order(arg);
}

static void on_unsafe_read(struct submit *s)
{
    if (s->job.result == STORE_EDOWN) {
        submit_refuse(s, PROBLEM_DB_DOWN, s->job.why);
    } else if (s->job.result == STORE_OK) {
        s->order = s->job.order;
        submit_succeed(s, 1);
    } else if (s->job.result == STORE_NO_SKU) {
        submit_refuse(s, PROBLEM_SKU_UNKNOWN, NULL);
    } else if (s->job.quantity < s->order.quantity) {
        submit_refuse(s, PROBLEM_SOLD_OUT, NULL);
    } else {
        s->believed_stock = s->job.quantity;
        submit_work(s);
    }
}

static void on_stored(struct store_job *job)
{
    struct submit *s = job->arg;

    metrics_hist_add(&s->app->metrics.transaction, job->took_us);
    if (s->state == READING) {
        on_unsafe_read(s);
        return;
    }
    switch (job->result) {
    case STORE_OK:
        submit_succeed(s, 0);
        break;
    case STORE_DUPLICATE:
        s->order = job->order;
        submit_succeed(s, 1);
        break;
    case STORE_CONFLICT:
        submit_refuse(s, PROBLEM_CONFLICT, NULL);
        break;
    case STORE_SOLD_OUT:
        submit_refuse(s, PROBLEM_SOLD_OUT, NULL);
        break;
    case STORE_NO_SKU:
        submit_refuse(s, PROBLEM_SKU_UNKNOWN, NULL);
        break;
    case STORE_STALE:
        log_line(LOG_WARN, "stale order=%s owner=%s token=%lld refused by the database",
                 s->order.order_id, submit_owner(s), (long long)job->claim.token);
        submit_refuse(s, PROBLEM_STALE, NULL);
        break;
    case STORE_LOST:
        submit_refuse_lost(s);
        break;
    default:
        submit_refuse(s, PROBLEM_DB_DOWN, job->why);
        break;
    }
}

/* The demonstration begins with a read that nothing protects. */
void submit_read_unsafe(struct submit *s)
{
    submit_move(s, READING);
    s->job.order = s->order;
    ask_store(s, STORE_UNSAFE_READ);
}
