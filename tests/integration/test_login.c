/* Getting in: passwords, rights, encryption; and clear words within the limit when it does not
 * work. */
#include "integration/harness.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define PASSWORD "correct horse"

/* Opens, waits at most 2 s and returns what it learned; within the time, with words. */
static int try_url(const char *url, const struct pawl_client_options *base)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    int64_t start_ms;
    int rc;

    if (base != NULL)
        opts = *base;
    opts.connect_ms = slack_ms(800);
    client = open_only(url, &opts);
    start_ms = now_ms();
    rc = pawl_client_ready(client, slack_ms(1000));
    assert_true(now_ms() - start_ms < slack_ms(1500));
    if (rc == 0)
        EXPECT_RESULT(give_back(take(client, "job", 1000, slack_ms(2000))), 0);
    else
        assert_true(strlen(pawl_error_detail()) > 0);
    pawl_client_close(client);
    return rc;
}

/* ---- passwords ---- */

static void password_comes_from_url_option_environment_or_file(void **state)
{
    struct server_options server_opts = { .password = PASSWORD };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    char url[256];
    char file[128];

    (void)state;
    opts.password = PASSWORD;
    EXPECT_RESULT(try_url(s->url, &opts), 0);
    opts.password = NULL;
    setenv("PAWL_TEST_SECRET", PASSWORD, 1);
    opts.password_env = "PAWL_TEST_SECRET";
    EXPECT_RESULT(try_url(s->url, &opts), 0);
    opts.password_env = NULL;
    snprintf(file, sizeof file, "%s/secret", s->dir);
    write_file(file, PASSWORD "\nsecond line\n");
    opts.password_file = file;
    EXPECT_RESULT(try_url(s->url, &opts), 0);
    write_file(file, PASSWORD);
    EXPECT_RESULT(try_url(s->url, &opts), 0);
    opts.password_file = NULL;
    snprintf(url, sizeof url, "redis+unix://:correct%%20horse@%s", s->socket);
    EXPECT_RESULT(try_url(url, NULL), 0);
    unsetenv("PAWL_TEST_SECRET");
    server_free(s);
}

static void password_that_cannot_be_read_is_told_at_open(void **state)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client = NULL;

    (void)state;
    opts.password_env = "PAWL_TEST_NOT_SET";
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_ESECRET);
    opts.password_env = NULL;
    opts.password_file = "/nonexistent/secret";
    EXPECT_RESULT(pawl_client_open("redis://localhost", &opts, &client), PAWL_ESECRET);
    assert_non_null(strstr(pawl_error_detail(), "/nonexistent/secret"));
    assert_null(client);
}

static void wrong_and_missing_password_are_told_apart(void **state)
{
    struct server_options server_opts = { .password = PASSWORD };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;

    (void)state;
    EXPECT_RESULT(try_url(s->url, NULL), PAWL_ENOAUTH);
    opts.password = "wrong";
    EXPECT_RESULT(try_url(s->url, &opts), PAWL_EAUTH);
    assert_null(strstr(pawl_error_detail(), "wrong"));
    assert_int_equal(pawl_result_class(PAWL_EAUTH), PAWL_CLASS_DENIED);
    client = open_only(s->url, &opts);
    EXPECT_RESULT(refuse(client, "job", 1000, 2000), PAWL_EAUTH);
    pawl_client_close(client);
    server_free(s);
}

/* A wrong password is no reason for a hot loop, and the right one is used once it is there. */
static void rotated_password_is_read_again(void **state)
{
    struct server_options server_opts = { .password = PASSWORD };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    char file[128];
    long long calls;

    (void)state;
    snprintf(file, sizeof file, "%s/secret", s->dir);
    write_file(file, PASSWORD "\n");
    opts.password_file = file;
    opts.name = "rotated";
    client = open_client(s->url, &opts);
    lock = take(client, "job", 6000, 0);
    server_do(s, "CONFIG SET requirepass new-secret");
    assert_int_equal(server_drop_clients(s, "rotated") > 0, 1);
    pause_ms(200);
    server_forget_calls(s);
    pause_ms(1000);
    calls = server_calls(s, "auth") + server_calls(s, "hello");
    assert_in_range(calls, 0, 25);
    write_file(file, "new-secret\n");
    EVENTUALLY(5000, pawl_client_ready(client, 0) == 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    pawl_client_close(client);
    server_free(s);
}

static void login_is_redone_after_a_restart(void **state)
{
    struct server_options server_opts = { .password = PASSWORD,
                                          .appendonly = true,
                                          .config = "appendfsync always" };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    char url[160];

    (void)state;
    opts.password = PASSWORD;
    snprintf(url, sizeof url, "%s?db=3", s->url);
    client = open_client(url, &opts);
    lock = take(client, "job", 3000, 0);
    server_restart(s);
    EVENTUALLY(5000, pawl_client_ready(client, 0) == 0);
    pause_ms(2500);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    assert_false(exists(s, "job")); /* in database 0 */
    server_do(s, "SELECT 3");
    assert_true(exists(s, "job"));
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    server_free(s);
}

/* ---- rights ---- */

#define ADMIN "user default on nopass ~* &* +@all\n"

static void restricted_user_with_the_documented_rights(void **state)
{
    struct server_options server_opts = {
        .acl = ADMIN "user app on >pw resetchannels &app:* ~app:* -@all +@scripting +@connection "
                     "+@read +@write +@pubsub +time +info +role\n"
    };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *a;
    struct pawl_client *b;
    struct pawl_lock *lock;

    (void)state;
    opts.username = "app";
    opts.password = "pw";
    opts.prefix = "app:";
    a = open_client(s->url, &opts);
    b = open_client(s->url, &opts);
    lock = take(a, "job", 900, 0);
    assert_true(exists(s, "app:job"));
    EXPECT_RESULT(refuse(b, "job", 900, 300), PAWL_TIMEOUT);
    pause_ms(900);
    EXPECT_RESULT(give_back(lock), 0);
    EXPECT_RESULT(give_back(take(b, "job", 900, 2000)), 0);
    pawl_client_close(a);
    pawl_client_close(b);
    opts.prefix = NULL; /* outside of its keys */
    EXPECT_RESULT(try_url(s->url, &opts), PAWL_ENOPERM);
    server_free(s);
}

/* What is missing is found at the start or at the acquire, never first at the release. */
static void missing_right_is_found_before_the_release(void **state)
{
    static const char *const missing[] = { "-hset",  "-pexpire", "-del",   "-hdel",
                                           "-hmget", "-evalsha", "-getset" };
    struct server_options server_opts = { .acl = ADMIN "user app on >pw ~* &* +@all\n" };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    (void)state;
    opts.username = "app";
    opts.password = "pw";
    for (size_t i = 0; i < N_OF(missing); i++) {
        struct pawl_client *client;
        struct pawl_lock *lock = NULL;
        struct pawl_lock_options lock_opts = lock_options(1000, 0);
        int rc;

        server_do(s, "ACL SETUSER app reset on >pw ~* &* +@all %s", missing[i]);
        client = open_only(s->url, &opts);
        rc = pawl_client_ready(client, slack_ms(2000));
        if (rc == 0)
            rc = pawl_lock_acquire(client, "job", 3, &lock_opts, &lock);
        if (rc == 0)
            rc = pawl_lock_release(lock);
        else
            assert_int_equal(pawl_result_class(rc), PAWL_CLASS_DENIED);
        print_message("%s: %s\n", missing[i], pawl_result_name(rc));
        assert_false(exists(s, "job"));
        pawl_lock_free(lock);
        pawl_client_close(client);
    }
    server_free(s);
}

static void refused_side_commands_do_not_matter(void **state)
{
    static const char *const refused[] = {
        "-client",
        "-config",
        "-info",
        "-role",
        "-client -config -info",
        "-subscribe -publish -psubscribe -@pubsub",
        "resetchannels",
        "-hello",
        "-script",
    };
    struct server_options server_opts = { .acl = ADMIN "user app on >pw ~* &* +@all\n" };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    (void)state;
    opts.username = "app";
    opts.password = "pw";
    for (size_t i = 0; i < N_OF(refused); i++) {
        struct pawl_client *a;
        struct pawl_client *b;
        struct pawl_lock *lock;
        char command[256]; /* hiredis splits the format, so the words go in one by one */

        snprintf(command, sizeof command, "ACL SETUSER app reset on >pw ~* &* +@all %s",
                 refused[i]);
        server_do(s, command);
        a = open_client(s->url, &opts);
        b = open_client(s->url, &opts);
        lock = take(a, "job", 900, 0);
        EXPECT_RESULT(refuse(b, "job", 900, 200), PAWL_TIMEOUT);
        pause_ms(500);
        EXPECT_RESULT(pawl_lock_check(lock), 0);
        EXPECT_RESULT(give_back(lock), 0);
        EXPECT_RESULT(give_back(take(b, "job", 900, 3000)), 0);
        pawl_client_close(a);
        pawl_client_close(b);
    }
    server_free(s);
}

static void forbidden_scripting_is_named(void **state)
{
    struct server_options server_opts = { .config = "rename-command EVAL \"\"\n"
                                                    "rename-command EVALSHA \"\"" };
    struct server *s = server_start(&server_opts);

    (void)state;
    EXPECT_RESULT(try_url(s->url, NULL), PAWL_ENOSCRIPTING);
    server_free(s);
}

/* ---- what else may stand at an address ---- */

static void replica_as_the_only_address_is_refused(void **state)
{
    struct server *s = *state;
    struct server_options opts = { .tcp = true };
    struct server *replica = server_start(&opts);

    server_do(replica, "REPLICAOF 127.0.0.1 %d", s->port);
    EXPECT_RESULT(try_url(replica->url, NULL), PAWL_EREPLICA);
    server_do(replica, "REPLICAOF NO ONE");
    EXPECT_RESULT(try_url(replica->url, NULL), 0);
    server_free(replica);
}

static void name_that_does_not_resolve_is_told(void **state)
{
    (void)state;
    EXPECT_RESULT(try_url("redis://no-such-host.invalid:6379", NULL), PAWL_ERESOLVE);
    assert_non_null(strstr(pawl_error_detail(), "no-such-host.invalid"));
}

static void *talk_nonsense(void *arg)
{
    int fd = accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

    if (fd >= 0 && write(fd, text, sizeof text - 1) < 0)
        return NULL;
    pause_ms(200);
    close(fd);
    return NULL;
}

static void other_protocol_is_told(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pawl_client *client;
    pthread_t thread;
    char url[64];

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    getsockname(fd, (struct sockaddr *)&address, &len);
    pthread_create(&thread, NULL, talk_nonsense, &fd);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    client = open_only(url, NULL);
    EVENTUALLY(3000, pawl_client_ready(client, 0) == PAWL_EPROTOCOL);
    pawl_client_close(client);
    pthread_join(thread, NULL);
    close(fd);
}

static void old_server_is_refused(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    relay_replace(relay, "redis_version:7", "redis_version:5");
    EXPECT_RESULT(try_url(relay_url(relay), NULL), PAWL_EVERSION);
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(password_comes_from_url_option_environment_or_file),
        cmocka_unit_test(password_that_cannot_be_read_is_told_at_open),
        cmocka_unit_test(wrong_and_missing_password_are_told_apart),
        cmocka_unit_test(rotated_password_is_read_again),
        cmocka_unit_test(login_is_redone_after_a_restart),
        cmocka_unit_test(restricted_user_with_the_documented_rights),
        cmocka_unit_test(missing_right_is_found_before_the_release),
        cmocka_unit_test(refused_side_commands_do_not_matter),
        cmocka_unit_test(forbidden_scripting_is_named),
        SERVED(replica_as_the_only_address_is_refused),
        cmocka_unit_test(name_that_does_not_resolve_is_told),
        cmocka_unit_test(other_protocol_is_told),
        SERVED(old_server_is_refused),
    };

    return RUN_SERVED(tests);
}
