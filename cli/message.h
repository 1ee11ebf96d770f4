/* What the program says: messages on stderr, names made printable, colour. */
#ifndef PAWL_CLI_MESSAGE_H
#define PAWL_CLI_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* How messages look; set once after the options are known. */
void message_init(bool json, bool quiet);

/* "pawl: ..." on stderr, in one write; as {"message": ...} with --json. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, but not with --quiet. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A usage error: the message, and where help is. Returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What failed and why, from a result of the library and its detail. Returns its exit code. */
int say_result(const char *what, int result);
/* The sentence of a result in the user's language. */
const char *result_text(int result);

/* @bytes as text that a terminal can show: control characters, broken UTF-8 and backslashes as
 * \n, \t, \xNN. Cut with "..." if @len is too short. Returns @buf. */
#define NAME_TEXT (512 * 4 + 1)
const char *printable(const void *bytes, size_t n, char *buf, size_t len);
/* True if @bytes are UTF-8 without NUL and control characters. */
bool is_clean(const void *bytes, size_t n);
/* How many columns of a terminal the text takes; wide characters count two. */
size_t text_columns(const char *text);

/* May this descriptor get colours? A terminal that is not dumb, and no NO_COLOR. */
bool colour_ok(int fd);

#endif
