/* Server time against our BOOTTIME, from answers that carry TIME. Pure: reads no clock. */
#ifndef PAWLI_REDIS_OFFSET_H
#define PAWLI_REDIS_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

/* The true offset (server us - boot us) lies between low and high. */
struct pawli_offset {
    bool known;
    int64_t low_us;
    int64_t high_us;
};

/* The server said @server_us between @sent_ns and @received_ns. Returns by how many ms the clocks
 * moved against each other: 0, or more than PAWLI_JUMP_MS either way beyond what the round trips
 * leave open. */
#define PAWLI_JUMP_MS 50
int64_t pawli_offset_saw(struct pawli_offset *offset, int64_t server_us, int64_t sent_ns,
                         int64_t received_ns);

/* What the server's clock shows at most at BOOTTIME @at_ns + @more_ms, in us; 0 if nothing is known
 * yet. */
int64_t pawli_offset_server_us(const struct pawli_offset *offset, int64_t at_ns, int64_t more_ms);

#endif
