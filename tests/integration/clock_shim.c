/* Preloaded into a server by tests: adds to its wall clock the nanoseconds that lie in the file
 * PAWL_CLOCK_FILE, which the test changes while the server runs. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_ns;

static int64_t wall_ns(void)
{
    struct timespec now;
    const char *path;

    if (offset_ns == NULL && (path = getenv("PAWL_CLOCK_FILE")) != NULL) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        offset_ns = mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (offset_ns == NULL ? 0 : *offset_ns);
}

int clock_gettime(clockid_t id, struct timespec *ret_now)
{
    int64_t now_ns;

    if (id != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, id, ret_now);
    now_ns = wall_ns();
    ret_now->tv_sec = now_ns / 1000000000;
    ret_now->tv_nsec = now_ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *ret_now, void *zone)
{
    int64_t now_ns = wall_ns();

    (void)zone;
    ret_now->tv_sec = now_ns / 1000000000;
    ret_now->tv_usec = now_ns % 1000000000 / 1000;
    return 0;
}

time_t time(time_t *ret_now)
{
    time_t now = (time_t)(wall_ns() / 1000000000);

    if (ret_now != NULL)
        *ret_now = now;
    return now;
}
