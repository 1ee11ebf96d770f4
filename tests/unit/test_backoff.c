/* Tests of growing delays. */
#include "unit.h"

#include "core/backoff.h"

static void each_delay_is_between_half_and_all_of_its_step(void **state)
{
    static const int64_t steps_ms[] = { 50, 75, 113, 170, 255, 383, 575, 863, 1000, 1000, 1000 };
    uint64_t seed = test_seed("backoff");

    (void)state;
    for (int round = 0; round < 100; round++) {
        struct pawli_backoff b;

        pawli_backoff_init(&b, 50, 1000, pawli_jitter(&seed, UINT64_MAX - 1) + 1);
        for (size_t i = 0; i < N_OF(steps_ms); i++) {
            int64_t delay_ns = pawli_backoff_next_ns(&b);

            assert_true(delay_ns >= steps_ms[i] * MS / 2);
            assert_true(delay_ns <= steps_ms[i] * MS);
        }
    }
}

static void delays_are_jittered(void **state)
{
    struct pawli_backoff a;
    struct pawli_backoff b;
    int n_equal = 0;

    (void)state;
    pawli_backoff_init(&a, 50, 1000, 1);
    pawli_backoff_init(&b, 50, 1000, 2);
    for (int i = 0; i < 20; i++)
        n_equal += pawli_backoff_next_ns(&a) == pawli_backoff_next_ns(&b);
    assert_true(n_equal < 2);
}

static void reset_begins_again(void **state)
{
    struct pawli_backoff b;

    (void)state;
    pawli_backoff_init(&b, 50, 1000, 7);
    for (int i = 0; i < 10; i++)
        (void)pawli_backoff_next_ns(&b);
    pawli_backoff_reset(&b);
    assert_true(pawli_backoff_next_ns(&b) <= 50 * MS);
}

static void smallest_and_equal_limits_work(void **state)
{
    struct pawli_backoff b;

    (void)state;
    pawli_backoff_init(&b, 1, 3, 7);
    for (int i = 0; i < 10; i++)
        assert_in_range(pawli_backoff_next_ns(&b), MS / 2, 3 * MS);
    assert_true(pawli_backoff_next_ns(&b) >= 3 * MS / 2);
    pawli_backoff_init(&b, 100, 100, 7);
    for (int i = 0; i < 10; i++)
        assert_in_range(pawli_backoff_next_ns(&b), 50 * MS, 100 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_delay_is_between_half_and_all_of_its_step),
        cmocka_unit_test(delays_are_jittered),
        cmocka_unit_test(reset_begins_again),
        cmocka_unit_test(smallest_and_equal_limits_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
