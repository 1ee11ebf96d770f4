/* What an owner's text may look like, see owner_text.h. */
#include "core/owner_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <pawl.h>

#include "util/random.h"

/* One character of UTF-8 at @text, which ends with a NUL. Returns its bytes, 0 if it is none:
 * cut short, longer than need be, half a surrogate pair, or above U+10FFFF (RFC 3629). */
static size_t utf8_read(const unsigned char *text, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t code;
    size_t len;

    if (text[0] < 0x80) {
        *ret_code = text[0];
        return 1;
    }
    if (text[0] < 0xc0 || text[0] >= 0xf8)
        return 0;
    len = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    code = text[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) /* also the NUL */
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[len] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff)
        return 0;
    *ret_code = code;
    return len;
}

/* C0, DEL and C1, line and paragraph separator: they would break a log's lines. */
static int is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029;
}

int pawli_label_check(const char *label, char *detail, size_t detail_len)
{
    const unsigned char *at = (const unsigned char *)label;
    size_t len = strlen(label);

    if (len > PAWL_LABEL_MAX) {
        (void)snprintf(detail, detail_len, "label of %zu bytes: must have at most %d", len,
                       PAWL_LABEL_MAX);
        return PAWL_EOWNER;
    }
    while (*at != '\0') {
        size_t where = (size_t)(at - (const unsigned char *)label) + 1;
        uint32_t code = 0;
        size_t n = utf8_read(at, &code);

        if (n == 0 || is_control(code)) {
            (void)snprintf(detail, detail_len, "label: byte %zu %s", where,
                           n == 0 ? "is not UTF-8" : "is a control character");
            return PAWL_EOWNER;
        }
        at += n;
    }
    return 0;
}

int pawli_owner_text_check(const char *text, char *detail, size_t detail_len)
{
    size_t n = strspn(text, "0123456789abcdef");

    if (n != PAWLI_ID_LEN || (text[n] != '\0' && text[n] != ':')) {
        (void)snprintf(detail, detail_len,
                       "owner: must be %d lower-case hex digits, optionally ':' and a label",
                       PAWLI_ID_LEN);
        return PAWL_EOWNER;
    }
    if (text[n] == '\0')
        return 0;
    if (text[n + 1] == '\0') {
        (void)snprintf(detail, detail_len, "owner: nothing follows the ':'");
        return PAWL_EOWNER;
    }
    return pawli_label_check(text + n + 1, detail, detail_len);
}
