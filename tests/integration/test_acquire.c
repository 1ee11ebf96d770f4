/* Taking a lock: what lies in Redis, who is refused, how long a wait lasts, which names and numbers
 * are taken. */
#include "integration/harness.h"

/* ---- what a grant writes ---- */

static void grant_is_a_hash_of_owner_and_count_with_expiry(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner("order 7");
    struct pawl_lock *lock = take_as(client, "job", owner, 5000, 0);
    long long left_ms = pttl(s, "job");
    char text[64];

    assert_string_equal(server_text(s, text, sizeof text, "TYPE job"), "hash");
    assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), 1);
    assert_in_range(left_ms, 1, 5000);
    assert_int_equal(pawl_lock_check(lock), 0);
    assert_in_range(pawl_lock_remaining_ms(lock), 1, left_ms + 20);
    assert_int_equal(pawl_lock_count(lock), 1);
    assert_string_equal(pawl_lock_owner(lock), pawl_owner_text(owner));
    assert_true(pawl_lock_token(lock) > 0 && pawl_lock_token(lock) < UINT64_C(1) << 53);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    assert_int_equal(leftovers(s), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

/* Everything in one script: nothing can lie between setting a key and its expiry. */
static void acquire_and_release_are_one_command_each(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct monitor *m;

    EXPECT_RESULT(give_back(take(client, "warm", 5000, 0)), 0);
    m = monitor_start(s);
    EXPECT_RESULT(give_back(take(client, "job", 5000, 0)), 0);
    EVENTUALLY(2000, monitor_count(m, "EVALSHA") == 2);
    server_do(s, "PING mark");
    EVENTUALLY(2000, monitor_count(m, "\"mark\"") == 1);
    /* What scripts call is marked "lua"; the rest came over the wire: two calls and the mark. */
    assert_int_equal(monitor_count(m, NULL) - monitor_count(m, " lua]"), 3);
    monitor_stop(m);
    pawl_client_close(client);
}

static void every_cut_leaves_no_key_without_expiry(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    for (size_t n = 1; n < 1200; n += 61) {
        struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
        struct pawl_lock_options lock_opts = lock_options(400, 0);
        struct pawl_lock *lock = NULL;
        struct pawl_client *client;

        opts.connect_ms = 300;
        opts.command_ms = 100;
        client = open_only(relay_url(relay), &opts);
        relay_cut_after(relay, n % 2 == 0 ? RELAY_UP : RELAY_DOWN, n);
        (void)pawl_lock_acquire(client, "job", 3, &lock_opts, &lock);
        assert_int_not_equal(pttl(s, "job"), -1);
        pawl_lock_free(lock);
        assert_int_not_equal(pttl(s, "job"), -1);
        pawl_client_close(client);
    }
    EVENTUALLY(3000, !exists(s, "job"));
    assert_int_equal(immortals(s), 0); /* tombstones end by themselves */
    relay_free(relay);
}

/* ---- busy ---- */

static void held_lock_is_busy_for_others(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 5000, 0);
    int64_t start_ms = now_ms();

    EXPECT_RESULT(refuse(b, "job", 5000, 0), PAWL_BUSY);
    EXPECT_RESULT(refuse(a, "job", 5000, 0), PAWL_BUSY); /* another owner of the same client */
    assert_true(now_ms() - start_ms < slack_ms(1000));
    EXPECT_RESULT(give_back(lock), 0);
    EXPECT_RESULT(give_back(take(b, "job", 5000, 0)), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void wait_ends_at_its_limit(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 10000, 0);
    int64_t start_ms = now_ms();

    /* The lease is no limit of the wait: 60 s of lease, 400 ms of waiting. */
    EXPECT_RESULT(refuse(b, "job", 60000, 400), PAWL_TIMEOUT);
    assert_in_range(now_ms() - start_ms, 395, 400 + slack_ms(300));
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void *give_back_later(void *lock)
{
    pause_ms(1500);
    pawl_lock_free(lock);
    return NULL;
}

static void wait_may_be_longer_than_the_lease(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 600, 0); /* renewed */
    int64_t start_ms = now_ms();
    pthread_t thread;

    pthread_create(&thread, NULL, give_back_later, lock);
    lock = take(b, "job", 500, 15000);
    assert_in_range(now_ms() - start_ms, 1490, 1500 + slack_ms(1500));
    assert_in_range(pttl(s, "job"), 1, 500);
    pthread_join(thread, NULL);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void wait_for_ever_ends_with_the_grant(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 600, 0);
    pthread_t thread;

    pthread_create(&thread, NULL, give_back_later, lock);
    lock = take(a, "job", 500, PAWL_FOREVER);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    pthread_join(thread, NULL);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
}

static void only_the_stored_lease_counts(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 60000, 0);

    EXPECT_RESULT(refuse(b, "job", 100, 800), PAWL_TIMEOUT);
    assert_true(pttl(s, "job") > 50000);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

/* ---- holders of another make ---- */

static void string_lock_is_waited_for_and_never_overwritten(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock;
    int64_t start_ms;
    char text[64];

    server_do(s, "SET job stranger NX PX 700");
    start_ms = now_ms();
    EXPECT_RESULT(refuse(client, "job", 5000, 0), PAWL_BUSY);
    assert_string_equal(server_text(s, text, sizeof text, "GET job"), "stranger");
    lock = take(client, "job", 5000, 10000);
    assert_true(now_ms() - start_ms >= 600);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void hash_of_another_client_is_busy(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock;

    foreign_hash(s, "job", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", 600);
    EXPECT_RESULT(refuse(client, "job", 5000, 0), PAWL_BUSY);
    assert_int_equal(server_int(s, "HLEN job"), 1);
    lock = take(client, "job", 5000, 10000);
    assert_int_equal(server_int(s, "HEXISTS job 8743c9c0-0795-4907-87fd-6c719a6b4586:1"), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void key_that_is_no_lock_is_an_error_at_once(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    int64_t start_ms = now_ms();

    server_do(s, "RPUSH job x");
    EXPECT_RESULT(refuse(client, "job", 5000, 5000), PAWL_EWRONGTYPE);
    assert_true(now_ms() - start_ms < slack_ms(2000));
    assert_int_equal(server_int(s, "LLEN job"), 1);
    assert_true(strlen(pawl_error_detail()) > 0);
    pawl_client_close(client);
}

/* ---- names and numbers ---- */

static void any_bytes_are_a_name(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } names[] = {
        { "a b", 3 },
        { "tab\there", 8 },
        { "cr\r\nlf", 6 },
        { "\"quoted\"", 8 },
        { "%s %n %b", 8 },
        { "{}", 2 },
        { "a}b", 3 },
        { "{}x", 3 },
        { "x{y}z", 5 },
        { "}", 1 },
        { "a{b}c}", 6 },
        { "{a}{b}", 6 },
        { "$(id)", 5 },
        { "a/../b", 6 },
        { "%2e", 3 },
        { "\xf0\x9f\x94\x92", 4 },
        { "e\xcc\x81", 3 },
        { "\xff\xfe", 2 },
        { "nul\0byte", 8 },
        { "\0", 1 },
        { "x", 1 },
        { "@x", 2 },
        { "*1\r\n$8\r\nFLUSHALL\r\n", 18 },
    };
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);

    server_do(s, "SET canary 1");
    for (size_t i = 0; i < N_OF(names); i++) {
        struct pawl_lock_options opts = lock_options(5000, 0);
        struct pawl_lock *lock = NULL;
        size_t len = 0;

        EXPECT_RESULT(pawl_lock_acquire(client, names[i].bytes, names[i].len, &opts, &lock), 0);
        assert_int_equal(server_int(s, "EXISTS %b", names[i].bytes, names[i].len), 1);
        assert_memory_equal(pawl_lock_key(lock, &len), names[i].bytes, names[i].len);
        assert_int_equal(len, names[i].len);
        EXPECT_RESULT(give_back(lock), 0);
    }
    assert_true(exists(s, "canary"));
    assert_int_equal(leftovers(s), 1);
    pawl_client_close(client);
}

static void names_that_cannot_be_are_refused_before_sending(void **state)
{
    static char longest[PAWL_KEY_MAX + 1];
    struct server *s = *state;
    struct pawl_client_options client_opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(5000, 0);
    struct pawl_lock *lock = NULL;
    char *huge = calloc(1, 10 << 20);

    memset(longest, 'k', sizeof longest);
    EXPECT_RESULT(pawl_lock_acquire(client, longest, PAWL_KEY_MAX, &opts, &lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    server_forget_calls(s);
    EXPECT_RESULT(pawl_lock_acquire(client, longest, PAWL_KEY_MAX + 1, &opts, &lock), PAWL_EKEY);
    EXPECT_RESULT(pawl_lock_acquire(client, huge, 10 << 20, &opts, &lock), PAWL_EKEY);
    EXPECT_RESULT(pawl_lock_acquire(client, "", 0, &opts, &lock), PAWL_EKEY);
    EXPECT_RESULT(pawl_lock_acquire(client, "pawl:x", 6, &opts, &lock), PAWL_EKEY);
    assert_int_equal(server_calls(s, "evalsha"), 0);
    pawl_client_close(client);
    client_opts.prefix = "app:";
    client = open_client(s->url, &client_opts);
    EXPECT_RESULT(pawl_lock_acquire(client, longest, PAWL_KEY_MAX - 3, &opts, &lock), PAWL_EKEY);
    lock = take(client, "job", 5000, 0);
    assert_true(exists(s, "app:job"));
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    free(huge);
}

static void lease_is_exact_to_the_millisecond(void **state)
{
    static const int64_t good[] = { 100, 500, 999, 1500, 3600000 };
    static const int64_t bad[] = { 0, -1, 1, 10, 99, 3600001, INT64_MAX, INT64_MIN + 1 };
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct monitor *m;

    for (size_t i = 0; i < N_OF(good); i++) {
        struct pawl_lock_options opts = lock_options(good[i], 0);
        struct pawl_lock *lock;

        opts.max_hold_ms = PAWL_UNLIMITED;
        opts.flags = PAWL_NO_RENEW;
        lock = take_with(client, "job", &opts);
        assert_in_range(pttl(s, "job"), good[i] > 400 ? good[i] - 400 : 1, good[i]);
        pawl_lock_free(lock);
        EVENTUALLY(2000, !exists(s, "job"));
    }
    m = monitor_start(s);
    for (size_t i = 0; i < N_OF(bad); i++) {
        EXPECT_RESULT(refuse(client, "job", bad[i], 0), PAWL_ERANGE);
        assert_non_null(strstr(pawl_error_detail(), "lease_ms"));
    }
    assert_int_equal(monitor_count(m, "EVALSHA"), 0);
    monitor_stop(m);
    pawl_client_close(client);
}

static void numbers_out_of_range_name_the_rule(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(5000, 0);
    struct pawl_lock *lock = NULL;

    EXPECT_RESULT(refuse(client, "job", 5000, -2), PAWL_ERANGE);
    assert_non_null(strstr(pawl_error_detail(), "wait_ms"));
    EXPECT_RESULT(refuse(client, "job", 5000, INT64_C(604800001)), PAWL_ERANGE);
    opts.max_hold_ms = 4999; /* shorter than the lease */
    EXPECT_RESULT(pawl_lock_acquire(client, "job", 3, &opts, &lock), PAWL_ERANGE);
    assert_non_null(strstr(pawl_error_detail(), "max_hold_ms"));
    opts = lock_options(5000, 0);
    opts.grace_ms = 60001;
    EXPECT_RESULT(pawl_lock_acquire(client, "job", 3, &opts, &lock), PAWL_ERANGE);
    opts = lock_options(5000, 0);
    opts.flags = 0x80;
    EXPECT_RESULT(pawl_lock_acquire(client, "job", 3, &opts, &lock), PAWL_EUSAGE);
    opts = lock_options(5000, 0);
    opts.size = 3;
    EXPECT_RESULT(pawl_lock_acquire(client, "job", 3, &opts, &lock), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_lock_acquire(client, NULL, 3, NULL, &lock), PAWL_EKEY);
    EXPECT_RESULT(pawl_lock_acquire(client, "job", 3, NULL, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_lock_acquire(NULL, "job", 3, NULL, &lock), PAWL_EUSAGE);
    assert_null(lock);
    assert_int_equal(leftovers(s), 0);
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(grant_is_a_hash_of_owner_and_count_with_expiry),
        SERVED(acquire_and_release_are_one_command_each),
        SERVED(every_cut_leaves_no_key_without_expiry),
        SERVED(held_lock_is_busy_for_others),
        SERVED(wait_ends_at_its_limit),
        SERVED(wait_may_be_longer_than_the_lease),
        SERVED(wait_for_ever_ends_with_the_grant),
        SERVED(only_the_stored_lease_counts),
        SERVED(string_lock_is_waited_for_and_never_overwritten),
        SERVED(hash_of_another_client_is_busy),
        SERVED(key_that_is_no_lock_is_an_error_at_once),
        SERVED(any_bytes_are_a_name),
        SERVED(names_that_cannot_be_are_refused_before_sending),
        SERVED(lease_is_exact_to_the_millisecond),
        SERVED(numbers_out_of_range_name_the_rule),
    };

    return RUN_SERVED(tests);
}
