/* A wait under test: feeds it events and says in words what must follow. */
#ifndef TESTS_UNIT_WAIT_RUN_H
#define TESTS_UNIT_WAIT_RUN_H

#include "unit.h"

#include <pawl.h>

#include "core/wait.h"
#include "util/clock.h"

#define LEASE_MS 30000
#define LIMIT_MS 5000
#define MIN_MS 50
#define MAX_MS 1000

/* A wait that begins at time 0, and what its last step asked for. */
struct run {
    struct pawli_wait wait;
    struct pawli_wait_effects fx;
    int64_t now_ns;
};

static inline void step(struct run *r, enum pawli_wait_event_kind kind, int code, int64_t pttl_ms)
{
    struct pawli_wait_event ev = {
        .kind = kind, .now_ns = r->now_ns, .code = code, .pttl_ms = pttl_ms
    };

    pawli_wait_step(&r->wait, &ev, &r->fx);
}

static inline void begin_with(struct run *r, bool once, int64_t limit_ns)
{
    struct pawli_backoff backoff;

    pawli_backoff_init(&backoff, MIN_MS, MAX_MS, 1);
    r->now_ns = 0;
    pawli_wait_init(&r->wait, once, limit_ns, LEASE_MS, &backoff);
    step(r, PAWLI_WAIT_START, 0, -1);
    assert_true(r->fx.send_acquire);
}

static inline void begin(struct run *r, bool once)
{
    begin_with(r, once, LIMIT_MS * MS);
}

static inline void reply(struct run *r, int code)
{
    step(r, PAWLI_WAIT_REPLY, code, -1);
}

static inline void cleaned(struct run *r, int code)
{
    step(r, PAWLI_WAIT_CLEANED, code, -1);
}

static inline void up(struct run *r)
{
    step(r, PAWLI_WAIT_UP, 0, -1);
}

static inline void cancel(struct run *r)
{
    step(r, PAWLI_WAIT_CANCEL, PAWL_CANCELED, -1);
}

static inline void tick_at(struct run *r, int64_t now_ns)
{
    r->now_ns = now_ns;
    step(r, PAWLI_WAIT_TICK, 0, -1);
}

/* The next attempt, when it is due. */
static inline void wake(struct run *r)
{
    tick_at(r, r->fx.wake_ns);
}

static inline void answers(const struct run *r, int result)
{
    assert_true(r->fx.complete);
    assert_int_equal(r->fx.result, result);
}

/* Answered, and nothing is left to do. */
static inline void ends(const struct run *r, int result)
{
    answers(r, result);
    assert_true(r->fx.finished);
    assert_false(r->fx.send_cancel);
    assert_true(r->fx.wake_ns == PAWLI_NEVER);
}

static inline void sleeps(const struct run *r)
{
    assert_int_equal(r->wait.state, PAWLI_WAIT_SLEEPING);
    assert_false(r->fx.complete || r->fx.send_acquire || r->fx.send_cancel || r->fx.finished);
}

static inline void tries(const struct run *r)
{
    assert_int_equal(r->wait.state, PAWLI_WAIT_TRYING);
    assert_true(r->fx.send_acquire);
    assert_false(r->fx.complete || r->fx.send_cancel || r->fx.finished);
}

static inline void cancels(const struct run *r, bool tombstone)
{
    assert_int_equal(r->wait.state, PAWLI_WAIT_CLEANING);
    assert_true(r->fx.send_cancel);
    assert_int_equal(r->fx.tombstone, tombstone);
    assert_false(r->fx.finished);
    assert_true(r->fx.wake_ns == PAWLI_NEVER);
}

#endif
