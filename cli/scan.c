/* SCAN for locks and their inspection, many at a time. Prints nothing. */
#include "scan.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* A lock of another client has few owners; a hash with more fields is somebody's data. */
#define FOREIGN_FIELDS 8

static int add_row(struct scan *scan, const char *key, size_t len)
{
    struct scan_row *row;

    if (scan->n == scan->room) {
        size_t room = scan->room == 0 ? 64 : scan->room * 2;
        struct scan_row *more = reallocarray(scan->rows, room, sizeof *more);

        if (more == NULL)
            return PAWL_ENOMEM;
        scan->rows = more;
        scan->room = room;
    }
    row = &scan->rows[scan->n];
    memset(row, 0, sizeof *row);
    row->key = malloc(len + 1);
    if (row->key == NULL)
        return PAWL_ENOMEM;
    memcpy(row->key, key, len);
    row->key[len] = '\0';
    row->key_len = len;
    scan->n++;
    return 0;
}

static bool is_count(const redisReply *value)
{
    return value->type == REDIS_REPLY_STRING && value->len > 0 && value->len < 10 &&
           strspn(value->str, "0123456789") == value->len && value->str[0] != '0';
}

/* Answers of HMGET @t @l, HLEN, PTTL and, if small, HVALS. */
static bool is_hash_lock(struct store *s, const redisReply *key)
{
    redisReply *r = store_command(s, "HMGET %b @t @l", key->str, (size_t)key->len);
    bool pawl = r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == 2 &&
                r->element[0]->type == REDIS_REPLY_STRING &&
                r->element[1]->type == REDIS_REPLY_STRING;
    bool foreign = false;

    freeReplyObject(r);
    if (pawl)
        return true;
    r = store_command(s, "HLEN %b", key->str, (size_t)key->len);
    foreign = r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer <= FOREIGN_FIELDS;
    freeReplyObject(r);
    if (!foreign)
        return false;
    r = store_command(s, "HVALS %b", key->str, (size_t)key->len);
    foreign = r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements > 0;
    for (size_t i = 0; foreign && i < r->elements; i++)
        foreign = is_count(r->element[i]);
    freeReplyObject(r);
    r = store_command(s, "PTTL %b", key->str, (size_t)key->len);
    foreign = foreign && r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer > 0;
    freeReplyObject(r);
    return foreign;
}

static bool is_string_lock(struct store *s, const redisReply *key)
{
    redisReply *r = store_command(s, "PTTL %b", key->str, (size_t)key->len);
    bool found = r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer > 0;

    freeReplyObject(r);
    return found;
}

static int take_page(struct scan *scan, struct store *s, const redisReply *keys, size_t prefix_len)
{
    int rc = 0;

    for (size_t i = 0; i < keys->elements; i++)
        (void)store_send(s, "TYPE %b", keys->element[i]->str, (size_t)keys->element[i]->len);
    bool *hash = calloc(keys->elements + 1, sizeof *hash);
    bool *string = calloc(keys->elements + 1, sizeof *string);

    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *r = store_receive(s);

        if (r != NULL && r->type == REDIS_REPLY_STATUS && hash != NULL && string != NULL) {
            hash[i] = strcmp(r->str, "hash") == 0;
            string[i] = scan->strings && strcmp(r->str, "string") == 0;
        }
        freeReplyObject(r);
    }
    for (size_t i = 0; i < keys->elements && rc == 0 && hash != NULL && string != NULL; i++) {
        const redisReply *key = keys->element[i];

        if ((size_t)key->len < prefix_len || strncmp(key->str + prefix_len, "pawl:", 5) == 0)
            continue;
        if ((hash[i] && is_hash_lock(s, key)) || (string[i] && is_string_lock(s, key)))
            rc = add_row(scan, key->str + prefix_len, (size_t)key->len - prefix_len);
    }
    free(hash);
    free(string);
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const struct scan_row *x = a;
    const struct scan_row *y = b;
    size_t least = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, least);

    return order != 0 ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* SCAN may name a key twice. */
static void drop_doubles(struct scan *scan)
{
    size_t n = 0;

    if (scan->n < 2)
        return;
    qsort(scan->rows, scan->n, sizeof scan->rows[0], by_key);
    for (size_t i = 0; i < scan->n; i++) {
        if (n > 0 && by_key(&scan->rows[n - 1], &scan->rows[i]) == 0)
            free(scan->rows[i].key);
        else
            scan->rows[n++] = scan->rows[i];
    }
    scan->n = n;
}

/* The glob for SCAN: the prefix literally, then the pattern. NULL without memory. */
static char *glob_of(const char *prefix, const char *pattern)
{
    char *glob = malloc(strlen(prefix) * 2 + strlen(pattern) + 1);
    char *to = glob;

    if (glob == NULL)
        return NULL;
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]\\^", *prefix) != NULL)
            *to++ = '\\';
        *to++ = *prefix;
    }
    memcpy(to, pattern, strlen(pattern) + 1);
    return glob;
}

int scan_keys(struct scan *scan, struct store *s, const struct options *o, const char *pattern,
              char *why, size_t why_len)
{
    const char *prefix = o->prefix == NULL ? "" : o->prefix;
    char *glob = glob_of(prefix, pattern);
    char cursor[32] = "0";
    int rc = glob == NULL ? PAWL_ENOMEM : 0;

    (void)snprintf(why, why_len, "%s", "");
    while (rc == 0) {
        redisReply *r = store_command(s, "SCAN %s MATCH %s COUNT 500", cursor, glob);

        if (r == NULL) {
            rc = PAWL_EUNKNOWN;
        } else if (r->type == REDIS_REPLY_ERROR) {
            rc = store_is_error(r, "NOPERM") ? PAWL_ENOPERM : PAWL_ESERVER;
            (void)snprintf(why, why_len, "%s", r->str);
        } else {
            (void)snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
            rc = take_page(scan, s, r->element[1], strlen(prefix));
        }
        freeReplyObject(r);
        if (strcmp(cursor, "0") == 0)
            break;
    }
    free(glob);
    drop_doubles(scan);
    return rc;
}

/* --- inspection ---------------------------------------------------------------------------- */

struct one {
    struct scan_row *row;
    size_t *pending;
};

static void inspected(void *arg, int result, struct pawl_lock_info *info)
{
    struct one *one = arg;

    one->row->result = result;
    one->row->info = info;
    (*one->pending)--;
    free(one);
}

void client_wait(struct pawl_client *client, const size_t *pending, size_t at_most)
{
    struct pollfd fd = { pawl_client_fd(client), POLLIN, 0 };

    while (*pending > at_most) {
        (void)poll(&fd, 1, -1);
        (void)pawl_client_dispatch(client);
    }
}

static int by_age(const void *a, const void *b)
{
    const struct scan_row *x = a;
    const struct scan_row *y = b;
    int64_t held_x = x->info == NULL ? 0 : x->info->held_ms;
    int64_t held_y = y->info == NULL ? 0 : y->info->held_ms;

    if (held_x != held_y)
        return held_x < held_y ? 1 : -1;
    return by_key(a, b);
}

int scan_inspect(struct scan *scan, struct pawl_client *client)
{
    size_t pending = 0;
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < scan->n && rc == 0; i++) {
        struct one *one = malloc(sizeof *one);

        if (one == NULL)
            return PAWL_ENOMEM;
        one->row = &scan->rows[i];
        one->pending = &pending;
        pending++;
        rc = pawl_inspect_async(client, one->row->key, one->row->key_len, inspected, one);
        if (rc < 0) {
            one->row->result = rc;
            pending--;
            free(one);
            rc = 0;
        }
        client_wait(client, &pending, 255);
    }
    client_wait(client, &pending, 0);
    for (size_t i = 0; i < scan->n; i++) {
        if (scan->rows[i].result < 0 && rc == 0 && scan->rows[i].result != PAWL_EWRONGTYPE &&
            scan->rows[i].result != PAWL_EKEY)
            rc = scan->rows[i].result;
        if (scan->rows[i].info == NULL)
            free(scan->rows[i].key);
        else
            scan->rows[n++] = scan->rows[i];
    }
    scan->n = n;
    if (n > 1)
        qsort(scan->rows, n, sizeof scan->rows[0], by_age);
    return rc;
}

void scan_done(struct scan *scan)
{
    for (size_t i = 0; i < scan->n; i++) {
        pawl_lock_info_free(scan->rows[i].info);
        free(scan->rows[i].key);
    }
    free(scan->rows);
    scan->rows = NULL;
    scan->n = 0;
    scan->room = 0;
}
