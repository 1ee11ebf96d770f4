/* Tests of result texts, names and classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <pawl.h>

struct row {
    int number;
    const char *name;
    const char *text;
    enum pawl_class result_class;
};

static const struct row rows[] = {
#define ROW(name, number, class_, text) { (number), "PAWL_" #name, text, PAWL_CLASS_##class_ },
    PAWL_RESULT_MAP(ROW)
#undef ROW
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static void every_result_has_name_text_and_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        assert_string_equal(pawl_result_name(rows[i].number), rows[i].name);
        assert_string_equal(pawl_result_text(rows[i].number), rows[i].text);
        assert_int_equal(pawl_result_class(rows[i].number), rows[i].result_class);
    }
}

static void numbers_names_and_texts_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].number, rows[j].number);
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
}

static void answers_are_not_negative_and_failures_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++)
        assert_int_equal(rows[i].number < 0, rows[i].result_class != PAWL_CLASS_ANSWER);
}

static void unknown_number_is_named_so(void **state)
{
    static const int numbers[] = { -1000, -999, 15, 1000, INT32_MAX, INT32_MIN };

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_string_equal(pawl_result_name(numbers[i]), "PAWL_?");
        assert_string_equal(pawl_result_text(numbers[i]), "unknown result");
        assert_int_equal(pawl_result_class(numbers[i]), PAWL_CLASS_USAGE);
    }
}

static void lost_is_every_lost_result_and_no_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        int named_lost = strncmp(rows[i].name, "PAWL_LOST_", 10) == 0;

        assert_int_equal(pawl_is_lost(rows[i].number), named_lost);
    }
}

static void version_is_that_of_the_header(void **state)
{
    char text[32];

    (void)state;
    snprintf(text, sizeof text, "%d.%d.%d", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR,
             PAWL_VERSION_PATCH);
    assert_string_equal(pawl_version(), text);
    assert_string_equal(PAWL_VERSION, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_has_name_text_and_class),
        cmocka_unit_test(numbers_names_and_texts_are_unique),
        cmocka_unit_test(answers_are_not_negative_and_failures_are),
        cmocka_unit_test(unknown_number_is_named_so),
        cmocka_unit_test(lost_is_every_lost_result_and_no_other),
        cmocka_unit_test(version_is_that_of_the_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
