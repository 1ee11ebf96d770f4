/* http.c: requests in, answers out, over evhttp. Knows no order and no lock. */
#include "http_conn.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define SWEEP_MS 250
#define WRITE_TIMEOUT_S 120

static const struct {
    enum evhttp_cmd_type type;
    const char *name;
} methods[] = {
    { EVHTTP_REQ_GET, "GET" },       { EVHTTP_REQ_POST, "POST" },
    { EVHTTP_REQ_HEAD, "HEAD" },     { EVHTTP_REQ_PUT, "PUT" },
    { EVHTTP_REQ_DELETE, "DELETE" }, { EVHTTP_REQ_OPTIONS, "OPTIONS" },
    { EVHTTP_REQ_PATCH, "PATCH" },
};

static int is_id_text(const char *text, size_t len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._:-";

    return len >= 1 && len <= REQUEST_ID_MAX && strspn(text, allowed) >= len;
}

/* The trace id of a traceparent ("00-<32 hex>-<16 hex>-<2 hex>"), else X-Request-Id if it is
 * harmless text, else one of our own. */
static void find_request_id(struct web *web)
{
    static const char hex[] = "0123456789abcdef";
    const char *trace = http_header(web, "traceparent");
    const char *id = http_header(web, "X-Request-Id");
    unsigned char random[8] = { 0 };
    size_t i;

    if (trace != NULL && strlen(trace) == 55 && strspn(trace + 3, hex) == 32 &&
        strspn(trace + 36, hex) == 16 && trace[2] == '-' && trace[35] == '-' && trace[52] == '-') {
        memcpy(web->request_id, trace + 3, 32);
        return;
    }
    if (id != NULL && is_id_text(id, strlen(id))) {
        snprintf(web->request_id, sizeof web->request_id, "%s", id);
        return;
    }
    if (getrandom(random, sizeof random, 0) < 0)
        memset(random, 0, sizeof random); /* an id for logs only */
    for (i = 0; i < sizeof random; i++)
        snprintf(web->request_id + 2 * i, 3, "%02x", random[i]);
}

static void find_path(struct web *web)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(web->req);
    const char *path = uri == NULL ? NULL : evhttp_uri_get_path(uri);
    size_t len = 0;
    char *decoded = path == NULL ? NULL : evhttp_uridecode(path, 0, &len);

    /* What does not fit or hides a NUL is no path of ours: the empty one is not found. */
    if (decoded != NULL && len < sizeof web->path && strlen(decoded) == len)
        memcpy(web->path, decoded, len + 1);
    free(decoded);
}

static struct web *web_new(struct http *http, struct evhttp_request *req, struct http_conn *conn)
{
    struct web *web = calloc(1, sizeof *web);
    struct evbuffer *body = evhttp_request_get_input_buffer(req);
    size_t i;

    if (web == NULL)
        return NULL;
    web->http = http;
    web->req = req;
    web->conn = conn;
    web->began_us = clock_run_us();
    web->route = "-";
    web->method = "?";
    web->lang = lang_from_header(http_header(web, "Accept-Language"));
    for (i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (evhttp_request_get_command(req) == methods[i].type)
            web->method = methods[i].name;
    web->is_head = evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
    find_request_id(web);
    find_path(web);
    web->body_len = evbuffer_get_length(body);
    web->body = web->body_len == 0 ? "" : (const char *)evbuffer_pullup(body, -1);
    return web;
}

static void on_complete(struct evhttp_request *req, void *arg)
{
    struct http *http = arg;
    struct evhttp_connection *evcon = evhttp_request_get_connection(req);
    struct http_conn *conn = http_conn_of(http, evhttp_connection_get_bufferevent(evcon));

    if (conn != NULL)
        http_conn_next(conn);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct http *http = arg;
    struct evhttp_connection *evcon = evhttp_request_get_connection(req);
    struct http_conn *conn = http_conn_of(http, evhttp_connection_get_bufferevent(evcon));
    struct web *web = NULL;

    if (conn != NULL)
        web = web_new(http, req, conn);
    if (web == NULL) {
        evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL); /* memory; closes the connection */
        return;
    }
    conn->web = web;
    conn->busy = 1;
    evhttp_request_set_on_complete_cb(req, on_complete, http);
    http->settings.handle(http->settings.arg, web);
}

int http_new(struct event_base *base, const struct http_settings *settings, struct http **ret_http)
{
    const struct timeval sweep = { 0, SWEEP_MS * 1000 };
    struct http *http = calloc(1, sizeof *http);

    if (http == NULL)
        return -1;
    http->base = base;
    http->settings = *settings;
    http->evhttp = evhttp_new(base);
    http->settle = event_new(base, -1, 0, http_conn_settle, http);
    http->sweep = event_new(base, -1, EV_PERSIST, http_conn_sweep, http);
    if (http->evhttp == NULL || http->settle == NULL || http->sweep == NULL ||
        event_add(http->sweep, &sweep) < 0) {
        http_free(http);
        return -1;
    }
    /* Above ours, so that the scanner's answer comes first. */
    evhttp_set_max_headers_size(http->evhttp, (ev_ssize_t)settings->max_header + 1024);
    evhttp_set_max_body_size(http->evhttp, (ev_ssize_t)settings->max_body + 1024);
    evhttp_set_timeout(http->evhttp, WRITE_TIMEOUT_S);
    evhttp_set_allowed_methods(http->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                                 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_default_content_type(http->evhttp, NULL);
    evhttp_set_bevcb(http->evhttp, http_conn_new, http);
    evhttp_set_gencb(http->evhttp, on_request, http);
    *ret_http = http;
    return 0;
}

static int bound_port(struct evconnlistener *listener)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof address;

    if (getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &len) < 0)
        return -1;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the system has written it */
    return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
}

static int bind_address(const char *text, int port, struct sockaddr_storage *ret_address,
                        int *ret_len)
{
    int len = sizeof *ret_address;

    /* Without the port: libevent does not take 0 for one. */
    if (evutil_parse_sockaddr_port(text, (struct sockaddr *)ret_address, &len) < 0)
        return -1;
    if (ret_address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)ret_address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)ret_address)->sin_port = htons((uint16_t)port);
    *ret_len = len;
    return 0;
}

int http_listen(struct http *http, int port, int shared)
{
    unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE |
                     (shared ? LEV_OPT_REUSEABLE_PORT : 0u);
    struct sockaddr_storage address;
    int len = sizeof address, on = 1;
    struct evconnlistener *listener;

    if (bind_address(http->settings.bind, port, &address, &len) < 0) {
        errno = EINVAL;
        return -1;
    }
    listener = evconnlistener_new_bind(http->base, NULL, NULL, flags, 4096,
                                       (struct sockaddr *)&address, len);
    if (listener == NULL)
        return -1;
    /* Accepted sockets inherit it; answers are small and must not wait for an ACK. */
    setsockopt(evconnlistener_get_fd(listener), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    port = bound_port(listener);
    http->sockets[http->n_sockets] = evhttp_bind_listener(http->evhttp, listener);
    if (http->sockets[http->n_sockets] == NULL) {
        evconnlistener_free(listener);
        errno = ENOMEM;
        return -1;
    }
    http->n_sockets++;
    return port;
}

void http_listen_on(struct http *http, int on)
{
    size_t i;

    http->listening_off = !on;
    for (i = 0; i < http->n_sockets; i++) {
        struct evconnlistener *listener = evhttp_bound_socket_get_listener(http->sockets[i]);

        if (on)
            evconnlistener_enable(listener);
        else
            evconnlistener_disable(listener);
    }
}

void http_stop(struct http *http)
{
    size_t i;

    for (i = 0; i < http->n_sockets; i++)
        evhttp_del_accept_socket(http->evhttp, http->sockets[i]);
    http->n_sockets = 0;
    http->stopping = 1;
    http_conn_sweep(-1, 0, http);
}

size_t http_n_connections(const struct http *http)
{
    return http->n_conns;
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    if (http->evhttp != NULL)
        evhttp_free(http->evhttp);
    if (http->sweep != NULL)
        event_free(http->sweep);
    if (http->settle != NULL)
        event_free(http->settle);
    free(http->by_fd);
    free(http);
}

/* Edge-triggered and apart from evhttp's bufferevent, whose reading stays off while a request is
 * served: turning it on would let evhttp parse the next request into the middle of this one. */
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    struct http_conn *conn = arg;
    struct web *web = conn->web;
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n > 0 && (what & EV_CLOSED) == 0) {
        conn->pipelined = 1;
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) &&
        (what & EV_CLOSED) == 0)
        return;
    http_conn_unwatch(conn);
    if (web != NULL && web->on_hangup != NULL) {
        void (*on_hangup)(void *) = web->on_hangup;

        web->on_hangup = NULL;
        on_hangup(web->hangup_arg);
    }
}

int http_watch_hangup(struct web *web, void (*on_hangup)(void *arg), void *arg)
{
    struct http_conn *conn = web->conn;

    if (conn == NULL || conn->watch != NULL)
        return -1;
    conn->watch = event_new(web->http->base, conn->fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
                            on_watch, conn);
    if (conn->watch == NULL || event_add(conn->watch, NULL) < 0) {
        http_conn_unwatch(conn);
        return -1;
    }
    web->on_hangup = on_hangup;
    web->hangup_arg = arg;
    return 0;
}

const char *http_header(const struct web *web, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(web->req), name);
}

void http_reply(struct web *web, int status, const char *type, const char *text, size_t len,
                const char *extra_name, const char *extra_value)
{
    struct http *http = web->http;
    struct http_conn *conn = web->conn;
    struct evkeyvalq *headers;

    http->settings.answered(http->settings.arg, web->route, status,
                            clock_run_us() - web->began_us);
    log_line(LOG_DEBUG, "answered %s %s status=%d request=%s", web->method, web->path, status,
             web->request_id);
    if (conn != NULL) {
        http_conn_unwatch(conn);
        conn->web = NULL;
        headers = evhttp_request_get_output_headers(web->req);
        evhttp_add_header(headers, "Content-Type", type);
        evhttp_add_header(headers, "Cache-Control", "no-store");
        evhttp_add_header(headers, "X-Request-Id", web->request_id);
        if (extra_name != NULL)
            evhttp_add_header(headers, extra_name, extra_value);
        if (http->stopping || conn->pipelined)
            evhttp_add_header(headers, "Connection", "close");
        evbuffer_add(evhttp_request_get_output_buffer(web->req), text, len);
        evhttp_send_reply(web->req, status, NULL, NULL);
    }
    free(web);
}

void http_reply_json(struct web *web, int status, char *text)
{
    if (text == NULL) {
        http_reply_problem(web, PROBLEM_INTERNAL, NULL);
        return;
    }
    http_reply(web, status, "application/json; charset=utf-8", text, strlen(text), NULL, NULL);
    free(text);
}

static void reply_problem(struct web *web, enum problem problem, const struct problem_extra *extra,
                          const char *name, const char *value)
{
    static const char no_memory[] = "{\"status\":500,\"code\":\"internal_error\"}";
    const struct problem_info *info = problem_info(problem);
    struct problem_extra whole = { 0 };
    char *text;

    if (extra != NULL)
        whole = *extra;
    whole.request_id = web->request_id;
    whole.instance = web->http->settings.instance;
    text = problem_json(problem, web->lang, &whole);
    http_reply(web, text == NULL ? 500 : info->status, "application/problem+json",
               text == NULL ? no_memory : text, strlen(text == NULL ? no_memory : text), name,
               value);
    free(text);
}

void http_reply_problem(struct web *web, enum problem problem, const struct problem_extra *extra)
{
    char seconds[16];
    int retry = problem_info(problem)->retry_after_s;

    snprintf(seconds, sizeof seconds, "%d", retry);
    reply_problem(web, problem, extra, retry > 0 ? "Retry-After" : NULL, seconds);
}

void http_reply_method(struct web *web, const char *allowed)
{
    reply_problem(web, PROBLEM_METHOD, NULL, "Allow", allowed);
}
