/* What holds of every hold, whatever happens to it: random sequences of events against the
 * decisions in core/hold.h. */
#include "hold_run.h"

#define N_RUNS 10000
#define N_EVENTS 400

struct world {
    struct run run;
    uint64_t seed;
    bool in_flight;
    int64_t sent_ns;
    int64_t lease_ms;
    bool at_risk;
    bool expiring;
    bool releasing;
    bool lost;
    int n_lost;
};

static uint64_t pick(struct world *w, uint64_t bound)
{
    return pawli_jitter(&w->seed, bound);
}

static void check_told(struct world *w)
{
    const struct pawli_hold_effects *fx = &w->run.fx;

    if (w->lost || w->releasing)
        assert_false(tells(&w->run) || fx->renew || fx->release_all);
    assert_false(fx->tell_at_risk && (w->at_risk || w->expiring));
    assert_false(fx->tell_recovered && (!w->at_risk || w->expiring));
    assert_false(fx->tell_at_risk && fx->tell_recovered);
    assert_false(fx->tell_expiring && w->expiring);
    assert_false(fx->release_all && !fx->tell_lost);
    assert_int_equal(fx->tell_lost, fx->tell_lost && pawl_is_lost(fx->result));
    if (fx->tell_at_risk)
        assert_true(fx->result < 0);
    w->at_risk = (w->at_risk || fx->tell_at_risk) && !fx->tell_recovered;
    w->expiring |= fx->tell_expiring;
    if (fx->tell_lost) {
        w->lost = true;
        w->n_lost++;
        if (fx->result == PAWL_LOST_MAX_HOLD)
            assert_true(w->expiring);
    }
}

static void check(struct world *w, int64_t before_ns, bool may_shrink)
{
    const struct run *r = &w->run;
    const struct pawli_hold *h = &r->hold;

    check_told(w);
    assert_false(r->fx.renew && (w->in_flight || w->expiring || !h->renew_on));
    if (r->fx.renew) {
        w->in_flight = true;
        w->sent_ns = r->now_ns;
    }
    assert_true(may_shrink || h->valid_until_ns >= before_ns);
    if (h->max_end_ns != PAWLI_NEVER)
        assert_true(h->valid_until_ns <=
                    h->max_end_ns + pawli_grace_ns(GRACE_MS, PAWL_LEASE_MAX_MS));
    assert_int_equal(h->state == PAWLI_HOLD_ENDED && !w->releasing, w->lost);
    if (w->lost || w->releasing) {
        assert_true(r->fx.wake_ns == PAWLI_NEVER);
        return;
    }
    /* Whoever is not told lost may believe, and nobody wakes too late or for nothing. */
    assert_true(r->now_ns < h->valid_until_ns);
    assert_true(r->fx.wake_ns > r->now_ns && r->fx.wake_ns <= h->valid_until_ns);
    if (!w->expiring) {
        assert_true(r->now_ns < h->max_end_ns && r->fx.wake_ns <= h->max_end_ns);
        assert_true(w->in_flight || r->fx.wake_ns <= h->renew_at_ns);
    }
}

static void feed_checked(struct world *w, struct pawli_hold_event ev)
{
    int64_t before_ns = w->run.hold.valid_until_ns;

    feed(&w->run, ev);
    check(w, before_ns, ev.shorter || ev.exact || ev.kind == PAWLI_HOLD_SHORTENED);
}

static void answer(struct world *w)
{
    static const int codes[] = { PAWL_ECONNECT, PAWL_EUNKNOWN, PAWL_ESCRIPTBUSY, PAWL_ENOPERM };
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_RENEWED, .sent_ns = w->sent_ns };

    w->in_flight = false;
    ev.pttl_ms = pick(w, 10) == 0 ? (int64_t)pick(w, 3000) - 1 : w->lease_ms;
    if (pick(w, 3) == 0) {
        ev.kind = PAWLI_HOLD_FAILED;
        ev.code = codes[pick(w, N_OF(codes))];
    } else if (pick(w, 100) == 0) {
        ev.kind = PAWLI_HOLD_REFUSED;
        ev.code = pick(w, 2) == 0 ? PAWL_LOST_TAKEN : PAWL_LOST_REVOKED;
    } else {
        ev.exact = pick(w, 30) == 0;
    }
    feed_checked(w, ev);
}

static void shorten(struct world *w, int64_t lease_ms)
{
    int64_t until_ns = pawli_valid_until_ns(w->run.now_ns, lease_ms, lease_ms);

    feed_checked(w,
                 (struct pawli_hold_event){ .kind = PAWLI_HOLD_SHORTENED, .lease_ms = lease_ms });
    assert_true(w->lost || w->releasing || w->run.hold.valid_until_ns <= until_ns);
}

static void change(struct world *w)
{
    int64_t lease_ms = 100 + (int64_t)pick(w, 20000);
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_CHANGED, .renew = pick(w, 4) > 0 };

    switch (pick(w, 3)) {
    case 0: /* a re-entry */
        ev.lease_ms = lease_ms > w->lease_ms ? lease_ms : w->lease_ms;
        ev.sent_ns = w->run.now_ns;
        ev.pttl_ms = ev.lease_ms;
        break;
    case 1: /* a partial release */
        ev.lease_ms = lease_ms < w->lease_ms ? lease_ms : w->lease_ms;
        break;
    default: /* an extend */
        ev.lease_ms = lease_ms;
        ev.shorter = lease_ms < w->lease_ms;
        if (ev.shorter) {
            shorten(w, lease_ms);
            if (pick(w, 3) == 0)
                return; /* and it is never answered */
        }
        ev.sent_ns = w->run.now_ns;
        ev.pttl_ms = ev.lease_ms;
        break;
    }
    w->lease_ms = ev.lease_ms;
    feed_checked(w, ev);
}

static void rare(struct world *w)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_LOST, .code = PAWL_LOST_EXPIRED };

    switch (pick(w, 40)) {
    case 0:
        feed_checked(w, ev);
        break;
    case 1:
        if (w->lost)
            break;
        w->releasing = true;
        ev.kind = PAWLI_HOLD_RELEASE;
        feed_checked(w, ev);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        change(w);
        break;
    default:
        ev.kind = pick(w, 2) == 0 ? PAWLI_HOLD_UP : PAWLI_HOLD_DOUBT;
        feed_checked(w, ev);
        break;
    }
}

/* On to the next wake-up or less; seldom far past it, as when the engine was starved. */
static void advance(struct world *w)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_TICK };
    int64_t wake_ns = w->run.fx.wake_ns;

    if (wake_ns == PAWLI_NEVER || pick(w, 200) == 0)
        w->run.now_ns += (int64_t)pick(w, 20000) * MS;
    else if (pick(w, 2) == 0)
        w->run.now_ns = wake_ns;
    else
        w->run.now_ns += (int64_t)pick(w, (uint64_t)(wake_ns - w->run.now_ns));
    feed_checked(w, ev);
}

static void run(uint64_t seed)
{
    struct world w = { .seed = seed };
    struct pawli_backoff backoff;
    int64_t max_hold_ms;

    w.lease_ms = 100 + (int64_t)pick(&w, 20000);
    max_hold_ms = pick(&w, 3) == 0 ? PAWL_UNLIMITED : w.lease_ms + (int64_t)pick(&w, 100000);
    pawli_backoff_init(&backoff, 50, 1000, seed);
    w.run.now_ns = BASE_MS * MS;
    pawli_hold_init(&w.run.hold, w.run.now_ns, w.lease_ms, w.lease_ms, max_hold_ms,
                    pick(&w, 3) == 0 ? 0 : GRACE_MS, pick(&w, 4) > 0, &backoff);
    feed_checked(&w, (struct pawli_hold_event){ .kind = PAWLI_HOLD_TICK });
    for (int i = 0; i < N_EVENTS; i++) {
        if (w.in_flight && pick(&w, 3) > 0)
            answer(&w);
        else if (pick(&w, 20) == 0)
            rare(&w);
        else
            advance(&w);
    }
    assert_true(w.n_lost <= 1);
    if (!w.releasing && w.run.hold.max_end_ns < w.run.now_ns - 60000 * MS)
        assert_int_equal(w.n_lost, 1);
}

static void every_hold_ends_once_and_is_believed_no_longer_than_its_lease(void **state)
{
    uint64_t seed = test_seed("every_hold_ends_once");

    (void)state;
    for (int i = 0; i < N_RUNS; i++)
        run(pawli_jitter(&seed, UINT64_MAX - 1) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_hold_ends_once_and_is_believed_no_longer_than_its_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
