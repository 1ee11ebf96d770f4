/* http_conn.c: watches the connections of an evhttp server from outside: every byte goes through
 * the strict scanner before evhttp parses it, slow ones are cut, hang-ups are seen. It never frees
 * what evhttp owns; to end a connection it shuts the socket down and lets evhttp find the end. */
#include "http_conn.h"

#include "clock.h"
#include "log.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DEAD_LINGER_US 1000000
/* So many above the limit are told so; beyond that they wait in the kernel's queue, so that no
 * flood takes the descriptors that the lock store and the database need. */
#define SPARE_CONNS 32

void http_conn_shut(struct http_conn *conn)
{
    shutdown(conn->fd, SHUT_RDWR);
}

void http_conn_unwatch(struct http_conn *conn)
{
    if (conn->watch != NULL)
        event_free(conn->watch);
    conn->watch = NULL;
}

/* Answer what evhttp must not see, straight to the socket: nothing of ours is in flight on it, as
 * a request is refused only while it arrives. Then read on for a moment and throw away: closing
 * with unread bytes would reset the connection, and the client might never see the answer. */
static void refuse(struct http_conn *conn, enum problem problem, const char *detail)
{
    const struct problem_info *info = problem_info(problem);
    struct problem_extra extra = { .detail = detail, .instance = conn->http->settings.instance };
    char *text = problem_json(problem, conn->scan.lang, &extra);
    char head[256], retry[32] = "";
    struct iovec parts[2];
    struct msghdr message = { 0 };
    int n;

    if (info->retry_after_s > 0)
        snprintf(retry, sizeof retry, "Retry-After: %d\r\n", info->retry_after_s);
    n = snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n"
                 "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
                 info->status, info->code, text == NULL ? 0 : strlen(text), retry);
    parts[0] = (struct iovec){ head, (size_t)n };
    parts[1] = (struct iovec){ text, text == NULL ? 0 : strlen(text) };
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_line(LOG_DEBUG, "refusal not sent status=%d", info->status);
    free(text);
    shutdown(conn->fd, SHUT_WR);
    conn->dead = 1;
    conn->dead_us = clock_run_us();
    conn->http->settings.answered(conn->http->settings.arg, "-", info->status, 0);
    log_line(LOG_DEBUG, "refused status=%d code=%s detail=%s", info->status, info->code,
             detail == NULL ? "-" : detail);
}

static void scan_bytes(struct http_conn *conn, const char *data, size_t len)
{
    enum http_scan_answer answer;
    size_t used;

    if (len == 0)
        return;
    if (conn->complete || conn->busy) {
        /* Legal, but nobody needs it, and its framing could not be refused any more while the
         * first answer is outstanding. The client sends it again on a new connection. */
        conn->pipelined = 1;
        return;
    }
    if (conn->first_byte_us == 0)
        conn->first_byte_us = clock_run_us();
    answer = http_scan_feed(&conn->scan, data, len, &used);
    if (answer == SCAN_REFUSED)
        refuse(conn, conn->scan.problem, conn->scan.detail);
    if (answer == SCAN_DONE) {
        conn->complete = 1;
        conn->pipelined = used < len;
    }
}

/* Runs right after bytes were appended to the input buffer and before evhttp looks at it. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
    struct http_conn *conn = arg;
    struct evbuffer_iovec parts[16];
    struct evbuffer_ptr at;
    size_t len = evbuffer_get_length(input), left = info->n_added;
    int i, n;

    if (info->n_added == 0)
        return;
    if (conn->fd < 0)
        http_conn_settle(-1, 0, conn->http);
    while (!conn->dead && left > 0 &&
           evbuffer_ptr_set(input, &at, len - left, EVBUFFER_PTR_SET) == 0) {
        n = evbuffer_peek(input, (ev_ssize_t)left, &at, parts, 16);
        for (i = 0; i < n && i < 16 && !conn->dead && left > 0; i++) {
            size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;

            scan_bytes(conn, parts[i].iov_base, part);
            left -= part;
        }
        if (n <= 0)
            break;
    }
    if (conn->dead)
        evbuffer_drain(input, len);
}

static size_t most_conns(const struct http *http)
{
    return (size_t)http->settings.max_connections + SPARE_CONNS;
}

static void forget_one(struct http *http)
{
    http->n_conns--;
    if (http->listening_off && http->n_conns < most_conns(http))
        http_listen_on(http, 1);
}

/* evhttp is about to free the connection. */
static void on_close(struct evhttp_connection *evcon, void *arg)
{
    struct http_conn *conn = arg;
    struct http *http = conn->http;

    (void)evcon;
    http_conn_unwatch(conn);
    if (conn->web != NULL) {
        conn->web->conn = NULL;
        conn->web->req = NULL; /* evhttp frees it with the connection */
    }
    http->by_fd[conn->fd] = NULL;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        http->first = conn->next;
    http->n_settled--;
    forget_one(http);
    evbuffer_remove_cb(bufferevent_get_input(conn->bev), on_input, conn);
    http_scan_done(&conn->scan);
    free(conn);
}

static int room_for_fd(struct http *http, int fd)
{
    size_t n = http->n_by_fd == 0 ? 256 : http->n_by_fd;
    struct http_conn **by_fd;

    if (fd < 0)
        return -1;
    if ((size_t)fd < http->n_by_fd)
        return 0;
    while (n <= (size_t)fd)
        n *= 2;
    by_fd = realloc(http->by_fd, n * sizeof *by_fd);
    if (by_fd == NULL)
        return -1;
    memset(by_fd + http->n_by_fd, 0, (n - http->n_by_fd) * sizeof *by_fd);
    http->by_fd = by_fd;
    http->n_by_fd = n;
    return 0;
}

/* evhttp asks for the bufferevent of a connection that it has just accepted. */
struct bufferevent *http_conn_new(struct event_base *base, void *arg)
{
    struct http *http = arg;
    struct http_conn *conn = calloc(1, sizeof *conn);
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);

    if (conn == NULL || bev == NULL ||
        evbuffer_add_cb(bufferevent_get_input(bev), on_input, conn) == NULL) {
        free(conn);
        return bev; /* not watched; evhttp makes one itself if this is NULL */
    }
    conn->http = http;
    conn->bev = bev;
    conn->fd = -1;
    conn->idle_since_us = clock_run_us();
    http_scan_init(&conn->scan, (size_t)http->settings.max_header, http->settings.max_body);
    conn->next_new = http->first_new;
    http->first_new = conn;
    if (++http->n_conns >= most_conns(http))
        http_listen_on(http, 0);
    event_active(http->settle, EV_TIMEOUT, 0);
    return bev;
}

static void settle_one(struct http *http, struct http_conn *conn)
{
    struct evhttp_connection *evcon = NULL;
    void *arg = NULL;

    conn->fd = bufferevent_getfd(conn->bev);
    bufferevent_getcb(conn->bev, NULL, NULL, NULL, &arg);
    evcon = arg; /* evhttp's callbacks carry its connection */
    if (room_for_fd(http, conn->fd) < 0 || evcon == NULL) {
        if (conn->fd >= 0)
            shutdown(conn->fd, SHUT_RDWR);
        evbuffer_remove_cb(bufferevent_get_input(conn->bev), on_input, conn);
        http_scan_done(&conn->scan);
        free(conn);
        forget_one(http);
        return;
    }
    evhttp_connection_set_closecb(evcon, on_close, conn);
    http->by_fd[conn->fd] = conn;
    conn->next = http->first;
    if (http->first != NULL)
        http->first->prev = conn;
    http->first = conn;
    if (++http->n_settled > (size_t)http->settings.max_connections)
        refuse(conn, PROBLEM_OVERLOADED, "too many connections");
}

/* Runs in the same turn of the loop as the accept, so before a byte of it can be read. */
void http_conn_settle(evutil_socket_t fd, short what, void *arg)
{
    struct http *http = arg;
    struct http_conn *conn;

    (void)fd;
    (void)what;
    while ((conn = http->first_new) != NULL) {
        http->first_new = conn->next_new;
        settle_one(http, conn);
    }
}

struct http_conn *http_conn_of(struct http *http, struct bufferevent *bev)
{
    evutil_socket_t fd = bufferevent_getfd(bev);

    if (fd < 0 || (size_t)fd >= http->n_by_fd || http->by_fd[fd] == NULL ||
        http->by_fd[fd]->bev != bev)
        return NULL;
    return http->by_fd[fd];
}

void http_conn_next(struct http_conn *conn)
{
    http_conn_unwatch(conn);
    conn->web = NULL;
    conn->busy = 0;
    conn->complete = 0;
    conn->pipelined = 0;
    conn->first_byte_us = 0;
    conn->idle_since_us = clock_run_us();
    http_scan_reset(&conn->scan);
}

static void sweep_one(struct http_conn *conn, int64_t now_us)
{
    const struct http_settings *s = &conn->http->settings;

    if (conn->dead) {
        if (now_us - conn->dead_us > DEAD_LINGER_US)
            http_conn_shut(conn);
    } else if (conn->busy) {
        return;
    } else if (conn->first_byte_us != 0) {
        /* A total, not a pause between bytes: a client that drips one byte a second would pass
         * every pause. */
        if (now_us - conn->first_byte_us > s->request_ms * 1000)
            refuse(conn, PROBLEM_SLOW, "see request-ms");
    } else if (now_us - conn->idle_since_us > s->idle_ms * 1000 || conn->http->stopping) {
        http_conn_shut(conn);
    }
}

void http_conn_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct http *http = arg;
    struct http_conn *conn, *next;
    int64_t now_us = clock_run_us();

    (void)fd;
    (void)what;
    for (conn = http->first; conn != NULL; conn = next) {
        next = conn->next;
        sweep_one(conn, now_us);
    }
}
