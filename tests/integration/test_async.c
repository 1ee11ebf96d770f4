/* Calls with completions: exactly once, only by dispatch, cancelable at any instant. */
#include "integration/harness.h"

#include <poll.h>

static int ask(struct pawl_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
               struct done *done, uint64_t *ret_id)
{
    struct pawl_lock_options opts = lock_options(lease_ms, wait_ms);

    memset(done, 0, sizeof *done);
    return pawl_lock_acquire_async(client, key, strlen(key), &opts, on_acquired, done, ret_id);
}

static void whole_life_without_blocking(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct done done;
    struct pawl_lock *lock;

    EXPECT_RESULT(ask(client, "job", 5000, 0, &done, NULL), 0);
    EVENTUALLY(2000, fd_readable(pawl_client_fd(client)));
    assert_int_equal(done.n, 0); /* not before dispatch */
    await_done(client, &done, 2000);
    EXPECT_RESULT(done.result, 0);
    assert_non_null(done.lock);
    assert_false(fd_readable(pawl_client_fd(client)));
    assert_int_equal(pawl_client_dispatch(client), 0);
    lock = done.lock;

    memset(&done, 0, sizeof done);
    EXPECT_RESULT(pawl_lock_extend_async(lock, 20000, on_done, &done), 0);
    await_done(client, &done, 2000);
    EXPECT_RESULT(done.result, 0);
    assert_true(pttl(s, "job") > 10000);

    memset(&done, 0, sizeof done);
    EXPECT_RESULT(pawl_inspect_async(client, "job", 3, on_inspected, &done), 0);
    await_done(client, &done, 2000);
    EXPECT_RESULT(done.result, 0);
    assert_string_equal(done.info->owner, pawl_lock_owner(lock));
    pawl_lock_info_free(done.info);

    memset(&done, 0, sizeof done);
    EXPECT_RESULT(pawl_lock_release_async(lock, on_done, &done), 0);
    pawl_lock_free(lock); /* allowed at once */
    await_done(client, &done, 2000);
    EXPECT_RESULT(done.result, 0);
    assert_false(exists(s, "job"));

    memset(&done, 0, sizeof done);
    EXPECT_RESULT(pawl_force_release_async(client, "job", 3, 0, 0, on_done, &done), 0);
    await_done(client, &done, 2000);
    EXPECT_RESULT(done.result, PAWL_FREE);
    dispatch_for(client, 100);
    assert_int_equal(done.n, 1);
    pawl_client_close(client);
}

static void release_without_a_completion(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);

    EXPECT_RESULT(pawl_lock_release_async(lock, NULL, NULL), 0);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_NOT_OWNER);
    EVENTUALLY(2000, !exists(s, "job"));
    assert_int_equal(pawl_client_dispatch(client), 0);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

struct nested {
    struct pawl_client *outer;
    struct pawl_client *inner;
    int n;
    int ran_inside;
};

/* Completions of two clients that dispatch each other. */
static void dispatch_both(void *arg, int result)
{
    struct nested *nested = arg;

    EXPECT_RESULT(result, PAWL_FREE);
    nested->n++;
    assert_true(pawl_client_dispatch(nested->inner) >= 0);
    nested->ran_inside += pawl_client_dispatch(nested->outer);
}

static void nothing_runs_inside_a_completion_though_another_client_was_dispatched(void **state)
{
    struct server *s = *state;
    struct nested nested = { .outer = open_client(s->url, NULL) };

    nested.inner = open_client(s->url, NULL);
    for (int i = 0; i < 2; i++)
        EXPECT_RESULT(
            pawl_force_release_async(nested.outer, "job", 3, 0, 0, dispatch_both, &nested), 0);
    pause_ms(300); /* both answers wait */
    for (int i = 0; i < 1000 && nested.n < 2; i++) {
        assert_true(pawl_client_dispatch(nested.outer) >= 0);
        pause_ms(1);
    }
    assert_int_equal(nested.n, 2);
    assert_int_equal(nested.ran_inside, 0);
    pawl_client_close(nested.outer);
    pawl_client_close(nested.inner);
}

static void missing_completion_is_a_usage_error(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);

    EXPECT_RESULT(pawl_lock_acquire_async(client, "x", 1, NULL, NULL, NULL, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_inspect_async(client, "x", 1, NULL, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_lock_extend_async(lock, 1000, NULL, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_force_release_async(client, "x", 1, 0, 0, NULL, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_client_dispatch(NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_client_fd(NULL), PAWL_EUSAGE);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

/* ---- cancel ---- */

static void cancel_is_answered_at_once(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b;
    struct pawl_lock *lock = take(a, "job", 20000, 0);
    struct done done;
    int64_t start_ms;
    uint64_t id;

    opts.retry_min_ms = 10000; /* between two tries nothing may keep the answer back */
    opts.retry_max_ms = 10000;
    b = open_client(s->url, &opts);
    EXPECT_RESULT(ask(b, "job", 5000, PAWL_FOREVER, &done, &id), 0);
    dispatch_for(b, 200);
    assert_int_equal(done.n, 0);
    start_ms = now_ms();
    EXPECT_RESULT(pawl_cancel(b, id), 0);
    await_done(b, &done, 1000);
    assert_true(now_ms() - start_ms < slack_ms(100));
    EXPECT_RESULT(done.result, PAWL_CANCELED);
    assert_null(done.lock);
    EXPECT_RESULT(pawl_cancel(b, id), PAWL_NOT_OWNER);
    EXPECT_RESULT(give_back(lock), 0);
    ALWAYS(300, !exists(s, "job")); /* and nothing is acquired afterwards */
    assert_int_equal(done.n, 1);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void cancel_does_not_wait_for_a_silent_server(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct done done;
    int64_t start_ms;
    uint64_t id;

    server_pause(s);
    EXPECT_RESULT(ask(client, "job", 5000, 5000, &done, &id), 0);
    dispatch_for(client, 50);
    start_ms = now_ms();
    EXPECT_RESULT(pawl_cancel(client, id), 0);
    await_done(client, &done, 1000);
    assert_true(now_ms() - start_ms < slack_ms(100));
    EXPECT_RESULT(done.result, PAWL_CANCELED);
    server_resume(s);
    EVENTUALLY(6000, !exists(s, "job"));
    ALWAYS(300, !exists(s, "job"));
    pawl_client_close(client);
}

/* Before, while and after the answer passes a slow relay. */
static void cancel_at_any_instant_leaves_nothing(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 200 : 50;
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_client(relay_url(relay), NULL);
    struct monitor *m;
    int n_granted = 0;
    unsigned seed = 15;

    relay_delay(relay, RELAY_UP, 0, 8);
    relay_delay(relay, RELAY_DOWN, 0, 8);
    for (int i = 0; i < rounds; i++) {
        struct done done;
        uint64_t id;

        EXPECT_RESULT(ask(client, "job", 1000, 3000, &done, &id), 0);
        if (i % 4 != 0)
            dispatch_for(client, rand_r(&seed) % 20);
        if (pawl_cancel(client, id) == 0)
            await_done(client, &done, 1000);
        else
            await_done(client, &done, 0);
        assert_int_equal(done.n, 1);
        assert_true(done.result == PAWL_CANCELED || done.result == 0);
        n_granted += done.result == 0;
        pawl_lock_free(done.lock);
    }
    assert_in_range(n_granted, 1, rounds - 1); /* both ends of the race were met */
    relay_delay(relay, RELAY_UP, 0, 0);
    relay_delay(relay, RELAY_DOWN, 0, 0);
    EVENTUALLY(2000, !exists(s, "job"));
    pause_ms(slack_ms(300)); /* what was on its way is given back by now */
    m = monitor_start(s);
    pause_ms(800);
    if (monitor_count(m, "\"job\"") > 0)
        monitor_print(m);
    assert_int_equal(monitor_count(m, "\"job\""), 0);
    monitor_stop(m);
    assert_int_equal(immortals(s), 0);
    pawl_client_close(client);
    relay_free(relay);
}

/* ---- callbacks that do things ---- */

struct chain {
    struct pawl_client *client;
    int n_left;
    int n_dispatched;
    int n_nested;
};

static void next_in_chain(void *arg, int result, struct pawl_lock *lock)
{
    struct pawl_lock_options opts = lock_options(5000, 1000);
    struct chain *chain = arg;

    if (result == 0)
        chain->n_dispatched++;
    pawl_lock_free(lock);
    chain->n_nested += pawl_client_dispatch(chain->client); /* runs nothing from in here */
    if (--chain->n_left > 0)
        (void)pawl_lock_acquire_async(chain->client, "job", 3, &opts, next_in_chain, chain, NULL);
}

static void completions_may_ask_for_more(void **state)
{
    struct server *s = *state;
    struct chain chain = { open_client(s->url, NULL), 100, 0, 0 };
    struct pawl_lock_options opts = lock_options(5000, 1000);

    EXPECT_RESULT(
        pawl_lock_acquire_async(chain.client, "job", 3, &opts, next_in_chain, &chain, NULL), 0);
    for (int64_t end_ms = now_ms() + slack_ms(10000); chain.n_left > 0 && now_ms() < end_ms;)
        dispatch_for(chain.client, 20);
    assert_int_equal(chain.n_left, 0);
    assert_int_equal(chain.n_dispatched, 100);
    assert_int_equal(chain.n_nested, 0);
    EVENTUALLY(2000, !exists(s, "job"));
    pawl_client_close(chain.client);
}

struct freed {
    pthread_mutex_t mu;
    int n;
    int after;
    struct pawl_lock *lock;
};

static void free_in_event(void *arg, struct pawl_lock *lock, enum pawl_event event, int result)
{
    struct freed *f = arg;

    (void)event;
    (void)result;
    pthread_mutex_lock(&f->mu);
    f->n++;
    if (f->n == 1) {
        (void)pawl_lock_release(lock);
        pawl_lock_free(lock);
    } else {
        f->after++; /* nothing may come after that */
    }
    pthread_mutex_unlock(&f->mu);
}

static int freed_count(struct freed *f)
{
    int n;

    pthread_mutex_lock(&f->mu);
    n = f->n;
    pthread_mutex_unlock(&f->mu);
    return n;
}

static void free_from_inside_an_event(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(600, 0);
    struct freed expiring = { .mu = PTHREAD_MUTEX_INITIALIZER };
    struct freed lost = { .mu = PTHREAD_MUTEX_INITIALIZER };

    opts.on_event = free_in_event;
    opts.on_event_arg = &lost;
    lost.lock = take_with(client, "lost", &opts);
    opts.max_hold_ms = 700;
    opts.on_event_arg = &expiring;
    expiring.lock = take_with(client, "expiring", &opts);
    server_do(s, "DEL lost");
    EVENTUALLY(3000, freed_count(&lost) == 1 && freed_count(&expiring) == 1);
    EVENTUALLY(1000, !exists(s, "expiring"));
    pause_ms(500);
    assert_int_equal(lost.after + expiring.after, 0);
    pawl_client_close(client);
}

/* After pawl_lock_free() has returned no event runs: the memory of @arg may go. */
static void no_event_after_free(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);

    for (int i = 0; i < 20; i++) {
        struct events *events = calloc(1, sizeof *events);
        struct pawl_lock_options opts = lock_options(100, 2000);
        struct pawl_lock *lock;

        pthread_mutex_init(&events->mu, NULL);
        opts.on_event = on_event;
        opts.on_event_arg = events;
        lock = take_with(client, "job", &opts);
        server_do(s, "DEL job");
        pause_ms(25 + i);
        pawl_lock_free(lock);
        pthread_mutex_destroy(&events->mu);
        memset(events, 0xa5, sizeof *events);
        free(events);
    }
    pawl_client_close(client);
}

/* ---- many, and the end ---- */

static void thousand_waits_at_once_each_answered_once(void **state)
{
    enum { N = 1000 };
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct done *all = calloc(N, sizeof *all);
    int64_t end_ms = now_ms() + slack_ms(20000);
    char key[16];
    int n = 0;

    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "job%d", i % 500);
        EXPECT_RESULT(ask(client, key, 5000, slack_ms(15000), &all[i], NULL), 0);
    }
    while (n < N && now_ms() < end_ms) {
        dispatch_for(client, 20);
        n = 0;
        for (int i = 0; i < N; i++) {
            n += all[i].n;
            if (all[i].lock != NULL)
                pawl_lock_free(all[i].lock);
            all[i].lock = NULL;
        }
    }
    for (int i = 0; i < N; i++) {
        EXPECT_RESULT(all[i].result, 0);
        assert_int_equal(all[i].n, 1);
    }
    pawl_client_close(client);
    assert_int_equal(leftovers(s), 0);
    free(all);
}

static void close_runs_what_was_not_dispatched(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 20000, 0);
    struct done granted;
    struct done waiting;

    EXPECT_RESULT(ask(b, "free", 20000, 0, &granted, NULL), 0);
    EXPECT_RESULT(ask(b, "job", 5000, PAWL_FOREVER, &waiting, NULL), 0);
    EVENTUALLY(2000, fd_readable(pawl_client_fd(b)));
    pawl_client_close(b);
    assert_int_equal(granted.n, 1);
    assert_int_equal(waiting.n, 1);
    EXPECT_RESULT(waiting.result, PAWL_ECLOSED);
    assert_null(waiting.lock);
    if (granted.lock != NULL)
        EXPECT_RESULT(pawl_lock_check(granted.lock), PAWL_ECLOSED);
    pawl_lock_free(granted.lock);
    assert_false(exists(s, "free"));
    EXPECT_RESULT(give_back(lock), 0);
    ALWAYS(200, !exists(s, "job"));
    pawl_client_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(whole_life_without_blocking),
        SERVED(release_without_a_completion),
        SERVED(missing_completion_is_a_usage_error),
        SERVED(cancel_is_answered_at_once),
        SERVED(cancel_does_not_wait_for_a_silent_server),
        SERVED(cancel_at_any_instant_leaves_nothing),
        SERVED(completions_may_ask_for_more),
        SERVED(nothing_runs_inside_a_completion_though_another_client_was_dispatched),
        SERVED(free_from_inside_an_event),
        SERVED(no_event_after_free),
        SERVED(thousand_waits_at_once_each_answered_once),
        SERVED(close_runs_what_was_not_dispatched),
    };

    return RUN_SERVED(tests);
}
