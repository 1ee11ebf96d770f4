/* submit_end.c: how a submission ends: the answer, the leave line, the release; and what happens
 * when its lock is lost on the way. Touches no database. */
#include "submit.h"

#include "clock.h"
#include "log.h"

#include <assert.h>
#include <stdlib.h>

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

void submit_move(struct submit *s, enum submit_state next)
{
    assert((states[s->state].next & TO(next)) != 0);
    log_line(LOG_DEBUG, "state order=%s %s -> %s", s->order.order_id, submit_state_name(s),
             states[next].name);
    s->state = next;
}

const char *submit_state_name(const struct submit *s)
{
    return states[s->state].name;
}

const char *submit_owner(const struct submit *s)
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
        log_line(LOG_WARN, "release order=%s owner=%s result=%s", s->order.order_id,
                 submit_owner(s), pawl_result_name(result));
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
             s->order.order_id, s->order.user_id, submit_owner(s), (long long)s->job.claim.token,
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
    submit_move(s, LEAVING);
    if (s->is_held)
        log_leave(s, outcome);
}

void submit_refuse(struct submit *s, enum problem problem, const char *detail)
{
    struct problem_extra extra = { .detail = detail, .order_id = s->order.order_id };
    struct web *web = s->web;

    leave(s, problem_info(problem)->code);
    s->app->metrics.outcome[problem]++;
    s->web = NULL;
    http_reply_problem(web, problem, &extra);
    release(s);
}

void submit_succeed(struct submit *s, int duplicate)
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

int submit_is_lost(struct submit *s)
{
    int check;

    if (s->outer == NULL || s->app->config.ignore_loss)
        return 0;
    check = pawl_lock_check(s->outer);
    /* UNSURE is no loss: the database's check of the token decides. */
    return check != 0 && check != PAWL_UNSURE;
}

void submit_refuse_lost(struct submit *s)
{
    int check = pawl_lock_check(s->outer);
    int loss = atomic_load(&s->loss);

    if (check == PAWL_EXPIRING || check == PAWL_LOST_MAX_HOLD || loss == PAWL_EXPIRING ||
        loss == PAWL_LOST_MAX_HOLD)
        submit_refuse(s, PROBLEM_MAX_HOLD, NULL);
    else
        submit_refuse(s, PROBLEM_LOCK_LOST, pawl_result_text(loss != 0 ? loss : check));
}

/* On the loop, after the callback thread's notice. */
void submit_on_loss(struct mail *mail)
{
    struct submit *s =
        (struct submit *)(void *)((char *)mail - offsetof(struct submit, loss_mail));
    int loss = atomic_load(&s->loss);

    log_line(LOG_WARN, "lock order=%s owner=%s state=%s result=%s", s->order.order_id,
             submit_owner(s), submit_state_name(s), pawl_result_name(loss));
    if (s->app->config.ignore_loss)
        return;
    if (s->state == ENTERING) {
        pawl_cancel(s->app->pawl, s->acquire_id); /* its completion finds the loss */
    } else if (s->state == WORKING) {
        evtimer_del(s->timer);
        submit_refuse_lost(s);
    } /* STORING: the worker looks before it commits */
}

/* On pawl's callback thread: leave a note and nothing else. */
void submit_on_event(void *arg, struct pawl_lock *lock, enum pawl_event event, int result)
{
    struct submit *s = arg;

    (void)lock;
    if (event != PAWL_EVENT_EXPIRING && event != PAWL_EVENT_LOST)
        return;
    atomic_store(&s->loss, result);
    mailbox_post(s->app->mailbox, &s->loss_mail);
}
