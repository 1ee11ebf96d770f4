/* Until when a holder may believe, see validity.h. Reads no clock. */
#include "core/validity.h"

#include "util/clock.h"

#define MARGIN_MS INT64_C(50)

int64_t pawli_margin_ns(int64_t lease_ms)
{
    int64_t lease_ns = lease_ms * PAWLI_NS_PER_MS;
    int64_t jitter_ns = MARGIN_MS * PAWLI_NS_PER_MS;
    int64_t drift_ns = lease_ns / 1000 + PAWLI_NS_PER_MS; /* 500 ppm for each of two clocks */

    if (jitter_ns > lease_ns / 10)
        jitter_ns = lease_ns / 10;
    return jitter_ns > drift_ns ? jitter_ns : drift_ns;
}

int64_t pawli_valid_until_ns(int64_t sent_ns, int64_t lease_ms, int64_t pttl_ms)
{
    int64_t left_ms = pttl_ms < lease_ms ? pttl_ms : lease_ms;

    if (left_ms < 0)
        left_ms = 0;
    return sent_ns + left_ms * PAWLI_NS_PER_MS - pawli_margin_ns(lease_ms);
}

int64_t pawli_grace_ns(int64_t grace_ms, int64_t lease_ms)
{
    int64_t grace_ns = grace_ms * PAWLI_NS_PER_MS;
    int64_t third_ns = lease_ms * PAWLI_NS_PER_MS / 3;

    return grace_ns < third_ns ? grace_ns : third_ns;
}

int64_t pawli_jump_ns(int64_t lease_ms)
{
    int64_t half_ns = pawli_margin_ns(lease_ms) / 2;

    return half_ns < 20 * PAWLI_NS_PER_MS ? half_ns : 20 * PAWLI_NS_PER_MS;
}
