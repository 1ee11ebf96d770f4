/* redis://, rediss:// and redis+unix:// URLs taken apart. Opens nothing. */
#ifndef PAWLI_REDIS_URL_H
#define PAWLI_REDIS_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawli_redis_url {
    bool tls;
    char *host;     /* without brackets; NULL: a unix socket */
    char *path;     /* of the unix socket; NULL: TCP */
    uint16_t port;
    long db;
    char *username; /* NULL: none */
    char *password; /* NULL: none */
};

/* 0; PAWL_EURL, then @detail names the value and the rule, never the password; PAWL_ENOMEM. */
int pawli_redis_url_parse(const char *text, struct pawli_redis_url *ret_url, char *detail,
                          size_t detail_len);
/* Wipes the password. */
void pawli_redis_url_done(struct pawli_redis_url *url);

/* Free a text after overwriting it. NULL is allowed. */
void pawli_secret_free(char *secret);

#endif
