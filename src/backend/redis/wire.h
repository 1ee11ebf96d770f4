/* RESP2 on the wire: commands appended to a buffer, replies through hiredis' reader with bounds
 * against hostile servers. Knows no command and no socket. */
#ifndef PAWLI_REDIS_WIRE_H
#define PAWLI_REDIS_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "util/buf.h"

/* A command under construction. Errors stick until the end, which undoes what was appended. */
struct pawli_command {
    struct pawli_buf *buf;
    size_t before; /* bytes in the buffer when it began */
    int rc;
};

void pawli_command_begin(struct pawli_command *cmd, struct pawli_buf *buf, size_t n_args);
void pawli_command_arg(struct pawli_command *cmd, const void *data, size_t len);
void pawli_command_text(struct pawli_command *cmd, const char *text);
void pawli_command_int(struct pawli_command *cmd, int64_t number);
/* 0 or PAWL_ENOMEM; then the buffer is as it was. */
int pawli_command_end(struct pawli_command *cmd);

/* Replies of ours are below 100 kB; one that grows past this is an attack or an accident. */
#define PAWLI_REPLY_MAX ((size_t)1024 * 1024)
#define PAWLI_REPLY_ELEMENTS_MAX 65536

struct pawli_replies {
    redisReader *reader;
    redisReplyObjectFunctions functions;
#if HIREDIS_MAJOR < 1
    void *(*create_array)(const redisReadTask *task, int elements); /* the reader's own */
#endif
    size_t pending; /* bytes fed since the last whole reply */
};

int pawli_replies_init(struct pawli_replies *replies);
void pawli_replies_done(struct pawli_replies *replies);
/* 0, PAWL_ENOMEM, PAWL_EPROTOCOL. */
int pawli_replies_feed(struct pawli_replies *replies, const void *data, size_t len);
/* The next whole reply, to be freed with freeReplyObject(); NULL: none yet. 0 or
 * PAWL_EPROTOCOL. */
int pawli_replies_next(struct pawli_replies *replies, redisReply **ret_reply);

#endif
