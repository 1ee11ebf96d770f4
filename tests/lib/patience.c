/* Clock and pauses of tests; see patience.h. */
#include "lib/patience.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(int64_t ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

int64_t slack_ms(int64_t ms)
{
    const char *kind = getenv("PAWL_SANITIZE");

    if (kind == NULL)
        return ms;
    if (strcmp(kind, "valgrind") == 0)
        return ms * 10;
    return strcmp(kind, "address") == 0 ? ms * 2 : ms * 5;
}
