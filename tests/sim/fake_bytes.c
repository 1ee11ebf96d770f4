/* Bytes, numbers and RESP2 replies of the in-memory Redis. */
#include "fake_db.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct fr_bytes fr_text(const char *text)
{
    struct fr_bytes bytes = { (char *)text, strlen(text) };

    return bytes;
}

/* A test that is out of memory has nothing to say. */
static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

struct fr_bytes fr_copy(const struct fr_bytes *bytes)
{
    struct fr_bytes copy = { must(malloc(bytes->len + 1)), bytes->len };

    if (bytes->len > 0)
        memcpy(copy.data, bytes->data, bytes->len);
    copy.data[bytes->len] = '\0';
    return copy;
}

void fr_set(struct fr_bytes *to, const struct fr_bytes *from)
{
    struct fr_bytes copy = fr_copy(from);

    free(to->data);
    *to = copy;
}

bool fr_same(const struct fr_bytes *a, const struct fr_bytes *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

bool fr_is(const struct fr_bytes *bytes, const char *word)
{
    return bytes->len == strlen(word) && strncasecmp(bytes->data, word, bytes->len) == 0;
}

int fr_compare(const struct fr_bytes *a, const struct fr_bytes *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = len == 0 ? 0 : memcmp(a->data, b->data, len);

    if (order != 0)
        return order;
    return (a->len > b->len) - (a->len < b->len);
}

bool fr_integer(const struct fr_bytes *bytes, int64_t *ret_n)
{
    const char *p = bytes->data;
    size_t len = bytes->len;
    bool negative = len > 0 && p[0] == '-';
    size_t i = negative ? 1 : 0;
    uint64_t n = 0;

    if (len == i || len > 20)
        return false;
    if (p[i] == '0' && (len > i + 1 || negative))
        return false;
    for (; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        if (n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(p[i] - '0');
    }
    if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *ret_n = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

void *fr_grow(void *old, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return old;
    *room = *room == 0 ? 8 : *room * 2;
    return must(realloc(old, *room * size));
}

void fr_append(struct fr_out *out, const void *data, size_t len)
{
    if (out->len + len > out->room) {
        out->room = (out->len + len) * 2 + 64;
        out->data = must(realloc(out->data, out->room));
    }
    if (len > 0)
        memcpy(out->data + out->len, data, len);
    out->len += len;
}

static void line(struct fr_out *out, char kind, const char *text, size_t len)
{
    fr_append(out, &kind, 1);
    fr_append(out, text, len);
    fr_append(out, "\r\n", 2);
}

/* By hand: snprintf was a tenth of the whole run. */
static void number_line(struct fr_out *out, char kind, int64_t n)
{
    char text[24];
    size_t at = sizeof text;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

    do {
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (n < 0)
        text[--at] = '-';
    line(out, kind, text + at, sizeof text - at);
}

void fr_status(struct fr_out *out, const char *text)
{
    line(out, '+', text, strlen(text));
}

void fr_error(struct fr_out *out, const char *text)
{
    line(out, '-', text, strlen(text));
}

void fr_int(struct fr_out *out, int64_t n)
{
    number_line(out, ':', n);
}

void fr_bulk(struct fr_out *out, const void *data, size_t len)
{
    number_line(out, '$', (int64_t)len);
    fr_append(out, data, len);
    fr_append(out, "\r\n", 2);
}

void fr_nil(struct fr_out *out)
{
    fr_append(out, "$-1\r\n", 5);
}

void fr_array(struct fr_out *out, size_t n)
{
    number_line(out, '*', (int64_t)n);
}

/* As the server prints scores: whole numbers as such, else 17 digits. */
void fr_double(struct fr_out *out, double n)
{
    char text[64];
    int len;

    if (isinf(n))
        len = snprintf(text, sizeof text, "%s", n > 0 ? "inf" : "-inf");
    else if (n > -4503599627370496.0 && n < 4503599627370496.0 && n == floor(n) &&
             !(n == 0 && signbit(n)))
        len = snprintf(text, sizeof text, "%lld", (long long)n);
    else
        len = snprintf(text, sizeof text, "%.17g", n);
    fr_bulk(out, text, (size_t)len);
}
