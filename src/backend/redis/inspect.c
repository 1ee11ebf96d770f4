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

struct info {
    struct pawl_lock_info pub;
    char owner[TEXT_ROOM];
    char host[TEXT_ROOM];
    char boot[TEXT_ROOM];
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
static void read_who(struct info *info, const redisReply *value)
{
    char text[TEXT_MAX + 1];
    size_t len = value->len < TEXT_MAX ? value->len : TEXT_MAX;
    char *pid;
    char *start;
    char *boot;

    memcpy(text, value->str, len);
    text[len] = '\0';
    pid = cut(text);
    start = cut(pid);
    boot = cut(start);
    (void)cut(boot);
    copy_printable(info->host, text, strlen(text));
    info->pub.pid = strtoll(pid, NULL, 10);
    info->pub.process_start = strtoll(start, NULL, 10);
    copy_printable(info->boot, boot, strlen(boot));
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
        reply->elements % 2 != 0)
        return PAWL_EPROTOCOL;
    info->pub.kind = PAWL_KIND_HASH;
    info->pub.n_owners = reply->element[5]->integer;
    for (i = 6; i + 1 < reply->elements; i += 2) {
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

int pawli_redis_read_info(const redisReply *reply, struct pawl_lock_info **ret_info)
{
    struct info *info;
    int rc;

    if (!is(reply, 2, REDIS_REPLY_STRING) || !is(reply, 3, REDIS_REPLY_INTEGER))
        return PAWL_EPROTOCOL;
    info = calloc(1, sizeof *info);
    if (info == NULL)
        return PAWL_ENOMEM;
    info->pub.size = sizeof info->pub;
    info->pub.remaining_ms = reply->element[3]->integer;
    info->pub.owner = info->owner;
    info->pub.host = info->host;
    info->pub.boot_id = info->boot;
    info->pub.held_ms = -1;
    rc = strcmp(reply->element[2]->str, "hash") == 0 ? read_hash(info, reply)
                                                     : read_string(info, reply);
    if (rc < 0) {
        free(info);
        return rc;
    }
    *ret_info = &info->pub;
    return 0;
}
