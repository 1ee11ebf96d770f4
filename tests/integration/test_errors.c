/* Every kind of trouble has its own code, and "certainly not executed" is told apart from "may have
 * been". What no real server says on demand is said by the relay in its place. */
#include "integration/harness.h"

#include <sys/resource.h>

/* ---- what the server answers at the top level ---- */

static void refusals_have_their_own_codes(void **state)
{
    static const struct {
        const char *text;
        int result;
        enum pawl_class class;
    } rows[] = {
        { "-BUSY Redis is busy running a script.\r\n", PAWL_ESCRIPTBUSY, PAWL_CLASS_REFUSED },
        { "-LOADING Redis is loading the dataset in memory\r\n", PAWL_ELOADING,
          PAWL_CLASS_REFUSED },
        { "-OOM command not allowed when used memory > 'maxmemory'.\r\n", PAWL_EOOM,
          PAWL_CLASS_REFUSED },
        { "-MISCONF Redis is configured to save RDB snapshots\r\n", PAWL_EMISCONF,
          PAWL_CLASS_REFUSED },
        { "-READONLY You can't write against a read only replica.\r\n", PAWL_EREADONLY,
          PAWL_CLASS_REFUSED },
        { "-NOREPLICAS Not enough good replicas to write.\r\n", PAWL_ENOREPLICAS,
          PAWL_CLASS_REFUSED },
        { "-MOVED 3999 127.0.0.1:6381\r\n", PAWL_EMOVED, PAWL_CLASS_REFUSED },
        { "-ASK 3999 127.0.0.1:6381\r\n", PAWL_EASK, PAWL_CLASS_REFUSED },
        { "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", PAWL_ETRYAGAIN,
          PAWL_CLASS_REFUSED },
        { "-CLUSTERDOWN The cluster is down\r\n", PAWL_ECLUSTERDOWN, PAWL_CLASS_REFUSED },
        { "-MASTERDOWN Link with MASTER is down\r\n", PAWL_EMASTERDOWN, PAWL_CLASS_REFUSED },
        { "-ERR something new\r\n", PAWL_ESERVER, PAWL_CLASS_REFUSED },
        { "-NOAUTH Authentication required.\r\n", PAWL_ENOAUTH, PAWL_CLASS_DENIED },
        { "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", PAWL_ENOPERM,
          PAWL_CLASS_DENIED },
    };
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    for (size_t i = 0; i < N_OF(rows); i++) {
        struct pawl_client *client = open_client(relay_url(relay), NULL);
        int rc;

        relay_answer(relay, "EVAL", rows[i].text, 2);
        rc = refuse(client, "job", 1000, 0);
        relay_answer(relay, "EVAL", "", 0);
        EXPECT_RESULT(rc, rows[i].result);
        assert_int_equal(pawl_result_class(rc), rows[i].class);
        assert_int_equal(server_int(s, "EXISTS job"), 0);
        pawl_client_close(client);
    }
    relay_free(relay);
}

static void key_that_turns_into_something_else_ends_a_wait(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(10000, PAWL_FOREVER);
    struct pawl_lock *lock = take(client, "job", 30000, 0);
    struct done done = { 0 };

    EXPECT_RESULT(pawl_lock_acquire_async(client, "job", 3, &opts, on_acquired, &done, NULL), 0);
    EVENTUALLY(5000, (pawl_client_dispatch(client), server_int(s, "DBSIZE")) >= 3); /* it queues */
    server_do(s, "DEL job");
    server_do(s, "RPUSH job x");
    await_done(client, &done, 5000);
    EXPECT_RESULT(done.result, PAWL_EWRONGTYPE);
    server_do(s, "DEL job");
    pawl_lock_free(lock);
    pawl_client_close(client);
}

/* Passing trouble is sat out within the wait limit. */
static void refusals_are_retried_within_the_wait(void **state)
{
    static const char *const texts[] = {
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
    };
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    for (size_t i = 0; i < N_OF(texts); i++) {
        struct pawl_client *client = open_client(relay_url(relay), NULL);

        relay_answer(relay, "EVAL", texts[i], 2);
        EXPECT_RESULT(give_back(take(client, "job", 1000, slack_ms(5000))), 0);
        relay_answer(relay, "EVAL", "", 0);
        pawl_client_close(client);
    }
    relay_free(relay);
}

static void error_inside_a_script_is_unknown(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_client(relay_url(relay), NULL);
    int rc;

    relay_answer(relay, "EVAL",
                 "-OOM command not allowed when used memory > 'maxmemory'. script: "
                 "0123456789abcdef0123456789abcdef01234567, on @user_script:31.\r\n",
                 100);
    rc = pawl_force_release(client, "job", 3, 0, 0);
    EXPECT_RESULT(rc, PAWL_ESCRIPT);
    assert_int_equal(pawl_result_class(rc), PAWL_CLASS_UNKNOWN);
    rc =
        refuse(client, "job", 1000, 300); /* tried again, until the limit: then unknown for good */
    relay_answer(relay, "EVAL", "", 0);
    EXPECT_RESULT(rc, PAWL_EUNKNOWN);
    pawl_client_close(client);
    relay_free(relay);
}

/* A queue of ten thousand, nearly all of them made up. */
static void full_queue_is_told(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    struct pawl_lock_options opts = lock_options(1000, 20000);
    struct done done = { 0 };
    uint64_t id;

    EXPECT_RESULT(pawl_lock_acquire_async(a, "job", 3, &opts, on_acquired, &done, &id), 0);
    EVENTUALLY(2000, leftovers(s) == 2);
    server_do(s, "EVAL %s 0",
              "local q = redis.call('KEYS', 'pawl:q:*')[1] "
              "for i = 1, 10000 do redis.call('ZADD', q, i + 1, 'w' .. string.format('%032x', i) "
              ".. '\\nnobody\\n1000\\n0\\n0\\n0\\nowner\\nwho') end");
    EXPECT_RESULT(refuse(b, "job", 1000, 0), PAWL_BUSY); /* a single try does not queue */
    EXPECT_RESULT(refuse(b, "job", 1000, 400), PAWL_EQUEUEFULL);
    EXPECT_RESULT(pawl_cancel(a, id), 0);
    await_done(a, &done, 2000);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

/* Real ones, so that the texts above are no invention. */
static void replica_refusals_of_a_real_server(void **state)
{
    struct server_options opts = { .config = "min-replicas-to-write 1" };
    struct server *s = server_start(&opts);
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock;

    (void)state;
    EXPECT_RESULT(refuse(client, "job", 1000, 0), PAWL_ENOREPLICAS);
    server_do(s, "CONFIG SET min-replicas-to-write 0");
    lock = take(client, "job", 1500, slack_ms(5000));
    server_do(s, "REPLICAOF 127.0.0.1 1");
    EVENTUALLY(5000, pawl_is_lost(pawl_lock_check(lock)));
    server_do(s, "REPLICAOF NO ONE");
    EXPECT_RESULT(give_back(take(client, "job", 1000, slack_ms(10000))), 0);
    pawl_lock_free(lock);
    pawl_client_close(client);
    server_free(s);
}

static void cluster_without_slots_is_down(void **state)
{
    struct server_options opts = { .tcp = true, .config = "cluster-enabled yes" };
    struct server *s = server_start(&opts);
    struct pawl_client *client = open_only(s->url, NULL);

    (void)state;
    EXPECT_RESULT(refuse(client, "job", 1000, 0), PAWL_ECLUSTERDOWN);
    pawl_client_close(client);
    server_free(s);
}

static void loading_server_is_waited_for(void **state)
{
    struct server_options opts = { .appendonly = true,
                                   .loading = true,
                                   .config = "key-load-delay 1000\n"
                                             "loading-process-events-interval-bytes 1024" };
    struct server *s = server_start(&opts);
    struct pawl_client *client;
    int64_t start_ms;

    (void)state;
    EVENTUALLY(5000, server_int(s, "DBSIZE") == 0);
    server_do(s, "DEBUG POPULATE 5000");
    server_do(s, "BGREWRITEAOF");
    EVENTUALLY(20000, server_int(s, "EVAL %s 0",
                                 "return string.find(redis.call('INFO','persistence'), "
                                 "'aof_rewrite_in_progress:0') and 1 or 0") == 1);
    server_restart(s);
    client = open_only(s->url, NULL);
    start_ms = now_ms();
    EXPECT_RESULT(refuse(client, "job", 1000, 0), PAWL_ELOADING);
    EXPECT_RESULT(give_back(take(client, "job", 1000, 60000)), 0);
    assert_true(now_ms() - start_ms > 200);
    pawl_client_close(client);
    server_free(s);
}

/* ---- what this side finds ---- */

static void url_that_cannot_be_used_is_refused(void **state)
{
    static const char *const urls[] = {
        "",
        "localhost",
        "http://localhost",
        "redis://",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:x",
        "redis://host/-1",
        "redis://host/a",
        "redis+unix://",
        "redis://[::1",
        "redis://user@%zz",
        "redis://host/1?what=2",
        "rediss://",
    };
    struct pawl_client *client = NULL;

    (void)state;
    for (size_t i = 0; i < N_OF(urls); i++) {
        int rc = pawl_client_open(urls[i], NULL, &client);

        if (rc != PAWL_EURL)
            print_error("%s:\n", urls[i]);
        EXPECT_RESULT(rc, PAWL_EURL);
        assert_true(strlen(pawl_error_detail()) > 0);
    }
    EXPECT_RESULT(pawl_client_open(NULL, NULL, &client), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_client_open("redis://localhost", NULL, NULL), PAWL_EUSAGE);
    assert_null(client);
}

static void client_options_out_of_range_name_the_rule(void **state)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client = NULL;

    (void)state;
    opts.command_ms = 49;
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_ERANGE);
    assert_non_null(strstr(pawl_error_detail(), "command_ms"));
    opts = (struct pawl_client_options)PAWL_CLIENT_OPTIONS_INIT;
    opts.size = 1;
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_EUSAGE);
    opts = (struct pawl_client_options)PAWL_CLIENT_OPTIONS_INIT;
    opts.flags = 1u << 30;
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_EUSAGE);
    opts = (struct pawl_client_options)PAWL_CLIENT_OPTIONS_INIT;
    opts.prefix = "a{b";
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_EUSAGE);
    assert_null(client);
}

/* A malloc that cannot be had, without a fault injector: nobody has so much memory. */
static void memory_that_is_not_there_is_told(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);

    if (getenv("PAWL_SANITIZE") == NULL)
        EXPECT_RESULT(pawl_fence_set(lock, "r", 1, "x", PTRDIFF_MAX - 1), PAWL_ENOMEM);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void descriptors_that_are_not_there_are_told(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);
    struct pawl_client *none = NULL;
    struct rlimit before;
    struct rlimit few;
    int fd;
    int rc;

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &few);
    fd = pawl_lock_fd(lock);
    rc = pawl_client_open(s->url, NULL, &none);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_RESULT(fd, PAWL_ESYSTEM);
    EXPECT_RESULT(rc, PAWL_ESYSTEM);
    assert_null(none);
    assert_true(pawl_lock_fd(lock) >= 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void closed_client_answers_so(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);

    pawl_client_close(client);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_ECLOSED);
    EXPECT_RESULT(pawl_lock_release(lock), PAWL_ECLOSED);
    EXPECT_RESULT(pawl_lock_extend(lock, 1000), PAWL_ECLOSED);
    EXPECT_RESULT(pawl_lock_fd(lock), PAWL_ECLOSED);
    EXPECT_RESULT(pawl_fence_claim(lock, "r", 1), PAWL_ECLOSED);
    assert_int_equal(pawl_lock_remaining_ms(lock), 0);
    pawl_lock_free(lock);
    pawl_client_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(refusals_have_their_own_codes),
        SERVED(key_that_turns_into_something_else_ends_a_wait),
        SERVED(refusals_are_retried_within_the_wait),
        SERVED(error_inside_a_script_is_unknown),
        SERVED(full_queue_is_told),
        cmocka_unit_test(replica_refusals_of_a_real_server),
        cmocka_unit_test(cluster_without_slots_is_down),
        cmocka_unit_test(loading_server_is_waited_for),
        cmocka_unit_test(url_that_cannot_be_used_is_refused),
        cmocka_unit_test(client_options_out_of_range_name_the_rule),
        SERVED(memory_that_is_not_there_is_told),
        SERVED(descriptors_that_are_not_there_are_told),
        SERVED(closed_client_answers_so),
    };

    return RUN_SERVED(tests);
}
