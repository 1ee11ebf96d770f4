/* The client: what all parts of the engine share. Members under "loop only" are touched by the
 * thread that runs the loop and by nobody else. */
#ifndef PAWLI_ENGINE_CLIENT_H
#define PAWLI_ENGINE_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <pawl.h>

#include "backend/backend.h"
#include "core/backoff.h"
#include "core/fence.h"
#include "engine/baton.h"
#include "engine/call.h"
#include "engine/notify.h"
#include "engine/stats.h"
#include "net/loop.h"
#include "util/list.h"
#include "util/map.h"

#define PAWLI_WHO_LEN 64

/* REALTIME - BOOTTIME when requests were sent: the difference tells of a freeze in between that
 * BOOTTIME did not see. Only changes are kept. */
#define PAWLI_OFFSETS 16
struct pawli_offsets {
    int64_t at_ns[PAWLI_OFFSETS]; /* the latest at n - 1 */
    int64_t offset_ns[PAWLI_OFFSETS];
    unsigned n;
};

struct pawl_client {
    atomic_uint refs;
    unsigned generation; /* see fork.h */
    atomic_bool closed;
    struct pawl_client_options opts; /* its texts are ours */
    char who[PAWLI_WHO_LEN]; /* "host pid start boot" */
    struct pawli_loop *loop;
    const struct pawli_backend *backend;
    struct pawli_node *node;
    struct pawli_baton baton;
    struct pawli_calls calls;
    struct pawli_notifier notifier;
    struct pawli_stats stats;
    bool has_parts;          /* baton, calls and notifier are set up */
    atomic_bool ended;       /* the engine thread is gone; see pawli_client_post() */
    pthread_mutex_t end_mu;  /* runs the loop after that */

    /* loop only */
    bool node_up;
    struct pawli_offsets offsets;
    size_t n_outstanding;          /* requests handed to the backend and not answered */
    bool stopped;                  /* the engine has ended: every call is answered ECLOSED */
    struct pawli_map holds;        /* struct pawli_held by key and owner */
    struct pawli_list all_holds;
    struct pawli_list waits;       /* struct pawli_acquire that are not finished */
    struct pawli_list releases;    /* struct pawli_release that are not finished */
    struct pawli_list readies;     /* struct pawli_ready that wait */
    struct pawli_list renewals_due;
    const char *inbox;             /* NULL: waiters cannot queue yet; then the same for good */
    bool inbox_up;
    struct pawli_map by_id;        /* struct pawli_acquire that can be told, by hold id */
    struct pawli_map lines_by_key; /* struct pawli_line */
    struct pawli_list lines;
    size_t n_lines;
    struct pawli_fence fence;
    uint64_t seed;                 /* of jitter */
    struct pawli_call *closing;    /* answered when nothing is held any more */
};

struct pawl_client *pawli_client_ref(struct pawl_client *client);
void pawli_client_unref(struct pawl_client *client);

/* 0, or why @client cannot be used here: EUSAGE (NULL), EFORKED, ECLOSED. Sets the detail. */
int pawli_client_check(const struct pawl_client *client);

/* Hand @task to the loop. It always runs, if late then on a stopped client. */
void pawli_client_post(struct pawl_client *client, struct pawli_task *task);

/* Run a synchronous call: start it, wait for its answer, at most until @limit_ns on BOOTTIME, then
 * give it up with @late. Takes the caller's reference on @call; the engine has its own. Returns
 * the result; with 0 *ret_lock or *ret_info are given if not NULL. */
int pawli_client_run(struct pawli_call *call, int64_t limit_ns, int late,
                     struct pawl_lock **ret_lock, struct pawl_lock_info **ret_info);

/* Hand @req to the backend, counted. On the loop; its done must call pawli_client_answered(). */
void pawli_client_submit(struct pawl_client *client, struct pawli_request *req);
void pawli_client_answered(struct pawl_client *client);
/* The store's own words for @code, for pawl_error_detail(). */
const char *pawli_client_detail(const struct pawl_client *client);

void pawli_client_backoff(struct pawl_client *client, struct pawli_backoff *ret_backoff);
uint64_t pawli_client_jitter(struct pawl_client *client, uint64_t bound);

/* REALTIME - BOOTTIME now, and as it was when the request was sent whose sent_ns is @sent_ns. */
int64_t pawli_clocks_offset_ns(const struct pawl_client *client);
int64_t pawli_clocks_offset_at(const struct pawl_client *client, int64_t sent_ns);
/* By how much more than BOOTTIME shows has passed since then, if it was so much that the machine
 * must have been frozen; else 0. */
int64_t pawli_clocks_jump_ns(const struct pawl_client *client, int64_t sent_ns, int64_t lease_ms);

/* The longest that a request can take: to connect, to be answered, and a little. */
int64_t pawli_client_patience_ns(const struct pawl_client *client);

/* A wait, hold or release ended: a close may be waiting for that. On the loop. */
void pawli_client_settled(struct pawl_client *client);

/* Hooks for the loop and the baton, and what the node tells; @arg is the client. */
const struct pawli_node_events *pawli_client_events(void);
void pawli_client_flush(void *arg);
void pawli_client_posted(void *arg);
bool pawli_client_at_rest(void *arg);

#endif
