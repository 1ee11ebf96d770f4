/* Raw commands to Redis for what <pawl.h> does not offer: SCAN, INFO, CONFIG GET, probes. Blocking,
 * one connection; the same URL, credentials and limits as the library's client. */
#ifndef PAWL_CLI_STORE_H
#define PAWL_CLI_STORE_H

#include <hiredis/hiredis.h>

#include "options.h"

struct store;

/* Where a URL points; texts belong to it. */
struct store_address {
    bool tls;
    bool unix_socket;
    char *host; /* or the socket's path */
    char *port;
    char *user; /* "": none */
    char *password; /* NULL: none */
    int db;
};

/* 0 or PAWL_EURL. Free with store_address_done(). */
int store_address_parse(const char *url, struct store_address *ret_address);
void store_address_done(struct store_address *address);

/* Connect, log in, select the database. 0, or PAWL_ECONNECT, ERESOLVE, ETLS, EAUTH, NOAUTH, EURL,
 * ESECRET, ENOMEM with a sentence in @why. Close with store_close(). */
int store_open(const struct options *o, struct store **ret_store, char *why, size_t why_len);
void store_close(struct store *s);

/* One command, formatted as redisCommand() does. NULL if the connection is broken; else free with
 * freeReplyObject(). Replies of the server that are errors are replies. */
redisReply *store_command(struct store *s, const char *fmt, ...);
redisReply *store_argv(struct store *s, int argc, const char **argv, const size_t *lens);
/* The two halves, for many commands in one go. 0 or -1. */
int store_send(struct store *s, const char *fmt, ...);
redisReply *store_receive(struct store *s);

/* Is it an error reply that begins with @prefix ("" for any)? */
bool store_is_error(const redisReply *r, const char *prefix);

#endif
