/* Acquires on their way: drives core/wait.h against the store. */
#ifndef PAWLI_ENGINE_ACQUIRE_H
#define PAWLI_ENGINE_ACQUIRE_H

struct pawl_client;

/* The store became usable. On the loop. */
void pawli_acquires_up(struct pawl_client *client);
/* End all waits with PAWL_ECLOSED; what may have been granted is given back. On the loop. */
void pawli_acquires_close(struct pawl_client *client);
/* Forget what is left, after the node has closed. On the loop of a stopped client. */
void pawli_acquires_drop(struct pawl_client *client);

#endif
