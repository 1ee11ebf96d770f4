/* A growing byte buffer with a read position, for bytes on their way to a socket. */
#ifndef PAWLI_UTIL_BUF_H
#define PAWLI_UTIL_BUF_H

#include <stddef.h>

struct pawli_buf {
    char *data;
    size_t start; /* first byte not yet taken */
    size_t end;
    size_t room;
};

void pawli_buf_init(struct pawli_buf *buf);
void pawli_buf_done(struct pawli_buf *buf);
/* 0 or PAWL_ENOMEM; on failure the buffer is unchanged. */
int pawli_buf_append(struct pawli_buf *buf, const void *data, size_t len);
/* Make room for @len more bytes and return where they go, NULL if out of memory; then say with
 * pawli_buf_grew() how many were written. */
char *pawli_buf_reserve(struct pawli_buf *buf, size_t len);
void pawli_buf_grew(struct pawli_buf *buf, size_t len);
void pawli_buf_take(struct pawli_buf *buf, size_t len);
void pawli_buf_clear(struct pawli_buf *buf); /* empty, keeps a moderate allocation */

static inline size_t pawli_buf_len(const struct pawli_buf *buf)
{
    return buf->end - buf->start;
}

/* NULL if nothing was ever written. */
static inline const char *pawli_buf_data(const struct pawli_buf *buf)
{
    return buf->data == NULL ? NULL : buf->data + buf->start;
}

#endif
