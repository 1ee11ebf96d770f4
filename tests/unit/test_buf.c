/* Tests of the growing buffer. */
#include "unit.h"

#include <pawl.h>

#include "failing.h"
#include "util/buf.h"

static void an_empty_buffer_has_nothing(void **state)
{
    struct pawli_buf buf;

    (void)state;
    pawli_buf_init(&buf);
    assert_int_equal(pawli_buf_len(&buf), 0);
    assert_null(pawli_buf_data(&buf));
    pawli_buf_take(&buf, 0);
    pawli_buf_clear(&buf);
    assert_int_equal(pawli_buf_append(&buf, NULL, 0), 0);
    pawli_buf_done(&buf);
    pawli_buf_done(&buf);
}

static void bytes_come_out_as_they_went_in(void **state)
{
    uint64_t seed = test_seed("bytes_come_out_as_they_went_in");
    struct pawli_buf buf;
    unsigned char in = 0;
    unsigned char out = 0;

    (void)state;
    pawli_buf_init(&buf);
    for (int i = 0; i < 20000; i++) {
        unsigned char piece[300] = { 0 };
        size_t len = pawli_jitter(&seed, sizeof piece);

        if (pawli_jitter(&seed, 2) == 0) {
            for (size_t k = 0; k < len; k++)
                piece[k] = in++;
            assert_int_equal(pawli_buf_append(&buf, piece, len), 0);
        } else {
            if (len > pawli_buf_len(&buf))
                len = pawli_buf_len(&buf);
            for (size_t k = 0; k < len; k++)
                assert_int_equal((unsigned char)pawli_buf_data(&buf)[k], out++);
            pawli_buf_take(&buf, len);
        }
        assert_int_equal((unsigned char)pawli_buf_len(&buf), (unsigned char)(in - out));
    }
    pawli_buf_done(&buf);
}

static void taken_room_is_used_again(void **state)
{
    static const char piece[400];
    struct pawli_buf buf;
    size_t room;

    (void)state;
    pawli_buf_init(&buf);
    assert_int_equal(pawli_buf_append(&buf, piece, sizeof piece), 0);
    room = buf.room;
    for (int i = 0; i < 100; i++) {
        pawli_buf_take(&buf, sizeof piece - 1);
        assert_int_equal(pawli_buf_append(&buf, piece, sizeof piece - 1), 0);
    }
    assert_int_equal(buf.room, room);
    pawli_buf_done(&buf);
}

static void reserved_room_counts_once_it_is_said(void **state)
{
    struct pawli_buf buf;
    char *to;

    (void)state;
    pawli_buf_init(&buf);
    to = pawli_buf_reserve(&buf, 1000);
    assert_non_null(to);
    memcpy(to, "abc", 3);
    assert_int_equal(pawli_buf_len(&buf), 0);
    pawli_buf_grew(&buf, 3);
    assert_int_equal(pawli_buf_len(&buf), 3);
    assert_memory_equal(pawli_buf_data(&buf), "abc", 3);
    pawli_buf_done(&buf);
}

static void clear_keeps_moderate_room_only(void **state)
{
    struct pawli_buf buf;

    (void)state;
    pawli_buf_init(&buf);
    assert_int_equal(pawli_buf_append(&buf, "x", 1), 0);
    pawli_buf_clear(&buf);
    assert_int_equal(pawli_buf_len(&buf), 0);
    assert_true(buf.room > 0);
    assert_non_null(pawli_buf_reserve(&buf, 1000000));
    pawli_buf_clear(&buf);
    assert_int_equal(buf.room, 0);
    assert_int_equal(pawli_buf_append(&buf, "y", 1), 0);
    assert_memory_equal(pawli_buf_data(&buf), "y", 1);
    pawli_buf_done(&buf);
}

static void without_memory_the_buffer_is_unchanged(void **state)
{
    static const char piece[4096];
    struct pawli_buf buf;

    (void)state;
    pawli_buf_init(&buf);
    failing_alloc_after(0);
    assert_int_equal(pawli_buf_append(&buf, "abc", 3), PAWL_ENOMEM);
    assert_int_equal(pawli_buf_append(&buf, "abc", 3), 0);
    failing_alloc_after(0);
    assert_int_equal(pawli_buf_append(&buf, piece, sizeof piece), PAWL_ENOMEM);
    assert_null(pawli_buf_reserve(&buf, SIZE_MAX));
    assert_null(pawli_buf_reserve(&buf, SIZE_MAX - 3));
    assert_int_equal(pawli_buf_len(&buf), 3);
    assert_memory_equal(pawli_buf_data(&buf), "abc", 3);
    pawli_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_has_nothing),
        cmocka_unit_test(bytes_come_out_as_they_went_in),
        cmocka_unit_test(taken_room_is_used_again),
        cmocka_unit_test(reserved_room_counts_once_it_is_said),
        cmocka_unit_test(clear_keeps_moderate_room_only),
        cmocka_unit_test(without_memory_the_buffer_is_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
