/* The wrapped calls of failing.h: the linker sends malloc() and the others here. */
#include "failing.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
ssize_t __real_getrandom(void *to, size_t len, unsigned flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags);

static int left = -1;
static const enum failing_random *randoms;
static size_t n_randoms;

void failing_alloc_after(int n)
{
    left = n;
}

void failing_random_set(const enum failing_random *what, size_t n)
{
    randoms = what;
    n_randoms = n;
}

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    if (n_randoms == 0)
        return __real_getrandom(to, len, flags);
    n_randoms--;
    switch (*randoms++) {
    case RANDOM_INTERRUPTED:
        errno = EINTR;
        return -1;
    case RANDOM_SHORT:
        return __real_getrandom(to, len > 3 ? 3 : len, flags);
    default:
        errno = ENOSYS;
        return -1;
    }
}
