/* A helper program of a test; see child.h. */
#include "lib/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/patience.h"

struct child *child_start(const char *const argv[], const char *env)
{
    struct child *c = calloc(1, sizeof *c);
    int to[2];
    int from[2];

    assert_non_null(c);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    c->pid = fork();
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(to[0], 0);
        dup2(from[1], 1);
        if (env != NULL)
            putenv(strdup(env));
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    assert_true(c->pid > 0);
    close(to[0]);
    close(from[1]);
    c->to = to[1];
    c->from = from[0];
    return c;
}

void child_say(struct child *c, const char *format, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_int_equal(write(c->to, text, (size_t)len), len);
}

/* Moves the first line of the text to c->line. */
static bool next_line(struct child *c)
{
    char *end = memchr(c->text, '\n', c->len);
    size_t len;

    if (end == NULL)
        return false;
    len = (size_t)(end - c->text);
    snprintf(c->line, sizeof c->line, "%.*s", (int)len, c->text);
    c->len -= len + 1;
    memmove(c->text, end + 1, c->len);
    return true;
}

const char *child_hear(struct child *c, const char *start, int64_t ms)
{
    int64_t end_ms = now_ms() + slack_ms(ms);

    for (;;) {
        struct pollfd polled = { .fd = c->from, .events = POLLIN };
        int64_t left_ms = end_ms - now_ms();
        ssize_t n;

        while (next_line(c))
            if (strncmp(c->line, start, strlen(start)) == 0)
                return c->line;
        if (left_ms <= 0 || c->len == sizeof c->text)
            return NULL;
        if (poll(&polled, 1, (int)left_ms) <= 0)
            continue;
        n = read(c->from, c->text + c->len, sizeof c->text - c->len);
        if (n <= 0)
            return NULL;
        c->len += (size_t)n;
    }
}

const char *child_expect(struct child *c, const char *start, int64_t ms)
{
    const char *line = child_hear(c, start, ms);

    if (line == NULL)
        fail_msg("the helper did not say '%s'; last line: '%s'", start, c->line);
    return line;
}

void child_pause(struct child *c)
{
    int status;

    kill(c->pid, SIGSTOP);
    waitpid(c->pid, &status, WUNTRACED);
}

void child_resume(struct child *c)
{
    kill(c->pid, SIGCONT);
}

int child_end(struct child *c, int64_t ms)
{
    int64_t end_ms = now_ms() + slack_ms(ms);
    int status = 0;
    pid_t pid;

    close(c->to);
    c->to = -1;
    while ((pid = waitpid(c->pid, &status, WNOHANG)) == 0) {
        if (now_ms() > end_ms)
            fail_msg("the helper does not end");
        pause_ms(5);
    }
    c->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_free(struct child *c)
{
    if (c == NULL)
        return;
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (c->to >= 0)
        close(c->to);
    close(c->from);
    free(c);
}
