/* Many waiters and many clients: a release wakes one waiter, the first; and nobody keeps step with
 * the others. */
#include "integration/harness.h"

enum { N = 20 };

static long long scripts_run(struct server *s)
{
    return server_calls(s, "evalsha") + server_calls(s, "eval");
}

static long long connections(struct server *s)
{
    redisReply *r = server_ask(s, "INFO stats");
    const char *at = strstr(r->str, "total_connections_received:");
    long long n = at == NULL ? 0 : strtoll(strchr(at, ':') + 1, NULL, 10);

    freeReplyObject(r);
    return n;
}

/* The largest share of what @count rose by within @ms that fell into one window of @window_ms. */
static double largest_share(struct server *s, long long (*count)(struct server *), int64_t ms,
                            int64_t window_ms, long long *ret_total)
{
    int64_t end_ms = now_ms() + ms;
    long long before = count(s);
    long long first = before;
    long long largest = 0;

    while (now_ms() < end_ms) {
        long long now;

        pause_ms(window_ms);
        now = count(s);
        largest = now - before > largest ? now - before : largest;
        before = now;
    }
    *ret_total = before - first;
    return before == first ? 0 : (double)largest / (double)(before - first);
}

static void open_all(struct pawl_client *clients[N], const char *url)
{
    for (int i = 0; i < N; i++)
        clients[i] = open_client(url, NULL);
}

static void close_all(struct pawl_client *clients[N])
{
    for (int i = 0; i < N; i++)
        pawl_client_close(clients[i]);
}

static void wait_all(struct pawl_client *clients[N], struct done done[N])
{
    struct pawl_lock_options opts = lock_options(5000, PAWL_FOREVER);

    memset(done, 0, N * sizeof done[0]);
    for (int i = 0; i < N; i++)
        EXPECT_RESULT(
            pawl_lock_acquire_async(clients[i], "job", 3, &opts, on_acquired, &done[i], NULL), 0);
}

static void one_release_wakes_one_waiter(void **state)
{
    struct server *s = *state;
    struct pawl_client *holder = open_client(s->url, NULL);
    struct pawl_lock *lock = take(holder, "job", 30000, 0);
    struct pawl_client *clients[N];
    struct done done[N];
    long long before;
    int n_granted = 0;

    open_all(clients, s->url);
    wait_all(clients, done);
    pause_ms(800);
    before = scripts_run(s);
    EXPECT_RESULT(give_back(lock), 0);
    pause_ms(100);
    /* The release, the winner's confirm, and what re-checks fall into a tenth of a second. */
    assert_true(scripts_run(s) - before < 2 + N);
    for (int i = 0; i < N; i++) {
        (void)pawl_client_dispatch(clients[i]);
        n_granted += done[i].n;
    }
    assert_int_equal(n_granted, 1);
    close_all(clients);
    for (int i = 0; i < N; i++)
        pawl_lock_free(done[i].lock);
    pawl_client_close(holder);
}

struct queue {
    int order[N];
    int n;
};

struct place {
    struct queue *queue;
    int number;
    int64_t asked_ms;
};

static void note_order(void *arg, int result, struct pawl_lock *lock)
{
    struct place *p = arg;

    if (result == 0)
        p->queue->order[p->queue->n++] = p->number;
    pawl_lock_free(lock);
}

/* A client's first waiters come while its inbox is being set up. Nobody is passed by one who asked
 * later than two round trips after it. */
static void first_waiters_of_a_client_keep_their_order(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *holder = open_client(s->url, NULL);

    relay_delay(relay, RELAY_DOWN, 10, 10);
    for (int round = 0; round < 8; round++) {
        struct pawl_lock *lock = take(holder, "job", 30000, 5000);
        struct pawl_client *client = open_client(relay_url(relay), NULL);
        struct queue queue = { { 0 }, 0 };
        struct place places[N];

        for (int i = 0; i < N; i++) {
            struct pawl_lock_options opts = lock_options(5000, PAWL_FOREVER);

            places[i] = (struct place){ &queue, i, now_ms() };
            EXPECT_RESULT(
                pawl_lock_acquire_async(client, "job", 3, &opts, note_order, &places[i], NULL), 0);
            pause_ms(3);
        }
        pause_ms(slack_ms(400));
        EXPECT_RESULT(give_back(lock), 0);
        for (int64_t end_ms = now_ms() + slack_ms(10000); queue.n < N && now_ms() < end_ms;)
            dispatch_for(client, 10);
        assert_int_equal(queue.n, N);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                assert_true(places[queue.order[j]].asked_ms <=
                            places[queue.order[i]].asked_ms + slack_ms(20));
        pawl_client_close(client);
    }
    pawl_client_close(holder);
    relay_free(relay);
}

static void waiters_do_not_ask_in_step_after_a_pause(void **state)
{
    struct server *s = *state;
    struct pawl_client *holder = open_client(s->url, NULL);
    struct pawl_lock *lock = take(holder, "job", 30000, 0);
    struct pawl_client *clients[N];
    struct done done[N];
    long long total;
    double share;

    open_all(clients, s->url);
    wait_all(clients, done);
    pause_ms(300);
    server_pause(s);
    pause_ms(1500);
    server_resume(s);
    pause_ms(1000);
    share = largest_share(s, scripts_run, 3000, 20, &total);
    print_message("%lld scripts in 3 s, at most %.0f %% of them in 20 ms\n", total, share * 100);
    assert_true(total > N); /* they do ask */
    assert_true(share < 0.25);
    pawl_lock_free(lock);
    close_all(clients);
    for (int i = 0; i < N; i++)
        pawl_lock_free(done[i].lock);
    pawl_client_close(holder);
}

static void clients_do_not_come_back_in_step(void **state)
{
    struct server *s = *state;
    struct pawl_client *clients[N];
    long long total;
    double share;

    open_all(clients, s->url);
    server_kill(s);
    pause_ms(1500);
    server_begin(s);
    share = largest_share(s, connections, 2500, 20, &total);
    print_message("%lld connections, at most %.0f %% of them in 20 ms\n", total, share * 100);
    assert_true(total >= N / 2);
    assert_true(share < 0.6);
    for (int i = 0; i < N; i++)
        EXPECT_RESULT(pawl_client_ready(clients[i], slack_ms(5000)), 0);
    close_all(clients);
}

static void renewals_of_one_start_drift_apart(void **state)
{
    struct server *s = *state;
    struct pawl_client *clients[N];
    struct pawl_lock *locks[N];
    long long total;
    double share;
    char key[16];

    open_all(clients, s->url);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "job%d", i);
        locks[i] = take(clients[i], key, 6000, 0);
    }
    pause_ms(1000);
    share = largest_share(s, scripts_run, 4000, 20, &total); /* two renewals each */
    print_message("%lld renewals, at most %.0f %% of them in 20 ms\n", total, share * 100);
    assert_true(total >= N);
    assert_true(share < 0.5);
    for (int i = 0; i < N; i++)
        EXPECT_RESULT(give_back(locks[i]), 0);
    close_all(clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(one_release_wakes_one_waiter),
        SERVED(first_waiters_of_a_client_keep_their_order),
        SERVED(waiters_do_not_ask_in_step_after_a_pause),
        SERVED(clients_do_not_come_back_in_step),
        SERVED(renewals_of_one_start_drift_apart),
    };

    return RUN_SERVED(tests);
}
