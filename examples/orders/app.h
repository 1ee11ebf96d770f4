/* app.h: what one running instance consists of. */
#ifndef ORDERS_APP_H
#define ORDERS_APP_H

#include "config.h"
#include "http.h"
#include "mailbox.h"
#include "metrics.h"
#include "store.h"

#include <pawl.h>

#include <event2/event.h>

struct submit;

struct app {
    struct config config;
    struct event_base *base;
    struct mailbox *mailbox;
    struct http *http;
    struct store *store;
    struct pawl_client *pawl;
    struct event *pawl_event;
    struct metrics metrics;
    struct submit *submits; /* every submission that is not finished */
    size_t n_submits;
    size_t n_waiting; /* of these, before their grant */
    size_t n_held; /* and inside the protected section */
    size_t n_jobs; /* other database jobs and probes that are under way */
    int stopping;
};

/* routes.c */
void routes_handle(void *arg, struct web *web);

/* submit.c: POST /api/order/submit */
void submit_begin(struct app *app, struct web *web);
/* TERM came: whoever waits for a lock is sent away, whoever holds one finishes. */
void submit_stop_waiting(struct app *app);

/* health.c */
void health_alive(struct app *app, struct web *web);
void health_ready(struct app *app, struct web *web);

#endif
