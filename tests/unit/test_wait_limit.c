/* Tests of what an acquire answers at its limit: the rules of wait.h. */
#include "wait_run.h"

static void timeout_if_the_last_answer_was_busy(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_ECONNECT);
    wake(&r);
    reply(&r, PAWL_BUSY);
    tick_at(&r, LIMIT_MS * MS);
    ends(&r, PAWL_TIMEOUT);
}

static void timeout_if_busy_and_a_young_attempt_is_in_flight(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_BUSY);
    tick_at(&r, (LIMIT_MS - 199) * MS);
    tries(&r);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_TIMEOUT);
    assert_false(r.fx.finished);
    assert_int_equal(r.wait.state, PAWLI_WAIT_ORPHANED);
}

static void unknown_if_an_attempt_has_been_in_flight_for_long(void **state)
{
    struct run r;

    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        begin(&r, false);
        if (busy) {
            reply(&r, PAWL_BUSY);
            tick_at(&r, (LIMIT_MS - 200) * MS);
            tries(&r);
        }
        tick_at(&r, LIMIT_MS * MS);
        answers(&r, PAWL_EUNKNOWN);
        assert_false(r.fx.finished);
    }
}

static void the_last_failure_if_nothing_is_in_doubt(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_BUSY);
    wake(&r);
    reply(&r, PAWL_ELOADING);
    tick_at(&r, LIMIT_MS * MS);
    ends(&r, PAWL_ELOADING);
}

static void unknown_if_the_first_attempt_is_in_flight(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, false, 100 * MS);
    wake(&r);
    answers(&r, PAWL_EUNKNOWN); /* it may be executed, however young it is */
    assert_int_equal(r.wait.state, PAWLI_WAIT_ORPHANED);
}

static void connect_if_the_limit_passes_before_the_start(void **state)
{
    struct pawli_backoff backoff;
    struct run r = { .now_ns = 0 };

    (void)state;
    pawli_backoff_init(&backoff, MIN_MS, MAX_MS, 1);
    pawli_wait_init(&r.wait, false, LIMIT_MS * MS, LEASE_MS, &backoff);
    tick_at(&r, LIMIT_MS * MS);
    ends(&r, PAWL_ECONNECT);
}

static void a_reply_past_the_limit_answers_as_the_limit_does(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    r.now_ns = LIMIT_MS * MS;
    reply(&r, PAWL_BUSY);
    ends(&r, PAWL_TIMEOUT);
    begin(&r, false);
    r.now_ns = LIMIT_MS * MS;
    reply(&r, PAWL_EUNKNOWN);
    answers(&r, PAWL_EUNKNOWN);
    cancels(&r, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeout_if_the_last_answer_was_busy),
        cmocka_unit_test(timeout_if_busy_and_a_young_attempt_is_in_flight),
        cmocka_unit_test(unknown_if_an_attempt_has_been_in_flight_for_long),
        cmocka_unit_test(the_last_failure_if_nothing_is_in_doubt),
        cmocka_unit_test(unknown_if_the_first_attempt_is_in_flight),
        cmocka_unit_test(connect_if_the_limit_passes_before_the_start),
        cmocka_unit_test(a_reply_past_the_limit_answers_as_the_limit_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
