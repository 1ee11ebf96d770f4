/* Names to addresses without blocking the loop. */
#ifndef PAWLI_NET_RESOLVE_H
#define PAWLI_NET_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"

struct pawli_resolve;

/* Look up @host in the background; @done runs on the loop, once, unless the lookup is freed
 * before. A literal address is answered in the next turn without a thread. 0, PAWL_ENOMEM or
 * PAWL_ESYSTEM (no thread, no descriptor). */
int pawli_resolve_start(struct pawli_loop *loop, const char *host, uint16_t port,
                        void (*done)(void *arg), void *arg, struct pawli_resolve **ret_resolve);

/* Has it been answered? */
bool pawli_resolve_is_done(const struct pawli_resolve *resolve);

/* The answer: a list that belongs to @resolve, or NULL with the reason for people. */
const struct addrinfo *pawli_resolve_addresses(const struct pawli_resolve *resolve,
                                               const char **ret_reason);

/* Forget it; a thread that still waits for a name server drops its late answer. NULL is allowed.
 * On the loop. */
void pawli_resolve_free(struct pawli_resolve *resolve);

#endif
