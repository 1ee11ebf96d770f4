/* log.c: writes log lines. Must not touch anything of a request: whoever logs passes text. */
#include "log.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static struct {
    int fd;
    enum log_level level;
    char instance[64];
} log_state = { STDERR_FILENO, LOG_INFO, "-" };

static const char *const level_names[] = { "ERROR", "WARN", "INFO", "DEBUG" };

int log_open(const char *path, const char *instance, enum log_level level)
{
    int fd = STDERR_FILENO;

    if (path != NULL && path[0] != '\0') {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0)
            return -1;
    }
    log_state.fd = fd;
    log_state.level = level;
    snprintf(log_state.instance, sizeof log_state.instance, "%s", instance);
    return 0;
}

void log_close(void)
{
    if (log_state.fd != STDERR_FILENO)
        close(log_state.fd);
    log_state.fd = STDERR_FILENO;
}

int log_wants(enum log_level level)
{
    return level <= log_state.level;
}

static size_t put_head(char *line, size_t size, enum log_level level)
{
    int64_t us = clock_wall_us();
    time_t second = (time_t)(us / 1000000);
    struct tm tm;
    char date[32];
    int n;

    gmtime_r(&second, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    n = snprintf(line, size, "%s.%06dZ us=%lld %s %s ", date, (int)(us % 1000000), (long long)us,
                 level_names[level], log_state.instance);
    return n < 0 ? 0 : (size_t)n;
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    size_t len, i;
    va_list ap;
    int n, saved = errno;

    if (!log_wants(level))
        return;
    len = put_head(line, sizeof line, level);
    va_start(ap, format);
    n = vsnprintf(line + len, sizeof line - len, format, ap);
    va_end(ap);
    if (n > 0)
        len += (size_t)n;
    if (len > sizeof line - 2)
        len = sizeof line - 2; /* cut; the newline stays, so that lines stay lines */
    for (i = 0; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    /* One write of one line: instances that share a file do not cut into each other. A full disk
     * must not stop orders, so the result is not looked at. */
    if (write(log_state.fd, line, len) < 0)
        errno = saved;
    errno = saved;
}
