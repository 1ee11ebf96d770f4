/* Acquires on their way: drives core/wait.h against the store. */
#ifndef PAWLI_ENGINE_ACQUIRE_H
#define PAWLI_ENGINE_ACQUIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "core/wait.h"
#include "engine/call.h"
#include "util/list.h"
#include "util/map.h"

struct pawl_client;
struct pawl_lock;
struct pawli_line;

/* One acquire, from its call until nothing of it can be left at the store. */
struct pawli_acquire {
    struct pawli_call call;
    struct pawl_lock *lock;
    int64_t asked_ns;
    /* loop only */
    struct pawli_list link; /* in the client's waits */
    struct pawli_wait wait;
    struct pawli_timer timer;
    struct pawli_request req;
    bool counted_wait;
    bool before_inbox;             /* the attempt was sent while there was no inbox to queue with */
    /* in the queue, see line.h */
    struct pawli_line *line;       /* NULL: not queued */
    struct pawli_list in_line;
    struct pawli_map_node by_id;
    bool listed;                   /* by its hold id: can be told of a grant */
    char *entry;                   /* what stands in the queue for it; NULL: nothing yet */
    size_t entry_len;
    uint64_t ticket;
    uint64_t granted_token;        /* a grant told by message or re-check */
};

/* Starts an operation that acquire_call.c has made; task is its call's start or cancel. */
void pawli_acquire_start(struct pawli_task *task);
void pawli_acquire_cancel(struct pawli_task *task);
void pawli_acquire_fired(struct pawli_timer *timer);

/* Feed one event and do what it asks for. On the loop, as are all below. */
void pawli_acquire_step(struct pawli_acquire *a, struct pawli_wait_event *ev);

/* The store became usable; messages can be received. */
void pawli_acquires_up(struct pawl_client *client);
void pawli_acquires_inbox(struct pawl_client *client);
/* End all waits with PAWL_ECLOSED; what may have been granted is given back. */
void pawli_acquires_close(struct pawl_client *client);
/* Forget what is left, after the node has closed; the client is stopped. */
void pawli_acquires_drop(struct pawl_client *client);

#endif
