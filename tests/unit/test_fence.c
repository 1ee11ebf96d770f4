/* Tests of the floor of fencing tokens. */
#include "unit.h"

#include <pawl.h>

#include "core/fence.h"
#include "core/key.h"
#include "failing.h"

#define NOW_US INT64_C(1790000000000000)

static void the_floor_is_the_highest_token_of_its_slot(void **state)
{
    struct pawli_fence fence = { NULL };

    (void)state;
    assert_int_equal(pawli_fence_floor(&fence, 5), 0);
    assert_int_equal(pawli_fence_saw(&fence, 5, NOW_US, NOW_US), 0);
    assert_int_equal(pawli_fence_saw(&fence, 5, NOW_US + 9, NOW_US), 0);
    assert_int_equal(pawli_fence_saw(&fence, 5, NOW_US + 3, NOW_US), 0);
    assert_int_equal(pawli_fence_floor(&fence, 5), NOW_US + 9);
    assert_int_equal(pawli_fence_floor(&fence, 4), 0);
    assert_int_equal(pawli_fence_floor(&fence, PAWLI_SLOTS - 1), 0);
    pawli_fence_done(&fence);
    pawli_fence_done(&fence);
    assert_int_equal(pawli_fence_floor(&fence, 5), 0);
}

static void impossible_tokens_are_refused_and_not_remembered(void **state)
{
    struct pawli_fence fence = { NULL };

    (void)state;
    assert_int_equal(pawli_fence_saw(&fence, 5, 0, NOW_US), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_saw(&fence, 5, PAWLI_TOKEN_MAX + 1, INT64_MAX), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_saw(&fence, 5, UINT64_MAX, INT64_MAX), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_floor(&fence, 5), 0);
    assert_int_equal(pawli_fence_saw(&fence, 5, PAWLI_TOKEN_MAX, INT64_MAX), 0);
    pawli_fence_done(&fence);
}

static void more_than_a_day_ahead_of_clock_and_slot_is_refused(void **state)
{
    struct pawli_fence fence = { NULL };
    uint64_t day_ahead = (uint64_t)(NOW_US + PAWLI_DAY_US);

    (void)state;
    assert_int_equal(pawli_fence_saw(&fence, 1, day_ahead + 1, NOW_US), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_saw(&fence, 1, day_ahead, NOW_US), 0);
    /* The slot has been there: the counter carries it on. */
    assert_int_equal(pawli_fence_saw(&fence, 1, day_ahead + 1, NOW_US), 0);
    assert_int_equal(pawli_fence_saw(&fence, 2, day_ahead + 1, NOW_US), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_floor(&fence, 2), 0);
    pawli_fence_done(&fence);
}

static void an_unknown_time_counts_as_none(void **state)
{
    struct pawli_fence fence = { NULL };

    (void)state;
    assert_int_equal(pawli_fence_saw(&fence, 1, NOW_US, 0), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_saw(&fence, 1, NOW_US, -1), PAWL_EPROTOCOL);
    assert_int_equal(pawli_fence_saw(&fence, 1, PAWLI_DAY_US, 0), 0);
    pawli_fence_done(&fence);
}

static void without_memory_only_the_floor_is_lost(void **state)
{
    struct pawli_fence fence = { NULL };

    (void)state;
    failing_alloc_after(0);
    assert_int_equal(pawli_fence_saw(&fence, 1, NOW_US, NOW_US), 0);
    assert_int_equal(pawli_fence_floor(&fence, 1), 0);
    assert_int_equal(pawli_fence_saw(&fence, 1, NOW_US, NOW_US), 0);
    assert_int_equal(pawli_fence_floor(&fence, 1), NOW_US);
    pawli_fence_done(&fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floor_is_the_highest_token_of_its_slot),
        cmocka_unit_test(impossible_tokens_are_refused_and_not_remembered),
        cmocka_unit_test(more_than_a_day_ahead_of_clock_and_slot_is_refused),
        cmocka_unit_test(an_unknown_time_counts_as_none),
        cmocka_unit_test(without_memory_only_the_floor_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
