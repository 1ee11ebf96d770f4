/* Acquires on their way: drives core/wait.h against the store; see acquire.h.
 *
 * One operation lives until nothing of it can be left at the store: after its caller was answered
 * it goes on behind, until an attempt in flight is known and a grant for nobody is given back.
 * All requests of one hold id pass through here one after the other, so that a cancel never
 * overtakes its acquire on the way through NOSCRIPT and EVAL. */
#include "engine/acquire.h"

#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/validity.h"
#include "core/wait.h"
#include "engine/client.h"
#include "engine/hold.h"
#include "engine/lock.h"

struct pawli_acquire {
    struct pawli_call call;
    struct pawli_list link;    /* in the client's waits */
    struct pawli_wait wait;
    struct pawli_timer timer;
    struct pawli_request req;
    struct pawl_lock *lock;
    int64_t asked_ns;
    bool counted_wait;
};

static void apply(struct pawli_acquire *a, const struct pawli_wait_effects *fx);

static void step(struct pawli_acquire *a, enum pawli_wait_event_kind kind, int code,
                 int64_t pttl_ms)
{
    struct pawli_wait_event ev = { .kind = kind, .code = code, .pttl_ms = pttl_ms };
    struct pawli_wait_effects fx;

    ev.now_ns = pawli_loop_now_ns(a->call.client->loop);
    pawli_wait_step(&a->wait, &ev, &fx);
    apply(a, &fx);
}

static void timer_fired(struct pawli_timer *timer)
{
    step(PAWLI_CONTAINER(timer, struct pawli_acquire, timer), PAWLI_WAIT_TICK, 0, -1);
}

/* The reply of an attempt: the grant is taken only if it is not already over, which happens when
 * this process was paused between sending and reading. */
static void acquired(struct pawli_request *req)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(req, struct pawli_acquire, req);
    struct pawl_client *client = a->call.client;
    const struct pawli_answer *answer = &req->answer;
    int code = answer->code;

    pawli_client_answered(client);
    if (client->stopped)
        return; /* pawli_acquires_drop() ends it */
    if (code == 0 && pawli_valid_until_ns(req->sent_ns, req->lease_ms, answer->pttl_ms) <=
                         pawli_loop_now_ns(client->loop))
        code = PAWL_EUNKNOWN;
    if (code == PAWL_NOT_OWNER)
        code = PAWL_ELATE; /* our own tombstone: this id can never be granted any more */
    if (code == PAWL_BUSY && !a->counted_wait) {
        a->counted_wait = true;
        pawli_count(&client->stats.waits);
    }
    step(a, PAWLI_WAIT_REPLY, code, answer->pttl_ms);
}

static void canceled(struct pawli_request *req)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(req, struct pawli_acquire, req);

    pawli_client_answered(a->call.client);
    if (!a->call.client->stopped)
        step(a, PAWLI_WAIT_CLEANED, req->answer.code, -1);
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

static void complete(struct pawli_acquire *a, int result)
{
    struct pawl_client *client = a->call.client;
    struct pawl_lock *lock = NULL;

    if (result == 0) {
        struct pawli_grant grant = {
            .base_ns = a->req.sent_ns,
            .pttl_ms = a->req.answer.pttl_ms,
            .token = a->req.answer.token,
            .count = a->req.answer.count,
            .server_us = a->req.server_us,
        };

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

    pawli_loop_timer_clear(client->loop, &a->timer);
    pawli_loop_timer_unreserve(client->loop);
    pawli_list_remove(&a->link);
    pawli_client_settled(client);
    pawli_call_unref(&a->call);
}

static void apply(struct pawli_acquire *a, const struct pawli_wait_effects *fx)
{
    struct pawl_client *client = a->call.client;

    if (fx->send_acquire)
        send(a, PAWLI_OP_ACQUIRE, false);
    if (fx->send_cancel)
        send(a, PAWLI_OP_CANCEL, fx->tombstone);
    if (fx->complete)
        complete(a, fx->result);
    if (fx->finished) {
        finish(a);
        return;
    }
    if (fx->wake_ns == PAWLI_NEVER)
        pawli_loop_timer_clear(client->loop, &a->timer);
    else
        pawli_loop_timer_set(client->loop, &a->timer, fx->wake_ns);
    /* An attempt that still waits for a connection need not be sent for nobody. */
    if (fx->complete && a->wait.state == PAWLI_WAIT_ORPHANED &&
        client->backend->withdraw(client->node, &a->req)) {
        pawli_client_answered(client);
        step(a, PAWLI_WAIT_REPLY, PAWL_ECONNECT, -1);
    }
}

static void start(struct pawli_task *task)
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
static void cancel(struct pawli_task *task)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(task, struct pawli_acquire, call.cancel);

    if (!pawli_list_empty(&a->link))
        step(a, PAWLI_WAIT_CANCEL, PAWL_CANCELED, -1);
    pawli_call_unref(&a->call);
}

static void acquire_free(struct pawli_call *call)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(call, struct pawli_acquire, call);

    pawli_lock_unref(a->lock);
    free(a);
}

/* ---- from the client ---- */

void pawli_acquires_up(struct pawl_client *client)
{
    struct pawli_list *node = client->waits.next;

    while (node != &client->waits) {
        struct pawli_acquire *a = PAWLI_CONTAINER(node, struct pawli_acquire, link);

        node = node->next; /* a step may finish this one */
        step(a, PAWLI_WAIT_UP, 0, -1);
    }
}

void pawli_acquires_close(struct pawl_client *client)
{
    struct pawli_list *node = client->waits.next;

    while (node != &client->waits) {
        struct pawli_acquire *a = PAWLI_CONTAINER(node, struct pawli_acquire, link);

        node = node->next;
        step(a, PAWLI_WAIT_CANCEL, PAWL_ECLOSED, -1);
    }
}

void pawli_acquires_drop(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->waits)) {
        struct pawli_acquire *a = PAWLI_CONTAINER(client->waits.next, struct pawli_acquire, link);

        pawli_call_finish(&a->call, PAWL_ECLOSED, NULL, NULL, pawl_result_text(PAWL_ECLOSED));
        finish(a);
    }
}

/* ---- public ---- */

/* Check everything that can be checked without the store, and make the operation. */
static int prepare(struct pawl_client *client, const void *key, size_t key_len,
                   const struct pawl_lock_options *opts, enum pawli_call_kind kind,
                   struct pawli_acquire **ret_acquire)
{
    char detail[PAWLI_DETAIL_LEN] = "";
    struct pawl_lock_options all;
    struct pawli_lock_settings settings;
    struct pawli_key *lock_key = NULL;
    struct pawl_owner *owner = NULL;
    struct pawli_acquire *a = NULL;
    int rc;

    rc = pawli_lock_options_read(opts, &client->opts, detail, sizeof detail, &all, &settings);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    rc = pawli_key_new(client->opts.prefix, key, key_len, detail, sizeof detail, &lock_key);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    rc = pawli_owner_choose(all.owner, &owner);
    if (rc < 0)
        goto out;
    a = calloc(1, sizeof *a);
    rc = a == NULL ? pawli_fail(PAWL_ENOMEM, "no memory for a wait")
                   : pawli_lock_new(client, lock_key, owner, &all, &settings, &a->lock);
    if (rc < 0)
        goto out;
    rc = pawli_call_init(&a->call, client, kind, start, acquire_free);
    if (rc < 0) {
        pawli_lock_unref(a->lock);
        goto out;
    }
    a->call.cancel.run = cancel;
    a->timer.fire = timer_fired;
    pawli_list_init(&a->link);
    *ret_acquire = a;
    a = NULL;
    rc = 0;
out:
    free(a);
    pawl_owner_free(owner);
    pawli_key_unref(lock_key);
    return rc;
}

/* When the caller must have its answer, on BOOTTIME. A single try has no limit of its own: it
 * takes as long as the connection and the answer may take. */
static void begin(struct pawli_acquire *a)
{
    struct pawl_client *client = a->call.client;
    const struct pawli_lock_settings *settings = &a->lock->settings;
    struct pawli_backoff backoff;
    int64_t limit_ns;

    a->asked_ns = pawli_loop_now_ns(client->loop);
    if (settings->wait_ms == PAWL_FOREVER)
        limit_ns = PAWLI_NEVER;
    else if (settings->wait_ms == 0)
        limit_ns = a->asked_ns + pawli_client_patience_ns(client);
    else
        limit_ns = a->asked_ns + settings->wait_ms * PAWLI_NS_PER_MS;
    pawli_backoff_init(&backoff, client->opts.retry_min_ms, client->opts.retry_max_ms,
                       pawli_hash(PAWLI_HASH_START, a->lock->hold_id, PAWLI_ID_LEN) | 1);
    pawli_wait_init(&a->wait, settings->wait_ms == 0, limit_ns, settings->lease_ms, &backoff);
}

int pawl_lock_acquire(struct pawl_client *client, const void *key, size_t key_len,
                      const struct pawl_lock_options *opts, struct pawl_lock **ret_lock)
{
    struct pawli_acquire *a;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    if (ret_lock == NULL)
        return pawli_fail(PAWL_EUSAGE, "ret_lock is NULL");
    rc = prepare(client, key, key_len, opts, PAWLI_CALL_SYNC, &a);
    if (rc < 0)
        return rc;
    begin(a);
    return pawli_client_run(&a->call, a->wait.limit_ns, PAWL_EUNKNOWN, ret_lock, NULL);
}

int pawl_lock_acquire_async(struct pawl_client *client, const void *key, size_t key_len,
                            const struct pawl_lock_options *opts, pawl_acquire_cb cb, void *arg,
                            uint64_t *ret_id)
{
    struct pawli_acquire *a;
    uint64_t id;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    if (cb == NULL)
        return pawli_fail(PAWL_EUSAGE, "cb is NULL");
    rc = prepare(client, key, key_len, opts, PAWLI_CALL_ACQUIRE, &a);
    if (rc < 0)
        return rc;
    a->call.cb.acquire = cb;
    a->call.arg = arg;
    rc = pawli_call_number(&a->call, &id);
    if (rc < 0) {
        pawli_call_unref(&a->call);
        return pawli_fail(rc, "no memory for a wait");
    }
    if (ret_id != NULL)
        *ret_id = id;
    begin(a);
    pawli_client_post(client, &a->call.start);
    return 0;
}
