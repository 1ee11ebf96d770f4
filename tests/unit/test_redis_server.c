/* The Redis backend against a real redis-server: unix socket, TCP, TLS, password, ACL user. */
#include <unistd.h>

#include "redis_fixture.h"

#include "lib/redis_server.h"

static struct redis_server server;

static int start_plain(void **state)
{
    (void)state;
    redis_server_start(&server, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

static void open_unix(struct fixture *fx)
{
    char url[160];

    (void)snprintf(url, sizeof url, "redis+unix://%s", server.socket);
    fixture_init(fx);
    fixture_open(fx, url);
}

static void a_lock_lives_its_life(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("life");
    struct pawli_renewal renewal = { .key = key, .lease_ms = 30000 };
    uint64_t token;

    (void)state;
    open_unix(&fx);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), 0);
    token = call.req.answer.token;
    assert_true(token > UINT64_C(1000000000000000));
    assert_int_equal(call.req.answer.count, 1);
    assert_int_equal(call.req.answer.pttl_ms, 30000);
    assert_true(call.req.server_us > 0 && call.req.sent_ns > 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID2)), 0);
    assert_int_equal(call.req.answer.count, 2);
    assert_int_equal(call.req.answer.token, token);

    call_init(&call, PAWLI_OP_RENEW, NULL, NULL);
    renewal.token = token;
    renewal.code = 99;
    call.req.renewals = &renewal;
    call.req.n_renewals = 1;
    assert_int_equal(call_run(&fx, &call), 0);
    assert_int_equal(renewal.code, 0);
    assert_int_equal(renewal.pttl_ms, 30000);
    call.done = false;
    renewal.token++;
    assert_int_equal(call_run(&fx, &call), 0);
    assert_int_equal(renewal.code, PAWL_LOST_TAKEN);

    call_init(&call, PAWLI_OP_ACQUIRE, key, ID3);
    call.req.owner = "ff112233445566778899aabbccddeeff";
    assert_int_equal(call_run(&fx, &call), PAWL_BUSY);
    assert_in_range(call.req.answer.pttl_ms, 20000, 30000);

    call_init(&call, PAWLI_OP_EXTEND, key, ID1);
    call.req.token = token;
    call.req.lease_ms = 60000;
    assert_int_equal(call_run(&fx, &call), 0);
    assert_int_equal(call.req.answer.pttl_ms, 60000);

    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_INSPECT, key, NULL)), 0);
    assert_string_equal(call.req.answer.info->owner, "00112233445566778899aabbccddeeff:u1");
    assert_int_equal(call.req.answer.info->count, 2);
    assert_string_equal(call.req.answer.info->host, "host");
    assert_int_equal(call.req.answer.info->pid, 12);
    assert_string_equal(call.req.answer.info->boot_id, "abcdef01");
    free(call.req.answer.info);

    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_RELEASE, key, ID2)), PAWL_STILL_HELD);
    assert_int_equal(call.req.answer.count, 1);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_RELEASE, key, ID1)), 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_RELEASE, key, ID1)), PAWL_NOT_OWNER);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_INSPECT, key, NULL)), PAWL_FREE);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void operators_and_owners_take_all_ids(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("all");

    (void)state;
    open_unix(&fx);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_FORCE, key, NULL)), 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID2)), PAWL_BUSY);
    call_init(&call, PAWLI_OP_FORCE, key, NULL);
    call.req.flags = PAWL_FORCE_NOW;
    assert_int_equal(call_run(&fx, &call), 0);
    call.done = false;
    assert_int_equal(call_run(&fx, &call), PAWL_FREE);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_resource_is_claimed_before_it_is_written(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = NULL;
    char detail[128];

    (void)state;
    assert_int_equal(pawli_claim_key_new(NULL, "res", 3, detail, sizeof detail, &key), 0);
    open_unix(&fx);
    call_init(&call, PAWLI_OP_SET_IF, key, NULL);
    call.req.token = 7;
    call.req.value = "v1";
    call.req.value_len = 2;
    assert_int_equal(call_run(&fx, &call), PAWL_STALE);
    call_init(&call, PAWLI_OP_CLAIM, key, NULL);
    call.req.token = 7;
    assert_int_equal(call_run(&fx, &call), 0);
    call_init(&call, PAWLI_OP_SET_IF, key, NULL);
    call.req.token = 7;
    call.req.value = "v1";
    call.req.value_len = 2;
    assert_int_equal(call_run(&fx, &call), 0);
    assert_string_equal(redis_server_command(&server, "STRLEN res"), ":2");
    call_init(&call, PAWLI_OP_CLAIM, key, NULL);
    call.req.token = 6;
    assert_int_equal(call_run(&fx, &call), PAWL_STALE);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_flushed_script_is_sent_again(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("flushed");

    (void)state;
    open_unix(&fx);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), 0);
    assert_string_equal(redis_server_command(&server, "SCRIPT FLUSH"), "+OK");
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_RELEASE, key, ID1)), 0);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_killed_connection_comes_back_at_once(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("killed");

    (void)state;
    open_unix(&fx);
    UNTIL(&fx, fx.state == 0);
    (void)redis_server_command(&server, "CLIENT KILL TYPE normal SKIPME yes");
    UNTIL(&fx, fx.n_states >= 3 && fx.state == 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_INSPECT, key, NULL)), PAWL_FREE);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_list_is_no_lock(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("list");

    (void)state;
    open_unix(&fx);
    (void)redis_server_command(&server, "RPUSH list a");
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), PAWL_EWRONGTYPE);
    assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "list"));
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_replica_names_its_master(void **state)
{
    struct fixture fx;

    (void)state;
    (void)redis_server_command(&server, "REPLICAOF 127.0.0.1 1");
    open_unix(&fx);
    UNTIL(&fx, fx.n_states > 0);
    assert_int_equal(fx.state, PAWL_EREPLICA);
    assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "\"127.0.0.1\" port 1"));
    fixture_done(&fx);
    (void)redis_server_command(&server, "REPLICAOF NO ONE");
}

/* ---- password and rights ---- */

static int start_acl(void **state)
{
    const char *const more[] = { "--port",      "%d",      "--maxmemory-policy",
                                 "allkeys-lru", "--user",  "default",
                                 "on",          ">geheim", "~*",
                                 "&*",          "+@all",   "--user",
                                 "locker",      "on",      ">pa@ss",
                                 "~app:*",      "+@all",   "-client",
                                 "-info",       "-role",   "-config",
                                 "--user",      "weak",    "on",
                                 ">weak",       "~*",      "+@all",
                                 "-pexpire",    "--user",  "mute",
                                 "on",          ">mute",   "~*",
                                 "+@all",       "-eval",   "-evalsha",
                                 NULL };

    (void)state;
    redis_server_start(&server, more);
    return 0;
}

static void open_as(struct fixture *fx, const char *user)
{
    char url[160];

    (void)snprintf(url, sizeof url, "redis://%s127.0.0.1:%d/0", user, server.port);
    fixture_open(fx, url);
    UNTIL(fx, fx->n_states > 0);
    assert_null(strstr(fx->log, "geheim"));
    assert_null(strstr(fx->log, "falsch"));
    assert_null(strstr(fx->log, "pa@ss"));
    assert_null(strstr(pawli_backend_redis.detail(fx->node), "falsch"));
}

static void passwords_are_told_apart(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    open_as(&fx, ":geheim@");
    assert_int_equal(fx.state, 0);
    assert_non_null(strstr(fx.log, "allkeys-lru"));
    fixture_done(&fx);
    fixture_init(&fx);
    open_as(&fx, ":falsch@");
    assert_int_equal(fx.state, PAWL_EAUTH);
    fixture_done(&fx);
    fixture_init(&fx);
    open_as(&fx, "");
    assert_int_equal(fx.state, PAWL_ENOAUTH);
    fixture_done(&fx);
}

static void a_server_that_refuses_extras_still_serves(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = NULL;
    char detail[128];

    (void)state;
    fixture_init(&fx);
    fx.opts.prefix = "app:";
    open_as(&fx, "locker:pa%40ss@");
    assert_int_equal(fx.state, 0);
    assert_non_null(strstr(fx.log, "CLIENT is refused"));
    assert_non_null(strstr(fx.log, "INFO is refused"));
    assert_int_equal(pawli_key_new("app:", "k", 1, detail, sizeof detail, &key), 0);
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), 0);
    pawli_key_unref(key);
    key = key_of("foreign");
    assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID2)), PAWL_ENOPERM);
    pawli_key_unref(key);
    fixture_done(&fx);
}

static void a_missing_right_shows_at_connect(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    open_as(&fx, "weak:weak@");
    assert_int_equal(fx.state, PAWL_ENOPERM);
    assert_non_null(strstr(pawli_backend_redis.detail(fx.node), "trying PEXPIRE"));
    fixture_done(&fx);
    fixture_init(&fx);
    open_as(&fx, "mute:mute@");
    assert_int_equal(fx.state, PAWL_ENOPERM);
    fixture_done(&fx);
}

static void a_password_file_is_read_at_each_connect(void **state)
{
    struct fixture fx;
    char file[96];
    FILE *out;

    (void)state;
    (void)snprintf(file, sizeof file, "%s/pw", server.dir);
    out = fopen(file, "w");
    assert_non_null(out);
    (void)fputs("falsch\n", out);
    (void)fclose(out);
    fixture_init(&fx);
    fx.opts.password_file = file;
    open_as(&fx, "");
    assert_int_equal(fx.state, PAWL_EAUTH);
    out = fopen(file, "w");
    assert_non_null(out);
    (void)fputs("geheim\n", out);
    (void)fclose(out);
    UNTIL(&fx, fx.state == 0);
    fixture_done(&fx);
}

/* ---- TLS ---- */

static char ca[128];
static char client_cert[128];
static char client_key[128];

static void sign(const char *name, const char *alt)
{
    char key[128];
    char cert[128];
    char ca_key[128];
    char subject[64];
    char more[96];
    const char *const argv[] = {
        "openssl", "req",   "-x509",  "-newkey", "ec",      "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes",  "-days", "2",      "-subj",   subject,   "-addext",  more,
        "-CA",     ca,      "-CAkey", ca_key,    "-keyout", key,        "-out",
        cert,      NULL
    };
    const char *const self[] = {
        "openssl", "req",   "-x509", "-newkey", "ec",    "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes",  "-days", "2",     "-subj",   subject, "-keyout",  key,
        "-out",    cert,    NULL
    };

    (void)snprintf(key, sizeof key, "%s/%s.key", server.dir, name);
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", server.dir, name);
    (void)snprintf(ca_key, sizeof ca_key, "%s/ca.key", server.dir);
    (void)snprintf(subject, sizeof subject, "/CN=%s", name);
    (void)snprintf(more, sizeof more, "subjectAltName=%s", alt == NULL ? "" : alt);
    run_program(alt == NULL ? self : argv);
}

static int start_tls(void **state)
{
    const char *const more[] = { "--tls-port",
                                 "%d",
                                 "--tls-ca-cert-file",
                                 "%s/ca.crt",
                                 "--tls-cert-file",
                                 "%s/server.crt",
                                 "--tls-key-file",
                                 "%s/server.key",
                                 NULL };

    (void)state;
    redis_server_folder(&server);
    (void)snprintf(ca, sizeof ca, "%s/ca.crt", server.dir);
    (void)snprintf(client_cert, sizeof client_cert, "%s/client.crt", server.dir);
    (void)snprintf(client_key, sizeof client_key, "%s/client.key", server.dir);
    sign("ca", NULL);
    sign("server", "DNS:localhost,IP:127.0.0.1");
    sign("client", "DNS:client");
    redis_server_start(&server, more);
    return 0;
}

static void open_tls(struct fixture *fx, const char *scheme, const char *host)
{
    char url[160];

    (void)snprintf(url, sizeof url, "%s://%s:%d", scheme, host, server.port);
    /* A handshake takes seconds under valgrind. */
    fx->opts.connect_ms = getenv("PAWL_SANITIZE") == NULL ? 1000 : 8000;
    fixture_open(fx, url);
    UNTIL(fx, fx->n_states > 0);
}

static void tls_with_everything_right(void **state)
{
    struct fixture fx;
    struct call call;
    struct pawli_key *key = key_of("tls");
    const char *const hosts[] = { "localhost", "127.0.0.1" };
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        fixture_init(&fx);
        fx.opts.ca_file = ca;
        fx.opts.cert_file = client_cert;
        fx.opts.key_file = client_key;
        open_tls(&fx, "rediss", hosts[i]);
        if (fx.state != 0)
            fail_msg("%s", fx.log);
        assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_ACQUIRE, key, ID1)), 0);
        assert_int_equal(call_run(&fx, call_init(&call, PAWLI_OP_RELEASE, key, ID1)), 0);
        fixture_done(&fx);
    }
    pawli_key_unref(key);
}

static void tls_fails(const char *ca_file, const char *server_name, bool with_cert,
                      const char *word)
{
    struct fixture fx;

    fixture_init(&fx);
    fx.opts.ca_file = ca_file;
    fx.opts.server_name = server_name;
    fx.opts.cert_file = with_cert ? client_cert : NULL;
    fx.opts.key_file = with_cert ? client_key : NULL;
    open_tls(&fx, "rediss", "localhost");
    assert_int_equal(fx.state, PAWL_ETLS);
    if (strstr(pawli_backend_redis.detail(fx.node), word) == NULL)
        fail_msg("no '%s' in: %s", word, pawli_backend_redis.detail(fx.node));
    fixture_done(&fx);
}

static void tls_says_what_is_wrong(void **state)
{
    (void)state;
    tls_fails(NULL, NULL, true, "certificate is refused");
    tls_fails(ca, "other.example", true, "ostname mismatch");
    tls_fails(ca, "10.0.0.1", true, "IP address mismatch");
    tls_fails(ca, NULL, false, "certificate"); /* by alert, or as a guess after a reset */
    tls_fails("/nonexistent/ca", NULL, true, "ca_file=/nonexistent/ca");
}

static void tls_unchecked_is_logged(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    fx.opts.flags = PAWL_TLS_INSECURE;
    fx.opts.cert_file = client_cert;
    fx.opts.key_file = client_key;
    open_tls(&fx, "rediss", "localhost");
    assert_int_equal(fx.state, 0);
    assert_non_null(strstr(fx.log, "not checked"));
    fixture_done(&fx);
}

static void plain_to_a_tls_port_hints(void **state)
{
    struct fixture fx;

    (void)state;
    fixture_init(&fx);
    open_tls(&fx, "redis", "127.0.0.1");
    assert_true(fx.state == PAWL_EPROTOCOL || fx.state == PAWL_ECONNECT);
    if (strstr(pawli_backend_redis.detail(fx.node), "rediss://") == NULL)
        fail_msg("%s", pawli_backend_redis.detail(fx.node));
    fixture_done(&fx);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_lock_lives_its_life),
        cmocka_unit_test(operators_and_owners_take_all_ids),
        cmocka_unit_test(a_resource_is_claimed_before_it_is_written),
        cmocka_unit_test(a_flushed_script_is_sent_again),
        cmocka_unit_test(a_killed_connection_comes_back_at_once),
        cmocka_unit_test(a_list_is_no_lock),
        cmocka_unit_test(a_replica_names_its_master),
    };
    const struct CMUnitTest acl[] = {
        cmocka_unit_test(passwords_are_told_apart),
        cmocka_unit_test(a_server_that_refuses_extras_still_serves),
        cmocka_unit_test(a_missing_right_shows_at_connect),
        cmocka_unit_test(a_password_file_is_read_at_each_connect),
    };
    const struct CMUnitTest tls[] = {
        cmocka_unit_test(tls_with_everything_right),
        cmocka_unit_test(tls_says_what_is_wrong),
        cmocka_unit_test(tls_unchecked_is_logged),
        cmocka_unit_test(plain_to_a_tls_port_hints),
    };
    int failed = cmocka_run_group_tests(plain, start_plain, stop);

    failed += cmocka_run_group_tests(acl, start_acl, stop);
    failed += cmocka_run_group_tests(tls, start_tls, stop);
    return failed;
}
