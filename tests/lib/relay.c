/* The relay's thread, which owns all sockets; see relay.h. The test only changes the wishes under
 * the mutex and wakes it. */
#include "lib/relay_inside.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/patience.h"

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

void relay_end_pair(struct relay *r, size_t i)
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
        relay_end_pair(r, r->n_pairs - 1);
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
            relay_end_pair(r, i);
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

void *relay_main(void *relay)
{
    static _Thread_local struct pollfd polled[2 + 2 * PAIRS_MAX];
    struct relay *r = relay;
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
