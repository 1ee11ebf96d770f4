/* Tests of how a hold ends: maximum hold, loss, release. The rules of hold.h, one by one. */
#include "hold_run.h"

/* ---- maximum hold ---- */

/* Renew whenever asked, up to the first thing told. */
static void live(struct run *r)
{
    while (!tells(r)) {
        if (r->fx.renew)
            renewed(r, r->now_ns, LEASE_MS);
        else
            wake(r);
    }
}

static void max_hold_is_told_and_after_the_grace_the_hold_is_lost(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    live(&r);
    assert_true(r.fx.tell_expiring);
    assert_false(r.fx.tell_lost || r.fx.renew || r.fx.release_all);
    assert_int_equal(r.now_ns, (BASE_MS + MAX_HOLD_MS) * MS);
    assert_int_equal(r.hold.state, PAWLI_HOLD_EXPIRING);
    wake(&r);
    loses(&r, PAWL_LOST_MAX_HOLD, true);
    assert_false(r.fx.tell_expiring);
    assert_int_equal(r.now_ns, (BASE_MS + MAX_HOLD_MS + GRACE_MS) * MS);
}

static void nothing_is_renewed_while_expiring(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    live(&r);
    happens(&r, PAWLI_HOLD_UP, 0);
    assert_false(r.fx.renew);
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    assert_false(r.fx.renew);
    changes(&r, r.now_ns, 60000, true, false);
    assert_false(r.fx.renew || tells(&r));
    assert_int_equal(r.fx.wake_ns, (BASE_MS + MAX_HOLD_MS + GRACE_MS) * MS);
}

static void a_renewal_never_passes_the_end_of_the_grace(void **state)
{
    struct run r;
    int64_t end_ns = (BASE_MS + MAX_HOLD_MS + GRACE_MS) * MS;

    (void)state;
    begin(&r);
    while (r.hold.state == PAWLI_HOLD_HELD) {
        assert_true(r.hold.valid_until_ns <= end_ns);
        if (r.fx.renew)
            renewed(&r, r.now_ns, LEASE_MS);
        else
            wake(&r);
    }
    changes(&r, r.now_ns, PAWL_LEASE_MAX_MS, true, false); /* a longer lease, a longer third */
    assert_true(r.hold.valid_until_ns <= end_ns);
    wake(&r);
    assert_int_equal(r.now_ns, end_ns);
    loses(&r, PAWL_LOST_MAX_HOLD, true);
}

static void the_grace_is_cut_by_a_third_of_the_lease_and_by_valid_until(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, 3000, 3000, 3000 * 2, GRACE_MS, true);
    while (!r.fx.tell_lost) {
        if (r.fx.renew)
            renewed(&r, r.now_ns, 3000);
        else
            wake(&r);
    }
    assert_int_equal(r.now_ns, (BASE_MS + 6000 + 1000) * MS);
    loses(&r, PAWL_LOST_MAX_HOLD, true);

    /* The last renewal's lease ends within the grace. */
    begin_with(&r, LEASE_MS, LEASE_MS, LEASE_MS, GRACE_MS, true);
    to_renewal(&r);
    renewed(&r, BASE_MS * MS + 1000 * MS, LEASE_MS);
    to_renewal(&r);
    wake(&r);
    assert_true(r.fx.tell_at_risk);
    wake(&r);
    assert_true(r.fx.tell_expiring);
    wake(&r);
    assert_int_equal(r.now_ns, (BASE_MS + 1000 + LEASE_MS - MARGIN_MS) * MS);
    loses(&r, PAWL_LOST_MAX_HOLD, true);
}

static void without_a_grace_expiring_and_lost_come_in_one_step(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, 0, true);
    live(&r);
    assert_int_equal(r.now_ns, (BASE_MS + MAX_HOLD_MS) * MS);
    assert_true(r.fx.tell_lost);
    assert_true(r.fx.release_all);
    assert_int_equal(r.fx.result, PAWL_LOST_MAX_HOLD);
    assert_true(r.fx.tell_expiring);
}

static void a_tick_too_late_for_both_tells_both(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, LEASE_MS, GRACE_MS, true);
    to_renewal(&r);
    renewed(&r, (BASE_MS + 20000) * MS, LEASE_MS);
    tick_at(&r, (BASE_MS + 2 * LEASE_MS) * MS);
    assert_true(r.fx.tell_expiring);
    loses(&r, PAWL_LOST_MAX_HOLD, true);
}

static void unlimited_has_no_end(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, PAWL_UNLIMITED, GRACE_MS, true);
    for (int i = 0; i < 1000; i++) {
        to_renewal(&r);
        renewed(&r, r.now_ns, LEASE_MS);
        assert_false(tells(&r));
    }
}

/* ---- lost ---- */

static void the_lease_ends_as_expired_if_nothing_failed(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    tick_at(&r, r.hold.valid_until_ns - 1);
    assert_false(tells(&r));
    wake(&r);
    loses(&r, PAWL_LOST_EXPIRED, true);
}

static void the_lease_ends_as_unreachable_if_a_renewal_is_unanswered(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    wake(&r);
    assert_true(r.fx.tell_at_risk);
    wake(&r);
    assert_int_equal(r.now_ns, (BASE_MS + LEASE_MS - MARGIN_MS) * MS);
    loses(&r, PAWL_LOST_UNREACHABLE, true);
}

static void a_starved_engine_finds_the_hold_expired(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    tick_at(&r, (BASE_MS + 10 * LEASE_MS) * MS);
    loses(&r, PAWL_LOST_EXPIRED, true);
    assert_false(r.fx.tell_expiring);
}

static void a_renewal_answered_after_a_pause_saves_the_hold(void **state)
{
    struct run r;
    int64_t sent_ns;

    (void)state;
    begin(&r);
    to_renewal(&r);
    sent_ns = r.now_ns;
    r.now_ns = (BASE_MS + LEASE_MS) * MS; /* past the old end; nobody has been told */
    renewed(&r, sent_ns, LEASE_MS);
    assert_false(r.fx.tell_lost);
    assert_int_equal(r.hold.state, PAWLI_HOLD_HELD);
}

static void a_renewal_answered_too_late_does_not(void **state)
{
    struct run r;
    int64_t sent_ns;

    (void)state;
    begin(&r);
    to_renewal(&r);
    sent_ns = r.now_ns;
    r.now_ns = sent_ns + LEASE_MS * MS;
    renewed(&r, sent_ns, LEASE_MS);
    loses(&r, PAWL_LOST_EXPIRED, true);
}

static void refused_is_lost_with_its_code(void **state)
{
    static const int codes[] = { PAWL_LOST_TAKEN, PAWL_LOST_REVOKED };
    struct run r;

    (void)state;
    for (size_t i = 0; i < 2 * N_OF(codes); i++) {
        begin(&r);
        if (i % 2 == 0)
            to_renewal(&r);
        else
            live(&r); /* expiring */
        happens(&r, PAWLI_HOLD_REFUSED, codes[i / 2]);
        loses(&r, codes[i / 2], false); /* the store knows nothing of it */
    }
}

static void a_loss_noticed_elsewhere_is_told_like_any_other(void **state)
{
    static const int codes[] = { PAWL_LOST_EXPIRED, PAWL_LOST_UNREACHABLE, PAWL_LOST_MAX_HOLD };
    struct run r;

    (void)state;
    for (size_t i = 0; i < N_OF(codes); i++) {
        begin(&r);
        happens(&r, PAWLI_HOLD_LOST, codes[i]);
        loses(&r, codes[i], true);
        assert_int_equal(r.fx.tell_expiring, codes[i] == PAWL_LOST_MAX_HOLD);
    }
}

static void nothing_comes_after_the_end(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    happens(&r, PAWLI_HOLD_REFUSED, PAWL_LOST_TAKEN);
    for (int kind = PAWLI_HOLD_TICK; kind <= PAWLI_HOLD_LOST; kind++) {
        r.now_ns += 20000 * MS;
        feed(&r, (struct pawli_hold_event){ .kind = (enum pawli_hold_event_kind)kind,
                                            .sent_ns = r.now_ns,
                                            .pttl_ms = LEASE_MS,
                                            .lease_ms = LEASE_MS,
                                            .code = PAWL_LOST_TAKEN,
                                            .renew = true });
        assert_false(tells(&r) || r.fx.renew || r.fx.release_all);
        assert_true(r.fx.wake_ns == PAWLI_NEVER);
        assert_int_equal(r.hold.state, PAWLI_HOLD_ENDED);
    }
}

/* ---- release ---- */

static void while_releasing_nothing_is_told_or_renewed(void **state)
{
    struct run r;

    (void)state;
    for (int expiring = 0; expiring < 2; expiring++) {
        begin(&r);
        if (expiring)
            live(&r);
        else
            to_renewal(&r);
        happens(&r, PAWLI_HOLD_RELEASE, 0);
        assert_int_equal(r.hold.state, PAWLI_HOLD_RELEASING);
        assert_true(r.fx.wake_ns == PAWLI_NEVER);
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT); /* no loss: the release has begun */
        assert_false(tells(&r) || r.fx.renew);
        happens(&r, PAWLI_HOLD_REFUSED, PAWL_LOST_TAKEN);
        assert_false(tells(&r) || r.fx.renew);
        happens(&r, PAWLI_HOLD_UP, 0);
        assert_false(tells(&r) || r.fx.renew);
        tick_at(&r, r.hold.valid_until_ns);
        assert_false(tells(&r) || r.fx.renew || r.fx.release_all);
        assert_int_equal(r.hold.state, PAWLI_HOLD_ENDED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_hold_is_told_and_after_the_grace_the_hold_is_lost),
        cmocka_unit_test(nothing_is_renewed_while_expiring),
        cmocka_unit_test(a_renewal_never_passes_the_end_of_the_grace),
        cmocka_unit_test(the_grace_is_cut_by_a_third_of_the_lease_and_by_valid_until),
        cmocka_unit_test(without_a_grace_expiring_and_lost_come_in_one_step),
        cmocka_unit_test(a_tick_too_late_for_both_tells_both),
        cmocka_unit_test(unlimited_has_no_end),
        cmocka_unit_test(the_lease_ends_as_expired_if_nothing_failed),
        cmocka_unit_test(the_lease_ends_as_unreachable_if_a_renewal_is_unanswered),
        cmocka_unit_test(a_starved_engine_finds_the_hold_expired),
        cmocka_unit_test(a_renewal_answered_after_a_pause_saves_the_hold),
        cmocka_unit_test(a_renewal_answered_too_late_does_not),
        cmocka_unit_test(refused_is_lost_with_its_code),
        cmocka_unit_test(a_loss_noticed_elsewhere_is_told_like_any_other),
        cmocka_unit_test(nothing_comes_after_the_end),
        cmocka_unit_test(while_releasing_nothing_is_told_or_renewed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
