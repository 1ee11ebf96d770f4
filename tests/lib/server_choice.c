/* See server_choice.h. */
#include "lib/server_choice.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool tells_version(const char *program)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execlp(program, program, "--version", (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

const char *server_program(void)
{
    static const char *program;

    if (program != NULL)
        return program;
    program = getenv("PAWL_REDIS_SERVER");
    if (program == NULL || program[0] == '\0')
        program = "redis-server";
    fflush(NULL);
    if (!tells_version(program))
        program = "valkey-server";
    return program;
}
