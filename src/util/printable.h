/* Bytes of any kind as text for logs and details. */
#ifndef PAWLI_UTIL_PRINTABLE_H
#define PAWLI_UTIL_PRINTABLE_H

#include <stddef.h>

#define PAWLI_PRINTABLE_LEN 96

/* @data in quotes, what is not printable ASCII as \xNN, shortened with "..." if it does not fit.
 * Returns @ret_text. */
const char *pawli_printable(const void *data, size_t len, char ret_text[PAWLI_PRINTABLE_LEN]);

#endif
