/* Tests of the names of Redisson's channels. */
#include "unit.h"

#include "backend/redis/redisson.h"

static void assert_channel(const char *name, const char *expected)
{
    char channel[PAWLI_REDISSON_CHANNEL];
    size_t len = pawli_redisson_channel(name, strlen(name), channel);

    assert_int_equal(len, strlen(expected));
    assert_memory_equal(channel, expected, len);
}

static void braces_are_put_round_a_name_without_any(void **state)
{
    (void)state;
    assert_channel("k", "redisson_lock__channel:{k}");
    assert_channel("a}b", "redisson_lock__channel:{a}b}");
    assert_channel("{k}", "redisson_lock__channel:{k}");
    assert_channel("a{b", "redisson_lock__channel:a{b");
    assert_channel("{t}:x", "redisson_lock__channel:{t}:x");
}

static void the_longest_name_fits(void **state)
{
    char name[PAWL_KEY_MAX];
    char channel[PAWLI_REDISSON_CHANNEL];

    (void)state;
    memset(name, 'x', sizeof name);
    assert_true(pawli_redisson_channel(name, sizeof name, channel) <= sizeof channel);
}

static void assert_names(const char *channel, int n, const char *first, const char *second)
{
    struct pawli_redisson_name names[2];
    const char *expected[2] = { first, second };

    assert_int_equal(pawli_redisson_names(channel, strlen(channel), names), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(names[i].len, strlen(expected[i]));
        assert_memory_equal(names[i].at, expected[i], names[i].len);
    }
}

static void a_channel_names_every_lock_that_it_may_be_of(void **state)
{
    (void)state;
    assert_names("redisson_lock__channel:{k}", 2, "{k}", "k");
    assert_names("redisson_lock__channel:{a}b}", 2, "{a}b}", "a}b");
    assert_names("redisson_lock__channel:a{b", 1, "a{b", NULL);
    assert_names("redisson_lock__channel:{t}:x", 1, "{t}:x", NULL);
    assert_names("redisson_lock__channel:{}", 1, "{}", NULL);
}

static void other_channels_name_none(void **state)
{
    (void)state;
    assert_names("redisson_lock__channel:", 0, NULL, NULL);
    assert_names("redisson_lock__channel:k", 0, NULL, NULL);
    assert_names("pawl:i:0123", 0, NULL, NULL);
    assert_names("", 0, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_are_put_round_a_name_without_any),
        cmocka_unit_test(the_longest_name_fits),
        cmocka_unit_test(a_channel_names_every_lock_that_it_may_be_of),
        cmocka_unit_test(other_channels_name_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
