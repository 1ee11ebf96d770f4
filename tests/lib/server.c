/* A private redis-server for tests; see server.h. */
#include "lib/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/files.h"
#include "lib/patience.h"
#include "lib/server_choice.h"

static struct server *all_servers;

static int any_free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        fail_msg("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(address.sin_port);
}

/* The cluster's port lies 10,000 above and must be one, too. */
static int free_port(void)
{
    int port = any_free_port();

    while (port >= 55535)
        port = any_free_port();
    return port;
}

/* ---- configuration ---- */

static void write_config(const struct server *s)
{
    const struct server_options *o = &s->opts;
    bool tls = o->cert_file != NULL;
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/redis.conf", s->dir);
    f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f,
            "dir %s\nunixsocket %s\nbind 127.0.0.1\nport %d\ndaemonize no\nsave \"\"\n"
            "appendonly %s\nlogfile %s/log\nenable-debug-command yes\n",
            s->dir, s->socket, tls ? 0 : s->port, o->appendonly ? "yes" : "no", s->dir);
    if (tls)
        fprintf(f,
                "tls-port %d\ntls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
                "tls-auth-clients optional\n",
                s->port, o->cert_file, o->key_file, o->ca_file);
    if (o->password != NULL)
        fprintf(f, "requirepass \"%s\"\n", o->password);
    if (o->acl != NULL) {
        char acl[128];

        snprintf(acl, sizeof acl, "%s/users.acl", s->dir);
        write_file(acl, o->acl);
        fprintf(f, "aclfile %s\n", acl);
    }
    if (o->config != NULL)
        fprintf(f, "%s\n", o->config);
    fclose(f);
}

/* ---- process ---- */

static void run_server(const struct server *s, const char *program)
{
    char config[128];
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    if (s->opts.preload != NULL)
        setenv("LD_PRELOAD", s->opts.preload, 1);
    snprintf(config, sizeof config, "%s/redis.conf", s->dir);
    execlp(program, program, config, (char *)NULL);
    _exit(127);
}

static redisContext *dial(const struct server *s)
{
    struct timeval limit = { .tv_sec = slack_ms(20000) / 1000 };
    redisContext *c = redisConnectUnixWithTimeout(s->socket, limit);
    redisReply *r;

    if (c == NULL || c->err != 0) {
        redisFree(c);
        return NULL;
    }
    redisSetTimeout(c, limit);
    if (s->opts.password != NULL) {
        r = redisCommand(c, "AUTH %s", s->opts.password);
        freeReplyObject(r);
    }
    return c;
}

static bool answers(struct server *s)
{
    redisContext *c = dial(s);
    redisReply *r = c == NULL ? NULL : redisCommand(c, "PING");
    bool up = r != NULL && (r->type != REDIS_REPLY_ERROR || s->opts.loading);

    freeReplyObject(r);
    redisFree(c);
    return up;
}

static bool has_ended(struct server *s)
{
    if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
        return false;
    s->pid = 0;
    return true;
}

void server_begin(struct server *s)
{
    const char *program = server_program();
    int64_t end_ms = now_ms() + slack_ms(20000);

    unlink(s->socket);
    s->pid = fork();
    if (s->pid == 0)
        run_server(s, program);
    assert_true(s->pid > 0);
    while (!answers(s)) {
        if (has_ended(s) || now_ms() > end_ms) {
            char path[128];

            snprintf(path, sizeof path, "%s/log", s->dir);
            print_file(path);
            fail_msg("redis-server does not start");
        }
        pause_ms(5);
    }
}

static void kill_all(void)
{
    while (all_servers != NULL)
        server_free(all_servers);
}

struct server *server_start(const struct server_options *opts)
{
    static bool registered;
    struct server *s = calloc(1, sizeof *s);
    bool tls;

    assert_non_null(s);
    if (opts != NULL)
        s->opts = *opts;
    tls = s->opts.cert_file != NULL;
    make_folder(s->dir, sizeof s->dir);
    snprintf(s->socket, sizeof s->socket, "%s/s", s->dir);
    snprintf(s->url, sizeof s->url, "redis+unix://%s", s->socket);
    if (s->opts.tcp || tls) {
        s->port = free_port();
        snprintf(s->tcp_url, sizeof s->tcp_url, "%s://localhost:%d", tls ? "rediss" : "redis",
                 s->port);
    }
    if (!registered)
        atexit(kill_all);
    registered = true;
    s->next = all_servers;
    all_servers = s;
    write_config(s);
    server_begin(s);
    return s;
}

void server_kill(struct server *s)
{
    redisFree(s->admin);
    s->admin = NULL;
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
}

void server_restart(struct server *s)
{
    server_kill(s);
    server_begin(s);
}

void server_free(struct server *s)
{
    struct server **at;

    if (s == NULL)
        return;
    for (at = &all_servers; *at != NULL && *at != s; at = &(*at)->next)
        ;
    if (*at == s)
        *at = s->next;
    server_kill(s);
    remove_folder(s->dir);
    free(s);
}

void server_pause(struct server *s)
{
    int status;

    kill(s->pid, SIGSTOP);
    waitpid(s->pid, &status, WUNTRACED);
}

void server_resume(struct server *s)
{
    kill(s->pid, SIGCONT);
}

/* ---- commands ---- */

redisContext *server_connect(const struct server *s)
{
    redisContext *c = dial(s);

    if (c == NULL)
        fail_msg("no connection to the server");
    return c;
}

static redisReply *ask(struct server *s, const char *format, va_list args)
{
    va_list again;
    redisReply *r;

    va_copy(again, args);
    if (s->admin == NULL)
        s->admin = server_connect(s);
    r = redisvCommand(s->admin, format, args);
    if (r == NULL) { /* the server was restarted, or the connection killed */
        redisFree(s->admin);
        s->admin = server_connect(s);
        r = redisvCommand(s->admin, format, again);
    }
    va_end(again);
    if (r == NULL)
        fail_msg("no answer to: %s", format);
    return r;
}

redisReply *server_ask(struct server *s, const char *format, ...)
{
    va_list args;
    redisReply *r;

    va_start(args, format);
    r = ask(s, format, args);
    va_end(args);
    return r;
}

void server_do(struct server *s, const char *format, ...)
{
    va_list args;
    redisReply *r;

    va_start(args, format);
    r = ask(s, format, args);
    va_end(args);
    if (r->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, r->str);
    freeReplyObject(r);
}

long long server_int(struct server *s, const char *format, ...)
{
    va_list args;
    redisReply *r;
    long long n;

    va_start(args, format);
    r = ask(s, format, args);
    va_end(args);
    if (r->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, r->str);
    n = r->type == REDIS_REPLY_INTEGER ? r->integer
        : r->str == NULL               ? 0
                                       : strtoll(r->str, NULL, 10);
    freeReplyObject(r);
    return n;
}

const char *server_text(struct server *s, char *buf, size_t len, const char *format, ...)
{
    va_list args;
    redisReply *r;

    va_start(args, format);
    r = ask(s, format, args);
    va_end(args);
    snprintf(buf, len, "%s", r->str == NULL ? "" : r->str);
    freeReplyObject(r);
    return buf;
}

long long server_calls(struct server *s, const char *command)
{
    redisReply *r = server_ask(s, "INFO commandstats");
    char key[64];
    const char *at;
    long long n = 0;

    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    at = strstr(r->str, key);
    if (at != NULL)
        n = strtoll(at + strlen(key), NULL, 10);
    freeReplyObject(r);
    return n;
}

void server_forget_calls(struct server *s)
{
    server_do(s, "CONFIG RESETSTAT");
}

int server_drop_clients(struct server *s, const char *name)
{
    redisReply *r = server_ask(s, "CLIENT LIST");
    char *rest = NULL;
    int n = 0;

    for (char *line = strtok_r(r->str, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *at = strstr(line, " name=");
        char value[128] = "";

        if (at == NULL || sscanf(at, " name=%127s", value) != 1 || strstr(value, name) == NULL)
            continue;
        n += (int)server_int(s, "CLIENT KILL ID %lld", strtoll(line + 3, NULL, 10));
    }
    freeReplyObject(r);
    return n;
}
