/* What the integration tests share; see harness.h. */
#include "integration/harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* ---- fixtures ---- */

int server_up(void **state)
{
    static const struct server_options opts = { .tcp = true };

    *state = server_start(&opts);
    return 0;
}

int server_down(void **state)
{
    server_free(*state);
    return 0;
}

int server_clean(void **state)
{
    struct server *s = *state;

    if (s->pid <= 0)
        server_begin(s);
    server_resume(s);
    server_do(s, "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    server_do(s, "FLUSHALL");
    server_do(s, "CONFIG RESETSTAT");
    return 0;
}

/* ---- clients and locks ---- */

void expect_result(int result, int wanted, const char *file, int line)
{
    if (result == wanted)
        return;
    print_error("%s:%d: %s (%d, \"%s\"), wanted %s\n", file, line, pawl_result_name(result),
                result, pawl_error_detail(), pawl_result_name(wanted));
    _fail(file, line);
}

struct pawl_client *open_only(const char *url, const struct pawl_client_options *opts)
{
    struct pawl_client *client = NULL;

    EXPECT_RESULT(pawl_client_open(url, opts, &client), 0);
    assert_non_null(client);
    return client;
}

struct pawl_client *open_client(const char *url, const struct pawl_client_options *opts)
{
    struct pawl_client *client = open_only(url, opts);

    EXPECT_RESULT(pawl_client_ready(client, slack_ms(10000)), 0);
    return client;
}

struct pawl_lock_options lock_options(int64_t lease_ms, int64_t wait_ms)
{
    struct pawl_lock_options opts = PAWL_LOCK_OPTIONS_INIT;

    opts.lease_ms = lease_ms;
    opts.wait_ms = wait_ms;
    return opts;
}

struct pawl_lock *take_with(struct pawl_client *client, const char *key,
                            const struct pawl_lock_options *opts)
{
    struct pawl_lock *lock = NULL;

    EXPECT_RESULT(pawl_lock_acquire(client, key, strlen(key), opts, &lock), 0);
    assert_non_null(lock);
    return lock;
}

struct pawl_lock *take(struct pawl_client *client, const char *key, int64_t lease_ms,
                       int64_t wait_ms)
{
    return take_as(client, key, NULL, lease_ms, wait_ms);
}

struct pawl_lock *take_as(struct pawl_client *client, const char *key,
                          const struct pawl_owner *owner, int64_t lease_ms, int64_t wait_ms)
{
    struct pawl_lock_options opts = lock_options(lease_ms, wait_ms);

    opts.owner = owner;
    return take_with(client, key, &opts);
}

int refuse(struct pawl_client *client, const char *key, int64_t lease_ms, int64_t wait_ms)
{
    struct pawl_lock_options opts = lock_options(lease_ms, wait_ms);
    struct pawl_lock *none = (struct pawl_lock *)&opts; /* must stay as it is */
    int rc = pawl_lock_acquire(client, key, strlen(key), &opts, &none);

    assert_int_not_equal(rc, 0);
    assert_ptr_equal(none, &opts);
    return rc;
}

int give_back(struct pawl_lock *lock)
{
    int rc = pawl_lock_release(lock);

    pawl_lock_free(lock);
    return rc;
}

struct pawl_owner *new_owner(const char *label)
{
    struct pawl_owner *owner = NULL;

    EXPECT_RESULT(pawl_owner_new(label, &owner), 0);
    return owner;
}

/* ---- events ---- */

void on_event(void *events, struct pawl_lock *lock, enum pawl_event event, int result)
{
    struct events *e = events;
    size_t len;

    (void)lock;
    pthread_mutex_lock(&e->mu);
    e->n[event]++;
    e->last[event] = result;
    e->at_ms[event] = now_ms();
    len = strlen(e->order);
    if (len + 1 < sizeof e->order)
        e->order[len] = "RCEL"[event];
    pthread_mutex_unlock(&e->mu);
}

int events_count(struct events *e, enum pawl_event event)
{
    int n;

    pthread_mutex_lock(&e->mu);
    n = e->n[event];
    pthread_mutex_unlock(&e->mu);
    return n;
}

bool fd_readable(int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLIN };

    return poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

/* ---- completions ---- */

void on_acquired(void *done, int result, struct pawl_lock *lock)
{
    struct done *d = done;

    d->lock = lock;
    on_done(done, result);
}

void on_done(void *done, int result)
{
    struct done *d = done;

    d->n++;
    d->result = result;
    d->at_ms = now_ms();
}

void on_inspected(void *done, int result, struct pawl_lock_info *info)
{
    struct done *d = done;

    d->info = info;
    on_done(done, result);
}

static void dispatch_within(struct pawl_client *client, int64_t ms)
{
    struct pollfd polled = { .fd = pawl_client_fd(client), .events = POLLIN };

    assert_true(polled.fd >= 0);
    if (poll(&polled, 1, (int)ms) > 0)
        assert_true(pawl_client_dispatch(client) >= 0);
}

void await_done(struct pawl_client *client, struct done *done, int64_t ms)
{
    int64_t end_ms = now_ms() + slack_ms(ms);

    while (done->n == 0) {
        int64_t left_ms = end_ms - now_ms();

        if (left_ms <= 0)
            fail_msg("no completion within %lld ms", (long long)slack_ms(ms));
        dispatch_within(client, left_ms);
    }
}

void dispatch_for(struct pawl_client *client, int64_t ms)
{
    int64_t end_ms = now_ms() + ms;

    for (int64_t left_ms = ms; left_ms > 0; left_ms = end_ms - now_ms())
        dispatch_within(client, left_ms);
}

/* ---- log ---- */

void book_init(struct book *b)
{
    pthread_mutex_init(&b->mu, NULL);
    b->len = 0;
    b->text[0] = '\0';
}

void book_write(void *book, enum pawl_log_level level, const char *line)
{
    struct book *b = book;
    int n;

    pthread_mutex_lock(&b->mu);
    n = snprintf(b->text + b->len, sizeof b->text - b->len, "%c %s\n", "EWID"[level], line);
    if (n > 0 && b->len + (size_t)n < sizeof b->text)
        b->len += (size_t)n;
    pthread_mutex_unlock(&b->mu);
}

size_t book_count(struct book *b, const char *part)
{
    size_t n = 0;

    pthread_mutex_lock(&b->mu);
    for (const char *at = b->text; (at = strstr(at, part)) != NULL; at++)
        n++;
    pthread_mutex_unlock(&b->mu);
    return n;
}

bool book_has(struct book *b, const char *part)
{
    return book_count(b, part) > 0;
}

/* ---- the server's side ---- */

bool exists(struct server *s, const char *key)
{
    return server_int(s, "EXISTS %s", key) == 1;
}

long long pttl(struct server *s, const char *key)
{
    return server_int(s, "PTTL %s", key);
}

static size_t count_keys(struct server *s, bool immortal)
{
    redisReply *r = server_ask(s, "KEYS *");
    size_t n = 0;

    for (size_t i = 0; i < r->elements; i++) {
        const redisReply *key = r->element[i];

        if (strstr(key->str, "pawl:f:") != NULL ||
            (immortal && server_int(s, "PTTL %b", key->str, key->len) != -1))
            continue;
        n++;
        print_message("left over: %s\n", key->str);
    }
    freeReplyObject(r);
    return n;
}

size_t leftovers(struct server *s)
{
    return count_keys(s, false);
}

size_t immortals(struct server *s)
{
    return count_keys(s, true);
}

void foreign_hash(struct server *s, const char *key, const char *owner, int64_t lease_ms)
{
    server_do(s, "HSET %s %s 1", key, owner);
    server_do(s, "PEXPIRE %s %lld", key, (long long)lease_ms);
}

/* ---- helper programs ---- */

const char *built(const char *name)
{
    static char path[512];
    const char *build = getenv("PAWL_BUILD");

    snprintf(path, sizeof path, "%s/tests/integration/%s", build == NULL ? "build" : build, name);
    return path;
}

struct child *holder_start(const char *url, const char *env)
{
    const char *argv[] = { built("holder"), url, NULL };

    return child_start(argv, env);
}
