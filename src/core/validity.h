/* Promise B in numbers: until when a holder may believe. design: "Validity". */
#ifndef PAWLI_CORE_VALIDITY_H
#define PAWLI_CORE_VALIDITY_H

#include <stdint.h>

/* What is taken off a lease for clock drift and scheduling: max(min(50 ms, lease/10),
 * 2 x 500 ppm x lease + 1 ms). */
int64_t pawli_margin_ns(int64_t lease_ms);

/* sent_ns + min(lease, pttl) - margin. @sent_ns is when this very attempt was sent, taken before
 * its bytes entered our own buffer. @pttl_ms < 0 counts as 0. */
int64_t pawli_valid_until_ns(int64_t sent_ns, int64_t lease_ms, int64_t pttl_ms);

/* min(grace, lease/3), the grace that a hold really has. */
int64_t pawli_grace_ns(int64_t grace_ms, int64_t lease_ms);

/* How much REALTIME - BOOTTIME may grow before the machine counts as frozen where BOOTTIME could
 * not see it: 20 ms, or half of the margin of a short lease. */
int64_t pawli_jump_ns(int64_t lease_ms);

#endif
