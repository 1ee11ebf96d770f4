/* See redis_server.h. */
#include "lib/redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/server_choice.h"

#define MAX_WORDS 64

int free_port(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static pid_t spawn(const char *const *argv, const char *log)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(126);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

void run_program(const char *const *argv)
{
    int status = 0;
    pid_t pid = spawn(argv, "/dev/null");

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int connect_to(const struct redis_server *server)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", server->socket);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    close(fd);
    return -1;
}

static void wait_ready(const struct redis_server *server)
{
    const struct timespec pause = { 0, 5000000 };
    int tries;
    int fd = -1;

    for (tries = 0; fd < 0 && tries < 2000; tries++) {
        fd = connect_to(server);
        if (fd < 0)
            nanosleep(&pause, NULL);
        assert_int_equal(waitpid(server->pid, NULL, WNOHANG), 0);
    }
    assert_true(fd >= 0);
    close(fd);
}

void redis_server_folder(struct redis_server *server)
{
    memset(server, 0, sizeof *server);
    (void)snprintf(server->dir, sizeof server->dir, "/tmp/pawl-test-XXXXXX");
    assert_non_null(mkdtemp(server->dir));
    (void)snprintf(server->socket, sizeof server->socket, "%s/s", server->dir);
}

/* One word with its "%d" or "%s" filled in. */
static void fill_in(struct redis_server *server, const char *from, char *to, size_t len)
{
    const char *mark = strstr(from, "%");

    if (mark == NULL) {
        (void)snprintf(to, len, "%s", from);
    } else if (mark[1] == 'd') {
        server->port = free_port();
        (void)snprintf(to, len, "%.*s%d%s", (int)(mark - from), from, server->port, mark + 2);
    } else {
        (void)snprintf(to, len, "%.*s%s%s", (int)(mark - from), from, server->dir, mark + 2);
    }
}

void redis_server_start(struct redis_server *server, const char *const *more)
{
    static char words[MAX_WORDS][160];
    char log[96];
    const char *argv[MAX_WORDS + 1] = { server_program(), "--port",   "0",
                                        "--save",         "",         "--unixsocket",
                                        server->socket,   "--dir",    server->dir,
                                        "--bind",         "127.0.0.1" };
    size_t n = 11;

    if (server->dir[0] == '\0')
        redis_server_folder(server);
    for (; more != NULL && *more != NULL && n < MAX_WORDS; more++, n++) {
        fill_in(server, *more, words[n], sizeof words[n]);
        argv[n] = words[n];
    }
    argv[n] = NULL;
    (void)snprintf(log, sizeof log, "%s/log", server->dir);
    server->pid = spawn(argv, log);
    wait_ready(server);
}

void redis_server_stop(struct redis_server *server)
{
    const char *const rm[] = { "rm", "-rf", server->dir, NULL };

    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        waitpid(server->pid, NULL, 0);
    }
    if (server->dir[0] != '\0')
        run_program(rm);
    memset(server, 0, sizeof *server);
}

const char *redis_server_command(const struct redis_server *server, const char *line)
{
    static char answer[512];
    int fd = connect_to(server);
    ssize_t n;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
    assert_int_equal(write(fd, "\r\n", 2), 2);
    n = read(fd, answer, sizeof answer - 1);
    assert_true(n > 0);
    answer[n] = '\0';
    answer[strcspn(answer, "\r\n")] = '\0';
    close(fd);
    return answer;
}
