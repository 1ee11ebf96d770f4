/* Who this process is, for operators who look at a lock. */
#ifndef PAWLI_ENGINE_WHO_H
#define PAWLI_ENGINE_WHO_H

#include <stddef.h>

/* "host pid start boot": host name (at most 24 bytes, not printable ones as '?'), process id, its
 * start in ticks since boot, and the first 8 digits of the boot id; what cannot be found is "-".
 * At most 60 bytes, so that the value stays in the hash's compact form. */
void pawli_who(char *ret_text, size_t len);

#endif
