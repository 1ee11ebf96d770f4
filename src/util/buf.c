/* A growing byte buffer, see buf.h. Touches nothing but memory. */
#include "util/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pawl.h>

#define ROOM_FIRST ((size_t)512)
#define ROOM_KEPT ((size_t)65536) /* an empty buffer keeps no more than that */

void pawli_buf_init(struct pawli_buf *buf)
{
    memset(buf, 0, sizeof *buf);
}

void pawli_buf_done(struct pawli_buf *buf)
{
    /* A login may have passed through. */
    if (buf->data != NULL)
        explicit_bzero(buf->data, buf->room);
    free(buf->data);
    pawli_buf_init(buf);
}

/* Move what is not yet taken into a larger piece of memory, and leave no copy behind. */
static int grow(struct pawli_buf *buf, size_t need)
{
    size_t len = pawli_buf_len(buf);
    size_t room = buf->room < ROOM_FIRST ? ROOM_FIRST : buf->room;
    char *data;

    while (room < need) {
        if (room > SIZE_MAX / 2)
            return PAWL_ENOMEM;
        room *= 2;
    }
    data = malloc(room);
    if (data == NULL)
        return PAWL_ENOMEM;
    if (len > 0)
        memcpy(data, pawli_buf_data(buf), len);
    pawli_buf_done(buf);
    buf->data = data;
    buf->end = len;
    buf->room = room;
    return 0;
}

char *pawli_buf_reserve(struct pawli_buf *buf, size_t len)
{
    size_t used = pawli_buf_len(buf);

    if (len > SIZE_MAX - used)
        return NULL;
    if (buf->data == NULL || len > buf->room - used) {
        if (grow(buf, used + len) < 0)
            return NULL;
    } else if (len > buf->room - buf->end) {
        memmove(buf->data, buf->data + buf->start, used);
        buf->start = 0;
        buf->end = used;
    }
    return buf->data + buf->end;
}

void pawli_buf_grew(struct pawli_buf *buf, size_t len)
{
    assert(len <= buf->room - buf->end);
    buf->end += len;
}

int pawli_buf_append(struct pawli_buf *buf, const void *data, size_t len)
{
    char *to = pawli_buf_reserve(buf, len);

    if (to == NULL)
        return PAWL_ENOMEM;
    if (len > 0)
        memcpy(to, data, len);
    pawli_buf_grew(buf, len);
    return 0;
}

void pawli_buf_take(struct pawli_buf *buf, size_t len)
{
    assert(len <= pawli_buf_len(buf));
    buf->start += len;
    if (buf->start == buf->end) {
        buf->start = 0;
        buf->end = 0;
    }
}

void pawli_buf_clear(struct pawli_buf *buf)
{
    if (buf->room > ROOM_KEPT)
        pawli_buf_done(buf);
    buf->start = 0;
    buf->end = 0;
}
