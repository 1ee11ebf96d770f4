/* Releases on their way; see release.h.
 *
 * The caller gets its answer after release_ms at the latest. The release itself is repeated with
 * backoff until the store has answered or the lease is over; the hold id makes it safe to repeat,
 * and "not held" after a try that was not answered means that this one did it. */
#include "engine/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backoff.h"
#include "core/validity.h"
#include "engine/client.h"
#include "engine/fork.h"
#include "engine/hold.h"
#include "engine/line.h"
#include "engine/lock.h"
#include "util/printable.h"

struct pawli_release {
    struct pawli_call call;
    struct pawli_list link; /* in the client's releases */
    struct pawli_timer timer;
    struct pawli_request req;
    struct pawli_backoff backoff;
    enum pawli_op op;        /* RELEASE or CANCEL */
    struct pawli_key *key;
    struct pawl_owner *owner;
    char hold_id[PAWLI_ID_LEN + 1];
    bool tombstone;
    char *entry;             /* what may stand in the queue under this id; NULL: nothing */
    size_t entry_len;
    struct pawl_lock *lock;  /* NULL: no handle of a user */
    struct pawli_held *held; /* NULL: never a hold */
    int64_t answer_by_ns;    /* the caller's patience; PAWLI_NEVER once answered */
    int64_t next_ns;         /* next try; PAWLI_NEVER: one is in flight */
    int64_t give_up_ns;      /* the lease is over by then */
    bool maybe_done;         /* a try was not answered: it may have been executed */
    int last_failure;
};

static void released(struct pawli_request *req);

struct pawli_release *pawli_release_new(void)
{
    return calloc(1, sizeof(struct pawli_release));
}

void pawli_release_free(struct pawli_release *release)
{
    free(release);
}

static void call_free(struct pawli_call *call)
{
    struct pawli_release *r = PAWLI_CONTAINER(call, struct pawli_release, call);

    pawli_key_unref(r->key);
    pawl_owner_free(r->owner);
    pawli_held_unref(r->held);
    pawli_lock_unref(r->lock);
    free(r->entry);
    free(r);
}

static void arm(struct pawli_release *r)
{
    int64_t at_ns = r->answer_by_ns;

    /* A request in flight ends by itself: the store answers or the connection is given up. */
    if (r->next_ns < at_ns)
        at_ns = r->next_ns;
    pawli_loop_timer_set(r->call.client->loop, &r->timer, at_ns);
}

static void send(struct pawli_release *r)
{
    struct pawl_client *client = r->call.client;
    struct pawli_request *req = &r->req;

    memset(req, 0, sizeof *req);
    req->op = r->op;
    req->key = r->key;
    req->owner = r->owner->text;
    req->hold_id = r->hold_id;
    req->tombstone = r->tombstone;
    req->floor = pawli_fence_floor(&client->fence, r->key->slot);
    req->inbox = client->inbox;
    req->entry = r->entry;
    req->entry_len = r->entry_len;
    req->done = released;
    r->next_ns = PAWLI_NEVER;
    pawli_client_submit(client, req);
    arm(r);
}

/* The caller is answered; the release goes on behind. */
static void answer_unknown(struct pawli_release *r)
{
    struct pawl_client *client = r->call.client;
    int64_t left_ns = r->give_up_ns - pawli_loop_now_ns(client->loop);
    char detail[PAWLI_DETAIL_LEN];
    int code = r->last_failure != 0 ? r->last_failure : PAWL_EUNKNOWN;

    (void)snprintf(detail, sizeof detail,
                   "not confirmed (%s); it is repeated, and the lock is free in %lld ms at the "
                   "latest",
                   r->last_failure != 0 ? pawli_client_detail(client) : "no answer yet",
                   (long long)(left_ns < 0 ? 0 : left_ns / PAWLI_NS_PER_MS));
    r->answer_by_ns = PAWLI_NEVER;
    pawli_call_finish(&r->call, code, NULL, NULL, detail);
}

/* Nothing more will come: answer if nobody has, and go. */
static void end(struct pawli_release *r, int result)
{
    struct pawl_client *client = r->call.client;
    char name[PAWLI_PRINTABLE_LEN];

    if (result < 0)
        pawli_log(&client->notifier, PAWL_LOG_WARN, "release of %s was not confirmed: %s",
                  pawli_printable(r->key->name, r->key->name_len, name), pawl_result_text(result));
    if (result >= 0 && r->held != NULL && r->op == PAWLI_OP_RELEASE)
        pawli_count(&client->stats.releases);
    pawli_call_finish(&r->call, result, NULL, NULL,
                      result < 0 ? pawli_client_detail(client) : NULL);
    pawli_loop_timer_clear(client->loop, &r->timer);
    pawli_loop_timer_unreserve(client->loop);
    pawli_list_remove(&r->link);
    pawli_client_settled(client);
    pawli_call_unref(&r->call);
}

/* The store says that it does not know this id: an earlier try did it, or the lock was lost. */
static int not_held(const struct pawli_release *r, int count)
{
    int lost = r->held == NULL ? PAWL_NOT_OWNER : pawli_held_lost(r->held);

    if (lost != 0)
        return lost;
    if (r->maybe_done && pawli_loop_now_ns(r->call.client->loop) < r->give_up_ns)
        return count == 0 ? 0 : PAWL_STILL_HELD;
    return r->maybe_done ? PAWL_LOST_EXPIRED : PAWL_LOST_TAKEN;
}

static void released(struct pawli_request *req)
{
    struct pawli_release *r = PAWLI_CONTAINER(req, struct pawli_release, req);
    struct pawl_client *client = r->call.client;
    int code = req->answer.code;
    int64_t now_ns = pawli_loop_now_ns(client->loop);

    pawli_client_answered(client);
    if (!client->stopped)
        pawli_line_passed_on(client, &req->answer, req->sent_ns);
    if (code == PAWL_STILL_HELD && r->held != NULL)
        atomic_store(&r->held->count, req->answer.count);
    if (code == PAWL_NOT_OWNER)
        code = not_held(r, req->answer.count);
    if (code == PAWL_EWRONGTYPE)
        code = PAWL_LOST_TAKEN;
    if (code >= 0) {
        end(r, code);
        return;
    }
    r->last_failure = code;
    if (pawl_result_class(code) == PAWL_CLASS_UNKNOWN)
        r->maybe_done = true;
    r->next_ns = now_ns + pawli_backoff_next_ns(&r->backoff);
    if (client->stopped || now_ns >= r->give_up_ns)
        end(r, PAWL_EUNKNOWN);
    else
        arm(r);
}

static void timer_fired(struct pawli_timer *timer)
{
    struct pawli_release *r = PAWLI_CONTAINER(timer, struct pawli_release, timer);
    int64_t now_ns = pawli_loop_now_ns(r->call.client->loop);

    if (now_ns >= r->answer_by_ns)
        answer_unknown(r);
    if (now_ns < r->next_ns)
        arm(r);
    else if (now_ns >= r->give_up_ns)
        end(r, PAWL_EUNKNOWN);
    else
        send(r);
}

/* Enter the client's list, to be given up when what the store may hold has expired. */
static int list(struct pawli_release *r, int64_t valid_until_ns, int64_t lease_ms)
{
    struct pawl_client *client = r->call.client;
    int rc = pawli_loop_timer_reserve(client->loop);

    if (rc < 0)
        return rc;
    r->timer.fire = timer_fired;
    r->next_ns = PAWLI_NEVER;
    r->give_up_ns = pawli_after(valid_until_ns, pawli_margin_ns(lease_ms));
    pawli_client_backoff(client, &r->backoff);
    pawli_list_append(&client->releases, &r->link);
    return 0;
}

static void aim(struct pawli_release *r, enum pawli_op op, struct pawli_key *key,
                struct pawl_owner *owner, const char *hold_id)
{
    r->op = op;
    r->key = pawli_key_ref(key);
    r->owner = pawli_owner_ref(owner);
    if (hold_id != NULL)
        memcpy(r->hold_id, hold_id, PAWLI_ID_LEN);
}

/* ---- one handle ---- */

/* Take the handle out of its hold. 0: the store must be asked; else the result. */
static int leave(struct pawli_release *r)
{
    struct pawl_client *client = r->call.client;
    struct pawl_lock *lock = r->lock;
    int64_t lease_ms = lock->settings.lease_ms;
    int64_t until_ns = pawli_loop_now_ns(client->loop) + lease_ms * PAWLI_NS_PER_MS;
    int lost = 0;

    if (lock->held != NULL) {
        r->held = pawli_held_ref(lock->held);
        until_ns = r->held->sm.valid_until_ns;
        lease_ms = r->held->sm.lease_ms;
        if (!pawli_list_empty(&lock->link))
            (void)pawli_hold_leave(lock);
        lost = pawli_held_lost(r->held);
    }
    if (client->stopped)
        return PAWL_ECLOSED;
    return lost != 0 ? lost : list(r, until_ns, lease_ms);
}

static void begin(struct pawli_release *r)
{
    int result = leave(r);

    if (result != 0) {
        pawli_call_finish(&r->call, result, NULL, NULL, pawl_result_text(result));
        pawli_client_settled(r->call.client);
        pawli_call_unref(&r->call);
        return;
    }
    send(r);
}

static void start(struct pawli_task *task)
{
    struct pawli_release *r = PAWLI_CONTAINER(task, struct pawli_release, call.start);
    const struct pawl_client *client = r->call.client;

    if (r->call.kind == PAWLI_CALL_DONE_CB && r->call.cb.done == NULL)
        r->answer_by_ns = PAWLI_NEVER;
    else
        r->answer_by_ns =
            pawli_loop_now_ns(client->loop) + client->opts.release_ms * PAWLI_NS_PER_MS;
    begin(r);
}

/* Turn the lock's prepared release into a call. */
static struct pawli_release *take(struct pawl_lock *lock, enum pawli_call_kind kind)
{
    struct pawli_release *r = lock->release;

    lock->release = NULL;
    /* Cannot fail: sem_init() refuses only values that are too large. */
    (void)pawli_call_init(&r->call, lock->client, kind, start, call_free);
    aim(r, PAWLI_OP_RELEASE, lock->key, lock->owner, lock->hold_id);
    r->lock = pawli_lock_ref(lock);
    r->tombstone = lock->tombstone;
    pawli_list_init(&r->link);
    return r;
}

void pawli_release_begin(struct pawl_lock *lock)
{
    struct pawli_release *r = take(lock, PAWLI_CALL_DONE_CB);

    r->answer_by_ns = PAWLI_NEVER;
    begin(r);
}

/* ---- without a handle ---- */

/* Nobody waits for it; without memory the lease ends by itself. */
static struct pawli_release *make(struct pawl_client *client)
{
    struct pawli_release *r = client->stopped ? NULL : pawli_release_new();

    if (r == NULL)
        return NULL;
    (void)pawli_call_init(&r->call, client, PAWLI_CALL_DONE_CB, NULL, call_free);
    pawli_list_init(&r->link);
    r->answer_by_ns = PAWLI_NEVER;
    return r;
}

void pawli_release_all(struct pawli_held *held)
{
    struct pawli_list *node;

    for (node = held->handles.next; node != &held->handles; node = node->next) {
        struct pawl_lock *lock = PAWLI_CONTAINER(node, struct pawl_lock, link);
        struct pawli_release *r = make(held->client);

        if (r == NULL)
            return;
        /* By hold id: the same owner may hold the lock through another client, which has reason to
         * believe in it. */
        aim(r, PAWLI_OP_CANCEL, held->key, held->owner, lock->hold_id);
        r->tombstone = lock->tombstone;
        r->held = pawli_held_ref(held);
        if (list(r, held->sm.valid_until_ns, held->sm.lease_ms) < 0)
            pawli_call_unref(&r->call);
        else
            send(r);
    }
}

void pawli_release_bury(struct pawl_lock *lock, char *entry, size_t entry_len)
{
    struct pawl_client *client = lock->client;
    struct pawli_release *r = make(client);
    int64_t lease_ms = lock->settings.lease_ms;

    if (r == NULL) {
        free(entry);
        return;
    }
    aim(r, PAWLI_OP_CANCEL, lock->key, lock->owner, lock->hold_id);
    r->tombstone = true;
    r->entry = entry;
    r->entry_len = entry_len;
    if (list(r, pawli_loop_now_ns(client->loop) + lease_ms * PAWLI_NS_PER_MS, lease_ms) < 0)
        pawli_call_unref(&r->call);
    else
        send(r);
}

/* ---- from the client ---- */

void pawli_releases_up(struct pawl_client *client)
{
    struct pawli_list *node;

    for (node = client->releases.next; node != &client->releases; node = node->next) {
        struct pawli_release *r = PAWLI_CONTAINER(node, struct pawli_release, link);

        if (r->next_ns != PAWLI_NEVER)
            send(r);
    }
}

void pawli_releases_drop(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->releases))
        end(PAWLI_CONTAINER(client->releases.next, struct pawli_release, link), PAWL_EUNKNOWN);
}

/* ---- public ---- */

static int check(struct pawl_lock *lock)
{
    int rc;

    if (lock == NULL)
        return pawli_fail(PAWL_EUSAGE, "lock is NULL");
    rc = pawli_client_check(lock->client);
    if (rc < 0)
        return rc;
    return pawli_lock_begin_release(lock) ? 0 : PAWL_NOT_OWNER;
}

int pawl_lock_release(struct pawl_lock *lock)
{
    struct pawli_release *r;
    const struct pawl_client *client;
    int rc = check(lock);

    if (rc != 0)
        return rc;
    client = lock->client;
    r = take(lock, PAWLI_CALL_SYNC);
    return pawli_client_run(
        &r->call, pawli_loop_now_ns(client->loop) + client->opts.release_ms * PAWLI_NS_PER_MS,
        PAWL_EUNKNOWN, NULL, NULL);
}

int pawl_lock_release_async(struct pawl_lock *lock, pawl_done_cb cb, void *arg)
{
    struct pawli_release *r;
    int rc = check(lock);

    if (rc == PAWL_NOT_OWNER)
        return pawli_fail(PAWL_EUSAGE, "the lock was released before");
    if (rc != 0)
        return rc;
    r = take(lock, PAWLI_CALL_DONE_CB);
    r->call.cb.done = cb;
    r->call.arg = arg;
    pawli_client_post(lock->client, &r->call.start);
    return 0;
}

void pawl_lock_free(struct pawl_lock *lock)
{
    struct pawli_release *r;

    if (lock == NULL || pawli_forked(lock->client->generation))
        return;
    pawli_note_withdraw(&lock->client->notifier, &lock->note);
    if (pawli_lock_begin_release(lock)) {
        r = take(lock, PAWLI_CALL_DONE_CB);
        pawli_client_post(lock->client, &r->call.start);
    }
    pawli_lock_unref(lock);
}

void pawli_lock_discard(struct pawl_lock *lock)
{
    pawl_lock_free(lock);
}
