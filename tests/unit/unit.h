/* What every unit test includes, and random numbers that a failure can be replayed with. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/random.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MS INT64_C(1000000)

/* PAWL_SEED, else a new one; printed. Never 0. */
static inline uint64_t test_seed(const char *what)
{
    const char *given = getenv("PAWL_SEED");
    uint64_t seed = 0;

    if (given != NULL)
        seed = strtoull(given, NULL, 10);
    else if (pawli_random_bytes(&seed, sizeof seed) < 0)
        fail_msg("no random bytes");
    seed |= 1;
    print_message("%s: PAWL_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

#endif
