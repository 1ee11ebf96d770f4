/* Statistics of a client: counters of what happened, histograms of how long it took. */
#include "integration/harness.h"

static struct pawl_stats stats_of(struct pawl_client *client)
{
    struct pawl_stats stats = { .size = sizeof stats };

    EXPECT_RESULT(pawl_client_stats(client, &stats), 0);
    return stats;
}

static void statistics_count_what_happened(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *outer = take_as(client, "job", owner, 600, 0);
    struct pawl_lock *inner = take_as(client, "job", owner, 600, 0);
    struct pawl_lock *lost = take(client, "lost", 600, 0);
    struct pawl_stats st;

    EXPECT_RESULT(refuse(b, "job", 1000, 0), PAWL_BUSY);
    EXPECT_RESULT(refuse(b, "job", 1000, 100), PAWL_TIMEOUT);
    server_do(s, "DEL lost");
    EVENTUALLY(3000, stats_of(client).lost_taken == 1);
    EVENTUALLY(3000, stats_of(client).renewals >= 2);
    st = stats_of(client);
    assert_int_equal(st.acquires, 3);
    assert_int_equal(st.reentries, 1);
    assert_int_equal(st.held, 1); /* one hold, whatever the nesting */
    assert_int_equal(st.connects, 1);
    assert_true(st.commands >= 4);
    assert_int_equal(st.wait_ms.count, 3);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(give_back(outer), 0);
    pawl_lock_free(lost);
    st = stats_of(client);
    assert_int_equal(st.held, 0);
    assert_int_equal(st.releases, 2);
    assert_int_equal(st.hold_ms.count, 2);
    st = stats_of(b);
    assert_int_equal(st.busy, 2);
    assert_int_equal(st.waits, 2);
    assert_int_equal(st.acquires, 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
    pawl_client_close(b);
}

static void statistics_count_failures_and_reconnects(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 600, 0);
    struct pawl_stats st;

    server_kill(s);
    assert_true(refuse(client, "other", 1000, 0) < 0);
    EVENTUALLY(3000, stats_of(client).lost_unreachable == 1);
    st = stats_of(client);
    assert_int_equal(st.failed, 1);
    assert_true(st.failed_renewals > 0);
    assert_int_equal(st.held, 0);
    server_begin(s);
    EVENTUALLY(5000, pawl_client_ready(client, 0) == 0);
    EXPECT_RESULT(give_back(take(client, "other", 1000, 5000)), 0);
    assert_int_equal(stats_of(client).connects, 2);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void late_renewal_is_counted_and_warned_of(void **state)
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
    lock = take(client, "warm", 300, 0); /* the server knows the script afterwards */
    EVENTUALLY(2000, stats_of(client).renewals > 0);
    EXPECT_RESULT(give_back(lock), 0);
    lock = take(client, "job", 2000, 0);
    relay_delay(relay, RELAY_DOWN, 700, 700); /* due at 0.6 s, answered at 1.3 s of 2 s */
    EVENTUALLY(4000, stats_of(client).late_renewals > 0);
    EVENTUALLY(1000, book_has(&book, "came late"));
    relay_delay(relay, RELAY_DOWN, 0, 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    relay_free(relay);
}

static void histograms_have_their_bounds(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);
    struct pawl_stats st;
    uint64_t sum = 0;
    size_t bucket;

    for (int i = 1; i + 1 < PAWL_HIST_BUCKETS; i++)
        assert_true(pawl_hist_bound_ms(i) > pawl_hist_bound_ms(i - 1));
    assert_int_equal(pawl_hist_bound_ms(0), 1);
    assert_int_equal(pawl_hist_bound_ms(PAWL_HIST_BUCKETS - 1), -1);
    assert_int_equal(pawl_hist_bound_ms(PAWL_HIST_BUCKETS + 5), -1);
    pause_ms(60);
    EXPECT_RESULT(give_back(lock), 0);
    st = stats_of(client);
    assert_int_equal(st.hold_ms.count, 1);
    assert_in_range(st.hold_ms.sum_ms, 55, 60 + slack_ms(500));
    for (bucket = 0; st.hold_ms.bucket[bucket] == 0; bucket++)
        ;
    assert_in_range(pawl_hist_bound_ms((int)bucket), 100, 5000);
    for (size_t i = 0; i < PAWL_HIST_BUCKETS; i++)
        sum += st.hold_ms.bucket[i];
    assert_int_equal(sum, 1);
    pawl_client_close(client);
}

/* A program built against an older, shorter struct gets what it knows. */
static void struct_may_grow(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_stats st;

    EXPECT_RESULT(give_back(take(client, "job", 5000, 0)), 0);
    st.size = 0;
    EXPECT_RESULT(pawl_client_stats(client, &st), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_client_stats(client, NULL), PAWL_EUSAGE);
    memset(&st, 0x5a, sizeof st);
    st.size = offsetof(struct pawl_stats, reentries);
    EXPECT_RESULT(pawl_client_stats(client, &st), 0);
    assert_int_equal(st.acquires, 1);
    assert_true(st.reentries == UINT64_C(0x5a5a5a5a5a5a5a5a));
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(statistics_count_what_happened),
        SERVED(statistics_count_failures_and_reconnects),
        SERVED(late_renewal_is_counted_and_warned_of),
        SERVED(histograms_have_their_bounds),
        SERVED(struct_may_grow),
    };

    return RUN_SERVED(tests);
}
