/* Random bits: secret ones from the kernel, cheap ones for jitter. */
#ifndef PAWLI_UTIL_RANDOM_H
#define PAWLI_UTIL_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define PAWLI_ID_LEN 32 /* hex digits of 128 bits */

/* getrandom(2), never a shorter read. 0 or PAWL_ESYSTEM. */
int pawli_random_bytes(void *ret_bytes, size_t len);
/* 128 secret bits as 32 lower-case hex digits and a NUL. 0 or PAWL_ESYSTEM. */
int pawli_random_id(char ret_id[PAWLI_ID_LEN + 1]);

/* xorshift for jitter; @state must not be 0. Returns a number in [0, bound), bound > 0. */
uint64_t pawli_jitter(uint64_t *state, uint64_t bound);

#endif
