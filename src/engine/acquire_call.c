/* Asking for a lock: checks what can be checked without the store, and makes the operation. */
#include <stdlib.h>

#include "core/limits.h"
#include "engine/acquire.h"
#include "engine/client.h"
#include "engine/lock.h"

static void acquire_free(struct pawli_call *call)
{
    struct pawli_acquire *a = PAWLI_CONTAINER(call, struct pawli_acquire, call);

    pawli_lock_unref(a->lock);
    free(a->entry);
    free(a);
}

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
    rc = pawli_call_init(&a->call, client, kind, pawli_acquire_start, acquire_free);
    if (rc < 0) {
        pawli_lock_unref(a->lock);
        goto out;
    }
    a->call.cancel.run = pawli_acquire_cancel;
    a->timer.fire = pawli_acquire_fired;
    pawli_list_init(&a->link);
    pawli_list_init(&a->in_line);
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
