/* Decisions of one acquire, from the call to its answer and the cleaning up behind it: when to
 * try, what to answer, when something must be given back. Pure: the time is in the event, the
 * I/O is the caller's. */
#ifndef PAWLI_CORE_WAIT_H
#define PAWLI_CORE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/backoff.h"

/* An answer to an attempt beside the results of pawl.h: the lock is busy, and the wait stands in
 * its queue at the store. */
#define PAWLI_QUEUED 100

/* How long a waiter that was handed the lock may take to confirm, at most its lease; the scripts
 * know the same number. */
#define PAWLI_CLAIM_MS INT64_C(1500)

enum pawli_wait_state {
    PAWLI_WAIT_TRYING,   /* an attempt is in flight */
    PAWLI_WAIT_SLEEPING, /* between two attempts, and before START */
    PAWLI_WAIT_QUEUED,   /* in the store's queue; told by message, or by a re-check */
    PAWLI_WAIT_ANSWERED, /* the caller has its answer; nothing left at the store */
    PAWLI_WAIT_ORPHANED, /* the caller has its answer; an attempt is still in flight */
    PAWLI_WAIT_CLEANING  /* the caller has its answer; a cancel is due or in flight */
};

/* For logs and tests. */
const char *pawli_wait_state_name(enum pawli_wait_state state);

enum pawli_wait_event_kind {
    PAWLI_WAIT_START,
    PAWLI_WAIT_UP,       /* the store became usable */
    PAWLI_WAIT_INBOX,    /* messages can be received from now on: a place in the queue can be had */
    PAWLI_WAIT_REPLY,    /* the attempt was answered: code, pttl_ms */
    PAWLI_WAIT_GRANTED,  /* the lock was handed to this hold id. sent_ns: of the request whose
                            answer says so; 0: a message says so, and only the wait knows since
                            when it may believe */
    PAWLI_WAIT_CHECKING, /* a re-check of the queue is unanswered since sent_ns */
    PAWLI_WAIT_CHECKED,  /* it was answered: code QUEUED, 0 (granted, pttl_ms; confirmed), FREE
                            (this id is neither queued nor granted), or a failure; sent_ns */
    PAWLI_WAIT_TICK,     /* time passed */
    PAWLI_WAIT_CANCEL,   /* the caller gave up, code: what to answer (CANCELED, ECLOSED, ...) */
    PAWLI_WAIT_CLEANED   /* the cancel was answered: code */
};

struct pawli_wait_event {
    enum pawli_wait_event_kind kind;
    int64_t now_ns;
    int code;
    int64_t pttl_ms; /* of the holder, with BUSY; < 0: none known */
    int64_t sent_ns;
};

/* What the caller must do, in this order. */
struct pawli_wait_effects {
    bool send_acquire;
    bool new_id;     /* with send_acquire: under a new hold id */
    bool bury;       /* with new_id: an attempt under the old one may still arrive */
    bool check_now;  /* re-check this id at once: granted, but too late to believe unconfirmed */
    bool send_cancel;
    bool tombstone;  /* with send_cancel: an attempt may still arrive */
    bool complete;   /* answer the caller with result; granted if 0 */
    int result;
    int64_t base_ns; /* with result 0: > 0: granted from the queue, the claim counts from here;
                        0: granted by the attempt that was answered */
    int64_t pttl_ms; /* with base_ns: what was granted from then on */
    bool claim;      /* with base_ns: a message said so, and it must be confirmed */
    bool finished;   /* nothing more will come; the wait may be freed */
    int64_t wake_ns; /* send TICK then; PAWLI_NEVER: no need */
};

struct pawli_wait {
    enum pawli_wait_state state;
    bool once;            /* wait limit 0 */
    bool told_late;       /* "late" was answered once already */
    bool maybe_granted;   /* an attempt ended without an answer */
    bool saw_busy;        /* the last answer was BUSY */
    int last_failure;     /* the last answer was this failure; 0: none */
    int64_t limit_ns;     /* answer the caller then at the latest */
    int64_t sent_ns;      /* when the attempt in flight was handed over */
    int64_t next_ns;      /* SLEEPING, CLEANING: next attempt; PAWLI_NEVER: none is due */
    int64_t lease_ns;
    int64_t give_up_ns;   /* CLEANING: whatever was granted has expired by then */
    int64_t base_ns;      /* send time of the last answer that named this hold id as queued */
    int64_t checking_ns;  /* QUEUED: a re-check is unanswered since then; 0: none */
    bool told;            /* TRYING: a message came before the answer to the attempt */
    unsigned missed;      /* how often its place was lost */
    struct pawli_backoff backoff;
};

/* @limit_ns of a single try (@once) is its longest duration from now. */
void pawli_wait_init(struct pawli_wait *w, bool once, int64_t limit_ns, int64_t lease_ms,
                     const struct pawli_backoff *backoff);

/* Rules, each with its test in tests/unit/test_wait.c:
 * - START sends at once. A grant completes with 0. BUSY: once completes BUSY, else sleeps for the
 *   backoff (growing, jittered), but wakes when the holder's pttl ends if that is sooner, and
 *   never past the limit.
 * - ELATE is retried at once, one time; then it counts as a passing failure.
 * - USAGE and DENIED failures complete at once. REFUSED and UNAVAILABLE: once completes (unless
 *   maybe_granted: then it is retried, as UNKNOWN is), else sleeps for the backoff; UP ends a
 *   sleep that follows a failure at once.
 * - UNKNOWN sets maybe_granted and is retried (same hold id, so that a grant is recognised) like a
 *   failure, also with once, until the limit.
 * - At the limit: TIMEOUT if the last answer was BUSY and the attempt in flight is younger than
 *   200 ms; EUNKNOWN if an attempt is in flight otherwise or maybe_granted; else the last failure;
 *   ECONNECT if nothing was ever answered.
 * - After a completion other than 0: with an attempt in flight ORPHANED, and its REPLY decides
 *   (granted, BUSY after maybe_granted, or UNKNOWN: CLEANING; clean refusal: finished). With
 *   maybe_granted and none in flight: CLEANING at once. A grant for nobody is cancelled.
 * - CLEANING repeats the cancel on failure with backoff (UP: at once) until it is answered, also
 *   by a failure of class USAGE, or until give_up_ns (last sent + lease): then what was granted
 *   has expired. The first is sent in any case. tombstone is set iff maybe_granted.
 * - QUEUED: by an answer to the attempt. A message is believed if base + claim - margin is still to
 *   come, claim = min(PAWLI_CLAIM_MS, lease) and base the send time of the last answer that named
 *   this id as queued; it completes with that base. Too late: check_now, and the re-check's answer
 *   decides. A message that comes before the answer to the attempt counts when that answer says
 *   QUEUED (base: the attempt), or is UNKNOWN. A grant in the answer to another request of ours
 *   counts from that request's send time if that is later.
 * - A re-check that finds the id neither queued nor granted: a new attempt under a new hold id,
 *   because a message of the ended claim may still be on its way and would be dated from the new
 *   place (tests/model/handoff.pml, SAME_ID). Its place is kept three times.
 * - EQUEUEFULL completes at once; and so do USAGE and DENIED failures of a re-check.
 * - At the limit in the queue: EUNKNOWN if a re-check is unanswered for 200 ms or the last one
 *   failed, else TIMEOUT. Then, as on CANCEL, CLEANING: the cancel leaves the queue.
 * - Exactly one completion, on every path. */
void pawli_wait_step(struct pawli_wait *w, const struct pawli_wait_event *ev,
                     struct pawli_wait_effects *ret_do);

#endif
