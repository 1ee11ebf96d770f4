/* pawl bench: how fast are acquire, release and hand-over on this server, beside what it can do
 * raw. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "run.h"
#include "scan.h"
#include "store.h"
#include "text.h"

enum { OPT_SECONDS = OPT_OWN, OPT_LOCKS };

#define MOST 200000

struct bench {
    struct options *opt;
    int64_t for_ms; /* of each measurement */
    int64_t n_locks;
    struct store *store;
    struct pawl_client *client;
    struct pawl_client *other;
    json_t *results;
    int64_t *ns; /* MOST of them */
    size_t n;
};

static void took(struct bench *b, int64_t begun)
{
    if (b->n < MOST)
        b->ns[b->n++] = boot_ns() - begun;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double ms_at(const struct bench *b, size_t percent)
{
    return (double)b->ns[(b->n - 1) * percent / 100] / 1e6;
}

/* Ten bars from the least to the P99, so that a second hump is seen. */
static void plot(const struct bench *b)
{
    double least = ms_at(b, 0);
    double width = (ms_at(b, 99) - least) / 10;
    size_t at = 0;

    for (int i = 1; i <= 10 && width > 0; i++) {
        size_t from = at;
        size_t bar;

        while (at < b->n && (double)b->ns[at] / 1e6 <= least + width * i)
            at++;
        bar = (at - from) * 50 / b->n;
        (void)printf("    %8.3f ms ", least + width * i);
        for (size_t c = 0; c < bar; c++)
            (void)putchar('#');
        (void)putchar('\n');
    }
}

static void report(struct bench *b, const char *id, const char *name, int64_t begun)
{
    double seconds = (double)(boot_ns() - begun) / 1e9;

    if (b->n == 0)
        return;
    qsort(b->ns, b->n, sizeof b->ns[0], by_size);
    if (b->opt->json) {
        json_t *o = json_pack("{s:s,s:I,s:f,s:f,s:f,s:f}", "what", id, "n", (json_int_t)b->n,
                              "per_second", (double)b->n / seconds, "p50_ms", ms_at(b, 50),
                              "p99_ms", ms_at(b, 99), "max_ms", ms_at(b, 100));

        (void)json_array_append_new(b->results, o);
    } else {
        (void)printf("%-36s %9.0f/s  P50 %.3f  P99 %.3f  max %.3f ms\n", name,
                     (double)b->n / seconds, ms_at(b, 50), ms_at(b, 99), ms_at(b, 100));
        plot(b);
    }
    b->n = 0;
}

static int raw(struct bench *b)
{
    int64_t begun = boot_ns();
    int64_t end = begun + b->for_ms * 1000000;

    while (boot_ns() < end) {
        int64_t one = boot_ns();
        redisReply *r = store_command(b->store, "PING");

        if (r == NULL)
            return PAWL_ECONNECT;
        freeReplyObject(r);
        took(b, one);
    }
    report(b, "ping", _("raw: one round trip"), begun);
    begun = boot_ns();
    end = begun + b->for_ms * 1000000;
    while (boot_ns() < end) {
        int64_t one = boot_ns();
        const char *prefix = b->opt->prefix == NULL ? "" : b->opt->prefix;

        freeReplyObject(store_command(b->store, "SET %spawl-bench:raw x NX PX 1000", prefix));
        redisReply *r = store_command(b->store, "DEL %spawl-bench:raw", prefix);

        if (r == NULL)
            return PAWL_ECONNECT;
        freeReplyObject(r);
        took(b, one);
    }
    report(b, "set-del", _("raw: SET NX PX and DEL"), begun);
    return 0;
}

static int pairs(struct bench *b)
{
    int64_t begun = boot_ns();
    int64_t end = begun + b->for_ms * 1000000;

    while (boot_ns() < end) {
        struct pawl_lock *lock = NULL;
        int64_t one = boot_ns();
        int rc = pawl_lock_acquire(b->client, "pawl-bench:pair", 15, NULL, &lock);

        if (rc != PAWL_OK)
            return rc;
        rc = pawl_lock_release(lock);
        pawl_lock_free(lock);
        if (rc < 0)
            return rc;
        took(b, one);
    }
    report(b, "pair", _("acquire and release"), begun);
    return 0;
}

struct grant {
    size_t pending;
    int result;
    struct pawl_lock *lock;
};

static void granted(void *arg, int result, struct pawl_lock *lock)
{
    struct grant *g = arg;

    g->pending = 0;
    g->result = result;
    g->lock = lock;
}

/* Two clients in turn: the one releases, the other waits; from the release to the grant. */
static int hand_over(struct bench *b)
{
    struct pawl_client *clients[] = { b->client, b->other };
    struct pawl_lock *lock = NULL;
    int64_t begun = boot_ns();
    int64_t end = begun + b->for_ms * 1000000;
    int rc = pawl_lock_acquire(b->client, "pawl-bench:hand", 15, NULL, &lock);

    for (size_t turn = 1; rc == PAWL_OK && boot_ns() < end; turn++) {
        struct grant g = { .pending = 1 };
        struct pawl_client *next = clients[turn % 2];
        struct pawl_lock_info *info = NULL;
        int64_t one;

        rc = pawl_lock_acquire_async(next, "pawl-bench:hand", 15, NULL, granted, &g, NULL);
        /* It waits when the store says so. */
        for (size_t seen = 0; rc == PAWL_OK && seen == 0;) {
            rc = pawl_inspect(next, "pawl-bench:hand", 15, &info);
            seen = rc == PAWL_OK ? info->n_waiters : 0;
            pawl_lock_info_free(info);
            info = NULL;
        }
        one = boot_ns();
        (void)pawl_lock_release_async(lock, NULL, NULL);
        client_wait(next, &g.pending, 0);
        took(b, one);
        pawl_lock_free(lock);
        lock = g.lock;
        rc = rc == PAWL_OK ? g.result : rc;
    }
    pawl_lock_free(lock);
    report(b, "hand-over", _("hand-over to a waiter"), begun);
    return rc;
}

struct many {
    struct bench *bench;
    int64_t begun;
    size_t *pending;
    struct pawl_lock *lock;
    int result;
};

static void many_granted(void *arg, int result, struct pawl_lock *lock)
{
    struct many *m = arg;

    m->lock = lock;
    m->result = result;
    (*m->pending)--;
    took(m->bench, m->begun);
}

static int many(struct bench *b)
{
    struct many *all = calloc((size_t)b->n_locks, sizeof *all);
    size_t pending = 0;
    int64_t begun = boot_ns();
    int rc = all == NULL ? PAWL_ENOMEM : 0;

    for (int64_t i = 0; rc == 0 && i < b->n_locks; i++) {
        char key[64];
        int len = snprintf(key, sizeof key, "pawl-bench:many:%lld", (long long)i);

        all[i] = (struct many){ b, boot_ns(), &pending, NULL, 0 };
        pending++;
        rc = pawl_lock_acquire_async(b->client, key, (size_t)len, NULL, many_granted, &all[i],
                                     NULL);
        if (rc < 0)
            pending--;
        client_wait(b->client, &pending, 255);
    }
    client_wait(b->client, &pending, 0);
    report(b, "many", _("many locks taken and held"), begun);
    for (int64_t i = 0; all != NULL && i < b->n_locks; i++) {
        rc = rc == 0 ? all[i].result : rc;
        pawl_lock_free(all[i].lock);
    }
    free(all);
    return rc;
}

static int bench(struct bench *b)
{
    char why[256];
    int rc = store_open(b->opt, &b->store, why, sizeof why);
    int code = 0;

    if (rc < 0) {
        say("%s (%s)", result_text(rc), why);
        return cli_exit_of(rc);
    }
    b->ns = calloc(MOST, sizeof *b->ns);
    b->results = json_array();
    code = options_client(b->opt, &b->client);
    if (code == 0)
        code = options_client(b->opt, &b->other);
    if (code == 0 && b->ns != NULL) {
        rc = raw(b);
        rc = rc == 0 ? pairs(b) : rc;
        rc = rc == 0 ? hand_over(b) : rc;
        rc = rc == 0 ? many(b) : rc;
        if (rc != 0)
            code = say_result("bench", rc);
    }
    if (code == 0 && b->opt->json)
        (void)json_print(json_incref(b->results), 0);
    json_decref(b->results);
    free(b->ns);
    pawl_client_close(b->other);
    pawl_client_close(b->client);
    store_close(b->store);
    return end_output(code);
}

static bool is_loopback(const char *url)
{
    struct store_address a;
    bool here = store_address_parse(url, &a) == 0 &&
                (a.unix_socket || strncmp(a.host, "127.", 4) == 0 || strcmp(a.host, "::1") == 0 ||
                 strcmp(a.host, "localhost") == 0);

    store_address_done(&a);
    return here;
}

int command_bench(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "seconds", required_argument, NULL, OPT_SECONDS },
        { "locks", required_argument, NULL, OPT_LOCKS },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct bench b = { .opt = opt, .n_locks = 1000 };
    int64_t seconds = 2;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        rc = c == OPT_SECONDS ? options_number(opt, "--seconds", optarg, 1, 60, &seconds)
             : c == OPT_LOCKS ? options_number(opt, "--locks", optarg, 1, 100000, &b.n_locks)
                              : 0;
        if (rc != 0)
            return rc;
    }
    if (argc > optind)
        return usage_error("bench", _("only options"));
    b.for_ms = seconds * 1000;
    rc = options_finish(opt);
    if (rc != 0)
        return rc;
    if (!is_loopback(opt->url))
        say(_("WARNING: this is not a server on this machine; others there will feel the load"));
    return bench(&b);
}
