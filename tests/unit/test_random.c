/* Tests of secret and of cheap random bits. */
#include "unit.h"

#include <pawl.h>

#include "failing.h"

static void ids_are_32_hex_digits_and_differ(void **state)
{
    char a[PAWLI_ID_LEN + 1];
    char b[PAWLI_ID_LEN + 1];

    (void)state;
    assert_int_equal(pawli_random_id(a), 0);
    assert_int_equal(pawli_random_id(b), 0);
    assert_int_equal(strlen(a), PAWLI_ID_LEN);
    assert_int_equal(strspn(a, "0123456789abcdef"), PAWLI_ID_LEN);
    assert_string_not_equal(a, b);
}

static void every_bit_of_an_id_takes_both_values(void **state)
{
    unsigned char ones[16] = { 0 };
    unsigned char zeros[16] = { 0 };

    (void)state;
    for (int i = 0; i < 200; i++) {
        unsigned char bytes[16];

        assert_int_equal(pawli_random_bytes(bytes, sizeof bytes), 0);
        for (size_t k = 0; k < sizeof bytes; k++) {
            ones[k] |= bytes[k];
            zeros[k] |= (unsigned char)~bytes[k];
        }
    }
    for (size_t k = 0; k < sizeof ones; k++) {
        assert_int_equal(ones[k], 0xff);
        assert_int_equal(zeros[k], 0xff);
    }
}

static void short_and_interrupted_reads_go_on(void **state)
{
    static const enum failing_random what[] = { RANDOM_INTERRUPTED, RANDOM_SHORT, RANDOM_SHORT,
                                                RANDOM_INTERRUPTED };
    unsigned char bytes[64] = { 0 };
    int n_zero = 0;

    (void)state;
    failing_random_set(what, N_OF(what));
    assert_int_equal(pawli_random_bytes(bytes, sizeof bytes), 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        n_zero += bytes[i] == 0;
    assert_true(n_zero < 16);
}

static void no_random_bytes_is_a_failure_and_gives_no_id(void **state)
{
    static const enum failing_random what[] = { RANDOM_REFUSED, RANDOM_SHORT, RANDOM_REFUSED };
    char id[PAWLI_ID_LEN + 1] = "untouched";
    unsigned char byte;

    (void)state;
    failing_random_set(what, 1);
    assert_int_equal(pawli_random_bytes(&byte, 1), PAWL_ESYSTEM);
    failing_random_set(what + 1, 2);
    assert_int_equal(pawli_random_id(id), PAWL_ESYSTEM);
    assert_string_equal(id, "untouched");
}

static void jitter_stays_below_its_bound_and_reaches_all_of_it(void **state)
{
    uint64_t seed = test_seed("jitter");
    int seen[10] = { 0 };

    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint64_t n = pawli_jitter(&seed, 10);

        assert_true(n < 10);
        seen[n]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(seen[i], 100, 300);
    assert_int_equal(pawli_jitter(&seed, 1), 0);
    assert_true(pawli_jitter(&seed, UINT64_MAX) < UINT64_MAX);
}

static void equal_seeds_give_equal_jitter(void **state)
{
    uint64_t a = 42;
    uint64_t b = 42;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(pawli_jitter(&a, 1000), pawli_jitter(&b, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_32_hex_digits_and_differ),
        cmocka_unit_test(every_bit_of_an_id_takes_both_values),
        cmocka_unit_test(short_and_interrupted_reads_go_on),
        cmocka_unit_test(no_random_bytes_is_a_failure_and_gives_no_id),
        cmocka_unit_test(jitter_stays_below_its_bound_and_reaches_all_of_it),
        cmocka_unit_test(equal_seeds_give_equal_jitter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
