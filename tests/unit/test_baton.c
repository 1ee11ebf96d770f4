/* Who runs the loop: the engine's end waits for whoever stands in, and no wake-up is lost. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine/baton.h"
#include "net/loop.h"

struct fixture {
    struct pawli_loop *loop;
    struct pawli_baton baton;
    atomic_bool stopped;
};

static bool at_rest(void *arg)
{
    (void)arg;
    return true;
}

static void pause_ms(long ms)
{
    const struct timespec time = { .tv_nsec = ms * 1000000 };

    nanosleep(&time, NULL);
}

static void fixture_init(struct fixture *fx)
{
    assert_int_equal(pawli_loop_new(&pawli_system_clock, &fx->loop), 0);
    assert_int_equal(pawli_baton_init(&fx->baton, fx->loop, at_rest, NULL), 0);
    atomic_init(&fx->stopped, false);
}

static void fixture_done(struct fixture *fx)
{
    pawli_baton_done(&fx->baton);
    pawli_loop_free(fx->loop);
}

/* The engine thread has the baton until a caller comes. */
static void take(struct fixture *fx)
{
    bool took = false;

    for (int i = 0; i < 2000 && !took; i++) {
        took = pawli_baton_take(&fx->baton);
        if (!took) {
            pawli_loop_wake(fx->loop);
            pause_ms(1);
        }
    }
    assert_true(took);
}

static void *stop(void *arg)
{
    struct fixture *fx = arg;

    pawli_baton_stop(&fx->baton);
    atomic_store(&fx->stopped, true);
    return NULL;
}

static void stop_waits_for_who_stands_in(void **state)
{
    struct fixture fx;
    pthread_t thread;

    (void)state;
    fixture_init(&fx);
    assert_int_equal(pawli_baton_start(&fx.baton), 0);
    take(&fx);
    assert_int_equal(pthread_create(&thread, NULL, stop, &fx), 0);
    /* Who stands in sleeps in the loop, and is woken to leave. */
    while (!pawli_baton_stopping(&fx.baton))
        pawli_loop_run(fx.loop, PAWLI_NEVER);
    pause_ms(50);
    assert_false(atomic_load(&fx.stopped));
    pawli_baton_leave(&fx.baton);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&fx.stopped));
    assert_false(pawli_baton_take(&fx.baton));
    fixture_done(&fx);
}

static void a_wake_just_before_the_sleep_counts(void **state)
{
    struct fixture fx;
    int64_t began_ns;

    (void)state;
    fixture_init(&fx);
    began_ns = pawli_loop_now_ns(fx.loop);
    pawli_loop_wake(fx.loop);
    pawli_loop_run(fx.loop, began_ns + 2000 * PAWLI_NS_PER_MS);
    assert_true(pawli_loop_now_ns(fx.loop) - began_ns < 1000 * PAWLI_NS_PER_MS);
    /* It is used up: the next turn sleeps. */
    began_ns = pawli_loop_now_ns(fx.loop);
    pawli_loop_run(fx.loop, began_ns + 20 * PAWLI_NS_PER_MS);
    assert_true(pawli_loop_now_ns(fx.loop) - began_ns >= 20 * PAWLI_NS_PER_MS);
    fixture_done(&fx);
}

/* A thread that is canceled while it stands in would take the baton with it. */
static void *stand_in_canceled(void *arg)
{
    struct fixture *fx = arg;
    int before;

    take(fx);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    pawli_baton_leave(&fx->baton);
    pthread_testcancel();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return fx;
}

static void a_caller_is_not_canceled_before_it_leaves(void **state)
{
    struct fixture fx;
    pthread_t thread;
    void *result;

    (void)state;
    fixture_init(&fx);
    assert_int_equal(pawli_baton_start(&fx.baton), 0);
    assert_int_equal(pthread_create(&thread, NULL, stand_in_canceled, &fx), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    take(&fx); /* it was left free */
    pawli_baton_leave(&fx.baton);
    pawli_baton_stop(&fx.baton);
    fixture_done(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_waits_for_who_stands_in),
        cmocka_unit_test(a_wake_just_before_the_sleep_counts),
        cmocka_unit_test(a_caller_is_not_canceled_before_it_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
