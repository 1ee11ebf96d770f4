/* http_conn.h: inside of the HTTP layer: connections and what is known of them. For http*.c. */
#ifndef ORDERS_HTTP_CONN_H
#define ORDERS_HTTP_CONN_H

#include "http.h"
#include "http_scan.h"

#include <event2/event.h>

struct bufferevent;

struct http_conn {
    struct http *http;
    struct http_conn *next, *prev;
    struct http_conn *next_new; /* accepted, and evhttp has not yet told us its descriptor */
    struct bufferevent *bev; /* borrowed from evhttp until on_close() */
    int fd;
    struct http_scan scan;
    struct web *web; /* the request that waits for its answer */
    int busy; /* from the whole request to its sent answer */
    struct event *watch; /* sees a hang-up while it is served */
    int64_t first_byte_us; /* of the request that is arriving; 0: none is */
    int64_t idle_since_us;
    int complete; /* the scanner saw the request's end; evhttp hands it over next */
    int pipelined; /* more bytes came behind it: answer and close */
    int dead; /* refused: what still comes is thrown away */
    int64_t dead_us;
};

struct http {
    struct event_base *base;
    struct evhttp *evhttp;
    struct http_settings settings;
    struct event *sweep;
    struct event *settle;
    struct http_conn *first;
    struct http_conn *first_new;
    struct http_conn **by_fd;
    size_t n_by_fd;
    size_t n_conns; /* accepted and not yet closed */
    size_t n_settled; /* of these, known to us with their descriptor */
    int listening_off;
    int stopping;
    struct evhttp_bound_socket *sockets[2];
    size_t n_sockets;
};

/* http_conn.c */
struct bufferevent *http_conn_new(struct event_base *base, void *arg);
void http_conn_settle(evutil_socket_t fd, short what, void *arg);
void http_conn_sweep(evutil_socket_t fd, short what, void *arg);
struct http_conn *http_conn_of(struct http *http, struct bufferevent *bev);
/* The answer is out: the next request may come. */
void http_conn_next(struct http_conn *conn);
void http_conn_unwatch(struct http_conn *conn);
void http_listen_on(struct http *http, int on);
/* Close it from outside evhttp: evhttp finds the end of the stream and frees it. */
void http_conn_shut(struct http_conn *conn);

#endif
