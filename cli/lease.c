/* pawl lease: a lease and a maximum hold from observed hold times. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "duration.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "run.h"
#include "scan.h"
#include "text.h"

enum { OPT_FOR = OPT_OWN, OPT_EVERY, OPT_METRICS };

/* Hold times seen: of holds that ended while we looked, and of those that still go on. */
struct holds {
    int64_t *ms;
    size_t n;
    size_t room;
    size_t open; /* of them still going on at the end */
};

static void add(struct holds *h, int64_t ms)
{
    if (h->n == h->room) {
        size_t room = h->room == 0 ? 256 : h->room * 2;
        int64_t *more = reallocarray(h->ms, room, sizeof *more);

        if (more == NULL)
            return;
        h->ms = more;
        h->room = room;
    }
    h->ms[h->n++] = ms;
}

static bool still_there(const struct scan *now, const struct scan_row *row)
{
    for (size_t i = 0; i < now->n; i++)
        if (now->rows[i].key_len == row->key_len &&
            memcmp(now->rows[i].key, row->key, row->key_len) == 0)
            return now->rows[i].info->token == row->info->token;
    return false;
}

/* Look every so often; a hold that is gone was as long as it was last seen, and half a period. */
static int sample(struct options *opt, const char *pattern, int64_t for_ms, int64_t every_ms,
                  struct holds *holds)
{
    struct scan before = { 0 };
    struct pawl_client *client = NULL;
    struct store *store = NULL;
    int64_t end = boot_ns() / 1000000 + for_ms;
    char why[256];
    int rc = store_open(opt, &store, why, sizeof why);
    int code = 0;

    if (rc == 0)
        code = options_client(opt, &client);
    while (rc == 0 && code == 0) {
        struct scan now = { 0 };

        rc = scan_keys(&now, store, opt, pattern, why, sizeof why);
        if (rc == 0 && now.n > 0)
            rc = scan_inspect(&now, client);
        for (size_t i = 0; i < before.n; i++)
            if (!still_there(&now, &before.rows[i]) && before.rows[i].info->held_ms >= 0)
                add(holds, before.rows[i].info->held_ms + every_ms / 2);
        scan_done(&before);
        before = now;
        if (boot_ns() / 1000000 >= end)
            break;
        (void)poll(NULL, 0, (int)every_ms);
    }
    for (size_t i = 0; i < before.n; i++) {
        if (before.rows[i].info->held_ms < 0)
            continue;
        add(holds, before.rows[i].info->held_ms);
        holds->open++;
    }
    if (rc < 0) {
        say("%s (%s)", result_text(rc), why);
        code = cli_exit_of(rc);
    }
    scan_done(&before);
    pawl_client_close(client);
    store_close(store);
    return code;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Up to a number that people would choose: 1, 2, 3 or 5 times a power of ten seconds. */
static int64_t rounded(int64_t ms)
{
    static const int64_t steps[] = { 1000,    2000,    3000,    5000,     10000,    20000,
                                     30000,   60000,   120000,  300000,   600000,   1200000,
                                     1800000, 3600000, 7200000, 14400000, 28800000, 86400000 };

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (ms <= steps[i])
            return steps[i];
    return ms;
}

static int report(const struct options *opt, struct holds *h)
{
    int64_t p50;
    int64_t p99;
    int64_t longest;
    int64_t lease;
    int64_t most;
    char text[6][DURATION_TEXT];

    if (h->n == 0) {
        say(_("no hold was seen; look for longer with --for, or when there is work"));
        return EXIT_NO;
    }
    qsort(h->ms, h->n, sizeof h->ms[0], by_size);
    p50 = h->ms[h->n / 2];
    p99 = h->ms[(h->n * 99 - 1) / 100 < h->n ? (h->n * 99 - 1) / 100 : h->n - 1];
    longest = h->ms[h->n - 1];
    /* With renewal the lease need not cover the work; but work that outlives its client's pauses
     * is better off with 2 to 3 times what most of it takes, within what a crash may cost. */
    lease = clamp(rounded(p99 * 5 / 2), 1000, PAWL_LEASE_MAX_MS);
    most = rounded(longest * 3 > lease ? longest * 3 : lease);
    if (opt->json) {
        json_t *o =
            json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "holds", (json_int_t)h->n, "open",
                      (json_int_t)h->open, "p50_ms", (json_int_t)p50, "p99_ms", (json_int_t)p99,
                      "longest_ms", (json_int_t)longest, "lease_ms", (json_int_t)lease,
                      "max_hold_ms", (json_int_t)most, "takeover_ms", (json_int_t)lease);

        return end_output(json_print(o, 0));
    }
    (void)printf(_("seen: %zu holds (%zu still going on): median %s, P99 %s, longest %s\n"), h->n,
                 h->open, duration_text(p50, text[0], DURATION_TEXT),
                 duration_text(p99, text[1], DURATION_TEXT),
                 duration_text(longest, text[2], DURATION_TEXT));
    (void)printf(_("recommended: lease %s (2 to 3 times the P99), maximum hold %s\n"),
                 duration_text(lease, text[3], DURATION_TEXT),
                 duration_text(most, text[4], DURATION_TEXT));
    (void)printf(_("what it costs: after a crash the next one gets the lock within %s\n"),
                 text[3]);
    if (lease > 60000)
        (void)printf("%s\n", _("that is long; with renewal on, 30s is enough, since the watchdog "
                               "prolongs it as long as the work runs"));
    return end_output(0);
}

/* A histogram pawl_hold_seconds of Prometheus text: each bucket's holds count as its bound. */
static int read_metrics(const char *path, struct holds *h)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    long long before = 0;

    if (file == NULL)
        return usage_error("lease", _("cannot read %s"), path);
    while (getline(&line, &size, file) >= 0) {
        const char *le = strstr(line, "le=\"");
        const char *value = strrchr(line, ' ');
        double bound;
        long long n;

        if (strstr(line, "_hold_seconds_bucket{") == NULL || le == NULL || value == NULL)
            continue;
        bound = strtod(le + 4, NULL);
        n = strtoll(value, NULL, 10);
        if (n < before)
            before = 0; /* the next series */
        if (isfinite(bound))
            for (long long i = before; i < n && i - before < 100000; i++)
                add(h, (int64_t)(bound * 1000));
        before = n;
    }
    free(line);
    if (file != stdin)
        (void)fclose(file);
    return 0;
}

int command_lease(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "for", required_argument, NULL, OPT_FOR },
        { "every", required_argument, NULL, OPT_EVERY },
        { "metrics", required_argument, NULL, OPT_METRICS },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct holds holds = { 0 };
    const char *metrics = NULL;
    int64_t for_ms = 60000;
    int64_t every_ms = 200;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        rc = c == OPT_FOR     ? options_duration(opt, "--for", optarg, &for_ms)
             : c == OPT_EVERY ? options_duration(opt, "--every", optarg, &every_ms)
                              : 0;
        if (rc != 0)
            return rc;
        if (c == OPT_METRICS)
            metrics = optarg;
    }
    if (every_ms < 50 || every_ms > 60000)
        return usage_error("lease", _("--every is from 50ms to 60s"));
    if (argc - optind != (metrics == NULL ? 1 : 0))
        return usage_error("lease", _("one lock name or pattern is needed, or --metrics FILE"));
    if (metrics != NULL) {
        rc = read_metrics(metrics, &holds);
    } else {
        rc = options_finish(opt);
        if (rc == 0)
            rc = sample(opt, argv[optind], for_ms, every_ms, &holds);
    }
    if (rc == 0)
        rc = report(opt, &holds);
    free(holds.ms);
    return rc;
}
