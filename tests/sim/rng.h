/* The simulator's random numbers: small, fast, and the same everywhere. */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_rng {
    uint64_t state;
};

static inline uint64_t sim_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Streams of one seed do not disturb each other: dropping a client leaves the others' as it is. */
static inline void sim_rng_init(struct sim_rng *rng, uint64_t seed, uint64_t stream)
{
    rng->state = sim_mix(seed * UINT64_C(0x9e3779b97f4a7c15) + sim_mix(stream + 1));
}

static inline uint64_t sim_u64(struct sim_rng *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return sim_mix(rng->state);
}

/* In [0, n), n > 0. */
static inline int64_t sim_below(struct sim_rng *rng, int64_t n)
{
    assert(n > 0);
    return (int64_t)(sim_u64(rng) % (uint64_t)n);
}

/* In [low, high]. */
static inline int64_t sim_between(struct sim_rng *rng, int64_t low, int64_t high)
{
    return low + sim_below(rng, high - low + 1);
}

/* True @n times in a million. */
static inline bool sim_chance(struct sim_rng *rng, int64_t n)
{
    return sim_below(rng, 1000000) < n;
}

#endif
