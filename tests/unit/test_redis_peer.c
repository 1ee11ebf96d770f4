/* The Redis backend against a peer that the test plays itself: replies cut at every byte, stalls,
 * garbage, half frames, peers that are no Redis. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "redis_fixture.h"

#include "util/clock.h"

struct peer {
    int listener;
    int fd;
    int port;
    size_t n_read;
    char last[65536]; /* what was read last */
};

static void peer_listen(struct peer *peer)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int small = 4096;

    memset(peer, 0, sizeof *peer);
    peer->fd = -1;
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(peer->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(peer->listener, 8), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&addr, &len), 0);
    peer->port = ntohs(addr.sin_port);
}

static void peer_hang_up(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    peer->n_read = 0;
}

static void peer_done(struct peer *peer)
{
    peer_hang_up(peer);
    close(peer->listener);
}

static bool peer_accept(struct peer *peer)
{
    peer->fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return peer->fd >= 0;
}

/* Has anything that contains @word been read? */
static bool peer_heard(struct peer *peer, const char *word)
{
    ssize_t n = recv(peer->fd, peer->last + peer->n_read, sizeof peer->last - 1 - peer->n_read, 0);

    if (n > 0)
        peer->n_read += (size_t)n;
    peer->last[peer->n_read] = '\0';
    return strstr(peer->last, word) != NULL;
}

static bool peer_is_gone(struct peer *peer)
{
    char byte;
    ssize_t n = recv(peer->fd, &byte, 1, 0);

    return n == 0 || (n < 0 && errno != EAGAIN);
}

static void peer_say(struct peer *peer, const char *text)
{
    size_t len = strlen(text);

    peer->n_read = 0;
    assert_int_equal(send(peer->fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

#define SERVER_US 1764428521123456

/* +OK to SETNAME, then TIME, ROLE, INFO, INFO and the probe. */
static const char login_reply[] = "+OK\r\n*2\r\n$10\r\n1764428521\r\n$6\r\n123456\r\n"
                                  "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
                                  "$20\r\nredis_version:7.0.15\r\n"
                                  "$27\r\nmaxmemory_policy:noeviction\r\n"
                                  "*2\r\n:0\r\n:1764428521123456\r\n";

static void open_peer(struct fixture *fx, struct peer *peer)
{
    char url[64];

    peer_listen(peer);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", peer->port);
    fixture_open(fx, url);
}

static void log_in(struct fixture *fx, struct peer *peer)
{
    UNTIL(fx, peer_accept(peer));
    UNTIL(fx, peer_heard(peer, "probe"));
    peer_say(peer, login_reply);
    UNTIL(fx, fx->state == 0);
}

static void open_ready(struct fixture *fx, struct peer *peer)
{
    fixture_init(fx);
    fx->opts.command_ms = 200;
    fx->opts.connect_ms = 300;
    open_peer(fx, peer);
    log_in(fx, peer);
}

/* Submit an acquire and wait until the peer has it. */
static void ask(struct fixture *fx, struct peer *peer, struct call *call, struct pawli_key *key)
{
    pawli_backend_redis.submit(fx->node, &call_init(call, PAWLI_OP_ACQUIRE, key, ID1)->req);
    UNTIL(fx, peer_heard(peer, ID1));
    UNTIL(fx, peer_heard(peer, "host 12 345"));
}

static const char granted[] = "*5\r\n:0\r\n:1764428521123999\r\n:1764428521123999\r\n:1\r\n"
                              ":30000\r\n";

static void a_login_may_come_in_single_bytes(void **state)
{
    struct fixture fx;
    struct peer peer;

    (void)state;
    fixture_init(&fx);
    open_peer(&fx, &peer);
    UNTIL(&fx, peer_accept(&peer));
    UNTIL(&fx, peer_heard(&peer, "probe"));
    assert_null(strstr(peer.last, "AUTH"));
    for (const char *c = login_reply; *c != '\0'; c++) {
        assert_int_equal(fx.state, 1);
        assert_int_equal(send(peer.fd, c, 1, MSG_NOSIGNAL), 1);
        pawli_loop_run(fx.loop, 0);
    }
    UNTIL(&fx, fx.state == 0);
    fixture_done(&fx);
    peer_done(&peer);
}

static void an_answer_may_come_in_two_parts(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;

    (void)state;
    open_ready(&fx, &peer);
    for (size_t cut = 1; cut < sizeof granted - 1; cut++) {
        ask(&fx, &peer, &call, key);
        assert_int_equal(send(peer.fd, granted, cut, MSG_NOSIGNAL), (ssize_t)cut);
        turn(&fx);
        assert_false(call.done);
        peer_say(&peer, granted + cut);
        UNTIL(&fx, call.done);
        assert_int_equal(call.req.answer.code, 0);
        assert_int_equal(call.req.answer.token, 1764428521123999);
        assert_int_equal(call.req.server_us, 1764428521123999);
    }
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

static void a_cut_answer_is_unknown(void **state)
{
    struct pawli_key *key = key_of("k");

    (void)state;
    for (size_t cut = 0; cut < sizeof granted - 1; cut += 7) {
        struct fixture fx;
        struct peer peer;
        struct call call;

        open_ready(&fx, &peer);
        ask(&fx, &peer, &call, key);
        assert_int_equal(send(peer.fd, granted, cut, MSG_NOSIGNAL), (ssize_t)cut);
        peer_hang_up(&peer);
        UNTIL(&fx, call.done);
        assert_int_equal(call.req.answer.code, PAWL_EUNKNOWN);
        assert_int_equal(fx.state, PAWL_ECONNECT);
        fixture_done(&fx);
        peer_done(&peer);
    }
    pawli_key_unref(key);
}

static void a_late_answer_is_never_read(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;
    struct call other;
    int64_t asked_ns;

    (void)state;
    open_ready(&fx, &peer);
    asked_ns = pawli_loop_now_ns(fx.loop);
    ask(&fx, &peer, &call, key);
    UNTIL(&fx, call.done);
    assert_int_equal(call.req.answer.code, PAWL_EUNKNOWN);
    assert_in_range(pawli_loop_now_ns(fx.loop) - asked_ns, 190 * PAWLI_NS_PER_MS,
                    1000 * PAWLI_NS_PER_MS);
    UNTIL(&fx, peer_is_gone(&peer)); /* by RST: what comes now has nobody to read it */
    (void)send(peer.fd, granted, sizeof granted - 1, MSG_NOSIGNAL);
    peer_hang_up(&peer);
    log_in(&fx, &peer);
    ask(&fx, &peer, &other, key);
    peer_say(&peer, "*3\r\n:1\r\n:1764428521200000\r\n:500\r\n");
    UNTIL(&fx, other.done);
    assert_int_equal(other.req.answer.code, PAWL_BUSY);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

/* Each is an answer to an acquire that ends the connection; the request is unknown. */
static void malformed_answers_end_the_connection(void **state)
{
    static const char *const bad[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "+OK\r\n",
        "$-1\r\n",
        ":0\r\n",
        "*0\r\n",
        "*1\r\n:0\r\n",
        "*2\r\n:0\r\n:1\r\n",
        "*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n", /* token 0 */
        "*5\r\n:0\r\n:1\r\n:9007199254740992\r\n:1\r\n:1\r\n", /* token 2^53 */
        "*5\r\n:0\r\n:1\r\n:7\r\n:0\r\n:1\r\n", /* count 0 */
        "*5\r\n:0\r\n:1\r\n:7\r\n:1\r\n:-5\r\n", /* remaining below 0 */
        "*5\r\n:0\r\n:1\r\n$1\r\n7\r\n:1\r\n:5\r\n", /* text for a number */
        "*2\r\n:-77\r\n:1\r\n", /* no such code */
        "*3\r\n:-35\r\n:1\r\n:1\r\n", /* no text */
        "*1000000000\r\n",
        "*2147483647\r\n",
        "$2147483647\r\nxx",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    };
    struct pawli_key *key = key_of("k");

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fixture fx;
        struct peer peer;
        struct call call;

        open_ready(&fx, &peer);
        ask(&fx, &peer, &call, key);
        peer_say(&peer, bad[i]);
        UNTIL(&fx, call.done);
        if (call.req.answer.code != PAWL_EUNKNOWN || fx.state == 0)
            fail_msg("%s gave %d", bad[i], call.req.answer.code);
        fixture_done(&fx);
        peer_done(&peer);
    }
    pawli_key_unref(key);
}

static void a_reply_without_end_is_cut_off(void **state)
{
    static char flood[65536];
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;
    size_t sent = 0;

    (void)state;
    memset(flood, 'x', sizeof flood);
    open_ready(&fx, &peer);
    fx.opts.command_ms = 5000;
    ask(&fx, &peer, &call, key);
    peer_say(&peer, "$500000000\r\n");
    while (!call.done && sent < 20000000) {
        ssize_t n = send(peer.fd, flood, sizeof flood, MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        turn(&fx);
    }
    assert_true(call.done);
    assert_int_equal(fx.state, PAWL_EPROTOCOL);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

static void a_reply_to_nothing_ends_the_connection(void **state)
{
    struct fixture fx;
    struct peer peer;

    (void)state;
    open_ready(&fx, &peer);
    peer_say(&peer, "+OK\r\n");
    UNTIL(&fx, fx.state == PAWL_EPROTOCOL);
    fixture_done(&fx);
    peer_done(&peer);
}

static void half_a_frame_was_not_executed(void **state)
{
    struct pawli_key *key = NULL;
    struct fixture fx;
    struct peer peer;
    struct call call;
    size_t len = (size_t)16 * 1024 * 1024;
    char *value = calloc(1, len);
    char detail[64];

    (void)state;
    assert_int_equal(pawli_claim_key_new(NULL, "r", 1, detail, sizeof detail, &key), 0);
    open_ready(&fx, &peer);
    call_init(&call, PAWLI_OP_SET_IF, key, NULL);
    call.req.token = 7;
    call.req.value = value;
    call.req.value_len = len;
    pawli_backend_redis.submit(fx.node, &call.req);
    UNTIL(&fx, call.done);
    assert_int_equal(call.req.answer.code, PAWL_ECONNECT);
    free(value);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

static void late_is_tried_once_more(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;

    (void)state;
    open_ready(&fx, &peer);
    ask(&fx, &peer, &call, key);
    peer_say(&peer, "*2\r\n:-33\r\n:1764432121123456\r\n"); /* an hour ahead */
    UNTIL(&fx, peer_heard(&peer, "host 12 345"));
    assert_false(call.done);
    assert_in_range(fx.jump_ms, 3590000, 3601000);
    /* The new deadline is an hour later. */
    assert_non_null(strstr(peer.last, "\r\n17644321"));
    peer_say(&peer, "*2\r\n:-33\r\n:1764432121123456\r\n");
    UNTIL(&fx, call.done);
    assert_int_equal(call.req.answer.code, PAWL_ELATE);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

static void noscript_is_answered_with_the_text(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;

    (void)state;
    open_ready(&fx, &peer);
    ask(&fx, &peer, &call, key);
    assert_non_null(strstr(peer.last, "EVALSHA"));
    peer_say(&peer, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    UNTIL(&fx, peer_heard(&peer, "host 12 345"));
    assert_non_null(strstr(peer.last, "$4\r\nEVAL\r\n"));
    peer_say(&peer, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    UNTIL(&fx, call.done);
    assert_int_equal(call.req.answer.code, PAWL_ESERVER);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

static void readonly_drops_the_connection(void **state)
{
    static const char *const ways[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "*3\r\n:-35\r\n:1764428521123456\r\n$53\r\n"
        "READONLY You can't write against a read only replica.\r\n",
    };
    struct pawli_key *key = key_of("k");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture fx;
        struct peer peer;
        struct call call;

        open_ready(&fx, &peer);
        ask(&fx, &peer, &call, key);
        peer_say(&peer, ways[i]);
        UNTIL(&fx, call.done);
        assert_int_equal(call.req.answer.code, PAWL_EREADONLY);
        UNTIL(&fx, fx.state == PAWL_EREADONLY);
        peer_hang_up(&peer);
        UNTIL(&fx, peer_accept(&peer));
        UNTIL(&fx, peer_heard(&peer, "ROLE"));
        fixture_done(&fx);
        peer_done(&peer);
    }
    pawli_key_unref(key);
}

/* What a peer says instead of a login, and what comes of it. */
static void login_fails(const char *says, int result, const char *word)
{
    struct fixture fx;
    struct peer peer;
    struct call call;
    struct pawli_key *key = key_of("k");

    fixture_init(&fx);
    fx.opts.connect_ms = 200;
    open_peer(&fx, &peer);
    pawli_backend_redis.submit(fx.node, &call_init(&call, PAWLI_OP_INSPECT, key, NULL)->req);
    UNTIL(&fx, peer_accept(&peer));
    UNTIL(&fx, peer_heard(&peer, "probe"));
    if (says == NULL)
        peer_hang_up(&peer);
    else if (says[0] != '\0')
        peer_say(&peer, says);
    UNTIL(&fx, call.done);
    assert_int_equal(call.req.answer.code, result);
    assert_int_equal(fx.state, result);
    if (strstr(pawli_backend_redis.detail(fx.node), word) == NULL)
        fail_msg("no '%s' in: %s", word, pawli_backend_redis.detail(fx.node));
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

/* Where AUTH was renamed, the server repeats what it was given. */
static void a_refused_login_shows_no_password(void **state)
{
    static const char *const says[] = {
        "-ERR unknown command 'AUTH', with args beginning with: 'u' 'geheim' \r\n",
        "-ERR unknown command `AUTH`, with args beginning with: `u`, `geheim`, \r\n",
        "-ERR cannot do: AUTH u geheim\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fixture fx;
        struct peer peer;

        fixture_init(&fx);
        fx.opts.username = "u";
        fx.opts.password = "geheim";
        open_peer(&fx, &peer);
        UNTIL(&fx, peer_accept(&peer));
        UNTIL(&fx, peer_heard(&peer, "probe"));
        peer_say(&peer, says[i]);
        UNTIL(&fx, fx.state == PAWL_EAUTH);
        assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "ERR"));
        assert_null(strstr(pawli_backend_redis.detail(fx.node), "geheim"));
        fixture_done(&fx);
        peer_done(&peer);
    }
}

static void peers_that_are_no_redis(void **state)
{
    (void)state;
    login_fails("HTTP/1.1 400 Bad Request\r\n\r\n", PAWL_EPROTOCOL, "HTTP/1.1 400");
    login_fails("\x15\x03\x01", PAWL_EPROTOCOL, "rediss://");
    login_fails("", PAWL_ECONNECT, "not answered within 200 ms (if the port expects TLS");
    login_fails(NULL, PAWL_ECONNECT, "rediss://");
    login_fails("-ERR max number of clients reached\r\n", PAWL_ESERVER, "max number");
    login_fails("-NOAUTH Authentication required.\r\n", PAWL_ENOAUTH, "password");
    login_fails("-DENIED Redis is running in protected mode\r\n", PAWL_ENOPERM, "protected");
    login_fails("+OK\r\n+OK\r\n", PAWL_EPROTOCOL, "TIME");
    login_fails("+OK\r\n*2\r\n$10\r\n1764428521\r\n$1\r\n1\r\n*1\r\n$8\r\nsentinel\r\n",
                PAWL_EPROTOCOL, "Sentinel");
    login_fails("+OK\r\n*2\r\n$10\r\n1764428521\r\n$1\r\n1\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
                "$19\r\nredis_version:5.0.7\r\n",
                PAWL_EVERSION, "5.0.7");
}

static void a_port_where_nobody_listens(void **state)
{
    struct fixture fx;
    struct peer peer;
    char url[64];

    (void)state;
    peer_listen(&peer);
    peer_done(&peer);
    fixture_init(&fx);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", peer.port);
    fixture_open(&fx, url);
    UNTIL(&fx, fx.n_states > 1); /* and it goes on trying */
    assert_int_equal(fx.state, PAWL_ECONNECT);
    assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "refused"));
    fixture_done(&fx);
}

static void a_name_that_does_not_resolve(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    fixture_open(&fx, "redis://no-such-host.invalid");
    UNTIL(&fx, fx.n_states > 0);
    assert_int_equal(fx.state, PAWL_ERESOLVE);
    assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "no-such-host.invalid"));
    fixture_done(&fx);
}

static void a_node_may_close_while_a_name_is_looked_up(void **state)
{
    struct fixture fx;

    (void)state;
    for (int i = 0; i < 20; i++) {
        fixture_init(&fx);
        fixture_open(&fx, "redis://localhost:1");
        if (i % 2 == 1)
            pawli_loop_run(fx.loop, 0);
        fixture_done(&fx);
    }
}

static void a_waiting_request_can_be_withdrawn(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call;
    struct call sent;

    (void)state;
    fixture_init(&fx);
    open_peer(&fx, &peer);
    pawli_backend_redis.submit(fx.node, &call_init(&call, PAWLI_OP_ACQUIRE, key, ID2)->req);
    assert_true(pawli_backend_redis.withdraw(fx.node, &call.req));
    log_in(&fx, &peer);
    ask(&fx, &peer, &sent, key);
    assert_null(strstr(peer.last, ID2));
    assert_false(pawli_backend_redis.withdraw(fx.node, &sent.req));
    assert_false(call.done);
    fixture_done(&fx); /* closing answers what is on its way */
    assert_true(sent.done);
    assert_int_equal(sent.req.answer.code, PAWL_EUNKNOWN);
    pawli_key_unref(key);
    peer_done(&peer);
}

static void requests_of_one_turn_go_out_together(void **state)
{
    struct pawli_key *key = key_of("k");
    struct fixture fx;
    struct peer peer;
    struct call call[8];

    (void)state;
    open_ready(&fx, &peer);
    for (int i = 0; i < 8; i++)
        pawli_backend_redis.submit(fx.node, &call_init(&call[i], PAWLI_OP_ACQUIRE, key, ID1)->req);
    UNTIL(&fx, peer_heard(&peer, ID1));
    for (int i = 0; i < 8; i++)
        peer_say(&peer, i % 2 == 0 ? granted : "*3\r\n:1\r\n:1764428521200000\r\n:500\r\n");
    UNTIL(&fx, call[7].done);
    for (int i = 0; i < 8; i++)
        assert_int_equal(call[i].req.answer.code, i % 2 == 0 ? 0 : PAWL_BUSY);
    pawli_key_unref(key);
    fixture_done(&fx);
    peer_done(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_may_come_in_single_bytes),
        cmocka_unit_test(an_answer_may_come_in_two_parts),
        cmocka_unit_test(a_cut_answer_is_unknown),
        cmocka_unit_test(a_late_answer_is_never_read),
        cmocka_unit_test(malformed_answers_end_the_connection),
        cmocka_unit_test(a_reply_without_end_is_cut_off),
        cmocka_unit_test(a_reply_to_nothing_ends_the_connection),
        cmocka_unit_test(half_a_frame_was_not_executed),
        cmocka_unit_test(late_is_tried_once_more),
        cmocka_unit_test(noscript_is_answered_with_the_text),
        cmocka_unit_test(readonly_drops_the_connection),
        cmocka_unit_test(a_refused_login_shows_no_password),
        cmocka_unit_test(peers_that_are_no_redis),
        cmocka_unit_test(a_port_where_nobody_listens),
        cmocka_unit_test(a_name_that_does_not_resolve),
        cmocka_unit_test(a_node_may_close_while_a_name_is_looked_up),
        cmocka_unit_test(a_waiting_request_can_be_withdrawn),
        cmocka_unit_test(requests_of_one_turn_go_out_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
