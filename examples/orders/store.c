/* store.c: the worker thread that runs a store driver. Knows jobs, not SQL. */
#include "store.h"

#include "clock.h"
#include "log.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    const struct store_driver *driver;
    struct store_settings settings;
    struct mailbox *mailbox;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake;
    struct store_job *head;
    struct store_job **tail;
    size_t n_queued;
    int closing;
    /* The worker's own: */
    struct store_conn *conn;
    int opened_once;
    int was_down;
};

static const struct store_driver *const drivers[] = { &store_sqlite };

static int conn_ready(struct store *store, char *why)
{
    int rc;

    if (store->conn != NULL)
        return store->driver->alive(store->conn, why);
    rc = store->driver->open(&store->settings, !store->opened_once, &store->conn, why);
    if (rc == 0)
        store->opened_once = 1;
    return rc;
}

static int run_verb(struct store *store, struct store_job *job)
{
    const struct store_driver *driver = store->driver;
    struct store_conn *conn = store->conn;
    int rc;

    switch (job->verb) {
    case STORE_SUBMIT:
        return driver->submit(conn, &job->claim, &job->order, job->why);
    case STORE_GET_ORDER:
        return driver->get_order(conn, &job->order, job->why);
    case STORE_GET_STOCK:
        return driver->get_stock(conn, job->order.sku, &job->quantity, job->why);
    case STORE_SET_STOCK:
        return driver->set_stock(conn, job->order.sku, job->quantity, job->why);
    case STORE_UNSAFE_READ:
        return driver->unsafe_read(conn, &job->order, &job->quantity, job->why);
    case STORE_UNSAFE_WRITE:
        return driver->unsafe_write(conn, &job->order, job->quantity, job->why);
    case STORE_PING:
        rc = driver->get_stock(conn, ORDER_DEFAULT_SKU, &job->quantity, job->why);
        return rc < 0 ? rc : STORE_OK;
    }
    return STORE_EDOWN;
}

/* One line when an outage begins and one when it ends, not one per order. */
static void tell_outage(struct store *store, const struct store_job *job)
{
    int down = job->result < 0;

    if (down != store->was_down)
        log_line(down ? LOG_ERROR : LOG_INFO, "database %s%s%s", down ? "down" : "up",
                 down ? ": " : "", down ? job->why : "");
    store->was_down = down;
}

static void run_job(struct store *store, struct store_job *job)
{
    int64_t start_us = clock_run_us();

    job->why[0] = '\0';
    job->result = conn_ready(store, job->why);
    if (job->result == 0)
        job->result = run_verb(store, job);
    if (store->conn != NULL && job->result < 0 && store->driver->is_broken(store->conn)) {
        store->driver->close(store->conn);
        store->conn = NULL;
    }
    job->took_us = clock_run_us() - start_us;
    tell_outage(store, job);
}

static struct store_job *next_job(struct store *store)
{
    struct store_job *job;

    pthread_mutex_lock(&store->mutex);
    while (store->head == NULL && !store->closing)
        pthread_cond_wait(&store->wake, &store->mutex);
    job = store->head;
    if (job != NULL) {
        store->head = job->next;
        if (store->head == NULL)
            store->tail = &store->head;
        store->n_queued--;
    }
    pthread_mutex_unlock(&store->mutex);
    return job;
}

static void *worker_main(void *arg)
{
    struct store *store = arg;
    struct store_job *job;

    while ((job = next_job(store)) != NULL) {
        run_job(store, job);
        mailbox_post(store->mailbox, &job->mail);
    }
    if (store->conn != NULL)
        store->driver->close(store->conn);
    return NULL;
}

static void on_mail(struct mail *mail)
{
    struct store_job *job =
        (struct store_job *)(void *)((char *)mail - offsetof(struct store_job, mail));

    job->done(job);
}

static int pick_driver(struct store *store, const char *url, char *why)
{
    size_t i;

    store->settings.location = url;
    store->driver = &store_sqlite; /* a plain file name */
    if (strstr(url, "://") == NULL && strncmp(url, "sqlite:", 7) != 0)
        return 0;
    for (i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        size_t len = strlen(drivers[i]->scheme);

        if (strncmp(url, drivers[i]->scheme, len) == 0 && url[len] == ':') {
            store->driver = drivers[i];
            store->settings.location = url + len + 1;
            return 0;
        }
    }
    snprintf(why, STORE_WHY_MAX, "there is no driver for this kind of database; use sqlite:FILE");
    return -1;
}

/* The worker takes no signals: TERM belongs to the loop. */
static int start_worker(struct store *store)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&store->thread, NULL, worker_main, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : -1;
}

int store_open(const char *url, int64_t busy_ms, int full_sync, struct mailbox *mailbox,
               struct store **ret_store, char *why)
{
    struct store *store = calloc(1, sizeof *store);

    if (store == NULL) {
        snprintf(why, STORE_WHY_MAX, "out of memory");
        return -1;
    }
    store->mailbox = mailbox;
    store->tail = &store->head;
    store->settings.busy_ms = busy_ms;
    store->settings.full_sync = full_sync;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    if (pick_driver(store, url, why) < 0)
        goto fail;
    if (start_worker(store) < 0) {
        snprintf(why, STORE_WHY_MAX, "no thread for the database");
        goto fail;
    }
    store->has_thread = 1;
    *ret_store = store;
    return 0;

fail:
    store_close(store);
    return -1;
}

void store_ask(struct store *store, struct store_job *job)
{
    memset(&job->mail, 0, sizeof job->mail);
    job->mail.run = on_mail;
    job->next = NULL;
    pthread_mutex_lock(&store->mutex);
    *store->tail = job;
    store->tail = &job->next;
    store->n_queued++;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

size_t store_queue_len(struct store *store)
{
    size_t n;

    pthread_mutex_lock(&store->mutex);
    n = store->n_queued;
    pthread_mutex_unlock(&store->mutex);
    return n;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    pthread_mutex_lock(&store->mutex);
    store->closing = 1;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    if (store->has_thread)
        pthread_join(store->thread, NULL);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}
