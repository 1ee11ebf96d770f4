/* Giving a lock back: once, late, twice, without an answer, and while the server refuses writes. */
#include "integration/harness.h"

#include <sys/stat.h>

static struct pawl_lock *take_unrenewed(struct pawl_client *client, const char *key,
                                        int64_t lease_ms)
{
    struct pawl_lock_options opts = lock_options(lease_ms, 0);

    opts.flags = PAWL_NO_RENEW;
    return take_with(client, key, &opts);
}

static void second_release_is_not_owner(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);

    EXPECT_RESULT(pawl_lock_release(lock), 0);
    EXPECT_RESULT(pawl_lock_release(lock), PAWL_NOT_OWNER);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_NOT_OWNER);
    EXPECT_RESULT(pawl_lock_extend(lock, 5000), PAWL_NOT_OWNER);
    assert_int_equal(pawl_lock_remaining_ms(lock), 0);
    pawl_lock_free(lock);
    pawl_lock_free(NULL);
    EXPECT_RESULT(pawl_lock_release(NULL), PAWL_EUSAGE);
    pawl_client_close(client);
}

/* The flash sale: work longer than the lease, then a release that hits somebody else's lock. */
static void late_release_leaves_the_next_holder_alone(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *late = take_unrenewed(a, "job", 400);
    struct pawl_lock *next = take(b, "job", 10000, 5000);

    EXPECT_RESULT(pawl_lock_check(late), PAWL_LOST_EXPIRED);
    EXPECT_RESULT(give_back(late), PAWL_LOST_EXPIRED);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    EXPECT_RESULT(refuse(a, "job", 1000, 0), PAWL_BUSY);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void late_release_asks_at_most_once_and_is_quick(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(300, PAWL_FOREVER);
    struct pawl_lock *lock;
    int64_t start_ms;

    opts.flags = PAWL_NO_RENEW;
    lock = take_with(client, "job", &opts);
    EVENTUALLY(2000, !exists(s, "job"));
    server_forget_calls(s);
    start_ms = now_ms();
    EXPECT_RESULT(pawl_lock_release(lock), PAWL_LOST_EXPIRED);
    assert_true(now_ms() - start_ms < slack_ms(300));
    ALWAYS(300, server_calls(s, "evalsha") <= 1);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

struct taker {
    struct pawl_client *client;
    int result;
};

static void *take_in_thread(void *arg)
{
    struct taker *t = arg;
    struct pawl_lock_options opts = lock_options(1000, 3000);
    struct pawl_lock *lock = NULL;

    t->result = pawl_lock_acquire(t->client, "job", 3, &opts, &lock);
    pawl_lock_free(lock);
    return NULL;
}

static void every_end_of_a_release_lets_other_threads_in(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);

    for (int stopped = 0; stopped < 2; stopped++) {
        struct pawl_lock *lock = take_unrenewed(client, "job", 400);
        struct taker taker = { client, -1 };
        pthread_t thread;
        int rc;

        if (stopped)
            server_kill(s);
        EVENTUALLY(2000, pawl_lock_check(lock) == PAWL_LOST_EXPIRED);
        rc = pawl_lock_release(lock);
        EXPECT_RESULT(rc, PAWL_LOST_EXPIRED);
        if (stopped)
            server_begin(s);
        pthread_create(&thread, NULL, take_in_thread, &taker);
        pthread_join(thread, NULL);
        EXPECT_RESULT(taker.result, 0);
        pawl_lock_free(lock);
    }
    pawl_client_close(client);
}

/* ---- no answer ---- */

static void release_without_answer_goes_on_behind(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    int64_t start_ms;
    int rc;

    opts.release_ms = 200;
    opts.command_ms = 400;
    client = open_client(s->url, &opts);
    lock = take(client, "job", 20000, 0);
    server_pause(s);
    start_ms = now_ms();
    rc = pawl_lock_release(lock);
    assert_true(now_ms() - start_ms < 200 + slack_ms(400));
    assert_int_equal(pawl_result_class(rc), PAWL_CLASS_UNKNOWN);
    assert_non_null(strstr(pawl_error_detail(), " ms")); /* when it is free at the latest */
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_NOT_OWNER);
    server_resume(s);
    EVENTUALLY(5000, !exists(s, "job"));
    pawl_lock_free(lock);
    pawl_client_close(client);
}

/* The first release is executed, its answer lost; the second finds nothing and knows why. */
static void resent_release_is_done(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;

    opts.command_ms = 300;
    opts.release_ms = slack_ms(8000);
    client = open_client(relay_url(relay), &opts);
    lock = take(client, "job", 30000, 0);
    relay_hold_present(relay, RELAY_DOWN);
    EXPECT_RESULT(pawl_lock_release(lock), 0);
    assert_false(exists(s, "job"));
    relay_pass_held(relay);
    EXPECT_RESULT(give_back(take(client, "job", 5000, 0)), 0);
    pawl_lock_free(lock);
    pawl_client_close(client);
    relay_free(relay);
}

/* No try was executed, and the server came back without its data: that was no release. */
static void release_repeated_after_refusals_only_tells_the_loss(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    struct done done = { 0 };

    opts.release_ms = 20000;
    client = open_client(s->url, &opts);
    lock = take(client, "job", 30000, 0);
    server_do(s, "FLUSHALL");
    server_do(s, "SAVE");
    server_kill(s);
    EVENTUALLY(5000, pawl_client_ready(client, 0) != 0);
    EXPECT_RESULT(pawl_lock_release_async(lock, on_done, &done), 0);
    dispatch_for(client, 200);
    assert_int_equal(done.n, 0);
    server_begin(s);
    await_done(client, &done, 10000);
    EXPECT_RESULT(done.result, PAWL_LOST_TAKEN);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void resent_release_of_one_of_two_counts_once(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_client *client;
    struct pawl_lock *outer;
    struct pawl_lock *inner;

    opts.command_ms = 300;
    opts.release_ms = slack_ms(8000);
    client = open_client(relay_url(relay), &opts);
    outer = take_as(client, "job", owner, 30000, 0);
    inner = take_as(client, "job", owner, 30000, 0);
    relay_hold_present(relay, RELAY_DOWN);
    EXPECT_RESULT(pawl_lock_release(inner), PAWL_STILL_HELD);
    assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), 1);
    EXPECT_RESULT(pawl_lock_check(outer), 0);
    EXPECT_RESULT(pawl_lock_release(outer), 0);
    assert_false(exists(s, "job"));
    pawl_lock_free(inner);
    pawl_lock_free(outer);
    pawl_owner_free(owner);
    pawl_client_close(client);
    relay_free(relay);
}

/* ---- the server refuses writes ---- */

static void release_works_at_the_memory_limit(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *outer = take_as(client, "job", owner, 600, 0);
    struct pawl_lock *inner = take_as(client, "job", owner, 600, 0);

    server_do(s, "CONFIG SET maxmemory 1");
    EXPECT_RESULT(refuse(client, "other", 1000, 0), PAWL_EOOM);
    pause_ms(900); /* renewals go through as well */
    EXPECT_RESULT(pawl_lock_check(outer), 0);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(give_back(outer), 0);
    assert_false(exists(s, "job"));
    assert_int_equal(leftovers(s), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

/* A server whose snapshot fails because its folder is gone. */
static struct server *start_that_cannot_save(void)
{
    static char config[256];
    struct server_options opts = { .config = config };
    struct server *s;
    char folder[64];

    make_folder(folder, sizeof folder);
    snprintf(config, sizeof config, "dir %s\nsave 3600 1\nstop-writes-on-bgsave-error yes",
             folder);
    s = server_start(&opts);
    server_do(s, "SET before 1");
    remove_folder(folder);
    return s;
}

static bool save_fails(struct server *s)
{
    redisReply *r = server_ask(s, "INFO persistence");
    bool fails = strstr(r->str, "rdb_last_bgsave_status:err") != NULL;

    freeReplyObject(r);
    return fails;
}

static void release_that_is_refused_says_so_and_is_repeated(void **state)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct server *s = start_that_cannot_save();
    struct events events = EVENTS_INIT;
    struct pawl_lock_options other = lock_options(900, 0);
    struct pawl_client *client;
    struct pawl_lock *lock;
    struct pawl_lock *held;
    int64_t taken_ms;

    (void)state;
    opts.release_ms = 300;
    client = open_client(s->url, &opts);
    lock = take(client, "job", 20000, 0);
    other.on_event = on_event;
    other.on_event_arg = &events;
    held = take_with(client, "other", &other);
    taken_ms = now_ms();
    server_do(s, "BGSAVE");
    EVENTUALLY(5000, save_fails(s));
    EXPECT_RESULT(refuse(client, "third", 1000, 0), PAWL_EMISCONF);
    EXPECT_RESULT(pawl_lock_release(lock), PAWL_EMISCONF);
    assert_non_null(strstr(pawl_error_detail(), " ms"));
    /* Whoever holds another lock is warned, then told, before its lease can pass on. */
    EVENTUALLY(5000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_string_equal(events.order, "RL");
    assert_true(events.at_ms[PAWL_EVENT_LOST] >= taken_ms);
    EXPECT_RESULT(pawl_lock_check(held), PAWL_LOST_UNREACHABLE);
    assert_true(exists(s, "job"));
    server_do(s, "CONFIG SET stop-writes-on-bgsave-error no");
    EVENTUALLY(5000, !exists(s, "job"));
    pawl_lock_free(lock);
    pawl_lock_free(held);
    pawl_client_close(client);
    server_free(s);
}

/* ---- close and free ---- */

static void close_releases_what_is_held(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *locks[20];
    char key[16];

    for (int i = 0; i < 18; i++) {
        snprintf(key, sizeof key, "job%d", i);
        locks[i] = take(client, key, 30000, 0);
    }
    locks[18] = take_as(client, "twice", owner, 30000, 0);
    locks[19] = take_as(client, "twice", owner, 30000, 0);
    assert_int_equal(server_int(s, "EXISTS job0 job17 twice"), 3);
    pawl_client_close(client);
    assert_int_equal(leftovers(s), 0);
    for (size_t i = 0; i < N_OF(locks); i++) {
        EXPECT_RESULT(pawl_lock_check(locks[i]), PAWL_ECLOSED);
        EXPECT_RESULT(pawl_lock_release(locks[i]), PAWL_ECLOSED);
        pawl_lock_free(locks[i]);
    }
    pawl_owner_free(owner);
}

static void close_ends_within_its_limit_though_the_server_hangs(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    struct pawl_lock *lock;
    int64_t start_ms;

    opts.release_ms = 200;
    client = open_client(s->url, &opts);
    lock = take(client, "job", 1000, 0);
    server_pause(s);
    start_ms = now_ms();
    pawl_client_close(client);
    assert_true(now_ms() - start_ms < 200 + slack_ms(500));
    pawl_lock_free(lock);
    server_resume(s);
    EVENTUALLY(3000, !exists(s, "job"));
}

static void scoped_lock_is_released_on_every_path(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);

    for (int i = 0; i < 3; i++) {
        PAWL_SCOPED struct pawl_lock *lock = NULL;

        if (i == 0)
            continue; /* nothing taken */
        lock = take(client, "job", 30000, 2000);
        if (i == 1)
            continue;
        break;
    }
    EVENTUALLY(2000, !exists(s, "job"));
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(second_release_is_not_owner),
        SERVED(late_release_leaves_the_next_holder_alone),
        SERVED(late_release_asks_at_most_once_and_is_quick),
        SERVED(every_end_of_a_release_lets_other_threads_in),
        SERVED(release_without_answer_goes_on_behind),
        SERVED(resent_release_is_done),
        SERVED(release_repeated_after_refusals_only_tells_the_loss),
        SERVED(resent_release_of_one_of_two_counts_once),
        SERVED(release_works_at_the_memory_limit),
        cmocka_unit_test(release_that_is_refused_says_so_and_is_repeated),
        SERVED(close_releases_what_is_held),
        SERVED(close_ends_within_its_limit_though_the_server_hangs),
        SERVED(scoped_lock_is_released_on_every_path),
    };

    return RUN_SERVED(tests);
}
