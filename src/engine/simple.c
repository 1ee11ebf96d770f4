/* Calls that are one request and its answer: inspect, force-release, extend, claim, set. */
#include <stdlib.h>
#include <string.h>

#include "core/key.h"
#include "core/limits.h"
#include "engine/client.h"
#include "engine/hold.h"
#include "engine/lock.h"

struct simple {
    struct pawli_call call;
    struct pawli_request req;
    struct pawli_key *key;
    struct pawl_lock *lock; /* NULL: the call is about a key */
    char *value;
};

static void simple_free(struct pawli_call *call)
{
    struct simple *s = PAWLI_CONTAINER(call, struct simple, call);

    pawli_key_unref(s->key);
    pawli_lock_unref(s->lock);
    free(s->value);
    free(s);
}

/* The new lease counts only for a hold that still lives. After an unknown answer the shorter of
 * both leases is believed. Returns what the caller is told. */
static int extended(const struct simple *s)
{
    const struct pawli_request *req = &s->req;
    int code = req->answer.code;
    enum pawl_class kind = pawl_result_class(code);

    if (code == PAWL_NOT_OWNER)
        code = PAWL_LOST_TAKEN;
    pawli_hold_extend_answered(s->lock, code < 0 && kind != PAWL_CLASS_UNKNOWN);
    if (code == 0)
        pawli_hold_extended(s->lock, req->sent_ns, req->lease_ms, req->answer.pttl_ms);
    else if (kind == PAWL_CLASS_UNKNOWN && req->lease_ms < s->lock->settings.lease_ms)
        pawli_hold_shortened(s->lock, req->lease_ms);
    else if (pawl_is_lost(code))
        pawli_hold_refused(s->lock, code);
    return code;
}

static void done(struct pawli_request *req)
{
    struct simple *s = PAWLI_CONTAINER(req, struct simple, req);
    struct pawl_client *client = s->call.client;
    int code = req->answer.code;

    pawli_client_answered(client);
    if (req->op == PAWLI_OP_EXTEND)
        code = extended(s);
    pawli_call_finish(&s->call, code, NULL, req->answer.info,
                      code < 0 ? pawli_client_detail(client) : NULL);
    pawli_call_unref(&s->call);
}

static void start(struct pawli_task *task)
{
    struct simple *s = PAWLI_CONTAINER(task, struct simple, call.start);
    struct pawl_client *client = s->call.client;
    int result = client->stopped ? PAWL_ECLOSED : 0;

    if (result == 0 && s->req.op == PAWLI_OP_EXTEND) {
        result = pawli_held_lost(s->lock->held);
        if (result == 0)
            pawli_hold_shortening(s->lock, s->req.lease_ms);
    }
    if (result != 0) {
        pawli_call_finish(&s->call, result, NULL, NULL, pawl_result_text(result));
        pawli_call_unref(&s->call);
        return;
    }
    s->req.done = done;
    pawli_client_submit(client, &s->req);
}

/* @key is taken. */
static int make(struct pawl_client *client, struct pawli_key *key, enum pawli_op op,
                enum pawli_call_kind kind, struct simple **ret_simple)
{
    struct simple *s = calloc(1, sizeof *s);
    int rc;

    if (s == NULL) {
        pawli_key_unref(key);
        return pawli_fail(PAWL_ENOMEM, "no memory for a call");
    }
    rc = pawli_call_init(&s->call, client, kind, start, simple_free);
    if (rc < 0) {
        pawli_key_unref(key);
        free(s);
        return pawli_fail_text(rc, pawl_result_text(rc));
    }
    s->key = key;
    s->req.op = op;
    s->req.key = key;
    *ret_simple = s;
    return 0;
}

static int make_for_key(struct pawl_client *client, const void *name, size_t len, enum pawli_op op,
                        enum pawli_call_kind kind, struct simple **ret_simple)
{
    char detail[PAWLI_DETAIL_LEN] = "";
    struct pawli_key *key;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    rc = pawli_key_new(client->opts.prefix, name, len, detail, sizeof detail, &key);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    return make(client, key, op, kind, ret_simple);
}

/* Check that @lock may be used, and that it is held. */
static int check_held(struct pawl_lock *lock)
{
    int rc = pawl_lock_check(lock);

    return rc == PAWL_EXPIRING || rc == PAWL_UNSURE ? 0 : rc;
}

static int run(struct simple *s, struct pawl_lock_info **ret_info)
{
    const struct pawl_client *client = s->call.client;
    int64_t limit_ns = pawli_loop_now_ns(client->loop) + pawli_client_patience_ns(client);

    return pawli_client_run(&s->call, limit_ns, PAWL_EUNKNOWN, NULL, ret_info);
}

/* ---- inspect ---- */

int pawl_inspect(struct pawl_client *client, const void *key, size_t key_len,
                 struct pawl_lock_info **ret_info)
{
    struct simple *s;
    int rc;

    if (ret_info == NULL)
        return pawli_fail(PAWL_EUSAGE, "ret_info is NULL");
    rc = make_for_key(client, key, key_len, PAWLI_OP_INSPECT, PAWLI_CALL_SYNC, &s);
    return rc < 0 ? rc : run(s, ret_info);
}

int pawl_inspect_async(struct pawl_client *client, const void *key, size_t key_len,
                       pawl_inspect_cb cb, void *arg)
{
    struct simple *s;
    int rc;

    if (cb == NULL)
        return pawli_fail(PAWL_EUSAGE, "cb is NULL");
    rc = make_for_key(client, key, key_len, PAWLI_OP_INSPECT, PAWLI_CALL_INSPECT, &s);
    if (rc < 0)
        return rc;
    s->call.cb.inspect = cb;
    s->call.arg = arg;
    pawli_client_post(client, &s->call.start);
    return 0;
}

void pawl_lock_info_free(struct pawl_lock_info *info)
{
    free(info); /* the backend makes it in one allocation, texts included */
}

/* ---- force-release ---- */

static int make_force(struct pawl_client *client, const void *key, size_t key_len, uint64_t token,
                      unsigned flags, enum pawli_call_kind kind, struct simple **ret_simple)
{
    int rc;

    if ((flags & ~PAWL_FORCE_NOW) != 0)
        return pawli_fail(PAWL_EUSAGE, "flags=%#x: must be 0 or PAWL_FORCE_NOW", flags);
    rc = make_for_key(client, key, key_len, PAWLI_OP_FORCE, kind, ret_simple);
    if (rc < 0)
        return rc;
    (*ret_simple)->req.token = token;
    (*ret_simple)->req.flags = flags;
    return 0;
}

int pawl_force_release(struct pawl_client *client, const void *key, size_t key_len, uint64_t token,
                       unsigned flags)
{
    struct simple *s = NULL;
    int rc = make_force(client, key, key_len, token, flags, PAWLI_CALL_SYNC, &s);

    return rc < 0 ? rc : run(s, NULL);
}

int pawl_force_release_async(struct pawl_client *client, const void *key, size_t key_len,
                             uint64_t token, unsigned flags, pawl_done_cb cb, void *arg)
{
    struct simple *s = NULL;
    int rc;

    if (cb == NULL)
        return pawli_fail(PAWL_EUSAGE, "cb is NULL");
    rc = make_force(client, key, key_len, token, flags, PAWLI_CALL_DONE_CB, &s);
    if (rc < 0)
        return rc;
    s->call.cb.done = cb;
    s->call.arg = arg;
    pawli_client_post(client, &s->call.start);
    return 0;
}

/* ---- extend ---- */

static int make_extend(struct pawl_lock *lock, int64_t lease_ms, enum pawli_call_kind kind,
                       struct simple **ret_simple)
{
    char detail[PAWLI_DETAIL_LEN] = "";
    struct simple *s;
    int rc = check_held(lock);

    if (rc != 0)
        return rc;
    rc = pawli_lease_check(lease_ms, detail, sizeof detail);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    if (!lock->outermost)
        return pawli_fail(PAWL_ENESTED, "an outer hold of this owner decides about the lease");
    rc = make(lock->client, pawli_key_ref(lock->key), PAWLI_OP_EXTEND, kind, &s);
    if (rc < 0)
        return rc;
    s->lock = pawli_lock_ref(lock);
    s->req.owner = lock->owner->text;
    s->req.hold_id = lock->hold_id;
    s->req.token = lock->held->token;
    s->req.lease_ms = lease_ms;
    *ret_simple = s;
    return 0;
}

int pawl_lock_extend(struct pawl_lock *lock, int64_t lease_ms)
{
    struct simple *s;
    int rc = make_extend(lock, lease_ms, PAWLI_CALL_SYNC, &s);

    return rc != 0 ? rc : run(s, NULL);
}

int pawl_lock_extend_async(struct pawl_lock *lock, int64_t lease_ms, pawl_done_cb cb, void *arg)
{
    struct simple *s;
    int rc;

    if (cb == NULL)
        return pawli_fail(PAWL_EUSAGE, "cb is NULL");
    rc = make_extend(lock, lease_ms, PAWLI_CALL_DONE_CB, &s);
    if (rc != 0)
        return rc;
    s->call.cb.done = cb;
    s->call.arg = arg;
    pawli_client_post(lock->client, &s->call.start);
    return 0;
}

/* ---- fencing in Redis ---- */

static int make_claim(struct pawl_lock *lock, const void *resource, size_t len, enum pawli_op op,
                      struct simple **ret_simple)
{
    char detail[PAWLI_DETAIL_LEN] = "";
    struct pawli_key *key;
    struct simple *s;
    int rc = check_held(lock);

    if (rc != 0)
        return rc;
    rc =
        pawli_claim_key_new(lock->client->opts.prefix, resource, len, detail, sizeof detail, &key);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    rc = make(lock->client, key, op, PAWLI_CALL_SYNC, &s);
    if (rc < 0)
        return rc;
    s->lock = pawli_lock_ref(lock);
    s->req.owner = lock->owner->text;
    s->req.token = lock->held->token;
    *ret_simple = s;
    return 0;
}

int pawl_fence_claim(struct pawl_lock *lock, const void *resource, size_t resource_len)
{
    struct simple *s;
    int rc = make_claim(lock, resource, resource_len, PAWLI_OP_CLAIM, &s);

    return rc != 0 ? rc : run(s, NULL);
}

int pawl_fence_set(struct pawl_lock *lock, const void *resource, size_t resource_len,
                   const void *value, size_t value_len)
{
    struct simple *s;
    int rc;

    if (value == NULL && value_len > 0)
        return pawli_fail(PAWL_EUSAGE, "value is NULL");
    rc = make_claim(lock, resource, resource_len, PAWLI_OP_SET_IF, &s);
    if (rc != 0)
        return rc;
    s->value = malloc(value_len + 1);
    if (s->value == NULL) {
        pawli_call_unref(&s->call);
        return pawli_fail(PAWL_ENOMEM, "no memory for a value of %zu bytes", value_len);
    }
    if (value_len > 0)
        memcpy(s->value, value, value_len);
    s->req.value = s->value;
    s->req.value_len = value_len;
    return run(s, NULL);
}
