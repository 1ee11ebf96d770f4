/* What holds of every acquire, whatever happens to it: random sequences of events against the
 * decisions in core/wait.h, with a store that knows what was really granted. */
#include "unit.h"

#include <pawl.h>

#include "core/wait.h"
#include "util/clock.h"

#define N_RUNS 20000

struct world {
    struct pawli_wait wait;
    struct pawli_wait_effects fx;
    uint64_t seed;
    int64_t now_ns;
    int64_t limit_ns;
    int64_t lease_ns;
    bool acquire_in_flight;
    bool cancel_in_flight;
    bool completed;
    bool finished;
    bool in_doubt; /* an attempt ended as unknown */
    bool told_busy_last; /* the last answer was BUSY */
    int result;
    int64_t granted_at_ns; /* at the store, for our id; -1: no */
    int64_t last_sent_ns;
    int n_completions;
    int n_cancels;
};

static uint64_t pick(struct world *w, uint64_t bound)
{
    return pawli_jitter(&w->seed, bound);
}

static void check(struct world *w, enum pawli_wait_event_kind kind)
{
    const struct pawli_wait_effects *fx = &w->fx;

    assert_false(fx->send_acquire && (w->acquire_in_flight || w->cancel_in_flight));
    assert_false(fx->send_cancel && (w->acquire_in_flight || w->cancel_in_flight));
    assert_false(fx->send_acquire && (fx->send_cancel || w->completed || fx->complete));
    assert_false(w->finished && (fx->complete || fx->finished));
    if (fx->complete) {
        w->n_completions++;
        w->completed = true;
        w->result = fx->result;
        /* A failure of a class that says "certainly not executed" is never a guess. */
        if (w->in_doubt && kind == PAWLI_WAIT_TICK)
            assert_true(fx->result == PAWL_TIMEOUT || fx->result == PAWL_EUNKNOWN);
        if (fx->result == PAWL_TIMEOUT)
            assert_true(w->told_busy_last);
    }
    assert_int_equal(w->n_completions, w->completed ? 1 : 0);
    if (fx->send_acquire) {
        w->acquire_in_flight = true;
        w->last_sent_ns = w->now_ns;
    }
    if (fx->send_cancel) {
        assert_true(w->completed && w->result != 0);
        assert_int_equal(fx->tombstone, w->in_doubt);
        w->cancel_in_flight = true;
        w->n_cancels++;
    }
    /* Whatever is still to come finds somebody. */
    if (fx->finished) {
        w->finished = true;
        assert_true(w->completed && !w->acquire_in_flight && !w->cancel_in_flight);
        assert_true(fx->wake_ns == PAWLI_NEVER);
    }
    /* The caller has its answer by the limit, and nobody wakes for nothing. */
    if (!w->completed) {
        assert_true(fx->wake_ns <= w->limit_ns);
        assert_true(kind == PAWLI_WAIT_START || w->now_ns < w->limit_ns);
    }
    assert_true(fx->wake_ns > w->now_ns || kind == PAWLI_WAIT_START);
}

static void step(struct world *w, enum pawli_wait_event_kind kind, int code, int64_t pttl_ms)
{
    struct pawli_wait_event ev = {
        .kind = kind, .now_ns = w->now_ns, .code = code, .pttl_ms = pttl_ms
    };

    pawli_wait_step(&w->wait, &ev, &w->fx);
    check(w, kind);
}

static void reply(struct world *w)
{
    static const int codes[] = { PAWL_BUSY,     PAWL_BUSY,     PAWL_BUSY,    PAWL_ELATE,
                                 PAWL_ECONNECT, PAWL_ELOADING, PAWL_ENOPERM, PAWL_EWRONGTYPE };
    int code = codes[pick(w, N_OF(codes))];

    if (w->granted_at_ns >= 0 && code != PAWL_ECONNECT)
        code = 0; /* its own id is recognised */
    if (pick(w, 4) == 0) {
        code = PAWL_EUNKNOWN; /* and it may have been executed */
        w->in_doubt = true;
        if (pick(w, 2) == 0)
            w->granted_at_ns = w->now_ns;
    } else if (pick(w, 8) == 0) {
        code = 0;
        w->granted_at_ns = w->now_ns;
    }
    w->acquire_in_flight = false;
    w->told_busy_last = code == PAWL_BUSY;
    step(w, PAWLI_WAIT_REPLY, code, (int64_t)pick(w, 2000) - 1);
}

static void cleaned(struct world *w)
{
    static const int codes[] = { PAWL_ECONNECT, PAWL_EUNKNOWN, 0, PAWL_NOT_OWNER };
    int code = codes[pick(w, N_OF(codes))];

    if (code >= 0 || pick(w, 2) == 0)
        w->granted_at_ns = -1; /* executed, whatever the answer said */
    w->cancel_in_flight = false;
    step(w, PAWLI_WAIT_CLEANED, code, -1);
}

static void advance(struct world *w)
{
    int64_t step_ns = (int64_t)pick(w, 300) * MS;

    /* A wake-up that is due is never much late here; the engine's timers see to that. */
    if (w->fx.wake_ns != PAWLI_NEVER && (pick(w, 2) == 0 || w->now_ns + step_ns > w->fx.wake_ns)) {
        if (w->fx.wake_ns > w->now_ns)
            w->now_ns = w->fx.wake_ns;
        step(w, PAWLI_WAIT_TICK, 0, -1);
    } else {
        w->now_ns += step_ns;
    }
}

static void run(uint64_t seed)
{
    struct world w = { .seed = seed, .granted_at_ns = -1 };
    struct pawli_backoff backoff;
    bool once = pick(&w, 3) == 0;

    w.now_ns = (int64_t)pick(&w, 1000000) * MS;
    w.limit_ns = !once && pick(&w, 4) == 0 ? PAWLI_NEVER : w.now_ns + (int64_t)pick(&w, 6000) * MS;
    w.lease_ns = (int64_t)(100 + pick(&w, 5000)) * MS;
    pawli_backoff_init(&backoff, 50, 1000, seed);
    pawli_wait_init(&w.wait, once, w.limit_ns, w.lease_ns / MS, &backoff);
    step(&w, PAWLI_WAIT_START, 0, -1);
    for (int i = 0; i < 10000 && !w.finished; i++) {
        if (w.fx.wake_ns <= w.now_ns)
            step(&w, PAWLI_WAIT_TICK, 0, -1);
        else if (pick(&w, 40) == 0)
            step(&w, PAWLI_WAIT_UP, 0, -1);
        else if (pick(&w, 60) == 0)
            step(&w, PAWLI_WAIT_CANCEL, PAWL_CANCELED, -1);
        else if (w.acquire_in_flight && pick(&w, 2) == 0)
            reply(&w);
        else if (w.cancel_in_flight && pick(&w, 2) == 0)
            cleaned(&w);
        else
            advance(&w);
    }
    assert_true(w.finished);
    assert_int_equal(w.n_completions, 1);
    /* No grant for nobody: given back, or over with its lease. */
    if (w.result != 0 && w.granted_at_ns >= 0)
        assert_true(w.n_cancels > 0 && w.now_ns >= w.last_sent_ns + w.lease_ns);
    step(&w, PAWLI_WAIT_TICK, 0, -1);
}

static void every_wait_is_answered_once_and_leaves_nothing(void **state)
{
    uint64_t seed = test_seed("every_wait_is_answered_once_and_leaves_nothing");

    (void)state;
    for (int i = 0; i < N_RUNS; i++)
        run(pawli_jitter(&seed, UINT64_MAX - 1) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wait_is_answered_once_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
