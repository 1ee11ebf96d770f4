/* pawl's driver for the peer comparison: one workload per run, one line of JSON. The command line
 * is the one of bench/peers/README.md. Uses the public header only. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <pawl.h>

#define NS_PER_MS INT64_C(1000000)

struct options {
    const char *key;
    int64_t run_ns;
    int64_t ttl_ms;
    int64_t t0_ns;
    int64_t period_ns;
    int workers;
    int reps;
    int n;
};

static struct pawl_client *client;
static struct options opt = { "k", 3000 * NS_PER_MS, 10000, 0, 600 * NS_PER_MS, 16, 50, 10000 };

static int64_t mono_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void wait_until(int64_t at_ns)
{
    struct timespec t = { at_ns / 1000000000, at_ns % 1000000000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void die(const char *what, int rc)
{
    fprintf(stderr, "pawl-peer: %s: %s (%s)\n", what, pawl_result_text(rc), pawl_error_detail());
    exit(1);
}

static void *must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL)
        die("memory", PAWL_ENOMEM);
    return p;
}

/* ---- samples ---- */

struct samples {
    int64_t *at;
    size_t n;
    size_t room;
};

static void add(struct samples *s, int64_t value)
{
    if (s->n == s->room) {
        s->room = s->room == 0 ? 4096 : s->room * 2;
        s->at = realloc(s->at, s->room * sizeof *s->at);
        if (s->at == NULL)
            die("memory", PAWL_ENOMEM);
    }
    s->at[s->n++] = value;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double percentile_us(struct samples *s, size_t percent)
{
    size_t rank;

    if (s->n == 0)
        return 0;
    qsort(s->at, s->n, sizeof *s->at, ascending);
    rank = (s->n - 1) * percent / 100;
    return (double)s->at[rank] / 1e3;
}

static void print_list(const char *name, const struct samples *s)
{
    printf("\"%s\":[", name);
    for (size_t i = 0; i < s->n; i++)
        printf("%s%lld", i == 0 ? "" : ",", (long long)s->at[i]);
    printf("]");
}

/* ---- synchronous workloads ---- */

static struct pawl_lock_options lock_options(void)
{
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;

    o.lease_ms = opt.ttl_ms;
    o.wait_ms = PAWL_FOREVER;
    return o;
}

static struct pawl_lock *acquire(const char *key)
{
    struct pawl_lock_options o = lock_options();
    struct pawl_lock *lock;
    int rc = pawl_lock_acquire(client, key, strlen(key), &o, &lock);

    if (rc != 0)
        die("acquire", rc);
    return lock;
}

static void release(struct pawl_lock *lock)
{
    int rc = pawl_lock_release(lock);

    if (rc != 0)
        die("release", rc);
}

/* One caller, one free lock, again and again. */
static void run_w1(void)
{
    struct samples acquires = { 0 };
    struct samples releases = { 0 };
    int64_t begin_ns = mono_ns();
    int64_t now_ns = begin_ns;

    while (now_ns - begin_ns < opt.run_ns) {
        struct pawl_lock *lock = acquire(opt.key);
        int64_t held_ns = mono_ns();

        release(lock);
        add(&acquires, held_ns - now_ns);
        now_ns = mono_ns();
        add(&releases, now_ns - held_ns);
        pawl_lock_free(lock);
    }
    printf("{\"pairs_s\":%.1f,", (double)acquires.n * 1e9 / (double)(now_ns - begin_ns));
    printf("\"acq50\":%.1f,\"acq99\":%.1f,", percentile_us(&acquires, 50),
           percentile_us(&acquires, 99));
    printf("\"rel50\":%.1f,\"rel99\":%.1f}\n", percentile_us(&releases, 50),
           percentile_us(&releases, 99));
    free(acquires.at);
    free(releases.at);
}

/* Hand-over latency: one process holds and releases at known times, the other waits. */
static void run_w4(bool holder)
{
    struct samples at = { 0 };
    uint64_t seed = (uint64_t)mono_ns() | 1;

    for (int i = 0; i < opt.reps; i++) {
        int64_t base_ns = opt.t0_ns + i * opt.period_ns;
        struct pawl_lock *lock;

        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        wait_until(holder ? base_ns : base_ns + (30 + (int64_t)((seed >> 33) % 100)) * NS_PER_MS);
        lock = acquire(opt.key);
        if (holder)
            wait_until(base_ns + 200 * NS_PER_MS);
        else
            add(&at, mono_ns());
        release(lock);
        if (holder)
            add(&at, mono_ns());
        pawl_lock_free(lock);
    }
    printf("{");
    print_list("t", &at);
    printf("}\n");
    free(at.at);
}

/* ---- many workers on one event loop ---- */

struct worker {
    int number;
    char key[128];
    int64_t asked_ns;
    int64_t grants;
    struct pawl_lock *lock;
};

static struct samples waits_us;
static struct samples times_us;
static struct samples who;
static int64_t end_ns;
static int64_t pairs;
static int active;
static bool keep_grants;

static void ask(struct worker *w);

static void on_released(void *arg, int result)
{
    struct worker *w = arg;

    if (result != 0)
        die("release", result);
    pawl_lock_free(w->lock);
    pairs++;
    if (mono_ns() < end_ns)
        ask(w);
    else
        active--;
}

static void on_granted(void *arg, int result, struct pawl_lock *lock)
{
    struct worker *w = arg;
    int64_t now_ns = mono_ns();
    int rc;

    if (result != 0)
        die("acquire", result);
    if (keep_grants) {
        add(&waits_us, (now_ns - w->asked_ns) / 1000);
        add(&times_us, now_ns / 1000);
        add(&who, w->number);
        if (now_ns < end_ns)
            w->grants++;
    }
    w->lock = lock;
    rc = pawl_lock_release_async(lock, on_released, w);
    if (rc != 0)
        die("release", rc);
}

static void ask(struct worker *w)
{
    struct pawl_lock_options o = lock_options();
    int rc;

    w->asked_ns = mono_ns();
    rc = pawl_lock_acquire_async(client, w->key, strlen(w->key), &o, on_granted, w, NULL);
    if (rc != 0)
        die("acquire", rc);
}

static void dispatch_until_idle(void)
{
    struct pollfd fd = { .fd = pawl_client_fd(client), .events = POLLIN };

    while (active > 0) {
        if (poll(&fd, 1, -1) < 0 && errno != EINTR)
            die("poll", PAWL_ESYSTEM);
        if (pawl_client_dispatch(client) < 0)
            die("dispatch", PAWL_ESYSTEM);
    }
}

/* Each worker has a lock of its own (w2), or all want one (w3). */
static void run_workers(bool one_key)
{
    struct worker *workers = must_alloc((size_t)opt.workers, sizeof *workers);
    int64_t begin_ns;

    keep_grants = one_key;
    if (one_key)
        wait_until(opt.t0_ns);
    begin_ns = mono_ns();
    end_ns = one_key ? opt.t0_ns + opt.run_ns : begin_ns + opt.run_ns;
    for (int i = 0; i < opt.workers; i++) {
        workers[i].number = i;
        if (one_key)
            (void)snprintf(workers[i].key, sizeof workers[i].key, "%s", opt.key);
        else
            (void)snprintf(workers[i].key, sizeof workers[i].key, "%s:%d", opt.key, i);
        active++;
        ask(&workers[i]);
    }
    dispatch_until_idle();
    if (one_key) {
        printf("{\"grants\":[");
        for (int i = 0; i < opt.workers; i++)
            printf("%s%lld", i == 0 ? "" : ",", (long long)workers[i].grants);
        printf("],");
        print_list("waits_us", &waits_us);
        printf(",");
        print_list("t_us", &times_us);
        printf(",");
        print_list("who", &who);
        printf("}\n");
    } else {
        printf("{\"pairs_s\":%.1f}\n", (double)pairs * 1e9 / (double)(mono_ns() - begin_ns));
    }
    free(workers);
}

/* ---- many held locks ---- */

static struct pawl_lock **held;
static int n_held;

static void on_held(void *arg, int result, struct pawl_lock *lock)
{
    (void)arg;
    if (result != 0)
        die("acquire", result);
    held[n_held++] = lock;
    active--;
}

static void hold_all(void)
{
    struct pawl_lock_options o = lock_options();
    char key[128];

    o.max_hold_ms = PAWL_UNLIMITED;
    for (int i = 0; i < opt.n; i++) {
        int rc;

        (void)snprintf(key, sizeof key, "%s:%d", opt.key, i);
        rc = pawl_lock_acquire_async(client, key, strlen(key), &o, on_held, NULL, NULL);
        if (rc != 0)
            die("acquire", rc);
        active++;
        if (active == 256 || i == opt.n - 1)
            dispatch_until_idle();
    }
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static long rss_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (f != NULL) {
        if (fscanf(f, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run_w5(void)
{
    struct pawl_stats before = { .size = sizeof before };
    struct pawl_stats after = { .size = sizeof after };
    int64_t begin_ns = mono_ns();
    int64_t hold_ns;
    double acquire_s;
    double cpu;
    int missed = 0;

    held = must_alloc((size_t)opt.n, sizeof(struct pawl_lock *));
    hold_all();
    acquire_s = (double)(mono_ns() - begin_ns) / 1e9;
    (void)pawl_client_stats(client, &before);
    printf("HELD\n");
    fflush(stdout);
    cpu = cpu_s();
    hold_ns = mono_ns();
    wait_until(hold_ns + opt.run_ns);
    hold_ns = mono_ns() - hold_ns;
    cpu = cpu_s() - cpu;
    printf("DONE\n");
    fflush(stdout);
    (void)pawl_client_stats(client, &after);
    for (int i = 0; i < opt.n; i++)
        missed += pawl_lock_check(held[i]) != 0;
    printf("{\"acq_s\":%.3f,\"cpu_s\":%.4f,\"hold_s\":%.3f,\"rss_kb\":%ld,\"missed\":%d,"
           "\"renewals\":%llu,\"native\":true}\n",
           acquire_s, cpu, (double)hold_ns / 1e9, rss_kb(), missed,
           (unsigned long long)(after.renewals - before.renewals));
    fflush(stdout);
    for (int i = 0; i < opt.n; i++)
        pawl_lock_free(held[i]);
    free(held);
}

/* ---- command line ---- */

static int64_t number(const char *text, const char *what)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        fprintf(stderr, "pawl-peer: %s=%s: must be a whole number\n", what, text);
        exit(2);
    }
    return n;
}

static void read_option(const char *arg)
{
    const char *value = strchr(arg, '=');
    size_t len = value == NULL ? 0 : (size_t)(value - arg);
    static const struct {
        const char *name;
        int64_t *wide;
        int *narrow;
        int64_t unit;
    } known[] = {
        { "ms", &opt.run_ns, NULL, NS_PER_MS },
        { "ttl", &opt.ttl_ms, NULL, 1 },
        { "t0", &opt.t0_ns, NULL, 1 },
        { "period", &opt.period_ns, NULL, NS_PER_MS },
        { "workers", NULL, &opt.workers, 1 },
        { "reps", NULL, &opt.reps, 1 },
        { "n", NULL, &opt.n, 1 },
    };

    if (len == 3 && strncmp(arg, "key", 3) == 0) {
        opt.key = value + 1;
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (len != strlen(known[i].name) || strncmp(arg, known[i].name, len) != 0)
            continue;
        if (known[i].wide != NULL)
            *known[i].wide = number(value + 1, known[i].name) * known[i].unit;
        else
            *known[i].narrow = (int)number(value + 1, known[i].name);
        return;
    }
    fprintf(stderr, "pawl-peer: %s: unknown option\n", arg);
    exit(2);
}

static void connect_to(const char *address)
{
    char url[256];
    int rc;

    (void)snprintf(url, sizeof url, "%s%s", strstr(address, "://") != NULL ? "" : "redis://",
                   address);
    rc = pawl_client_open(url, NULL, &client);
    if (rc == 0)
        rc = pawl_client_ready(client, 5000);
    if (rc != 0)
        die(url, rc);
}

int main(int argc, char **argv)
{
    const char *mode;

    if (argc < 4) {
        fprintf(stderr, "usage: pawl-peer NAME HOST:PORT MODE [key=value...]\n"
                        "modes: w1 w2 w3 w4hold w4wait w5; see bench/peers/README.md\n");
        return 2;
    }
    mode = argv[3];
    for (int i = 4; i < argc; i++)
        read_option(argv[i]);
    connect_to(argv[2]);
    if (strcmp(mode, "w1") == 0)
        run_w1();
    else if (strcmp(mode, "w2") == 0 || strcmp(mode, "w3") == 0)
        run_workers(strcmp(mode, "w3") == 0);
    else if (strcmp(mode, "w4hold") == 0 || strcmp(mode, "w4wait") == 0)
        run_w4(strcmp(mode, "w4hold") == 0);
    else if (strcmp(mode, "w5") == 0)
        run_w5();
    else
        die(mode, PAWL_EUSAGE);
    pawl_client_close(client);
    return 0;
}
