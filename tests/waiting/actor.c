/* A program that waits for locks as it is told on its standard input, one command a line, and
 * prints one line per answer with its time on CLOCK_MONOTONIC. The tests of waiting run many of
 * them, stop them and kill them. Uses the public header only.
 *
 * Words are separated by blanks; in keys %XX stands for a byte. Commands:
 *   acq NAME KEY LEASE WAIT HOLD FLAGS OWNER   HOLD: ms after which it is released, -1: kept;
 *                                              OWNER: a text, or - for a new one
 *   line PREFIX N KEY LEASE WAIT HOLD   N of them on one key, named PREFIX0, PREFIX1, ...
 *   each PREFIX N KEY LEASE WAIT HOLD   the same with a key each: KEY0, KEY1, ...
 *   loop NAME KEY LEASE HOLD UNTIL_NS   take, hold, release, again, until then
 *   rel NAME | cancel NAME | check NAME | owner LABEL | inspect KEY | force KEY |
 *   stats | rss | quit
 *   tries KEY N      N free locks taken with wait 0 and released: latencies
 *   extends NAME N   N times the lease of one hold set anew: latencies */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <pawl.h>

#define NAME_LEN 64
#define WORDS 10
#define NEVER INT64_MAX

struct want {
    struct want *next;
    char name[NAME_LEN];
    char key[PAWL_KEY_MAX];
    size_t key_len;
    int64_t lease_ms;
    int64_t wait_ms;
    int64_t hold_ms;
    int64_t until_ns;   /* of a loop; 0: none */
    int64_t asked_ns;
    int64_t release_ns; /* NEVER: kept, or not held */
    long grants;
    unsigned flags;
    char owner[PAWL_OWNER_TEXT_MAX + 1]; /* "-": a new one */
    uint64_t id;
    struct pawl_lock *lock;
};

static struct pawl_client *client;
static struct want *wants;
static int64_t ready_ms = 5000;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void die(const char *what, int rc)
{
    fprintf(stderr, "actor: %s: %s (%s)\n", what, pawl_result_name(rc), pawl_error_detail());
    exit(1);
}

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

static void *must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL)
        die("memory", PAWL_ENOMEM);
    return p;
}

static struct want *find(const char *name)
{
    struct want *w = wants;

    while (w != NULL && strcmp(w->name, name) != 0)
        w = w->next;
    if (w == NULL)
        die(name, PAWL_EUSAGE);
    return w;
}

/* ---- one want ---- */

static void ask(struct want *w);

static void on_released(void *arg, int result)
{
    struct want *w = arg;

    if (w->until_ns == 0 || result != 0)
        printf("rel %s %s %lld\n", w->name, pawl_result_name(result), (long long)now_ns());
    pawl_lock_free(w->lock);
    w->lock = NULL;
    if (w->until_ns == 0)
        return;
    if (now_ns() < w->until_ns)
        ask(w);
    else
        printf("looped %s %ld\n", w->name, w->grants);
}

static void release(struct want *w)
{
    int rc;

    w->release_ns = NEVER;
    printf("out %s - %lld\n", w->name, (long long)now_ns());
    rc = pawl_lock_release_async(w->lock, on_released, w);
    if (rc != 0)
        die("release", rc);
}

static void on_granted(void *arg, int result, struct pawl_lock *lock)
{
    struct want *w = arg;
    int64_t at_ns = now_ns();

    printf("got %s %s %lld %lld %llu\n", w->name, pawl_result_name(result), (long long)at_ns,
           (long long)(at_ns - w->asked_ns),
           result == 0 ? (unsigned long long)pawl_lock_token(lock) : 0);
    if (result != 0)
        return;
    w->grants++;
    w->lock = lock;
    if (w->hold_ms == 0)
        release(w);
    else if (w->hold_ms > 0)
        w->release_ns = at_ns + w->hold_ms * 1000000;
}

static void ask(struct want *w)
{
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;
    struct pawl_owner *owner = NULL;
    int rc;

    if (strcmp(w->owner, "-") == 0)
        rc = pawl_owner_new(NULL, &owner);
    else
        rc = pawl_owner_parse(w->owner, &owner);
    if (rc != 0)
        die("owner", rc);
    o.owner = owner;
    o.lease_ms = w->lease_ms;
    o.wait_ms = w->wait_ms;
    o.max_hold_ms = PAWL_UNLIMITED;
    o.flags = w->flags;
    w->release_ns = NEVER;
    w->asked_ns = now_ns();
    rc = pawl_lock_acquire_async(client, w->key, w->key_len, &o, on_granted, w, &w->id);
    if (rc != 0)
        die("acquire", rc);
    pawl_owner_free(owner);
}

static size_t read_key(const char *text, char *key)
{
    size_t len = 0;

    while (*text != '\0' && len < PAWL_KEY_MAX) {
        unsigned byte;

        if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
            key[len++] = (char)byte;
            text += 3;
        } else {
            key[len++] = *text++;
        }
    }
    return len;
}

static struct want *want_new(const char *name, const char *key, const char *lease,
                             const char *wait, const char *hold)
{
    struct want *w = must_alloc(1, sizeof *w);

    (void)snprintf(w->name, sizeof w->name, "%s", name);
    (void)snprintf(w->owner, sizeof w->owner, "-");
    w->key_len = read_key(key, w->key);
    w->lease_ms = number(lease);
    w->wait_ms = number(wait);
    w->hold_ms = number(hold);
    w->next = wants;
    wants = w;
    return w;
}

/* ---- commands ---- */

static void do_acq(char **word)
{
    struct want *w = want_new(word[1], word[2], word[3], word[4], word[5]);

    w->flags = (unsigned)number(word[6]);
    (void)snprintf(w->owner, sizeof w->owner, "%s", word[7]);
    ask(w);
}

static void do_many(char **word, int each)
{
    int n = (int)number(word[2]);

    for (int i = 0; i < n; i++) {
        char name[NAME_LEN];
        char key[PAWL_KEY_MAX];

        (void)snprintf(name, sizeof name, "%s%d", word[1], i);
        if (each)
            (void)snprintf(key, sizeof key, "%s%d", word[3], i);
        else
            (void)snprintf(key, sizeof key, "%s", word[3]);
        ask(want_new(name, key, word[4], word[5], word[6]));
    }
    printf("asked %s %d %lld\n", word[1], n, (long long)now_ns());
}

static void do_loop(char **word)
{
    struct want *w = want_new(word[1], word[2], word[3], "-1", word[4]);

    w->until_ns = number(word[5]);
    ask(w);
}

static void do_cancel(char **word)
{
    int rc = pawl_cancel(client, find(word[1])->id);

    printf("asked-cancel %s %s %lld\n", word[1], pawl_result_name(rc), (long long)now_ns());
}

static void do_check(char **word)
{
    struct want *w = find(word[1]);

    printf("check %s %s %lld\n", word[1],
           w->lock == NULL ? "none" : pawl_result_name(pawl_lock_check(w->lock)),
           (long long)now_ns());
}

static void do_owner(char **word)
{
    struct pawl_owner *owner;
    int rc = pawl_owner_new(word[1], &owner);

    if (rc != 0)
        die("owner", rc);
    printf("owner %s\n", pawl_owner_text(owner));
    pawl_owner_free(owner);
}

static void do_inspect(char **word)
{
    char key[PAWL_KEY_MAX];
    struct pawl_lock_info *info;
    size_t len = read_key(word[1], key);
    int rc = pawl_inspect(client, key, len, &info);

    if (rc != 0) {
        printf("inspect %s\n", pawl_result_name(rc));
        return;
    }
    printf("inspect PAWL_OK %s %lld %zu %zu", info->owner, (long long)info->held_ms,
           info->n_waiters, info->n_listed);
    for (size_t i = 0; i < info->n_listed; i++)
        printf(" %s,%lld,%lld", info->waiters[i].owner, (long long)info->waiters[i].pid,
               (long long)info->waiters[i].waiting_ms);
    printf("\n");
    pawl_lock_info_free(info);
}

static void do_force(char **word)
{
    char key[PAWL_KEY_MAX];
    int rc = pawl_force_release(client, key, read_key(word[1], key), 0, PAWL_FORCE_NOW);

    printf("force %s\n", pawl_result_name(rc));
}

static void do_stats(void)
{
    struct pawl_stats s = { .size = sizeof s };

    (void)pawl_client_stats(client, &s);
    printf("stats %llu %llu %llu %llu %llu\n", (unsigned long long)s.commands,
           (unsigned long long)s.waiting, (unsigned long long)s.held,
           (unsigned long long)s.late_renewals, (unsigned long long)s.waits);
}

static void do_rss(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;
    struct timespec cpu;

    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("rss %ld %lld\n", pages * sysconf(_SC_PAGESIZE),
           (long long)cpu.tv_sec * 1000000000 + cpu.tv_nsec);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_latencies(const char *what, int64_t *took_ns, int n)
{
    qsort(took_ns, (size_t)n, sizeof *took_ns, ascending);
    printf("%s %lld %lld %lld\n", what, (long long)took_ns[n / 2],
           (long long)took_ns[(int64_t)n * 99 / 100], (long long)took_ns[n - 1]);
    free(took_ns);
}

static void do_tries(char **word)
{
    int n = (int)number(word[2]);
    int64_t *took_ns = must_alloc((size_t)n, sizeof *took_ns);
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;

    o.wait_ms = 0;
    for (int i = 0; i < n; i++) {
        struct pawl_lock *lock;
        int64_t at_ns = now_ns();
        int rc = pawl_lock_acquire(client, word[1], strlen(word[1]), &o, &lock);

        took_ns[i] = now_ns() - at_ns;
        if (rc != 0)
            die("try", rc);
        if (pawl_lock_release(lock) != 0)
            die("release", PAWL_ESERVER);
        pawl_lock_free(lock);
    }
    print_latencies("tries", took_ns, n);
}

static void do_extends(char **word)
{
    int n = (int)number(word[2]);
    int64_t *took_ns = must_alloc((size_t)n, sizeof *took_ns);
    struct want *w = find(word[1]);

    for (int i = 0; i < n; i++) {
        int64_t at_ns = now_ns();
        int rc = pawl_lock_extend(w->lock, w->lease_ms);

        took_ns[i] = now_ns() - at_ns;
        if (rc != 0)
            die("extend", rc);
    }
    print_latencies("extends", took_ns, n);
}

static void quit(void)
{
    pawl_client_close(client);
    printf("closed\n");
    fflush(stdout);
    exit(0);
}

static void obey(char *line)
{
    char *word[WORDS] = { NULL };
    char *rest = line;
    int n = 0;

    while (n < WORDS && (word[n] = strsep(&rest, " ")) != NULL)
        n++;
    if (strcmp(word[0], "acq") == 0 && n == 8)
        do_acq(word);
    else if (strcmp(word[0], "line") == 0 && n == 7)
        do_many(word, 0);
    else if (strcmp(word[0], "each") == 0 && n == 7)
        do_many(word, 1);
    else if (strcmp(word[0], "loop") == 0 && n == 6)
        do_loop(word);
    else if (strcmp(word[0], "rel") == 0)
        release(find(word[1]));
    else if (strcmp(word[0], "cancel") == 0)
        do_cancel(word);
    else if (strcmp(word[0], "check") == 0)
        do_check(word);
    else if (strcmp(word[0], "owner") == 0)
        do_owner(word);
    else if (strcmp(word[0], "inspect") == 0)
        do_inspect(word);
    else if (strcmp(word[0], "force") == 0)
        do_force(word);
    else if (strcmp(word[0], "stats") == 0)
        do_stats();
    else if (strcmp(word[0], "rss") == 0)
        do_rss();
    else if (strcmp(word[0], "tries") == 0)
        do_tries(word);
    else if (strcmp(word[0], "extends") == 0)
        do_extends(word);
    else if (strcmp(word[0], "quit") == 0)
        quit();
    else
        die(line, PAWL_EUSAGE);
}

/* ---- the loop ---- */

static void read_commands(void)
{
    static char text[8192];
    static size_t len;
    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - len - 1);
    char *end;

    if (n == 0)
        quit();
    if (n < 0)
        return;
    len += (size_t)n;
    text[len] = '\0';
    while ((end = strchr(text, '\n')) != NULL) {
        *end = '\0';
        obey(text);
        len -= (size_t)(end + 1 - text);
        memmove(text, end + 1, len + 1);
    }
}

/* Release what is due; returns the ms until the next. */
static int release_due(void)
{
    int64_t next_ns = NEVER;
    int64_t at_ns = now_ns();

    for (struct want *w = wants; w != NULL; w = w->next) {
        if (w->release_ns <= at_ns)
            release(w);
        else if (w->release_ns < next_ns)
            next_ns = w->release_ns;
    }
    return next_ns == NEVER ? -1 : (int)((next_ns - at_ns) / 1000000 + 1);
}

static void read_option(struct pawl_client_options *o, char *arg)
{
    char *value = strchr(arg, '=');

    if (value == NULL)
        die(arg, PAWL_EUSAGE);
    *value++ = '\0';
    if (strcmp(arg, "command_ms") == 0)
        o->command_ms = number(value);
    else if (strcmp(arg, "connect_ms") == 0)
        o->connect_ms = number(value);
    else if (strcmp(arg, "release_ms") == 0)
        o->release_ms = number(value);
    else if (strcmp(arg, "flags") == 0)
        o->flags = (unsigned)number(value);
    else if (strcmp(arg, "ready_ms") == 0)
        ready_ms = number(value);
    else if (strcmp(arg, "prefix") == 0)
        o->prefix = value;
    else
        die(arg, PAWL_EUSAGE);
}

static void on_log(void *arg, enum pawl_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    fprintf(stderr, "actor: %s\n", line);
}

int main(int argc, char **argv)
{
    struct pawl_client_options o = PAWL_CLIENT_OPTIONS_INIT;
    struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };
    int rc;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 2; i < argc; i++)
        read_option(&o, argv[i]);
    o.log = on_log;
    rc = argc < 2 ? PAWL_EUSAGE : pawl_client_open(argv[1], &o, &client);
    if (rc != 0)
        die("open", rc);
    rc = pawl_client_ready(client, ready_ms);
    printf("ready %s\n", pawl_result_name(rc));
    fds[1].fd = pawl_client_fd(client);
    for (;;) {
        if (poll(fds, 2, release_due()) < 0 && errno != EINTR)
            die("poll", PAWL_ESYSTEM);
        if ((fds[0].revents & (POLLIN | POLLHUP)) != 0)
            read_commands();
        if (pawl_client_dispatch(client) < 0)
            die("dispatch", PAWL_ESYSTEM);
    }
}
