/* Tests of lock names, slots and companion keys. */
#include "unit.h"

#include <pawl.h>

#include "core/key.h"
#include "failing.h"

#define NAME(text) (text), sizeof(text) - 1

static struct pawli_key *make(const char *prefix, const void *name, size_t len)
{
    struct pawli_key *key = NULL;
    char detail[128] = "";

    assert_int_equal(pawli_key_new(prefix, name, len, detail, sizeof detail, &key), 0);
    assert_string_equal(detail, "");
    return key;
}

static void refused(const char *prefix, const void *name, size_t len, const char *why)
{
    struct pawli_key *key = NULL;
    char detail[128] = "";

    assert_int_equal(pawli_key_new(prefix, name, len, detail, sizeof detail, &key), PAWL_EKEY);
    assert_string_equal(detail, why);
    assert_null(key);
    assert_int_equal(pawli_claim_key_new(prefix, name, len, detail, sizeof detail, &key),
                     PAWL_EKEY);
    assert_null(key);
}

/* Where Redis looks for a hash tag, written as in its specification, to check the faster one. */
static uint16_t slot_by_the_book(const unsigned char *key, size_t len)
{
    size_t s = 0;
    size_t e;
    unsigned crc = 0;

    while (s < len && key[s] != '{')
        s++;
    for (e = s + 1; e < len && key[e] != '}'; e++)
        continue;
    if (s < len && e < len && e != s + 1) {
        key += s + 1;
        len = e - s - 1;
    }
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u) != 0 ? ((crc << 1) ^ 0x1021u) & 0xffffu : crc << 1;
    }
    return (uint16_t)(crc % 16384);
}

static void same_slot(const struct pawli_key *key)
{
    assert_int_equal(key->slot, pawli_slot(key->name, key->name_len));
    assert_int_equal(key->slot, slot_by_the_book((const void *)key->name, key->name_len));
    if (key->queue != NULL) {
        assert_int_equal(key->slot, pawli_slot(key->queue, key->queue_len));
        assert_int_equal(key->slot, pawli_slot(key->counter, key->counter_len));
    } else {
        assert_int_equal(key->slot, pawli_slot(key->claim, key->claim_len));
    }
}

static void slots_are_those_of_cluster_keyslot(void **state)
{
    (void)state;
    assert_int_equal(pawli_slot(NAME("foo")), 12182);
    assert_int_equal(pawli_slot(NAME("bar")), 5061);
    assert_int_equal(pawli_slot(NAME("hello")), 866);
    assert_int_equal(pawli_slot(NAME("123456789")), 0x31c3);
    assert_int_equal(pawli_slot(NAME("")), 0);
    assert_int_equal(pawli_slot(NULL, 0), 0);
    assert_int_equal(pawli_slot(NAME("{user1000}.following")), 3443);
    assert_int_equal(pawli_slot(NAME("{user1000}.followers")), 3443);
    assert_int_equal(pawli_slot(NAME("user1000")), 3443);
    assert_int_equal(pawli_slot(NAME("foo{}{bar}")), 8363);
    assert_int_equal(pawli_slot(NAME("foo{{bar}}zap")), pawli_slot(NAME("{bar")));
    assert_int_equal(pawli_slot(NAME("foo{bar}{zap}")), 5061);
    assert_int_equal(pawli_slot(NAME("{}x")), slot_by_the_book((const void *)"{}x", 3));
}

static void companions_share_the_slot_of_odd_names(void **state)
{
    static const char *const names[] = { "a}b", "{}x",   "x{y}z",  "}",         "a{b}c}",
                                         "{",   "{}",    "}{",     "{{}",       "{}}",
                                         "{a",  "a}{b}", "{{{}}}", "foo{}{bar}" };
    char detail[128];

    (void)state;
    for (size_t i = 0; i < N_OF(names); i++) {
        struct pawli_key *key = make(NULL, names[i], strlen(names[i]));
        struct pawli_key *claim = NULL;

        same_slot(key);
        assert_int_equal(
            pawli_claim_key_new("app:", names[i], strlen(names[i]), detail, sizeof detail, &claim),
            0);
        same_slot(claim);
        pawli_key_unref(key);
        pawli_key_unref(claim);
    }
}

static void companions_share_the_slot_of_random_names(void **state)
{
    static const char few[] = "{}ab";
    uint64_t seed = test_seed("companions_share_the_slot_of_random_names");

    (void)state;
    for (int round = 0; round < 20000; round++) {
        unsigned char name[40];
        size_t len = 1 + pawli_jitter(&seed, sizeof name);
        struct pawli_key *key;

        for (size_t i = 0; i < len; i++)
            name[i] = round % 2 == 0 ? (unsigned char)pawli_jitter(&seed, 256)
                                     : (unsigned char)few[pawli_jitter(&seed, 4)];
        key = make(round % 3 == 0 ? "svc:" : NULL, name, len);
        same_slot(key);
        pawli_key_unref(key);
    }
}

static void a_key_has_its_name_and_companions(void **state)
{
    struct pawli_key *key = make("app:", NAME("order:1"));

    (void)state;
    assert_int_equal(key->prefix_len, 4);
    assert_string_equal(key->name, "app:order:1");
    assert_int_equal(key->name_len, 11);
    assert_int_equal(key->queue_len, strlen(key->queue));
    assert_int_equal(key->counter_len, strlen(key->counter));
    assert_memory_equal(key->queue, "app:pawl:q:{", 12);
    assert_string_equal(strchr(key->queue, '}'), "}:order:1");
    assert_memory_equal(key->counter, "app:pawl:f:{", 12);
    assert_string_equal(strchr(key->counter, '}'), "}");
    assert_null(key->claim);
    pawli_key_unref(key);
}

static void a_claim_lies_beside_its_resource(void **state)
{
    struct pawli_key *key = NULL;
    char detail[128];

    (void)state;
    assert_int_equal(pawli_claim_key_new(NULL, NAME("acc"), detail, sizeof detail, &key), 0);
    assert_string_equal(key->name, "acc");
    assert_memory_equal(key->claim, "pawl:c:{", 8);
    assert_string_equal(strchr(key->claim, '}'), "}:acc");
    assert_int_equal(key->claim_len, strlen(key->claim));
    assert_null(key->queue);
    assert_null(key->counter);
    pawli_key_unref(key);
}

static void lengths_count_with_the_prefix(void **state)
{
    char name[PAWL_KEY_MAX + 1];
    struct pawli_key *key;

    (void)state;
    memset(name, 'k', sizeof name);
    refused(NULL, name, 0, "key: must not be empty");
    refused("app:", name, 0, "key: must not be empty");
    refused(NULL, NULL, 5, "key: must not be empty");
    refused(NULL, name, 513, "key of 513 bytes: must be 1 to 512 (bytes)");
    refused("app:", name, 509, "key of 509 bytes: must be 1 to 508 (bytes; 512 with the prefix)");
    refused(NULL, name, SIZE_MAX, "key of 18446744073709551615 bytes: must be 1 to 512 (bytes)");
    key = make(NULL, name, 1);
    same_slot(key);
    pawli_key_unref(key);
    key = make(NULL, name, 512);
    assert_int_equal(key->name_len, 512);
    same_slot(key);
    pawli_key_unref(key);
    key = make("app:", name, 508);
    assert_int_equal(key->name_len, 512);
    same_slot(key);
    pawli_key_unref(key);
}

static void names_are_bytes(void **state)
{
    struct pawli_key *key = make(NULL, NAME("a\0b\xff\n"));

    (void)state;
    assert_int_equal(key->name_len, 5);
    assert_memory_equal(key->name, "a\0b\xff\n", 5);
    assert_memory_equal(key->queue + key->queue_len - 5, "a\0b\xff\n", 5);
    same_slot(key);
    pawli_key_unref(key);
    key = make("x", NAME("\0"));
    assert_int_equal(key->name_len, 2);
    pawli_key_unref(key);
}

static void names_under_pawl_are_refused(void **state)
{
    static const char why[] = "key: must not begin with \"pawl:\"; such names are pawl's own";
    static const char *const fine[] = { "pawl", "pawls:", "paw", "p", "Pawl:", "xpawl:" };

    (void)state;
    refused(NULL, NAME("pawl:"), why);
    refused(NULL, NAME("pawl:q:{0}:x"), why);
    refused("", NAME("pawl:x"), why);
    refused("app:", NAME("pawl:x"), why);
    refused("pawl", NAME(":x"), why);
    refused("pa", NAME("wl:"), why);
    for (size_t i = 0; i < N_OF(fine); i++) {
        struct pawli_key *key = make(NULL, fine[i], strlen(fine[i]));

        pawli_key_unref(key);
    }
    pawli_key_unref(make("paw", NAME("l")));
    pawli_key_unref(make("pawl", NAME("x:")));
}

static void prefixes_are_printable_without_braces(void **state)
{
    static const char *const bad[] = { "a{",       "}",     "\n",    "\x7f",
                                       "\xc3\xa4", "a\x1f", "pawl:", "pawl:x" };
    static const char *const fine[] = { "", "app:", "a b", "~!", "pawl", "xpawl:" };
    char text[258];
    char detail[128];

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        detail[0] = '\0';
        assert_int_equal(pawli_prefix_check(bad[i], detail, sizeof detail), PAWL_EUSAGE);
        assert_memory_equal(detail, "prefix: must ", 13);
    }
    for (size_t i = 0; i < N_OF(fine); i++)
        assert_int_equal(pawli_prefix_check(fine[i], detail, sizeof detail), 0);
    memset(text, 'p', sizeof text);
    text[256] = '\0';
    assert_int_equal(pawli_prefix_check(text, detail, sizeof detail), 0);
    text[256] = 'p';
    text[257] = '\0';
    assert_int_equal(pawli_prefix_check(text, detail, sizeof detail), PAWL_EUSAGE);
    assert_string_equal(detail, "prefix of 257 bytes: must have at most 256");
}

static void references_are_counted(void **state)
{
    struct pawli_key *key = make(NULL, NAME("k"));

    (void)state;
    assert_ptr_equal(pawli_key_ref(key), key);
    pawli_key_unref(key);
    assert_string_equal(key->name, "k"); /* still there: a sanitizer would say */
    pawli_key_unref(key);
    pawli_key_unref(NULL);
}

static void without_memory_no_key_is_given(void **state)
{
    struct pawli_key *key = NULL;
    char detail[128] = "";

    (void)state;
    failing_alloc_after(0);
    assert_int_equal(pawli_key_new(NULL, NAME("k"), detail, sizeof detail, &key), PAWL_ENOMEM);
    failing_alloc_after(0);
    assert_int_equal(pawli_claim_key_new(NULL, NAME("k"), detail, sizeof detail, &key),
                     PAWL_ENOMEM);
    assert_null(key);
    assert_string_equal(detail, "no memory for a key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_cluster_keyslot),
        cmocka_unit_test(companions_share_the_slot_of_odd_names),
        cmocka_unit_test(companions_share_the_slot_of_random_names),
        cmocka_unit_test(a_key_has_its_name_and_companions),
        cmocka_unit_test(a_claim_lies_beside_its_resource),
        cmocka_unit_test(lengths_count_with_the_prefix),
        cmocka_unit_test(names_are_bytes),
        cmocka_unit_test(names_under_pawl_are_refused),
        cmocka_unit_test(prefixes_are_printable_without_braces),
        cmocka_unit_test(references_are_counted),
        cmocka_unit_test(without_memory_no_key_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
