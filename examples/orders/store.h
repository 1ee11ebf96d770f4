/* store.h: the orders database behind a small table of functions, and the thread that runs it.
 *
 * A driver (struct store_driver) is plain blocking code for one kind of database. The worker calls
 * it, one job after the other, on a thread of its own; the loop never waits for a disk. Another
 * database is another driver and one more row in store.c. */
#ifndef ORDERS_STORE_H
#define ORDERS_STORE_H

#include "mailbox.h"
#include "order.h"

#include <stddef.h>
#include <stdint.h>

enum store_result {
    STORE_OK = 0,
    STORE_DUPLICATE, /* the same order from the same user is there already */
    STORE_CONFLICT, /* the order id is taken by another user or content */
    STORE_SOLD_OUT,
    STORE_NO_SKU,
    STORE_NOT_FOUND,
    STORE_STALE, /* a newer holder has claimed the order: nothing was written */
    STORE_LOST, /* the caller's own check said stop before the commit: rolled back */
    STORE_EDOWN = -1
};

#define STORE_WHY_MAX 160

/* What guards a writing transaction. */
struct store_claim {
    char resource[ORDER_ID_MAX + 16];
    const char *owner; /* borrowed; NULL: no lock, so no fencing */
    int64_t token;
    /* Asked right before the commit, on the worker thread: 1 while the lock is held. */
    int (*still_mine)(void *arg);
    void *arg;
};

struct store_conn;

struct store_settings {
    const char *location; /* what follows the scheme; borrowed for the life of the store */
    int64_t busy_ms;
    int full_sync;
};

/* All of it runs on the worker thread only and may block. Failures are STORE_EDOWN with a sentence
 * in @why; a connection that is beyond repair sets *ret_broken and is closed and opened anew. */
struct store_driver {
    const char *scheme;
    /* @create  1 the first time: an absent database is made. Later 0: a database that went away
     *          is an outage, not a reason to begin again with an empty one. */
    int (*open)(const struct store_settings *settings, int create, struct store_conn **ret_conn,
                char *why);
    void (*close)(struct store_conn *conn);
    int (*is_broken)(const struct store_conn *conn);
    /* Is the database still the one that was opened? Asked before each job; cheap. */
    int (*alive)(struct store_conn *conn, char *why);
    int (*submit)(struct store_conn *conn, const struct store_claim *claim, struct order *order,
                  char *why);
    int (*get_order)(struct store_conn *conn, struct order *order, char *why);
    int (*get_stock)(struct store_conn *conn, const char *sku, int64_t *ret_quantity, char *why);
    int (*set_stock)(struct store_conn *conn, const char *sku, int64_t quantity, char *why);
    /* Without any guard, for the demonstration: a read, and later a write that believes it. */
    int (*unsafe_read)(struct store_conn *conn, struct order *order, int64_t *ret_quantity,
                       char *why);
    int (*unsafe_write)(struct store_conn *conn, const struct order *order, int64_t new_quantity,
                        char *why);
};

extern const struct store_driver store_sqlite;

enum store_verb {
    STORE_SUBMIT,
    STORE_GET_ORDER,
    STORE_GET_STOCK,
    STORE_SET_STOCK,
    STORE_UNSAFE_READ,
    STORE_UNSAFE_WRITE,
    STORE_PING
};

struct store;

/* One job, embedded in whatever waits for it; borrowed until @done has run on the loop. */
struct store_job {
    enum store_verb verb;
    struct order order;
    struct store_claim claim;
    int64_t quantity; /* of a SKU: in or out */
    int result;
    char why[STORE_WHY_MAX];
    int64_t took_us; /* time in the driver */
    void (*done)(struct store_job *job);
    void *arg;
    /* private: */
    struct mail mail;
    struct store_job *next;
};

/* Start the worker. @url is "sqlite:FILE" or a file name. It opens the database at the first job
 * and again after an outage, so a service can start while its database is away.
 * Returns 0 and gives *ret_store (store_close()), or -1 with a sentence in @why. */
int store_open(const char *url, int64_t busy_ms, int full_sync, struct mailbox *mailbox,
               struct store **ret_store, char *why);

void store_ask(struct store *store, struct store_job *job);
size_t store_queue_len(struct store *store);

/* Waits for the jobs that are queued; their completions are not delivered any more. NULL: fine. */
void store_close(struct store *store);

#endif
