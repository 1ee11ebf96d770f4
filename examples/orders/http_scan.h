/* http_scan.h: a strict look at the bytes of a request before evhttp parses them.
 *
 * evhttp is lenient where leniency is dangerous behind a proxy: it takes "Content-Length: +5",
 * a repeated Content-Length, "Transfer-Encoding: xchunked", a bare LF and a missing Host. This
 * reads the same bytes, follows where a request ends, and says what to refuse. */
#ifndef ORDERS_HTTP_SCAN_H
#define ORDERS_HTTP_SCAN_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

enum http_scan_answer {
    SCAN_MORE, /* the request is not complete */
    SCAN_DONE, /* it is; what follows belongs to the next one */
    SCAN_REFUSED /* see problem and detail */
};

struct http_scan {
    size_t max_header;
    int64_t max_body;
    int in_body;
    int64_t body_left;
    char *head; /* request line and header so far; grows up to max_header */
    size_t head_len;
    size_t head_size;
    enum problem problem;
    const char *detail; /* static */
    enum lang lang;
};

void http_scan_init(struct http_scan *scan, size_t max_header, int64_t max_body);
void http_scan_done(struct http_scan *scan);

/* Begin the next request. */
void http_scan_reset(struct http_scan *scan);

/* Look at the next bytes. *ret_used of them belong to this request. */
enum http_scan_answer http_scan_feed(struct http_scan *scan, const char *data, size_t len,
                                     size_t *ret_used);

#endif
