/* Texts in the user's language. The catalogue is po/zh_CN.po, compiled into the program: most
 * containers have no locale but C installed, and then libintl would never answer in Chinese. */
#ifndef PAWL_CLI_TEXT_H
#define PAWL_CLI_TEXT_H

#include <stddef.h>

/* Choose the language by LC_ALL, LC_MESSAGES, LANG and LANGUAGE, as gettext does. */
void text_init(void);

/* The translation of @text, or @text. */
#if defined(__GNUC__)
__attribute__((format_arg(1)))
#endif
const char *
text_get(const char *text);

#define _(text) text_get(text)
#define N_(text) text /* translated where it is printed */

/* Made by tools/po.py from po/zh_CN.po, sorted by the English text. */
struct text_pair {
    const char *english;
    const char *chinese;
};
extern const struct text_pair text_zh[];
extern const size_t text_n_zh;

#endif
