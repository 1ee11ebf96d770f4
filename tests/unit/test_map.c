/* Tests of the hash map. */
#include "unit.h"

#include <pawl.h>

#include "failing.h"
#include "util/list.h"
#include "util/map.h"

#define N_ITEMS 300

struct item {
    struct pawli_map_node node;
    unsigned key;
    bool in;
};

static uint64_t hash_of(unsigned key)
{
    /* Few different hashes, so that chains and equal hashes occur. */
    unsigned few = key % 40;

    return pawli_hash(PAWLI_HASH_START, &few, sizeof few);
}

static struct item *find(const struct pawli_map *map, unsigned key)
{
    struct pawli_map_node *node = pawli_map_first(map, hash_of(key));

    while (node != NULL && PAWLI_CONTAINER(node, struct item, node)->key != key)
        node = pawli_map_next(node);
    return node == NULL ? NULL : PAWLI_CONTAINER(node, struct item, node);
}

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(pawli_hash(PAWLI_HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(pawli_hash(PAWLI_HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(pawli_hash(PAWLI_HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(pawli_hash(pawli_hash(PAWLI_HASH_START, "foo", 3), "bar", 3) ==
                UINT64_C(0x85944171f73967e8));
}

static void what_is_added_is_found_until_it_is_removed(void **state)
{
    static struct item items[N_ITEMS];
    uint64_t seed = test_seed("what_is_added_is_found_until_it_is_removed");
    struct pawli_map map;
    size_t n = 0;

    (void)state;
    pawli_map_init(&map);
    assert_null(find(&map, 0));
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)pawli_jitter(&seed, N_ITEMS);
        struct item *item = &items[i];

        item->key = i;
        assert_ptr_equal(find(&map, i), item->in ? item : NULL);
        if (item->in) {
            pawli_map_remove(&map, &item->node);
            n--;
        } else {
            assert_int_equal(pawli_map_add(&map, &item->node, hash_of(i)), 0);
            n++;
        }
        item->in = !item->in;
        assert_int_equal(map.n, n);
    }
    pawli_map_done(&map);
}

static void without_memory_a_full_table_still_takes_more(void **state)
{
    struct pawli_map map;
    struct item items[20] = { 0 };

    (void)state;
    pawli_map_init(&map);
    failing_alloc_after(0);
    assert_int_equal(pawli_map_add(&map, &items[0].node, 1), PAWL_ENOMEM);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(pawli_map_add(&map, &items[i].node, i), 0);
    failing_alloc_after(0);
    assert_int_equal(pawli_map_add(&map, &items[16].node, 16), 0);
    assert_int_equal(map.n_buckets, 16);
    for (unsigned i = 0; i < 17; i++)
        assert_ptr_equal(pawli_map_first(&map, i), &items[i].node);
    pawli_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_fnv_1a),
        cmocka_unit_test(what_is_added_is_found_until_it_is_removed),
        cmocka_unit_test(without_memory_a_full_table_still_takes_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
