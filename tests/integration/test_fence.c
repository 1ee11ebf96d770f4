/* Fencing: tokens rise through everything that happens to the store, and a resource that takes part
 * refuses the writer that woke up too late. */
#include "integration/harness.h"

static uint64_t next_token(struct pawl_client *client, const char *key)
{
    struct pawl_lock *lock = take(client, key, 1000, 2000);
    uint64_t token = pawl_lock_token(lock);

    EXPECT_RESULT(give_back(lock), 0);
    return token;
}

static void token_is_one_per_hold_and_rises_with_each(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_client *client;
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *outer;
    struct pawl_lock *inner;
    uint64_t token;

    opts.command_ms = 250;
    client = open_client(relay_url(relay), &opts);
    relay_hold_present(relay, RELAY_DOWN); /* so that the acquire is sent again */
    outer = take_as(client, "job", owner, 1500, slack_ms(5000));
    relay_pass_held(relay);
    token = pawl_lock_token(outer);
    assert_true(token > 0 && token < UINT64_C(1) << 53);
    assert_true((uint64_t)server_int(s, "HGET job @t") == token);
    inner = take_as(client, "job", owner, 1500, 0);
    assert_true(pawl_lock_token(inner) == token);
    EXPECT_RESULT(pawl_lock_extend(outer, 900), 0);
    pause_ms(800); /* renewed in between */
    assert_true(pawl_lock_token(outer) == token);
    assert_true((uint64_t)server_int(s, "HGET job @t") == token);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(give_back(outer), 0);
    assert_true(next_token(b, "job") > token);
    pawl_owner_free(owner);
    pawl_client_close(client);
    pawl_client_close(b);
    relay_free(relay);
}

static void tokens_rise_through_loss_of_all_data(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    uint64_t last = 0;

    for (int i = 0; i < 8; i++) {
        uint64_t token = next_token(i % 2 == 0 ? a : b, "job");

        assert_true(token > last);
        last = token;
        if (i == 2)
            server_do(s, "FLUSHALL");
        if (i == 4)
            server_do(s, "EVAL %s 0",
                      "for _, k in ipairs(redis.call('KEYS', 'pawl:f:*')) do "
                      "redis.call('DEL', k) end");
        if (i == 5)
            server_restart(s);
    }
    pawl_client_close(a);
    pawl_client_close(b);
}

/* One counter per slot, not per lock. */
static void counters_are_bounded(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    char key[32];

    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "{same}job%d", i);
        (void)next_token(client, key);
    }
    assert_int_equal(server_int(s, "DBSIZE"), 1);
    assert_int_equal(immortals(s), 0);
    pawl_client_close(client);
}

/* ---- the resource's side in Redis ---- */

static void stale_writer_is_refused(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(300, 0);
    struct pawl_lock *late;
    struct pawl_lock *next;
    char text[32];

    opts.flags = PAWL_NO_RENEW;
    late = take_with(a, "job", &opts);
    EXPECT_RESULT(pawl_fence_claim(late, "stock", 5), 0);
    EXPECT_RESULT(pawl_fence_set(late, "stock", 5, "10", 2), 0);
    next = take(b, "job", 20000, 5000);
    EXPECT_RESULT(pawl_fence_claim(next, "stock", 5), 0); /* before it reads */
    assert_string_equal(server_text(s, text, sizeof text, "GET stock"), "10");
    assert_true(pawl_is_lost(pawl_fence_set(late, "stock", 5, "99", 2)));
    EXPECT_RESULT(pawl_fence_set(next, "stock", 5, "9", 1), 0);
    assert_string_equal(server_text(s, text, sizeof text, "GET stock"), "9");
    pawl_lock_free(late);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

/* A writer that still believes in its lock: the resource knows better. */
static void newer_claim_makes_the_older_stale(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *old = take(a, "job", 20000, 0);
    struct pawl_lock *young;
    char text[32];

    EXPECT_RESULT(pawl_fence_claim(old, "stock", 5), 0);
    EXPECT_RESULT(pawl_fence_claim(old, "stock", 5), 0); /* may be repeated */
    server_do(s, "DEL job");                             /* A learns of it in 6 s */
    young = take(b, "job", 20000, 0);
    EXPECT_RESULT(pawl_lock_check(old), 0);
    EXPECT_RESULT(pawl_fence_set(old, "stock", 5, "1", 1), 0); /* not claimed by B yet */
    EXPECT_RESULT(pawl_fence_claim(young, "stock", 5), 0);
    EXPECT_RESULT(pawl_fence_set(old, "stock", 5, "2", 1), PAWL_STALE);
    EXPECT_RESULT(pawl_fence_claim(old, "stock", 5), PAWL_STALE);
    EXPECT_RESULT(pawl_fence_set(young, "stock", 5, "3\0x", 3), 0);
    assert_int_equal(server_int(s, "STRLEN stock"), 3);
    assert_string_equal(server_text(s, text, sizeof text, "GET stock"), "3");
    pawl_lock_free(old);
    EXPECT_RESULT(give_back(young), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void write_without_claim_is_stale(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 20000, 0);

    EXPECT_RESULT(pawl_fence_set(lock, "stock", 5, "1", 1), PAWL_STALE);
    assert_false(exists(s, "stock"));
    EXPECT_RESULT(pawl_fence_claim(lock, "", 0), PAWL_EKEY);
    EXPECT_RESULT(pawl_fence_set(lock, "stock", 5, NULL, 1), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_fence_claim(NULL, "stock", 5), PAWL_EUSAGE);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void released_lock_writes_nothing(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 20000, 0);

    EXPECT_RESULT(pawl_fence_claim(lock, "stock", 5), 0);
    EXPECT_RESULT(pawl_lock_release(lock), 0);
    EXPECT_RESULT(pawl_fence_set(lock, "stock", 5, "1", 1), PAWL_NOT_OWNER);
    assert_false(exists(s, "stock"));
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void statements_for_databases_are_there(void **state)
{
    (void)state;
    for (int dialect = 0; dialect < 2; dialect++)
        for (int statement = 0; statement < 3; statement++)
            assert_non_null(strstr(
                pawl_fence_sql((enum pawl_sql_dialect)dialect, (enum pawl_sql_statement)statement),
                "pawl_fence"));
    assert_null(pawl_fence_sql((enum pawl_sql_dialect)7, PAWL_SQL_TABLE));
    assert_null(pawl_fence_sql(PAWL_SQL_SQLITE, (enum pawl_sql_statement)7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(token_is_one_per_hold_and_rises_with_each),
        SERVED(tokens_rise_through_loss_of_all_data),
        SERVED(counters_are_bounded),
        SERVED(stale_writer_is_refused),
        SERVED(newer_claim_makes_the_older_stale),
        SERVED(write_without_claim_is_stale),
        SERVED(released_lock_writes_nothing),
        cmocka_unit_test(statements_for_databases_are_there),
    };

    return RUN_SERVED(tests);
}
