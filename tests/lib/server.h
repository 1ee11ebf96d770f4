/* A private redis-server for tests: its own folder, a unix socket and on demand a free port of
 * 127.0.0.1, dead with the test at the latest. Its functions fail the running test when the
 * server does not do what it is asked. Main thread only. */
#ifndef TESTS_LIB_SERVER_H
#define TESTS_LIB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

struct server_options {
    bool tcp; /* also on a port of 127.0.0.1 */
    bool appendonly;
    bool loading; /* do not wait until it answers PING */
    const char *password; /* requirepass; also what the admin connection uses */
    const char *acl; /* lines of an ACL file */
    const char *config; /* more lines of redis.conf */
    const char *preload; /* LD_PRELOAD of the server */
    const char *cert_file; /* with these three the port speaks TLS */
    const char *key_file;
    const char *ca_file;
};

struct server {
    struct server *next; /* all that live */
    struct server_options opts;
    pid_t pid; /* 0: not running */
    int port; /* 0: none */
    char dir[64];
    char socket[96];
    char url[128]; /* redis+unix://... */
    char tcp_url[128]; /* redis:// or rediss://localhost:port */
    redisContext *admin;
};

/* NULL: all defaults. Texts of @opts must outlive the server. */
struct server *server_start(const struct server_options *opts);
/* Kills it and removes its folder. NULL is allowed. */
void server_free(struct server *s);

void server_kill(struct server *s); /* SIGKILL; the data folder stays */
void server_restart(struct server *s); /* kills it if it runs; same addresses */
void server_begin(struct server *s); /* starts a killed one again */
void server_pause(struct server *s); /* SIGSTOP, and waits until it stands still */
void server_resume(struct server *s); /* SIGCONT */

/* Commands over the admin connection, which comes back after a restart. Formats are hiredis'
 * (%s, %b with a size_t length, %d, %lld). */
redisReply *server_ask(struct server *s, const char *format, ...); /* free with freeReplyObject */
void server_do(struct server *s, const char *format, ...); /* an error reply fails */
long long server_int(struct server *s, const char *format, ...); /* integer or number text */
/* Writes the reply as text ("" for nil) and returns @buf. */
const char *server_text(struct server *s, char *buf, size_t len, const char *format, ...);

/* A connection of its own, logged in. */
redisContext *server_connect(const struct server *s);

/* How often @command was called since the last server_forget_calls(). */
long long server_calls(struct server *s, const char *command);
void server_forget_calls(struct server *s);

/* Ends connections whose CLIENT LIST line has @name as a part of its name. Returns how many. */
int server_drop_clients(struct server *s, const char *name);

/* What MONITOR shows, collected by a thread. */
struct monitor;
struct monitor *monitor_start(struct server *s);
/* Lines since the start or the last monitor_clear() that contain @part (NULL: all). */
size_t monitor_count(struct monitor *m, const char *part);
/* To stderr, newest first, for the log of a failed test. */
void monitor_print(struct monitor *m);
void monitor_clear(struct monitor *m);
void monitor_stop(struct monitor *m);

#endif
