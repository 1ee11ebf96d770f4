/* Hashes of the in-memory Redis, in the order of insertion. The real server gives large ones in
 * another order; scripts must not depend on it, and the comparison sorts. */
#include "fake_db.h"

#include <stdlib.h>
#include <string.h>

static size_t find(const struct fr_entry *hash, const struct fr_bytes *field)
{
    size_t i = 0;

    while (i < hash->n && !fr_same(&hash->pair[i].field, field))
        i++;
    return i;
}

const struct fr_bytes *fr_hash_get(const struct fr_entry *hash, const struct fr_bytes *field)
{
    size_t i = find(hash, field);

    return i < hash->n ? &hash->pair[i].value : NULL;
}

static bool put(struct fr_entry *hash, const struct fr_bytes *field, const struct fr_bytes *value)
{
    size_t i = find(hash, field);

    if (i < hash->n) {
        fr_set(&hash->pair[i].value, value);
        return false;
    }
    hash->pair = fr_grow(hash->pair, hash->n, &hash->room, sizeof *hash->pair);
    hash->pair[hash->n].field = fr_copy(field);
    hash->pair[hash->n++].value = fr_copy(value);
    return true;
}

static void cmd_hset(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *hash;
    int64_t n = 0;

    if (call->argc % 2 != 0) {
        fr_error(call->out, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    hash = fr_typed(call, FR_HASH, &wrong);
    if (wrong)
        return;
    if (hash == NULL)
        hash = fr_create(call->db, &call->argv[1], FR_HASH);
    for (size_t i = 2; i < call->argc; i += 2)
        n += put(hash, &call->argv[i], &call->argv[i + 1]);
    fr_int(call->out, n);
}

static void cmd_hsetnx(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (wrong)
        return;
    if (hash != NULL && fr_hash_get(hash, &call->argv[2]) != NULL) {
        fr_int(call->out, 0);
        return;
    }
    if (hash == NULL)
        hash = fr_create(call->db, &call->argv[1], FR_HASH);
    (void)put(hash, &call->argv[2], &call->argv[3]);
    fr_int(call->out, 1);
}

static void answer_field(struct fr_call *call, const struct fr_entry *hash,
                         const struct fr_bytes *field)
{
    const struct fr_bytes *value = hash == NULL ? NULL : fr_hash_get(hash, field);

    if (value == NULL)
        fr_nil(call->out);
    else
        fr_bulk(call->out, value->data, value->len);
}

static void cmd_hget(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (!wrong)
        answer_field(call, hash, &call->argv[2]);
}

static void cmd_hmget(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (wrong)
        return;
    fr_array(call->out, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        answer_field(call, hash, &call->argv[i]);
}

static void answer_all(struct fr_call *call, const struct fr_entry *hash, bool fields, bool values)
{
    size_t n = hash == NULL ? 0 : hash->n;

    fr_array(call->out, n * (fields && values ? 2 : 1));
    for (size_t i = 0; i < n; i++) {
        if (fields)
            fr_bulk(call->out, hash->pair[i].field.data, hash->pair[i].field.len);
        if (values)
            fr_bulk(call->out, hash->pair[i].value.data, hash->pair[i].value.len);
    }
}

static void all_or_wrong(struct fr_call *call, bool fields, bool values)
{
    bool wrong;
    const struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (!wrong)
        answer_all(call, hash, fields, values);
}

static void cmd_hgetall(struct fr_call *call)
{
    all_or_wrong(call, true, true);
}

static void cmd_hkeys(struct fr_call *call)
{
    all_or_wrong(call, true, false);
}

static void cmd_hvals(struct fr_call *call)
{
    all_or_wrong(call, false, true);
}

/* One pass gives all: a hash here is never as large as the COUNT that scripts use. */
static void cmd_hscan(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *hash;
    int64_t cursor;

    if (!fr_integer(&call->argv[2], &cursor)) {
        fr_error(call->out, "ERR invalid cursor");
        return;
    }
    hash = fr_typed(call, FR_HASH, &wrong);
    if (wrong)
        return;
    fr_array(call->out, 2);
    fr_bulk(call->out, "0", 1);
    answer_all(call, hash, true, true);
}

static void cmd_hlen(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (!wrong)
        fr_int(call->out, hash == NULL ? 0 : (int64_t)hash->n);
}

static void cmd_hexists(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);

    if (!wrong)
        fr_int(call->out, hash != NULL && fr_hash_get(hash, &call->argv[2]) != NULL);
}

static void cmd_hdel(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *hash = fr_typed(call, FR_HASH, &wrong);
    int64_t n = 0;

    if (wrong)
        return;
    for (size_t i = 2; hash != NULL && i < call->argc; i++) {
        size_t at = find(hash, &call->argv[i]);

        if (at == hash->n)
            continue;
        free(hash->pair[at].field.data);
        free(hash->pair[at].value.data);
        hash->n--;
        memmove(&hash->pair[at], &hash->pair[at + 1], (hash->n - at) * sizeof *hash->pair);
        n++;
    }
    if (hash != NULL && hash->n == 0)
        (void)fr_delete(call->db, &call->argv[1]);
    fr_int(call->out, n);
}

static void cmd_hincrby(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *hash;
    const struct fr_bytes *old;
    struct fr_out text = { 0 };
    struct fr_bytes value;
    int64_t by;
    int64_t n = 0;

    if (!fr_integer(&call->argv[3], &by)) {
        fr_error(call->out, FR_NOT_INTEGER);
        return;
    }
    hash = fr_typed(call, FR_HASH, &wrong);
    if (wrong)
        return;
    old = hash == NULL ? NULL : fr_hash_get(hash, &call->argv[2]);
    if (old != NULL && !fr_integer(old, &n)) {
        fr_error(call->out, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(n, by, &n)) {
        fr_error(call->out, "ERR increment or decrement would overflow");
        return;
    }
    if (hash == NULL)
        hash = fr_create(call->db, &call->argv[1], FR_HASH);
    fr_int(&text, n);
    value.data = text.data + 1;
    value.len = text.len - 3;
    (void)put(hash, &call->argv[2], &value);
    free(text.data);
    fr_int(call->out, n);
}

const struct fr_command fr_hash_commands[] = {
    { "HSET", -4, FR_WRITE | FR_DENYOOM, cmd_hset },
    { "HSETNX", 4, FR_WRITE | FR_DENYOOM, cmd_hsetnx },
    { "HGET", 3, 0, cmd_hget },
    { "HMGET", -3, 0, cmd_hmget },
    { "HGETALL", 2, 0, cmd_hgetall },
    { "HKEYS", 2, 0, cmd_hkeys },
    { "HVALS", 2, 0, cmd_hvals },
    { "HSCAN", -3, 0, cmd_hscan },
    { "HLEN", 2, 0, cmd_hlen },
    { "HEXISTS", 3, 0, cmd_hexists },
    { "HDEL", -3, FR_WRITE, cmd_hdel },
    { "HINCRBY", 4, FR_WRITE | FR_DENYOOM, cmd_hincrby },
    { NULL, 0, 0, NULL },
};
