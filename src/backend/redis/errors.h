/* What an error text of the server means: executed for sure not, perhaps, or forbidden. */
#ifndef PAWLI_REDIS_ERRORS_H
#define PAWLI_REDIS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* The result for an error reply to a command of ours. An error raised inside a script is
 * PAWL_ESCRIPT whatever its prefix says: writes may have gone before it. */
int pawli_redis_error(const char *text, size_t len);

/* The same for an error that a script caught before it wrote anything and answered as text: the
 * prefix tells the truth. */
int pawli_redis_caught_error(const char *text, size_t len);

/* Is this connection of no more use after @result: another server must be looked for, or the
 * login must be done again? */
bool pawli_redis_error_drops(int result);

bool pawli_redis_is_noscript(const char *text, size_t len);

#endif
