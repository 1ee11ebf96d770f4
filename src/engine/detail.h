/* What stood behind the last failure, per thread; behind pawl_error_detail(). */
#ifndef PAWLI_ENGINE_DETAIL_H
#define PAWLI_ENGINE_DETAIL_H

#define PAWLI_DETAIL_LEN 256

/* Both return @rc, so that a failure is set and passed up in one statement. */
int pawli_fail(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));
int pawli_fail_text(int rc, const char *text);

#endif
