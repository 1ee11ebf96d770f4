/* The connection's life: resolve, connect, TLS, login, use, loss, again. Knows bytes and states;
 * what the requests mean is node.c's. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "backend/redis/node.h"
#include "net/tls.h"
#include "util/printable.h"

#define READ_SIZE 16384

int pawli_redis_why(struct pawli_node *node, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(node->detail, sizeof node->detail, format, args);
    va_end(args);
    return code;
}

/* The one place where the state changes. */
static void enter(struct pawli_node *node, enum pawli_redis_state state)
{
    static const char *const names[] = { "down",  "resolving", "connecting", "tls",
                                         "login", "ready",     "closed" };

    assert(node->state != PAWLI_REDIS_CLOSED);
    pawli_redis_log(node, PAWL_LOG_DEBUG, "redis: %s, was %s", names[state], names[node->state]);
    node->state = state;
}

void pawli_redis_hang_up(struct pawli_node *node, bool reset)
{
    pawli_loop_unwatch(&node->watch);
    pawli_loop_timer_clear(node->loop, &node->timer);
    pawli_stream_close(&node->stream, reset);
    pawli_replies_done(&node->replies);
    pawli_buf_clear(&node->out);
    node->n_queued = 0;
    node->n_handed = 0;
    node->blocked = false;
    node->heard = false;
    node->addr = NULL;
    /* An answered lookup has served; one under way goes on, a slow name server must not be asked
     * anew for each attempt. */
    if (node->resolve != NULL && pawli_resolve_is_done(node->resolve)) {
        pawli_resolve_free(node->resolve);
        node->resolve = NULL;
    }
}

static void retry_later(struct pawli_node *node)
{
    int64_t delay_ns = pawli_backoff_next_ns(&node->backoff);

    enter(node, PAWLI_REDIS_DOWN);
    pawli_loop_timer_set(node->loop, &node->timer, pawli_loop_now_ns(node->loop) + delay_ns);
}

/* Put the address before what went wrong there. */
static void say_where(struct pawli_node *node)
{
    char what[PAWLI_REDIS_DETAIL];
    char where[PAWLI_PRINTABLE_LEN];
    const char *name = node->url.path != NULL ? node->url.path : node->url.host;

    memcpy(what, node->detail, sizeof what);
    pawli_printable(name, strlen(name), where);
    if (node->url.path != NULL)
        pawli_redis_why(node, 0, "%s: %.150s", where, what);
    else
        pawli_redis_why(node, 0, "%s port %u: %.150s", where, (unsigned)node->url.port, what);
}

/* The attempt failed; @node->detail says why. */
static void attempt_failed(struct pawli_node *node, int code)
{
    say_where(node);
    pawli_redis_hang_up(node, true);
    node->why = code;
    retry_later(node);
    pawli_redis_log(node, PAWL_LOG_WARN, "redis: cannot connect: %s (%s)", node->detail,
                    pawl_result_text(code));
    pawli_redis_unusable(node);
    node->events.state(node->events.arg, code, node->detail);
}

/* The usable connection is lost; @node->detail says why. Tried again at once, unless it did not
 * live long: a server that drops each login must not be hammered. */
static void connection_lost(struct pawli_node *node, int code)
{
    int64_t lived_ns = pawli_loop_now_ns(node->loop) - node->ready_ns;

    pawli_redis_cut(node);
    pawli_redis_hang_up(node, true);
    node->why = code;
    if (lived_ns >= node->opts->retry_max_ms * PAWLI_NS_PER_MS) {
        pawli_backoff_reset(&node->backoff);
        enter(node, PAWLI_REDIS_DOWN);
        node->at_once = true;
        pawli_loop_timer_set(node->loop, &node->timer, pawli_loop_now_ns(node->loop));
    } else {
        retry_later(node);
        pawli_redis_unusable(node);
    }
    pawli_redis_log(node, PAWL_LOG_WARN, "redis: connection lost: %s", node->detail);
    node->events.state(node->events.arg, code, node->detail);
}

static void failed(struct pawli_node *node, int code)
{
    if (node->state == PAWLI_REDIS_READY)
        connection_lost(node, code);
    else
        attempt_failed(node, code);
}

static int watch(struct pawli_node *node, unsigned what)
{
    return pawli_loop_watch(node->loop, &node->watch, node->stream.fd, what);
}

/* ---- bytes ---- */

/* A read or write failed. Before the peer has said a word, the likely reason is TLS: a server that
 * wants a client certificate says so only after the handshake, and the alert may be lost in RST. */
static int stream_failed(struct pawli_node *node, int code)
{
    const char *hint = "";

    if (!node->heard && node->url.tls && code == PAWL_ECONNECT) {
        hint = " right after the TLS handshake (does it ask for a client certificate? set "
               "cert_file)";
        code = PAWL_ETLS;
    } else if (!node->heard && !node->url.tls && node->url.path == NULL) {
        hint = " (if the port expects TLS, use rediss://)";
    }
    return pawli_redis_why(node, code, "%s%s", node->stream.reason, hint);
}

/* Write what is queued. 0 or a failure. */
static int write_out(struct pawli_node *node)
{
    ssize_t n = 1;

    while (n > 0 && pawli_buf_len(&node->out) > 0) {
        n = pawli_stream_write(&node->stream, pawli_buf_data(&node->out),
                               pawli_buf_len(&node->out));
        if (n < 0)
            return stream_failed(node, (int)n);
        pawli_buf_take(&node->out, (size_t)n);
        node->n_handed += (uint64_t)n;
    }
    if (pawli_buf_len(&node->out) == 0)
        pawli_buf_clear(&node->out);
    node->blocked = n == 0;
    return watch(node, PAWLI_IN | (node->blocked ? node->stream.want : 0u));
}

void pawli_redis_write(struct pawli_node *node)
{
    int rc;

    if (node->state != PAWLI_REDIS_READY || node->blocked || pawli_buf_len(&node->out) == 0)
        return;
    rc = write_out(node);
    if (rc < 0)
        failed(node, rc);
}

static int logged_in(struct pawli_node *node)
{
    enter(node, PAWLI_REDIS_READY);
    node->ready_ns = pawli_loop_now_ns(node->loop);
    node->stats.connects++;
    node->why = 0;
    node->detail[0] = '\0';
    pawli_loop_timer_clear(node->loop, &node->timer);
    pawli_redis_usable(node);
    node->events.state(node->events.arg, 0, "");
    return 0;
}

static int use_reply(struct pawli_node *node, redisReply *reply)
{
    int rc;

    if (node->state == PAWLI_REDIS_READY)
        return pawli_redis_replied(node, reply);
    rc = pawli_redis_login_reply(node, reply);
    freeReplyObject(reply);
    return rc == 1 ? logged_in(node) : rc;
}

static int use_replies(struct pawli_node *node)
{
    redisReply *reply;
    int rc;

    for (;;) {
        rc = pawli_replies_next(&node->replies, &reply);
        if (rc < 0)
            return pawli_redis_why(node, rc, "the peer does not speak the Redis protocol");
        if (reply == NULL)
            return 0;
        rc = use_reply(node, reply);
        if (rc < 0)
            return rc;
    }
}

/* The first bytes tell what sits behind a port. */
static int check_first(struct pawli_node *node, const char *data, size_t len)
{
    char text[PAWLI_PRINTABLE_LEN];

    if (node->heard)
        return 0;
    node->heard = true;
    if (strchr("+-:$*", data[0]) != NULL && data[0] != '\0')
        return 0;
    if (data[0] == 0x15 && !node->url.tls)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "the port speaks TLS; use rediss://");
    return pawli_redis_why(node, PAWL_EPROTOCOL,
                           "the peer does not speak the Redis protocol; it said %s",
                           pawli_printable(data, len < 24 ? len : 24, text));
}

static int read_in(struct pawli_node *node)
{
    char data[READ_SIZE];
    ssize_t n;
    int rc;

    for (;;) {
        n = pawli_stream_read(&node->stream, data, sizeof data);
        if (n == 0)
            return 0;
        if (n < 0)
            return stream_failed(node, (int)n);
        rc = check_first(node, data, (size_t)n);
        if (rc == 0) {
            rc = pawli_replies_feed(&node->replies, data, (size_t)n);
            if (rc < 0)
                pawli_redis_why(node, rc, "a reply is larger than any that pawl asks for");
        }
        if (rc == 0)
            rc = use_replies(node);
        if (rc < 0)
            return rc;
        if ((size_t)n < sizeof data && node->stream.tls == NULL)
            return 0; /* drained; level-triggered if not */
    }
}

/* ---- an attempt, step by step ---- */

static int begin_login(struct pawli_node *node)
{
    int rc = pawli_replies_init(&node->replies);

    if (rc == 0)
        rc = pawli_redis_login(node);
    if (rc < 0)
        return rc == PAWL_ENOMEM ? pawli_redis_why(node, rc, "no memory for the login") : rc;
    enter(node, PAWLI_REDIS_LOGIN);
    pawli_loop_timer_set(node->loop, &node->timer, node->attempt_deadline_ns);
    return write_out(node);
}

static int begin_tls(struct pawli_node *node)
{
    const struct pawl_client_options *opts = node->opts;
    const struct pawli_tls_config config = {
        .server_name = opts->server_name != NULL ? opts->server_name : node->url.host,
        .ca_file = opts->ca_file,
        .cert_file = opts->cert_file,
        .key_file = opts->key_file,
        .insecure = (opts->flags & PAWL_TLS_INSECURE) != 0,
    };
    int rc = pawli_tls_start(&node->stream, &config);

    if (rc < 0)
        return pawli_redis_why(node, rc, "%s", node->stream.reason);
    if (config.insecure)
        pawli_redis_log(node, PAWL_LOG_WARN,
                        "redis: PAWL_TLS_INSECURE: the server's certificate is not checked");
    enter(node, PAWLI_REDIS_TLS);
    pawli_loop_timer_set(node->loop, &node->timer, node->attempt_deadline_ns);
    return 0;
}

/* Connecting or shaking hands: one step. 0, 1 (what was under way is done) or a failure. */
static int take_step(struct pawli_node *node)
{
    int rc = pawli_stream_step(&node->stream);

    if (rc < 0)
        return pawli_redis_why(node, rc, "%s", node->stream.reason);
    if (rc == 0) {
        int rc2 = watch(node, node->stream.want);

        return rc2 < 0 ? rc2 : 0;
    }
    return 1;
}

static int begin_address(struct pawli_node *node, const struct sockaddr *addr, socklen_t len)
{
    int64_t now_ns = pawli_loop_now_ns(node->loop);
    int64_t share_ns = (node->attempt_deadline_ns - now_ns) / (int64_t)node->n_addrs;
    int rc = pawli_stream_open(&node->stream, addr, len);

    if (rc < 0)
        return pawli_redis_why(node, rc, "%s", node->stream.reason);
    enter(node, PAWLI_REDIS_CONNECTING);
    pawli_loop_timer_set(node->loop, &node->timer, now_ns + share_ns);
    return watch(node, PAWLI_OUT);
}

/* Try the address at @node->addr, then those behind it; the last one's failure counts. */
static void try_addresses(struct pawli_node *node)
{
    int rc = PAWL_ECONNECT;

    while (node->addr != NULL) {
        rc = begin_address(node, node->addr->ai_addr, node->addr->ai_addrlen);
        if (rc == 0)
            return;
        pawli_loop_unwatch(&node->watch);
        pawli_stream_close(&node->stream, true);
        node->addr = node->addr->ai_next;
        node->n_addrs--;
    }
    attempt_failed(node, rc);
}

static void address_failed(struct pawli_node *node, int code)
{
    if (node->addr == NULL || node->addr->ai_next == NULL) {
        attempt_failed(node, code);
        return;
    }
    pawli_loop_unwatch(&node->watch);
    pawli_stream_close(&node->stream, true);
    node->addr = node->addr->ai_next;
    node->n_addrs--;
    try_addresses(node);
}

static void resolved(void *arg)
{
    struct pawli_node *node = arg;
    const struct addrinfo *addr;
    const char *reason;
    char host[PAWLI_PRINTABLE_LEN];

    if (node->state != PAWLI_REDIS_RESOLVING)
        return; /* late: kept for the next attempt */
    node->addr = pawli_resolve_addresses(node->resolve, &reason);
    if (node->addr == NULL) {
        int rc =
            pawli_redis_why(node, PAWL_ERESOLVE, "host %s: %s",
                            pawli_printable(node->url.host, strlen(node->url.host), host), reason);

        attempt_failed(node, rc);
        return;
    }
    node->n_addrs = 0;
    for (addr = node->addr; addr != NULL; addr = addr->ai_next)
        node->n_addrs++;
    try_addresses(node);
}

static void connect_unix(struct pawli_node *node)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int rc;

    memcpy(addr.sun_path, node->url.path, strlen(node->url.path) + 1);
    node->n_addrs = 1;
    rc = begin_address(node, (const struct sockaddr *)&addr, sizeof addr);
    if (rc < 0)
        attempt_failed(node, rc);
}

void pawli_redis_attempt(struct pawli_node *node)
{
    int rc = 0;

    node->attempt_deadline_ns =
        pawli_loop_now_ns(node->loop) + node->opts->connect_ms * PAWLI_NS_PER_MS;
    node->at_once = false;
    enter(node, PAWLI_REDIS_RESOLVING);
    pawli_loop_timer_set(node->loop, &node->timer, node->attempt_deadline_ns);
    if (node->url.path != NULL) {
        connect_unix(node);
        return;
    }
    if (node->resolve != NULL && pawli_resolve_is_done(node->resolve)) {
        resolved(node);
        return;
    }
    if (node->resolve == NULL)
        rc = pawli_resolve_start(node->loop, node->url.host, node->url.port, resolved, node,
                                 &node->resolve);
    if (rc < 0)
        attempt_failed(node, pawli_redis_why(node, rc, "the name lookup could not be started"));
}

/* ---- what the loop tells ---- */

static void attempt_timed_out(struct pawli_node *node)
{
    long long ms = (long long)node->opts->connect_ms;

    switch (node->state) {
    case PAWLI_REDIS_RESOLVING:
        attempt_failed(node, pawli_redis_why(node, PAWL_ERESOLVE,
                                             "the host name was not resolved within %lld ms", ms));
        break;
    case PAWLI_REDIS_CONNECTING:
        address_failed(
            node, pawli_redis_why(node, PAWL_ECONNECT, "connect: no answer within %lld ms", ms));
        break;
    case PAWLI_REDIS_TLS:
        attempt_failed(node, pawli_redis_why(node, PAWL_ETLS,
                                             "the TLS handshake was not answered within %lld ms "
                                             "(if the port speaks plain Redis, use redis://)",
                                             ms));
        break;
    default:
        attempt_failed(node, pawli_redis_why(node, PAWL_ECONNECT,
                                             "connected, but the login was not answered within "
                                             "%lld ms%s",
                                             ms,
                                             node->heard || node->url.tls
                                                 ? ""
                                                 : " (if the port expects TLS, use rediss://)"));
        break;
    }
}

static void check_deadline(struct pawli_node *node)
{
    int64_t deadline_ns = pawli_redis_deadline_ns(node);

    if (deadline_ns > pawli_loop_now_ns(node->loop)) {
        if (deadline_ns != PAWLI_NEVER)
            pawli_loop_timer_set(node->loop, &node->timer, deadline_ns);
        return;
    }
    connection_lost(node, pawli_redis_why(node, PAWL_ECONNECT, "no answer within %lld ms",
                                          (long long)node->opts->command_ms));
}

void pawli_redis_timer(struct pawli_timer *timer)
{
    struct pawli_node *node = PAWLI_CONTAINER(timer, struct pawli_node, timer);

    if (node->state == PAWLI_REDIS_DOWN)
        pawli_redis_attempt(node);
    else if (node->state == PAWLI_REDIS_READY)
        check_deadline(node);
    else
        attempt_timed_out(node);
}

/* Connected, or hands shaken: as far as it goes without waiting. */
static void go_on(struct pawli_node *node)
{
    int rc = take_step(node);

    if (rc == 1 && node->state == PAWLI_REDIS_CONNECTING && node->url.tls) {
        rc = begin_tls(node);
        if (rc == 0)
            rc = take_step(node);
    }
    if (rc == 1)
        rc = begin_login(node);
    if (rc >= 0)
        return;
    if (node->state == PAWLI_REDIS_CONNECTING)
        address_failed(node, rc);
    else
        attempt_failed(node, rc);
}

void pawli_redis_ready(struct pawli_watch *watched, unsigned what)
{
    struct pawli_node *node = PAWLI_CONTAINER(watched, struct pawli_node, watch);
    int rc = 0;

    (void)what;
    if (node->state == PAWLI_REDIS_CONNECTING || node->state == PAWLI_REDIS_TLS) {
        go_on(node);
        return;
    }
    rc = read_in(node);
    if (rc == 0 && node->blocked)
        rc = write_out(node);
    if (rc < 0)
        failed(node, rc);
}
