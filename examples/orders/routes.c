/* routes.c: which path and method is answered by what; the small GETs are answered here. */
#include "app.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct route {
    const char *path; /* ends in '/': a prefix that one name follows */
    const char *label;
    const char *method; /* "GET" means HEAD as well */
    void (*handle)(struct app *app, struct web *web, const char *name);
};

/* A GET that waits for the database. */
struct lookup {
    struct app *app;
    struct web *web;
    struct store_job job;
};

static void on_lookup(struct store_job *job)
{
    struct lookup *lookup = job->arg;
    struct problem_extra extra = { .detail = job->why };
    int is_order = job->verb == STORE_GET_ORDER;

    if (job->result == STORE_OK && is_order)
        http_reply_json(lookup->web, 200, order_print(&job->order));
    else if (job->result == STORE_OK)
        http_reply_json(lookup->web, 200, stock_print(job->order.sku, job->quantity));
    else if (job->result == STORE_NOT_FOUND)
        http_reply_problem(lookup->web, is_order ? PROBLEM_NO_ORDER : PROBLEM_NO_SKU, NULL);
    else
        http_reply_problem(lookup->web, PROBLEM_DB_DOWN, &extra);
    lookup->app->n_jobs--;
    free(lookup);
}

static void look_up(struct app *app, struct web *web, enum store_verb verb, const char *name)
{
    struct lookup *lookup;
    char *field;

    if (!order_name_ok(name, strlen(name))) {
        http_reply_problem(web, verb == STORE_GET_ORDER ? PROBLEM_NO_ORDER : PROBLEM_NO_SKU, NULL);
        return;
    }
    lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        http_reply_problem(web, PROBLEM_OVERLOADED, NULL);
        return;
    }
    lookup->app = app;
    lookup->web = web;
    lookup->job.verb = verb;
    lookup->job.done = on_lookup;
    lookup->job.arg = lookup;
    field = verb == STORE_GET_ORDER ? lookup->job.order.order_id : lookup->job.order.sku;
    memcpy(field, name, strlen(name) + 1);
    app->n_jobs++;
    store_ask(app->store, &lookup->job);
}

static void get_order(struct app *app, struct web *web, const char *name)
{
    look_up(app, web, STORE_GET_ORDER, name);
}

static void get_stock(struct app *app, struct web *web, const char *name)
{
    look_up(app, web, STORE_GET_STOCK, name);
}

static void get_metrics(struct app *app, struct web *web, const char *name)
{
    size_t len = 0;
    char *text = metrics_print(app, &len);

    (void)name;
    if (text == NULL)
        http_reply_problem(web, PROBLEM_INTERNAL, NULL);
    else
        http_reply(web, 200, "text/plain; version=0.0.4; charset=utf-8", text, len, NULL, NULL);
    free(text);
}

static void get_alive(struct app *app, struct web *web, const char *name)
{
    (void)name;
    health_alive(app, web);
}

static void get_ready(struct app *app, struct web *web, const char *name)
{
    (void)name;
    health_ready(app, web);
}

/* "application/json", with parameters or without. */
static int is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t len = sizeof json - 1;

    return type != NULL && strncasecmp(type, json, len) == 0 &&
           (type[len] == '\0' || strchr("; \t", type[len]) != NULL);
}

static void post_submit(struct app *app, struct web *web, const char *name)
{
    (void)name;
    if (is_json(http_header(web, "Content-Type")))
        submit_begin(app, web);
    else
        http_reply_problem(web, PROBLEM_MEDIA_TYPE, NULL);
}

static const struct route routes[] = {
    { "/api/order/submit", "submit", "POST", post_submit },
    { "/api/order/", "order", "GET", get_order },
    { "/api/stock/", "stock", "GET", get_stock },
    { "/healthz", "healthz", "GET", get_alive },
    { "/readyz", "readyz", "GET", get_ready },
    { "/metrics", "metrics", "GET", get_metrics },
};

/* The name after a prefix, "" after a whole path; NULL: another route. */
static const char *match(const struct route *route, const char *path)
{
    size_t len = strlen(route->path);

    if (strncmp(path, route->path, len) != 0)
        return NULL;
    if (route->path[len - 1] != '/')
        return path[len] == '\0' ? path + len : NULL;
    return path[len] != '\0' && strchr(path + len, '/') == NULL ? path + len : NULL;
}

void routes_handle(void *arg, struct web *web)
{
    struct app *app = arg;
    const char *name = NULL;
    size_t i;

    for (i = 0; i < sizeof routes / sizeof routes[0] && name == NULL; i++)
        name = match(&routes[i], web->path);
    if (name == NULL) {
        http_reply_problem(web, PROBLEM_NOT_FOUND, NULL);
        return;
    }
    i--;
    web->route = routes[i].label;
    if (strcmp(web->method, routes[i].method) == 0 ||
        (web->is_head && strcmp(routes[i].method, "GET") == 0))
        routes[i].handle(app, web, name);
    else
        http_reply_method(web, routes[i].method[0] == 'G' ? "GET, HEAD" : "POST");
}
