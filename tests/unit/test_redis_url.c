/* URLs of the Redis backend: what they mean, what is refused and how; and the clock offset. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include <pawl.h>

#include "backend/backend.h"
#include "backend/redis/offset.h"
#include "backend/redis/url.h"

static struct pawli_redis_url parse(const char *text)
{
    struct pawli_redis_url url;
    char detail[256] = "";
    int rc = pawli_redis_url_parse(text, &url, detail, sizeof detail);

    if (rc != 0)
        fail_msg("%s: %s", text, detail);
    return url;
}

static void the_parts_are_found(void **state)
{
    struct pawli_redis_url url = parse("redis://us%40er:p%3Aa%2Fss@example.com:7000/12");

    (void)state;
    assert_false(url.tls);
    assert_string_equal(url.host, "example.com");
    assert_int_equal(url.port, 7000);
    assert_int_equal(url.db, 12);
    assert_string_equal(url.username, "us@er");
    assert_string_equal(url.password, "p:a/ss");
    assert_null(url.path);
    pawli_redis_url_done(&url);

    url = parse("rediss://:pw@[::1]");
    assert_true(url.tls);
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 6379);
    assert_int_equal(url.db, 0);
    assert_null(url.username);
    assert_string_equal(url.password, "pw");
    pawli_redis_url_done(&url);

    url = parse("redis+unix:///run/my%20redis/s?db=3");
    assert_string_equal(url.path, "/run/my redis/s");
    assert_null(url.host);
    assert_int_equal(url.db, 3);
    pawli_redis_url_done(&url);
    url = parse("REDIS://localhost/");
    pawli_redis_url_done(&url);
}

static void what_is_wrong_is_named(void **state)
{
    static const char *const bad[][2] = {
        { "", "scheme" },
        { "localhost:6379", "" },
        { "http://h", "scheme 'http'" },
        { "redis://", "host" },
        { "redis://h:0", "port 0" },
        { "redis://h:70000", "" },
        { "redis://h:port", "" },
        { "redis://h/x", "database 'x'" },
        { "redis://h/-1", "database '-1'" },
        { "redis://h/1/2", "database" },
        { "redis://h/99999999999999999999", "database" },
        { "redis://h?db=1", "?db=1" },
        { "redis://h#f", "#" },
        { "redis://user@h", "user name" },
        { "redis://:geheim%00@h", "%00" },
        { "redis+unix://h/path", "three slashes" },
        { "redis+unix:///", "path" },
        { "redis+unix:///s?timeout=1", "timeout" },
        { "redis+unix:///s?db=1&x=2", "?db=N" },
        { "redis://geheim:geheim geheim@h", "" },
        { "redis://u:12/geheim@h", "database" },
        { "redis://u:12?geheim@h", "no options" },
        { "redis+unix:///s?geheim@h", "?db=N" },
    };
    struct pawli_redis_url url;
    char detail[256];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        detail[0] = '\0';
        assert_int_equal(pawli_redis_url_parse(bad[i][0], &url, detail, sizeof detail), PAWL_EURL);
        if (strstr(detail, bad[i][1]) == NULL || detail[0] == '\0')
            fail_msg("%s: %s", bad[i][0], detail);
        assert_null(strstr(detail, "geheim"));
    }
}

static void a_long_socket_path_is_refused(void **state)
{
    struct pawli_redis_url url;
    char text[200] = "redis+unix:///";
    char detail[256];

    (void)state;
    memset(text + 14, 'x', 108);
    assert_int_equal(pawli_redis_url_parse(text, &url, detail, sizeof detail), PAWL_EURL);
}

static void schemes_find_their_backend(void **state)
{
    (void)state;
    assert_ptr_equal(pawli_backend_for("redis://h"), &pawli_backend_redis);
    assert_ptr_equal(pawli_backend_for("rediss://h"), &pawli_backend_redis);
    assert_ptr_equal(pawli_backend_for("redis+unix:///s"), &pawli_backend_redis);
    assert_null(pawli_backend_for("redi://h"));
    assert_null(pawli_backend_for("redisss://h"));
    assert_null(pawli_backend_for("redis:/h"));
    assert_null(pawli_backend_for(""));
}

#define MS INT64_C(1000000)

static void a_round_trip_bounds_the_offset(void **state)
{
    struct pawli_offset offset = { 0 };

    (void)state;
    assert_int_equal(pawli_offset_server_us(&offset, 0, 1000), 0);
    assert_int_equal(pawli_offset_saw(&offset, 1000000, 100 * MS, 110 * MS), 0);
    /* At most 1000000 - 100000 ahead: the deadline is never too early. */
    assert_int_equal(pawli_offset_server_us(&offset, 100 * MS, 0), 1000000);
    /* A quicker trip narrows it, a slow one within it says nothing. */
    assert_int_equal(pawli_offset_saw(&offset, 1099000, 200 * MS, 202 * MS), 0);
    assert_int_equal(offset.low_us, 897000);
    assert_int_equal(offset.high_us, 899000);
    assert_int_equal(pawli_offset_saw(&offset, 1400000, 300 * MS, 900 * MS), 0);
    assert_int_equal(offset.high_us, 899000);
}

static void a_jump_is_told_drift_is_not(void **state)
{
    struct pawli_offset offset = { 0 };

    (void)state;
    (void)pawli_offset_saw(&offset, 1000000, 100 * MS, 101 * MS);
    assert_int_equal(pawli_offset_saw(&offset, 1000000 + 49000, 100 * MS, 101 * MS), 0);
    assert_int_equal(offset.high_us, 949000);
    assert_int_equal(pawli_offset_saw(&offset, 5000000, 100 * MS, 101 * MS), 3950);
    assert_int_equal(pawli_offset_saw(&offset, 1000000, 100 * MS, 101 * MS), -3999);
    /* As long as the trip was, it may have been the trip. */
    assert_int_equal(pawli_offset_saw(&offset, 1000000, 100 * MS, 4000 * MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_are_found),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_long_socket_path_is_refused),
        cmocka_unit_test(schemes_find_their_backend),
        cmocka_unit_test(a_round_trip_bounds_the_offset),
        cmocka_unit_test(a_jump_is_told_drift_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
