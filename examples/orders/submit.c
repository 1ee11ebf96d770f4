/* submit.c: the life of one submission: lock, inner lock, work, transaction, answer, release.
 *
 * One object and one state, moved on by completions on the loop; no thread waits for anything.
 *
 *   LOCKING ──► ENTERING ──► WORKING ──► STORING ──► LEAVING ──► freed
 *      │ busy, gone, down │ refused   │ lost      │
 *      └──────────────────┴───────────┴───────────┴─► answered with a problem on the way out
 *
 * Without a lock (no-lock, unsafe) it begins at WORKING or READING. What happens to the database is
 * the store's affair; what HTTP looks like is http.c's. */
#include "submit.h"

#include "clock.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse_acquire(struct submit *s, int result)
{
    enum problem problem = PROBLEM_LOCK_DOWN;

    if (result == PAWL_BUSY || result == PAWL_TIMEOUT)
        problem = PROBLEM_IN_PROGRESS;
    else if (result == PAWL_CANCELED)
        problem = s->client_gone ? PROBLEM_GONE : PROBLEM_STOPPING;
    else if (result == PAWL_ECLOSED)
        problem = PROBLEM_STOPPING;
    else if (result == PAWL_EQUEUEFULL)
        problem = PROBLEM_QUEUE_FULL;
    else if (pawl_result_class(result) == PAWL_CLASS_USAGE && result != PAWL_EWRONGTYPE)
        problem = PROBLEM_INTERNAL;
    if (result < 0)
        log_line(LOG_WARN, "acquire order=%s owner=%s result=%s detail=%s", s->order.order_id,
                 submit_owner(s), pawl_result_name(result), pawl_error_detail());
    submit_refuse(s, problem, result < 0 ? pawl_result_text(result) : NULL);
}

static int ask_lock(struct submit *s, pawl_acquire_cb cb)
{
    const struct config *config = &s->app->config;
    struct pawl_lock_options options = PAWL_LOCK_OPTIONS_INIT;

    options.owner = s->owner;
    options.lease_ms = config->lease_ms;
    options.wait_ms = config->wait_ms;
    options.max_hold_ms = config->max_hold_ms;
    options.grace_ms = config->grace_ms;
    if (s->outer == NULL) { /* the outer hold's notices are enough */
        options.on_event = submit_on_event;
        options.on_event_arg = s;
    }
    return pawl_lock_acquire_async(s->app->pawl, s->key, strlen(s->key), &options, cb, s,
                                   &s->acquire_id);
}

static void on_inner(void *arg, int result, struct pawl_lock *lock)
{
    struct submit *s = arg;

    s->inner = lock;
    if (submit_is_lost(s))
        submit_refuse_lost(s);
    else if (result == 0)
        submit_work(s);
    else if (result > 0)
        submit_refuse(s, PROBLEM_LOCK_LOST, pawl_result_text(result)); /* somebody else has it */
    else
        refuse_acquire(s, result);
}

/* A function that protects itself, called by one that already has: it takes the lock of the order
 * again, with the owner that was passed down to it, and gets it at once. */
static void section_inner(struct submit *s)
{
    int rc;

    submit_move(s, ENTERING);
    rc = ask_lock(s, on_inner);
    if (rc != 0)
        refuse_acquire(s, rc);
}

static void enter(struct submit *s)
{
    s->granted_us = clock_run_us();
    s->is_held = 1;
    s->app->n_waiting--;
    s->app->n_held++;
    metrics_hist_add(&s->app->metrics.wait, s->granted_us - s->asked_us);
    log_line(LOG_INFO, "enter order=%s user=%s owner=%s token=%lld request=%s waited_ms=%lld",
             s->order.order_id, s->order.user_id, submit_owner(s), (long long)s->job.claim.token,
             s->web->request_id, (long long)((s->granted_us - s->asked_us) / 1000));
}

static void on_outer(void *arg, int result, struct pawl_lock *lock)
{
    struct submit *s = arg;

    if (result != 0) {
        refuse_acquire(s, result);
        return;
    }
    s->outer = lock;
    s->job.claim.token = (int64_t)pawl_lock_token(lock);
    enter(s);
    section_inner(s);
}

/* A client that goes away before its turn gives up its place; after its grant the order is
 * finished: stopping half way would be worse than an order that nobody waited for. */
static void on_hangup(void *arg)
{
    struct submit *s = arg;

    log_line(LOG_INFO, "hangup order=%s owner=%s state=%s", s->order.order_id, submit_owner(s),
             submit_state_name(s));
    if (s->state != LOCKING) {
        s->app->metrics.hangups_held++;
        return;
    }
    s->app->metrics.hangups_waiting++;
    s->client_gone = 1;
    pawl_cancel(s->app->pawl, s->acquire_id);
}

void submit_stop_waiting(struct app *app)
{
    struct submit *s;

    /* Completions come later, by dispatch: the list does not change under this loop. */
    for (s = app->submits; s != NULL; s = s->next)
        if (s->state == LOCKING)
            pawl_cancel(app->pawl, s->acquire_id);
}

/* For people who look at the lock: who it is for and which request, cut to what fits. The owner
 * itself is random: a client's retry is another request and must not re-enter. */
static void put_label(char *label, size_t size, const char *user_id, const char *request_id)
{
    size_t len = strlen(user_id), rest = strlen(request_id);

    if (rest > size - len - 2)
        rest = size - len - 2;
    memcpy(label, user_id, len);
    label[len] = '/';
    memcpy(label + len + 1, request_id, rest);
    label[len + 1 + rest] = '\0';
}

static struct submit *submit_new(struct app *app, struct web *web, const struct order *order)
{
    char label[PAWL_LABEL_MAX + 1];
    struct submit *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->timer = evtimer_new(app->base, submit_on_timer, s);
    put_label(label, sizeof label, order->user_id, web->request_id);
    if (s->timer == NULL || pawl_owner_new(label, &s->owner) != 0) {
        if (s->timer != NULL)
            event_free(s->timer);
        free(s);
        return NULL;
    }
    s->app = app;
    s->web = web;
    s->order = *order;
    s->asked_us = clock_run_us();
    s->loss_mail.run = submit_on_loss;
    snprintf(s->key, sizeof s->key, "order:%s", order->order_id);
    s->next = app->submits;
    if (s->next != NULL)
        s->next->prev = s;
    app->submits = s;
    app->n_submits++;
    app->n_waiting++;
    return s;
}

void submit_begin(struct app *app, struct web *web)
{
    struct order_fault fault = { .rule = NULL };
    struct problem_extra extra = { 0 };
    struct order order;
    struct submit *s;
    int rc;

    if (order_parse(web->body, web->body_len, &order, &fault) < 0) {
        extra.field = fault.field[0] == '\0' ? NULL : fault.field;
        extra.detail = fault.rule;
        app->metrics.outcome[fault.problem]++;
        http_reply_problem(web, fault.problem, &extra);
        return;
    }
    s = app->stopping ? NULL : submit_new(app, web, &order);
    if (s == NULL) {
        http_reply_problem(web, app->stopping ? PROBLEM_STOPPING : PROBLEM_OVERLOADED, NULL);
        return;
    }
    http_watch_hangup(web, on_hangup, s);
    if (app->config.unsafe) {
        enter(s);
        submit_read_unsafe(s);
    } else if (app->config.no_lock) {
        enter(s);
        submit_work(s);
    } else {
        rc = ask_lock(s, on_outer);
        if (rc != 0)
            refuse_acquire(s, rc);
    }
}
