/* A helper program of a test: started with a pipe to its input and one from its output. */
#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct child {
    pid_t pid; /* 0: ended and reaped */
    int to;
    int from;
    char text[4096]; /* output that was not read as a line yet */
    size_t len;
    char line[1024]; /* the last line of child_expect() */
};

/* @argv[0] is looked up in PATH unless it has a slash; @env like "NAME=value", NULL: none more. */
struct child *child_start(const char *const argv[], const char *env);
void child_say(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads lines until one begins with @start, within @ms; the others are skipped. NULL if none
 * comes, else the line without its end. */
const char *child_hear(struct child *c, const char *start, int64_t ms);
/* As child_hear(), and fails the test if none comes. */
const char *child_expect(struct child *c, const char *start, int64_t ms);
void child_pause(struct child *c); /* SIGSTOP, and waits until it stands still */
void child_resume(struct child *c); /* SIGCONT */
/* Closes its input and waits for its end; the exit code, or 128 + signal. */
int child_end(struct child *c, int64_t ms);
/* SIGKILL if it still runs, then frees. NULL is allowed. */
void child_free(struct child *c);

#endif
