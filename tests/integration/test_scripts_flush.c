/* The server forgets scripts or evicts keys, and after all of it nothing may be left: callers see
 * nothing of it, or are told. */
#include "integration/harness.h"

static void flush_is_seen_by_nobody(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock_info *info = NULL;
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *lock;
    struct pawl_lock *inner;

    for (int i = 0; i < 3; i++) {
        server_do(s, "SCRIPT FLUSH");
        lock = take_as(client, "job", owner, 20000, 0);
        assert_int_equal(pawl_lock_count(lock), 1);
        server_do(s, "SCRIPT FLUSH");
        inner = take_as(client, "job", owner, 20000, 0);
        assert_int_equal(pawl_lock_count(inner), 2);
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(refuse(b, "job", 1000, 0), PAWL_BUSY);
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(pawl_inspect(client, "job", 3, &info), 0);
        pawl_lock_info_free(info);
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(pawl_lock_extend(lock, 10000), 0);
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(pawl_fence_claim(lock, "r", 1), 0);
        EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(give_back(lock), 0);
        assert_false(exists(s, "job"));
        server_do(s, "SCRIPT FLUSH");
        EXPECT_RESULT(pawl_force_release(client, "job", 3, 0, 0), PAWL_FREE);
    }
    pawl_owner_free(owner);
    pawl_client_close(client);
    pawl_client_close(b);
}

static void waiter_is_served_though_the_release_was_forgotten(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    struct pawl_lock_options opts = lock_options(5000, 20000);
    struct done done = { 0 };
    int64_t start_ms;

    EXPECT_RESULT(pawl_lock_acquire_async(b, "job", 3, &opts, on_acquired, &done, NULL), 0);
    dispatch_for(b, 300);
    server_do(s, "SCRIPT FLUSH");
    start_ms = now_ms();
    EXPECT_RESULT(give_back(lock), 0);
    await_done(b, &done, 5000);
    EXPECT_RESULT(done.result, 0);
    assert_true(now_ms() - start_ms < slack_ms(2000));
    EXPECT_RESULT(give_back(done.lock), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void renewal_is_never_skipped_for_a_flush(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 900, 0);

    for (int i = 0; i < 10; i++) {
        server_do(s, "SCRIPT FLUSH");
        pause_ms(150);
        assert_true(pttl(s, "job") > 200);
    }
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

/* The acquire meets NOSCRIPT and must be sent again; its cancel must not overtake it. */
static void flush_between_an_acquire_and_its_cancel(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_client(relay_url(relay), NULL);

    for (int i = 0; i < 20; i++) {
        struct pawl_lock_options opts = lock_options(30000, 5000);
        struct done done = { 0 };
        uint64_t id;

        server_do(s, "SCRIPT FLUSH");
        relay_hold(relay, RELAY_DOWN, i % 2 == 0);
        EXPECT_RESULT(pawl_lock_acquire_async(client, "job", 3, &opts, on_acquired, &done, &id),
                      0);
        if (i % 4 < 2)
            pause_ms(20);
        if (pawl_cancel(client, id) != 0)
            assert_int_not_equal(i % 2, 0); /* while the answer was held back it was too early */
        relay_hold(relay, RELAY_DOWN, false);
        await_done(client, &done, 2000);
        pawl_lock_free(done.lock);
        EVENTUALLY(2000, !exists(s, "job"));
    }
    pause_ms(slack_ms(200)); /* a grant that was on its way may come yet, and is given back */
    ALWAYS(300, !exists(s, "job"));
    pawl_client_close(client);
    relay_free(relay);
}

/* ---- a cache that evicts ---- */

static void evicted_lock_is_told_and_the_policy_is_warned_of(void **state)
{
    static struct book book;
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct events events = EVENTS_INIT;
    struct pawl_lock_options lock_opts = lock_options(1500, 0);
    struct pawl_client *client;
    struct pawl_lock *lock;
    uint64_t token;

    server_do(s, "CONFIG SET maxmemory-policy allkeys-random");
    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    client = open_client(s->url, &opts);
    EVENTUALLY(2000, book_has(&book, "noeviction"));
    lock_opts.on_event = on_event;
    lock_opts.on_event_arg = &events;
    lock = take_with(client, "job", &lock_opts);
    token = pawl_lock_token(lock);
    server_do(s, "CONFIG SET maxmemory 1"); /* everything must go */
    EVENTUALLY(3000, server_int(s, "DBSIZE") == 0);
    server_do(s, "CONFIG SET maxmemory 0");
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_TAKEN);
    pawl_lock_free(lock);
    lock = take(client, "job", 1000, 0);
    assert_true(pawl_lock_token(lock) > token); /* though the counter was evicted as well */
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

/* ---- nothing is left ---- */

static void many_names_leave_only_counters(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 2000 : 200;
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    char key[32];

    for (int i = 0; i < rounds; i++) {
        struct pawl_lock_options opts = lock_options(5000, 5000);
        struct done done = { 0 };
        struct pawl_lock *lock;
        bool contended = i % 20 == 0;

        snprintf(key, sizeof key, "name%d", i);
        lock = take(a, key, 5000, 0);
        if (contended)
            EXPECT_RESULT(
                pawl_lock_acquire_async(b, key, strlen(key), &opts, on_acquired, &done, NULL), 0);
        EXPECT_RESULT(give_back(lock), 0);
        if (contended) {
            await_done(b, &done, 5000);
            EXPECT_RESULT(give_back(done.lock), 0);
        }
    }
    assert_int_equal(leftovers(s), 0);
    assert_true(server_int(s, "DBSIZE") <= 16384);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void crashed_waiters_leave_nothing_for_long(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    struct child *waiters[3];
    int64_t start_ms;

    for (int i = 0; i < 3; i++) {
        waiters[i] = holder_start(s->url, NULL);
        child_expect(waiters[i], "open PAWL_OK", 5000);
        child_say(waiters[i], "take job 20000 20000\n");
    }
    EVENTUALLY(5000, leftovers(s) == 2);
    pause_ms(300);
    for (int i = 0; i < 3; i++)
        child_free(waiters[i]); /* SIGKILL */
    EXPECT_RESULT(give_back(lock), 0);
    start_ms = now_ms();
    EXPECT_RESULT(give_back(take(a, "job", 1000, 20000)), 0);
    assert_true(now_ms() - start_ms < slack_ms(4000));
    assert_int_equal(immortals(s), 0);
    pawl_client_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(flush_is_seen_by_nobody),
        SERVED(waiter_is_served_though_the_release_was_forgotten),
        SERVED(renewal_is_never_skipped_for_a_flush),
        SERVED(flush_between_an_acquire_and_its_cancel),
        SERVED(evicted_lock_is_told_and_the_policy_is_warned_of),
        SERVED(many_names_leave_only_counters),
        SERVED(crashed_waiters_leave_nothing_for_long),
    };

    return RUN_SERVED(tests);
}
