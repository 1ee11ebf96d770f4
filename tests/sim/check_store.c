/* Invariants at the store, looked at after each command: one grant at a time (I1), counts equal the
 * ids (I4), ids go only when their release, a revocation or the clock says so, tokens rise. */
#include "check_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/script_texts.h"

/* ---- reading the store ---- */

static void copy_text(char *to, size_t room, const struct fr_bytes *from)
{
    size_t len = from->len < room - 1 ? from->len : room - 1;

    memcpy(to, from->data, len);
    to[len] = '\0';
}

static void read_field(struct sim_world *w, const struct fr_pair *pair, struct sim_snap *snap,
                       int64_t *count)
{
    const struct fr_bytes *field = &pair->field;

    if (field->len == 34 && memcmp(field->data, "@h", 2) == 0) {
        if (snap->n_ids == IDS_MAX)
            sim_fail(w, "I4: more than %d ids of one owner", IDS_MAX);
        else
            memcpy(snap->id[snap->n_ids++], field->data + 2, 33);
    } else if (fr_is(field, "@t")) {
        snap->token = strtoull(pair->value.data, NULL, 10);
    } else if (fr_is(field, "@r")) {
        snap->revoked = true;
    } else if (field->len > 0 && field->data[0] != '@') {
        if (snap->owner[0] != '\0')
            sim_fail(w, "I1: two owners at the store: %s and %.*s", snap->owner, (int)field->len,
                     field->data);
        copy_text(snap->owner, sizeof snap->owner, field);
        *count = strtoll(pair->value.data, NULL, 10);
    }
}

static void read_lock(struct sim_world *w, struct sim_lock_state *lock, struct sim_snap *snap)
{
    const struct fr_entry *entry = fr_peek(&w->server.db, &lock->key);
    int64_t count = 0;

    memset(snap, 0, offsetof(struct sim_snap, id));
    snap->n_ids = 0;
    snap->expire_ms = 0;
    if (entry == NULL || entry->type != FR_HASH)
        return;
    snap->live = true;
    snap->expire_ms = entry->expire_ms;
    for (size_t i = 0; i < entry->n; i++)
        read_field(w, &entry->pair[i], snap, &count);
    if (entry->expire_ms == FR_NO_EXPIRE && !lock->persisted)
        sim_fail(w, "a lock without an expiry");
    if (count != snap->n_ids || count < 1)
        sim_fail(w, "I4: count %lld, but %d ids", (long long)count, snap->n_ids);
}

static bool has_id(const struct sim_snap *snap, const char *id)
{
    for (int i = 0; i < snap->n_ids; i++)
        if (memcmp(snap->id[i], id, 32) == 0)
            return true;
    return false;
}

/* ---- what the command was ---- */

static const char *script_of(const struct fr_bytes *argv, size_t argc)
{
    if (argc < 3 || !(fr_is(&argv[0], "EVALSHA") || fr_is(&argv[0], "EVAL")))
        return "";
    for (size_t i = 0; pawli_script_texts[i] != NULL; i++) {
        const struct pawli_script_text *text = pawli_script_texts[i];

        if (argv[0].len == 7
                ? fr_is(&argv[1], text->sha)
                : argv[1].len == text->len && memcmp(argv[1].data, text->text, text->len) == 0)
            return text->name;
    }
    return "";
}

static bool names(const struct fr_bytes *argv, size_t argc, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 3; i < argc; i++)
        if (argv[i].len == len && memcmp(argv[i].data, text, len) == 0)
            return true;
    return false;
}

struct command {
    const struct fr_bytes *argv;
    size_t argc;
    const char *script; /* "": none of ours */
    bool by_operator;
};

/* May this command end @id before its time? */
static bool may_end(const struct command *cmd, const char *id)
{
    if (cmd->by_operator || strcmp(cmd->script, "force") == 0)
        return true;
    if (strcmp(cmd->script, "release") == 0 || strcmp(cmd->script, "cancel") == 0)
        return names(cmd->argv, cmd->argc, id);
    return false;
}

/* May it grant, by itself or by a hand-over? */
static bool grants(const struct command *cmd)
{
    static const char *const scripts[] = { "acquire", "release", "check", "force" };

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(cmd->script, scripts[i]) == 0)
            return true;
    return false;
}

/* ---- comparing ---- */

struct sim_grant *sim_grant_find(struct sim_lock_state *lock, uint64_t token, const char *owner)
{
    for (size_t i = lock->n_grants; i > 0; i--)
        if (lock->grant[i - 1].token == token &&
            (owner == NULL || strcmp(lock->grant[i - 1].owner, owner) == 0))
            return &lock->grant[i - 1];
    return NULL;
}

struct sim_grant *sim_grant_of(struct sim_lock_state *lock, uint64_t token, const char *owner,
                               const char *id)
{
    for (size_t i = lock->n_grants; i > 0; i--) {
        struct sim_grant *grant = &lock->grant[i - 1];

        for (int k = 0; k < grant->n_ids; k++)
            if (grant->token == token && strcmp(grant->id[k], id) == 0)
                return grant;
    }
    return sim_grant_find(lock, token, owner);
}

/* A month for a key without expiry. */
static int64_t left_ms_of(struct sim_world *w, int64_t expire_ms)
{
    return expire_ms == FR_NO_EXPIRE ? INT64_C(2592000000) : expire_ms - sim_server_us(w) / 1000;
}

void sim_grant_void(struct sim_world *w, const struct sim_lock_state *lock,
                    struct sim_grant *grant)
{
    int64_t left_ms = left_ms_of(w, lock->snap.expire_ms);

    if (grant->void_ns != 0)
        return;
    grant->void_ns = w->now_ns;
    grant->true_end_ns = w->now_ns + left_ms * SIM_MS;
}

static void check_ended(struct sim_world *w, struct sim_lock_state *lock,
                        const struct sim_snap *now, const struct command *cmd)
{
    const struct sim_snap *was = &lock->snap;
    bool expired = fr_now_ms(&w->server.db) > was->expire_ms;
    bool other = !now->live || now->token != was->token;
    struct sim_grant *grant = sim_grant_find(lock, was->token, was->owner);

    for (int i = 0; i < was->n_ids; i++)
        if ((other || !has_id(now, was->id[i])) && !expired && !may_end(cmd, was->id[i]))
            sim_fail(w, "a live hold vanished without its release (script '%s')", cmd->script);
    if (expired && other && w->calm)
        sim_fail(w, "a lock lapsed in a world without faults: nobody gave it back");
    if (other && grant != NULL && grant->end_ns == PAWLI_NEVER) {
        grant->end_ns = w->now_ns;
        if (!expired && strcmp(cmd->script, "force") == 0)
            sim_grant_void(w, lock, grant);
    }
}

/* An attempt that comes late must be refused. An entry that it left in the queue before may still
 * be handed the lock: a claim for nobody, which ends by itself; those are counted. */
static void check_tombs(struct sim_check *check, const char *id, const struct command *cmd)
{
    struct sim_world *w = check->w;

    for (size_t i = 0; i < check->n_tombs; i++) {
        if (strcmp(check->tomb[i].id, id) != 0 || check->tomb[i].until_us < w->server.db.now_us)
            continue;
        if (names(cmd->argv, cmd->argc, id))
            sim_fail(w, "a ghost: an id was granted after its cancel had forbidden it");
        w->n_ghosts++;
    }
}

static void check_ids(struct sim_check *check, struct sim_lock_state *lock,
                      struct sim_grant *grant, const struct sim_snap *now,
                      const struct command *cmd)
{
    struct sim_world *w = check->w;

    for (int i = 0; i < now->n_ids; i++) {
        bool known = false;

        for (int k = 0; k < grant->n_ids && !known; k++)
            known = strcmp(grant->id[k], now->id[i]) == 0;
        if (known && lock->snap.token == now->token && has_id(&lock->snap, now->id[i]))
            continue;
        if (!known && !grants(cmd))
            sim_fail(w, "script '%s' granted to an id", cmd->script);
        if (strcmp(cmd->script, "acquire") == 0 && names(cmd->argv, cmd->argc, now->id[i]) &&
            cmd->argc > 10 && strtoll(cmd->argv[10].data, NULL, 10) < w->server.db.now_us)
            sim_fail(w, "a request that came after its deadline was granted");
        if (!check->tombs_void)
            check_tombs(check, now->id[i], cmd);
        if (!known && grant->n_ids < IDS_MAX)
            memcpy(grant->id[grant->n_ids++], now->id[i], 33);
    }
}

static struct sim_grant *new_grant(struct sim_check *check, struct sim_lock_state *lock,
                                   const struct sim_snap *now)
{
    struct sim_world *w = check->w;
    struct sim_grant *grant;
    bool may_fall = w->data_lost && w->server.db.now_us < w->server_max_us;

    if (now->token <= lock->max_token && !may_fall)
        sim_fail(w, "the token fell from %llu to %llu", (unsigned long long)lock->max_token,
                 (unsigned long long)now->token);
    if (now->token > lock->max_token)
        lock->max_token = now->token;
    lock->grant = fr_grow(lock->grant, lock->n_grants, &lock->room, sizeof *lock->grant);
    grant = &lock->grant[lock->n_grants++];
    memset(grant, 0, sizeof *grant);
    grant->token = now->token;
    memcpy(grant->owner, now->owner, sizeof grant->owner);
    grant->from_ns = w->now_ns;
    grant->end_ns = PAWLI_NEVER;
    w->n_grants++;
    sim_log(w, "granted", lock - check->lock, now->n_ids);
    return grant;
}

/* Everybody else who believes in @lock is asked at the very moment of a new grant. */
static void ask_others(struct sim_check *check, struct sim_lock_state *lock)
{
    struct pawli_list *node = check->handles.next;

    while (node != &check->handles) {
        struct sim_handle *handle = PAWLI_CONTAINER(node, struct sim_handle, link);

        node = node->next;
        if (&check->lock[handle->lock_number] == lock && !sim_stopped(handle->client))
            (void)sim_check_handle(check->w, handle);
    }
}

/* ARGV[11] of acquire. */
static bool barges(const struct command *cmd)
{
    return strcmp(cmd->script, "acquire") == 0 && cmd->argc > 16 && fr_is(&cmd->argv[16], "1");
}

static const struct sim_grant *newest_of(const struct sim_lock_state *lock)
{
    return lock->n_grants == 0 ? NULL : &lock->grant[lock->n_grants - 1];
}

static bool knows_ids(const struct sim_grant *grant, const struct sim_snap *now)
{
    for (int k = 0; k < grant->n_ids; k++)
        if (has_id(now, grant->id[k]))
            return true;
    return false;
}

static void check_lock(struct sim_check *check, struct sim_lock_state *lock,
                       const struct command *cmd)
{
    struct sim_world *w = check->w;
    struct sim_snap now;
    struct sim_grant *grant = NULL;
    bool fresh;
    int64_t left_ms;

    read_lock(w, lock, &now);
    if (sim_failed(w))
        return;
    if (lock->snap.live)
        check_ended(w, lock, &now, cmd);
    fresh = now.live && (!lock->snap.live || lock->snap.token != now.token);
    if (now.live) {
        if (fresh)
            grant = sim_grant_find(lock, now.token, now.owner);
        /* A server whose clock steps back may see a key again that it had not deleted yet; but not
         * if it has granted to somebody else since, or has lost its data: then a second
         * attempt under the same id got the same floor as its token. */
        if (fresh &&
            (grant == NULL || !knows_ids(grant, &now) || grant != newest_of(lock) ||
             (w->data_lost && grant->void_ns != 0 && strcmp(cmd->script, "acquire") == 0))) {
            grant = new_grant(check, lock, &now);
            sim_queue_granted(check, lock, now.id[0], barges(cmd));
        }
        if (!fresh)
            grant = sim_grant_find(lock, now.token, now.owner);
        grant->end_ns = PAWLI_NEVER;
        left_ms = left_ms_of(w, now.expire_ms);
        if (now.expire_ms != FR_NO_EXPIRE && left_ms > grant->lease_ms)
            grant->lease_ms = left_ms;
        if (!cmd->by_operator && !fresh && w->now_ns + left_ms * SIM_MS >= grant->true_end_ns)
            grant->void_ns = 0; /* confirmed for as long as the holder may believe */
        if (grant->revoked && !fresh && !cmd->by_operator && !lock->persisted &&
            now.expire_ms > lock->snap.expire_ms + 1)
            sim_fail(w, "a revoked lock was given more time by '%s'", cmd->script);
        grant->revoked = grant->revoked || now.revoked;
        check_ids(check, lock, grant, &now, cmd);
    }
    if (w->verbose && (now.live || lock->snap.live) && cmd->script[0] != 'i')
        printf("              %s: token %llu, owner %.4s, %d ids, %lld ms left\n", lock->key.data,
               (unsigned long long)now.token, now.owner, now.n_ids,
               (long long)(now.live ? left_ms_of(w, now.expire_ms) : -1));
    lock->snap = now;
    if (fresh)
        ask_others(check, lock);
}

/* ---- after each command ---- */

static void keep_frame(struct sim_check *check, const struct fr_bytes *argv, size_t argc)
{
    struct fr_out *frame = &check->frame[check->n_frames++ % FRAMES_MAX];

    frame->len = 0;
    fr_array(frame, argc);
    for (size_t i = 0; i < argc; i++)
        fr_bulk(frame, argv[i].data, argv[i].len);
}

/* KEYS lock, queue, counter; ARGV owner, hold id, tombstone until. */
static void note_tomb(struct sim_check *check, const struct fr_bytes *argv, size_t argc)
{
    struct sim_tomb *tomb = &check->tomb[check->n_tombs % DONE_MAX];
    int64_t until_us;

    if (argc < 9 || argv[7].len != 32 || !fr_integer(&argv[8], &until_us) || until_us == 0 ||
        check->w->server.db.oom || check->w->server.db.misconf)
        return;
    if (check->n_tombs < DONE_MAX)
        check->n_tombs++;
    copy_text(tomb->id, sizeof tomb->id, &argv[7]);
    tomb->until_us = until_us;
}

void sim_watch(void *arg, const struct fr_bytes *argv, size_t argc)
{
    struct sim_check *check = arg;
    struct command cmd = { .argv = argv,
                           .argc = argc,
                           .script = script_of(argv, argc),
                           .by_operator = check->by_operator };

    if (cmd.script[0] != '\0' && strcmp(cmd.script, "probe") != 0) {
        check->n_scripts++;
        if (check->keeps_frames && !check->replaying)
            keep_frame(check, argv, argc);
    }
    cmd.by_operator = cmd.script[0] == '\0';
    sim_log(check->w, cmd.script[0] == '\0' ? "command" : cmd.script, (int64_t)argc, 0);
    if (check->w->verbose && cmd.script[0] != '\0')
        for (size_t i = 3; i < argc; i++)
            if (argv[i].len == 32)
                printf("              %.4s\n", argv[i].data);
    for (int i = 0; i < check->w->plan.n_locks; i++)
        check_lock(check, &check->lock[i], &cmd);
    if (strcmp(cmd.script, "release") == 0)
        note_tomb(check, argv, argc);
}
