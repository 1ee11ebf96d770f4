/* One non-blocking byte stream: plain or TLS, behind one small table of functions. Knows no loop:
 * its owner watches @fd for what @want says. */
#ifndef PAWLI_NET_STREAM_H
#define PAWLI_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct pawli_stream;

struct pawli_stream_ops {
    /* Go on with setting up: 1 usable, 0 wait for @want, negative failure. */
    int (*step)(struct pawli_stream *stream);
    /* Bytes moved, 0: wait for @want; PAWL_ECONNECT or PAWL_ETLS: over, @reason says why. */
    ssize_t (*read)(struct pawli_stream *stream, void *data, size_t len);
    ssize_t (*write)(struct pawli_stream *stream, const void *data, size_t len);
    void (*done)(struct pawli_stream *stream);
};

struct pawli_stream {
    const struct pawli_stream_ops *ops;
    int fd;
    unsigned want;    /* PAWLI_IN, PAWLI_OUT: what the last call that moved nothing waits for */
    void *tls;        /* tls.c's */
    char reason[256]; /* of the last failure, for people */
};

void pawli_stream_init(struct pawli_stream *stream);
/* Begin to connect: TCP with TCP_NODELAY and keepalive, or a unix socket. Then call step.
 * 0 or a failure. */
int pawli_stream_open(struct pawli_stream *stream, const struct sockaddr *addr, socklen_t len);
/* Close. @reset: with RST, so that nothing sent to it late is ever taken for an answer. */
void pawli_stream_close(struct pawli_stream *stream, bool reset);

static inline bool pawli_stream_is_open(const struct pawli_stream *stream)
{
    return stream->fd >= 0;
}

static inline int pawli_stream_step(struct pawli_stream *stream)
{
    return stream->ops->step(stream);
}

static inline ssize_t pawli_stream_read(struct pawli_stream *stream, void *data, size_t len)
{
    return stream->ops->read(stream, data, len);
}

static inline ssize_t pawli_stream_write(struct pawli_stream *stream, const void *data, size_t len)
{
    return stream->ops->write(stream, data, len);
}

#endif
