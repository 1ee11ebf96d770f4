/* Tests of the watchdog's decisions, renewals and the notice of a risk: the rules of hold.h, one
 * by one. test_hold_end.c has how a hold ends, test_hold_random.c what holds of every sequence. */
#include "hold_run.h"

static void a_grant_is_valid_from_its_sending(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    assert_int_equal(r.hold.valid_until_ns, (BASE_MS + LEASE_MS - MARGIN_MS) * MS);
    begin_with(&r, 2000, LEASE_MS, MAX_HOLD_MS, GRACE_MS, true);
    assert_int_equal(r.hold.valid_until_ns, (BASE_MS + 2000 - MARGIN_MS) * MS);
}

static void renews_every_third_of_the_lease_with_jitter(void **state)
{
    struct run r;
    int64_t sent_ns = BASE_MS * MS;
    bool differs = false;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, PAWL_UNLIMITED, GRACE_MS, true);
    for (int i = 0; i < 50; i++) {
        int64_t after_ns = r.fx.wake_ns - sent_ns;

        assert_in_range(after_ns, LEASE_MS * MS / 3 * 9 / 10, LEASE_MS * MS / 3);
        differs |= after_ns != LEASE_MS * MS / 3;
        assert_false(r.fx.renew);
        wake(&r);
        assert_true(r.fx.renew);
        sent_ns = r.now_ns;
        r.now_ns += 3 * MS;
        renewed(&r, sent_ns, LEASE_MS);
        assert_false(tells(&r));
        assert_int_equal(r.hold.valid_until_ns, sent_ns + (LEASE_MS - MARGIN_MS) * MS);
    }
    assert_true(differs);
}

static void a_grant_with_little_left_is_renewed_soon(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, 2000, LEASE_MS, MAX_HOLD_MS, GRACE_MS, true);
    assert_true(r.fx.renew); /* two thirds of the lease are gone already */
    renewed(&r, r.now_ns, LEASE_MS);
    assert_false(r.fx.renew);
    begin_with(&r, 22000, LEASE_MS, MAX_HOLD_MS, GRACE_MS, true);
    assert_false(r.fx.renew);
    assert_int_equal(r.fx.wake_ns, (BASE_MS + 2000) * MS);
}

static void a_success_that_the_latest_end_cut_is_not_repeated_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    renewed(&r, r.now_ns, 4000);
    assert_false(r.fx.renew);
    assert_true(r.hold.renew_at_ns - r.now_ns >= LEASE_MS * MS / 3 * 9 / 10);
}

static void without_renewal_nothing_is_asked(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    happens(&r, PAWLI_HOLD_UP, 0);
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    assert_false(r.fx.renew);
    assert_int_equal(r.fx.wake_ns, r.hold.valid_until_ns);
    tick_at(&r, r.hold.valid_until_ns - 1);
    assert_false(r.fx.renew || tells(&r)); /* nothing fails, so nothing is at risk */
}

static void never_two_in_flight(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    for (int i = 1; i < 10; i++) {
        tick_at(&r, r.now_ns + 100 * MS);
        assert_false(r.fx.renew);
        happens(&r, PAWLI_HOLD_UP, 0);
        assert_false(r.fx.renew);
        happens(&r, PAWLI_HOLD_DOUBT, 0);
        assert_false(r.fx.renew);
    }
}

static void a_failed_one_is_retried_with_backoff_until_valid_until(void **state)
{
    struct run r;
    int n = 0;

    (void)state;
    begin(&r);
    to_renewal(&r);
    while (!r.fx.tell_lost) {
        if (r.fx.renew) {
            happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
            assert_false(r.fx.renew || r.fx.tell_lost);
            assert_in_range(r.hold.renew_at_ns - r.now_ns, 25 * MS, 1000 * MS);
            n++;
        }
        wake(&r);
    }
    assert_true(n >= 20);
    assert_int_equal(r.now_ns, (BASE_MS + LEASE_MS - MARGIN_MS) * MS);
    loses(&r, PAWL_LOST_UNREACHABLE, true);
}

static void retries_are_at_most_a_sixth_of_the_lease_apart(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, 300, 300, MAX_HOLD_MS, 0, true);
    to_renewal(&r);
    for (int i = 0; i < 3; i++) {
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ELOADING);
        assert_true(r.fx.wake_ns - r.now_ns <= 300 * MS / 6);
        to_renewal(&r);
    }
}

static void one_failed_renewal_is_no_loss(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ESCRIPTBUSY);
    assert_false(tells(&r));
    to_renewal(&r);
    renewed(&r, r.now_ns, LEASE_MS);
    assert_false(tells(&r));
    assert_int_equal(r.hold.state, PAWLI_HOLD_HELD);
}

static void up_retries_a_failed_one_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    happens(&r, PAWLI_HOLD_UP, 0);
    assert_false(r.fx.renew); /* nothing failed */
    to_renewal(&r);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
    happens(&r, PAWLI_HOLD_UP, 0);
    assert_true(r.fx.renew);
    happens(&r, PAWLI_HOLD_UP, 0); /* while one is in flight */
    assert_false(r.fx.renew);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_EUNKNOWN);
    assert_true(r.fx.renew);
    happens(&r, PAWLI_HOLD_UP, 0);
    renewed(&r, r.now_ns, LEASE_MS);
    assert_false(r.fx.renew); /* it succeeded: no need */
}

static void doubt_renews_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    assert_true(r.fx.renew);
    happens(&r, PAWLI_HOLD_DOUBT, 0); /* while one is in flight, which was sent before */
    assert_false(r.fx.renew);
    renewed(&r, r.now_ns, LEASE_MS);
    assert_true(r.fx.renew);
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
    assert_true(r.fx.renew);
    renewed(&r, r.now_ns, LEASE_MS);
    assert_false(r.fx.renew);
}

static void a_renewal_never_moves_valid_until_back(void **state)
{
    struct run r;
    int64_t before_ns;

    (void)state;
    begin(&r);
    to_renewal(&r);
    before_ns = r.hold.valid_until_ns;
    renewed(&r, r.now_ns, 10); /* nearly nothing left, says the store */
    assert_int_equal(r.hold.valid_until_ns, before_ns);
    to_renewal(&r);
    renewed(&r, BASE_MS * MS - 1, LEASE_MS); /* sent long ago */
    assert_int_equal(r.hold.valid_until_ns, before_ns);
}

static void after_a_frozen_machine_a_renewal_says_exactly(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    feed(&r,
         (struct pawli_hold_event){
             .kind = PAWLI_HOLD_RENEWED, .sent_ns = r.now_ns, .pttl_ms = 7000, .exact = true });
    assert_int_equal(r.hold.valid_until_ns, r.now_ns + (7000 - MARGIN_MS) * MS);
}

/* ---- at risk ---- */

static void at_risk_is_told_once_when_renewals_fail_near_the_end(void **state)
{
    struct run r;
    int n = 0;

    (void)state;
    begin(&r);
    to_renewal(&r);
    while (!r.fx.tell_lost) {
        if (r.fx.tell_at_risk) {
            n++;
            assert_int_equal(r.fx.result, PAWL_ECONNECT);
            assert_int_equal(r.now_ns, (BASE_MS + LEASE_MS - MARGIN_MS - GRACE_MS) * MS);
        }
        if (r.fx.renew)
            happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
        else
            wake(&r);
    }
    assert_int_equal(n, 1);
}

static void at_risk_is_told_when_a_renewal_stays_unanswered(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    wake(&r);
    assert_true(r.fx.tell_at_risk);
    assert_int_equal(r.fx.result, PAWL_EUNKNOWN);
    assert_int_equal(r.now_ns, (BASE_MS + LEASE_MS - MARGIN_MS - GRACE_MS) * MS);

    /* Asked for late, it gets a sixth of the lease first. */
    begin(&r);
    tick_at(&r, (BASE_MS + LEASE_MS - 5500) * MS);
    assert_true(r.fx.renew);
    assert_int_equal(r.fx.wake_ns, r.now_ns + LEASE_MS * MS / 6);
    tick_at(&r, r.fx.wake_ns - 1);
    assert_false(tells(&r));
    tick_at(&r, r.now_ns + 1);
    assert_true(r.fx.tell_at_risk);
}

static void a_success_withdraws_at_risk_and_it_may_be_told_again(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    for (int i = 0; i < 3; i++) {
        to_renewal(&r);
        wake(&r);
        assert_true(r.fx.tell_at_risk);
        renewed(&r, r.now_ns, LEASE_MS);
        assert_true(r.fx.tell_recovered);
        assert_false(r.fx.tell_at_risk || r.fx.tell_lost);
    }
}

static void a_reentry_withdraws_at_risk_too(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    wake(&r);
    assert_true(r.fx.tell_at_risk);
    changes(&r, r.now_ns, LEASE_MS, true, false);
    assert_true(r.fx.tell_recovered);
    assert_false(r.fx.tell_at_risk);
}

/* ---- claims out of the queue ---- */

static void a_claim_is_confirmed_after_a_short_moment_also_without_renewal(void **state)
{
    struct run r;

    (void)state;
    for (int renew = 0; renew < 2; renew++) {
        begin_with(&r, 1500, LEASE_MS, MAX_HOLD_MS, GRACE_MS, renew != 0);
        r.hold.renewing = false;
        pawli_hold_claimed(&r.hold, r.now_ns);
        changes(&r, 0, LEASE_MS, renew != 0, false); /* the engine sums up its handles */
        assert_false(r.fx.renew);
        assert_int_equal(r.fx.wake_ns, r.now_ns + PAWLI_CONFIRM_NS);
        wake(&r);
        assert_true(r.fx.renew);
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
        happens(&r, PAWLI_HOLD_UP, 0);
        assert_true(r.fx.renew);
        renewed(&r, r.now_ns, LEASE_MS);
        assert_false(r.fx.renew);
        assert_int_equal(r.hold.renew_at_ns == PAWLI_NEVER, !renew);
    }
}

static void a_claim_that_is_nearly_over_is_confirmed_in_half_of_what_is_left(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, 1500, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    r.now_ns = r.hold.valid_until_ns - 4 * MS;
    pawli_hold_claimed(&r.hold, r.now_ns);
    tick_at(&r, r.now_ns);
    assert_int_equal(r.fx.wake_ns, r.now_ns + 2 * MS);
}

static void states_have_names(void **state)
{
    (void)state;
    assert_string_equal(pawli_hold_state_name(PAWLI_HOLD_HELD), "held");
    assert_string_equal(pawli_hold_state_name(PAWLI_HOLD_ENDED), "ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_is_valid_from_its_sending),
        cmocka_unit_test(renews_every_third_of_the_lease_with_jitter),
        cmocka_unit_test(a_grant_with_little_left_is_renewed_soon),
        cmocka_unit_test(a_success_that_the_latest_end_cut_is_not_repeated_at_once),
        cmocka_unit_test(without_renewal_nothing_is_asked),
        cmocka_unit_test(never_two_in_flight),
        cmocka_unit_test(a_failed_one_is_retried_with_backoff_until_valid_until),
        cmocka_unit_test(retries_are_at_most_a_sixth_of_the_lease_apart),
        cmocka_unit_test(one_failed_renewal_is_no_loss),
        cmocka_unit_test(up_retries_a_failed_one_at_once),
        cmocka_unit_test(doubt_renews_at_once),
        cmocka_unit_test(a_renewal_never_moves_valid_until_back),
        cmocka_unit_test(after_a_frozen_machine_a_renewal_says_exactly),
        cmocka_unit_test(at_risk_is_told_once_when_renewals_fail_near_the_end),
        cmocka_unit_test(at_risk_is_told_when_a_renewal_stays_unanswered),
        cmocka_unit_test(a_success_withdraws_at_risk_and_it_may_be_told_again),
        cmocka_unit_test(a_reentry_withdraws_at_risk_too),
        cmocka_unit_test(a_claim_is_confirmed_after_a_short_moment_also_without_renewal),
        cmocka_unit_test(a_claim_that_is_nearly_over_is_confirmed_in_half_of_what_is_left),
        cmocka_unit_test(states_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
