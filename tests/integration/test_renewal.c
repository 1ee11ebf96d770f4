/* The watchdog: keeps a lock while its work lives, survives passing trouble, ends with the
 * release, and never brings a key back. */
#include "integration/harness.h"

static struct pawl_lock *take_watched(struct pawl_client *client, const char *key,
                                      int64_t lease_ms, struct events *events)
{
    struct pawl_lock_options opts = lock_options(lease_ms, 0);

    opts.on_event = on_event;
    opts.on_event_arg = events;
    return take_with(client, key, &opts);
}

static uint64_t renewals(struct pawl_client *client)
{
    struct pawl_stats stats = { .size = sizeof stats };

    EXPECT_RESULT(pawl_client_stats(client, &stats), 0);
    return stats.renewals;
}

static void lock_lives_as_long_as_its_work(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 900, 0);
    long long lowest = 900;
    int64_t end_ms = now_ms() + 3000;

    while (now_ms() < end_ms) {
        long long left = pttl(s, "job");

        lowest = left < lowest ? left : lowest;
        EXPECT_RESULT(pawl_lock_check(lock), 0);
        pause_ms(20);
    }
    assert_true(lowest > 300); /* renewed every third, not at the last moment */
    assert_in_range(renewals(client), 7, 16);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void without_renewal_the_lease_is_the_end(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock_options opts = lock_options(500, 0);
    struct pawl_lock *lock;
    int64_t start_ms = now_ms();

    opts.flags = PAWL_NO_RENEW;
    opts.on_event = on_event;
    opts.on_event_arg = &events;
    lock = take_with(client, "job", &opts);
    EVENTUALLY(2000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_true(exists(s, "job") || now_ms() - start_ms >= 400); /* told before it can pass on */
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_EXPIRED);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_EXPIRED);
    assert_int_equal(renewals(client), 0);
    EVENTUALLY(2000, !exists(s, "job"));
    pawl_lock_free(lock);
    pawl_client_close(client);
}

/* ---- passing trouble ---- */

static void *loop_in_script(void *server)
{
    redisContext *c = server_connect(server);

    freeReplyObject(redisCommand(c, "EVAL %s 0", "while true do end"));
    redisFree(c);
    return NULL;
}

static void busy_script_does_not_end_renewal(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock *lock = take_watched(client, "job", 3000, &events);
    struct pawl_stats stats = { .size = sizeof stats };
    pthread_t thread;

    server_do(s, "CONFIG SET lua-time-limit 50");
    pthread_create(&thread, NULL, loop_in_script, s);
    pause_ms(1600); /* longer than a third of the lease, shorter than the lease */
    EXPECT_RESULT(refuse(client, "other", 1000, 0), PAWL_ESCRIPTBUSY);
    server_do(s, "SCRIPT KILL");
    pthread_join(thread, NULL);
    ALWAYS(3500, pttl(s, "job") > 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    assert_int_equal(events_count(&events, PAWL_EVENT_LOST), 0);
    EXPECT_RESULT(pawl_client_stats(client, &stats), 0);
    assert_true(stats.failed_renewals > 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void killed_connection_alone_is_no_loss(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct events events = EVENTS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;

    opts.name = "killed-alone";
    client = open_client(s->url, &opts);
    lock = take_watched(client, "job", 900, &events);
    for (int i = 0; i < 5; i++) {
        EVENTUALLY(3000, server_drop_clients(s, "killed-alone") > 0);
        pause_ms(300);
    }
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    assert_true(pttl(s, "job") > 0);
    assert_int_equal(events_count(&events, PAWL_EVENT_LOST), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void reconnect_does_not_hide_a_loss(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *b = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    struct pawl_lock *next;
    int64_t taken_ms;

    opts.name = "killed-deleted";
    client = open_client(s->url, &opts);
    lock = take_watched(client, "job", 1500, &events);
    assert_true(server_drop_clients(s, "killed-deleted") > 0);
    server_do(s, "DEL job");
    next = take(b, "job", 30000, 0);
    taken_ms = now_ms();
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_true(now_ms() - taken_ms < slack_ms(1500)); /* at its next renewal */
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_TAKEN);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_TAKEN);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    assert_true(pttl(s, "job") > 20000);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(client);
    pawl_client_close(b);
}

/* After an outage that cost the lock, the next one is renewed like the first. */
static void lock_after_a_loss_is_renewed(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_owner *owner = new_owner(NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock_options lock_opts = lock_options(600, 0);
    struct pawl_client *client;
    struct pawl_lock *lock;

    opts.command_ms = 200;
    opts.connect_ms = 200;
    client = open_client(relay_url(relay), &opts);
    lock_opts.owner = owner;
    lock_opts.on_event = on_event;
    lock_opts.on_event_arg = &events;
    lock = take_with(client, "job", &lock_opts);
    relay_drop(relay, RELAY_UP, true);
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_UNREACHABLE);
    relay_drop(relay, RELAY_UP, false);
    relay_break(relay);
    lock = take_as(client, "job", owner, 600, 10000);
    ALWAYS(2400, pttl(s, "job") > 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    assert_int_equal(events_count(&events, PAWL_EVENT_LOST), 1);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
    relay_free(relay);
}

/* ---- renewal that must end ---- */

static void no_key_and_no_renewal_after_ten_thousand_rounds(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 10000 : 500;
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct monitor *m;

    for (int i = 0; i < rounds; i++) {
        struct pawl_lock *lock = take(client, "round", 1000, 2000);

        if (i % 100 == 0)
            pause_ms(i / 100 % 3);
        if (i % 3 == 0)
            pawl_lock_free(lock);
        else
            EXPECT_RESULT(give_back(lock), 0);
    }
    EVENTUALLY(2000, !exists(s, "round"));
    m = monitor_start(s);
    ALWAYS(1200, monitor_count(m, "round") == 0);
    assert_int_equal(leftovers(s), 0);
    monitor_stop(m);
    pawl_client_close(client);
}

static void release_beside_a_renewal_in_flight_leaves_nothing(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 150 : 40;
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_client(relay_url(relay), NULL);
    struct monitor *m;
    unsigned seed = 7;

    relay_delay(relay, RELAY_UP, 0, 15);
    relay_delay(relay, RELAY_DOWN, 0, 15);
    for (int i = 0; i < rounds; i++) {
        struct pawl_lock *lock = take(client, "round", 100, 5000);

        pause_ms(20 + rand_r(&seed) % 30); /* around its first renewal */
        (void)give_back(lock);
    }
    relay_delay(relay, RELAY_UP, 0, 0);
    relay_delay(relay, RELAY_DOWN, 0, 0);
    EVENTUALLY(2000, !exists(s, "round"));
    m = monitor_start(s);
    pause_ms(400);
    if (monitor_count(m, "round") > 0)
        monitor_print(m);
    assert_int_equal(monitor_count(m, "round"), 0);
    assert_false(exists(s, "round"));
    monitor_stop(m);
    pawl_client_close(client);
    relay_free(relay);
}

static void deleted_key_stays_deleted(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock *lock = take_watched(client, "job", 600, &events);

    server_do(s, "DEL job");
    EVENTUALLY(2000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_TAKEN);
    ALWAYS(1800, !exists(s, "job"));
    assert_int_equal(events_count(&events, PAWL_EVENT_LOST), 1);
    pawl_lock_free(lock);
    EXPECT_RESULT(give_back(take(client, "job", 600, 0)), 0);
    pawl_client_close(client);
}

/* ---- odd states of the key ---- */

static void one_bad_key_of_a_batch_is_lost_alone(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events[9];
    struct pawl_lock *locks[9];
    char key[16];

    for (int i = 0; i < 9; i++) {
        events[i] = (struct events)EVENTS_INIT;
        snprintf(key, sizeof key, "job%d", i);
        locks[i] = take_watched(client, key, 900, &events[i]);
    }
    server_do(s, "SET job4 stranger");
    server_do(s, "DEL job7");
    server_do(s, "RPUSH job7 x");
    EVENTUALLY(3000, events_count(&events[4], PAWL_EVENT_LOST) == 1 &&
                         events_count(&events[7], PAWL_EVENT_LOST) == 1);
    pause_ms(1000);
    for (int i = 0; i < 9; i++) {
        bool bad = i == 4 || i == 7;

        EXPECT_RESULT(pawl_lock_check(locks[i]), bad ? PAWL_LOST_TAKEN : 0);
        EXPECT_RESULT(give_back(locks[i]), bad ? PAWL_LOST_TAKEN : 0);
        assert_int_equal(events[i].n[PAWL_EVENT_LOST], bad);
    }
    assert_int_equal(server_int(s, "STRLEN job4"), 8);
    assert_int_equal(server_int(s, "LLEN job7"), 1);
    pawl_client_close(client);
}

static void renewals_that_fall_due_together_are_few_commands(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *locks[200];
    long long calls;
    char key[16];

    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "job%d", i);
        locks[i] = take(client, key, 6000, 0);
    }
    server_forget_calls(s);
    EVENTUALLY(8000, renewals(client) >= 200);
    calls = server_calls(s, "evalsha") + server_calls(s, "eval");
    assert_in_range(calls, 1, 70);
    for (int i = 0; i < 200; i++)
        EXPECT_RESULT(give_back(locks[i]), 0);
    pawl_client_close(client);
}

static void lost_expiry_is_set_again(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_client *other = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 900, 0);

    server_do(s, "PERSIST job");
    EVENTUALLY(2000, pttl(s, "job") > 0);
    assert_true(pttl(s, "job") <= 900);
    /* A contender mends it too, when the holder is dead. */
    server_do(s, "HSET orphan 00000000000000000000000000000000 1 @l 800");
    (void)refuse(other, "orphan", 900, 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    pawl_client_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(lock_lives_as_long_as_its_work),
        SERVED(without_renewal_the_lease_is_the_end),
        SERVED(busy_script_does_not_end_renewal),
        SERVED(killed_connection_alone_is_no_loss),
        SERVED(reconnect_does_not_hide_a_loss),
        SERVED(lock_after_a_loss_is_renewed),
        SERVED(no_key_and_no_renewal_after_ten_thousand_rounds),
        SERVED(release_beside_a_renewal_in_flight_leaves_nothing),
        SERVED(deleted_key_stays_deleted),
        SERVED(one_bad_key_of_a_batch_is_lost_alone),
        SERVED(renewals_that_fall_due_together_are_few_commands),
        SERVED(lost_expiry_is_set_again),
    };

    return RUN_SERVED(tests);
}
