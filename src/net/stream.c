/* Plain sockets; see stream.h. Must not know what is said over them, nor raise SIGPIPE. */
#include "net/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pawl.h>

#include "net/loop.h"

static int fail_errno(struct pawli_stream *stream, const char *what, int err)
{
    char text[128];

    snprintf(stream->reason, sizeof stream->reason, "%s: %s", what,
             strerror_r(err, text, sizeof text));
    return PAWL_ECONNECT;
}

static int plain_step(struct pawli_stream *stream)
{
    int err = 0;
    socklen_t len = sizeof err;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;

    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    if (err != 0)
        return fail_errno(stream, "connect", err);
    if (getpeername(stream->fd, (struct sockaddr *)&peer, &peer_len) == 0)
        return 1;
    if (errno != ENOTCONN)
        return fail_errno(stream, "connect", errno);
    stream->want = PAWLI_OUT;
    return 0;
}

static ssize_t plain_read(struct pawli_stream *stream, void *data, size_t len)
{
    ssize_t n;

    do {
        n = recv(stream->fd, data, len, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        stream->want = PAWLI_IN;
        return 0;
    }
    if (n < 0)
        return fail_errno(stream, "read", errno);
    snprintf(stream->reason, sizeof stream->reason, "the server closed the connection");
    return PAWL_ECONNECT;
}

static ssize_t plain_write(struct pawli_stream *stream, const void *data, size_t len)
{
    ssize_t n;

    do {
        n = send(stream->fd, data, len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        stream->want = PAWLI_OUT;
        return 0;
    }
    return fail_errno(stream, "write", errno);
}

static void plain_done(struct pawli_stream *stream)
{
    (void)stream;
}

static const struct pawli_stream_ops plain_ops = {
    .step = plain_step,
    .read = plain_read,
    .write = plain_write,
    .done = plain_done,
};

void pawli_stream_init(struct pawli_stream *stream)
{
    memset(stream, 0, sizeof *stream);
    stream->ops = &plain_ops;
    stream->fd = -1;
}

/* Best effort: a peer that vanished without a word is noticed by the command deadline anyway. */
static void tune_tcp(int fd)
{
    const int on = 1;
    const int idle_s = 15;
    const int interval_s = 5;
    const int probes = 3;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

int pawli_stream_open(struct pawli_stream *stream, const struct sockaddr *addr, socklen_t len)
{
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int err;

    if (fd < 0) {
        fail_errno(stream, "socket", errno);
        return PAWL_ESYSTEM;
    }
    if (addr->sa_family != AF_UNIX)
        tune_tcp(fd);
    if (connect(fd, addr, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        err = errno;
        close(fd);
        /* A unix socket whose backlog is full answers EAGAIN: as good as refused. */
        return fail_errno(stream, "connect", err);
    }
    stream->ops = &plain_ops;
    stream->fd = fd;
    stream->want = PAWLI_OUT;
    stream->reason[0] = '\0';
    return 0;
}

void pawli_stream_close(struct pawli_stream *stream, bool reset)
{
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    stream->ops->done(stream);
    stream->ops = &plain_ops;
    if (stream->fd < 0)
        return;
    if (reset)
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(stream->fd);
    stream->fd = -1;
}
