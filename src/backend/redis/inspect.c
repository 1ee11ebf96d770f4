/* INSPECT answers into struct pawl_lock_info: one allocation, printable texts. Any client may have
 * written what stands there, so nothing is trusted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/reply.h"

#define TEXT_MAX 256
#define TEXT_ROOM (4 * TEXT_MAX + 1) /* each byte as \xNN */

struct waiter_texts {
    char owner[TEXT_ROOM];
    char host[TEXT_ROOM];
};

/* One allocation: this, then the waiters, then their texts. */
struct info {
    struct pawl_lock_info pub;
    char owner[TEXT_ROOM];
    char host[TEXT_ROOM];
    char boot[TEXT_ROOM];
    struct pawl_waiter_info *waiters;
    struct waiter_texts *texts;
};

/* Bytes of a well-formed UTF-8 character of two to four bytes without control characters; 0: it
 * is none. Only the form is judged, which is what a terminal minds. */
static size_t utf8_len(const unsigned char *text, size_t len)
{
    size_t n = text[0] >= 0xf0 && text[0] < 0xf5 ? 4 : text[0] >= 0xe0 && text[0] < 0xf0 ? 3 : 2;
    size_t i;

    if (text[0] < 0xc2 || text[0] > 0xf4 || n > len)
        return 0;
    if (text[0] == 0xc2 && text[1] < 0xa0) /* C1 control characters */
        return 0;
    for (i = 1; i < n; i++)
        if ((text[i] & 0xc0u) != 0x80)
            return 0;
    return n;
}

static void copy_printable(char *to, const char *from, size_t len)
{
    const unsigned char *text = (const unsigned char *)from;
    size_t i = 0;

    if (len > TEXT_MAX)
        len = TEXT_MAX;
    while (i < len) {
        size_t n = text[i] >= 0x20 && text[i] < 0x7f ? 1 : utf8_len(text + i, len - i);

        if (n > 0) {
            memcpy(to, text + i, n);
            to += n;
            i += n;
        } else {
            to += snprintf(to, 5, "\\x%02x", text[i]);
            i++;
        }
    }
    *to = '\0';
}

static int64_t number(const redisReply *value)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(value->str, &end, 10);
    return errno != 0 || *end != '\0' || n < 0 ? 0 : n;
}

/* Cut off the text up to the next blank; returns the rest. */
static char *cut(char *text)
{
    char *blank = strchr(text, ' ');

    if (blank == NULL)
        return text + strlen(text);
    *blank = '\0';
    return blank + 1;
}

/* "host pid start boot"; anything else becomes the host. */
struct who {
    char text[TEXT_MAX + 1];
    const char *pid;
    const char *start;
    const char *boot;
};

static void split_who(const redisReply *value, struct who *ret_who)
{
    size_t len = value->len < TEXT_MAX ? value->len : TEXT_MAX;
    char *rest = ret_who->text;

    memcpy(ret_who->text, value->str, len);
    ret_who->text[len] = '\0';
    rest = cut(rest);
    ret_who->pid = rest;
    rest = cut(rest);
    ret_who->start = rest;
    rest = cut(rest);
    ret_who->boot = rest;
    (void)cut(rest);
}

static void read_who(struct info *info, const redisReply *value)
{
    struct who who = { .pid = NULL };

    split_who(value, &who);
    copy_printable(info->host, who.text, strlen(who.text));
    info->pub.pid = strtoll(who.pid, NULL, 10);
    info->pub.process_start = strtoll(who.start, NULL, 10);
    copy_printable(info->boot, who.boot, strlen(who.boot));
}

static void read_field(struct info *info, const redisReply *field, const redisReply *value,
                       int64_t now_ms)
{
    struct pawl_lock_info *pub = &info->pub;

    if (field->len == 0 || field->str[0] != '@') {
        copy_printable(info->owner, field->str, field->len);
        pub->count = number(value);
        return;
    }
    if (field->len != 2)
        return;
    switch (field->str[1]) {
    case 't':
        pub->token = (uint64_t)number(value);
        pub->kind = PAWL_KIND_PAWL;
        break;
    case 'l':
        pub->lease_ms = number(value);
        break;
    case 'g':
        pub->since_ms = number(value);
        pub->held_ms = now_ms - pub->since_ms;
        break;
    case 'e':
        pub->latest_end_ms = number(value);
        break;
    case 'r':
        pub->revoked = 1;
        break;
    case 'w':
        read_who(info, value);
        break;
    default:
        break;
    }
}

static bool is(const redisReply *array, size_t i, int type)
{
    return i < array->elements && array->element[i]->type == type;
}

static int read_hash(struct info *info, const redisReply *reply)
{
    size_t i;

    if (!is(reply, 4, REDIS_REPLY_INTEGER) || !is(reply, 5, REDIS_REPLY_INTEGER) ||
        reply->elements % 2 != 1)
        return PAWL_EPROTOCOL;
    info->pub.kind = PAWL_KIND_HASH;
    info->pub.n_owners = reply->element[5]->integer;
    for (i = 6; i + 2 < reply->elements; i += 2) {
        if (!is(reply, i, REDIS_REPLY_STRING) || !is(reply, i + 1, REDIS_REPLY_STRING))
            return PAWL_EPROTOCOL;
        read_field(info, reply->element[i], reply->element[i + 1],
                   reply->element[1]->integer / 1000);
    }
    return 0;
}

static int read_string(struct info *info, const redisReply *reply)
{
    if (!is(reply, 4, REDIS_REPLY_STRING))
        return PAWL_EPROTOCOL;
    info->pub.kind = PAWL_KIND_STRING;
    info->pub.count = 1;
    info->pub.n_owners = 1;
    copy_printable(info->owner, reply->element[4]->str, reply->element[4]->len);
    return 0;
}

static int read_waiters(struct info *info, const redisReply *array, int64_t now_ms)
{
    size_t n = array->elements / 3;

    for (size_t i = 0; i < n; i++) {
        struct pawl_waiter_info *waiter = &info->waiters[i];
        struct waiter_texts *texts = &info->texts[i];
        struct who who = { .pid = NULL };

        if (!is(array, 3 * i + 1, REDIS_REPLY_STRING) ||
            !is(array, 3 * i + 2, REDIS_REPLY_STRING) || !is(array, 3 * i + 3, REDIS_REPLY_STRING))
            return PAWL_EPROTOCOL;
        split_who(array->element[3 * i + 3], &who);
        copy_printable(texts->owner, array->element[3 * i + 2]->str,
                       array->element[3 * i + 2]->len);
        copy_printable(texts->host, who.text, strlen(who.text));
        waiter->owner = texts->owner;
        waiter->host = texts->host;
        waiter->pid = strtoll(who.pid, NULL, 10);
        waiter->waiting_ms = now_ms - number(array->element[3 * i + 1]);
        if (waiter->waiting_ms < 0)
            waiter->waiting_ms = 0; /* "asked" is the client's estimate of our clock */
    }
    info->pub.waiters = info->waiters;
    info->pub.n_listed = n;
    return 0;
}

static struct info *info_new(size_t n_waiters)
{
    size_t len = sizeof(struct info) +
                 n_waiters * (sizeof(struct pawl_waiter_info) + sizeof(struct waiter_texts));
    struct info *info = calloc(1, len);

    if (info == NULL)
        return NULL;
    info->waiters = (struct pawl_waiter_info *)(info + 1);
    info->texts = (struct waiter_texts *)(info->waiters + n_waiters);
    return info;
}

int pawli_redis_read_info(const redisReply *reply, struct pawl_lock_info **ret_info)
{
    const redisReply *waiters;
    struct info *info;
    int rc;

    if (!is(reply, 2, REDIS_REPLY_STRING) || !is(reply, 3, REDIS_REPLY_INTEGER) ||
        !is(reply, reply->elements - 1, REDIS_REPLY_ARRAY))
        return PAWL_EPROTOCOL;
    waiters = reply->element[reply->elements - 1];
    if (!is(waiters, 0, REDIS_REPLY_INTEGER) || waiters->elements % 3 != 1)
        return PAWL_EPROTOCOL;
    info = info_new(waiters->elements / 3);
    if (info == NULL)
        return PAWL_ENOMEM;
    info->pub.size = sizeof info->pub;
    info->pub.remaining_ms = reply->element[3]->integer;
    info->pub.owner = info->owner;
    info->pub.host = info->host;
    info->pub.boot_id = info->boot;
    info->pub.held_ms = -1;
    info->pub.n_waiters = (size_t)waiters->element[0]->integer;
    rc = strcmp(reply->element[2]->str, "hash") == 0 ? read_hash(info, reply)
                                                     : read_string(info, reply);
    if (rc == 0)
        rc = read_waiters(info, waiters, reply->element[1]->integer / 1000);
    if (rc < 0) {
        free(info);
        return rc;
    }
    *ret_info = &info->pub;
    return 0;
}
