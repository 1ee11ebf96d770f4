/* One function per script, in the order of KEYS and ARGV that its file states; see script.h. */
#include "backend/redis/script.h"

#include <stdio.h>

#include "backend/redis/redisson.h"
#include "backend/redis/script_texts.h"
#include "backend/redis/wire.h"

static void begin(struct pawli_command *cmd, struct pawli_buf *buf, bool full,
                  const struct pawli_script_text *script, size_t n_keys, size_t n_args)
{
    pawli_command_begin(cmd, buf, 3 + n_keys + n_args);
    if (full) {
        pawli_command_text(cmd, "EVAL");
        pawli_command_arg(cmd, script->text, script->len);
    } else {
        pawli_command_text(cmd, "EVALSHA");
        pawli_command_arg(cmd, script->sha, 40);
    }
    pawli_command_int(cmd, (int64_t)n_keys);
}

static void lock_key(struct pawli_command *cmd, const struct pawli_key *key)
{
    pawli_command_arg(cmd, key->name, key->name_len);
}

static void lock_and_queue(struct pawli_command *cmd, const struct pawli_key *key)
{
    lock_key(cmd, key);
    pawli_command_arg(cmd, key->queue, key->queue_len);
}

static void all_keys(struct pawli_command *cmd, const struct pawli_key *key)
{
    lock_and_queue(cmd, key);
    pawli_command_arg(cmd, key->counter, key->counter_len);
}

/* The floor has been given out already: the new token must be above it. */
static void put_floor(struct pawli_command *cmd, const struct pawli_request *req)
{
    pawli_command_int(cmd, req->floor == 0 ? 0 : (int64_t)req->floor + 1);
}

static void put_inbox_and_entry(struct pawli_command *cmd, const struct pawli_request *req)
{
    pawli_command_text(cmd, req->inbox == NULL ? "" : req->inbox);
    pawli_command_arg(cmd, req->entry == NULL ? "" : req->entry, req->entry_len);
}

/* The last four arguments of acquire are left out where they say nothing: each costs the server as
 * much as a small part of a command. */
static bool joins(const struct pawli_request *req)
{
    return req->inbox != NULL || (req->flags & PAWLI_BARGE) != 0;
}

static void put_channel(struct pawli_command *cmd, const struct pawli_request *req, unsigned how)
{
    char channel[PAWLI_REDISSON_CHANNEL];
    size_t len = 0;

    if ((how & PAWLI_REDIS_REDISSON) != 0)
        len = pawli_redisson_channel(req->key->name, req->key->name_len, channel);
    pawli_command_arg(cmd, channel, len);
}

static void put_acquire(struct pawli_command *cmd, const struct pawli_request *req,
                        const struct pawli_redis_times *times)
{
    all_keys(cmd, req->key);
    pawli_command_text(cmd, req->owner);
    pawli_command_text(cmd, req->hold_id);
    pawli_command_int(cmd, req->lease_ms);
    pawli_command_int(cmd, req->span_ms);
    pawli_command_int(cmd, times->not_after_us);
    put_floor(cmd, req);
    pawli_command_text(cmd, req->who);
    if (!joins(req))
        return;
    put_inbox_and_entry(cmd, req);
    pawli_command_int(cmd, (int64_t)req->ticket);
    pawli_command_int(cmd, (req->flags & PAWLI_BARGE) != 0);
}

static void put_check(struct pawli_command *cmd, const struct pawli_request *req)
{
    size_t i;

    all_keys(cmd, req->key);
    put_floor(cmd, req);
    pawli_command_text(cmd, req->inbox);
    for (i = 0; i < req->n_checks; i++) {
        const struct pawli_check *check = &req->checks[i];

        pawli_command_text(cmd, check->hold_id);
        pawli_command_text(cmd, check->owner);
        pawli_command_int(cmd, check->lease_ms);
        pawli_command_arg(cmd, check->entry, check->entry_len);
    }
}

static void put_renew(struct pawli_command *cmd, const struct pawli_request *req)
{
    size_t i;

    for (i = 0; i < req->n_renewals; i++)
        lock_key(cmd, req->renewals[i].key);
    for (i = 0; i < req->n_renewals; i++) {
        pawli_command_int(cmd, (int64_t)req->renewals[i].token);
        pawli_command_int(cmd, req->renewals[i].lease_ms);
    }
}

static void put_release(struct pawli_command *cmd, const struct pawli_request *req,
                        const struct pawli_redis_times *times, unsigned how)
{
    all_keys(cmd, req->key);
    pawli_command_text(cmd, req->owner);
    pawli_command_text(cmd, req->hold_id);
    pawli_command_int(cmd, req->tombstone ? times->tombstone_us : 0);
    put_floor(cmd, req);
    put_inbox_and_entry(cmd, req);
    put_channel(cmd, req, how);
}

static void put_extend(struct pawli_command *cmd, const struct pawli_request *req)
{
    lock_key(cmd, req->key);
    pawli_command_text(cmd, req->owner);
    pawli_command_text(cmd, req->hold_id);
    pawli_command_int(cmd, (int64_t)req->token);
    pawli_command_int(cmd, req->lease_ms);
}

static void put_force(struct pawli_command *cmd, const struct pawli_request *req, unsigned how)
{
    all_keys(cmd, req->key);
    pawli_command_int(cmd, (int64_t)req->token);
    pawli_command_int(cmd, (req->flags & PAWL_FORCE_NOW) != 0);
    put_channel(cmd, req, how);
}

static void put_claim(struct pawli_command *cmd, const struct pawli_request *req)
{
    pawli_command_arg(cmd, req->key->claim, req->key->claim_len);
    pawli_command_text(cmd, req->owner);
    pawli_command_int(cmd, (int64_t)req->token);
}

static void put_set_if(struct pawli_command *cmd, const struct pawli_request *req)
{
    pawli_command_arg(cmd, req->key->claim, req->key->claim_len);
    lock_key(cmd, req->key);
    pawli_command_text(cmd, req->owner);
    pawli_command_int(cmd, (int64_t)req->token);
    pawli_command_arg(cmd, req->value, req->value_len);
}

int pawli_redis_append(struct pawli_buf *buf, const struct pawli_request *req,
                       const struct pawli_redis_times *times, unsigned how)
{
    bool full = (how & PAWLI_REDIS_FULL) != 0;
    struct pawli_command cmd;

    switch (req->op) {
    case PAWLI_OP_ACQUIRE:
        begin(&cmd, buf, full, &pawli_script_acquire, 3, joins(req) ? 11 : 7);
        put_acquire(&cmd, req, times);
        break;
    case PAWLI_OP_CHECK:
        begin(&cmd, buf, full, &pawli_script_check, 3, 2 + 4 * req->n_checks);
        put_check(&cmd, req);
        break;
    case PAWLI_OP_RENEW:
        begin(&cmd, buf, full, &pawli_script_renew, req->n_renewals, 2 * req->n_renewals);
        put_renew(&cmd, req);
        break;
    case PAWLI_OP_RELEASE:
    case PAWLI_OP_CANCEL:
        begin(&cmd, buf, full, &pawli_script_release, 3, 7);
        put_release(&cmd, req, times, how);
        break;
    case PAWLI_OP_EXTEND:
        begin(&cmd, buf, full, &pawli_script_extend, 1, 4);
        put_extend(&cmd, req);
        break;
    case PAWLI_OP_INSPECT:
        begin(&cmd, buf, full, &pawli_script_inspect, 2, 0);
        lock_and_queue(&cmd, req->key);
        break;
    case PAWLI_OP_FORCE:
        begin(&cmd, buf, full, &pawli_script_force, 3, 3);
        put_force(&cmd, req, how);
        break;
    case PAWLI_OP_CLAIM:
        begin(&cmd, buf, full, &pawli_script_claim, 1, 2);
        put_claim(&cmd, req);
        break;
    case PAWLI_OP_SET_IF:
        begin(&cmd, buf, full, &pawli_script_set_if, 2, 3);
        put_set_if(&cmd, req);
        break;
    }
    return pawli_command_end(&cmd);
}

int pawli_redis_append_probe(struct pawli_buf *buf, const char *prefix)
{
    struct pawli_command cmd;
    char key[256 + 16];

    (void)snprintf(key, sizeof key, "%spawl:q:probe", prefix == NULL ? "" : prefix);
    begin(&cmd, buf, true, &pawli_script_probe, 1, 0);
    pawli_command_text(&cmd, key);
    return pawli_command_end(&cmd);
}
