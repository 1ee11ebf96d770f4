/* Owner texts: 32 lower-case hex digits, optionally ':' and a printable label. */
#ifndef PAWLI_CORE_OWNER_TEXT_H
#define PAWLI_CORE_OWNER_TEXT_H

#include <stddef.h>

/* 0 or PAWL_EOWNER with @detail. Labels: printable ASCII or valid UTF-8 without control
 * characters (C0, DEL, C1, line and paragraph separators), at most PAWL_LABEL_MAX bytes. */
int pawli_label_check(const char *label, char *detail, size_t detail_len);
int pawli_owner_text_check(const char *text, char *detail, size_t detail_len);

#endif
