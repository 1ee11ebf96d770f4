/* Strict readers of script answers, see reply.h; the shapes stand at the top of each script. */
#include "backend/redis/reply.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "core/fence.h"
#include "core/wait.h"
#include "util/printable.h"
#include "util/random.h"

#define CODE_REFUSED (-35) /* with the server's text */

static bool is_int(const redisReply *array, size_t i)
{
    return i < array->elements && array->element[i]->type == REDIS_REPLY_INTEGER;
}

static int64_t int_at(const redisReply *array, size_t i)
{
    return array->element[i]->integer;
}

static bool is_token(int64_t number)
{
    return number > 0 && number <= (int64_t)PAWLI_TOKEN_MAX;
}

static bool only_ints(const redisReply *array)
{
    size_t i;

    for (i = 0; i < array->elements; i++)
        if (!is_int(array, i))
            return false;
    return true;
}

static int read_acquired(struct pawli_answer *answer, const redisReply *reply)
{
    if (reply->elements != 5 || !only_ints(reply))
        return PAWL_EPROTOCOL;
    if (!is_token(int_at(reply, 2)) || int_at(reply, 3) < 1 || int_at(reply, 3) > INT32_MAX ||
        int_at(reply, 4) < 0)
        return PAWL_EPROTOCOL;
    answer->token = (uint64_t)int_at(reply, 2);
    answer->count = (int)int_at(reply, 3);
    answer->pttl_ms = int_at(reply, 4);
    return 0;
}

/* At @i the answer ends, or two more elements name a waiter of ours that was handed the lock. */
static int read_granted(struct pawli_answer *answer, const redisReply *reply, size_t i)
{
    const redisReply *id;
    long long token;

    if (reply->elements == i)
        return 0;
    if (reply->elements != i + 2 || reply->element[i]->type != REDIS_REPLY_STRING ||
        reply->element[i + 1]->type != REDIS_REPLY_STRING)
        return PAWL_EPROTOCOL;
    id = reply->element[i];
    token = strtoll(reply->element[i + 1]->str, NULL, 10);
    if (id->len != PAWLI_ID_LEN || !is_token(token))
        return PAWL_EPROTOCOL;
    memcpy(answer->granted_id, id->str, PAWLI_ID_LEN);
    answer->granted_token = (uint64_t)token;
    return 0;
}

static int read_acquire(struct pawli_request *req, const redisReply *reply)
{
    struct pawli_answer *answer = &req->answer;

    switch (answer->code) {
    case 0:
        return read_acquired(answer, reply);
    case PAWL_BUSY:
    case PAWLI_QUEUED:
        if (!is_int(reply, 2) || int_at(reply, 2) < -2)
            return PAWL_EPROTOCOL;
        answer->pttl_ms = int_at(reply, 2);
        if (answer->code == PAWL_BUSY)
            return read_granted(answer, reply, 3);
        if (!is_int(reply, 3) || int_at(reply, 3) < 1)
            return PAWL_EPROTOCOL;
        answer->ticket = (uint64_t)int_at(reply, 3);
        return read_granted(answer, reply, 4);
    case PAWL_EQUEUEFULL:
    case PAWL_NOT_OWNER:
    case PAWL_ELATE:
    case PAWL_EWRONGTYPE:
        return 0;
    default:
        return PAWL_EPROTOCOL;
    }
}

static int read_check(struct pawli_request *req, const redisReply *reply)
{
    size_t i;

    if (req->answer.code == PAWL_EWRONGTYPE)
        return 0;
    if (req->answer.code != 0 || !is_int(reply, 2) || !is_int(reply, 3))
        return PAWL_EPROTOCOL;
    req->answer.pttl_ms = int_at(reply, 2);
    req->answer.head = int_at(reply, 3) == 1;
    for (i = 0; i < req->n_checks; i++) {
        struct pawli_check *check = &req->checks[i];

        if (!is_int(reply, 4 + i))
            return PAWL_EPROTOCOL;
        check->token = 0;
        check->code = int_at(reply, 4 + i) < 0 ? PAWLI_QUEUED : PAWL_FREE;
        if (int_at(reply, 4 + i) > 0) {
            check->code = 0;
            check->token = (uint64_t)int_at(reply, 4 + i);
        }
    }
    return read_granted(&req->answer, reply, 4 + req->n_checks);
}

/* The answer names only locks that differ from the usual. */
static int read_renew(struct pawli_request *req, const redisReply *reply)
{
    size_t i;

    if (req->answer.code != 0 || !only_ints(reply) || reply->elements % 3 != 2)
        return PAWL_EPROTOCOL;
    for (i = 0; i < req->n_renewals; i++) {
        req->renewals[i].code = 0;
        req->renewals[i].pttl_ms = req->renewals[i].lease_ms;
    }
    for (i = 2; i < reply->elements; i += 3) {
        int64_t place = int_at(reply, i);
        int64_t code = int_at(reply, i + 1);

        if (place < 1 || (uint64_t)place > req->n_renewals ||
            (code != 0 && code != PAWL_LOST_TAKEN && code != PAWL_LOST_REVOKED))
            return PAWL_EPROTOCOL;
        req->renewals[place - 1].code = (int)code;
        req->renewals[place - 1].pttl_ms = int_at(reply, i + 2);
    }
    return 0;
}

static int read_release(struct pawli_request *req, const redisReply *reply)
{
    int code = req->answer.code;

    if (!is_int(reply, 2) || int_at(reply, 2) < 0 || int_at(reply, 2) > INT32_MAX)
        return PAWL_EPROTOCOL;
    if (code != 0 && code != PAWL_STILL_HELD && code != PAWL_NOT_OWNER)
        return PAWL_EPROTOCOL;
    req->answer.count = (int)int_at(reply, 2);
    return read_granted(&req->answer, reply, 3);
}

static int read_extend(struct pawli_request *req, const redisReply *reply)
{
    if (req->answer.code == PAWL_NOT_OWNER || req->answer.code == PAWL_LOST_REVOKED)
        return 0;
    if (req->answer.code != 0 || reply->elements != 3 || !is_int(reply, 2) || int_at(reply, 2) < 0)
        return PAWL_EPROTOCOL;
    req->answer.pttl_ms = int_at(reply, 2);
    return 0;
}

static int read_inspect(struct pawli_request *req, const redisReply *reply)
{
    if (req->answer.code == PAWL_FREE || req->answer.code == PAWL_EWRONGTYPE)
        return 0;
    if (req->answer.code != 0)
        return PAWL_EPROTOCOL;
    return pawli_redis_read_info(reply, &req->answer.info);
}

/* Scripts without anything but a code; @positive is the answer that is no failure. */
static int read_code(const struct pawli_request *req, int positive, int other)
{
    int code = req->answer.code;

    return code == 0 || code == positive || code == other || code == PAWL_EWRONGTYPE
               ? 0
               : PAWL_EPROTOCOL;
}

static int read_by_op(struct pawli_request *req, const redisReply *reply)
{
    switch (req->op) {
    case PAWLI_OP_ACQUIRE:
        return read_acquire(req, reply);
    case PAWLI_OP_CHECK:
        return read_check(req, reply);
    case PAWLI_OP_RENEW:
        return read_renew(req, reply);
    case PAWLI_OP_RELEASE:
    case PAWLI_OP_CANCEL:
        return read_release(req, reply);
    case PAWLI_OP_EXTEND:
        return read_extend(req, reply);
    case PAWLI_OP_INSPECT:
        return read_inspect(req, reply);
    case PAWLI_OP_FORCE:
        return read_code(req, PAWL_NOT_OWNER, PAWL_FREE);
    case PAWLI_OP_CLAIM:
    case PAWLI_OP_SET_IF:
        return read_code(req, PAWL_STALE, 0);
    }
    return PAWL_EPROTOCOL;
}

static void say(const struct pawli_request *req, char *detail, size_t detail_len)
{
    char name[PAWLI_PRINTABLE_LEN];

    if (req->answer.code == PAWL_EWRONGTYPE)
        snprintf(detail, detail_len, "key %s holds something that is not a lock",
                 pawli_printable(req->key->name, req->key->name_len, name));
    else if (req->answer.code == PAWL_EUSAGE)
        snprintf(detail, detail_len, "%s",
                 req->op == PAWLI_OP_FORCE
                     ? "flags=0: the lock of another client cannot be revoked; only "
                       "PAWL_FORCE_NOW takes it away"
                     : "the script refused its arguments");
    else if (req->answer.code == PAWL_ELATE)
        snprintf(detail, detail_len, "the request reached the server after its deadline");
}

int pawli_redis_read_answer(struct pawli_request *req, const redisReply *reply, char *detail,
                            size_t detail_len)
{
    char text[PAWLI_PRINTABLE_LEN];
    int64_t code;
    int rc = 0;

    detail[0] = '\0';
    if (reply->type != REDIS_REPLY_ARRAY || !is_int(reply, 0) || !is_int(reply, 1))
        return PAWL_EPROTOCOL;
    code = int_at(reply, 0);
    if (code < -100 || code > PAWLI_QUEUED || int_at(reply, 1) < 0)
        return PAWL_EPROTOCOL;
    memset(&req->answer, 0, sizeof req->answer);
    req->answer.code = (int)code;
    req->server_us = int_at(reply, 1);
    if (code == CODE_REFUSED) {
        if (reply->elements != 3 || reply->element[2]->type != REDIS_REPLY_STRING)
            return PAWL_EPROTOCOL;
        req->answer.code =
            pawli_redis_caught_error(reply->element[2]->str, reply->element[2]->len);
        snprintf(detail, detail_len, "the server said %s",
                 pawli_printable(reply->element[2]->str, reply->element[2]->len, text));
        return 0;
    }
    if (code != PAWL_EUSAGE)
        rc = read_by_op(req, reply);
    if (rc == 0)
        say(req, detail, detail_len);
    return rc;
}
