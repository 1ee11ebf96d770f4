/* Callers of pawl_client_ready() that wait for the store. */
#ifndef PAWLI_ENGINE_READY_H
#define PAWLI_ENGINE_READY_H

struct pawl_client;

/* The store became usable (0) or failed (code). On the loop. */
void pawli_ready_tell(struct pawl_client *client, int code, const char *detail);
void pawli_readies_drop(struct pawl_client *client);

#endif
