/* http_scan.c: checks the framing of HTTP/1.x requests, strictly. Bytes in, a verdict out: no
 * socket and no clock, so that it can be fuzzed alone. */
#include "http_scan.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_HEADER_LINES 100
#define MAX_TARGET 4096

/* A part of the header text, not terminated. */
struct span {
    const char *at;
    size_t len;
};

/* What the header lines said. */
struct framing {
    int is_1_0;
    int may_have_body;
    int n_host;
    int n_length;
    int has_coding;
    int64_t length;
};

void http_scan_init(struct http_scan *scan, size_t max_header, int64_t max_body)
{
    memset(scan, 0, sizeof *scan);
    scan->max_header = max_header;
    scan->max_body = max_body;
}

void http_scan_done(struct http_scan *scan)
{
    free(scan->head);
    scan->head = NULL;
}

void http_scan_reset(struct http_scan *scan)
{
    scan->in_body = 0;
    scan->body_left = 0;
    scan->head_len = 0;
    scan->lang = LANG_ZH;
}

static int refuse(struct http_scan *scan, enum problem problem, const char *detail)
{
    scan->problem = problem;
    scan->detail = detail;
    return -1;
}

static int is_token_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int span_is(struct span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static int check_method(struct http_scan *scan, struct span method, struct framing *f)
{
    /* Those that evhttp knows; with a body: those that evhttp reads a body for. */
    static const char *const plain[] = { "GET", "HEAD", "DELETE", "OPTIONS" };
    static const char *const with_body[] = { "POST", "PUT", "PATCH" };
    size_t i;

    for (i = 0; i < method.len; i++)
        if (!is_token_char(method.at[i]))
            return refuse(scan, PROBLEM_BAD_REQUEST, "method");
    for (i = 0; i < sizeof with_body / sizeof with_body[0]; i++)
        if (method.len == strlen(with_body[i]) &&
            memcmp(method.at, with_body[i], method.len) == 0) {
            f->may_have_body = 1;
            return 0;
        }
    for (i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (method.len == strlen(plain[i]) && memcmp(method.at, plain[i], method.len) == 0)
            return 0;
    return refuse(scan, PROBLEM_METHOD_UNKNOWN, "method");
}

static int check_version(struct http_scan *scan, struct span version, struct framing *f)
{
    if (version.len == 8 && memcmp(version.at, "HTTP/1.1", 8) == 0)
        return 0;
    f->is_1_0 = version.len == 8 && memcmp(version.at, "HTTP/1.0", 8) == 0;
    if (f->is_1_0)
        return 0;
    if (version.len >= 6 && memcmp(version.at, "HTTP/", 5) == 0 && version.at[5] >= '0' &&
        version.at[5] <= '9')
        return refuse(scan, PROBLEM_VERSION, "version");
    return refuse(scan, PROBLEM_BAD_REQUEST, "version");
}

/* METHOD SP /target SP HTTP/1.x */
static int check_request_line(struct http_scan *scan, struct span line, struct framing *f)
{
    const char *end = line.at + line.len;
    const char *first = memchr(line.at, ' ', line.len);
    const char *second = NULL;
    struct span method, target, version;

    if (first != NULL)
        second = memchr(first + 1, ' ', (size_t)(end - first - 1));
    if (second == NULL || first == line.at)
        return refuse(scan, PROBLEM_BAD_REQUEST, "request line");
    method = (struct span){ line.at, (size_t)(first - line.at) };
    target = (struct span){ first + 1, (size_t)(second - first - 1) };
    version = (struct span){ second + 1, (size_t)(end - second - 1) };
    if (check_method(scan, method, f) < 0 || check_version(scan, version, f) < 0)
        return -1;
    if (target.len > MAX_TARGET)
        return refuse(scan, PROBLEM_URI_LONG, "at most 4096 bytes");
    if (target.len == 0 || target.at[0] != '/')
        return refuse(scan, PROBLEM_BAD_REQUEST, "request target");
    return 0;
}

/* Digits only: no sign, no list, no blank inside, and no number that overflows. */
static int parse_length(struct span value, int64_t *ret_length)
{
    int64_t length = 0;
    size_t i;

    if (value.len < 1 || value.len > 18)
        return -1;
    for (i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -1;
        length = length * 10 + (value.at[i] - '0');
    }
    *ret_length = length;
    return 0;
}

static int check_host(struct http_scan *scan, struct span value, struct framing *f)
{
    size_t i;

    if (f->n_host++ > 0)
        return refuse(scan, PROBLEM_BAD_REQUEST, "Host is given twice");
    for (i = 0; i < value.len; i++)
        if (value.at[i] <= ' ' || strchr("/?#@,\\", value.at[i]) != NULL)
            return refuse(scan, PROBLEM_BAD_REQUEST, "Host");
    return 0;
}

static int check_field(struct http_scan *scan, struct span name, struct span value,
                       struct framing *f)
{
    if (span_is(name, "content-length")) {
        if (f->n_length++ > 0)
            return refuse(scan, PROBLEM_BAD_REQUEST, "Content-Length is given twice");
        if (parse_length(value, &f->length) < 0)
            return refuse(scan, PROBLEM_BAD_REQUEST, "Content-Length is not a number");
    } else if (span_is(name, "transfer-encoding")) {
        f->has_coding = 1;
    } else if (span_is(name, "host")) {
        return check_host(scan, value, f);
    } else if (span_is(name, "expect")) {
        if (!span_is(value, "100-continue"))
            return refuse(scan, PROBLEM_EXPECT, "Expect");
    } else if (span_is(name, "accept-language")) {
        char text[128];
        size_t len = value.len < sizeof text ? value.len : sizeof text - 1;

        memcpy(text, value.at, len);
        text[len] = '\0';
        scan->lang = lang_from_header(text);
    }
    return 0;
}

static int check_field_line(struct http_scan *scan, struct span line, struct framing *f)
{
    const char *end = line.at + line.len;
    const char *colon = memchr(line.at, ':', line.len);
    const char *p;
    struct span name, value;

    /* A line that begins with a blank would continue the one before it: refused as well. */
    if (colon == NULL || colon == line.at)
        return refuse(scan, PROBLEM_BAD_REQUEST, "a header line without a name");
    for (p = line.at; p < colon; p++)
        if (!is_token_char(*p))
            return refuse(scan, PROBLEM_BAD_REQUEST, "a header name");
    for (p = colon + 1; p < end && (*p == ' ' || *p == '\t'); p++)
        continue;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    name = (struct span){ line.at, (size_t)(colon - line.at) };
    value = (struct span){ p, (size_t)(end - p) };
    return check_field(scan, name, value, f);
}

static int check_framing(struct http_scan *scan, const struct framing *f)
{
    if (f->n_host == 0 && !f->is_1_0)
        return refuse(scan, PROBLEM_BAD_REQUEST, "Host is missing");
    if (f->has_coding)
        return refuse(scan, PROBLEM_LENGTH, "Transfer-Encoding is not taken");
    if (f->length > scan->max_body)
        return refuse(scan, PROBLEM_BODY_LARGE, "see max-body");
    if (f->may_have_body && f->n_length == 0)
        return refuse(scan, PROBLEM_LENGTH, "Content-Length is missing");
    /* evhttp would take that body for the next request. */
    if (!f->may_have_body && f->length > 0)
        return refuse(scan, PROBLEM_BAD_REQUEST, "a body with a method that has none");
    scan->body_left = f->length;
    return 0;
}

static int check_head(struct http_scan *scan)
{
    const char *p = scan->head;
    const char *end = scan->head + scan->head_len - 2; /* before the empty line */
    struct framing f = { 0 };
    int n_lines = 0, rc = 0;

    while (rc == 0 && p < end) {
        const char *cr = memchr(p, '\r', (size_t)(end - p));
        struct span line = { p, (size_t)(cr - p) };

        if (n_lines > MAX_HEADER_LINES)
            return refuse(scan, PROBLEM_HEADER_LARGE, "at most 100 lines");
        rc =
            n_lines++ == 0 ? check_request_line(scan, line, &f) : check_field_line(scan, line, &f);
        p = cr + 2;
    }
    return rc < 0 ? rc : check_framing(scan, &f);
}

/* The byte after what is in scan->head: 1 ends the head, -1 refuses it. */
static int take_head_byte(struct http_scan *scan, char c)
{
    size_t n = scan->head_len;
    const char *head = scan->head;
    int after_cr = n > 0 && head[n - 1] == '\r';

    if (n == scan->max_header)
        return refuse(scan,
                      memchr(head, '\n', n) == NULL ? PROBLEM_URI_LONG : PROBLEM_HEADER_LARGE,
                      "see max-header");
    if (after_cr != (c == '\n') || (n == 0 && c == '\r'))
        return refuse(scan, PROBLEM_BAD_REQUEST, "lines end in CR LF");
    if (((unsigned char)c < 0x20 && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
        return refuse(scan, PROBLEM_BAD_REQUEST, "a control character");
    scan->head[scan->head_len++] = c;
    n = scan->head_len;
    return n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0;
}

static int make_room(struct http_scan *scan, size_t len)
{
    size_t want = scan->head_len + len;
    char *head;

    if (want > scan->max_header)
        want = scan->max_header;
    if (want <= scan->head_size)
        return 0;
    head = realloc(scan->head, want);
    if (head == NULL)
        return refuse(scan, PROBLEM_OVERLOADED, "memory");
    scan->head = head;
    scan->head_size = want;
    return 0;
}

static enum http_scan_answer feed_head(struct http_scan *scan, const char *data, size_t len,
                                       size_t *ret_used)
{
    size_t i;
    int rc;

    if (make_room(scan, len) < 0)
        return SCAN_REFUSED;
    for (i = 0; i < len; i++) {
        rc = take_head_byte(scan, data[i]);
        if (rc < 0)
            return SCAN_REFUSED;
        if (rc == 0)
            continue;
        *ret_used = i + 1;
        if (check_head(scan) < 0)
            return SCAN_REFUSED;
        scan->in_body = 1;
        return scan->body_left > 0 ? SCAN_MORE : SCAN_DONE;
    }
    *ret_used = len;
    return SCAN_MORE;
}

enum http_scan_answer http_scan_feed(struct http_scan *scan, const char *data, size_t len,
                                     size_t *ret_used)
{
    enum http_scan_answer answer = SCAN_MORE;
    size_t used = 0, body;

    *ret_used = 0;
    if (!scan->in_body) {
        answer = feed_head(scan, data, len, &used);
        if (answer != SCAN_MORE || !scan->in_body) {
            *ret_used = used;
            return answer;
        }
    }
    body = len - used;
    if ((int64_t)body > scan->body_left)
        body = (size_t)scan->body_left;
    scan->body_left -= (int64_t)body;
    *ret_used = used + body;
    return scan->body_left > 0 ? SCAN_MORE : SCAN_DONE;
}
