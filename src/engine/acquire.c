/* Acquires on their way: drives core/wait.h against the store; see acquire.h.
 *
 * One operation lives until nothing of it can be left at the store: after its caller was answered
 * it goes on behind, until an attempt in flight is known and a grant for nobody is given back.
 * All requests of one hold id pass through here one after the other, so that a cancel never
 * overtakes its acquire on the way through NOSCRIPT and EVAL. */
#include "engine/acquire.h"

#include <string.h>

#include "core/validity.h"
#include "engine/client.h"
#include "engine/hold.h"
#include "engine/line.h"
#include "engine/lock.h"
#include "engine/release.h"

#define REJOIN_NS (100 * PAWLI_NS_PER_MS)

static void step(struct pawli_acquire *a, enum pawli_wait_event_kind kind, int code,
                 int64_t pttl_ms)
{
    struct pawli_wait_event ev = { .kind = kind, .code = code, .pttl_ms = pttl_ms };

    pawli_acquire_step(a, &ev);
}

void pawli_acquire_fired(struct pawli_timer *timer)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(timer, struct pawli_acquire, timer);

    struct pawl_client *client = a->call.client;

    if (a->line != NULL)
        pawli_line_news(a);
    /* At the limit an attempt that still waits for a connection is none. */
    if (a->wait.state == PAWLI_WAIT_TRYING &&
        pawli_loop_now_ns(client->loop) >= a->wait.limit_ns &&
        client->backend->withdraw(client->node, &a->req)) {
        pawli_client_answered(client);
        step(a, PAWLI_WAIT_REPLY, PAWL_ECONNECT, -1);
    } else {
        step(a, PAWLI_WAIT_TICK, 0, -1);
    }
}

/* The reply of an attempt: the grant is taken only if it is not already over, which happens when
 * this process was paused between sending and reading, or the machine frozen. */
static void acquired(struct pawli_request *req)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(req, struct pawli_acquire, req);
    struct pawl_client *client = a->call.client;
    const struct pawli_answer answer = req->answer;
    bool before_inbox = a->before_inbox; /* a step may send again */
    int code = answer.code;

    pawli_client_answered(client);
    if (client->stopped)
        return; /* pawli_acquires_drop() ends it */
    if (code == 0 && pawli_valid_until_ns(req->sent_ns, req->lease_ms, answer.pttl_ms) <=
                         pawli_loop_now_ns(client->loop) +
                             pawli_clocks_jump_ns(client, req->sent_ns, req->lease_ms))
        code = PAWL_EUNKNOWN;
    if (code == PAWL_NOT_OWNER)
        code = PAWL_ELATE; /* our own tombstone: this id can never be granted any more */
    if ((code == PAWL_BUSY || code == PAWLI_QUEUED) && !a->counted_wait) {
        a->counted_wait = true;
        pawli_count(&client->stats.waits);
    }
    if (code == PAWL_BUSY && !a->wait.once)
        (void)client->backend->inbox(client->node); /* so that the next attempt can queue */
    if (code == PAWLI_QUEUED)
        a->ticket = answer.ticket;
    pawli_line_passed_on(client, &answer, req->sent_ns);
    pawli_call_ref(&a->call); /* the step may finish it */
    step(a, PAWLI_WAIT_REPLY, code, answer.pttl_ms);
    /* The inbox came while this attempt was on its way without one: queue now, and not after a
     * pause of its own length, in which later callers would pass. */
    if (code == PAWL_BUSY && before_inbox && client->inbox_up && !pawli_list_empty(&a->link))
        step(a, PAWLI_WAIT_INBOX, 0, -1);
    pawli_call_unref(&a->call);
}

static void canceled(struct pawli_request *req)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(req, struct pawli_acquire, req);
    struct pawl_client *client = a->call.client;
    const struct pawli_answer answer = req->answer;

    pawli_client_answered(client);
    if (client->stopped)
        return;
    pawli_line_passed_on(client, &answer, req->sent_ns);
    step(a, PAWLI_WAIT_CLEANED, answer.code, -1);
}

/* For how long the store may keep this grant: the maximum hold, the grace after it, and the margin
 * that is taken off on this side. With less a hold would end as expired, and never be told that its
 * maximum is reached. */
static int64_t span_ms(const struct pawli_lock_settings *settings)
{
    int64_t extra_ns;

    if (settings->max_hold_ms == PAWL_UNLIMITED)
        return 0;
    extra_ns = pawli_grace_ns(settings->grace_ms, settings->lease_ms) +
               pawli_margin_ns(settings->lease_ms);
    return settings->max_hold_ms + (extra_ns + PAWLI_NS_PER_MS - 1) / PAWLI_NS_PER_MS;
}

static void send(struct pawli_acquire *a, enum pawli_op op, bool tombstone)
{
    struct pawl_client *client = a->call.client;
    const struct pawl_lock *lock = a->lock;
    struct pawli_request *req = &a->req;

    memset(req, 0, sizeof *req);
    req->op = op;
    req->key = lock->key;
    req->owner = lock->owner->text;
    req->hold_id = lock->hold_id;
    req->who = client->who;
    req->lease_ms = lock->settings.lease_ms;
    req->span_ms = span_ms(&lock->settings);
    req->floor = pawli_fence_floor(&client->fence, lock->key->slot);
    req->tombstone = tombstone;
    if (op == PAWLI_OP_ACQUIRE && (lock->settings.flags & PAWL_BARGING) != 0)
        req->flags = PAWLI_BARGE;
    a->before_inbox = !client->inbox_up;
    if (op == PAWLI_OP_ACQUIRE && !a->wait.once)
        pawli_line_prepare(a);
    if (op == PAWLI_OP_CANCEL) {
        req->inbox = client->inbox;
        req->entry = a->entry;
        req->entry_len = a->entry_len;
    }
    req->done = op == PAWLI_OP_ACQUIRE ? acquired : canceled;
    pawli_client_submit(client, req);
}

static void count(struct pawli_acquire *a, int result)
{
    struct pawli_stats *stats = &a->call.client->stats;
    int64_t now_ns = pawli_loop_now_ns(a->call.client->loop);

    pawli_uncount(&stats->waiting);
    if (result == 0) {
        pawli_count(&stats->acquires);
        if (!a->lock->outermost)
            pawli_count(&stats->reentries);
        pawli_hist_add(&stats->wait_ms, now_ns - a->asked_ns);
    } else if (result == PAWL_CANCELED) {
        pawli_count(&stats->canceled);
    } else if (result > 0) {
        pawli_count(&stats->busy);
    } else {
        pawli_count(&stats->failed);
    }
}

/* What the grant says: the reply to an attempt, or what the queue told. */
static struct pawli_grant grant_of(const struct pawli_acquire *a,
                                   const struct pawli_wait_effects *fx)
{
    if (fx->base_ns > 0)
        return (struct pawli_grant){ .base_ns = fx->base_ns,
                                     .pttl_ms = fx->pttl_ms,
                                     .token = a->granted_token,
                                     .count = 1,
                                     .claim = fx->claim };
    return (struct pawli_grant){ .base_ns = a->req.sent_ns,
                                 .pttl_ms = a->req.answer.pttl_ms,
                                 .token = a->req.answer.token,
                                 .count = a->req.answer.count };
}

static void complete(struct pawli_acquire *a, const struct pawli_wait_effects *fx)
{
    struct pawl_client *client = a->call.client;
    struct pawl_lock *lock = NULL;
    int result = fx->result;

    if (result == 0) {
        struct pawli_grant grant = grant_of(a, fx);

        a->lock->tombstone = a->wait.maybe_granted;
        result = pawli_hold_granted(a->lock, &grant);
        if (result == 0)
            lock = pawli_lock_ref(a->lock);
        else
            pawli_hold_give_back(a->lock);
    }
    count(a, result);
    pawli_call_finish(&a->call, result, lock, NULL,
                      result < 0 ? pawli_client_detail(client) : NULL);
}

static void finish(struct pawli_acquire *a)
{
    struct pawl_client *client = a->call.client;

    pawli_line_leave(a);
    pawli_line_unlist(a);
    pawli_loop_timer_clear(client->loop, &a->timer);
    pawli_loop_timer_unreserve(client->loop);
    pawli_list_remove(&a->link);
    pawli_client_settled(client);
    pawli_call_unref(&a->call);
}

/* A new hold id for the next attempt. */
static int renew_id(struct pawli_acquire *a, bool bury)
{
    if (bury) {
        pawli_release_bury(a->lock, a->entry, a->entry_len);
        a->entry = NULL;
    }
    pawli_line_unlist(a);
    return pawli_random_id(a->lock->hold_id);
}

/* Without memory for a line nobody asks for @a, and the store takes it for dead: join again
 * soon. */
static int64_t wake_at(const struct pawli_acquire *a, int64_t wake_ns)
{
    int64_t soon_ns;

    if (a->wait.state != PAWLI_WAIT_QUEUED || a->line != NULL)
        return wake_ns;
    soon_ns = pawli_loop_now_ns(a->call.client->loop) + REJOIN_NS;
    return soon_ns < wake_ns ? soon_ns : wake_ns;
}

static void apply(struct pawli_acquire *a, const struct pawli_wait_effects *fx)
{
    struct pawl_client *client = a->call.client;
    int64_t wake_ns;

    if (a->wait.state == PAWLI_WAIT_QUEUED)
        pawli_line_join(a);
    else
        pawli_line_leave(a);
    if (fx->new_id && renew_id(a, fx->bury) < 0) {
        a->wait.state = PAWLI_WAIT_SLEEPING;
        step(a, PAWLI_WAIT_CANCEL, PAWL_ESYSTEM, -1);
        return;
    }
    if (fx->send_acquire)
        send(a, PAWLI_OP_ACQUIRE, false);
    if (fx->check_now)
        pawli_line_check(a);
    if (fx->send_cancel)
        send(a, PAWLI_OP_CANCEL, fx->tombstone);
    if (fx->complete)
        complete(a, fx);
    if (fx->finished) {
        finish(a);
        return;
    }
    wake_ns = wake_at(a, fx->wake_ns);
    if (wake_ns == PAWLI_NEVER)
        pawli_loop_timer_clear(client->loop, &a->timer);
    else
        pawli_loop_timer_set(client->loop, &a->timer, wake_ns);
    /* An attempt that still waits for a connection need not be sent for nobody. */
    if (fx->complete && a->wait.state == PAWLI_WAIT_ORPHANED &&
        client->backend->withdraw(client->node, &a->req)) {
        pawli_client_answered(client);
        step(a, PAWLI_WAIT_REPLY, PAWL_ECONNECT, -1);
    }
}

void pawli_acquire_step(struct pawli_acquire *a, struct pawli_wait_event *ev)
{
    struct pawli_wait_effects fx;

    ev->now_ns = pawli_loop_now_ns(a->call.client->loop);
    pawli_wait_step(&a->wait, ev, &fx);
    apply(a, &fx);
}

void pawli_acquire_start(struct pawli_task *task)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(task, struct pawli_acquire, call.start);
    struct pawl_client *client = a->call.client;
    int rc = client->stopped ? PAWL_ECLOSED : pawli_loop_timer_reserve(client->loop);

    if (rc < 0) {
        pawli_call_finish(&a->call, rc, NULL, NULL, pawl_result_text(rc));
        pawli_call_unref(&a->call);
        return;
    }
    pawli_count(&client->stats.waiting);
    pawli_list_append(&client->waits, &a->link);
    step(a, PAWLI_WAIT_START, 0, -1);
}

/* The caller is gone. If the grant came first it went to nobody: pawli_call_finish() saw to it. */
void pawli_acquire_cancel(struct pawli_task *task)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(task, struct pawli_acquire, call.cancel);

    if (!pawli_list_empty(&a->link))
        step(a, PAWLI_WAIT_CANCEL, PAWL_CANCELED, -1);
    pawli_call_unref(&a->call);
}

/* ---- from the client ---- */

static void step_all(struct pawl_client *client, enum pawli_wait_event_kind kind, int code)
{
    struct pawli_list *node = client->waits.next;

    while (node != &client->waits) {
        struct pawli_acquire *a = PAWLI_CONTAINER(node, struct pawli_acquire, link);

        node = node->next; /* a step may finish this one */
        step(a, kind, code, -1);
    }
}

void pawli_acquires_up(struct pawl_client *client)
{
    step_all(client, PAWLI_WAIT_UP, 0);
}

void pawli_acquires_inbox(struct pawl_client *client)
{
    step_all(client, PAWLI_WAIT_INBOX, 0);
}

void pawli_acquires_close(struct pawl_client *client)
{
    step_all(client, PAWLI_WAIT_CANCEL, PAWL_ECLOSED);
}

void pawli_acquires_drop(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->waits)) {
        struct pawli_acquire *a = PAWLI_CONTAINER(client->waits.next, struct pawli_acquire, link);

        pawli_call_finish(&a->call, PAWL_ECLOSED, NULL, NULL, pawl_result_text(PAWL_ECLOSED));
        finish(a);
    }
}
