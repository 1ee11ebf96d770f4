/* A relay between a client and a server; see relay.h. One thread owns all sockets; the test only
 * changes the wishes under the mutex and wakes it. */
#include "lib/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/patience.h"

#define PAIRS_MAX 512

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    size_t len;
    size_t at;
    char bytes[];
};

struct stream {
    struct chunk *first;
    struct chunk **end;
    bool held; /* relay_hold_present() */
    bool ended; /* its source has closed */
};

struct pair {
    int fd
        [2]; /* by the way that ends there: [RELAY_UP] is the server's, [RELAY_DOWN] the client's */
    struct stream stream[2];
};

struct wishes {
    bool hold;
    bool drop;
    int delay_min_ms;
    int delay_max_ms;
    bool cut;
    size_t cut_after;
    size_t bytes;
};

struct relay {
    char path[108];
    char url[64];
    int port;
    int listener;
    int wake;
    pthread_t thread;
    pthread_mutex_t mu;
    bool stop;
    bool break_all;
    bool refuse;
    bool ignore;
    char answer_part[64];
    char answer_text[512];
    int answer_times;
    char replace_from[64];
    char replace_to[64];
    unsigned n_accepted;
    unsigned seed;
    struct wishes wishes[2];
    struct pair *pairs[PAIRS_MAX];
    size_t n_pairs;
};

/* ---- bytes ---- */

static void append(struct stream *stream, const void *bytes, size_t len, int64_t due_ms)
{
    struct chunk *c = malloc(sizeof *c + len);

    if (c == NULL)
        abort();
    c->next = NULL;
    c->due_ms = due_ms;
    c->len = len;
    c->at = 0;
    memcpy(c->bytes, bytes, len);
    *stream->end = c;
    stream->end = &c->next;
}

static void clear(struct stream *stream)
{
    while (stream->first != NULL) {
        struct chunk *c = stream->first;

        stream->first = c->next;
        free(c);
    }
    stream->end = &stream->first;
}

static void pair_free(struct relay *r, size_t i)
{
    struct pair *p = r->pairs[i];
    /* With a reset, as a crash or a middle box would do it. */
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };

    for (int way = 0; way < 2; way++) {
        clear(&p->stream[way]);
        if (p->fd[way] < 0)
            continue;
        setsockopt(p->fd[way], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(p->fd[way]);
    }
    free(p);
    r->pairs[i] = r->pairs[--r->n_pairs];
}

/* True if the chunk was answered here. */
static bool answered_here(struct relay *r, struct pair *p, char *bytes, size_t len)
{
    if (r->answer_times == 0 || memmem(bytes, len, r->answer_part, strlen(r->answer_part)) == NULL)
        return false;
    r->answer_times--;
    append(&p->stream[RELAY_DOWN], r->answer_text, strlen(r->answer_text), 0);
    return true;
}

static void replace(const struct relay *r, char *bytes, size_t len)
{
    size_t n = strlen(r->replace_from);
    char *at = n == 0 ? NULL : memmem(bytes, len, r->replace_from, n);

    if (at != NULL)
        memcpy(at, r->replace_to, n);
}

static void take_in(struct relay *r, struct pair *p, enum relay_way way)
{
    struct wishes *w = &r->wishes[way];
    char bytes[65536];
    ssize_t n = recv(p->fd[!way], bytes, sizeof bytes, MSG_DONTWAIT);
    int64_t due_ms = now_ms();

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        p->stream[way].ended = true;
        return;
    }
    if (w->delay_max_ms > 0)
        due_ms += w->delay_min_ms + rand_r(&r->seed) % (w->delay_max_ms - w->delay_min_ms + 1);
    if (w->drop || (way == RELAY_UP && answered_here(r, p, bytes, (size_t)n)))
        return;
    if (way == RELAY_DOWN)
        replace(r, bytes, (size_t)n);
    append(&p->stream[way], bytes, (size_t)n, due_ms);
}

static bool may_pass(const struct relay *r, const struct pair *p, enum relay_way way)
{
    return !r->wishes[way].hold && !p->stream[way].held && p->stream[way].first != NULL &&
           p->fd[way] >= 0;
}

/* False: break the pair off. */
static bool pass_on(struct relay *r, struct pair *p, enum relay_way way, int64_t at_ms)
{
    struct wishes *w = &r->wishes[way];
    struct stream *stream = &p->stream[way];

    while (may_pass(r, p, way) && stream->first->due_ms <= at_ms) {
        struct chunk *c = stream->first;
        size_t len = c->len - c->at;
        ssize_t n;

        if (w->cut && len > w->cut_after)
            len = w->cut_after;
        n = len == 0 ? 0 : send(p->fd[way], c->bytes + c->at, len, MSG_NOSIGNAL);
        if (n < 0)
            return false;
        c->at += (size_t)n;
        w->bytes += (size_t)n;
        if (w->cut) {
            w->cut_after -= (size_t)n;
            if (w->cut_after == 0) {
                w->cut = false;
                return false;
            }
        }
        if (c->at < c->len)
            return true;
        stream->first = c->next;
        if (stream->first == NULL)
            stream->end = &stream->first;
        free(c);
    }
    return true;
}

/* A side that closed: what it sent before still arrives, then the other side is closed too. */
static bool over(const struct pair *p)
{
    return (p->stream[RELAY_UP].ended && p->stream[RELAY_UP].first == NULL) ||
           (p->stream[RELAY_DOWN].ended && p->stream[RELAY_DOWN].first == NULL);
}

/* ---- connections ---- */

static int connect_up(const struct relay *r)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, r->path, sizeof r->path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void take_client(struct relay *r)
{
    int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
    struct pair *p;

    if (fd < 0)
        return;
    r->n_accepted++;
    p = r->refuse || r->n_pairs == PAIRS_MAX ? NULL : calloc(1, sizeof *p);
    if (p == NULL) {
        close(fd);
        return;
    }
    p->fd[RELAY_DOWN] = fd;
    p->fd[RELAY_UP] = r->ignore ? -1 : connect_up(r);
    for (int way = 0; way < 2; way++)
        p->stream[way].end = &p->stream[way].first;
    r->pairs[r->n_pairs++] = p;
    if (!r->ignore && p->fd[RELAY_UP] < 0)
        pair_free(r, r->n_pairs - 1);
}

static int next_due_ms(const struct relay *r)
{
    int64_t at_ms = now_ms();
    int64_t next_ms = at_ms + 60000;

    for (size_t i = 0; i < r->n_pairs; i++)
        for (int way = 0; way < 2; way++)
            if (may_pass(r, r->pairs[i], (enum relay_way)way) &&
                r->pairs[i]->stream[way].first->due_ms < next_ms)
                next_ms = r->pairs[i]->stream[way].first->due_ms;
    return next_ms <= at_ms ? 0 : (int)(next_ms - at_ms);
}

static void turn(struct relay *r, const struct pollfd *polled, size_t n_polled)
{
    int64_t at_ms = now_ms();

    /* Downwards, because a pair that goes is replaced by the last one. */
    for (size_t i = r->n_pairs; i-- > 0;) {
        struct pair *p = r->pairs[i];
        bool ok = !r->break_all;

        if (ok && i < n_polled && polled[2 * i + 1].revents != 0)
            take_in(r, p, RELAY_UP);
        if (ok && i < n_polled && polled[2 * i].revents != 0)
            take_in(r, p, RELAY_DOWN);
        ok = ok && pass_on(r, p, RELAY_UP, at_ms) && pass_on(r, p, RELAY_DOWN, at_ms);
        if (!ok || over(p))
            pair_free(r, i);
    }
    r->break_all = false;
}

static size_t fill(const struct relay *r, struct pollfd *polled)
{
    polled[0] = (struct pollfd){ .fd = r->wake, .events = POLLIN };
    polled[1] = (struct pollfd){ .fd = r->listener, .events = POLLIN };
    for (size_t i = 0; i < r->n_pairs; i++)
        for (int way = 0; way < 2; way++) {
            const struct pair *p = r->pairs[i];
            /* A source that has closed is not asked again. */
            int fd = p->stream[!way].ended ? -1 : p->fd[way];

            polled[2 + 2 * i + (size_t)way] = (struct pollfd){ .fd = fd, .events = POLLIN };
        }
    return r->n_pairs;
}

static void *relay_main(void *arg)
{
    static _Thread_local struct pollfd polled[2 + 2 * PAIRS_MAX];
    struct relay *r = arg;
    uint64_t n;

    pthread_mutex_lock(&r->mu);
    while (!r->stop) {
        size_t n_pairs = fill(r, polled);
        int wait_ms = next_due_ms(r);

        pthread_mutex_unlock(&r->mu);
        (void)poll(polled, 2 + 2 * n_pairs, wait_ms);
        pthread_mutex_lock(&r->mu);
        if (polled[0].revents != 0)
            while (read(r->wake, &n, sizeof n) < 0 && errno == EINTR)
                ;
        turn(r, polled + 2, n_pairs);
        if (polled[1].revents != 0)
            take_client(r);
    }
    pthread_mutex_unlock(&r->mu);
    return NULL;
}

/* ---- for the test ---- */

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
        pair_free(r, r->n_pairs - 1);
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
