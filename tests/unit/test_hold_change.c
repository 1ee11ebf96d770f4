/* Tests of a hold that changes: re-entry, partial release, extend, the confirming of a claim. The
 * rules of hold.h. */
#include "hold_run.h"

static void a_reentry_with_a_longer_lease_takes_effect(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, 3000, 3000, PAWL_UNLIMITED, GRACE_MS, true);
    r.now_ns += 500 * MS;
    changes(&r, r.now_ns, LEASE_MS, true, false);
    assert_int_equal(r.hold.valid_until_ns, r.now_ns + (LEASE_MS - MARGIN_MS) * MS);
    assert_in_range(r.fx.wake_ns - r.now_ns, LEASE_MS * MS / 3 * 9 / 10, LEASE_MS * MS / 3);
}

static void a_reentry_never_shortens(void **state)
{
    struct run r;
    int64_t before_ns;

    (void)state;
    begin(&r);
    before_ns = r.hold.valid_until_ns;
    r.now_ns += 10 * MS;
    /* The engine sums up: largest lease, any wish to renew; the pttl may be of the shorter one. */
    feed(&r, (struct pawli_hold_event){ .kind = PAWLI_HOLD_CHANGED,
                                        .sent_ns = r.now_ns,
                                        .pttl_ms = 3000,
                                        .lease_ms = LEASE_MS,
                                        .renew = true });
    assert_int_equal(r.hold.valid_until_ns, before_ns);
    assert_false(r.fx.tell_lost);
}

static void renewal_goes_on_and_off_with_the_handles(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    changes(&r, r.now_ns, LEASE_MS, true, false); /* an inner hold wants it */
    assert_true(r.hold.renew_at_ns < PAWLI_NEVER);
    to_renewal(&r);
    renewed(&r, r.now_ns, LEASE_MS);
    changes(&r, 0, LEASE_MS, false, false); /* and is released */
    assert_true(r.hold.renew_at_ns == PAWLI_NEVER);
    assert_int_equal(r.fx.wake_ns, r.hold.valid_until_ns);
    changes(&r, 0, LEASE_MS, true, false);
    assert_in_range(r.hold.renew_at_ns - r.now_ns, 1, LEASE_MS * MS / 3);
}

static void a_partial_release_keeps_what_is_valid_and_renews_no_later(void **state)
{
    struct run r;
    int64_t before_ns;
    int64_t renew_at_ns;

    (void)state;
    begin(&r);
    before_ns = r.hold.valid_until_ns;
    renew_at_ns = r.hold.renew_at_ns;
    r.now_ns += MS;
    changes(&r, 0, 3000, true, false); /* the inner hold had the longer lease */
    assert_int_equal(r.hold.valid_until_ns, before_ns);
    assert_true(r.hold.renew_at_ns < renew_at_ns);
    assert_in_range(r.hold.renew_at_ns - BASE_MS * MS, 900 * MS, 1000 * MS);
}

static void an_extend_to_a_shorter_lease_ends_sooner(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    r.now_ns += 100 * MS;
    changes(&r, r.now_ns, 2000, true, true);
    assert_int_equal(r.hold.valid_until_ns, r.now_ns + (2000 - MARGIN_MS) * MS);
    assert_in_range(r.hold.renew_at_ns - r.now_ns, 600 * MS, 667 * MS);
    r.now_ns += 100 * MS;
    changes(&r, r.now_ns, 60000, true, false);
    assert_int_equal(r.hold.valid_until_ns, r.now_ns + (60000 - 61) * MS);
}

static void shorten(struct run *r, int64_t lease_ms)
{
    feed(r, (struct pawli_hold_event){ .kind = PAWLI_HOLD_SHORTENED, .lease_ms = lease_ms });
}

static void from_its_sending_a_shorter_lease_is_believed(void **state)
{
    struct run r;
    int64_t until_ns;
    int64_t sent_ns;

    (void)state;
    begin(&r);
    to_renewal(&r);
    sent_ns = r.now_ns;
    r.now_ns += 5 * MS;
    shorten(&r, 2000);
    until_ns = r.now_ns + (2000 - MARGIN_MS) * MS;
    assert_int_equal(r.hold.valid_until_ns, until_ns);
    renewed(&r, sent_ns, LEASE_MS); /* sent before: the store may have shortened since */
    assert_int_equal(r.hold.valid_until_ns, until_ns);
    r.now_ns += 100 * MS;
    happens(&r, PAWLI_HOLD_DOUBT, 0);
    assert_true(r.fx.renew);
    renewed(&r, r.now_ns, LEASE_MS); /* sent after: it brought back what was */
    assert_int_equal(r.hold.valid_until_ns, r.now_ns + (LEASE_MS - MARGIN_MS) * MS);
}

static void a_shorter_lease_that_is_not_confirmed_is_renewed_by_its_own_third(void **state)
{
    struct run r;

    (void)state;
    begin(&r);
    r.now_ns += 5 * MS;
    shorten(&r, 3000);
    assert_int_equal(r.fx.wake_ns, r.now_ns + 1000 * MS);
    wake(&r);
    assert_true(r.fx.renew);
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    shorten(&r, 3000);
    wake(&r);
    loses(&r, PAWL_LOST_EXPIRED, true);
}

static void answer_extend(struct run *r, bool kept)
{
    feed(r, (struct pawli_hold_event){ .kind = PAWLI_HOLD_EXTEND_ANSWERED, .kept = kept });
}

static void an_extend_that_was_not_executed_leaves_the_lease_as_before(void **state)
{
    struct run r;
    int64_t before_ns;

    (void)state;
    begin_with(&r, LEASE_MS, LEASE_MS, MAX_HOLD_MS, GRACE_MS, false);
    before_ns = r.hold.valid_until_ns;
    r.now_ns += 5 * MS;
    shorten(&r, 3000);
    r.now_ns += 5 * MS;
    answer_extend(&r, true);
    assert_int_equal(r.hold.valid_until_ns, before_ns);
    assert_int_equal(r.fx.wake_ns, before_ns);
}

static void of_two_extends_one_may_have_been_executed(void **state)
{
    struct run r;
    int64_t short_ns;

    (void)state;
    begin(&r);
    shorten(&r, 3000);
    short_ns = r.hold.valid_until_ns;
    r.now_ns += 5 * MS;
    shorten(&r, 4000);
    answer_extend(&r, true);
    assert_int_equal(r.hold.valid_until_ns, short_ns);
    answer_extend(&r, false);
    assert_int_equal(r.hold.valid_until_ns, short_ns);
    /* What is over is not remembered. */
    shorten(&r, 2000);
    answer_extend(&r, true);
    assert_int_equal(r.hold.valid_until_ns, short_ns);
}

static void a_freeze_is_not_forgotten_by_an_extend_that_was_not_executed(void **state)
{
    struct run r;
    int64_t exact_ns;

    (void)state;
    begin(&r);
    shorten(&r, 3000);
    r.now_ns += 5 * MS;
    feed(&r,
         (struct pawli_hold_event){
             .kind = PAWLI_HOLD_RENEWED, .sent_ns = r.now_ns, .pttl_ms = 1000, .exact = true });
    exact_ns = r.hold.valid_until_ns;
    answer_extend(&r, true);
    assert_int_equal(r.hold.valid_until_ns, exact_ns);
}

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
        happens(&r, PAWLI_HOLD_DOUBT, 0); /* confirmed: with renewal off nothing is asked */
        assert_int_equal(r.fx.renew, renew);
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

static void what_was_sent_in_the_moment_of_the_shortening_may_have_been_before(void **state)
{
    struct run r;
    int64_t until_ns;

    (void)state;
    begin(&r);
    to_renewal(&r);
    shorten(&r, 2000); /* in the same turn of the loop, by the same reading of the clock */
    until_ns = r.hold.valid_until_ns;
    renewed(&r, r.now_ns, LEASE_MS);
    assert_int_equal(r.hold.valid_until_ns, until_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reentry_with_a_longer_lease_takes_effect),
        cmocka_unit_test(a_reentry_never_shortens),
        cmocka_unit_test(renewal_goes_on_and_off_with_the_handles),
        cmocka_unit_test(a_partial_release_keeps_what_is_valid_and_renews_no_later),
        cmocka_unit_test(an_extend_to_a_shorter_lease_ends_sooner),
        cmocka_unit_test(from_its_sending_a_shorter_lease_is_believed),
        cmocka_unit_test(a_shorter_lease_that_is_not_confirmed_is_renewed_by_its_own_third),
        cmocka_unit_test(an_extend_that_was_not_executed_leaves_the_lease_as_before),
        cmocka_unit_test(of_two_extends_one_may_have_been_executed),
        cmocka_unit_test(a_freeze_is_not_forgotten_by_an_extend_that_was_not_executed),
        cmocka_unit_test(a_claim_is_confirmed_after_a_short_moment_also_without_renewal),
        cmocka_unit_test(a_claim_that_is_nearly_over_is_confirmed_in_half_of_what_is_left),
        cmocka_unit_test(what_was_sent_in_the_moment_of_the_shortening_may_have_been_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
