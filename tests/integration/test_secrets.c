/* Passwords and hold ids appear nowhere: not in logs, details, process lists or what operators
 * see. */
#include "integration/harness.h"

#define MARK "xyzzy-MARK-4711"

static void expect_none(const char *where, const char *text, size_t len, const char *secret)
{
    if (memmem(text, len, secret, strlen(secret)) != NULL)
        fail_msg("%s shows a secret", where);
}

static void expect_hidden(struct book *book, const char *secret)
{
    char *line;
    size_t len = 0;

    pthread_mutex_lock(&book->mu);
    expect_none("the log", book->text, book->len, secret);
    pthread_mutex_unlock(&book->mu);
    expect_none("the detail", pawl_error_detail(), strlen(pawl_error_detail()), secret);
    line = read_file("/proc/self/cmdline", &len);
    expect_none("cmdline", line, len, secret);
    free(line);
}

static void passwords_are_never_told(void **state)
{
    static struct book book;
    struct server_options server_opts = { .password = MARK };
    struct server *s = server_start(&server_opts);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client = NULL;
    char url[256];

    (void)state;
    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    opts.log_level = PAWL_LOG_DEBUG;
    opts.name = "secretive";
    snprintf(url, sizeof url, "redis+unix://:%s@%s", MARK, s->socket);
    client = open_client(url, &opts); /* right */
    EXPECT_RESULT(give_back(take(client, "job", 1000, 0)), 0);
    expect_hidden(&book, MARK);
    server_do(s, "CONFIG SET requirepass other"); /* and now wrong */
    assert_true(server_drop_clients(s, "secretive") > 0);
    EVENTUALLY(5000, pawl_client_ready(client, 0) == PAWL_EAUTH);
    expect_hidden(&book, MARK);
    pawl_client_close(client);
    assert_true(book.len > 0);
    server_free(s);
}

/* What is wrong is explained without being repeated. */
static void malformed_urls_are_not_repeated(void **state)
{
    static const char *const urls[] = {
        "redis://user:" MARK "@host:99999", MARK "://host",
        "redis://user:%zz" MARK "@host",    "redis://:" MARK "@",
        "redis://:" MARK "@host/x",         "redis+unix://:" MARK "@",
        "rediss://:" MARK "@[::1",
    };
    static struct book book;
    struct pawl_client *client = NULL;

    (void)state;
    book_init(&book);
    for (size_t i = 0; i < N_OF(urls); i++) {
        EXPECT_RESULT(pawl_client_open(urls[i], NULL, &client), PAWL_EURL);
        expect_hidden(&book, MARK);
    }
}

static void password_of_a_helper_is_not_in_its_command_line(void **state)
{
    struct server_options server_opts = { .password = MARK };
    struct server *s = server_start(&server_opts);
    struct child *holder = holder_start(s->url, "HOLDER_PASSWORD=" MARK);
    char path[64];
    char *line;
    size_t len = 0;

    (void)state;
    child_expect(holder, "open PAWL_OK", 5000);
    child_say(holder, "take job 5000 2000\n");
    child_expect(holder, "took PAWL_OK", 5000);
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)holder->pid);
    line = read_file(path, &len);
    assert_true(len > 0);
    expect_none("cmdline", line, len, MARK);
    free(line);
    assert_int_equal(child_end(holder, 5000), 0);
    child_free(holder);
    server_free(s);
}

/* The hold id of a lock: the field that begins with @h. */
static char *hold_id(struct server *s, const char *key)
{
    redisReply *r = server_ask(s, "HKEYS %s", key);
    char *id = NULL;

    for (size_t i = 0; i < r->elements && id == NULL; i++)
        if (strncmp(r->element[i]->str, "@h", 2) == 0)
            id = strdup(r->element[i]->str + 2);
    freeReplyObject(r);
    assert_non_null(id);
    assert_int_equal(strlen(id), 32);
    return id;
}

static void hold_ids_are_never_told(void **state)
{
    static struct book book;
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_lock_info *info = NULL;
    struct pawl_client *client;
    struct pawl_lock *lock;
    char *id;

    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    opts.log_level = PAWL_LOG_DEBUG;
    client = open_client(s->url, &opts);
    lock = take(client, "job", 600, 0);
    id = hold_id(s, "job");
    EXPECT_RESULT(pawl_inspect(client, "job", 3, &info), 0);
    assert_null(strstr(info->owner, id));
    assert_null(strstr(info->host, id));
    assert_null(strstr(info->boot_id, id));
    pawl_lock_info_free(info);
    assert_null(strstr(pawl_lock_owner(lock), id));
    /* So that there is something to search. */
    EVENTUALLY(3000, book_has(&book, "renewal of \"job\""));
    server_do(s, "DEL job");
    EVENTUALLY(3000, pawl_lock_check(lock) == PAWL_LOST_TAKEN);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_TAKEN);
    server_kill(s);
    (void)refuse(client, "job", 1000, 300);
    expect_hidden(&book, id);
    pawl_client_close(client);
    expect_hidden(&book, id);
    free(id);
}

/* A log line stays one line, whatever the name. */
static void names_are_escaped_in_logs(void **state)
{
    static struct book book;
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_lock_options lock_opts = lock_options(300, 0);
    struct pawl_client *client;
    struct pawl_lock *lock = NULL;

    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    opts.log_level = PAWL_LOG_DEBUG;
    client = open_client(s->url, &opts);
    EXPECT_RESULT(pawl_lock_acquire(client, "job\nE forged\x1b[2J", 16, &lock_opts, &lock), 0);
    EVENTUALLY(3000, book_has(&book, "renewal of"));
    pawl_lock_free(lock);
    pawl_client_close(client);
    assert_false(book_has(&book, "\nE forged"));
    assert_false(book_has(&book, "\x1b"));
}

static void each_failed_renewal_is_one_line(void **state)
{
    static struct book book;
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client;
    struct pawl_lock *lock;

    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    client = open_client(relay_url(relay), &opts);
    lock = take(client, "job", 1500, 0);
    relay_answer(relay, "EVAL", "-LOADING Redis is loading the dataset in memory\r\n", 1);
    EVENTUALLY(3000, book_has(&book, "renewal of"));
    assert_true(book_has(&book, "ms left")); /* what is left of the lease */
    assert_true(book_has(&book, "failed"));
    pause_ms(1500);
    assert_int_equal(book_count(&book, "renewal of"), 1);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_never_told),
        cmocka_unit_test(malformed_urls_are_not_repeated),
        cmocka_unit_test(password_of_a_helper_is_not_in_its_command_line),
        SERVED(hold_ids_are_never_told),
        SERVED(names_are_escaped_in_logs),
        SERVED(each_failed_renewal_is_one_line),
    };

    return RUN_SERVED(tests);
}
