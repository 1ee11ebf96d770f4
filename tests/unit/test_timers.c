/* Tests of the heap of timers. */
#include "unit.h"

#include <pawl.h>

#include "failing.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/timers.h"

#define N_TIMERS 200

struct alarm {
    struct pawli_timer timer;
    struct pawli_timers *timers;
    struct alarm *victim;
    int64_t again_ns;
    int fired;
    int place;
};

static int n_fired;

static void fire(struct pawli_timer *timer)
{
    struct alarm *alarm = PAWLI_CONTAINER(timer, struct alarm, timer);

    alarm->fired++;
    alarm->place = n_fired++;
    if (alarm->victim != NULL)
        pawli_timers_clear(alarm->timers, &alarm->victim->timer);
    if (alarm->again_ns != 0)
        pawli_timers_set(alarm->timers, timer, alarm->again_ns);
}

static void prepare(struct pawli_timers *timers, struct alarm *alarms, size_t n)
{
    n_fired = 0;
    pawli_timers_init(timers);
    assert_int_equal(pawli_timers_reserve(timers, n), 0);
    memset(alarms, 0, n * sizeof *alarms);
    for (size_t i = 0; i < n; i++) {
        alarms[i].timer.fire = fire;
        alarms[i].timers = timers;
    }
}

static void what_is_due_fires_earliest_first(void **state)
{
    struct pawli_timers timers;
    struct alarm a[4];

    (void)state;
    prepare(&timers, a, 4);
    assert_true(pawli_timers_next_ns(&timers) == PAWLI_NEVER);
    pawli_timers_set(&timers, &a[0].timer, 30);
    pawli_timers_set(&timers, &a[1].timer, 10);
    pawli_timers_set(&timers, &a[2].timer, 20);
    pawli_timers_set(&timers, &a[3].timer, 31);
    assert_int_equal(pawli_timers_next_ns(&timers), 10);
    assert_int_equal(pawli_timers_run(&timers, 9), 0);
    assert_int_equal(pawli_timers_run(&timers, 30), 3);
    assert_int_equal(a[1].place, 0);
    assert_int_equal(a[2].place, 1);
    assert_int_equal(a[0].place, 2);
    assert_int_equal(a[3].fired, 0);
    assert_int_equal(pawli_timers_next_ns(&timers), 31);
    pawli_timers_done(&timers);
    assert_int_equal(a[3].timer.pos, 0);
}

static void a_timer_set_again_moves(void **state)
{
    struct pawli_timers timers;
    struct alarm a[2];

    (void)state;
    prepare(&timers, a, 2);
    pawli_timers_set(&timers, &a[0].timer, 10);
    pawli_timers_set(&timers, &a[1].timer, 20);
    pawli_timers_set(&timers, &a[0].timer, 30);
    assert_int_equal(pawli_timers_next_ns(&timers), 20);
    pawli_timers_set(&timers, &a[0].timer, 5);
    assert_int_equal(pawli_timers_next_ns(&timers), 5);
    assert_int_equal(pawli_timers_run(&timers, 100), 2);
    pawli_timers_done(&timers);
}

static void a_cleared_timer_does_not_fire(void **state)
{
    struct pawli_timers timers;
    struct alarm a[1];

    (void)state;
    prepare(&timers, a, 1);
    pawli_timers_clear(&timers, &a[0].timer);
    pawli_timers_set(&timers, &a[0].timer, 10);
    pawli_timers_clear(&timers, &a[0].timer);
    pawli_timers_clear(&timers, &a[0].timer);
    assert_int_equal(pawli_timers_run(&timers, 100), 0);
    pawli_timers_done(&timers);
}

static void a_timer_cleared_by_another_in_the_same_run_does_not_fire(void **state)
{
    struct pawli_timers timers;
    struct alarm a[2];

    (void)state;
    prepare(&timers, a, 2);
    a[0].victim = &a[1];
    pawli_timers_set(&timers, &a[0].timer, 10);
    pawli_timers_set(&timers, &a[1].timer, 20);
    assert_int_equal(pawli_timers_run(&timers, 100), 1);
    assert_int_equal(a[1].fired, 0);
    pawli_timers_done(&timers);
}

static void a_timer_that_sets_itself_waits_for_the_next_run(void **state)
{
    struct pawli_timers timers;
    struct alarm a[2];

    (void)state;
    prepare(&timers, a, 2);
    a[0].again_ns = 1; /* long past */
    pawli_timers_set(&timers, &a[0].timer, 10);
    pawli_timers_set(&timers, &a[1].timer, 20);
    assert_int_equal(pawli_timers_run(&timers, 100), 2);
    assert_int_equal(a[0].fired, 1);
    assert_true(pawli_timers_next_ns(&timers) <= 101);
    assert_int_equal(pawli_timers_run(&timers, 101), 1);
    assert_int_equal(a[0].fired, 2);
    pawli_timers_done(&timers);
}

static void reserving_fails_without_memory_and_leaves_what_is_set(void **state)
{
    struct pawli_timers timers;
    struct alarm a[1];

    (void)state;
    prepare(&timers, a, 1);
    pawli_timers_set(&timers, &a[0].timer, 10);
    failing_alloc_after(0);
    assert_int_equal(pawli_timers_reserve(&timers, 100000), PAWL_ENOMEM);
    assert_int_equal(pawli_timers_reserve(&timers, SIZE_MAX), PAWL_ENOMEM);
    failing_alloc_after(-1);
    assert_int_equal(pawli_timers_reserve(&timers, 100000), 0);
    assert_int_equal(pawli_timers_run(&timers, 10), 1);
    pawli_timers_done(&timers);
}

/* Random sets, moves, clears and runs against a plain array. */
static void agrees_with_a_plain_array(void **state)
{
    static struct alarm a[N_TIMERS];
    int64_t at_ns[N_TIMERS];
    struct pawli_timers timers;
    uint64_t seed = test_seed("agrees_with_a_plain_array");
    int64_t now_ns = 0;

    (void)state;
    prepare(&timers, a, N_TIMERS);
    for (int i = 0; i < N_TIMERS; i++)
        at_ns[i] = PAWLI_NEVER;
    for (int round = 0; round < 20000; round++) {
        size_t i = pawli_jitter(&seed, N_TIMERS);
        int64_t next_ns = PAWLI_NEVER;
        size_t n_due = 0;

        if (pawli_jitter(&seed, 4) > 0) {
            at_ns[i] = now_ns + (int64_t)pawli_jitter(&seed, 1000);
            pawli_timers_set(&timers, &a[i].timer, at_ns[i]);
        } else {
            at_ns[i] = PAWLI_NEVER;
            pawli_timers_clear(&timers, &a[i].timer);
        }
        now_ns += (int64_t)pawli_jitter(&seed, 20);
        for (i = 0; i < N_TIMERS; i++) {
            if (at_ns[i] <= now_ns) {
                n_due++;
                at_ns[i] = PAWLI_NEVER;
            } else if (at_ns[i] < next_ns) {
                next_ns = at_ns[i];
            }
        }
        assert_int_equal(pawli_timers_run(&timers, now_ns), n_due);
        assert_true(pawli_timers_next_ns(&timers) == next_ns);
    }
    pawli_timers_done(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_due_fires_earliest_first),
        cmocka_unit_test(a_timer_set_again_moves),
        cmocka_unit_test(a_cleared_timer_does_not_fire),
        cmocka_unit_test(a_timer_cleared_by_another_in_the_same_run_does_not_fire),
        cmocka_unit_test(a_timer_that_sets_itself_waits_for_the_next_run),
        cmocka_unit_test(reserving_fails_without_memory_and_leaves_what_is_set),
        cmocka_unit_test(agrees_with_a_plain_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
