/* What stood behind the last failure, per thread; behind pawl_error_detail(). */
#ifndef PAWLI_ENGINE_DETAIL_H
#define PAWLI_ENGINE_DETAIL_H

#define PAWLI_DETAIL_LEN 256

void pawli_set_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Both give @rc, so that a failure is set and passed up in one statement; in the open, so that
 * compilers and analyzers see that it is a failure. */
#define pawli_fail(rc, ...) (pawli_set_detail(__VA_ARGS__), (rc))
static inline int pawli_fail_text(int rc, const char *text)
{
    return pawli_fail(rc, "%s", text);
}

#endif
