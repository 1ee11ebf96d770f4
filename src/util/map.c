/* Intrusive hash map; see map.h. Touches nothing but memory. */
#include "util/map.h"

#include <stdlib.h>

#include <pawl.h>

void pawli_map_init(struct pawli_map *map)
{
    map->bucket = NULL;
    map->n_buckets = 0;
    map->n = 0;
}

void pawli_map_done(struct pawli_map *map)
{
    free(map->bucket);
    pawli_map_init(map);
}

uint64_t pawli_hash(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static size_t place(const struct pawli_map *map, uint64_t hash)
{
    /* The high bits of FNV mix better than the low ones. */
    return (size_t)((hash ^ (hash >> 32)) & (map->n_buckets - 1));
}

static int grow(struct pawli_map *map)
{
    size_t n_buckets = map->n_buckets == 0 ? 16 : map->n_buckets * 2;
    struct pawli_map old = *map;
    struct pawli_map_node **bucket = calloc(n_buckets, sizeof(struct pawli_map_node *));

    if (bucket == NULL)
        return PAWL_ENOMEM;
    map->bucket = bucket;
    map->n_buckets = n_buckets;
    for (size_t i = 0; i < old.n_buckets; i++) {
        struct pawli_map_node *node = old.bucket[i];

        while (node != NULL) {
            struct pawli_map_node *next = node->next;
            size_t at = place(map, node->hash);

            node->next = map->bucket[at];
            map->bucket[at] = node;
            node = next;
        }
    }
    free(old.bucket);
    return 0;
}

int pawli_map_add(struct pawli_map *map, struct pawli_map_node *node, uint64_t hash)
{
    size_t at;

    if (map->n >= map->n_buckets && grow(map) < 0 && map->n_buckets == 0)
        return PAWL_ENOMEM;
    node->hash = hash;
    at = place(map, hash);
    node->next = map->bucket[at];
    map->bucket[at] = node;
    map->n++;
    return 0;
}

void pawli_map_remove(struct pawli_map *map, struct pawli_map_node *node)
{
    struct pawli_map_node **link = &map->bucket[place(map, node->hash)];

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    node->next = NULL;
    map->n--;
}

struct pawli_map_node *pawli_map_first(const struct pawli_map *map, uint64_t hash)
{
    struct pawli_map_node *node;

    if (map->n_buckets == 0)
        return NULL;
    node = map->bucket[place(map, hash)];
    while (node != NULL && node->hash != hash)
        node = node->next;
    return node;
}

struct pawli_map_node *pawli_map_next(const struct pawli_map_node *node)
{
    uint64_t hash = node->hash;

    do
        node = node->next;
    while (node != NULL && node->hash != hash);
    return (struct pawli_map_node *)node;
}
