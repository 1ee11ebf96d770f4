/* Tests of the decisions of one acquire up to its answer: the rules of wait.h, one by one. The
 * limit, the queue and what comes behind the answer have files of their own; test_wait_random.c has
 * what holds of every sequence. */
#include "wait_run.h"

static void start_sends_at_once_and_wakes_at_the_limit(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    tries(&r);
    assert_int_equal(r.fx.wake_ns, LIMIT_MS * MS);
}

static void start_sends_even_if_the_limit_has_passed(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, false, -1);
    tries(&r);
    reply(&r, 0);
    ends(&r, 0);
}

static void a_grant_completes_with_0(void **state)
{
    struct run r;

    (void)state;
    for (int once = 0; once < 2; once++) {
        begin(&r, once != 0);
        reply(&r, 0);
        ends(&r, 0);
    }
}

static void a_grant_after_the_limit_still_counts(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    r.now_ns = (LIMIT_MS + 1) * MS;
    reply(&r, 0);
    ends(&r, 0);
}

static void busy_answers_a_single_try(void **state)
{
    struct run r;

    (void)state;
    begin(&r, true);
    reply(&r, PAWL_BUSY);
    ends(&r, PAWL_BUSY);
}

static void busy_sleeps_for_growing_jittered_delays(void **state)
{
    static const int64_t steps_ms[] = { 50, 75, 113, 170, 255 };
    struct run r;

    (void)state;
    begin(&r, false);
    for (size_t i = 0; i < N_OF(steps_ms); i++) {
        reply(&r, PAWL_BUSY);
        sleeps(&r);
        assert_in_range(r.fx.wake_ns - r.now_ns, steps_ms[i] * MS / 2, steps_ms[i] * MS);
        tick_at(&r, r.fx.wake_ns - 1);
        sleeps(&r);
        wake(&r);
        tries(&r);
    }
}

static void a_sleep_ends_when_the_holders_lease_does(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    step(&r, PAWLI_WAIT_REPLY, PAWL_BUSY, 3);
    sleeps(&r);
    /* The store lets go after the last millisecond, not in it. */
    assert_int_equal(r.fx.wake_ns, 4 * MS);
    wake(&r);
    tries(&r);
    step(&r, PAWLI_WAIT_REPLY, PAWL_BUSY, 0);
    assert_int_equal(r.fx.wake_ns, r.now_ns + 1 * MS);
    wake(&r);
    step(&r, PAWLI_WAIT_REPLY, PAWL_BUSY, INT64_MAX);
    sleeps(&r);
    assert_true(r.fx.wake_ns - r.now_ns <= 113 * MS);
}

static void a_sleep_never_passes_the_limit(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, false, 10 * MS);
    reply(&r, PAWL_BUSY);
    sleeps(&r);
    assert_int_equal(r.fx.wake_ns, 10 * MS);
    wake(&r);
    ends(&r, PAWL_TIMEOUT);
}

static void a_wait_for_ever_has_no_limit(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, false, PAWLI_NEVER);
    assert_true(r.fx.wake_ns == PAWLI_NEVER);
    for (int i = 0; i < 1000; i++) {
        reply(&r, i % 3 == 0 ? PAWL_ECONNECT : PAWL_BUSY);
        sleeps(&r);
        wake(&r);
        tries(&r);
    }
    reply(&r, 0);
    ends(&r, 0);
}

static void late_is_retried_at_once_one_time(void **state)
{
    struct run r;

    (void)state;
    for (int once = 0; once < 2; once++) {
        begin(&r, once != 0);
        reply(&r, PAWL_ELATE);
        tries(&r);
        reply(&r, PAWL_ELATE);
        if (once)
            ends(&r, PAWL_ELATE);
        else
            sleeps(&r);
    }
}

static void late_after_the_limit_is_not_retried(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    r.now_ns = LIMIT_MS * MS;
    reply(&r, PAWL_ELATE);
    ends(&r, PAWL_ELATE);
}

static void usage_and_denied_complete_at_once(void **state)
{
    static const int codes[] = { PAWL_EWRONGTYPE, PAWL_EUSAGE, PAWL_EAUTH, PAWL_ENOPERM,
                                 PAWL_ENOSCRIPTING };
    struct run r;

    (void)state;
    for (size_t i = 0; i < 2 * N_OF(codes); i++) {
        begin(&r, i % 2 == 0);
        reply(&r, codes[i / 2]);
        ends(&r, codes[i / 2]);
    }
}

static void a_passing_failure_ends_a_single_try_and_is_retried_otherwise(void **state)
{
    static const int codes[] = { PAWL_ELOADING, PAWL_EOOM,     PAWL_ESERVER,
                                 PAWL_ECONNECT, PAWL_ERESOLVE, PAWL_ENOMEM };
    struct run r;

    (void)state;
    for (size_t i = 0; i < N_OF(codes); i++) {
        begin(&r, true);
        reply(&r, codes[i]);
        ends(&r, codes[i]);
        begin(&r, false);
        reply(&r, codes[i]);
        sleeps(&r);
        assert_in_range(r.fx.wake_ns, MIN_MS * MS / 2, MIN_MS * MS);
        wake(&r);
        tries(&r);
    }
}

static void a_full_queue_is_told_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_EQUEUEFULL);
    ends(&r, PAWL_EQUEUEFULL);
}

static void up_ends_a_sleep_that_follows_a_failure(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_ECONNECT);
    sleeps(&r);
    up(&r);
    tries(&r);
    up(&r);
    assert_false(r.fx.send_acquire);
    reply(&r, PAWL_EUNKNOWN);
    sleeps(&r);
    up(&r);
    tries(&r);
}

static void up_does_not_end_a_sleep_that_follows_busy(void **state)
{
    struct run r;
    int64_t wake_ns;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_BUSY);
    wake_ns = r.fx.wake_ns;
    up(&r);
    sleeps(&r);
    assert_int_equal(r.fx.wake_ns, wake_ns);
    begin(&r, false);
    reply(&r, PAWL_ECONNECT); /* long ago */
    wake(&r);
    reply(&r, PAWL_BUSY);
    up(&r);
    sleeps(&r);
}

static void up_begins_with_short_delays_again(void **state)
{
    struct run r;

    (void)state;
    begin_with(&r, false, PAWLI_NEVER);
    for (int i = 0; i < 20; i++) {
        reply(&r, PAWL_ECONNECT);
        wake(&r);
    }
    up(&r);
    reply(&r, PAWL_BUSY);
    assert_in_range(r.fx.wake_ns - r.now_ns, MIN_MS * MS / 2, MIN_MS * MS);
}

static void unknown_is_retried_also_by_a_single_try(void **state)
{
    struct run r;

    (void)state;
    for (int once = 0; once < 2; once++) {
        begin(&r, once != 0);
        reply(&r, PAWL_EUNKNOWN);
        sleeps(&r);
        wake(&r);
        tries(&r);
        reply(&r, 0); /* the same hold id: its own grant */
        ends(&r, 0);
    }
}

static void a_single_try_in_doubt_is_retried_over_passing_failures(void **state)
{
    struct run r;

    (void)state;
    begin(&r, true);
    reply(&r, PAWL_ESCRIPT);
    sleeps(&r);
    wake(&r);
    reply(&r, PAWL_ECONNECT);
    sleeps(&r);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_EUNKNOWN); /* never "certainly not executed" */
    cancels(&r, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_sends_at_once_and_wakes_at_the_limit),
        cmocka_unit_test(start_sends_even_if_the_limit_has_passed),
        cmocka_unit_test(a_grant_completes_with_0),
        cmocka_unit_test(a_grant_after_the_limit_still_counts),
        cmocka_unit_test(busy_answers_a_single_try),
        cmocka_unit_test(busy_sleeps_for_growing_jittered_delays),
        cmocka_unit_test(a_sleep_ends_when_the_holders_lease_does),
        cmocka_unit_test(a_sleep_never_passes_the_limit),
        cmocka_unit_test(a_wait_for_ever_has_no_limit),
        cmocka_unit_test(late_is_retried_at_once_one_time),
        cmocka_unit_test(late_after_the_limit_is_not_retried),
        cmocka_unit_test(usage_and_denied_complete_at_once),
        cmocka_unit_test(a_passing_failure_ends_a_single_try_and_is_retried_otherwise),
        cmocka_unit_test(a_full_queue_is_told_at_once),
        cmocka_unit_test(up_ends_a_sleep_that_follows_a_failure),
        cmocka_unit_test(up_does_not_end_a_sleep_that_follows_busy),
        cmocka_unit_test(up_begins_with_short_delays_again),
        cmocka_unit_test(unknown_is_retried_also_by_a_single_try),
        cmocka_unit_test(a_single_try_in_doubt_is_retried_over_passing_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
