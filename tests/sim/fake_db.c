/* Keys, their expiry, and the commands on keys and strings of the in-memory Redis. */
#include "fake_db.h"

#include <stdlib.h>
#include <string.h>

/* ---- entries ---- */

static size_t bucket_of(const struct fr_bytes *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < key->len; i++)
        hash = (hash ^ (unsigned char)key->data[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash >> 32) % FR_BUCKETS;
}

static void entry_empty(struct fr_entry *entry)
{
    for (size_t i = 0; i < entry->n && entry->pair != NULL; i++) {
        free(entry->pair[i].field.data);
        free(entry->pair[i].value.data);
    }
    for (size_t i = 0; i < entry->n && entry->scored != NULL; i++)
        free(entry->scored[i].member.data);
    free(entry->pair);
    free(entry->scored);
    free(entry->string.data);
}

static void entry_free(struct fr_entry *entry)
{
    entry_empty(entry);
    free(entry->key.data);
    free(entry);
}

void fr_db_clear(struct fr_db *db)
{
    for (size_t i = 0; i < FR_BUCKETS; i++)
        while (db->bucket[i] != NULL) {
            struct fr_entry *entry = db->bucket[i];

            db->bucket[i] = entry->next;
            entry_free(entry);
        }
    db->n_keys = 0;
}

static struct fr_entry **place_of(struct fr_db *db, const struct fr_bytes *key)
{
    struct fr_entry **place = &db->bucket[bucket_of(key)];

    while (*place != NULL && !fr_same(&(*place)->key, key))
        place = &(*place)->next;
    return place;
}

static void drop(struct fr_db *db, struct fr_entry **place)
{
    struct fr_entry *entry = *place;

    *place = entry->next;
    entry_free(entry);
    db->n_keys--;
}

/* A key lives through the whole millisecond in which it ends, as in Redis 7.0. */
static bool is_over(const struct fr_db *db, const struct fr_entry *entry)
{
    return fr_now_ms(db) > entry->expire_ms;
}

struct fr_entry *fr_lookup(struct fr_db *db, const struct fr_bytes *key)
{
    struct fr_entry **place = place_of(db, key);

    if (*place != NULL && is_over(db, *place)) {
        drop(db, place);
        db->n_expired++;
        return NULL;
    }
    return *place;
}

const struct fr_entry *fr_peek(const struct fr_db *db, const struct fr_bytes *key)
{
    const struct fr_entry *entry = db->bucket[bucket_of(key)];

    while (entry != NULL && !fr_same(&entry->key, key))
        entry = entry->next;
    return entry == NULL || is_over(db, entry) ? NULL : entry;
}

struct fr_entry *fr_create(struct fr_db *db, const struct fr_bytes *key, enum fr_type type)
{
    struct fr_entry **place = place_of(db, key);
    struct fr_entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        abort();
    if (*place != NULL)
        drop(db, place);
    entry->key = fr_copy(key);
    entry->type = type;
    entry->expire_ms = FR_NO_EXPIRE;
    entry->next = *place;
    *place = entry;
    db->n_keys++;
    return entry;
}

bool fr_delete(struct fr_db *db, const struct fr_bytes *key)
{
    if (fr_lookup(db, key) == NULL)
        return false;
    drop(db, place_of(db, key));
    return true;
}

struct fr_entry *fr_typed(struct fr_call *call, enum fr_type type, bool *ret_wrong)
{
    struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);

    *ret_wrong = entry != NULL && entry->type != type;
    if (*ret_wrong)
        fr_error(call->out, FR_WRONGTYPE);
    return *ret_wrong ? NULL : entry;
}

/* ---- commands on keys ---- */

static void cmd_exists(struct fr_call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->argc; i++)
        n += fr_lookup(call->db, &call->argv[i]) != NULL;
    fr_int(call->out, n);
}

static void cmd_del(struct fr_call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->argc; i++)
        n += fr_delete(call->db, &call->argv[i]);
    fr_int(call->out, n);
}

static void cmd_type(struct fr_call *call)
{
    static const char *const names[] = { "string", "hash", "zset" };
    const struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);

    fr_status(call->out, entry == NULL ? "none" : names[entry->type]);
}

static int64_t ttl_of(struct fr_call *call)
{
    const struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);

    if (entry == NULL)
        return -2;
    return entry->expire_ms == FR_NO_EXPIRE ? -1 : entry->expire_ms - fr_now_ms(call->db);
}

static void cmd_pttl(struct fr_call *call)
{
    fr_int(call->out, ttl_of(call));
}

static void cmd_ttl(struct fr_call *call)
{
    int64_t left = ttl_of(call);

    fr_int(call->out, left < 0 ? left : (left + 500) / 1000);
}

static void set_expiry(struct fr_call *call, int64_t at_ms)
{
    struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);

    if (entry == NULL) {
        fr_int(call->out, 0);
        return;
    }
    if (at_ms <= fr_now_ms(call->db))
        (void)fr_delete(call->db, &call->argv[1]);
    else
        entry->expire_ms = at_ms;
    fr_int(call->out, 1);
}

static void expire_by(struct fr_call *call, int64_t unit_ms, int64_t from_ms)
{
    int64_t n;

    if (call->argc != 3)
        fr_error(call->out, FR_SYNTAX);
    else if (!fr_integer(&call->argv[2], &n))
        fr_error(call->out, FR_NOT_INTEGER);
    else if (n > (INT64_MAX / 2 - from_ms) / unit_ms || n < INT64_MIN / 2 / unit_ms)
        fr_error(call->out, unit_ms == 1000 ? "ERR invalid expire time in 'expire' command"
                                            : "ERR invalid expire time in 'pexpire' command");
    else
        set_expiry(call, from_ms + n * unit_ms);
}

static void cmd_pexpire(struct fr_call *call)
{
    expire_by(call, 1, fr_now_ms(call->db));
}

static void cmd_expire(struct fr_call *call)
{
    expire_by(call, 1000, fr_now_ms(call->db));
}

static void cmd_pexpireat(struct fr_call *call)
{
    expire_by(call, 1, 0);
}

static void cmd_persist(struct fr_call *call)
{
    struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);
    bool had = entry != NULL && entry->expire_ms != FR_NO_EXPIRE;

    if (had)
        entry->expire_ms = FR_NO_EXPIRE;
    fr_int(call->out, had);
}

static void cmd_time(struct fr_call *call)
{
    struct fr_out text = { 0 };
    int64_t parts[2] = { call->db->now_us / 1000000, call->db->now_us % 1000000 };

    fr_array(call->out, 2);
    for (int i = 0; i < 2; i++) {
        text.len = 0;
        fr_int(&text, parts[i]); /* ":n\r\n" */
        fr_bulk(call->out, text.data + 1, text.len - 3);
    }
    free(text.data);
}

static void cmd_publish(struct fr_call *call)
{
    fr_int(call->out, call->publish == NULL
                          ? 0
                          : call->publish(call->publish_arg, &call->argv[1], &call->argv[2]));
}

static void cmd_ping(struct fr_call *call)
{
    if (call->argc > 1)
        fr_bulk(call->out, call->argv[1].data, call->argv[1].len);
    else
        fr_status(call->out, "PONG");
}

/* ---- strings ---- */

static void cmd_get(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *entry = fr_typed(call, FR_STRING, &wrong);

    if (entry != NULL)
        fr_bulk(call->out, entry->string.data, entry->string.len);
    else if (!wrong)
        fr_nil(call->out);
}

static void put(struct fr_call *call, const struct fr_bytes *value)
{
    struct fr_entry *entry = fr_create(call->db, &call->argv[1], FR_STRING);

    entry->string = fr_copy(value);
}

static void cmd_getset(struct fr_call *call)
{
    bool wrong;

    (void)fr_typed(call, FR_STRING, &wrong);
    if (wrong)
        return;
    cmd_get(call);
    put(call, &call->argv[2]);
}

struct set_options {
    bool nx;
    bool xx;
    bool keep;
    int64_t at_ms;
};

static const char *set_options(struct fr_call *call, struct set_options *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->at_ms = FR_NO_EXPIRE;
    for (size_t i = 3; i < call->argc; i++) {
        const struct fr_bytes *word = &call->argv[i];
        bool seconds = fr_is(word, "EX");
        int64_t n;

        if (fr_is(word, "NX") && !ret->xx) {
            ret->nx = true;
        } else if (fr_is(word, "XX") && !ret->nx) {
            ret->xx = true;
        } else if (fr_is(word, "KEEPTTL") && ret->at_ms == FR_NO_EXPIRE) {
            ret->keep = true;
        } else if ((seconds || fr_is(word, "PX")) && i + 1 < call->argc && !ret->keep &&
                   ret->at_ms == FR_NO_EXPIRE) {
            if (!fr_integer(&call->argv[++i], &n))
                return FR_NOT_INTEGER;
            if (n <= 0 || n > INT64_MAX / 4000)
                return "ERR invalid expire time in 'set' command";
            ret->at_ms = fr_now_ms(call->db) + n * (seconds ? 1000 : 1);
        } else {
            return FR_SYNTAX;
        }
    }
    return NULL;
}

static void cmd_set(struct fr_call *call)
{
    struct set_options options;
    const char *error = set_options(call, &options);
    struct fr_entry *entry = fr_lookup(call->db, &call->argv[1]);

    if (error != NULL) {
        fr_error(call->out, error);
        return;
    }
    if ((options.nx && entry != NULL) || (options.xx && entry == NULL)) {
        fr_nil(call->out);
        return;
    }
    if (options.keep && entry != NULL)
        options.at_ms = entry->expire_ms;
    put(call, &call->argv[2]);
    fr_lookup(call->db, &call->argv[1])->expire_ms = options.at_ms;
    fr_status(call->out, "OK");
}

static void cmd_strlen(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *entry = fr_typed(call, FR_STRING, &wrong);

    if (!wrong)
        fr_int(call->out, entry == NULL ? 0 : (int64_t)entry->string.len);
}

static void cmd_getrange(struct fr_call *call)
{
    int64_t start;
    int64_t end;
    int64_t len;
    bool wrong;
    const struct fr_entry *entry;

    if (!fr_integer(&call->argv[2], &start) || !fr_integer(&call->argv[3], &end)) {
        fr_error(call->out, FR_NOT_INTEGER);
        return;
    }
    entry = fr_typed(call, FR_STRING, &wrong);
    if (wrong)
        return;
    len = entry == NULL ? 0 : (int64_t)entry->string.len;
    if (start < 0 && end < 0 && start > end)
        len = 0;
    start = start < 0 ? start + len : start;
    end = end < 0 ? end + len : end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end;
    end = end >= len ? len - 1 : end;
    if (entry == NULL || start > end || len == 0)
        fr_bulk(call->out, "", 0);
    else
        fr_bulk(call->out, entry->string.data + start, (size_t)(end - start + 1));
}

static void add_to(struct fr_call *call, int64_t by)
{
    bool wrong;
    struct fr_entry *entry = fr_typed(call, FR_STRING, &wrong);
    struct fr_out text = { 0 };
    struct fr_bytes value;
    int64_t n = 0;

    if (wrong)
        return;
    if (entry != NULL && !fr_integer(&entry->string, &n)) {
        fr_error(call->out, FR_NOT_INTEGER);
        return;
    }
    if (__builtin_add_overflow(n, by, &n)) {
        fr_error(call->out, "ERR increment or decrement would overflow");
        return;
    }
    fr_int(&text, n);
    value.data = text.data + 1;
    value.len = text.len - 3;
    if (entry == NULL)
        entry = fr_create(call->db, &call->argv[1], FR_STRING);
    fr_set(&entry->string, &value);
    free(text.data);
    fr_int(call->out, n);
}

static void cmd_incr(struct fr_call *call)
{
    add_to(call, 1);
}

static void cmd_incrby(struct fr_call *call)
{
    int64_t by;

    if (fr_integer(&call->argv[2], &by))
        add_to(call, by);
    else
        fr_error(call->out, FR_NOT_INTEGER);
}

const struct fr_command fr_key_commands[] = {
    { "EXISTS", -2, 0, cmd_exists },
    { "DEL", -2, FR_WRITE, cmd_del },
    { "UNLINK", -2, FR_WRITE, cmd_del },
    { "TYPE", 2, 0, cmd_type },
    { "PTTL", 2, 0, cmd_pttl },
    { "TTL", 2, 0, cmd_ttl },
    { "PEXPIRE", -3, FR_WRITE, cmd_pexpire },
    { "EXPIRE", -3, FR_WRITE, cmd_expire },
    { "PEXPIREAT", -3, FR_WRITE, cmd_pexpireat },
    { "PERSIST", 2, FR_WRITE, cmd_persist },
    { "TIME", 1, 0, cmd_time },
    { "PUBLISH", 3, 0, cmd_publish },
    { "PING", -1, 0, cmd_ping },
    { "GET", 2, 0, cmd_get },
    { "GETSET", 3, FR_WRITE | FR_DENYOOM, cmd_getset },
    { "SET", -3, FR_WRITE | FR_DENYOOM, cmd_set },
    { "STRLEN", 2, 0, cmd_strlen },
    { "GETRANGE", 4, 0, cmd_getrange },
    { "INCR", 2, FR_WRITE | FR_DENYOOM, cmd_incr },
    { "INCRBY", 3, FR_WRITE | FR_DENYOOM, cmd_incrby },
    { NULL, 0, 0, NULL },
};

bool fr_arity_ok(const struct fr_command *command, size_t argc)
{
    return command->arity > 0 ? argc == (size_t)command->arity : argc >= (size_t)-command->arity;
}

const struct fr_command *fr_find_command(const struct fr_bytes *name)
{
    static const struct fr_command *const tables[] = { fr_key_commands, fr_hash_commands,
                                                       fr_zset_commands };

    for (size_t t = 0; t < 3; t++)
        for (const struct fr_command *c = tables[t]; c->name != NULL; c++)
            if (fr_is(name, c->name))
                return c;
    return NULL;
}
