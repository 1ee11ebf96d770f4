/* Raw limit of a hand-over: from just before PUBLISH is written on one socket until a process that
 * sleeps on another has read the message. Plain blocking sockets, no library.
 * usage: rawpub PORT COUNT GAP_MS   prints JSON: p50, p99 and max in us. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int dial(int port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void put(int fd, const char *text, size_t len)
{
    if (write(fd, text, len) != (ssize_t)len)
        die("write");
}

/* The child: subscribes, then sends the parent the time at which each message was read. */
static void subscriber(int port, int count, int to_parent)
{
    static const char subscribe[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$6\r\nrawpub\r\n";
    int fd = dial(port);
    char data[512];

    put(fd, subscribe, sizeof subscribe - 1);
    for (int i = 0; i <= count; i++) {
        long long at;

        if (read(fd, data, sizeof data) <= 0)
            die("read");
        at = now_ns();
        put(to_parent, (const char *)&at, sizeof at);
    }
    exit(0);
}

static int ascending(const void *a, const void *b)
{
    long long x = *(const long long *)a;
    long long y = *(const long long *)b;

    return (x > y) - (x < y);
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    static const char publish[] = "*3\r\n$7\r\nPUBLISH\r\n$6\r\nrawpub\r\n$1\r\nx\r\n";
    int port = argc > 1 ? number(argv[1]) : 0;
    int count = argc > 2 ? number(argv[2]) : 0;
    int gap_ms = argc > 3 ? number(argv[3]) : 0;
    int pipe_fd[2];
    long long *took;
    long long at;
    char data[64];
    int fd;

    if (port < 1 || count < 1 || pipe(pipe_fd) != 0) {
        fprintf(stderr, "usage: rawpub PORT COUNT GAP_MS\n");
        return 2;
    }
    took = calloc((size_t)count, sizeof *took);
    if (took == NULL)
        die("memory");
    if (fork() == 0)
        subscriber(port, count, pipe_fd[1]);
    fd = dial(port);
    if (read(pipe_fd[0], &at, sizeof at) != sizeof at) /* subscribed */
        die("subscriber");
    for (int i = 0; i < count; i++) {
        struct timespec gap = { gap_ms / 1000, gap_ms % 1000 * 1000000L };
        long long sent;

        nanosleep(&gap, NULL); /* both sides are asleep, as they are when a lock is handed over */
        sent = now_ns();
        put(fd, publish, sizeof publish - 1);
        if (read(pipe_fd[0], &at, sizeof at) != sizeof at)
            die("subscriber");
        took[i] = at - sent;
        if (read(fd, data, sizeof data) <= 0)
            die("read");
    }
    wait(NULL);
    qsort(took, (size_t)count, sizeof *took, ascending);
    printf("{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}\n", (double)took[count / 2] / 1e3,
           (double)took[count * 99 / 100] / 1e3, (double)took[count - 1] / 1e3);
    free(took);
    return 0;
}
