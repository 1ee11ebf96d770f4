/* What the integration tests share: a server per file, clients, locks, and counters for events,
 * completions and log lines. Uses the public header only. */
#ifndef TESTS_INTEGRATION_HARNESS_H
#define TESTS_INTEGRATION_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>
#include <pawl.h>

#include "lib/child.h"
#include "lib/files.h"
#include "lib/patience.h"
#include "lib/relay.h"
#include "lib/server.h"

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- fixtures: *state is the file's server ---- */

int server_up(void **state); /* group set-up */
int server_down(void **state); /* group tear-down */
int server_clean(void **state); /* before each test: it runs, has no data and default settings */

/* A test of the file's server. */
#define SERVED(test) cmocka_unit_test_setup(test, server_clean)
#define RUN_SERVED(tests) cmocka_run_group_tests(tests, server_up, server_down)

/* ---- clients and locks ---- */

/* Opens, and waits until it is ready. @opts NULL: all defaults. */
struct pawl_client *open_client(const char *url, const struct pawl_client_options *opts);
/* Opens and waits for nothing. */
struct pawl_client *open_only(const char *url, const struct pawl_client_options *opts);

struct pawl_lock_options lock_options(int64_t lease_ms, int64_t wait_ms);
/* Acquires and expects a grant. */
struct pawl_lock *take(struct pawl_client *client, const char *key, int64_t lease_ms,
                       int64_t wait_ms);
struct pawl_lock *take_as(struct pawl_client *client, const char *key,
                          const struct pawl_owner *owner, int64_t lease_ms, int64_t wait_ms);
struct pawl_lock *take_with(struct pawl_client *client, const char *key,
                            const struct pawl_lock_options *opts);
/* Acquires and expects no grant; returns the result. */
int refuse(struct pawl_client *client, const char *key, int64_t lease_ms, int64_t wait_ms);
/* Releases, frees and returns the result of the release. */
int give_back(struct pawl_lock *lock);
struct pawl_owner *new_owner(const char *label);
/* Its fields compared by name, so that a failure names both. */
#define EXPECT_RESULT(result, wanted) expect_result((result), (wanted), __FILE__, __LINE__)
void expect_result(int result, int wanted, const char *file, int line);

/* ---- events ---- */

struct events {
    pthread_mutex_t mu;
    int n[4]; /* by enum pawl_event */
    int last[4]; /* results */
    int64_t at_ms[4];
    char order[64]; /* a letter per event: R risk, C recovered, E expiring, L lost */
};
#define EVENTS_INIT                                                                               \
    {                                                                                             \
        .mu = PTHREAD_MUTEX_INITIALIZER                                                           \
    }
/* For pawl_lock_options: on_event, with the events as its argument. */
void on_event(void *events, struct pawl_lock *lock, enum pawl_event event, int result);
int events_count(struct events *e, enum pawl_event event);
bool fd_readable(int fd);

/* ---- completions ---- */

struct done {
    int n;
    int result;
    struct pawl_lock *lock;
    struct pawl_lock_info *info;
    int64_t at_ms;
};
void on_acquired(void *done, int result, struct pawl_lock *lock);
void on_done(void *done, int result);
void on_inspected(void *done, int result, struct pawl_lock_info *info);
/* Dispatches whenever the descriptor is readable, until @done has run. */
void await_done(struct pawl_client *client, struct done *done, int64_t ms);
/* Dispatches for @ms. */
void dispatch_for(struct pawl_client *client, int64_t ms);

/* ---- log ---- */

struct book {
    pthread_mutex_t mu;
    size_t len;
    char text[1 << 17];
};
void book_init(struct book *b);
void book_write(void *book, enum pawl_log_level level, const char *line);
bool book_has(struct book *b, const char *part);
size_t book_count(struct book *b, const char *part);

/* ---- the server's side ---- */

bool exists(struct server *s, const char *key);
long long pttl(struct server *s, const char *key);
/* Keys other than token counters. */
size_t leftovers(struct server *s);
/* Of these, keys that never expire. */
size_t immortals(struct server *s);
/* The hash of a recipe of another client: owner and count. */
void foreign_hash(struct server *s, const char *key, const char *owner, int64_t lease_ms);

/* ---- helper programs ---- */

/* The holder, a program that uses libpawl; see holder.c. @env NULL: none. */
struct child *holder_start(const char *url, const char *env);
/* A file that the build made, "NAME" below tests/integration; valid until the next call. */
const char *built(const char *name);

#endif
