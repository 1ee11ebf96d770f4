/* Tests of the notice that a hold is at risk: the rules of hold.h. */
#include "hold_run.h"

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

static void a_partial_release_does_not_withdraw_at_risk(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    wake(&r);
    assert_true(r.fx.tell_at_risk);
    changes(&r, 0, 4000, true, false);
    assert_false(tells(&r)); /* the store has confirmed nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_risk_is_told_once_when_renewals_fail_near_the_end),
        cmocka_unit_test(at_risk_is_told_when_a_renewal_stays_unanswered),
        cmocka_unit_test(a_success_withdraws_at_risk_and_it_may_be_told_again),
        cmocka_unit_test(a_reentry_withdraws_at_risk_too),
        cmocka_unit_test(a_partial_release_does_not_withdraw_at_risk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
