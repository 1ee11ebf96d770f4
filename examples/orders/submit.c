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
#include "app.h"

#include "clock.h"
#include "log.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { LOCKING, ENTERING, READING, WORKING, STORING, LEAVING, N_STATES };

#define TO(state) (1u << (state))
static const struct {
    const char *name;
    unsigned next;
} states[N_STATES] = {
    [LOCKING] = { "locking", TO(ENTERING) | TO(READING) | TO(WORKING) | TO(LEAVING) },
    [ENTERING] = { "entering", TO(WORKING) | TO(LEAVING) },
    [READING] = { "reading", TO(WORKING) | TO(LEAVING) },
    [WORKING] = { "working", TO(STORING) | TO(LEAVING) },
    [STORING] = { "storing", TO(LEAVING) },
    [LEAVING] = { "leaving", 0 },
};

struct submit {
    struct app *app;
    struct submit *next, *prev;
    struct web *web; /* NULL once answered */
    enum state state;
    struct order order;
    int64_t believed_stock; /* unsafe only */
    char key[ORDER_ID_MAX + 16];
    struct pawl_owner *owner;
    struct pawl_lock *outer, *inner;
    uint64_t acquire_id;
    int is_held;
    int client_gone;
    int64_t asked_us, granted_us;
    struct event *timer;
    struct store_job job;
    /* Written by pawl's callback thread: */
    atomic_int loss;
    struct mail loss_mail;
    int n_releases;
};

static void on_timer(evutil_socket_t fd, short what, void *arg);
static void on_stored(struct store_job *job);

static void move_to(struct submit *s, enum state next)
{
    assert((states[s->state].next & TO(next)) != 0);
    log_line(LOG_DEBUG, "state order=%s %s -> %s", s->order.order_id, states[s->state].name,
             states[next].name);
    s->state = next;
}

static const char *owner_text(const struct submit *s)
{
    return s->owner == NULL ? "-" : pawl_owner_text(s->owner);
}

/* ---- the end: answer, release, free ---- */

static void submit_free(struct submit *s)
{
    struct app *app = s->app;

    /* After these no callback of the locks runs any more, so the mail can't come back. */
    pawl_lock_free(s->inner);
    pawl_lock_free(s->outer);
    mailbox_cancel(app->mailbox, &s->loss_mail);
    pawl_owner_free(s->owner);
    if (s->timer != NULL)
        event_free(s->timer);
    if (s->next != NULL)
        s->next->prev = s->prev;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        app->submits = s->next;
    app->n_submits--;
    free(s);
}

static void on_released(void *arg, int result)
{
    struct submit *s = arg;

    if (result < 0)
        log_line(LOG_WARN, "release order=%s owner=%s result=%s", s->order.order_id, owner_text(s),
                 pawl_result_name(result));
    if (--s->n_releases == 0)
        submit_free(s);
}

/* Inner first, then outer. Both are asked at once: the client keeps their order, and the next in
 * line need not wait for a round trip more. */
static void release(struct submit *s)
{
    s->n_releases = 1;
    if (s->inner != NULL && pawl_lock_release_async(s->inner, on_released, s) == 0)
        s->n_releases++;
    if (s->outer != NULL && pawl_lock_release_async(s->outer, on_released, s) == 0)
        s->n_releases++;
    if (--s->n_releases == 0)
        submit_free(s);
}

static void log_leave(struct submit *s, const char *outcome)
{
    int64_t held_us = clock_run_us() - s->granted_us;

    log_line(LOG_INFO, "leave order=%s user=%s owner=%s token=%lld held_ms=%lld.%03lld outcome=%s",
             s->order.order_id, s->order.user_id, owner_text(s), (long long)s->job.claim.token,
             (long long)(held_us / 1000), (long long)(held_us % 1000), outcome);
    metrics_hist_add(&s->app->metrics.hold, held_us);
    if (held_us > s->app->config.expected_hold_ms * 1000)
        s->app->metrics.holds_past_expected++;
    s->app->n_held--;
    s->is_held = 0;
}

/* The leave line stands before the release: in the logs, side by side, sections do not overlap. */
static void leave(struct submit *s, const char *outcome)
{
    if (s->state == LOCKING)
        s->app->n_waiting--;
    move_to(s, LEAVING);
    if (s->is_held)
        log_leave(s, outcome);
}

static void refuse(struct submit *s, enum problem problem, const char *detail)
{
    struct problem_extra extra = { .detail = detail, .order_id = s->order.order_id };
    struct web *web = s->web;

    leave(s, problem_info(problem)->code);
    s->app->metrics.outcome[problem]++;
    s->web = NULL;
    http_reply_problem(web, problem, &extra);
    release(s);
}

static void succeed(struct submit *s, int duplicate)
{
    struct web *web = s->web;

    leave(s, duplicate ? "duplicate" : "made");
    if (duplicate)
        s->app->metrics.repeated++;
    else
        s->app->metrics.made++;
    s->web = NULL;
    http_reply_json(web, 200,
                    order_print_done(&s->order, web->lang, duplicate, s->app->config.instance,
                                     web->request_id));
    release(s);
}

/* ---- losing the lock on the way ---- */

static int is_lost_now(struct submit *s)
{
    int check;

    if (s->outer == NULL || s->app->config.ignore_loss)
        return 0;
    check = pawl_lock_check(s->outer);
    /* UNSURE is no loss: the database's check of the token decides. */
    return check != 0 && check != PAWL_UNSURE;
}

static void refuse_lost(struct submit *s)
{
    int check = pawl_lock_check(s->outer);
    int loss = atomic_load(&s->loss);

    if (check == PAWL_EXPIRING || check == PAWL_LOST_MAX_HOLD || loss == PAWL_EXPIRING ||
        loss == PAWL_LOST_MAX_HOLD)
        refuse(s, PROBLEM_MAX_HOLD, NULL);
    else
        refuse(s, PROBLEM_LOCK_LOST, pawl_result_text(loss != 0 ? loss : check));
}

/* On the loop, after the callback thread's notice. */
static void on_loss(struct mail *mail)
{
    struct submit *s =
        (struct submit *)(void *)((char *)mail - offsetof(struct submit, loss_mail));
    int loss = atomic_load(&s->loss);

    log_line(LOG_WARN, "lock order=%s owner=%s state=%s result=%s", s->order.order_id,
             owner_text(s), states[s->state].name, pawl_result_name(loss));
    if (s->app->config.ignore_loss)
        return;
    if (s->state == ENTERING) {
        pawl_cancel(s->app->pawl, s->acquire_id); /* its completion finds the loss */
    } else if (s->state == WORKING) {
        evtimer_del(s->timer);
        refuse_lost(s);
    } /* STORING: the worker looks before it commits */
}

/* On pawl's callback thread: leave a note and nothing else. */
static void on_event(void *arg, struct pawl_lock *lock, enum pawl_event event, int result)
{
    struct submit *s = arg;

    (void)lock;
    if (event != PAWL_EVENT_EXPIRING && event != PAWL_EVENT_LOST)
        return;
    atomic_store(&s->loss, result);
    mailbox_post(s->app->mailbox, &s->loss_mail);
}

/* On the database's thread, right before the commit. */
static int still_mine(void *arg)
{
    return !is_lost_now(arg);
}

/* ---- the protected section ---- */

static void ask_store(struct submit *s, enum store_verb verb)
{
    s->job.verb = verb;
    s->job.done = on_stored;
    s->job.arg = s;
    store_ask(s->app->store, &s->job);
}

static void store_order(struct submit *s)
{
    if (is_lost_now(s)) {
        refuse_lost(s);
        return;
    }
    move_to(s, STORING);
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
static void work(struct submit *s)
{
    int64_t ms = s->app->config.work_ms;
    struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

    move_to(s, WORKING);
    if (ms == 0)
        store_order(s);
    else
        evtimer_add(s->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    store_order(arg);
}

static void on_unsafe_read(struct submit *s)
{
    if (s->job.result == STORE_EDOWN) {
        refuse(s, PROBLEM_DB_DOWN, s->job.why);
    } else if (s->job.result == STORE_OK) {
        s->order = s->job.order;
        succeed(s, 1);
    } else if (s->job.result == STORE_NO_SKU) {
        refuse(s, PROBLEM_SKU_UNKNOWN, NULL);
    } else if (s->job.quantity < s->order.quantity) {
        refuse(s, PROBLEM_SOLD_OUT, NULL);
    } else {
        s->believed_stock = s->job.quantity;
        work(s);
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
        succeed(s, 0);
        break;
    case STORE_DUPLICATE:
        s->order = job->order;
        succeed(s, 1);
        break;
    case STORE_CONFLICT:
        refuse(s, PROBLEM_CONFLICT, NULL);
        break;
    case STORE_SOLD_OUT:
        refuse(s, PROBLEM_SOLD_OUT, NULL);
        break;
    case STORE_NO_SKU:
        refuse(s, PROBLEM_SKU_UNKNOWN, NULL);
        break;
    case STORE_STALE:
        log_line(LOG_WARN, "stale order=%s owner=%s token=%lld refused by the database",
                 s->order.order_id, owner_text(s), (long long)job->claim.token);
        refuse(s, PROBLEM_STALE, NULL);
        break;
    case STORE_LOST:
        refuse_lost(s);
        break;
    default:
        refuse(s, PROBLEM_DB_DOWN, job->why);
        break;
    }
}

/* ---- taking the lock ---- */

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
                 owner_text(s), pawl_result_name(result), pawl_error_detail());
    refuse(s, problem, result < 0 ? pawl_result_text(result) : NULL);
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
        options.on_event = on_event;
        options.on_event_arg = s;
    }
    return pawl_lock_acquire_async(s->app->pawl, s->key, strlen(s->key), &options, cb, s,
                                   &s->acquire_id);
}

static void on_inner(void *arg, int result, struct pawl_lock *lock)
{
    struct submit *s = arg;

    s->inner = lock;
    if (is_lost_now(s))
        refuse_lost(s);
    else if (result == 0)
        work(s);
    else if (result > 0)
        refuse(s, PROBLEM_LOCK_LOST, pawl_result_text(result)); /* somebody else has it */
    else
        refuse_acquire(s, result);
}

/* A function that protects itself, called by one that already has: it takes the lock of the order
 * again, with the owner that was passed down to it, and gets it at once. */
static void section_inner(struct submit *s)
{
    int rc;

    move_to(s, ENTERING);
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
             s->order.order_id, s->order.user_id, owner_text(s), (long long)s->job.claim.token,
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

    log_line(LOG_INFO, "hangup order=%s owner=%s state=%s", s->order.order_id, owner_text(s),
             states[s->state].name);
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
    s->timer = evtimer_new(app->base, on_timer, s);
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
    s->loss_mail.run = on_loss;
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
        move_to(s, READING);
        s->job.order = s->order;
        ask_store(s, STORE_UNSAFE_READ);
    } else if (app->config.no_lock) {
        enter(s);
        work(s);
    } else {
        rc = ask_lock(s, on_outer);
        if (rc != 0)
            refuse_acquire(s, rc);
    }
}
