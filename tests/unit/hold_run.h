/* A hold under test: feeds it events and says in words what must follow. */
#ifndef TESTS_UNIT_HOLD_RUN_H
#define TESTS_UNIT_HOLD_RUN_H

#include "unit.h"

#include <pawl.h>

#include "core/hold.h"
#include "core/validity.h"
#include "util/clock.h"

#define BASE_MS 1000 /* the grant was sent then */
#define LEASE_MS 30000
#define MARGIN_MS 50
#define MAX_HOLD_MS 180000
#define GRACE_MS 5000

struct run {
    struct pawli_hold hold;
    struct pawli_hold_effects fx;
    int64_t now_ns;
};

static inline void feed(struct run *r, struct pawli_hold_event ev)
{
    ev.now_ns = r->now_ns;
    pawli_hold_step(&r->hold, &ev, &r->fx);
}

static inline void tick_at(struct run *r, int64_t now_ns)
{
    r->now_ns = now_ns;
    feed(r, (struct pawli_hold_event){ .kind = PAWLI_HOLD_TICK });
}

static inline void begin_with(struct run *r, int64_t pttl_ms, int64_t lease_ms,
                              int64_t max_hold_ms, int64_t grace_ms, bool renew)
{
    struct pawli_backoff backoff;

    pawli_backoff_init(&backoff, 50, 1000, 1);
    pawli_hold_init(&r->hold, BASE_MS * MS, pttl_ms, lease_ms, max_hold_ms, grace_ms, renew,
                    &backoff);
    tick_at(r, BASE_MS * MS);
}

static inline void begin(struct run *r)
{
    begin_with(r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, true);
}

static inline void wake(struct run *r)
{
    tick_at(r, r->fx.wake_ns);
}

static inline void renewed(struct run *r, int64_t sent_ns, int64_t pttl_ms)
{
    feed(r, (struct pawli_hold_event){
                .kind = PAWLI_HOLD_RENEWED, .sent_ns = sent_ns, .pttl_ms = pttl_ms });
}

static inline void happens(struct run *r, enum pawli_hold_event_kind kind, int code)
{
    feed(r, (struct pawli_hold_event){ .kind = kind, .code = code });
}

static inline void changes(struct run *r, int64_t sent_ns, int64_t lease_ms, bool renew,
                           bool shorter)
{
    feed(r, (struct pawli_hold_event){ .kind = PAWLI_HOLD_CHANGED,
                                       .sent_ns = sent_ns,
                                       .pttl_ms = sent_ns > 0 ? lease_ms : 0,
                                       .lease_ms = lease_ms,
                                       .renew = renew,
                                       .shorter = shorter });
}

/* Wake up until a renewal is asked for. */
static inline void to_renewal(struct run *r)
{
    for (int i = 0; i < 10 && !r->fx.renew; i++)
        wake(r);
    assert_true(r->fx.renew);
}

static inline bool tells(const struct run *r)
{
    return r->fx.tell_at_risk || r->fx.tell_recovered || r->fx.tell_expiring || r->fx.tell_lost;
}

static inline void loses(const struct run *r, int reason, bool release_all)
{
    assert_true(r->fx.tell_lost);
    assert_int_equal(r->fx.result, reason);
    assert_int_equal(r->fx.release_all, release_all);
    assert_int_equal(r->hold.state, PAWLI_HOLD_ENDED);
    assert_true(r->fx.wake_ns == PAWLI_NEVER);
    assert_false(r->fx.renew || r->fx.tell_at_risk || r->fx.tell_recovered);
}

#endif
