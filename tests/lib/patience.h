/* Waiting in tests: a clock, and conditions that are polled until a deadline. */
#ifndef TESTS_LIB_PATIENCE_H
#define TESTS_LIB_PATIENCE_H

#include <stdint.h>

/* CLOCK_BOOTTIME in milliseconds. */
int64_t now_ms(void);

/* Only between two looks at a condition, or where time itself is what is tested. */
void pause_ms(int64_t ms);

/* @ms, or a multiple of it where a checker makes the program slow (PAWL_SANITIZE). For deadlines
 * and for upper bounds. */
int64_t slack_ms(int64_t ms);

/* Fails the test if @cond does not become true within @ms. Main thread only. */
#define EVENTUALLY(ms, cond)                                                                      \
    do {                                                                                          \
        int64_t end_ms_ = now_ms() + slack_ms(ms);                                                \
        while (!(cond)) {                                                                         \
            if (now_ms() >= end_ms_)                                                              \
                fail_msg("not within %lld ms: %s", (long long)slack_ms(ms), #cond);               \
            pause_ms(2);                                                                          \
        }                                                                                         \
    } while (0)

/* Fails the test if @cond becomes false within @ms. */
#define ALWAYS(ms, cond)                                                                          \
    do {                                                                                          \
        int64_t end_ms_ = now_ms() + (ms);                                                        \
        while (now_ms() < end_ms_) {                                                              \
            if (!(cond))                                                                          \
                fail_msg("became false: %s", #cond);                                              \
            pause_ms(5);                                                                          \
        }                                                                                         \
    } while (0)

#endif
