/* Messages on stderr and names made printable. Asks no store. */
#include "message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <pawl.h>

#include "exits.h"
#include "text.h"

static bool as_json;
static bool be_quiet;

void message_init(bool json, bool quiet)
{
    as_json = json;
    be_quiet = quiet;
}

/* One write, so that lines of several processes on one terminal do not mix. */
static void write_line(const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, line, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        line += n;
        len -= (size_t)n;
    }
}

static void say_text(const char *text)
{
    char line[2200];
    int n;

    if (as_json) {
        json_t *object = json_pack("{s:s%}", "message", text, strlen(text));
        char *dump = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);

        n = snprintf(line, sizeof line, "%s\n", dump == NULL ? "{}" : dump);
        free(dump);
        json_decref(object);
    } else {
        n = snprintf(line, sizeof line, "pawl: %s\n", text);
    }
    if (n > 0)
        write_line(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

__attribute__((format(printf, 1, 0))) static void say_list(const char *fmt, va_list ap)
{
    char text[2048];

    (void)vsnprintf(text, sizeof text, fmt, ap);
    say_text(text);
}

void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
}

void note(const char *fmt, ...)
{
    va_list ap;

    if (be_quiet)
        return;
    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
}

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
    if (!as_json)
        say(_("try: pawl %s%s--help"), command, command[0] == '\0' ? "" : " ");
    return EXIT_USAGE;
}

const char *result_text(int result)
{
    return text_get(pawl_result_text(result));
}

int say_result(const char *what, int result)
{
    const char *detail = result < 0 ? pawl_error_detail() : "";

    if (detail[0] != '\0')
        say("%s: %s (%s)", what, result_text(result), detail);
    else
        say("%s: %s", what, result_text(result));
    return cli_exit_of(result);
}

/* Bytes of the UTF-8 character at @s, 0 if broken, and its code point. */
static size_t utf8_next(const unsigned char *s, size_t n, unsigned *ret_point)
{
    static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    unsigned point = len == 1 ? s[0] : s[0] & (0x7fu >> len);

    if (len > n || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (s[i] & 0x3fu);
    }
    if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *ret_point = point;
    return len;
}

/* Would a terminal act on it, or show it as something else? Controls, line separators and marks
 * that turn the direction of writing. */
static bool is_control(unsigned point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
           point == 0x200e || point == 0x200f || point == 0xfeff;
}

const char *printable(const void *bytes, size_t n, char *buf, size_t len)
{
    const unsigned char *s = bytes;
    size_t at = 0;

    while (n > 0) {
        char piece[16];
        unsigned point = 0;
        size_t used = utf8_next(s, n, &point);
        size_t put = used;

        if (used == 0 || is_control(point)) {
            used = used == 0 ? 1 : used;
            if (point == '\n' || point == '\t')
                (void)snprintf(piece, sizeof piece, "\\%c", point == '\n' ? 'n' : 't');
            else
                for (size_t i = 0; i < used && i < 3; i++)
                    (void)snprintf(piece + 4 * i, sizeof piece - 4 * i, "\\x%02x", s[i]);
            put = strlen(piece);
        } else if (point == '\\') {
            (void)snprintf(piece, sizeof piece, "\\\\");
            put = 2;
        } else {
            memcpy(piece, s, used);
        }
        if (at + put + 4 > len && !(n == used && at + put + 1 <= len)) {
            (void)snprintf(buf + at, len - at, "...");
            return buf;
        }
        memcpy(buf + at, piece, put);
        at += put;
        s += used;
        n -= used;
    }
    buf[at] = '\0';
    return buf;
}

bool is_clean(const void *bytes, size_t n)
{
    const unsigned char *s = bytes;

    while (n > 0) {
        unsigned point = 0;
        size_t used = utf8_next(s, n, &point);

        if (used == 0 || is_control(point))
            return false;
        s += used;
        n -= used;
    }
    return true;
}

/* East Asian wide and emoji blocks take two columns, combining marks none; enough for columns
 * that line up without a locale. */
static size_t point_columns(unsigned point)
{
    if ((point >= 0x300 && point <= 0x36f) || point == 0x200d ||
        (point >= 0xfe00 && point <= 0xfe0f))
        return 0;
    if ((point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
        (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
        (point >= 0xfe30 && point <= 0xfe4f) || (point >= 0xff00 && point <= 0xff60) ||
        (point >= 0xffe0 && point <= 0xffe6) || (point >= 0x1f300 && point <= 0x1faff) ||
        (point >= 0x20000 && point <= 0x3fffd))
        return 2;
    return 1;
}

size_t text_columns(const char *text)
{
    size_t left = strlen(text);
    size_t columns = 0;

    while (left > 0) {
        unsigned point = 0;
        size_t used = utf8_next((const unsigned char *)text, left, &point);

        used = used == 0 ? 1 : used;
        columns += point_columns(point);
        text += used;
        left -= used;
    }
    return columns;
}

bool colour_ok(int fd)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
           isatty(fd) == 1;
}
