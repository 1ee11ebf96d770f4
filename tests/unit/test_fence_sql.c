/* Tests of the statements of fencing in a SQL database: which there are. That they work is tested
 * with the database of the order service. */
#include "unit.h"

#include <pawl.h>

static void every_dialect_has_every_statement(void **state)
{
    (void)state;
    for (int dialect = PAWL_SQL_SQLITE; dialect <= PAWL_SQL_POSTGRESQL; dialect++) {
        for (int statement = PAWL_SQL_TABLE; statement <= PAWL_SQL_CHECK; statement++) {
            const char *text =
                pawl_fence_sql((enum pawl_sql_dialect)dialect, (enum pawl_sql_statement)statement);
            const char *last = dialect == PAWL_SQL_SQLITE ? "?3" : "$3";

            assert_non_null(text);
            assert_non_null(strstr(text, "pawl_fence"));
            assert_int_equal(strstr(text, last) != NULL, statement != PAWL_SQL_TABLE);
        }
    }
}

static void there_are_no_others(void **state)
{
    (void)state;
    assert_null(pawl_fence_sql((enum pawl_sql_dialect)2, PAWL_SQL_TABLE));
    assert_null(pawl_fence_sql((enum pawl_sql_dialect) - 1, PAWL_SQL_TABLE));
    assert_null(pawl_fence_sql(PAWL_SQL_SQLITE, (enum pawl_sql_statement)3));
    assert_null(pawl_fence_sql(PAWL_SQL_SQLITE, (enum pawl_sql_statement) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dialect_has_every_statement),
        cmocka_unit_test(there_are_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
