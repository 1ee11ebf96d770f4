/* A relay between a client and a server, run by a thread of the test: holds bytes back, drops,
 * delays or cuts them in either direction, and keeps what a client that gave up had sent, so that
 * it can still arrive. Knows nothing of what the bytes mean, but for relay_answer(). */
#ifndef TESTS_LIB_RELAY_H
#define TESTS_LIB_RELAY_H

#include <stdbool.h>
#include <stddef.h>

enum relay_way { RELAY_UP, RELAY_DOWN }; /* towards the server, towards the client */

struct relay;

/* Listens on a free port of 127.0.0.1 and connects to the unix socket @path. */
struct relay *relay_start(const char *path);
/* NULL is allowed. */
void relay_free(struct relay *r);

int relay_port(const struct relay *r);
/* redis://127.0.0.1:port; belongs to the relay. */
const char *relay_url(const struct relay *r);

/* Keep all bytes of this way, also those of new connections, until it is turned off. */
void relay_hold(struct relay *r, enum relay_way way, bool on);
/* Keep those of the connections that exist now; new ones pass. relay_pass_held() ends it. */
void relay_hold_present(struct relay *r, enum relay_way way);
void relay_pass_held(struct relay *r);
/* Swallow all bytes of this way. */
void relay_drop(struct relay *r, enum relay_way way, bool on);
/* Pass each chunk on after a random time between the two. 0, 0: at once. */
void relay_delay(struct relay *r, enum relay_way way, int min_ms, int max_ms);
/* Break both sides off after @n more bytes of this way, counted over all connections. */
void relay_cut_after(struct relay *r, enum relay_way way, size_t n);
/* Break all connections off. */
void relay_break(struct relay *r);
/* New connections are taken and closed at once; or taken and never answered. */
void relay_refuse(struct relay *r, bool on);
void relay_ignore(struct relay *r, bool on);
/* The next @times chunks towards the server that contain @part do not arrive; the client gets
 * @text instead. For errors that a real server cannot be brought to. */
void relay_answer(struct relay *r, const char *part, const char *text, int times);
/* Changes @from into @to, of the same length, where a chunk towards the client has it. */
void relay_replace(struct relay *r, const char *from, const char *to);

/* What has happened so far. */
size_t relay_bytes(struct relay *r, enum relay_way way); /* passed on */
size_t relay_held(struct relay *r); /* bytes kept now, both ways */
unsigned relay_connections(struct relay *r); /* accepted */
unsigned relay_open(struct relay *r); /* client side still there */

#endif
