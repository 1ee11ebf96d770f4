/* Tests of the options' ranges and of options structs of other versions. */
#include "unit.h"

#include <pawl.h>

#include "core/limits.h"

typedef struct pawl_client_options client_options;

static const client_options client_defaults = PAWL_CLIENT_OPTIONS_INIT;
static const struct pawl_lock_options lock_defaults = PAWL_LOCK_OPTIONS_INIT;

static int read_client(const client_options *opts, char detail[128])
{
    client_options all = { 0 };
    int rc;

    detail[0] = '\0';
    rc = pawli_client_options_read(opts, detail, 128, &all);
    if (rc == 0) {
        assert_string_equal(detail, "");
        assert_int_equal(all.size, sizeof all);
    } else {
        assert_int_equal(all.size, 0); /* written only on success */
        assert_string_not_equal(detail, "");
    }
    return rc;
}

static int read_lock(const struct pawl_lock_options *opts, char detail[128],
                     struct pawli_lock_settings *ret_settings)
{
    struct pawl_lock_options all = { 0 };

    detail[0] = '\0';
    memset(ret_settings, 0, sizeof *ret_settings);
    return pawli_lock_options_read(opts, &client_defaults, detail, 128, &all, ret_settings);
}

struct row {
    size_t offset; /* of an int64_t */
    int64_t value;
    int rc;
    const char *detail;
};

#define C(member) offsetof(client_options, member)
#define L(member) offsetof(struct pawl_lock_options, member)

static void client_times_have_their_ranges(void **state)
{
    static const struct row rows[] = {
        { C(connect_ms), 100, 0, "" },
        { C(connect_ms), 60000, 0, "" },
        { C(connect_ms), 99, PAWL_ERANGE, "connect_ms=99: must be 100 to 60000 (milliseconds)" },
        { C(connect_ms), 60001, PAWL_ERANGE,
          "connect_ms=60001: must be 100 to 60000 (milliseconds)" },
        { C(command_ms), 50, 0, "" },
        { C(command_ms), 60000, 0, "" },
        { C(command_ms), 49, PAWL_ERANGE, "command_ms=49: must be 50 to 60000 (milliseconds)" },
        { C(command_ms), 60001, PAWL_ERANGE,
          "command_ms=60001: must be 50 to 60000 (milliseconds)" },
        { C(release_ms), 0, 0, "" },
        { C(release_ms), 60000, 0, "" },
        { C(release_ms), -1, PAWL_ERANGE, "release_ms=-1: must be 0 to 60000 (milliseconds)" },
        { C(release_ms), 60001, PAWL_ERANGE,
          "release_ms=60001: must be 0 to 60000 (milliseconds)" },
        { C(retry_min_ms), 10, 0, "" },
        { C(retry_min_ms), 1000, 0, "" },
        { C(retry_min_ms), 9, PAWL_ERANGE, "retry_min_ms=9: must be 10 to 60000 (milliseconds)" },
        { C(retry_min_ms), 60001, PAWL_ERANGE,
          "retry_min_ms=60001: must be 10 to 60000 (milliseconds)" },
        { C(retry_min_ms), 1001, PAWL_ERANGE,
          "retry_max_ms=1000: must be 1001 to 60000 (milliseconds)" },
        { C(retry_max_ms), 50, 0, "" },
        { C(retry_max_ms), 60000, 0, "" },
        { C(retry_max_ms), 49, PAWL_ERANGE,
          "retry_max_ms=49: must be 50 to 60000 (milliseconds)" },
        { C(retry_max_ms), 60001, PAWL_ERANGE,
          "retry_max_ms=60001: must be 50 to 60000 (milliseconds)" },
        { C(lease_ms), PAWL_DEFAULT, PAWL_ERANGE,
          "lease_ms=-9223372036854775808: must be 100 to 3600000 (milliseconds)" },
        { C(wait_ms), -2, PAWL_ERANGE,
          "wait_ms=-2: must be 0 to 604800000 (milliseconds), or -1 (for ever)" },
        { C(max_hold_ms), 29999, PAWL_ERANGE,
          "max_hold_ms=29999: must be 30000 to 2592000000 (milliseconds), or -1 (unlimited)" },
        { C(grace_ms), 60001, PAWL_ERANGE, "grace_ms=60001: must be 0 to 60000 (milliseconds)" },
    };
    char detail[128];

    (void)state;
    for (size_t i = 0; i < N_OF(rows); i++) {
        client_options opts = client_defaults;

        memcpy((char *)&opts + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        assert_int_equal(read_client(&opts, detail), rows[i].rc);
        assert_string_equal(detail, rows[i].detail);
    }
}

static void lock_times_have_their_ranges(void **state)
{
    static const struct row rows[] = {
        { L(lease_ms), 100, 0, "" },
        { L(lease_ms), 180000, 0, "" },
        { L(lease_ms), 50, PAWL_ERANGE, "lease_ms=50: must be 100 to 3600000 (milliseconds)" },
        { L(lease_ms), 3600001, PAWL_ERANGE,
          "lease_ms=3600001: must be 100 to 3600000 (milliseconds)" },
        { L(lease_ms), 180001, 0, "" }, /* the default maximum hold is then the lease */
        { L(wait_ms), 0, 0, "" },
        { L(wait_ms), PAWL_FOREVER, 0, "" },
        { L(wait_ms), 604800000, 0, "" },
        { L(wait_ms), 604800001, PAWL_ERANGE,
          "wait_ms=604800001: must be 0 to 604800000 (milliseconds), or -1 (for ever)" },
        { L(wait_ms), INT64_MAX, PAWL_ERANGE,
          "wait_ms=9223372036854775807: must be 0 to 604800000 (milliseconds), or -1 (for ever)" },
        { L(max_hold_ms), 30000, 0, "" },
        { L(max_hold_ms), PAWL_UNLIMITED, 0, "" },
        { L(max_hold_ms), 2592000000, 0, "" },
        { L(max_hold_ms), 2592000001, PAWL_ERANGE,
          "max_hold_ms=2592000001: must be 30000 to 2592000000 (milliseconds), "
          "or -1 (unlimited)" },
        { L(max_hold_ms), 0, PAWL_ERANGE,
          "max_hold_ms=0: must be 30000 to 2592000000 (milliseconds), or -1 (unlimited)" },
        { L(grace_ms), 0, 0, "" },
        { L(grace_ms), 60000, 0, "" },
        { L(grace_ms), -1, PAWL_ERANGE, "grace_ms=-1: must be 0 to 60000 (milliseconds)" },
    };
    struct pawli_lock_settings set;
    char detail[128];

    (void)state;
    for (size_t i = 0; i < N_OF(rows); i++) {
        struct pawl_lock_options opts = lock_defaults;

        memcpy((char *)&opts + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        assert_int_equal(read_lock(&opts, detail, &set), rows[i].rc);
        assert_string_equal(detail, rows[i].detail);
        if (rows[i].rc != 0)
            assert_int_equal(set.lease_ms, 0); /* written only on success */
    }
}

static void defaults_are_those_of_the_header(void **state)
{
    struct pawl_lock_options all;
    struct pawli_lock_settings set;
    client_options client = client_defaults;
    char detail[128];

    (void)state;
    assert_int_equal(read_client(NULL, detail), 0);
    assert_int_equal(read_client(&client_defaults, detail), 0);
    assert_int_equal(read_lock(NULL, detail, &set), 0);
    assert_int_equal(set.lease_ms, 30000);
    assert_int_equal(set.wait_ms, 5000);
    assert_int_equal(set.max_hold_ms, 180000);
    assert_int_equal(set.grace_ms, 5000);
    assert_int_equal(set.flags, 0);
    client.lease_ms = 1000;
    client.wait_ms = PAWL_FOREVER;
    client.max_hold_ms = PAWL_UNLIMITED;
    client.grace_ms = 0;
    assert_int_equal(
        pawli_lock_options_read(&lock_defaults, &client, detail, sizeof detail, &all, &set), 0);
    assert_int_equal(set.lease_ms, 1000);
    assert_int_equal(set.wait_ms, PAWL_FOREVER);
    assert_int_equal(set.max_hold_ms, PAWL_UNLIMITED);
    assert_int_equal(set.grace_ms, 0);
    assert_int_equal(all.lease_ms, PAWL_DEFAULT); /* as it was given */
}

static void only_one_password_is_taken(void **state)
{
    static const size_t at[] = { C(password), C(password_env), C(password_file) };
    const char *text = "secret";
    char detail[128];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        client_options opts = client_defaults;

        memcpy((char *)&opts + at[i], &text, sizeof text);
        assert_int_equal(read_client(&opts, detail), 0);
        memcpy((char *)&opts + at[(i + 1) % 3], &text, sizeof text);
        assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
        assert_string_equal(detail, "give only one of password, password_env and password_file");
    }
}

static void certificate_and_key_come_together(void **state)
{
    client_options opts = client_defaults;
    char detail[128];

    (void)state;
    opts.cert_file = "c.pem";
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    assert_string_equal(detail, "cert_file: is given, so key_file must be too");
    opts.key_file = "k.pem";
    assert_int_equal(read_client(&opts, detail), 0);
    opts.cert_file = NULL;
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    assert_string_equal(detail, "key_file: is given, so cert_file must be too");
}

static void a_name_is_printable_and_short(void **state)
{
    static const char *const bad[] = { "a b", "a\n", "\x7f", "\xc3\xa4", "\t" };
    client_options opts = client_defaults;
    char detail[128];

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        opts.name = bad[i];
        assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
        assert_memory_equal(detail, "name: must be printable ASCII without blanks", 44);
    }
    opts.name = "12345678901234567890123456789012";
    assert_int_equal(read_client(&opts, detail), 0);
    opts.name = "123456789012345678901234567890123";
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    assert_string_equal(detail, "name of 33 bytes: must have at most 32");
    opts.name = "";
    assert_int_equal(read_client(&opts, detail), 0);
}

static void unknown_flags_and_levels_are_refused(void **state)
{
    client_options opts = client_defaults;
    struct pawl_lock_options lock = lock_defaults;
    struct pawli_lock_settings set;
    char detail[128];

    (void)state;
    opts.flags = PAWL_TLS_INSECURE;
    opts.log_level = PAWL_LOG_DEBUG;
    assert_int_equal(read_client(&opts, detail), 0);
    opts.log_level = 4;
    assert_int_equal(read_client(&opts, detail), PAWL_ERANGE);
    assert_string_equal(detail, "log_level=4: must be 0 (errors) to 3 (debug)");
    opts.log_level = -1;
    assert_int_equal(read_client(&opts, detail), PAWL_ERANGE);
    opts.log_level = 0;
    opts.flags = PAWL_TLS_INSECURE | 0x80u;
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    assert_string_equal(detail, "flags=0x81: 0x80 is no known flag");
    lock.flags = PAWL_NO_RENEW;
    assert_int_equal(read_lock(&lock, detail, &set), 0);
    assert_int_equal(set.flags, PAWL_NO_RENEW);
    lock.flags = 4;
    assert_int_equal(read_lock(&lock, detail, &set), PAWL_EUSAGE);
    assert_string_equal(detail, "flags=0x4: 0x4 is no known flag");
}

static void what_is_no_number_is_given_as_it_was(void **state)
{
    client_options opts = client_defaults;
    client_options all;
    struct pawl_lock_options lock = lock_defaults;
    struct pawl_lock_options all_lock;
    struct pawli_lock_settings set;
    int here;
    char detail[128];

    (void)state;
    opts.name = "me";
    opts.log_arg = &here;
    opts.prefix = "p:";
    assert_int_equal(pawli_client_options_read(&opts, detail, sizeof detail, &all), 0);
    assert_memory_equal(&all, &opts, sizeof all);
    lock.owner = (const struct pawl_owner *)(const void *)&here;
    lock.on_event_arg = &here;
    assert_int_equal(pawli_lock_options_read(&lock, &opts, detail, sizeof detail, &all_lock, &set),
                     0);
    assert_ptr_equal(all_lock.owner, &here);
    assert_ptr_equal(all_lock.on_event_arg, &here);
}

static void sizes_below_the_first_release_are_refused(void **state)
{
    client_options opts = client_defaults;
    struct pawl_lock_options lock = lock_defaults;
    struct pawli_lock_settings set;
    char detail[128];

    (void)state;
    opts.size = 0;
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    assert_memory_equal(detail, "size=0: must be the size of the struct", 38);
    opts.size = C(grace_ms);
    assert_int_equal(read_client(&opts, detail), PAWL_EUSAGE);
    opts.size = C(grace_ms) + sizeof opts.grace_ms;
    assert_int_equal(read_client(&opts, detail), 0);
    lock.size = 0;
    assert_int_equal(read_lock(&lock, detail, &set), PAWL_EUSAGE);
    lock.size = L(on_event_arg);
    assert_int_equal(read_lock(&lock, detail, &set), PAWL_EUSAGE);
}

static void larger_structs_pass_if_the_rest_is_zero(void **state)
{
    struct {
        client_options opts;
        int64_t next;
    } newer;
    char detail[128];

    (void)state;
    memset(&newer, 0, sizeof newer);
    newer.opts = client_defaults;
    newer.opts.size = sizeof newer;
    assert_int_equal(read_client(&newer.opts, detail), 0);
    newer.next = INT64_C(1) << 56;
    assert_int_equal(read_client(&newer.opts, detail), PAWL_EUSAGE);
    assert_non_null(strstr(detail, "that this version (" PAWL_VERSION ") does not know"));
}

static void an_older_struct_leaves_the_newer_defaults(void **state)
{
    struct grown {
        size_t size;
        int64_t first;
        int64_t second;
    } known = { 0, 10, 20 };
    struct {
        size_t size;
        int64_t first;
    } older = { sizeof older, 11 };
    char detail[128] = "";

    (void)state;
    assert_int_equal(pawli_struct_read(&older, older.size, sizeof older, sizeof known, detail,
                                       sizeof detail, &known),
                     0);
    assert_int_equal(known.first, 11);
    assert_int_equal(known.second, 20);
    assert_int_equal(pawli_struct_read(&older, older.size - 1, sizeof older, sizeof known, detail,
                                       sizeof detail, &known),
                     PAWL_EUSAGE);
}

static void a_lease_alone_is_checked_too(void **state)
{
    char detail[128] = "";

    (void)state;
    assert_int_equal(pawli_lease_check(100, detail, sizeof detail), 0);
    assert_int_equal(pawli_lease_check(3600000, detail, sizeof detail), 0);
    assert_int_equal(pawli_lease_check(PAWL_DEFAULT, detail, sizeof detail), PAWL_ERANGE);
    assert_int_equal(pawli_lease_check(99, detail, sizeof detail), PAWL_ERANGE);
    assert_string_equal(detail, "lease_ms=99: must be 100 to 3600000 (milliseconds)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_times_have_their_ranges),
        cmocka_unit_test(lock_times_have_their_ranges),
        cmocka_unit_test(defaults_are_those_of_the_header),
        cmocka_unit_test(only_one_password_is_taken),
        cmocka_unit_test(certificate_and_key_come_together),
        cmocka_unit_test(a_name_is_printable_and_short),
        cmocka_unit_test(unknown_flags_and_levels_are_refused),
        cmocka_unit_test(what_is_no_number_is_given_as_it_was),
        cmocka_unit_test(sizes_below_the_first_release_are_refused),
        cmocka_unit_test(larger_structs_pass_if_the_rest_is_zero),
        cmocka_unit_test(an_older_struct_leaves_the_newer_defaults),
        cmocka_unit_test(a_lease_alone_is_checked_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
