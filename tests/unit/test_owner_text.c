/* Tests of what an owner's text may look like. */
#include "unit.h"

#include <pawl.h>

#include "core/owner_text.h"

#define ID "0123456789abcdef0123456789abcdef"

static int label(const char *text)
{
    char detail[128] = "";
    int rc = pawli_label_check(text, detail, sizeof detail);

    assert_true(rc == 0 || rc == PAWL_EOWNER);
    assert_int_equal(rc == 0, detail[0] == '\0');
    return rc;
}

static int owner(const char *text)
{
    char detail[128] = "";
    int rc = pawli_owner_text_check(text, detail, sizeof detail);

    assert_true(rc == 0 || rc == PAWL_EOWNER);
    assert_int_equal(rc == 0, detail[0] == '\0');
    return rc;
}

static void printable_and_utf8_labels_pass(void **state)
{
    static const char *const good[] = {
        "",
        "u001",
        "trace-1 user:7 ~!",
        "\xe8\xae\xa2\xe5\x8d\x95",
        "\xc2\xa0",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbd",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "\xe2\x80\xa7",
        "\xe2\x80\xaa",
    };

    (void)state;
    for (size_t i = 0; i < N_OF(good); i++)
        assert_int_equal(label(good[i]), 0);
}

static void control_characters_are_refused(void **state)
{
    static const char *const bad[] = { "\n",           "a\tb",         "\x1b[31m", "\x01",
                                       "\x1f",         "\x7f",         "\xc2\x80", "\xc2\x9f",
                                       "\xe2\x80\xa8", "\xe2\x80\xa9", "ok\r" };

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++)
        assert_int_equal(label(bad[i]), PAWL_EOWNER);
}

static void what_is_not_utf8_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2"
        "a",
        "\xe0\x9f\xbf",
        "\xe2\x80",
        "\xe2"
        "a\x80",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x90\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "\xff",
        "\xfe",
    };

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++)
        assert_int_equal(label(bad[i]), PAWL_EOWNER);
}

static void a_label_has_at_most_96_bytes(void **state)
{
    char text[PAWL_LABEL_MAX + 2];
    char detail[128] = "";

    (void)state;
    memset(text, 'x', sizeof text);
    text[PAWL_LABEL_MAX] = '\0';
    assert_int_equal(label(text), 0);
    text[PAWL_LABEL_MAX] = 'x';
    text[PAWL_LABEL_MAX + 1] = '\0';
    assert_int_equal(pawli_label_check(text, detail, sizeof detail), PAWL_EOWNER);
    assert_string_equal(detail, "label of 97 bytes: must have at most 96");
}

static void an_owner_is_32_lower_case_digits_and_perhaps_a_label(void **state)
{
    static const char *const bad[] = {
        "",
        "u001",
        ID "0",
        ID ":",
        ID "x",
        ID " ",
        ID ":a\nb",
        ":",
        ID ":\xff",
        "0123456789ABCDEF0123456789abcdef",
        "0123456789abcdef0123456789abcde",
        "@123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcde:u",
    };

    (void)state;
    assert_int_equal(owner(ID), 0);
    assert_int_equal(owner(ID ":u001"), 0);
    assert_int_equal(owner(ID "::"), 0);
    for (size_t i = 0; i < N_OF(bad); i++)
        assert_int_equal(owner(bad[i]), PAWL_EOWNER);
}

static void the_detail_names_the_byte(void **state)
{
    char detail[128] = "";

    (void)state;
    assert_int_equal(pawli_label_check("ab\n", detail, sizeof detail), PAWL_EOWNER);
    assert_string_equal(detail, "label: byte 3 is a control character");
    assert_int_equal(pawli_label_check("\xe8\xae\xa2\xff", detail, sizeof detail), PAWL_EOWNER);
    assert_string_equal(detail, "label: byte 4 is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_and_utf8_labels_pass),
        cmocka_unit_test(control_characters_are_refused),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(a_label_has_at_most_96_bytes),
        cmocka_unit_test(an_owner_is_32_lower_case_digits_and_perhaps_a_label),
        cmocka_unit_test(the_detail_names_the_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
