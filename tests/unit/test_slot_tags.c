/* Tests of the table of hash tags, with a CRC of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/slot_tags.h"

static unsigned slot_of(const char *text)
{
    unsigned crc = 0;

    for (const char *p = text; *p != '\0'; p++) {
        crc ^= (unsigned)(unsigned char)*p << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000u) != 0 ? (crc << 1) ^ 0x1021u : crc << 1;
        crc &= 0xffffu;
    }
    return crc % PAWLI_N_SLOTS;
}

static void crc_gives_the_published_values(void **state)
{
    (void)state;
    /* 0x31c3 is the check value in the Redis Cluster specification; foo is CLUSTER KEYSLOT foo. */
    assert_int_equal(slot_of("123456789"), 0x31c3);
    assert_int_equal(slot_of("foo"), 12182);
}

static void every_tag_falls_into_its_slot(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < PAWLI_N_SLOTS; slot++) {
        const char *tag = pawli_slot_tags[slot];
        size_t len = strlen(tag);

        assert_in_range(len, 1, 4);
        assert_int_equal(strspn(tag, "0123456789abcdefghijklmnopqrstuvwxyz"), len);
        assert_int_equal(slot_of(tag), slot);
    }
}

static void a_tag_is_the_first_of_its_slot(void **state)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char text[3] = "";

    (void)state;
    for (size_t i = 0; i < 36; i++) {
        text[0] = digits[i];
        text[1] = '\0';
        assert_string_equal(pawli_slot_tags[slot_of(text)], text);
    }
    for (size_t i = 0; i < 36; i++) {
        for (size_t j = 0; j < 36; j++) {
            text[0] = digits[i];
            text[1] = digits[j];
            /* A shorter or an earlier text may have come first, never a later one. */
            const char *tag = pawli_slot_tags[slot_of(text)];

            assert_true(strlen(tag) < 2 || strcmp(tag, text) <= 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_gives_the_published_values),
        cmocka_unit_test(every_tag_falls_into_its_slot),
        cmocka_unit_test(a_tag_is_the_first_of_its_slot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
