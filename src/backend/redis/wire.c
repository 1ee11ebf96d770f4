/* See wire.h. Lengths are formatted by hand: hiredis 0.14 takes them as int. */
#include "backend/redis/wire.h"

#include <stdlib.h>
#include <string.h>

#include <pawl.h>

static void append(struct pawli_command *cmd, const void *data, size_t len)
{
    if (cmd->rc == 0)
        cmd->rc = pawli_buf_append(cmd->buf, data, len);
}

/* Decimal digits of @number, ending before @end; returns where they begin. A tenth of the time of
 * snprintf(), which was an eighth of the cost of renewing many locks. */
static char *digits(uint64_t number, char *end)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

static void append_head(struct pawli_command *cmd, char mark, size_t n)
{
    char head[32];
    char *end = head + sizeof head;
    char *begin;

    *--end = '\n';
    *--end = '\r';
    begin = digits(n, end);
    *--begin = mark;
    append(cmd, begin, (size_t)(head + sizeof head - begin));
}

void pawli_command_begin(struct pawli_command *cmd, struct pawli_buf *buf, size_t n_args)
{
    cmd->buf = buf;
    cmd->before = pawli_buf_len(buf);
    cmd->rc = 0;
    append_head(cmd, '*', n_args);
}

void pawli_command_arg(struct pawli_command *cmd, const void *data, size_t len)
{
    append_head(cmd, '$', len);
    append(cmd, data, len);
    append(cmd, "\r\n", 2);
}

void pawli_command_text(struct pawli_command *cmd, const char *text)
{
    pawli_command_arg(cmd, text, strlen(text));
}

void pawli_command_int(struct pawli_command *cmd, int64_t number)
{
    char text[24];
    char *end = text + sizeof text;
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *begin = digits(size, end);

    if (number < 0)
        *--begin = '-';
    pawli_command_arg(cmd, begin, (size_t)(end - begin));
}

int pawli_command_end(struct pawli_command *cmd)
{
    struct pawli_buf *buf = cmd->buf;

    if (cmd->rc < 0)
        buf->end = buf->start + cmd->before;
    return cmd->rc;
}

#if HIREDIS_MAJOR >= 1
static void bound_elements(struct pawli_replies *replies)
{
    replies->reader->maxelements = PAWLI_REPLY_ELEMENTS_MAX;
}
#else
/* 0.14 allocates whatever length an array claims to have. */
static void *create_array(const redisReadTask *task, int elements)
{
    const struct pawli_replies *replies = task->privdata;

    if (elements > PAWLI_REPLY_ELEMENTS_MAX)
        return NULL;
    return replies->create_array(task, elements);
}

static void bound_elements(struct pawli_replies *replies)
{
    replies->functions = *replies->reader->fn;
    replies->create_array = replies->functions.createArray;
    replies->functions.createArray = create_array;
    replies->reader->fn = &replies->functions;
    replies->reader->privdata = replies;
}
#endif

int pawli_replies_init(struct pawli_replies *replies)
{
    memset(replies, 0, sizeof *replies);
    replies->reader = redisReaderCreate();
    if (replies->reader == NULL)
        return PAWL_ENOMEM;
    bound_elements(replies);
    return 0;
}

void pawli_replies_done(struct pawli_replies *replies)
{
    if (replies->reader != NULL)
        redisReaderFree(replies->reader);
    replies->reader = NULL;
}

int pawli_replies_feed(struct pawli_replies *replies, const void *data, size_t len)
{
    replies->pending += len;
    if (replies->pending > PAWLI_REPLY_MAX)
        return PAWL_EPROTOCOL;
    return redisReaderFeed(replies->reader, data, len) == REDIS_OK ? 0 : PAWL_ENOMEM;
}

int pawli_replies_next(struct pawli_replies *replies, redisReply **ret_reply)
{
    void *reply = NULL;

    if (redisReaderGetReply(replies->reader, &reply) != REDIS_OK)
        return PAWL_EPROTOCOL;
    if (reply != NULL)
        replies->pending = 0;
    *ret_reply = reply;
    return 0;
}
