/* Durations as people write them: 30s, 500ms, 1h30m. */
#ifndef PAWL_CLI_DURATION_H
#define PAWL_CLI_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers with units (ms, s, m, h, d), one or several in a row, without blanks; "0" needs no unit.
 * Returns 0 and milliseconds, or -1 and a sentence in @why, which names a bare number's cure. */
int duration_parse(const char *text, int64_t *ret_ms, char *why, size_t why_len);

/* Short, for columns and sentences: "0s", "350ms", "12.5s", "3m20s", "26h", "4d". */
#define DURATION_TEXT 32
const char *duration_text(int64_t ms, char *buf, size_t len);

#endif
