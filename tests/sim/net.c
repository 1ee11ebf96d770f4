/* The network: connections between a client's stream and the server, with latency, jitter, cuts at
 * any byte, partitions, and what a reset leaves behind. Stands in for src/net/stream.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "net/stream.h"
#include "sim.h"

#define FIRST_FD 1000
#define TO_SERVER 0
#define TO_CLIENT 1

enum conn_state { CONNECTING, OPEN, BROKEN };

enum packet_kind {
    DATA,
    CLOSE,        /* by the client: what the server has not read yet is still read */
    RESET,        /* the other end learns that it is over */
};

struct packet {
    struct packet *next;
    enum packet_kind kind;
    size_t len;
    char data[];
};

struct sim_conn {
    struct sim_conn *next;
    struct sim_client *client;
    unsigned life;          /* of the client's process */
    int fd;
    enum conn_state state;  /* as the client sees it */
    bool closed;            /* by the client */
    bool attached;          /* at the server */
    bool gone;              /* nothing more reaches the server */
    bool over;              /* cut: nothing more leaves either end */
    bool silent;            /* nothing more reaches the client, not even that it is over */
    struct fr_out in;       /* arrived at the client, not yet read */
    size_t n_read;
    struct fr_conn peer;
    int64_t last_ns[2];     /* arrivals keep their order */
    struct packet *first[2];
    int64_t in_flight;      /* events that name it */
};

static struct sim_conn *find(const struct sim_world *w, int fd)
{
    struct sim_conn *conn = w->conns;

    while (conn != NULL && conn->fd != fd)
        conn = conn->next;
    return conn;
}

static int64_t latency(struct sim_conn *conn)
{
    struct sim_world *w = conn->client->w;
    int64_t base_ns = w->plan.latency_ns + conn->client->slow_ns;
    int64_t ns = base_ns / 2 + sim_below(&w->net_rng, base_ns + 1);

    if (!w->calm && sim_chance(&w->net_rng, 10000)) /* a lost segment, sent again */
        ns += 200 * SIM_MS;
    return ns;
}

static int64_t arrival(struct sim_conn *conn, int direction)
{
    int64_t at_ns = conn->client->w->now_ns + latency(conn);

    if (at_ns < conn->client->blocked_until_ns[direction])
        at_ns = conn->client->blocked_until_ns[direction] + latency(conn);
    if (at_ns < conn->last_ns[direction])
        at_ns = conn->last_ns[direction];
    conn->last_ns[direction] = at_ns;
    return at_ns;
}

static void wake(struct sim_conn *conn)
{
    struct sim_world *w = conn->client->w;

    if (conn->client->alive && conn->life == conn->client->life && !conn->closed)
        sim_loop_wake(conn->client, w->now_ns + sim_between(&w->net_rng, 1000, 60 * SIM_US));
}

static void detach(struct sim_world *w, struct sim_conn *conn)
{
    if (conn->attached)
        fr_disconnect(&w->server, &conn->peer);
    conn->attached = false;
}

static void break_it(struct sim_conn *conn)
{
    if (conn->silent || conn->state == BROKEN)
        return;
    conn->state = BROKEN;
    wake(conn);
}

/* ---- what arrives ---- */

static bool held_up(struct sim_world *w, struct sim_conn *conn, int direction, sim_event_fn again,
                    void *arg, int64_t number)
{
    if (conn->client->blocked_until_ns[direction] <= w->now_ns)
        return false;
    sim_at(w, arrival(conn, direction), again, arg, number);
    return true;
}

static void connected(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_conn *conn = arg;

    if (held_up(w, conn, TO_CLIENT, connected, arg, number))
        return;
    conn->in_flight--;
    if (conn->state == CONNECTING)
        conn->state = w->server_down && !conn->attached ? BROKEN : OPEN;
    wake(conn);
}

static void syn(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_conn *conn = arg;

    if (held_up(w, conn, TO_SERVER, syn, arg, number))
        return;
    /* The kernel accepts for a server that is stopped. */
    if (!w->server_down && !conn->closed) {
        fr_connect(&w->server, &conn->peer);
        conn->attached = true;
    }
    sim_at(w, arrival(conn, TO_CLIENT), connected, conn, 0);
}

static void at_server(struct sim_conn *conn, const struct packet *packet)
{
    struct sim_world *w = conn->client->w;

    switch (packet->kind) {
    case DATA:
        if (conn->attached && !conn->gone) {
            fr_append(&conn->peer.in, packet->data, packet->len);
            sim_server_wake(w);
        }
        break;
    case CLOSE:
        w->server.db.now_us = sim_server_us(w);
        while (conn->attached && !w->server_down && fr_execute_one(&w->server, &conn->peer))
            ;
        sim_conns_send(w);
        detach(w, conn);
        break;
    case RESET:
        detach(w, conn);
        break;
    }
}

static void at_client(struct sim_conn *conn, const struct packet *packet)
{
    if (packet->kind != DATA) {
        break_it(conn);
    } else if (!conn->closed && conn->state != BROKEN && !conn->silent) {
        fr_append(&conn->in, packet->data, packet->len);
        wake(conn);
    }
}

/* One event for each packet, but what is delivered is the first in line: a stream keeps its order,
 * whatever holds it up. */
static void deliver(struct sim_world *w, void *arg, int64_t direction)
{
    struct sim_conn *conn = arg;
    struct packet *packet = conn->first[direction];

    if (held_up(w, conn, (int)direction, deliver, arg, direction))
        return;
    conn->first[direction] = packet->next;
    conn->in_flight--;
    if (direction == TO_SERVER)
        at_server(conn, packet);
    else
        at_client(conn, packet);
    free(packet);
}

/* ---- sending, with cuts ---- */

static void send_packet(struct sim_conn *conn, int direction, enum packet_kind kind,
                        const char *data, size_t len)
{
    struct packet *packet = malloc(sizeof *packet + len);
    struct packet **last = &conn->first[direction];

    if (packet == NULL)
        abort();
    packet->next = NULL;
    packet->kind = kind;
    packet->len = len;
    if (len > 0)
        memcpy(packet->data, data, len);
    while (*last != NULL)
        last = &(*last)->next;
    *last = packet;
    conn->in_flight++;
    sim_at(conn->client->w, arrival(conn, direction), deliver, conn, direction);
}

/* The connection breaks now; what is on its way to the server still arrives. */
static void cut(struct sim_conn *conn, int direction)
{
    sim_log(conn->client->w, "cut", conn->client->number, direction);
    conn->client->cut_in = -1;
    if (direction == TO_CLIENT)
        conn->gone = true;
    send_packet(conn, TO_SERVER, RESET, NULL, 0);
    if (conn->client->cut_silent)
        conn->silent = true;
    send_packet(conn, TO_CLIENT, RESET, NULL, 0);
}

/* Counts down to the byte at which the connection breaks; the two directions share the count. */
static void carry(struct sim_conn *conn, int direction, const char *data, size_t len)
{
    struct sim_client *client = conn->client;

    if (client->cut_in >= 0 && (int64_t)len >= client->cut_in) {
        if (client->cut_in > 0)
            send_packet(conn, direction, DATA, data, (size_t)client->cut_in);
        cut(conn, direction);
        conn->over = true; /* the rest never leaves */
        return;
    }
    if (client->cut_in >= 0)
        client->cut_in -= (int64_t)len;
    if (len > 0 && !conn->over)
        send_packet(conn, direction, DATA, data, len);
}

void sim_conns_send(struct sim_world *w)
{
    for (struct sim_conn *conn = w->conns; conn != NULL; conn = conn->next) {
        if (!conn->attached || conn->peer.out.len == 0)
            continue;
        if (!conn->closed)
            carry(conn, TO_CLIENT, conn->peer.out.data, conn->peer.out.len);
        conn->peer.out.len = 0;
    }
}

static bool has_frame(const struct sim_conn *conn)
{
    return conn->attached && conn->peer.in.len > 0 && fr_has_command(&conn->peer);
}

/* In a fair order: the connections take turns. */
struct sim_conn *sim_conn_with_input(struct sim_world *w)
{
    struct sim_conn *last = NULL;

    for (struct sim_conn *conn = w->conns; conn != NULL; conn = conn->next)
        if (has_frame(conn) &&
            (last == NULL || conn->last_ns[TO_SERVER] < last->last_ns[TO_SERVER]))
            last = conn;
    return last;
}

struct fr_conn *sim_conn_peer(struct sim_conn *conn)
{
    return &conn->peer;
}

/* ---- connections come and go ---- */

static void sweep(struct sim_world *w)
{
    struct sim_conn **place = &w->conns;

    while (*place != NULL) {
        struct sim_conn *conn = *place;

        if (conn->closed && !conn->attached && conn->in_flight == 0) {
            *place = conn->next;
            free(conn->in.data);
            free(conn);
        } else {
            place = &conn->next;
        }
    }
}

void sim_conns_break(struct sim_world *w)
{
    for (struct sim_conn *conn = w->conns; conn != NULL; conn = conn->next) {
        detach(w, conn);
        conn->gone = true;
        if (!conn->closed && conn->state != BROKEN)
            send_packet(conn, TO_CLIENT, RESET, NULL, 0);
    }
}

void sim_client_disconnect(struct sim_client *client, bool reset)
{
    struct sim_world *w = client->w;

    for (struct sim_conn *conn = w->conns; conn != NULL; conn = conn->next) {
        if (conn->client != client || conn->closed)
            continue;
        conn->closed = true;
        send_packet(conn, TO_SERVER, reset ? RESET : CLOSE, NULL, 0);
    }
}

static void drop_packets(struct sim_conn *conn)
{
    for (int i = 0; i < 2; i++)
        while (conn->first[i] != NULL) {
            struct packet *packet = conn->first[i];

            conn->first[i] = packet->next;
            free(packet);
        }
}

void sim_conns_free(struct sim_world *w)
{
    while (w->conns != NULL) {
        struct sim_conn *conn = w->conns;

        w->conns = conn->next;
        detach(w, conn);
        drop_packets(conn);
        free(conn->in.data);
        free(conn);
    }
    w->n_events = 0;
}

unsigned sim_conn_ready(const struct sim_world *w, int fd)
{
    const struct sim_conn *conn = find(w, fd);

    if (conn == NULL || conn->state == CONNECTING)
        return 0;
    if (conn->state == BROKEN)
        return PAWLI_IN | PAWLI_OUT;
    return PAWLI_OUT | (conn->in.len > conn->n_read ? PAWLI_IN : 0u);
}

/* ---- the stream ---- */

static ssize_t over(struct pawli_stream *stream, const char *why)
{
    (void)snprintf(stream->reason, sizeof stream->reason, "%s", why);
    return PAWL_ECONNECT;
}

static int stream_step(struct pawli_stream *stream)
{
    const struct sim_conn *conn = find(sim, stream->fd);

    if (conn == NULL || conn->state == BROKEN)
        return (int)over(stream, "connect: refused");
    stream->want = PAWLI_OUT;
    return conn->state == OPEN;
}

static ssize_t stream_read(struct pawli_stream *stream, void *data, size_t len)
{
    struct sim_conn *conn = find(sim, stream->fd);
    size_t n;

    if (conn == NULL) /* of a process that is gone */
        return over(stream, "closed");
    n = conn->in.len - conn->n_read;
    if (n > len)
        n = len;
    /* Sometimes the kernel gives less than there is. */
    if (n > 1 && sim_chance(&sim->net_rng, 50000))
        n = (size_t)sim_between(&sim->net_rng, 1, (int64_t)n);
    if (n > 0) {
        memcpy(data, conn->in.data + conn->n_read, n);
        conn->n_read += n;
        if (conn->n_read == conn->in.len)
            conn->n_read = conn->in.len = 0;
        return (ssize_t)n;
    }
    if (conn->state == BROKEN)
        return over(stream, "the server closed the connection");
    stream->want = PAWLI_IN;
    return 0;
}

static ssize_t stream_write(struct pawli_stream *stream, const void *data, size_t len)
{
    struct sim_conn *conn = find(sim, stream->fd);

    if (conn == NULL || conn->state == BROKEN)
        return over(stream, "write: reset");
    if (len > 1 && sim_chance(&sim->net_rng, 20000))
        len = (size_t)sim_between(&sim->net_rng, 1, (int64_t)len);
    if (!conn->client->buried)
        carry(conn, TO_SERVER, data, len);
    return (ssize_t)len;
}

static void stream_done(struct pawli_stream *stream)
{
    (void)stream;
}

static const struct pawli_stream_ops stream_ops = {
    .step = stream_step,
    .read = stream_read,
    .write = stream_write,
    .done = stream_done,
};

void pawli_stream_init(struct pawli_stream *stream)
{
    memset(stream, 0, sizeof *stream);
    stream->ops = &stream_ops;
    stream->fd = -1;
}

int pawli_stream_open(struct pawli_stream *stream, const struct sockaddr *addr, socklen_t len)
{
    struct sim_world *w = sim;
    struct sim_conn *conn = calloc(1, sizeof *conn);

    (void)addr;
    (void)len;
    if (conn == NULL)
        abort();
    sweep(w);
    conn->client = w->current;
    conn->life = conn->client->life;
    conn->fd = FIRST_FD + w->last_fd++;
    conn->next = w->conns;
    w->conns = conn;
    stream->ops = &stream_ops;
    stream->fd = conn->fd;
    stream->want = PAWLI_OUT;
    stream->reason[0] = '\0';
    if (conn->client->buried) {
        conn->state = BROKEN;
        return 0;
    }
    sim_log(w, "connect", conn->client->number, conn->fd);
    conn->in_flight++;
    sim_at(w, arrival(conn, TO_SERVER), syn, conn, 0);
    return 0;
}

void pawli_stream_close(struct pawli_stream *stream, bool reset)
{
    struct sim_world *w = sim;
    struct sim_conn *conn = stream->fd < 0 ? NULL : find(w, stream->fd);

    stream->fd = -1;
    if (conn == NULL || conn->closed)
        return;
    conn->closed = true;
    if (conn->client->buried) {
        /* The kernel told the server when the process ended. */
        return;
    }
    if (reset && sim_chance(&w->net_rng, w->plan.late))
        reset = false;
    sim_log(w, "close", conn->client->number, reset);
    if (!reset) /* or its reset is lost: the server runs what it has, and notices later */
        conn->last_ns[TO_SERVER] = w->now_ns + sim_below(&w->net_rng, 3 * SIM_SECOND);
    send_packet(conn, TO_SERVER, reset ? RESET : CLOSE, NULL, 0);
}
