/* The maximum hold time: a bound for every lock, told first, enforced after the grace. */
#include "integration/harness.h"

static struct pawl_lock *take_bounded(struct pawl_client *client, int64_t lease_ms,
                                      int64_t max_hold_ms, struct events *events)
{
    struct pawl_lock_options opts = lock_options(lease_ms, 0);

    opts.max_hold_ms = max_hold_ms;
    opts.on_event = on_event;
    opts.on_event_arg = events;
    return take_with(client, "job", &opts);
}

/* A job that hangs for ever: told, then the lock is taken from it. */
static void hanging_job_is_told_then_loses_the_lock(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    int64_t start_ms = now_ms();
    struct pawl_lock *lock = take_bounded(client, 900, 1500, &events);
    int fd = pawl_lock_fd(lock);
    struct pawl_lock *next;
    struct monitor *m;

    assert_in_range(pawl_lock_max_hold_remaining_ms(lock), 1000, 1500);
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_EXPIRING) == 1);
    assert_in_range(events.at_ms[PAWL_EVENT_EXPIRING] - start_ms, 1490, 1500 + slack_ms(300));
    assert_true(fd_readable(fd));
    assert_int_equal(pawl_lock_max_hold_remaining_ms(lock), 0);
    m = monitor_start(s);
    next = take(b, "job", 5000, 5000);
    /* Free by the end of the grace: a third of the lease. */
    assert_true(now_ms() - start_ms <= 1500 + 300 + slack_ms(1000));
    EVENTUALLY(2000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_true(events.at_ms[PAWL_EVENT_LOST] - start_ms <= 1500 + 300 + slack_ms(300));
    assert_string_equal(events.order, "EL");
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_MAX_HOLD);
    EXPECT_RESULT(pawl_lock_release(lock), PAWL_LOST_MAX_HOLD);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    ALWAYS(600, events.n[PAWL_EVENT_LOST] == 1);
    monitor_stop(m);
    pawl_lock_free(lock);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(client);
    pawl_client_close(b);
}

static void release_within_the_grace_is_a_release(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock *lock = take_bounded(client, 3000, 3000, &events);

    EVENTUALLY(5000, events_count(&events, PAWL_EVENT_EXPIRING) == 1);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_EXPIRING);
    assert_int_equal(events.last[PAWL_EVENT_EXPIRING], PAWL_EXPIRING);
    EXPECT_RESULT(pawl_lock_release(lock), 0);
    assert_false(exists(s, "job"));
    ALWAYS(300, events_count(&events, PAWL_EVENT_LOST) == 0);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void nothing_is_renewed_past_the_maximum(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    int64_t start_ms = now_ms();
    struct pawl_lock *lock = take_bounded(client, 900, 1300, &events);

    while (exists(s, "job")) {
        long long left = pttl(s, "job");

        /* Never an expiry beyond the latest end: maximum hold, grace and margin. */
        assert_true(now_ms() + left - start_ms <= 1300 + 300 + 50 + slack_ms(100));
        pause_ms(10);
    }
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void default_is_finite_and_unlimited_must_be_said(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 1000, 0);
    struct pawl_lock_options opts = lock_options(1000, 0);
    struct pawl_lock_info *info = NULL;

    assert_in_range(pawl_lock_max_hold_remaining_ms(lock), 170000, 180000);
    EXPECT_RESULT(pawl_inspect(client, "job", 3, &info), 0);
    assert_in_range(info->latest_end_ms - info->since_ms, 179000, 186000);
    pawl_lock_info_free(info);
    EXPECT_RESULT(give_back(lock), 0);
    opts.max_hold_ms = PAWL_UNLIMITED;
    lock = take_with(client, "job", &opts);
    assert_int_equal(pawl_lock_max_hold_remaining_ms(lock), PAWL_UNLIMITED);
    EXPECT_RESULT(pawl_inspect(client, "job", 3, &info), 0);
    assert_int_equal(info->latest_end_ms, 0);
    pawl_lock_info_free(info);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

static void *die_holding(void *arg)
{
    struct pawl_client *client = arg;
    struct pawl_lock_options opts = lock_options(600, 0);
    struct pawl_lock *lock = NULL;

    opts.max_hold_ms = 1200;
    if (pawl_lock_acquire(client, "job", 3, &opts, &lock) != 0)
        return NULL;
    return lock; /* nobody will ever touch it, as if the thread had crashed */
}

/* The library cannot know that a thread died: the maximum is the bound. */
static void lock_of_a_dead_thread_is_free_in_the_end(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    int64_t start_ms = now_ms();
    pthread_t thread;
    void *lock = NULL;

    pthread_create(&thread, NULL, die_holding, client);
    pthread_join(thread, &lock);
    assert_non_null(lock);
    EVENTUALLY(4000, !exists(s, "job"));
    assert_in_range(now_ms() - start_ms, 1100, 1400 + slack_ms(800));
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void maximum_holds_with_a_silent_server_too(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock *lock = take_bounded(client, 1000, 1000, &events);

    server_pause(s);
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    pause_ms(100);
    assert_int_equal(events.n[PAWL_EVENT_LOST], 1);
    assert_true(pawl_is_lost(pawl_lock_check(lock)));
    server_resume(s);
    EVENTUALLY(3000, !exists(s, "job"));
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void count_and_end_do_not_move_on_reentry(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock_options opts = lock_options(600, 0);
    struct pawl_lock *outer;
    struct pawl_lock *inner;
    int64_t left_ms;

    opts.owner = owner;
    opts.max_hold_ms = 1200;
    opts.on_event = on_event;
    opts.on_event_arg = &events;
    outer = take_with(client, "job", &opts);
    pause_ms(300);
    opts.max_hold_ms = 100000;
    inner = take_with(client, "job", &opts);
    left_ms = pawl_lock_max_hold_remaining_ms(inner);
    assert_true(left_ms <= 900);
    assert_true(llabs(left_ms - pawl_lock_max_hold_remaining_ms(outer)) < 20);
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 2); /* one per handle */
    assert_int_equal(events.n[PAWL_EVENT_EXPIRING], 2);
    pawl_lock_free(inner);
    pawl_lock_free(outer);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(hanging_job_is_told_then_loses_the_lock),
        SERVED(release_within_the_grace_is_a_release),
        SERVED(nothing_is_renewed_past_the_maximum),
        SERVED(default_is_finite_and_unlimited_must_be_said),
        SERVED(lock_of_a_dead_thread_is_free_in_the_end),
        SERVED(maximum_holds_with_a_silent_server_too),
        SERVED(count_and_end_do_not_move_on_reentry),
    };

    return RUN_SERVED(tests);
}
