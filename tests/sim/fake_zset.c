/* Sorted sets of the in-memory Redis: an array kept in order of score, then member. */
#include "fake_db.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOT_FLOAT "ERR value is not a valid float"

struct range {
    double min;
    double max;
    bool min_open;
    bool max_open;
};

struct limits {
    bool scores;
    int64_t skip;
    int64_t most;
};

static bool parse_double(const char *text, size_t len, double *ret_n)
{
    char copy[64];
    char *end;

    if (len == 0 || len >= sizeof copy || text[0] == ' ')
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *ret_n = strtod(copy, &end);
    return *end == '\0' && !isnan(*ret_n);
}

static bool parse_bound(const struct fr_bytes *bytes, double *ret_n, bool *ret_open)
{
    *ret_open = bytes->len > 0 && bytes->data[0] == '(';
    return parse_double(bytes->data + (*ret_open ? 1 : 0), bytes->len - (*ret_open ? 1 : 0),
                        ret_n);
}

/* Backwards ranges name the larger end first. */
static bool parse_range(struct fr_call *call, struct range *ret, bool backwards)
{
    size_t min = backwards ? 3 : 2;

    if (parse_bound(&call->argv[min], &ret->min, &ret->min_open) &&
        parse_bound(&call->argv[5 - min], &ret->max, &ret->max_open))
        return true;
    fr_error(call->out, "ERR min or max is not a float");
    return false;
}

static bool in_range(const struct range *range, double score)
{
    return (range->min_open ? score > range->min : score >= range->min) &&
           (range->max_open ? score < range->max : score <= range->max);
}

static size_t find(const struct fr_entry *zset, const struct fr_bytes *member)
{
    size_t i = 0;

    while (i < zset->n && !fr_same(&zset->scored[i].member, member))
        i++;
    return i;
}

static void take_out(struct fr_entry *zset, size_t at)
{
    zset->n--;
    memmove(&zset->scored[at], &zset->scored[at + 1], (zset->n - at) * sizeof *zset->scored);
}

static void drop(struct fr_entry *zset, size_t at)
{
    free(zset->scored[at].member.data);
    take_out(zset, at);
}

static void insert(struct fr_entry *zset, struct fr_bytes member, double score)
{
    size_t at = 0;

    zset->scored = fr_grow(zset->scored, zset->n, &zset->room, sizeof *zset->scored);
    while (at < zset->n &&
           (zset->scored[at].score < score || (zset->scored[at].score == score &&
                                               fr_compare(&zset->scored[at].member, &member) < 0)))
        at++;
    memmove(&zset->scored[at + 1], &zset->scored[at], (zset->n - at) * sizeof *zset->scored);
    zset->scored[at].member = member;
    zset->scored[at].score = score == 0 ? 0 : score; /* a small set knows no -0 */
    zset->n++;
}

static void move_to(struct fr_entry *zset, size_t at, double score)
{
    struct fr_bytes member = zset->scored[at].member;

    take_out(zset, at);
    insert(zset, member, score);
}

static void forget_if_empty(struct fr_call *call, const struct fr_entry *zset)
{
    if (zset != NULL && zset->n == 0)
        (void)fr_delete(call->db, &call->argv[1]);
}

static void cmd_zadd(struct fr_call *call)
{
    bool wrong;
    bool nx = fr_is(&call->argv[2], "NX");
    bool xx = fr_is(&call->argv[2], "XX");
    size_t first = nx || xx ? 3 : 2;
    struct fr_entry *zset;
    int64_t added = 0;
    double score = 0;

    if (call->argc == first || (call->argc - first) % 2 != 0) {
        fr_error(call->out, FR_SYNTAX);
        return;
    }
    for (size_t i = first; i < call->argc; i += 2)
        if (!parse_double(call->argv[i].data, call->argv[i].len, &score)) {
            fr_error(call->out, NOT_FLOAT);
            return;
        }
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    if (zset == NULL && !xx)
        zset = fr_create(call->db, &call->argv[1], FR_ZSET);
    for (size_t i = first; zset != NULL && i < call->argc; i += 2) {
        size_t at = find(zset, &call->argv[i + 1]);

        (void)parse_double(call->argv[i].data, call->argv[i].len, &score);
        if (at < zset->n && !nx) {
            move_to(zset, at, score);
        } else if (at == zset->n && !xx) {
            insert(zset, fr_copy(&call->argv[i + 1]), score);
            added++;
        }
    }
    fr_int(call->out, added);
}

static void cmd_zincrby(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *zset;
    double by;
    size_t at;

    if (!parse_double(call->argv[2].data, call->argv[2].len, &by)) {
        fr_error(call->out, NOT_FLOAT);
        return;
    }
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    if (zset == NULL)
        zset = fr_create(call->db, &call->argv[1], FR_ZSET);
    at = find(zset, &call->argv[3]);
    if (at == zset->n) {
        insert(zset, fr_copy(&call->argv[3]), by);
    } else {
        by += zset->scored[at].score;
        move_to(zset, at, by);
    }
    fr_double(call->out, by);
}

static void cmd_zrem(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *zset = fr_typed(call, FR_ZSET, &wrong);
    int64_t n = 0;

    if (wrong)
        return;
    for (size_t i = 2; zset != NULL && i < call->argc; i++) {
        size_t at = find(zset, &call->argv[i]);

        if (at < zset->n) {
            drop(zset, at);
            n++;
        }
    }
    forget_if_empty(call, zset);
    fr_int(call->out, n);
}

static void cmd_zcard(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *zset = fr_typed(call, FR_ZSET, &wrong);

    if (!wrong)
        fr_int(call->out, zset == NULL ? 0 : (int64_t)zset->n);
}

static void cmd_zscore(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *zset = fr_typed(call, FR_ZSET, &wrong);
    size_t at = zset == NULL ? 0 : find(zset, &call->argv[2]);

    if (wrong)
        return;
    if (zset == NULL || at == zset->n)
        fr_nil(call->out);
    else
        fr_double(call->out, zset->scored[at].score);
}

static void cmd_zrank(struct fr_call *call)
{
    bool wrong;
    const struct fr_entry *zset = fr_typed(call, FR_ZSET, &wrong);
    size_t at = zset == NULL ? 0 : find(zset, &call->argv[2]);

    if (wrong)
        return;
    if (zset == NULL || at == zset->n)
        fr_nil(call->out);
    else
        fr_int(call->out, (int64_t)at);
}

static void answer(struct fr_call *call, const struct fr_entry *zset, size_t from, size_t n,
                   bool scores, bool backwards)
{
    fr_array(call->out, n * (scores ? 2 : 1));
    for (size_t k = 0; k < n; k++) {
        size_t i = backwards ? from + n - 1 - k : from + k;

        fr_bulk(call->out, zset->scored[i].member.data, zset->scored[i].member.len);
        if (scores)
            fr_double(call->out, zset->scored[i].score);
    }
}

static void cmd_zrange(struct fr_call *call)
{
    bool scores = call->argc == 5 && fr_is(&call->argv[4], "WITHSCORES");
    const struct fr_entry *zset;
    int64_t start;
    int64_t end;
    int64_t len;
    bool wrong;

    if (call->argc > 4 && !scores) {
        fr_error(call->out, FR_SYNTAX);
        return;
    }
    if (!fr_integer(&call->argv[2], &start) || !fr_integer(&call->argv[3], &end)) {
        fr_error(call->out, FR_NOT_INTEGER);
        return;
    }
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    len = zset == NULL ? 0 : (int64_t)zset->n;
    start = start < 0 ? start + len : start;
    end = end < 0 ? end + len : end;
    start = start < 0 ? 0 : start;
    end = end >= len ? len - 1 : end;
    answer(call, zset, (size_t)start, start > end ? 0 : (size_t)(end - start + 1), scores, false);
}

/* Scores are in order, so a range is a run of places. */
static void run_of(const struct fr_entry *zset, const struct range *range, size_t *ret_from,
                   size_t *ret_n)
{
    size_t from = 0;
    size_t n = 0;

    while (zset != NULL && from < zset->n && !in_range(range, zset->scored[from].score))
        from++;
    while (zset != NULL && from + n < zset->n && in_range(range, zset->scored[from + n].score))
        n++;
    *ret_from = from;
    *ret_n = n;
}

static const char *read_limits(const struct fr_call *call, struct limits *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->most = -1;
    for (size_t i = 4; i < call->argc; i++) {
        if (fr_is(&call->argv[i], "WITHSCORES")) {
            ret->scores = true;
        } else if (fr_is(&call->argv[i], "LIMIT") && i + 2 < call->argc) {
            if (!fr_integer(&call->argv[i + 1], &ret->skip) ||
                !fr_integer(&call->argv[i + 2], &ret->most))
                return FR_NOT_INTEGER;
            i += 2;
        } else {
            return FR_SYNTAX;
        }
    }
    return NULL;
}

static void by_score(struct fr_call *call, bool backwards)
{
    struct range range;
    struct limits limits;
    const char *error = read_limits(call, &limits);
    const struct fr_entry *zset;
    bool wrong;
    size_t from;
    size_t n;

    if (error != NULL) {
        fr_error(call->out, error);
        return;
    }
    if (!parse_range(call, &range, backwards))
        return;
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    run_of(zset, &range, &from, &n);
    if (limits.skip < 0 || (uint64_t)limits.skip >= n) {
        fr_array(call->out, 0);
        return;
    }
    n -= (size_t)limits.skip;
    if (limits.most >= 0 && (uint64_t)limits.most < n) {
        from += backwards ? n - (size_t)limits.most : 0;
        n = (size_t)limits.most;
    }
    from += backwards ? 0 : (size_t)limits.skip;
    answer(call, zset, from, n, limits.scores, backwards);
}

static void cmd_zrangebyscore(struct fr_call *call)
{
    by_score(call, false);
}

static void cmd_zrevrangebyscore(struct fr_call *call)
{
    by_score(call, true);
}

static void cmd_zcount(struct fr_call *call)
{
    struct range range;
    const struct fr_entry *zset;
    bool wrong;
    size_t from;
    size_t n;

    if (!parse_range(call, &range, false))
        return;
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    run_of(zset, &range, &from, &n);
    fr_int(call->out, (int64_t)n);
}

static void cmd_zremrangebyscore(struct fr_call *call)
{
    struct range range;
    struct fr_entry *zset;
    bool wrong;
    size_t from;
    size_t n;

    if (!parse_range(call, &range, false))
        return;
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    run_of(zset, &range, &from, &n);
    for (size_t i = 0; i < n; i++)
        drop(zset, from);
    forget_if_empty(call, zset);
    fr_int(call->out, (int64_t)n);
}

static void cmd_zpopmin(struct fr_call *call)
{
    bool wrong;
    struct fr_entry *zset;
    int64_t n = 1;

    if (call->argc > 3) {
        fr_error(call->out, FR_SYNTAX);
        return;
    }
    if (call->argc == 3 && (!fr_integer(&call->argv[2], &n) || n < 0)) {
        fr_error(call->out, "ERR value is out of range, must be positive");
        return;
    }
    zset = fr_typed(call, FR_ZSET, &wrong);
    if (wrong)
        return;
    if (zset == NULL || (uint64_t)n > zset->n)
        n = zset == NULL ? 0 : (int64_t)zset->n;
    answer(call, zset, 0, (size_t)n, true, false);
    for (int64_t i = 0; i < n; i++)
        drop(zset, 0);
    forget_if_empty(call, zset);
}

const struct fr_command fr_zset_commands[] = {
    { "ZADD", -4, FR_WRITE | FR_DENYOOM, cmd_zadd },
    { "ZINCRBY", 4, FR_WRITE | FR_DENYOOM, cmd_zincrby },
    { "ZREM", -3, FR_WRITE, cmd_zrem },
    { "ZCARD", 2, 0, cmd_zcard },
    { "ZSCORE", 3, 0, cmd_zscore },
    { "ZRANK", 3, 0, cmd_zrank },
    { "ZRANGE", -4, 0, cmd_zrange },
    { "ZRANGEBYSCORE", -4, 0, cmd_zrangebyscore },
    { "ZREVRANGEBYSCORE", -4, 0, cmd_zrevrangebyscore },
    { "ZCOUNT", 4, 0, cmd_zcount },
    { "ZREMRANGEBYSCORE", 4, FR_WRITE, cmd_zremrangebyscore },
    { "ZPOPMIN", -2, FR_WRITE, cmd_zpopmin },
    { NULL, 0, 0, NULL },
};
