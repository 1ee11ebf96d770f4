/* Allocations and getrandom() that fail when told to. A test that uses it is listed in
 * meson.build among those whose calls are wrapped. */
#ifndef TESTS_UNIT_FAILING_H
#define TESTS_UNIT_FAILING_H

#include <stddef.h>
#include <sys/types.h>

/* The next @n calls go through, the one after fails, then all go through again. -1: none fails. */
void failing_alloc_after(int n);

/* What the next getrandom() calls do; they are used up one by one, then the real one answers. */
enum failing_random { RANDOM_INTERRUPTED, RANDOM_SHORT, RANDOM_REFUSED };
void failing_random_set(const enum failing_random *what, size_t n);

#endif
