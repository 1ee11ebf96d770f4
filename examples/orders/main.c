/* main.c: starts one instance of the order API and ends it well. */
#include "app.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Lock store, database, log, listeners: connections never get these. */
#define RESERVED_FDS 96
#define END_CHECK_MS 20
#define END_LINGER_US 2000000 /* for clients that are slow to take their last answer */

struct run {
    struct app app;
    struct event *term, *intr, *end_check;
    int64_t idle_us; /* since when nothing is left to finish; 0: something is */
    int n_signals;
    int stock_failed;
};

static void on_pawl(evutil_socket_t fd, short what, void *arg)
{
    struct app *app = arg;

    (void)fd;
    (void)what;
    pawl_client_dispatch(app->pawl);
}

static void on_pawl_log(void *arg, enum pawl_log_level level, const char *line)
{
    static const enum log_level levels[] = { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

    (void)arg;
    log_line(levels[level], "pawl: %s", line);
}

static void on_answered(void *arg, const char *route, int status, int64_t took_us)
{
    struct app *app = arg;

    metrics_answer(&app->metrics, route, status, took_us);
}

/* Runs from TERM on: ends the loop when everything that was held is finished and answered. */
static void on_end_check(evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    struct app *app = &run->app;

    (void)fd;
    (void)what;
    if (app->n_submits > 0 || app->n_jobs > 0) {
        run->idle_us = 0;
        return;
    }
    if (run->idle_us == 0)
        run->idle_us = clock_run_us();
    if (http_n_connections(app->http) == 0 || clock_run_us() - run->idle_us > END_LINGER_US)
        event_base_loopbreak(app->base);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    const struct timeval tv = { 0, END_CHECK_MS * 1000 };
    struct run *run = arg;
    struct app *app = &run->app;

    (void)what;
    if (run->n_signals++ > 0) {
        log_line(LOG_WARN, "second signal: ending at once; %zu locks go when their lease ends",
                 app->n_held);
        _exit(128 + (int)number);
    }
    log_line(LOG_INFO, "stopping: %zu in their section finish, %zu waiting are sent away",
             app->n_held, app->n_waiting);
    app->stopping = 1;
    http_stop(app->http);
    submit_stop_waiting(app);
    event_add(run->end_check, &tv);
}

static enum log_level level_of(const char *name)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    size_t i;

    for (i = 0; i < 3 && strcmp(names[i], name) != 0; i++)
        continue;
    return (enum log_level)i;
}

/* As many descriptors as we may have, and fewer connections than that. */
static void fit_limits(struct config *config)
{
    struct rlimit limit;
    int64_t room;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    if (limit.rlim_cur > INT32_MAX)
        return;
    room = (int64_t)limit.rlim_cur - RESERVED_FDS;
    if (room < RESERVED_FDS / 4)
        room = RESERVED_FDS / 4;
    if (config->max_connections > room)
        config->max_connections = room;
}

static int open_pawl(struct app *app)
{
    const struct config *config = &app->config;
    struct pawl_client_options options = PAWL_CLIENT_OPTIONS_INIT;
    int rc;

    options.name = "pawl-orders";
    options.log = on_pawl_log;
    options.log_level = (int)level_of(config->log_level);
    options.password_file = config->password_file[0] == '\0' ? NULL : config->password_file;
    options.ca_file = config->ca_file[0] == '\0' ? NULL : config->ca_file;
    options.cert_file = config->cert_file[0] == '\0' ? NULL : config->cert_file;
    options.key_file = config->key_file[0] == '\0' ? NULL : config->key_file;
    rc = pawl_client_open(config->url, &options, &app->pawl);
    if (rc != 0) {
        fprintf(stderr, "pawl-orders: url: %s: %s\n", pawl_result_text(rc), pawl_error_detail());
        return -1;
    }
    app->pawl_event =
        event_new(app->base, pawl_client_fd(app->pawl), EV_READ | EV_PERSIST, on_pawl, app);
    return app->pawl_event == NULL ? -1 : event_add(app->pawl_event, NULL);
}

static int open_loop(struct run *run)
{
    struct app *app = &run->app;
    struct event_config *how = event_config_new();

    if (how == NULL)
        return -1;
    event_config_set_flag(how, EVENT_BASE_FLAG_PRECISE_TIMER);
    app->base = event_base_new_with_config(how);
    event_config_free(how);
    if (app->base == NULL || mailbox_new(app->base, &app->mailbox) < 0)
        return -1;
    run->term = evsignal_new(app->base, SIGTERM, on_signal, run);
    run->intr = evsignal_new(app->base, SIGINT, on_signal, run);
    run->end_check = event_new(app->base, -1, EV_PERSIST, on_end_check, run);
    if (run->term == NULL || run->intr == NULL || run->end_check == NULL)
        return -1;
    return event_add(run->term, NULL) < 0 || event_add(run->intr, NULL) < 0 ? -1 : 0;
}

static int open_parts(struct run *run)
{
    struct app *app = &run->app;
    const struct config *c = &app->config;
    struct http_settings http = { c->bind,       c->instance, c->request_ms,      c->idle_ms,
                                  c->max_header, c->max_body, c->max_connections, routes_handle,
                                  on_answered,   app };
    char why[STORE_WHY_MAX];

    if (open_loop(run) < 0) {
        fprintf(stderr, "pawl-orders: no event loop: %s\n", strerror(errno));
        return -1;
    }
    if (store_open(c->db, c->db_busy_ms, strcmp(c->db_sync, "full") == 0, app->mailbox,
                   &app->store, why) < 0) {
        fprintf(stderr, "pawl-orders: db: %s\n", why);
        return -1;
    }
    if (open_pawl(app) < 0)
        return -1;
    return http_new(app->base, &http, &app->http);
}

static void on_stock_set(struct store_job *job)
{
    struct run *run = job->arg;

    if (job->result != STORE_OK) {
        fprintf(stderr, "pawl-orders: stock %s: %s\n", job->order.sku, job->why);
        run->stock_failed = 1;
    }
    if (--run->app.n_jobs == 0)
        event_base_loopbreak(run->app.base);
    free(job);
}

/* Before anybody can buy. Also opens the database, so that a missing one is seen in the log. */
static int set_stock(struct run *run)
{
    struct app *app = &run->app;
    size_t i;

    for (i = 0; i < app->config.n_stock; i++) {
        struct store_job *job = calloc(1, sizeof *job);

        if (job == NULL)
            return -1;
        job->verb = STORE_SET_STOCK;
        job->quantity = app->config.stock[i].quantity;
        memcpy(job->order.sku, app->config.stock[i].sku, sizeof job->order.sku);
        job->done = on_stock_set;
        job->arg = run;
        app->n_jobs++;
        store_ask(app->store, job);
    }
    if (app->config.n_stock > 0)
        event_base_dispatch(app->base);
    return run->stock_failed ? -1 : 0;
}

static int listen_all(struct app *app)
{
    const struct config *c = &app->config;
    int port, own = CONFIG_NO_PORT;

    port = http_listen(app->http, (int)c->port, 1);
    if (port < 0) {
        fprintf(stderr, "pawl-orders: port %lld: %s\n", (long long)c->port, strerror(errno));
        return -1;
    }
    if (c->own_port != CONFIG_NO_PORT)
        own = http_listen(app->http, (int)c->own_port, 0);
    if (c->own_port != CONFIG_NO_PORT && own < 0) {
        fprintf(stderr, "pawl-orders: own-port %lld: %s\n", (long long)c->own_port,
                strerror(errno));
        return -1;
    }
    /* For scripts: the ports that were really taken. */
    printf("pawl-orders %s ready port=%d own-port=%d pid=%ld\n", c->instance, port, own,
           (long)getpid());
    fflush(stdout);
    log_line(LOG_INFO, "ready port=%d own_port=%d lease_ms=%lld wait_ms=%lld max_hold_ms=%lld%s",
             port, own, (long long)c->lease_ms, (long long)c->wait_ms, (long long)c->max_hold_ms,
             c->unsafe    ? " UNSAFE"
             : c->no_lock ? " NO LOCK"
                          : "");
    return 0;
}

static void close_parts(struct run *run)
{
    struct app *app = &run->app;

    http_free(app->http);
    if (app->pawl_event != NULL)
        event_free(app->pawl_event);
    pawl_client_close(app->pawl);
    store_close(app->store);
    mailbox_free(app->mailbox);
    if (run->term != NULL)
        event_free(run->term);
    if (run->intr != NULL)
        event_free(run->intr);
    if (run->end_check != NULL)
        event_free(run->end_check);
    if (app->base != NULL)
        event_base_free(app->base);
    log_close();
}

static int serve(struct run *run)
{
    struct app *app = &run->app;
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    int status = EXIT_FAILURE;

    /* evhttp writes to sockets that clients have closed; a program may decide this for itself. */
    sigaction(SIGPIPE, &ignore, NULL);
    fit_limits(&app->config);
    if (log_open(app->config.log_file, app->config.instance, level_of(app->config.log_level)) <
        0) {
        fprintf(stderr, "pawl-orders: log-file %s: %s\n", app->config.log_file, strerror(errno));
        return status;
    }
    if (open_parts(run) == 0 && set_stock(run) == 0 && listen_all(app) == 0) {
        event_base_dispatch(app->base);
        log_line(LOG_INFO, "stopped");
        status = EXIT_SUCCESS;
    }
    close_parts(run);
    return status;
}

int main(int argc, char **argv)
{
    static struct run run;
    struct config *config = &run.app.config;

    if (config_load(config, argc, argv, stderr) < 0)
        return 2;
    if (config->help) {
        config_usage(stdout);
        return 0;
    }
    if (config->version) {
        printf("pawl-orders %s\n", pawl_version());
        return 0;
    }
    if (config->print_config) {
        config_print(config, stdout);
        return 0;
    }
    return serve(&run);
}
