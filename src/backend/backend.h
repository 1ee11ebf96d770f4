/* What a lock store must offer to the engine: one table of functions, requests in, answers out.
 * Says nothing of Redis; the engine knows nothing else. */
#ifndef PAWLI_BACKEND_BACKEND_H
#define PAWLI_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl.h>

#include "core/key.h"
#include "net/loop.h"
#include "util/list.h"

enum pawli_op {
    PAWLI_OP_ACQUIRE,     /* key owner hold_id lease_ms span_ms floor who; to queue: inbox entry
                             ticket; flags (PAWLI_BARGE) */
    PAWLI_OP_RENEW,       /* renewals n_renewals */
    PAWLI_OP_CHECK,       /* key floor inbox checks n_checks: waiters of this client in the queue */
    PAWLI_OP_RELEASE,     /* key owner hold_id tombstone floor inbox */
    PAWLI_OP_CANCEL,      /* as RELEASE, for a wait that ended, with its entry if it was queued */
    PAWLI_OP_EXTEND,      /* key owner hold_id token lease_ms */
    PAWLI_OP_INSPECT,     /* key */
    PAWLI_OP_FORCE,       /* key token (0: any) flags (PAWL_FORCE_NOW) */
    PAWLI_OP_CLAIM,       /* key (a claim key) owner token */
    PAWLI_OP_SET_IF       /* key (a claim key), owner token value value_len */
};

/* One lock of a RENEW batch. */
struct pawli_renewal {
    const struct pawli_key *key;
    uint64_t token;
    int64_t lease_ms;
    void *arg;       /* the engine's */
    /* answer: code 0 (renewed, pttl_ms), PAWL_LOST_TAKEN, PAWL_LOST_REVOKED */
    int code;
    int64_t pttl_ms;
};

/* One waiter of a CHECK. */
struct pawli_check {
    char hold_id[33];
    const char *owner;
    const char *entry;
    size_t entry_len;
    int64_t lease_ms;
    void *arg;      /* the engine's */
    /* answer: PAWLI_QUEUED, 0 (granted, now with the whole lease: token), FREE (neither) */
    int code;
    uint64_t token;
};

/* The flag of an ACQUIRE that may take a lock found free before those who wait for it. */
#define PAWLI_BARGE 1u

/* Codes in answers. ACQUIRE: 0 (token, count, pttl_ms), BUSY (pttl_ms), PAWLI_QUEUED (pttl_ms,
 * ticket), EQUEUEFULL, ELATE, EWRONGTYPE, NOT_OWNER (a tombstone refused it), failures. CHECK: 0
 * (pttl_ms of the lock, -2: free; head: the next turn is ours). RELEASE, CANCEL: 0 (free),
 * STILL_HELD (count), NOT_OWNER, failures. EXTEND: 0 (pttl_ms), NOT_OWNER,
 * LOST_REVOKED. INSPECT: 0 (info),
 * FREE. FORCE: 0, FREE, NOT_OWNER. CLAIM, SET_IF: 0, STALE. */
struct pawli_answer {
    int code;
    int64_t pttl_ms;
    uint64_t token;
    int count;
    uint64_t ticket;
    bool head;
    /* The lock passed on to another waiter of this client: its hold id, "" if not, and token. */
    char granted_id[33];
    uint64_t granted_token;
    struct pawl_lock_info *info; /* one allocation, texts included; given */
};

/* Owned by the engine, which keeps it and all that it points to until @done has run. */
struct pawli_request {
    /* filled in by the engine */
    enum pawli_op op;
    unsigned flags;
    bool tombstone;
    const struct pawli_key *key;
    const char *owner;   /* text */
    const char *hold_id; /* 32 hex digits; a secret */
    const char *who;     /* "host pid start boot" for operators */
    int64_t lease_ms;
    int64_t span_ms;     /* maximum hold from the grant; 0: none */
    uint64_t token;
    uint64_t floor;
    const void *value;
    size_t value_len;
    const char *inbox;   /* NULL: none */
    const char *entry;   /* what stands in the queue; NULL: nothing does */
    size_t entry_len;
    uint64_t ticket;     /* a place to be taken again; 0: a new one */
    struct pawli_renewal *renewals;
    size_t n_renewals;
    struct pawli_check *checks;
    size_t n_checks;
    /* Exactly once per submitted request, unless it was withdrawn; never from inside submit. The
     * request may be submitted again from here. */
    void (*done)(struct pawli_request *req);

    /* filled in by the backend before done */
    int64_t sent_ns; /* of the last attempt, before its bytes entered any buffer of ours */
    int64_t server_us; /* server time in the answer; 0: none */
    struct pawli_answer answer;

    /* the backend's own */
    struct pawli_list link;
    uint64_t frame_end;   /* stream offset after its last byte */
    int64_t deadline_ns;
    int stage;
};

struct pawli_node;

/* What a node tells the engine; all on the loop. */
struct pawli_node_events {
    /* The store became usable (code 0), or stopped being so (why). @detail is for people. */
    void (*state)(void *arg, int code, const char *detail);
    /* Server time against BOOTTIME moved by more than the margin allows: hold nothing for sure. */
    void (*clock_jump)(void *arg, int64_t by_ms);
    /* Messages can be received now, or not any more. */
    void (*inbox)(void *arg, bool up);
    /* The lock was handed to the waiter with this hold id. */
    void (*granted)(void *arg, const char *hold_id, uint64_t token);
    /* The lock of this name in the store may be free: a waiter should ask at once. */
    void (*freed)(void *arg, const char *name, size_t name_len);
    void (*log)(void *arg, enum pawl_log_level level, const char *line);
    void *arg;
};

/* Counters that the node keeps; read on the loop. */
struct pawli_node_stats {
    uint64_t connects;
    uint64_t commands;
};

struct pawli_backend {
    const char *const *schemes; /* URL schemes it serves, NULL-terminated */

    /* Parse the URL and make a node; does not touch the network. @opts has been checked and
     * stays valid as long as the node. @detail names value and rule on failure: PAWL_EURL,
     * PAWL_EUSAGE, PAWL_ESECRET, PAWL_ENOMEM. */
    int (*open)(const char *url, const struct pawl_client_options *opts, struct pawli_loop *loop,
                const struct pawli_node_events *events, char *detail, size_t detail_len,
                struct pawli_node **ret_node);

    /* Begin to connect; from then on the node reconnects by itself. On the loop. */
    void (*start)(struct pawli_node *node);

    /* Send @req, or keep it while a connection attempt is under way (at most connect_ms), or
     * answer with the reason why the store cannot be used. On the loop. Several submits of one
     * turn go out in one write. */
    void (*submit)(struct pawli_node *node, struct pawli_request *req);

    /* Write out what was submitted in this turn of the loop. */
    void (*flush)(struct pawli_node *node);

    /* Forget a request that was not sent yet: true, and done will not be called. False: it is on
     * its way and will be answered. */
    bool (*withdraw)(struct pawli_node *node, struct pawli_request *req);

    /* Where the store tells the waiters of this client of their grants; the same as long as the
     * node lives. NULL while it cannot: the first call begins to set it up, and the inbox event
     * says when it is ready. Begins with '~' where the store cannot tell anybody: then waiters
     * ask. */
    const char *(*inbox)(struct pawli_node *node);

    /* Waiters for @key begin, or cease, to stand in the queue: listen to what other kinds of
     * clients say of it, told by the freed event. Begins anew with each inbox event. */
    void (*listen)(struct pawli_node *node, const struct pawli_key *key, bool on);

    /* What the store's clock shows at @at_ns on BOOTTIME, in us, rather more than less; 0: not
     * known yet. */
    int64_t (*server_us)(const struct pawli_node *node, int64_t at_ns);

    /* 0 if usable, PAWL_BUSY while the first attempt is under way, else why not; @detail as with
     * pawl_error_detail(). */
    int (*status)(const struct pawli_node *node, char *detail, size_t detail_len);

    /* What stood behind the last failed answer or connection, for people. */
    const char *(*detail)(const struct pawli_node *node);

    void (*stats)(const struct pawli_node *node, struct pawli_node_stats *ret_stats);

    /* Close the connections at once; outstanding requests are answered ECLOSED (never sent) or
     * EUNKNOWN. Then free. On the loop. */
    void (*close)(struct pawli_node *node);
};

/* The backend that serves the URL's scheme, NULL if none does. */
const struct pawli_backend *pawli_backend_for(const char *url);

extern const struct pawli_backend pawli_backend_redis;

#endif
