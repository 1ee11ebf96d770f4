/* What a test asks of a relay; see relay.h. Changes wishes under the mutex, touches no socket. */
#include "lib/relay_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct relay *relay_start(const char *path)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof address;
    struct relay *r = calloc(1, sizeof *r);

    assert_non_null(r);
    snprintf(r->path, sizeof r->path, "%s", path);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r->wake = eventfd(0, EFD_CLOEXEC);
    if (r->listener < 0 || r->wake < 0 ||
        bind(r->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(r->listener, 128) != 0 ||
        getsockname(r->listener, (struct sockaddr *)&address, &len) != 0)
        fail_msg("no relay: %s", strerror(errno));
    r->port = ntohs(address.sin_port);
    r->seed = (unsigned)r->port;
    snprintf(r->url, sizeof r->url, "redis://127.0.0.1:%d", r->port);
    pthread_mutex_init(&r->mu, NULL);
    assert_int_equal(pthread_create(&r->thread, NULL, relay_main, r), 0);
    return r;
}

static void unlock(struct relay *r)
{
    const uint64_t one = 1;

    while (write(r->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_mutex_unlock(&r->mu);
}

void relay_free(struct relay *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->mu);
    r->stop = true;
    unlock(r);
    pthread_join(r->thread, NULL);
    while (r->n_pairs > 0)
        relay_end_pair(r, r->n_pairs - 1);
    close(r->listener);
    close(r->wake);
    pthread_mutex_destroy(&r->mu);
    free(r);
}

int relay_port(const struct relay *r)
{
    return r->port;
}

const char *relay_url(const struct relay *r)
{
    return r->url;
}

void relay_hold(struct relay *r, enum relay_way way, bool on)
{
    pthread_mutex_lock(&r->mu);
    r->wishes[way].hold = on;
    unlock(r);
}

void relay_hold_present(struct relay *r, enum relay_way way)
{
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_pairs; i++)
        r->pairs[i]->stream[way].held = true;
    unlock(r);
}

void relay_pass_held(struct relay *r)
{
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_pairs; i++)
        for (int way = 0; way < 2; way++)
            r->pairs[i]->stream[way].held = false;
    unlock(r);
}

void relay_drop(struct relay *r, enum relay_way way, bool on)
{
    pthread_mutex_lock(&r->mu);
    r->wishes[way].drop = on;
    unlock(r);
}

void relay_delay(struct relay *r, enum relay_way way, int min_ms, int max_ms)
{
    pthread_mutex_lock(&r->mu);
    r->wishes[way].delay_min_ms = min_ms;
    r->wishes[way].delay_max_ms = max_ms;
    unlock(r);
}

void relay_cut_after(struct relay *r, enum relay_way way, size_t n)
{
    pthread_mutex_lock(&r->mu);
    r->wishes[way].cut = true;
    r->wishes[way].cut_after = n;
    unlock(r);
}

void relay_break(struct relay *r)
{
    pthread_mutex_lock(&r->mu);
    r->break_all = true;
    unlock(r);
}

void relay_refuse(struct relay *r, bool on)
{
    pthread_mutex_lock(&r->mu);
    r->refuse = on;
    unlock(r);
}

void relay_ignore(struct relay *r, bool on)
{
    pthread_mutex_lock(&r->mu);
    r->ignore = on;
    unlock(r);
}

void relay_answer(struct relay *r, const char *part, const char *text, int times)
{
    pthread_mutex_lock(&r->mu);
    snprintf(r->answer_part, sizeof r->answer_part, "%s", part);
    snprintf(r->answer_text, sizeof r->answer_text, "%s", text);
    r->answer_times = times;
    unlock(r);
}

void relay_replace(struct relay *r, const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    pthread_mutex_lock(&r->mu);
    snprintf(r->replace_from, sizeof r->replace_from, "%s", from);
    snprintf(r->replace_to, sizeof r->replace_to, "%s", to);
    unlock(r);
}

size_t relay_bytes(struct relay *r, enum relay_way way)
{
    size_t n;

    pthread_mutex_lock(&r->mu);
    n = r->wishes[way].bytes;
    pthread_mutex_unlock(&r->mu);
    return n;
}

size_t relay_held(struct relay *r)
{
    size_t n = 0;

    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_pairs; i++)
        for (int way = 0; way < 2; way++)
            for (const struct chunk *c = r->pairs[i]->stream[way].first; c != NULL; c = c->next)
                n += c->len - c->at;
    pthread_mutex_unlock(&r->mu);
    return n;
}

unsigned relay_connections(struct relay *r)
{
    unsigned n;

    pthread_mutex_lock(&r->mu);
    n = r->n_accepted;
    pthread_mutex_unlock(&r->mu);
    return n;
}

unsigned relay_open(struct relay *r)
{
    unsigned n = 0;

    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_pairs; i++)
        n += !r->pairs[i]->stream[RELAY_UP].ended;
    pthread_mutex_unlock(&r->mu);
    return n;
}
