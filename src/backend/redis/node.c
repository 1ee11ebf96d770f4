/* The backend's table for Redis: requests in, answers out. How the connection comes about is
 * conn.c's business. */
#include "backend/redis/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/reply.h"
#include "backend/redis/script.h"
#include "backend/redis/secret.h"
#include "util/printable.h"
#include "util/random.h"

/* Stages of a request. */
#define STAGE_WAITING 1 /* for a connection */
#define STAGE_FULL 2    /* sent with the script's text */
#define STAGE_LATE 4    /* sent again after "late" */

/* So many may be unanswered; further ones wait here until some are. A client that asks for very
 * many locks at once would else find the answers later than command_ms, give up a connection that
 * is well, and ask for all of them again. What keeps or frees a lock does not wait. */
#define WINDOW 512

/* What a request may take beyond its deadline and still count: our clock reads and the server's. */
#define SLACK_MS 100

void pawli_redis_log(struct pawli_node *node, enum pawl_log_level level, const char *format, ...)
{
    char line[PAWLI_REDIS_DETAIL + 128];
    va_list args;

    if (node->events.log == NULL || (int)level > node->opts->log_level)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    node->events.log(node->events.arg, level, line);
}

/* ---- answers ---- */

static void finish(struct pawli_request *req, int code)
{
    req->answer.code = code;
    req->done(req);
}

/* Call done from the loop's next turn: never from inside submit, and not while lists move. */
static void finish_soon(struct pawli_node *node, struct pawli_request *req, int code)
{
    req->stage = 0;
    req->answer.code = code;
    pawli_list_append(&node->answered, &req->link);
    pawli_loop_timer_set(node->loop, &node->soon, pawli_loop_now_ns(node->loop));
}

static struct pawli_request *first_of(const struct pawli_list *list)
{
    return PAWLI_CONTAINER(list->next, struct pawli_request, link);
}

static void answer_all(struct pawli_node *node)
{
    struct pawli_list batch;
    struct pawli_list *link;

    pawli_list_init(&batch);
    pawli_list_splice(&batch, &node->answered);
    while ((link = pawli_list_pop(&batch)) != NULL) {
        struct pawli_request *req = PAWLI_CONTAINER(link, struct pawli_request, link);

        req->done(req);
    }
}

static void soon_fired(struct pawli_timer *timer)
{
    answer_all(PAWLI_CONTAINER(timer, struct pawli_node, soon));
}

/* ---- sending ---- */

int64_t pawli_redis_deadline_ns(const struct pawli_node *node)
{
    if (node->parent != NULL)
        return node->inbox_deadline_ns;
    return pawli_list_empty(&node->inflight) ? PAWLI_NEVER
                                             : first_of(&node->inflight)->deadline_ns;
}

static struct pawli_redis_times times_for(struct pawli_node *node, int64_t now_ns)
{
    struct pawli_redis_times times;

    times.not_after_us =
        pawli_offset_server_us(&node->offset, now_ns, node->opts->command_ms + SLACK_MS);
    if (times.not_after_us > node->last_not_after_us)
        node->last_not_after_us = times.not_after_us;
    /* Earlier attempts may have been sent under a larger offset. */
    times.tombstone_us = node->last_not_after_us;
    return times;
}

static void send_request(struct pawli_node *node, struct pawli_request *req)
{
    int64_t now_ns = pawli_loop_now_ns(node->loop);
    struct pawli_redis_times times = times_for(node, now_ns);
    size_t before = pawli_buf_len(&node->out);
    unsigned how = (req->stage & STAGE_FULL) != 0 ? PAWLI_REDIS_FULL : 0;
    int rc;

    req->stage &= ~STAGE_WAITING;
    req->sent_ns = now_ns;
    req->deadline_ns = now_ns + node->opts->command_ms * PAWLI_NS_PER_MS;
    if ((node->opts->flags & PAWL_INTEROP_REDISSON) != 0)
        how |= PAWLI_REDIS_REDISSON;
    rc = pawli_redis_append(&node->out, req, &times, how);
    if (rc < 0) {
        finish_soon(node, req, rc);
        return;
    }
    node->n_queued += pawli_buf_len(&node->out) - before;
    req->frame_end = node->n_queued;
    node->stats.commands++;
    node->n_inflight++;
    pawli_list_append(&node->inflight, &req->link);
    /* An earlier one keeps the timer; it is moved on when it fires. */
    if (node->timer.pos == 0)
        pawli_loop_timer_set(node->loop, &node->timer, req->deadline_ns);
}

static void keep(struct pawli_node *node, struct pawli_request *req)
{
    req->stage = STAGE_WAITING;
    pawli_list_append(&node->waiting, &req->link);
}

static bool may_wait(enum pawli_op op)
{
    return op != PAWLI_OP_RENEW && op != PAWLI_OP_EXTEND && op != PAWLI_OP_RELEASE;
}

/* Answers made room: send what waits for that. */
static void send_kept(struct pawli_node *node)
{
    struct pawli_list *link;

    while (node->n_inflight < WINDOW && (link = pawli_list_pop(&node->waiting)) != NULL)
        send_request(node, PAWLI_CONTAINER(link, struct pawli_request, link));
}

static void redis_submit(struct pawli_node *node, struct pawli_request *req)
{
    req->stage = 0;
    req->server_us = 0;
    memset(&req->answer, 0, sizeof req->answer);
    switch (node->state) {
    case PAWLI_REDIS_READY:
        if (may_wait(req->op) && node->n_inflight >= WINDOW)
            keep(node, req);
        else
            send_request(node, req);
        break;
    case PAWLI_REDIS_CLOSED:
        finish_soon(node, req, PAWL_ECLOSED);
        break;
    case PAWLI_REDIS_DOWN:
        if (node->at_once)
            keep(node, req);
        else
            finish_soon(node, req, node->why);
        break;
    default:
        keep(node, req);
        break;
    }
}

static bool redis_withdraw(struct pawli_node *node, struct pawli_request *req)
{
    (void)node;
    if ((req->stage & STAGE_WAITING) == 0)
        return false;
    req->stage = 0;
    pawli_list_remove(&req->link);
    return true;
}

static void redis_flush(struct pawli_node *node)
{
    pawli_redis_write(node);
    if (node->inbox != NULL)
        pawli_redis_write(node->inbox);
}

/* ---- what conn.c tells ---- */

void pawli_redis_usable(struct pawli_node *node)
{
    struct pawli_list *link = node->waiting.next;

    while (link != &node->waiting) {
        struct pawli_request *req = PAWLI_CONTAINER(link, struct pawli_request, link);

        link = link->next;
        if (!may_wait(req->op)) {
            pawli_list_remove(&req->link);
            send_request(node, req);
        }
    }
    send_kept(node);
}

void pawli_redis_unusable(struct pawli_node *node)
{
    struct pawli_list *link;

    while ((link = pawli_list_pop(&node->waiting)) != NULL)
        finish_soon(node, PAWLI_CONTAINER(link, struct pawli_request, link), node->why);
}

/* What the kernel took as a whole may have been executed; a part of a frame cannot. */
void pawli_redis_cut(struct pawli_node *node)
{
    struct pawli_list *link;

    node->n_inflight = 0;
    while ((link = pawli_list_pop(&node->inflight)) != NULL) {
        struct pawli_request *req = PAWLI_CONTAINER(link, struct pawli_request, link);

        finish_soon(node, req, req->frame_end <= node->n_handed ? PAWL_EUNKNOWN : PAWL_ECONNECT);
    }
}

void pawli_redis_saw_time(struct pawli_node *node, int64_t server_us, int64_t sent_ns)
{
    int64_t by_ms =
        pawli_offset_saw(&node->offset, server_us, sent_ns, pawli_loop_now_ns(node->loop));

    if (by_ms == 0)
        return;
    pawli_redis_log(node, PAWL_LOG_WARN, "redis: the server's clock moved by %lld ms against ours",
                    (long long)by_ms);
    node->events.clock_jump(node->events.arg, by_ms);
}

/* Put the request at the end of the queue once more: it was certainly not executed. */
static void send_again(struct pawli_node *node, struct pawli_request *req, int stage)
{
    pawli_list_remove(&req->link);
    node->n_inflight--;
    req->stage |= stage;
    send_request(node, req);
}

/* An error reply. 0, or why the connection must be dropped. */
static int replied_error(struct pawli_node *node, struct pawli_request *req,
                         const redisReply *reply)
{
    char text[PAWLI_PRINTABLE_LEN];
    int code;

    if (pawli_redis_is_noscript(reply->str, reply->len) && (req->stage & STAGE_FULL) == 0) {
        send_again(node, req, STAGE_FULL);
        return 0;
    }
    code = pawli_redis_error(reply->str, reply->len);
    (void)pawli_redis_why(node, code, "the server said %s",
                          pawli_printable(reply->str, reply->len, text));
    pawli_list_remove(&req->link);
    node->n_inflight--;
    finish(req, code);
    return pawli_redis_error_drops(code) ? code : 0;
}

static int replied_answer(struct pawli_node *node, struct pawli_request *req,
                          const redisReply *reply)
{
    char detail[PAWLI_REDIS_DETAIL];
    int rc = pawli_redis_read_answer(req, reply, detail, sizeof detail);

    if (rc == PAWL_EPROTOCOL)
        return pawli_redis_why(node, rc, "a script was answered in a form that it cannot have");
    if (req->server_us > 0)
        pawli_redis_saw_time(node, req->server_us, req->sent_ns);
    if (rc == 0 && req->answer.code == PAWL_ELATE && (req->stage & STAGE_LATE) == 0) {
        send_again(node, req, STAGE_LATE);
        return 0;
    }
    if (detail[0] != '\0')
        (void)pawli_redis_why(node, 0, "%s", detail);
    pawli_list_remove(&req->link);
    node->n_inflight--;
    rc = rc < 0 ? rc : req->answer.code;
    finish(req, rc);
    return pawli_redis_error_drops(rc) ? rc : 0;
}

int pawli_redis_replied(struct pawli_node *node, redisReply *reply)
{
    struct pawli_request *req;
    int rc;

    if (node->parent != NULL) {
        rc = pawli_redis_inbox_reply(node, reply);
        freeReplyObject(reply);
        return rc;
    }
    if (pawli_list_empty(&node->inflight)) {
        freeReplyObject(reply);
        return pawli_redis_why(node, PAWL_EPROTOCOL, "a reply to no request");
    }
    req = first_of(&node->inflight);
    rc = reply->type == REDIS_REPLY_ERROR ? replied_error(node, req, reply)
                                          : replied_answer(node, req, reply);
    freeReplyObject(reply);
    if (rc == 0)
        send_kept(node);
    return rc;
}

/* ---- the rest of the table ---- */

static int redis_status(const struct pawli_node *node, char *detail, size_t detail_len)
{
    int code = node->state == PAWLI_REDIS_READY ? 0 : node->why;

    (void)snprintf(detail, detail_len, "%s", code < 0 ? node->detail : "");
    return code;
}

static const char *redis_detail(const struct pawli_node *node)
{
    return node->detail;
}

static void redis_stats(const struct pawli_node *node, struct pawli_node_stats *ret_stats)
{
    *ret_stats = node->stats;
}

static int reserve_timers(struct pawli_node *node)
{
    int rc = pawli_loop_timer_reserve(node->loop);

    if (rc < 0)
        return rc;
    rc = pawli_loop_timer_reserve(node->loop);
    if (rc < 0)
        pawli_loop_timer_unreserve(node->loop);
    return rc;
}

static void node_init(struct pawli_node *node)
{
    uint64_t seed = 0;

    if (pawli_random_bytes(&seed, sizeof seed) < 0 || seed == 0)
        seed = (uint64_t)(uintptr_t)node;
    pawli_backoff_init(&node->backoff, node->opts->retry_min_ms, node->opts->retry_max_ms, seed);
    pawli_stream_init(&node->stream);
    pawli_buf_init(&node->out);
    pawli_list_init(&node->waiting);
    pawli_list_init(&node->inflight);
    pawli_list_init(&node->answered);
    node->watch.ready = pawli_redis_ready;
    node->timer.fire = pawli_redis_timer;
    node->soon.fire = soon_fired;
    node->why = PAWL_BUSY;
    node->at_once = true;
}

struct pawli_node *pawli_redis_node_new(struct pawli_loop *loop,
                                        const struct pawl_client_options *opts)
{
    struct pawli_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->loop = loop;
    node->opts = opts;
    node_init(node);
    if (reserve_timers(node) < 0) {
        free(node);
        return NULL;
    }
    return node;
}

void pawli_redis_node_free(struct pawli_node *node)
{
    if (node == NULL)
        return;
    pawli_loop_timer_clear(node->loop, &node->timer);
    pawli_loop_timer_clear(node->loop, &node->soon);
    pawli_loop_timer_unreserve(node->loop);
    pawli_loop_timer_unreserve(node->loop);
    pawli_resolve_free(node->resolve);
    pawli_buf_done(&node->out);
    pawli_redis_url_done(&node->url);
    free(node);
}

/* Can the password be read now? It is read again at each login. */
static int check_secret(const struct pawli_node *node, char *detail, size_t detail_len)
{
    char *password = NULL;
    int rc = pawli_redis_secret(node->opts, node->url.password, detail, detail_len, &password);

    pawli_secret_free(password);
    return rc;
}

static int redis_open(const char *url, const struct pawl_client_options *opts,
                      struct pawli_loop *loop, const struct pawli_node_events *events,
                      char *detail, size_t detail_len, struct pawli_node **ret_node)
{
    struct pawli_node *node = pawli_redis_node_new(loop, opts);
    int rc;

    if (node == NULL)
        return PAWL_ENOMEM;
    node->events = *events;
    rc = pawli_redis_url_parse(url, &node->url, detail, detail_len);
    if (rc == 0)
        rc = check_secret(node, detail, detail_len);
    if (rc < 0) {
        pawli_redis_node_free(node);
        return rc;
    }
    *ret_node = node;
    return 0;
}

static void redis_start(struct pawli_node *node)
{
    pawli_redis_attempt(node);
}

static void redis_close(struct pawli_node *node)
{
    if (node == NULL)
        return;
    pawli_redis_inbox_close(node);
    pawli_redis_cut(node);
    node->why = PAWL_ECLOSED;
    (void)pawli_redis_why(node, 0, "the client is closed");
    pawli_redis_unusable(node);
    pawli_redis_hang_up(node, false);
    node->state = PAWLI_REDIS_CLOSED;
    while (!pawli_list_empty(&node->answered))
        answer_all(node);
    pawli_redis_node_free(node);
}

static int64_t redis_server_us(const struct pawli_node *node, int64_t at_ns)
{
    return pawli_offset_server_us(&node->offset, at_ns, 0);
}

static const char *const schemes[] = { "redis", "rediss", "redis+unix", NULL };

const struct pawli_backend pawli_backend_redis = {
    .schemes = schemes,
    .open = redis_open,
    .start = redis_start,
    .submit = redis_submit,
    .flush = redis_flush,
    .withdraw = redis_withdraw,
    .inbox = pawli_redis_inbox,
    .listen = pawli_redis_listen,
    .server_us = redis_server_us,
    .status = redis_status,
    .detail = redis_detail,
    .stats = redis_stats,
    .close = redis_close,
};
