/* Tests of the system's clocks and of sums that stick. */
#include "unit.h"

#include <time.h>

#include "util/clock.h"

static int64_t now_of(clockid_t id)
{
    struct timespec now;

    assert_int_equal(clock_gettime(id, &now), 0);
    return (int64_t)now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void clocks_are_boottime_and_realtime(void **state)
{
    const struct pawli_clock *clock = &pawli_system_clock;
    int64_t before_ns = now_of(CLOCK_BOOTTIME);
    int64_t boot_ns = clock->boot_ns(clock);
    int64_t real_before_ns = now_of(CLOCK_REALTIME);
    int64_t real_ns = clock->real_ns(clock);

    (void)state;
    assert_true(boot_ns >= before_ns && boot_ns <= now_of(CLOCK_BOOTTIME));
    assert_true(real_ns >= real_before_ns - MS && real_ns <= now_of(CLOCK_REALTIME) + MS);
}

static void a_sum_sticks_at_never(void **state)
{
    (void)state;
    assert_true(pawli_after(5, 7) == 12);
    assert_true(pawli_after(-5, 7) == 2);
    assert_true(pawli_after(PAWLI_NEVER, 0) == PAWLI_NEVER);
    assert_true(pawli_after(PAWLI_NEVER, 1) == PAWLI_NEVER);
    assert_true(pawli_after(PAWLI_NEVER - 1, 1) == PAWLI_NEVER);
    assert_true(pawli_after(PAWLI_NEVER - 1, PAWLI_NEVER) == PAWLI_NEVER);
    assert_true(pawli_after(1, PAWLI_NEVER) == PAWLI_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_are_boottime_and_realtime),
        cmocka_unit_test(a_sum_sticks_at_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
