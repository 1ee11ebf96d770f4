/* Interval arithmetic over round trips; see offset.h. */
#include "backend/redis/offset.h"

int64_t pawli_offset_saw(struct pawli_offset *offset, int64_t server_us, int64_t sent_ns,
                         int64_t received_ns)
{
    const int64_t jump_us = PAWLI_JUMP_MS * 1000;
    /* The server read its clock after we sent and before we received. */
    int64_t low = server_us - received_ns / 1000;
    int64_t high = server_us - sent_ns / 1000;
    int64_t gap = 0;

    if (offset->known && low > offset->high_us)
        gap = low - offset->high_us;
    else if (offset->known && high < offset->low_us)
        gap = high - offset->low_us;
    if (!offset->known || gap != 0) {
        /* First sample, a jump, or slow drift out of a narrow interval: begin again. */
        offset->known = true;
        offset->low_us = low;
        offset->high_us = high;
    } else {
        offset->low_us = low > offset->low_us ? low : offset->low_us;
        offset->high_us = high < offset->high_us ? high : offset->high_us;
    }
    return gap > jump_us || gap < -jump_us ? gap / 1000 : 0;
}

int64_t pawli_offset_server_us(const struct pawli_offset *offset, int64_t at_ns, int64_t more_ms)
{
    if (!offset->known)
        return 0;
    return at_ns / 1000 + offset->high_us + more_ms * 1000;
}
