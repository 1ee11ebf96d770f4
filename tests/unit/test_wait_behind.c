/* Tests of what an acquire still does when its caller has been answered: the rules of wait.h. */
#include "wait_run.h"

static void cancel_answers_at_once_in_every_state(void **state)
{
    struct pawli_backoff backoff;
    struct run r = { .now_ns = 0 };

    (void)state;
    pawli_backoff_init(&backoff, MIN_MS, MAX_MS, 1);
    pawli_wait_init(&r.wait, false, LIMIT_MS * MS, LEASE_MS, &backoff);
    cancel(&r); /* before it began */
    ends(&r, PAWL_CANCELED);

    begin(&r, false);
    cancel(&r);
    answers(&r, PAWL_CANCELED);
    assert_int_equal(r.wait.state, PAWLI_WAIT_ORPHANED);
    assert_true(r.fx.wake_ns == PAWLI_NEVER);

    begin(&r, false);
    reply(&r, PAWL_BUSY);
    step(&r, PAWLI_WAIT_CANCEL, PAWL_ECLOSED, -1);
    ends(&r, PAWL_ECLOSED);

    begin(&r, false);
    reply(&r, PAWL_EUNKNOWN);
    cancel(&r);
    answers(&r, PAWL_CANCELED);
    cancels(&r, true);
}

static void a_second_cancel_changes_nothing(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            reply(&r, 0);
            cancels(&r, false);
        }
        cancel(&r);
        assert_false(r.fx.complete || r.fx.send_cancel || r.fx.finished);
    }
    cleaned(&r, 0);
    cancel(&r);
    assert_false(r.fx.complete || r.fx.send_cancel || r.fx.finished);
}

static void a_grant_for_nobody_is_cancelled(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    r.now_ns = 100 * MS;
    reply(&r, 0);
    assert_false(r.fx.complete);
    cancels(&r, false);
    cleaned(&r, 0);
    assert_true(r.fx.finished);
    assert_int_equal(r.wait.state, PAWLI_WAIT_ANSWERED);
}

static void an_orphan_that_was_refused_leaves_nothing(void **state)
{
    static const int codes[] = { PAWL_BUSY,  PAWL_ECONNECT,   PAWL_ELOADING,
                                 PAWL_ELATE, PAWL_EWRONGTYPE, PAWL_ENOPERM };
    struct run r;

    (void)state;
    for (size_t i = 0; i < N_OF(codes); i++) {
        begin(&r, false);
        cancel(&r);
        reply(&r, codes[i]);
        assert_true(r.fx.finished);
        assert_false(r.fx.send_cancel || r.fx.complete);
    }
}

static void an_orphan_in_doubt_is_cleaned_up(void **state)
{
    static const int codes[] = { 0, PAWL_BUSY, PAWL_ECONNECT, PAWL_EUNKNOWN };
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    reply(&r, PAWL_EUNKNOWN);
    cancels(&r, true);
    for (size_t i = 0; i < N_OF(codes); i++) { /* an earlier attempt was in doubt */
        begin(&r, false);
        reply(&r, PAWL_EUNKNOWN);
        wake(&r);
        cancel(&r);
        assert_false(r.fx.send_cancel);
        reply(&r, codes[i]);
        cancels(&r, true);
    }
}

static void an_answer_in_doubt_is_cleaned_up_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r, true);
    reply(&r, PAWL_EUNKNOWN);
    wake(&r);
    reply(&r, PAWL_BUSY);
    answers(&r, PAWL_BUSY);
    cancels(&r, true);
    cleaned(&r, PAWL_NOT_OWNER);
    assert_true(r.fx.finished);
}

static void a_failed_cancel_is_repeated_with_backoff(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    reply(&r, PAWL_EUNKNOWN);
    for (int i = 0; i < 5; i++) {
        int64_t before_ns = r.now_ns;

        cancels(&r, true);
        cleaned(&r, i % 2 == 0 ? PAWL_EUNKNOWN : PAWL_ENOPERM);
        assert_false(r.fx.finished || r.fx.send_cancel);
        assert_in_range(r.fx.wake_ns - before_ns, MIN_MS * MS / 2, MAX_MS * MS);
        tick_at(&r, r.fx.wake_ns - 1);
        assert_false(r.fx.send_cancel);
        wake(&r);
    }
    cleaned(&r, 0);
    assert_true(r.fx.finished);
}

static void up_repeats_a_failed_cancel_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    up(&r);
    assert_false(r.fx.send_cancel || r.fx.send_acquire);
    reply(&r, PAWL_EUNKNOWN);
    up(&r);
    assert_false(r.fx.send_cancel); /* one is in flight */
    cleaned(&r, PAWL_ECONNECT);
    up(&r);
    cancels(&r, true);
}

static void cleaning_ends_with_the_lease(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    reply(&r, PAWL_EUNKNOWN);
    r.now_ns = (LEASE_MS - 1) * MS;
    cleaned(&r, PAWL_ECONNECT);
    assert_int_equal(r.fx.wake_ns, LEASE_MS * MS);
    wake(&r);
    assert_true(r.fx.finished);
    assert_false(r.fx.send_cancel);
}

static void a_cancel_in_flight_is_waited_for_past_the_lease(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    reply(&r, PAWL_EUNKNOWN);
    tick_at(&r, (LEASE_MS + 5) * MS);
    assert_false(r.fx.finished); /* its answer would find nobody */
    cleaned(&r, PAWL_EUNKNOWN);
    assert_true(r.fx.finished);
}

static void the_first_cancel_is_sent_even_after_the_lease(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    r.now_ns = (LEASE_MS + 5) * MS;
    reply(&r, 0);
    cancels(&r, false);
}

static void a_key_of_another_type_needs_no_more_cleaning(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    reply(&r, 0);
    cleaned(&r, PAWL_EWRONGTYPE);
    assert_true(r.fx.finished);
}

static void nothing_comes_after_the_end(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, 0);
    for (int kind = PAWLI_WAIT_START; kind <= PAWLI_WAIT_CLEANED; kind++) {
        step(&r, (enum pawli_wait_event_kind)kind, 0, -1);
        assert_false(r.fx.complete || r.fx.send_acquire || r.fx.send_cancel || r.fx.finished);
        assert_true(r.fx.wake_ns == PAWLI_NEVER);
    }
}

static void states_have_names(void **state)
{
    (void)state;
    assert_string_equal(pawli_wait_state_name(PAWLI_WAIT_TRYING), "trying");
    assert_string_equal(pawli_wait_state_name(PAWLI_WAIT_CLEANING), "cleaning");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_answers_at_once_in_every_state),
        cmocka_unit_test(a_second_cancel_changes_nothing),
        cmocka_unit_test(a_grant_for_nobody_is_cancelled),
        cmocka_unit_test(an_orphan_that_was_refused_leaves_nothing),
        cmocka_unit_test(an_orphan_in_doubt_is_cleaned_up),
        cmocka_unit_test(an_answer_in_doubt_is_cleaned_up_at_once),
        cmocka_unit_test(a_failed_cancel_is_repeated_with_backoff),
        cmocka_unit_test(up_repeats_a_failed_cancel_at_once),
        cmocka_unit_test(cleaning_ends_with_the_lease),
        cmocka_unit_test(a_cancel_in_flight_is_waited_for_past_the_lease),
        cmocka_unit_test(the_first_cancel_is_sent_even_after_the_lease),
        cmocka_unit_test(a_key_of_another_type_needs_no_more_cleaning),
        cmocka_unit_test(nothing_comes_after_the_end),
        cmocka_unit_test(states_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
