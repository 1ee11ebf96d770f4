/* What the scripts answered, checked strictly and turned into the engine's answer. */
#ifndef PAWLI_REDIS_REPLY_H
#define PAWLI_REDIS_REPLY_H

#include <hiredis/hiredis.h>

#include "backend/backend.h"

/* Fill in @req->answer and @req->server_us from an array reply. Returns 0 (whatever the answer
 * says), PAWL_EPROTOCOL if the shape is not what the script can answer, PAWL_ENOMEM. @detail says
 * what the server refused, "" if nothing. */
int pawli_redis_read_answer(struct pawli_request *req, const redisReply *reply, char *detail,
                            size_t detail_len);

/* The rest of an INSPECT reply that began with code 0. Gives *ret_info, one allocation. */
int pawli_redis_read_info(const redisReply *reply, struct pawl_lock_info **ret_info);

#endif
