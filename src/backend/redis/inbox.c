/* The inbox: a connection of its own on which the server tells this client's waiters of their
 * grants. It is a node like the one for commands, made by the same steps, that carries one
 * subscription instead of requests. */
#include "backend/redis/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "util/printable.h"
#include "util/random.h"

#define PING_NS INT64_C(5000000000) /* a dead peer is noticed by then and command_ms */

static void set_up(struct pawli_node *parent, bool up)
{
    if (parent->inbox_up == up)
        return;
    parent->inbox_up = up;
    parent->events.inbox(parent->events.arg, up);
}

static int say(struct pawli_node *inbox, const char *first, const char *second)
{
    struct pawli_command cmd;

    pawli_command_begin(&cmd, &inbox->out, second == NULL ? 1 : 2);
    pawli_command_text(&cmd, first);
    if (second != NULL)
        pawli_command_text(&cmd, second);
    if (pawli_command_end(&cmd) < 0)
        return PAWL_ENOMEM;
    inbox->inbox_deadline_ns =
        pawli_loop_now_ns(inbox->loop) + inbox->opts->command_ms * PAWLI_NS_PER_MS;
    pawli_loop_timer_set(inbox->loop, &inbox->timer, inbox->inbox_deadline_ns);
    return 0;
}

static void ping(struct pawli_timer *timer)
{
    struct pawli_node *inbox = PAWLI_CONTAINER(timer, struct pawli_node, soon);

    if (inbox->state == PAWLI_REDIS_READY)
        (void)say(inbox, "PING", NULL);
}

/* ---- what the connection tells ---- */

static void on_state(void *arg, int code, const char *detail)
{
    struct pawli_node *inbox = arg;

    (void)detail;
    if (code == 0) {
        (void)say(inbox, "SUBSCRIBE", inbox->parent->inbox_name);
        return;
    }
    pawli_loop_timer_clear(inbox->loop, &inbox->soon);
    inbox->inbox_deadline_ns = PAWLI_NEVER;
    set_up(inbox->parent, false);
}

static void on_clock_jump(void *arg, int64_t by_ms)
{
    (void)arg; /* the other connection notices it as well */
    (void)by_ms;
}

static void on_log(void *arg, enum pawl_log_level level, const char *line)
{
    const struct pawli_node *inbox = arg;

    inbox->parent->events.log(inbox->parent->events.arg, level, line);
}

/* ---- replies and messages ---- */

static bool is_text(const redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_STRING;
}

static bool says(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ARRAY && is_text(reply, 0) &&
           strcmp(reply->element[0]->str, word) == 0;
}

/* "<hold id> <token>"; what does not look like that is not for us: anybody may publish. */
static void read_message(struct pawli_node *parent, const redisReply *payload)
{
    char id[PAWLI_ID_LEN + 1];
    char *end;
    unsigned long long token;

    if (payload->len < PAWLI_ID_LEN + 2 || payload->str[PAWLI_ID_LEN] != ' ')
        return;
    memcpy(id, payload->str, PAWLI_ID_LEN);
    id[PAWLI_ID_LEN] = '\0';
    token = strtoull(payload->str + PAWLI_ID_LEN + 1, &end, 10);
    if (*end == '\0' && token > 0)
        parent->events.granted(parent->events.arg, id, token);
}

static void answered(struct pawli_node *inbox)
{
    inbox->inbox_deadline_ns = PAWLI_NEVER;
    pawli_loop_timer_clear(inbox->loop, &inbox->timer);
    pawli_loop_timer_set(inbox->loop, &inbox->soon, pawli_loop_now_ns(inbox->loop) + PING_NS);
}

/* The server does not let this user subscribe: waiters have to ask. */
static int refused(struct pawli_node *inbox, const redisReply *reply)
{
    struct pawli_node *parent = inbox->parent;
    char text[PAWLI_PRINTABLE_LEN];
    int code = pawli_redis_error(reply->str, reply->len);

    if (code != PAWL_ENOPERM && strncmp(reply->str, "ERR unknown command", 19) != 0)
        return pawli_redis_why(inbox, code, "SUBSCRIBE was refused");
    pawli_redis_log(parent, PAWL_LOG_WARN,
                    "redis: SUBSCRIBE is not permitted (%s); waiters ask instead of being told",
                    pawli_printable(reply->str, reply->len, text));
    answered(inbox);
    parent->inbox_name[0] = '~';
    parent->inbox_refused = true;
    set_up(parent, true);
    return 0;
}

int pawli_redis_inbox_reply(struct pawli_node *inbox, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return refused(inbox, reply);
    if (says(reply, "message") && reply->elements == 3 && is_text(reply, 2)) {
        read_message(inbox->parent, reply->element[2]);
    } else if (says(reply, "subscribe")) {
        answered(inbox);
        set_up(inbox->parent, true);
    } else if (says(reply, "pong")) {
        answered(inbox);
    }
    return 0;
}

/* ---- making and ending it ---- */

static int make_name(struct pawli_node *parent)
{
    const char *prefix = parent->opts->prefix == NULL ? "" : parent->opts->prefix;
    char id[PAWLI_ID_LEN + 1];
    size_t len = strlen(prefix) + 7 + PAWLI_ID_LEN + 2;
    int rc = pawli_random_id(id);

    if (rc < 0)
        return rc;
    parent->inbox_name = malloc(len);
    if (parent->inbox_name == NULL)
        return PAWL_ENOMEM;
    (void)snprintf(parent->inbox_name, len, "%spawl:i:%s", prefix, id);
    return 0;
}

static void begin(struct pawli_node *parent)
{
    struct pawli_node *inbox;

    if (parent->inbox_name == NULL && make_name(parent) < 0)
        return;
    inbox = pawli_redis_node_new(parent->loop, parent->opts);
    if (inbox == NULL)
        return;
    inbox->parent = parent;
    inbox->url = parent->url; /* the parent's: it lives longer */
    inbox->events.state = on_state;
    inbox->events.clock_jump = on_clock_jump;
    inbox->events.log = on_log;
    inbox->events.arg = inbox;
    inbox->soon.fire = ping;
    inbox->inbox_deadline_ns = PAWLI_NEVER;
    parent->inbox = inbox;
    pawli_redis_attempt(inbox);
}

const char *pawli_redis_inbox(struct pawli_node *node)
{
    if (node->inbox == NULL && node->state == PAWLI_REDIS_READY)
        begin(node);
    return node->inbox_up ? node->inbox_name : NULL;
}

void pawli_redis_inbox_close(struct pawli_node *node)
{
    struct pawli_node *inbox = node->inbox;

    if (inbox != NULL) {
        pawli_redis_hang_up(inbox, false);
        memset(&inbox->url, 0, sizeof inbox->url);
        pawli_redis_node_free(inbox);
        node->inbox = NULL;
    }
    free(node->inbox_name);
    node->inbox_name = NULL;
}
