/* Intrusive hash map of chained nodes; the owner compares, the map only finds candidates. */
#ifndef PAWLI_UTIL_MAP_H
#define PAWLI_UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct pawli_map_node {
    struct pawli_map_node *next;
    uint64_t hash;
};

struct pawli_map {
    struct pawli_map_node **bucket;
    size_t n_buckets; /* a power of two */
    size_t n;
};

void pawli_map_init(struct pawli_map *map);
void pawli_map_done(struct pawli_map *map); /* the nodes are the caller's */

/* FNV-1a of @len bytes, going on from @hash; begin with PAWLI_HASH_START. */
#define PAWLI_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t pawli_hash(uint64_t hash, const void *data, size_t len);

/* 0 or PAWL_ENOMEM (only when there is no table yet; growing may fail silently). */
int pawli_map_add(struct pawli_map *map, struct pawli_map_node *node, uint64_t hash);
void pawli_map_remove(struct pawli_map *map, struct pawli_map_node *node);

/* The first node with @hash, and the next one after @node with the same hash; NULL: none. */
struct pawli_map_node *pawli_map_first(const struct pawli_map *map, uint64_t hash);
struct pawli_map_node *pawli_map_next(const struct pawli_map_node *node);

#endif
