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

/* The clocks' difference REALTIME - BOOTTIME grew by this much since @offset_ns: more than
 * 20 ms means that the machine may have been frozen where BOOTTIME could not see it. */
#define PAWLI_JUMP_NS INT64_C(20000000)

#endif
