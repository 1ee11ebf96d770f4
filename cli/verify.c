/* pawl verify: does the lock exclude here? Processes contend; the server's clock and the fencing
 * token stamp each section; the records are judged. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "run.h"
#include "store.h"
#include "text.h"

enum { OPT_CLIENTS = OPT_OWN, OPT_SECONDS, OPT_HOLD };

struct section {
    int64_t enter_us; /* the server's clock, read while the lock was held */
    int64_t leave_us;
    uint64_t token;
    int client;
    int result; /* PAWL_OK, or why this client could not get in; then no times */
};

struct verify {
    struct options *opt;
    const char *key;
    int64_t n_clients;
    int64_t for_ms;
    int64_t hold_ms;
    struct section *sections;
    size_t n;
    size_t room;
    size_t failures;
    int last_failure;
};

static int64_t server_us(struct store *s)
{
    redisReply *r = store_command(s, "TIME");
    int64_t us = -1;

    if (r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == 2)
        us = strtoll(r->element[0]->str, NULL, 10) * 1000000 +
             strtoll(r->element[1]->str, NULL, 10);
    freeReplyObject(r);
    return us;
}

/* One contender, a process of its own: in and out until the time is over. */
static int contend(const struct verify *v, int client_number, int out)
{
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;
    int64_t end = boot_ns() + v->for_ms * 1000000;
    struct pawl_client *client = NULL;
    struct store *store = NULL;
    char why[256];

    if (options_client(v->opt, &client) != 0 || store_open(v->opt, &store, why, sizeof why) < 0)
        return 1;
    o.max_hold_ms = PAWL_UNLIMITED;
    while (boot_ns() < end) {
        struct section s = { .client = client_number };
        struct pawl_lock *lock = NULL;

        o.wait_ms = (end - boot_ns()) / 1000000 + 1;
        s.result = pawl_lock_acquire(client, v->key, strlen(v->key), &o, &lock);
        if (s.result == PAWL_TIMEOUT)
            break;
        if (s.result == PAWL_OK) {
            s.token = pawl_lock_token(lock);
            s.enter_us = server_us(store);
            (void)poll(NULL, 0, (int)v->hold_ms);
            s.leave_us = server_us(store);
            if (pawl_lock_check(lock) != PAWL_OK)
                s.result = pawl_lock_check(lock);
            pawl_lock_free(lock);
        }
        if (write(out, &s, sizeof s) != (ssize_t)sizeof s)
            break;
        if (s.result != PAWL_OK)
            (void)poll(NULL, 0, 50);
    }
    store_close(store);
    pawl_client_close(client);
    return 0;
}

static void take(struct verify *v, const struct section *s)
{
    if (s->result != PAWL_OK || s->enter_us < 0 || s->leave_us < 0) {
        v->failures++;
        v->last_failure = s->result;
        return;
    }
    if (v->n == v->room) {
        size_t room = v->room == 0 ? 1024 : v->room * 2;
        struct section *more = reallocarray(v->sections, room, sizeof *more);

        if (more == NULL)
            return;
        v->sections = more;
        v->room = room;
    }
    v->sections[v->n++] = *s;
}

static int by_enter(const void *a, const void *b)
{
    const struct section *x = a;
    const struct section *y = b;

    return (x->enter_us > y->enter_us) - (x->enter_us < y->enter_us);
}

/* A bar per section over the time that the shown ones span. */
static void draw(const struct verify *v)
{
    size_t n = v->n < 20 ? v->n : 20;
    int64_t begin = v->sections[0].enter_us;
    int64_t span = v->sections[n - 1].leave_us - begin + 1;

    (void)printf(_("the first %zu sections, %.1f ms:\n"), n, (double)span / 1000);
    for (size_t i = 0; i < n; i++) {
        const struct section *s = &v->sections[i];
        int from = (int)((s->enter_us - begin) * 50 / span);
        int to = (int)((s->leave_us - begin) * 50 / span);

        (void)printf("  %2d %*s", s->client, from, "");
        for (int c = from; c <= to; c++)
            (void)putchar('#');
        (void)printf("%*s %" PRIu64 "\n", 51 - to, "", s->token);
    }
}

static int judge(struct verify *v)
{
    size_t overlaps = 0;
    size_t disorders = 0;
    json_t *counts = json_array();
    bool good;

    if (v->n > 1)
        qsort(v->sections, v->n, sizeof v->sections[0], by_enter);
    for (size_t i = 1; i < v->n; i++) {
        overlaps += v->sections[i].enter_us < v->sections[i - 1].leave_us;
        disorders += v->sections[i].token <= v->sections[i - 1].token;
    }
    for (int c = 1; c <= v->n_clients; c++) {
        int64_t n = 0;

        for (size_t i = 0; i < v->n; i++)
            n += v->sections[i].client == c;
        (void)json_array_append_new(counts, json_integer(n));
    }
    good = overlaps == 0 && disorders == 0 && v->n > 0;
    if (v->opt->json) {
        json_t *o =
            json_pack("{s:b,s:I,s:I,s:I,s:I,s:o}", "excludes", good, "sections", (json_int_t)v->n,
                      "overlaps", (json_int_t)overlaps, "disorders", (json_int_t)disorders,
                      "failures", (json_int_t)v->failures, "per_client", counts);

        (void)json_print(o, 0);
    } else {
        if (v->n > 0)
            draw(v);
        (void)printf(_("%zu sections of %lld processes"), v->n, (long long)v->n_clients);
        for (size_t i = 0; i < json_array_size(counts); i++)
            (void)printf("%s%lld", i == 0 ? ": " : " ",
                         (long long)json_integer_value(json_array_get(counts, i)));
        (void)printf(_("\noverlaps: %zu   tokens out of order: %zu   not granted or lost: %zu\n"),
                     overlaps, disorders, v->failures);
        (void)printf("%s\n", good        ? _("verdict: it excludes")
                             : v->n == 0 ? _("verdict: nobody got in")
                                         : _("verdict: IT DOES NOT EXCLUDE"));
        json_decref(counts);
    }
    if (v->n == 0 && v->last_failure < 0)
        return end_output(cli_exit_of(v->last_failure));
    return end_output(good ? EXIT_OK : EXIT_NO);
}

static int verify(struct verify *v)
{
    struct section s;
    int out[2];
    pid_t parent = getpid();
    int code;
    int status;
    int worst = 0;

    if (pipe(out) < 0)
        return EXIT_REFUSED;
    for (int i = 1; i <= v->n_clients; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(out[0]);
            _exit(getppid() == parent ? contend(v, i, out[1]) : 1);
        }
    }
    close(out[1]);
    /* A record is smaller than what a pipe takes in one piece. */
    while (read(out[0], &s, sizeof s) == (ssize_t)sizeof s)
        take(v, &s);
    close(out[0]);
    while (wait(&status) > 0 || errno == EINTR)
        worst |= status;
    code = v->n == 0 && worst != 0 ? EXIT_UNREACHABLE : judge(v);
    if (v->n == 0 && worst != 0)
        say(_("the contenders could not connect"));
    free(v->sections);
    return code;
}

int command_verify(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "clients", required_argument, NULL, OPT_CLIENTS },
        { "seconds", required_argument, NULL, OPT_SECONDS },
        { "hold", required_argument, NULL, OPT_HOLD },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct verify v = { .opt = opt, .n_clients = 4, .for_ms = 5000, .hold_ms = 2 };
    int64_t seconds = 5;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        rc = c == OPT_CLIENTS   ? options_number(opt, "--clients", optarg, 1, 200, &v.n_clients)
             : c == OPT_SECONDS ? options_number(opt, "--seconds", optarg, 1, 3600, &seconds)
             : c == OPT_HOLD    ? options_duration(opt, "--hold", optarg, &v.hold_ms)
                                : 0;
        if (rc != 0)
            return rc;
    }
    if (argc - optind != 1)
        return usage_error("verify", _("one lock name is needed"));
    if (v.hold_ms > 60000)
        return usage_error("verify", _("--hold is from 0 to 60s"));
    v.key = argv[optind];
    v.for_ms = seconds * 1000;
    rc = options_finish(opt);
    return rc != 0 ? rc : verify(&v);
}
