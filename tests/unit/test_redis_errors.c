/* Each row of the table of error texts, in the forms of Redis 6.0 to 8.0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include <pawl.h>

#include "backend/redis/errors.h"

struct row {
    const char *text;
    int result;
};

static void check(const struct row *rows, size_t n, int (*judge)(const char *text, size_t len))
{
    for (size_t i = 0; i < n; i++) {
        int result = judge(rows[i].text, strlen(rows[i].text));

        if (result != rows[i].result)
            fail_msg("%s: %s, not %s", rows[i].text, pawl_result_name(result),
                     pawl_result_name(rows[i].result));
    }
}

static void replies_at_top_level(void **state)
{
    static const struct row rows[] = {
        { "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
          PAWL_ESCRIPTBUSY },
        { "LOADING Redis is loading the dataset in memory", PAWL_ELOADING },
        { "OOM command not allowed when used memory > 'maxmemory'.", PAWL_EOOM },
        { "MISCONF Redis is configured to save RDB snapshots, but", PAWL_EMISCONF },
        { "READONLY You can't write against a read only replica.", PAWL_EREADONLY },
        { "NOREPLICAS Not enough good replicas to write.", PAWL_ENOREPLICAS },
        { "MOVED 3999 127.0.0.1:6381", PAWL_EMOVED },
        { "ASK 3999 127.0.0.1:6381", PAWL_EASK },
        { "TRYAGAIN Multiple keys request during rehashing of slot", PAWL_ETRYAGAIN },
        { "CLUSTERDOWN The cluster is down", PAWL_ECLUSTERDOWN },
        { "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
          PAWL_EMASTERDOWN },
        { "WRONGPASS invalid username-password pair or user is disabled.", PAWL_EAUTH },
        { "ERR invalid password", PAWL_EAUTH },
        { "ERR AUTH <password> called without any password configured for the default user. Are "
          "you sure your configuration is correct?",
          PAWL_EAUTH },
        { "NOAUTH Authentication required.", PAWL_ENOAUTH },
        { "NOPERM this user has no permissions to run the 'evalsha' command", PAWL_ENOPERM },
        { "NOPERM User weak has no permissions to access one of the keys used as arguments",
          PAWL_ENOPERM },
        { "DENIED Redis is running in protected mode because", PAWL_ENOPERM },
        { "ERR unknown command 'EVALSHA', with args beginning with: ", PAWL_ENOSCRIPTING },
        { "ERR unknown command `EVALSHA`, with args beginning with: ", PAWL_ENOSCRIPTING },
        { "NOSCRIPT No matching script. Please use EVAL.", PAWL_ESERVER },
        { "ERR something new", PAWL_ESERVER },
        { "", PAWL_ESERVER },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], pawli_redis_error);
}

static void errors_raised_inside_prove_nothing(void **state)
{
    static const struct row rows[] = {
        { "OOM command not allowed when used memory > 'maxmemory'. script: 0123456789, on "
          "@user_script:12.",
          PAWL_ESCRIPT },
        { "WRONGTYPE Operation against a key holding the wrong kind of value script: "
          "8f3e2a, on @user_script:1.",
          PAWL_ESCRIPT },
        { "READONLY You can't write against a read only replica. script: 8f3e2a, on "
          "@user_script:1.",
          PAWL_ESCRIPT },
        { "ERR The user executing the script can't run this command or subcommand script: 8f3e",
          PAWL_ESCRIPT },
        { "ERR The user executing the script can't access at least one of the keys mentioned in "
          "the command arguments",
          PAWL_ESCRIPT },
        { "ERR Error running script (call to f_8f3e2a): @user_script:1: WRONGTYPE Operation",
          PAWL_ESCRIPT },
        { "ERR user_script:3: Script attempted to access nonexistent global variable 'x' script: "
          "8f3e2a, on @user_script:3.",
          PAWL_ESCRIPT },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], pawli_redis_error);
}

static void caught_errors_tell_the_truth(void **state)
{
    static const struct row rows[] = {
        { "OOM command not allowed when used memory > 'maxmemory'.", PAWL_EOOM },
        { "-OOM command not allowed when used memory > 'maxmemory'.\r\n", PAWL_EOOM },
        { "ERR The user executing the script can't run this command or subcommand", PAWL_ENOPERM },
        { "The user executing the script can't run this command or subcommand", PAWL_ENOPERM },
        { "READONLY You can't write against a read only replica.", PAWL_EREADONLY },
        { "WRONGTYPE Operation against a key", PAWL_EWRONGTYPE },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], pawli_redis_caught_error);
}

static void only_some_end_the_connection(void **state)
{
    (void)state;
    assert_true(pawli_redis_error_drops(PAWL_EREADONLY));
    assert_true(pawli_redis_error_drops(PAWL_EMASTERDOWN));
    assert_true(pawli_redis_error_drops(PAWL_ENOAUTH));
    assert_false(pawli_redis_error_drops(PAWL_EOOM));
    assert_false(pawli_redis_error_drops(PAWL_ESCRIPTBUSY));
    assert_false(pawli_redis_error_drops(0));
    assert_true(pawli_redis_is_noscript("NOSCRIPT No", 11));
    assert_false(pawli_redis_is_noscript("NOSCRIP", 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_at_top_level),
        cmocka_unit_test(errors_raised_inside_prove_nothing),
        cmocka_unit_test(caught_errors_tell_the_truth),
        cmocka_unit_test(only_some_end_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
