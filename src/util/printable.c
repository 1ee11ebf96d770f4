/* Bytes as text for logs and details; see printable.h. */
#include "util/printable.h"

#include <stdio.h>

const char *pawli_printable(const void *data, size_t len, char ret_text[PAWLI_PRINTABLE_LEN])
{
    const unsigned char *bytes = data;
    size_t at = 0;
    size_t i = 0;

    ret_text[at++] = '"';
    /* Room for one escape, the dots, the quote and the NUL is kept at every step. */
    for (; i < len && at + 4 + 3 + 2 <= PAWLI_PRINTABLE_LEN; i++) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\')
            ret_text[at++] = (char)bytes[i];
        else
            at += (size_t)snprintf(ret_text + at, PAWLI_PRINTABLE_LEN - at, "\\x%02x", bytes[i]);
    }
    (void)snprintf(ret_text + at, PAWLI_PRINTABLE_LEN - at, "%s\"", i < len ? "..." : "");
    return ret_text;
}
