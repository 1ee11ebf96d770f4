/* The inbox: a connection of its own on which the server tells this client's waiters of their
 * grants. It is a node like the one for commands, made by the same steps, that carries one
 * subscription instead of requests. */
#include "backend/redis/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/redisson.h"
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

static int say(struct pawli_node *inbox, const char *word, const char *arg, size_t arg_len)
{
    struct pawli_command cmd;

    pawli_command_begin(&cmd, &inbox->out, arg == NULL ? 1 : 2);
    pawli_command_text(&cmd, word);
    if (arg != NULL)
        pawli_command_arg(&cmd, arg, arg_len);
    if (pawli_command_end(&cmd) < 0)
        return PAWL_ENOMEM;
    if (inbox->inbox_deadline_ns != PAWLI_NEVER)
        return 0; /* an older one is unanswered: its time counts */
    inbox->inbox_deadline_ns =
        pawli_loop_now_ns(inbox->loop) + inbox->opts->command_ms * PAWLI_NS_PER_MS;
    pawli_loop_timer_set(inbox->loop, &inbox->timer, inbox->inbox_deadline_ns);
    return 0;
}

static void ping(struct pawli_timer *timer)
{
    struct pawli_node *inbox = PAWLI_CONTAINER(timer, struct pawli_node, soon);

    if (inbox->state == PAWLI_REDIS_READY)
        (void)say(inbox, "PING", NULL, 0);
}

/* ---- what the connection tells ---- */

static void on_state(void *arg, int code, const char *detail)
{
    struct pawli_node *inbox = arg;

    (void)detail;
    if (code == 0) {
        (void)say(inbox, "SUBSCRIBE", inbox->parent->inbox_name,
                  strlen(inbox->parent->inbox_name));
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

static void freed(struct pawli_node *parent, const char *name, size_t len)
{
    parent->events.freed(parent->events.arg, name, len);
}

/* "<hold id> <token>": granted; "try <name>": look. What does not look like that is not for us:
 * anybody may publish. */
static void read_message(struct pawli_node *parent, const redisReply *payload)
{
    char id[PAWLI_ID_LEN + 1];
    char *end;
    unsigned long long token;

    if (payload->len > 4 && memcmp(payload->str, "try ", 4) == 0) {
        freed(parent, payload->str + 4, payload->len - 4);
        return;
    }
    if (payload->len < PAWLI_ID_LEN + 2 || payload->str[PAWLI_ID_LEN] != ' ')
        return;
    memcpy(id, payload->str, PAWLI_ID_LEN);
    id[PAWLI_ID_LEN] = '\0';
    token = strtoull(payload->str + PAWLI_ID_LEN + 1, &end, 10);
    if (*end == '\0' && token > 0)
        parent->events.granted(parent->events.arg, id, token);
}

/* Redisson's clients say that a lock was released; or we can hear them from now on, and may have
 * missed it. */
static void read_channel(struct pawli_node *parent, const redisReply *channel)
{
    struct pawli_redisson_name names[2];
    int n = pawli_redisson_names(channel->str, channel->len, names);

    for (int i = 0; i < n; i++)
        freed(parent, names[i].at, names[i].len);
}

static bool is_inbox(const struct pawli_node *parent, const redisReply *channel)
{
    return strlen(parent->inbox_name) == channel->len &&
           memcmp(parent->inbox_name, channel->str, channel->len) == 0;
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

    if (parent->inbox_up) {
        /* The inbox itself is subscribed: this is a channel of Redisson's. */
        pawli_redis_log(parent, PAWL_LOG_WARN,
                        "redis: Redisson's channels cannot be heard (%s); waiters ask instead",
                        pawli_printable(reply->str, reply->len, text));
        answered(inbox);
        return 0;
    }
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
    if (says(reply, "message") && reply->elements == 3 && is_text(reply, 1) && is_text(reply, 2)) {
        if (is_inbox(inbox->parent, reply->element[1]))
            read_message(inbox->parent, reply->element[2]);
        else
            read_channel(inbox->parent, reply->element[1]);
    } else if (says(reply, "subscribe") && is_text(reply, 1)) {
        answered(inbox);
        if (is_inbox(inbox->parent, reply->element[1]))
            set_up(inbox->parent, true);
        else
            read_channel(inbox->parent, reply->element[1]);
    } else if (says(reply, "pong") || says(reply, "unsubscribe")) {
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

void pawli_redis_listen(struct pawli_node *node, const struct pawli_key *key, bool on)
{
    char channel[PAWLI_REDISSON_CHANNEL];
    size_t len;

    if ((node->opts->flags & PAWL_INTEROP_REDISSON) == 0 || !node->inbox_up || node->inbox_refused)
        return;
    len = pawli_redisson_channel(key->name, key->name_len, channel);
    /* Without memory its waiters ask, as they do anyway. */
    (void)say(node->inbox, on ? "SUBSCRIBE" : "UNSUBSCRIBE", channel, len);
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
