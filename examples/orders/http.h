/* http.h: the thin layer over evhttp: strict framing, limits, deadlines, hang-ups, answers. */
#ifndef ORDERS_HTTP_H
#define ORDERS_HTTP_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct evhttp_request;
struct http;
struct http_conn;

#define REQUEST_ID_MAX 64

/* One request that has arrived whole. Answering it frees it. */
struct web {
    struct http *http;
    struct evhttp_request *req;
    struct http_conn *conn;
    enum lang lang;
    int is_head;
    const char *method;
    char path[512]; /* decoded, without the query */
    const char *body;
    size_t body_len;
    char request_id[REQUEST_ID_MAX + 1];
    int64_t began_us;
    const char *route; /* static, for the metrics */
    void (*on_hangup)(void *arg);
    void *hangup_arg;
};

struct http_settings {
    const char *bind;
    const char *instance;
    int64_t request_ms;
    int64_t idle_ms;
    int64_t max_header;
    int64_t max_body;
    int64_t max_connections;
    void (*handle)(void *arg, struct web *web);
    /* Told of every answer: for the metrics. @route is "-" for what never reached a handler. */
    void (*answered)(void *arg, const char *route, int status, int64_t took_us);
    void *arg;
};

int http_new(struct event_base *base, const struct http_settings *settings,
             struct http **ret_http);

/* Listen. @shared: other processes may listen on the same port too (SO_REUSEPORT).
 * Returns the port, or -1 with errno set. */
int http_listen(struct http *http, int port, int shared);

/* Accept no more, close idle connections, and close each other one after its answer. */
void http_stop(struct http *http);
size_t http_n_connections(const struct http *http);
void http_free(struct http *http);

/* Call @on_hangup at most once if the client goes away before the answer. A client that only shuts
 * down its sending side counts as gone. Returns 0 or -1 (no memory: it is not watched). */
int http_watch_hangup(struct web *web, void (*on_hangup)(void *arg), void *arg);

/* The value of a request header, or NULL. Borrowed until the answer. */
const char *http_header(const struct web *web, const char *name);

/* Answer; @web is gone afterwards. @extra_name may be NULL. */
void http_reply(struct web *web, int status, const char *type, const char *text, size_t len,
                const char *extra_name, const char *extra_value);
/* The same with a JSON string from malloc(), which is taken; NULL answers 500. */
void http_reply_json(struct web *web, int status, char *text);
/* A refusal; @extra->request_id and instance are filled in. */
void http_reply_problem(struct web *web, enum problem problem, const struct problem_extra *extra);
void http_reply_method(struct web *web, const char *allowed);

#endif
