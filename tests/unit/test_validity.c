/* Tests of promise B's arithmetic. */
#include "unit.h"

#include <pawl.h>

#include "core/validity.h"

static void margin_is_a_tenth_then_50_ms_then_drift(void **state)
{
    (void)state;
    assert_int_equal(pawli_margin_ns(100), 10 * MS);
    assert_int_equal(pawli_margin_ns(499), 499 * MS / 10);
    assert_int_equal(pawli_margin_ns(500), 50 * MS);
    assert_int_equal(pawli_margin_ns(30000), 50 * MS);
    assert_int_equal(pawli_margin_ns(49000), 50 * MS);
    assert_int_equal(pawli_margin_ns(50000), 51 * MS);
    assert_int_equal(pawli_margin_ns(PAWL_LEASE_MAX_MS), 3601 * MS);
}

static void validity_counts_from_sending_the_smaller_of_lease_and_pttl(void **state)
{
    (void)state;
    assert_int_equal(pawli_valid_until_ns(7 * MS, 30000, 30000), (7 + 30000 - 50) * MS);
    assert_int_equal(pawli_valid_until_ns(7 * MS, 30000, 40000), (7 + 30000 - 50) * MS);
    assert_int_equal(pawli_valid_until_ns(7 * MS, 30000, 2000), (7 + 2000 - 50) * MS);
}

static void no_time_left_is_never_valid(void **state)
{
    (void)state;
    assert_true(pawli_valid_until_ns(1000 * MS, 30000, 0) < 1000 * MS);
    assert_int_equal(pawli_valid_until_ns(1000 * MS, 30000, -1), (1000 - 50) * MS);
    assert_int_equal(pawli_valid_until_ns(1000 * MS, 30000, INT64_MIN), (1000 - 50) * MS);
    assert_int_equal(pawli_valid_until_ns(1000 * MS, 30000, INT64_MAX), (1000 + 29950) * MS);
}

static void grace_is_at_most_a_third_of_the_lease(void **state)
{
    (void)state;
    assert_int_equal(pawli_grace_ns(5000, 30000), 5000 * MS);
    assert_int_equal(pawli_grace_ns(5000, 15000), 5000 * MS);
    assert_int_equal(pawli_grace_ns(5000, 3000), 1000 * MS);
    assert_int_equal(pawli_grace_ns(5000, 100), 100 * MS / 3);
    assert_int_equal(pawli_grace_ns(0, 30000), 0);
}

static void a_freeze_is_noticed_within_the_margin(void **state)
{
    (void)state;
    assert_int_equal(pawli_jump_ns(100), 5 * MS);
    assert_int_equal(pawli_jump_ns(400), 20 * MS);
    assert_int_equal(pawli_jump_ns(30000), 20 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freeze_is_noticed_within_the_margin),
        cmocka_unit_test(margin_is_a_tenth_then_50_ms_then_drift),
        cmocka_unit_test(validity_counts_from_sending_the_smaller_of_lease_and_pttl),
        cmocka_unit_test(no_time_left_is_never_valid),
        cmocka_unit_test(grace_is_at_most_a_third_of_the_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
