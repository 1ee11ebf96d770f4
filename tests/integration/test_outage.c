/* The store is gone, silent or restarts: limits hold, nothing dies, everything comes back. */
#include "integration/harness.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- the wait limit ---- */

static struct pawl_client *open_short(const char *url)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    opts.connect_ms = 500;
    opts.command_ms = 500;
    return open_only(url, &opts);
}

/* One second of waiting on a store that cannot be used, then on a single try. */
static void expect_unavailable(struct pawl_client *client, const char *what)
{
    int64_t start_ms = now_ms();
    int rc = refuse(client, "job", 5000, 1000);
    int64_t took_ms = now_ms() - start_ms;

    print_message("%s: %s after %lld ms\n", what, pawl_result_name(rc), (long long)took_ms);
    assert_in_range(took_ms, 0, 1000 + slack_ms(300));
    assert_true(rc < 0); /* not "busy" */
    assert_true(pawl_result_class(rc) == PAWL_CLASS_UNAVAILABLE ||
                pawl_result_class(rc) == PAWL_CLASS_UNKNOWN);
    assert_true(strlen(pawl_error_detail()) > 0);
    start_ms = now_ms();
    rc = refuse(client, "job", 5000, 0);
    assert_in_range(now_ms() - start_ms, 0, 1000 + slack_ms(300)); /* connect_ms + command_ms */
    assert_true(rc < 0);
}

static int silent_port(int *ret_fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_fd = fd;
    return ntohs(address.sin_port);
}

static void limit_holds_from_the_start(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client;
    char url[128];
    int fd;

    snprintf(url, sizeof url, "redis://127.0.0.1:%d", silent_port(&fd));
    client = open_short(url);
    expect_unavailable(client, "accepts but is silent");
    pawl_client_close(client);
    close(fd);
    client = open_short(url);
    expect_unavailable(client, "refuses");
    EXPECT_RESULT(refuse(client, "job", 5000, 300), PAWL_ECONNECT);
    pawl_client_close(client);
    client = open_short("redis://no-such-host.invalid");
    expect_unavailable(client, "does not resolve");
    pawl_client_close(client);
    relay_drop(relay, RELAY_UP, true);
    client = open_short(relay_url(relay));
    expect_unavailable(client, "black hole");
    pawl_client_close(client);
    relay_free(relay);
    server_pause(s);
    client = open_short(s->url);
    expect_unavailable(client, "frozen");
    pawl_client_close(client);
}

static void limit_holds_when_the_outage_comes_later(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_client(s->url, NULL);

    pawl_client_close(client);
    for (int kind = 0; kind < 3; kind++) {
        client = open_short(kind == 2 ? relay_url(relay) : s->url);
        EXPECT_RESULT(pawl_client_ready(client, slack_ms(5000)), 0);
        if (kind == 0)
            server_kill(s);
        else if (kind == 1)
            server_pause(s);
        else
            relay_drop(relay, RELAY_DOWN, true);
        expect_unavailable(client, kind == 0 ? "stopped" : kind == 1 ? "frozen" : "black hole");
        if (kind == 0)
            server_begin(s);
        else if (kind == 1)
            server_resume(s);
        else
            relay_drop(relay, RELAY_DOWN, false);
        EVENTUALLY(10000, pawl_client_ready(client, 0) == 0);
        pawl_lock_free(take(client, "other", 5000, slack_ms(10000)));
        pawl_client_close(client);
    }
    relay_free(relay);
}

struct waiter {
    struct pawl_client *client;
    int result;
    int64_t took_ms;
};

static void *wait_two_seconds(void *arg)
{
    struct waiter *w = arg;
    struct pawl_lock_options opts = lock_options(5000, 1500);
    struct pawl_lock *lock = NULL;
    int64_t start_ms = now_ms();

    w->result = pawl_lock_acquire(w->client, "job", 3, &opts, &lock);
    w->took_ms = now_ms() - start_ms;
    pawl_lock_free(lock);
    return NULL;
}

static void limit_holds_when_the_outage_comes_in_mid_wait(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct waiter w = { open_client(s->url, NULL), 0, 0 };
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    pthread_t thread;

    pthread_create(&thread, NULL, wait_two_seconds, &w);
    pause_ms(400);
    server_pause(s);
    pthread_join(thread, NULL);
    assert_in_range(w.took_ms, 1490, 1500 + slack_ms(300));
    assert_true(w.result < 0 || w.result == PAWL_TIMEOUT);
    server_resume(s);
    pawl_lock_free(lock);
    EVENTUALLY(6000, !exists(s, "job"));
    ALWAYS(300, !exists(s, "job")); /* what the waiter left at the server grants nothing */
    pawl_client_close(a);
    pawl_client_close(w.client);
}

/* ---- restarts ---- */

struct load {
    struct pawl_client *client;
    atomic_bool stop;
    atomic_int n_good;
    atomic_int n_odd;
};

static void *take_and_release(void *arg)
{
    struct load *load = arg;
    char key[24];

    snprintf(key, sizeof key, "load%lx", (unsigned long)pthread_self());
    while (!atomic_load(&load->stop)) {
        struct pawl_lock_options opts = lock_options(1000, 300);
        struct pawl_lock *lock = NULL;
        int rc = pawl_lock_acquire(load->client, key, strlen(key), &opts, &lock);

        if (rc == 0 && pawl_lock_release(lock) == 0)
            atomic_fetch_add(&load->n_good, 1);
        if (pawl_result_class(rc) == PAWL_CLASS_USAGE || rc == PAWL_EPROTOCOL)
            atomic_fetch_add(&load->n_odd, 1);
        pawl_lock_free(lock);
    }
    return NULL;
}

static long long load_keys(struct server *s)
{
    return server_int(s, "EVAL %s 0", "return #redis.call('KEYS', 'load*')");
}

static struct sigaction pipe_action(void)
{
    struct sigaction action;

    sigaction(SIGPIPE, NULL, &action);
    return action;
}

/* A broken connection must not end the program; its signal set-up is its own. */
static void restarts_under_load_kill_nobody(void **state)
{
    struct server *s = *state;
    struct sigaction before = pipe_action();
    struct load load = { .client = open_client(s->url, NULL) };
    pthread_t threads[4];
    int n_good = 0;

    assert_ptr_equal(before.sa_handler, SIG_DFL); /* SIGPIPE would be deadly here */
    for (size_t i = 0; i < N_OF(threads); i++)
        pthread_create(&threads[i], NULL, take_and_release, &load);
    for (int i = 0; i < 10; i++) {
        EVENTUALLY(10000, atomic_load(&load.n_good) > n_good + 20);
        server_restart(s);
        n_good = atomic_load(&load.n_good);
    }
    EVENTUALLY(10000, atomic_load(&load.n_good) > n_good + 20);
    atomic_store(&load.stop, true);
    for (size_t i = 0; i < N_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(load.n_odd, 0);
    assert_ptr_equal(pipe_action().sa_handler, SIG_DFL);
    pawl_client_close(load.client);
    EVENTUALLY(3000, load_keys(s) == 0);
    assert_int_equal(immortals(s), 0); /* tombstones end by themselves */
}

static void pause_in_mid_load_leaves_no_key_and_no_renewal(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct load load = { .client = NULL };
    pthread_t threads[4];
    struct monitor *m;
    int n_good;

    opts.command_ms = 300;
    load.client = open_client(s->url, &opts);
    for (size_t i = 0; i < N_OF(threads); i++)
        pthread_create(&threads[i], NULL, take_and_release, &load);
    EVENTUALLY(10000, atomic_load(&load.n_good) > 50);
    server_do(s, "CLIENT PAUSE 1200");
    pause_ms(1300);
    n_good = atomic_load(&load.n_good);
    EVENTUALLY(10000, atomic_load(&load.n_good) > n_good + 50); /* they came back by themselves */
    atomic_store(&load.stop, true);
    for (size_t i = 0; i < N_OF(threads); i++)
        pthread_join(threads[i], NULL);
    EVENTUALLY(4000, load_keys(s) == 0);
    m = monitor_start(s);
    pause_ms(1200);
    assert_int_equal(monitor_count(m, "\"load"), 0);
    monitor_stop(m);
    pawl_client_close(load.client);
}

static void lock_survives_a_restart_with_its_data(void **state)
{
    struct server_options opts = { .appendonly = true, .config = "appendfsync always" };
    struct server *s = server_start(&opts);
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 3000, 0);

    (void)state;
    server_restart(s);
    assert_true(exists(s, "job"));
    ALWAYS(3500, pawl_lock_check(lock) == 0);
    assert_true(pttl(s, "job") > 0);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    pawl_client_close(client);
    server_free(s);
}

static void restart_without_data_is_a_loss_and_tokens_still_rise(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_client *b;
    struct events events = EVENTS_INIT;
    struct pawl_lock_options opts = lock_options(1500, 0);
    struct pawl_lock *lock;
    struct pawl_lock *next;

    opts.on_event = on_event;
    opts.on_event_arg = &events;
    lock = take_with(client, "job", &opts);
    server_restart(s);
    b = open_client(s->url, NULL);
    next = take(b, "job", 5000, 0);
    assert_true(pawl_lock_token(next) > pawl_lock_token(lock));
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_TAKEN);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_TAKEN);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(client);
    pawl_client_close(b);
}

/* ---- waiting is cheap ---- */

static int64_t cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void waiters_burn_neither_side(void **state)
{
    enum { N = 100 };
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    struct pawl_stats stats = { .size = sizeof stats };
    struct done all[N];
    int64_t start_cpu_ms;
    uint64_t commands;

    memset(all, 0, sizeof all);
    for (int i = 0; i < N; i++) {
        struct pawl_lock_options opts = lock_options(5000, PAWL_FOREVER);

        EXPECT_RESULT(pawl_lock_acquire_async(client, "job", 3, &opts, on_acquired, &all[i], NULL),
                      0);
    }
    dispatch_for(client, 500);
    EXPECT_RESULT(pawl_client_stats(client, &stats), 0);
    commands = stats.commands;
    start_cpu_ms = cpu_ms();
    dispatch_for(client, 2000);
    EXPECT_RESULT(pawl_client_stats(client, &stats), 0);
    assert_int_equal(stats.waiting, N);
    assert_true(stats.commands - commands < 2 * N * 3); /* three a second and waiter at most */
    assert_true(cpu_ms() - start_cpu_ms < slack_ms(500));
    server_pause(s); /* refused and unanswered connections are no reason to spin either */
    start_cpu_ms = cpu_ms();
    dispatch_for(client, 2000);
    assert_true(cpu_ms() - start_cpu_ms < slack_ms(500));
    server_kill(s);
    start_cpu_ms = cpu_ms();
    dispatch_for(client, 2000);
    assert_true(cpu_ms() - start_cpu_ms < slack_ms(500));
    pawl_lock_free(lock);
    pawl_client_close(client);
    for (int i = 0; i < N; i++)
        assert_int_equal(all[i].n, 1);
    pawl_client_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(limit_holds_from_the_start),
        SERVED(limit_holds_when_the_outage_comes_later),
        SERVED(limit_holds_when_the_outage_comes_in_mid_wait),
        SERVED(restarts_under_load_kill_nobody),
        SERVED(pause_in_mid_load_leaves_no_key_and_no_renewal),
        cmocka_unit_test(lock_survives_a_restart_with_its_data),
        SERVED(restart_without_data_is_a_loss_and_tokens_still_rise),
        SERVED(waiters_burn_neither_side),
    };

    return RUN_SERVED(tests);
}
