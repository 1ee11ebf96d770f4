/* Decisions of one hold, from its grant to its end: when to renew, what to tell, when it is lost.
 * Pure: the time is in the event, the I/O is the caller's. */
#ifndef PAWLI_CORE_HOLD_H
#define PAWLI_CORE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/backoff.h"

enum pawli_hold_state {
    PAWLI_HOLD_HELD,
    PAWLI_HOLD_EXPIRING,  /* maximum hold reached; the grace runs */
    PAWLI_HOLD_RELEASING, /* the last handle is being released: nothing is a loss any more */
    PAWLI_HOLD_ENDED      /* released or lost */
};

/* For logs and tests. */
const char *pawli_hold_state_name(enum pawli_hold_state state);

enum pawli_hold_event_kind {
    PAWLI_HOLD_TICK,
    PAWLI_HOLD_RENEWED,   /* sent_ns, pttl_ms */
    PAWLI_HOLD_FAILED,    /* the renewal was not answered or refused for a passing reason: code */
    PAWLI_HOLD_REFUSED,   /* "not yours": code is PAWL_LOST_TAKEN or PAWL_LOST_REVOKED */
    PAWLI_HOLD_UP,        /* the store became usable */
    PAWLI_HOLD_DOUBT,     /* a clock jumped: renew at once */
    PAWLI_HOLD_CHANGED,   /* lease_ms, renew: after a re-entry, a partial release or an extend;
                             sent_ns and pttl_ms as with RENEWED; shorter: the lease may shrink */
    PAWLI_HOLD_SHORTENED, /* an extend, perhaps to a shorter lease, is sent now: lease_ms */
    PAWLI_HOLD_EXTEND_ANSWERED, /* once for each SHORTENED; kept: it was certainly not executed */
    PAWLI_HOLD_RELEASE,   /* the release of the last handle begins */
    PAWLI_HOLD_LOST       /* the caller's thread noticed the loss: code */
};

struct pawli_hold_event {
    enum pawli_hold_event_kind kind;
    int64_t now_ns;
    int64_t sent_ns;
    int64_t pttl_ms;
    int64_t lease_ms;
    int code;
    bool renew;
    bool shorter;
    bool kept;
    bool exact; /* with RENEWED: the machine was frozen, so what was believed before is too long */
};

/* What the caller must do, in this order. */
struct pawli_hold_effects {
    bool renew;          /* send a renewal; answer with RENEWED, FAILED or REFUSED */
    bool tell_at_risk;   /* result: the failure */
    bool tell_recovered;
    bool tell_expiring;
    bool tell_lost;      /* result: PAWL_LOST_... */
    int result;
    bool release_all;    /* remove all ids of this token at the store, without waiting */
    int64_t wake_ns;     /* send TICK then; PAWLI_NEVER: no need */
};

struct pawli_hold {
    enum pawli_hold_state state;
    int64_t lease_ms;
    int64_t grace_ms;        /* already at most a third of the first lease */
    int64_t valid_until_ns;  /* only moves forward, but for an extend to a shorter lease */
    int64_t max_end_ns;      /* PAWLI_NEVER: none */
    int64_t short_sent_ns;   /* of the last extend to a shorter lease; 0: none */
    int64_t short_until_ns;  /* what was sent before it confirms no longer than this */
    int64_t long_until_ns;   /* valid_until before the extends in flight; 0: not to be had back */
    unsigned n_extends;      /* in flight */
    int64_t renew_at_ns;     /* PAWLI_NEVER: renewal is off */
    int64_t last_renewed_ns; /* sent_ns of the last success */
    int64_t asked_ns;        /* when the renewal in flight was asked for */
    bool renew_on;
    bool unconfirmed;        /* granted from the queue: what the store gave is only a claim */
    bool renewing;           /* one in flight */
    bool again;              /* UP came while one was in flight: if it fails, retry at once */
    bool confirm;            /* DOUBT came while one was in flight: renew again in any case */
    bool at_risk;
    int last_failure;
    struct pawli_backoff backoff;
};

/* @base_ns  send time of the granting request (or the base of a queued grant): lease and maximum
 *           hold count from it. @max_hold_ms PAWL_UNLIMITED: none. */
void pawli_hold_init(struct pawli_hold *h, int64_t base_ns, int64_t pttl_ms, int64_t lease_ms,
                     int64_t max_hold_ms, int64_t grace_ms, bool renew,
                     const struct pawli_backoff *backoff);

/* The grant came from the queue at @now_ns and is a short claim until it is confirmed. The confirm
 * is a renewal, sent also with renewal off, but not at once: a section that is over within
 * PAWLI_CONFIRM_NS needs none. Call it right after pawli_hold_init(). */
#define PAWLI_CONFIRM_NS INT64_C(10000000)
void pawli_hold_claimed(struct pawli_hold *h, int64_t now_ns);

/* Rules, each with its test in tests/unit/test_hold.c:
 * - Renews every lease/3 after the last success was sent, with up to a tenth of it less as jitter,
 *   and sooner if a grant has less than the lease left;
 *   a failed one is retried with backoff (at most lease/6 apart) until valid_until. Never two in
 *   flight. UP retries a failed one at once.
 * - a claim is confirmed after PAWLI_CONFIRM_NS, or half of what is left of it if that is sooner;
 *   retried like a renewal; once confirmed, a hold with renewal off asks no more.
 * - RENEWED moves valid_until forward to the larger of the two; never back, unless it is exact.
 * - at risk: a renewal has failed or is unanswered for longer than lease/6, and now is past
 *   valid_until - grace, grace = min(grace, lease/3); withdrawn by the next success. Told once
 *   until withdrawn.
 * - maximum hold: EXPIRING at max_end: told once, no renewal any more; at min(max_end + grace,
 *   valid_until): lost (MAX_HOLD) is told and release_all asked, in one step. valid_until never
 *   passes max_end + grace.
 * - valid_until reached: lost: LOST_UNREACHABLE if the last renewal failed or is unanswered, else
 *   LOST_EXPIRED; release_all too (by hold id it can do no harm, and frees the store early).
 * - REFUSED: lost with its code. Exactly one tell_lost per hold; nothing is told after it. Late
 *   replies of an ended hold do nothing. LOST from the caller's thread is told like any other.
 * - RELEASE: RELEASING; no renewal, nothing told any more.
 * - SHORTENED: from now on the end of the shorter lease counts if it is earlier, and a confirmation
 *   that was sent before does not move it; the store may run the extend at any time. If it was
 *   certainly not executed, what was believed before is believed again.
 * - CHANGED: larger lease or renew on takes effect; with shorter, valid_until becomes the new
 *   lease's even if earlier. */
void pawli_hold_step(struct pawli_hold *h, const struct pawli_hold_event *ev,
                     struct pawli_hold_effects *ret_do);

#endif
