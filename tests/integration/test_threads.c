/* One client for all threads of a process; and threads that come, go and are canceled. */
#include "integration/harness.h"

#include <dirent.h>
#include <stdatomic.h>

struct shared {
    struct pawl_client *clients[2];
    atomic_uint n_started; /* every other thread uses the other client */
    atomic_int inside;
    atomic_int n_overlaps;
    atomic_int n_sections;
    atomic_int n_failed;
    _Atomic uint64_t last_token;
    int rounds;
};

static void *enter_sections(void *arg)
{
    struct shared *sh = arg;
    struct pawl_client *client = sh->clients[atomic_fetch_add(&sh->n_started, 1) % 2];

    for (int i = 0; i < sh->rounds; i++) {
        struct pawl_lock_options opts = lock_options(10000, 60000);
        struct pawl_lock *lock = NULL;
        uint64_t token;

        if (pawl_lock_acquire(client, "job", 3, &opts, &lock) != 0) {
            atomic_fetch_add(&sh->n_failed, 1);
            continue;
        }
        if (atomic_fetch_add(&sh->inside, 1) != 0)
            atomic_fetch_add(&sh->n_overlaps, 1);
        token = pawl_lock_token(lock);
        if (atomic_exchange(&sh->last_token, token) >= token)
            atomic_fetch_add(&sh->n_overlaps, 1);
        atomic_fetch_add(&sh->n_sections, 1);
        atomic_fetch_sub(&sh->inside, 1);
        if (pawl_lock_release(lock) != 0)
            atomic_fetch_add(&sh->n_failed, 1);
        pawl_lock_free(lock);
    }
    return NULL;
}

static void hundred_threads_one_client_no_overlap(void **state)
{
    enum { N = 100 };
    struct server *s = *state;
    struct shared sh = { .rounds = 5 };
    struct pawl_stats stats = { .size = sizeof stats };
    pthread_t threads[N];

    sh.clients[0] = sh.clients[1] = open_client(s->url, NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_sections, &sh), 0);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sh.n_failed, 0);
    assert_int_equal(sh.n_overlaps, 0);
    assert_int_equal(sh.n_sections, N * 5);
    EXPECT_RESULT(pawl_client_stats(sh.clients[0], &stats), 0);
    assert_int_equal(stats.acquires, N * 5);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.waiting, 0);
    pawl_client_close(sh.clients[0]);
    assert_int_equal(leftovers(s), 0);
}

static void two_clients_of_many_threads_exclude_each_other(void **state)
{
    enum { N = 16 };
    struct server *s = *state;
    struct shared sh = { .rounds = 20 };
    pthread_t threads[N];

    for (int i = 0; i < 2; i++)
        sh.clients[i] = open_client(s->url, NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_sections, &sh), 0);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sh.n_failed, 0);
    assert_int_equal(sh.n_overlaps, 0);
    assert_int_equal(sh.n_sections, N * 20);
    pawl_client_close(sh.clients[0]);
    pawl_client_close(sh.clients[1]);
}

static void *open_use_close(void *arg)
{
    const char *url = arg;

    for (int i = 0; i < 10; i++) {
        struct pawl_client *client = NULL;
        struct pawl_lock_options opts = lock_options(1000, 0);
        struct pawl_lock *lock = NULL;
        char key[32];

        if (pawl_client_open(url, NULL, &client) != 0)
            return (void *)url;
        snprintf(key, sizeof key, "own%lx", (unsigned long)pthread_self());
        if (pawl_lock_acquire(client, key, strlen(key), &opts, &lock) != 0)
            return (void *)url;
        if (i % 2 == 0)
            pawl_lock_free(lock);
        pawl_client_close(client);
        if (i % 2 != 0)
            pawl_lock_free(lock);
    }
    return NULL;
}

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void clients_that_come_and_go_leave_nothing(void **state)
{
    enum { N = 8 };
    struct server *s = *state;
    size_t n_fds;
    size_t n_threads = entries("/proc/self/task");
    pthread_t threads[N];
    void *failed;

    assert_int_equal(leftovers(s), 0); /* opens the admin connection */
    n_fds = entries("/proc/self/fd");
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_use_close, s->url), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(entries("/proc/self/fd"), n_fds);
    EVENTUALLY(2000, entries("/proc/self/task") == n_threads);
    assert_int_equal(leftovers(s), 0);
}

/* The client goes away under waiting threads. */
static void *wait_for_ever(void *arg)
{
    struct pawl_lock_options opts = lock_options(5000, PAWL_FOREVER);
    struct pawl_lock *lock = NULL;

    return (void *)(intptr_t)pawl_lock_acquire(arg, "job", 3, &opts, &lock);
}

static void close_ends_the_waits_of_all_threads(void **state)
{
    enum { N = 10 };
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 30000, 0);
    struct pawl_stats stats = { .size = sizeof stats };
    pthread_t threads[N];
    void *result;

    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_ever, b), 0);
    do {
        pause_ms(5);
        EXPECT_RESULT(pawl_client_stats(b, &stats), 0);
    } while (stats.waiting < N);
    pawl_client_close(b);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], &result);
        EXPECT_RESULT((int)(intptr_t)result, PAWL_ECLOSED);
    }
    EXPECT_RESULT(give_back(lock), 0);
    ALWAYS(200, !exists(s, "job"));
    pawl_client_close(a);
}

/* A server that is killed under connects: nothing is used after it was freed. */
static void connections_that_die_at_any_step(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 150 : 40;
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    for (int i = 0; i < rounds; i++) {
        struct pawl_client *client = open_only(relay_url(relay), NULL);
        struct done done = { 0 };
        struct pawl_lock_options opts = lock_options(1000, 200);

        relay_cut_after(relay, i % 2 == 0 ? RELAY_UP : RELAY_DOWN, (size_t)(i * 7 % 700 + 1));
        if (i % 3 == 0)
            EXPECT_RESULT(
                pawl_lock_acquire_async(client, "job", 3, &opts, on_acquired, &done, NULL), 0);
        if (i % 5 == 0)
            relay_refuse(relay, true);
        if (i % 2 == 0)
            pause_ms(i % 7);
        pawl_client_close(client);
        assert_int_equal(done.n, i % 3 == 0);
        pawl_lock_free(done.lock);
        relay_refuse(relay, false);
    }
    EVENTUALLY(3000, !exists(s, "job"));
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(hundred_threads_one_client_no_overlap),
        SERVED(two_clients_of_many_threads_exclude_each_other),
        SERVED(clients_that_come_and_go_leave_nothing),
        SERVED(close_ends_the_waits_of_all_threads),
        SERVED(connections_that_die_at_any_step),
    };

    return RUN_SERVED(tests);
}
