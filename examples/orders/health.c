/* health.c: /healthz says that the loop turns; /readyz asks the lock store and the database. */
#include "app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A store that is frozen does not say so: who has not answered by then counts as down. */
#define READY_LIMIT_MS 1500

static const char probe_key[] = "orders-readyz"; /* order ids live under "order:" */

struct probe {
    struct app *app;
    struct web *web; /* NULL once answered */
    struct event *limit;
    struct store_job job;
    int waits_for_lock;
    int waits_for_db;
    const char *lock_reason; /* static; NULL: fine */
    const char *db_reason;
};

void health_alive(struct app *app, struct web *web)
{
    static const char text[] = "{\"status\":\"alive\"}";

    (void)app;
    http_reply(web, 200, "application/json; charset=utf-8", text, sizeof text - 1, NULL, NULL);
}

static void answer(struct probe *probe)
{
    static const char ready[] = "{\"status\":\"ready\"}";
    struct web *web = probe->web;
    struct problem_extra extra = { 0 };
    char detail[256];

    probe->web = NULL;
    if (web == NULL)
        return;
    if (probe->lock_reason == NULL && probe->db_reason == NULL) {
        http_reply(web, 200, "application/json; charset=utf-8", ready, sizeof ready - 1, NULL,
                   NULL);
        return;
    }
    snprintf(detail, sizeof detail, "lock store: %s; database: %s",
             probe->lock_reason == NULL ? "fine" : probe->lock_reason,
             probe->db_reason == NULL ? "fine" : probe->db_reason);
    extra.detail = detail;
    http_reply_problem(web, probe->lock_reason != NULL ? PROBLEM_LOCK_DOWN : PROBLEM_DB_DOWN,
                       &extra);
}

static void end_if_done(struct probe *probe)
{
    if (probe->waits_for_lock || probe->waits_for_db)
        return;
    answer(probe);
    probe->app->n_jobs--;
    if (probe->limit != NULL)
        event_free(probe->limit);
    free(probe);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    struct probe *probe = arg;

    (void)fd;
    (void)what;
    if (probe->waits_for_lock)
        probe->lock_reason = "no answer in time";
    if (probe->waits_for_db)
        probe->db_reason = "no answer in time";
    answer(probe);
}

static void on_lock(void *arg, int result, struct pawl_lock_info *info)
{
    struct probe *probe = arg;

    pawl_lock_info_free(info);
    probe->waits_for_lock = 0;
    probe->lock_reason = result < 0 ? pawl_result_text(result) : NULL;
    end_if_done(probe);
}

static void on_db(struct store_job *job)
{
    struct probe *probe = job->arg;

    probe->waits_for_db = 0;
    probe->db_reason = job->result < 0 ? job->why : NULL;
    end_if_done(probe);
}

void health_ready(struct app *app, struct web *web)
{
    const struct timeval limit = { READY_LIMIT_MS / 1000, READY_LIMIT_MS % 1000 * 1000 };
    struct probe *probe;
    int rc;

    if (app->stopping) {
        http_reply_problem(web, PROBLEM_STOPPING, NULL);
        return;
    }
    probe = calloc(1, sizeof *probe);
    if (probe == NULL) {
        http_reply_problem(web, PROBLEM_OVERLOADED, NULL);
        return;
    }
    app->n_jobs++;
    probe->app = app;
    probe->web = web;
    probe->limit = evtimer_new(app->base, on_limit, probe);
    if (probe->limit != NULL)
        evtimer_add(probe->limit, &limit);
    probe->waits_for_db = 1;
    probe->job.verb = STORE_PING;
    probe->job.done = on_db;
    probe->job.arg = probe;
    store_ask(app->store, &probe->job);
    rc = pawl_inspect_async(app->pawl, probe_key, sizeof probe_key - 1, on_lock, probe);
    if (rc == 0)
        probe->waits_for_lock = 1;
    else
        probe->lock_reason = pawl_result_text(rc);
}
