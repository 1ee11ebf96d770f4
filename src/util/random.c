/* Random bits, see random.h. Touches the kernel's generator and nothing else. */
#include "util/random.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include <pawl.h>

int pawli_random_bytes(void *ret_bytes, size_t len)
{
    unsigned char *at = ret_bytes;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return PAWL_ESYSTEM;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int pawli_random_id(char ret_id[PAWLI_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[PAWLI_ID_LEN / 2];
    int rc = pawli_random_bytes(bytes, sizeof bytes);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret_id[2 * i] = digits[bytes[i] >> 4];
        ret_id[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_id[PAWLI_ID_LEN] = '\0';
    return 0;
}

uint64_t pawli_jitter(uint64_t *state, uint64_t bound)
{
    uint64_t x = *state;

    assert(x != 0 && bound > 0);
    /* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators"); the
     * product's high bits are the good ones. The remainder's bias does not matter to a delay. */
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x *= UINT64_C(2685821657736338717);
    return (x ^ (x >> 32)) % bound;
}
