/* MONITOR, collected by a thread; see server.h. */
#include "lib/server.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

struct line {
    struct line *next;
    char text[];
};

struct monitor {
    redisContext *connection;
    pthread_t thread;
    pthread_mutex_t mu;
    struct line *lines; /* newest first */
};

static void *collect(void *arg)
{
    struct monitor *m = arg;
    void *reply;

    while (redisGetReply(m->connection, &reply) == REDIS_OK) {
        const redisReply *r = reply;
        size_t len = r->str == NULL ? 0 : r->len;
        struct line *line = malloc(sizeof *line + len + 1);

        if (line != NULL) {
            if (len > 0)
                memcpy(line->text, r->str, len);
            line->text[len] = '\0';
            pthread_mutex_lock(&m->mu);
            line->next = m->lines;
            m->lines = line;
            pthread_mutex_unlock(&m->mu);
        }
        freeReplyObject(reply);
    }
    return NULL;
}

struct monitor *monitor_start(struct server *s)
{
    struct monitor *m = calloc(1, sizeof *m);
    redisReply *r;

    assert_non_null(m);
    m->connection = server_connect(s);
    redisSetTimeout(m->connection, (struct timeval){ .tv_sec = 0 }); /* silence is fine here */
    r = redisCommand(m->connection, "MONITOR");
    assert_non_null(r);
    freeReplyObject(r);
    pthread_mutex_init(&m->mu, NULL);
    assert_int_equal(pthread_create(&m->thread, NULL, collect, m), 0);
    return m;
}

size_t monitor_count(struct monitor *m, const char *part)
{
    size_t n = 0;

    pthread_mutex_lock(&m->mu);
    for (const struct line *line = m->lines; line != NULL; line = line->next)
        n += part == NULL || strstr(line->text, part) != NULL;
    pthread_mutex_unlock(&m->mu);
    return n;
}

void monitor_print(struct monitor *m)
{
    pthread_mutex_lock(&m->mu);
    for (const struct line *line = m->lines; line != NULL; line = line->next)
        print_error("%s\n", line->text);
    pthread_mutex_unlock(&m->mu);
}

void monitor_clear(struct monitor *m)
{
    pthread_mutex_lock(&m->mu);
    while (m->lines != NULL) {
        struct line *line = m->lines;

        m->lines = line->next;
        free(line);
    }
    pthread_mutex_unlock(&m->mu);
}

void monitor_stop(struct monitor *m)
{
    shutdown(m->connection->fd, SHUT_RDWR);
    pthread_join(m->thread, NULL);
    redisFree(m->connection);
    monitor_clear(m);
    pthread_mutex_destroy(&m->mu);
    free(m);
}
