/* Tests of the watchdog's decisions: the rules of hold.h, one by one. The notice of a risk, changes
 * and the end have files of their own; test_hold_random.c has what holds of every sequence. */
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

static void a_success_forgets_what_failed_before(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    for (int i = 0; i < 12; i++) {
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
        to_renewal(&r);
    }
    renewed(&r, r.now_ns, LEASE_MS);
    happens(&r, PAWLI_HOLD_UP, 0);
    assert_false(r.fx.renew);
    to_renewal(&r);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
    assert_true(r.fx.wake_ns - r.now_ns <= 50 * MS); /* and the delays begin again */
    to_renewal(&r);
    renewed(&r, r.now_ns, LEASE_MS);
    tick_at(&r, r.hold.valid_until_ns);
    loses(&r, PAWL_LOST_EXPIRED, true); /* nothing failed since */
}

static void what_came_while_one_was_in_flight_counts_for_that_one_only(void **state)
{
    struct run r;

    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        begin(&r);
        to_renewal(&r);
        happens(&r, PAWLI_HOLD_UP, 0);
        if (fails) {
            happens(&r, PAWLI_HOLD_DOUBT, 0);
            happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
            assert_true(r.fx.renew);
        } else {
            happens(&r, PAWLI_HOLD_DOUBT, 0);
            renewed(&r, r.now_ns, LEASE_MS);
            assert_true(r.fx.renew);
        }
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
        assert_false(r.fx.renew);
        to_renewal(&r);
        renewed(&r, r.now_ns, LEASE_MS);
        assert_false(r.fx.renew);
    }
}

static void up_begins_with_short_delays_again(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    to_renewal(&r);
    for (int i = 0; i < 12; i++) {
        happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
        to_renewal(&r);
    }
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
    happens(&r, PAWLI_HOLD_UP, 0);
    assert_true(r.fx.renew);
    happens(&r, PAWLI_HOLD_FAILED, PAWL_ECONNECT);
    assert_true(r.fx.wake_ns - r.now_ns <= 50 * MS);
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
        cmocka_unit_test(a_success_forgets_what_failed_before),
        cmocka_unit_test(what_came_while_one_was_in_flight_counts_for_that_one_only),
        cmocka_unit_test(up_begins_with_short_delays_again),
        cmocka_unit_test(a_renewal_never_moves_valid_until_back),
        cmocka_unit_test(after_a_frozen_machine_a_renewal_says_exactly),
        cmocka_unit_test(states_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
