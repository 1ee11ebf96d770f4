/* Tests of bytes shown as text. */
#include "unit.h"

#include "util/printable.h"

static void check(const char *data, size_t len, const char *shown)
{
    char text[PAWLI_PRINTABLE_LEN];

    assert_ptr_equal(pawli_printable(data, len, text), text);
    assert_string_equal(text, shown);
}

static void printable_bytes_stay_and_others_are_escaped(void **state)
{
    (void)state;
    check("", 0, "\"\"");
    check("order:1 ~", 9, "\"order:1 ~\"");
    check("a\0b\n\xff", 5, "\"a\\x00b\\x0a\\xff\"");
    check("q\"\\", 3, "\"q\\x22\\x5c\"");
}

static void what_is_too_long_is_cut(void **state)
{
    char data[512];
    char text[PAWLI_PRINTABLE_LEN];

    (void)state;
    for (int byte = 'x'; byte >= 0; byte -= 'x') {
        memset(data, byte, sizeof data);
        for (size_t len = 0; len <= sizeof data; len++) {
            size_t n = strlen(pawli_printable(data, len, text));

            assert_true(n >= 2 && n < PAWLI_PRINTABLE_LEN && text[n - 1] == '"');
        }
        assert_string_equal(text + strlen(text) - 4, "...\"");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_bytes_stay_and_others_are_escaped),
        cmocka_unit_test(what_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
