/* Holds: what one owner holds of one lock through this client, whatever the number of handles.
 * Drives core/hold.h; its facts are read by check on any thread. */
#ifndef PAWLI_ENGINE_HOLD_H
#define PAWLI_ENGINE_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hold.h"
#include "core/key.h"
#include "engine/owner.h"
#include "net/loop.h"
#include "util/list.h"
#include "util/map.h"

struct pawl_client;
struct pawl_lock;

struct pawli_held {
    atomic_uint refs;
    struct pawl_client *client; /* borrowed: the handles keep it */
    struct pawli_key *key;
    struct pawl_owner *owner;
    uint64_t token;

    /* written by the engine, read by check on any thread */
    _Atomic int64_t valid_until_ns;
    _Atomic int64_t max_end_ns;
    _Atomic int64_t offset_ns; /* REALTIME - BOOTTIME when the store last confirmed */
    _Atomic int64_t jump_ns;   /* a change of that difference which means a freeze */
    _Atomic int lost;          /* 0 or PAWL_LOST_...; set once, by whoever notices first */
    _Atomic int count;
    atomic_bool expiring;
    atomic_bool failing;       /* the last renewal failed or is unanswered */
    atomic_bool renew_on;
    atomic_bool doubt;         /* a clock jumped; not confirmed since */

    struct pawli_task kick;    /* check asks the engine to look */
    atomic_bool kicked;

    /* loop only */
    struct pawli_hold sm;
    struct pawli_timer timer;
    struct pawli_map_node by_owner;
    struct pawli_list link;     /* in the client's all_holds while it lives */
    struct pawli_list handles;  /* struct pawl_lock */
    struct pawli_list due;      /* in the client's renewals_due */
    int64_t granted_ns;
    bool told_lost;
};

/* What a grant says. */
struct pawli_grant {
    int64_t base_ns; /* the lease counts from here */
    int64_t pttl_ms;
    uint64_t token;
    int count;
    bool claim; /* handed over by the queue: pttl_ms is a claim that must be confirmed */
};

void pawli_held_unref(struct pawli_held *held);
struct pawli_held *pawli_held_ref(struct pawli_held *held);

/* @lock was granted: join the owner's hold of that token or make one. 0, or PAWL_ENOMEM and the
 * grant must be given back. On the loop, as are all below but the last two. */
int pawli_hold_granted(struct pawl_lock *lock, const struct pawli_grant *grant);
/* A grant that cannot be used: release it at the store, behind. */
void pawli_hold_give_back(struct pawl_lock *lock);

/* The release of @lock begins: it leaves its hold. True if it was the last handle, and the hold
 * has ended without being lost. */
bool pawli_hold_leave(struct pawl_lock *lock);

/* A renewal of @held was answered: code 0, PAWL_LOST_... or a failure. */
void pawli_hold_renewed(struct pawli_held *held, int64_t sent_ns, int code, int64_t pttl_ms);
/* @lock's lease was extended or shortened to @lease_ms at @sent_ns. */
void pawli_hold_extended(struct pawl_lock *lock, int64_t sent_ns, int64_t lease_ms,
                         int64_t pttl_ms);

/* An extend of @lock to @lease_ms is about to be sent: believe no longer than that. */
void pawli_hold_shortening(struct pawl_lock *lock, int64_t lease_ms);
/* The store does not know @lock's id, or it is revoked: @code. */
void pawli_hold_refused(struct pawl_lock *lock, int code);
/* It was answered; @kept: certainly not executed. Before extended or shortened. */
void pawli_hold_extend_answered(struct pawl_lock *lock, bool kept);
/* It was not answered: go on with the shorter lease. */
void pawli_hold_shortened(struct pawl_lock *lock, int64_t lease_ms);

void pawli_holds_up(struct pawl_client *client);
void pawli_holds_doubt(struct pawl_client *client);
/* Release every handle of every hold. */
void pawli_holds_close(struct pawl_client *client);
void pawli_holds_drop(struct pawl_client *client);

/* A request that was sent at @sent_ns confirmed the hold. True if the machine may have been frozen
 * since the confirmation before: what was believed until now is too long. */
bool pawli_held_confirmed(struct pawli_held *held, int64_t sent_ns);
/* Feed one event and do what it asks for. */
void pawli_held_step(struct pawli_held *held, struct pawli_hold_event *ev);

/* Send the renewals that fell due in this turn, many locks in one request. */
void pawli_renewals_flush(struct pawl_client *client);

/* From any thread: 0, PAWL_EXPIRING, PAWL_UNSURE or PAWL_LOST_...; notices a loss by the clock. */
int pawli_held_check(struct pawli_held *held);
/* From any thread: is it lost already? 0 or the reason. */
int pawli_held_lost(const struct pawli_held *held);

#endif
