/* Says for each lock name on stdin, in hex and one a line, what the library makes of it: slot,
 * queue, counter and claim key, the keys in hex too. For test_slots.py. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <pawl.h>

#include "core/key.h"

static size_t read_hex(const char *text, unsigned char *to)
{
    size_t len = 0;
    unsigned byte;

    for (; sscanf(text, "%2x", &byte) == 1; text += 2)
        to[len++] = (unsigned char)byte;
    return len;
}

static void print_hex(const char *key, size_t len)
{
    putchar(' ');
    for (size_t i = 0; i < len; i++)
        printf("%02x", (unsigned char)key[i]);
}

int main(int argc, char **argv)
{
    const char *prefix = argc > 1 ? argv[1] : NULL;
    char line[2 * PAWL_KEY_MAX + 2];
    char detail[128];

    while (fgets(line, sizeof line, stdin) != NULL) {
        unsigned char name[PAWL_KEY_MAX + 1];
        size_t len = read_hex(line, name);
        struct pawli_key *key;
        struct pawli_key *claim;

        if (pawli_key_new(prefix, name, len, detail, sizeof detail, &key) < 0 ||
            pawli_claim_key_new(prefix, name, len, detail, sizeof detail, &claim) < 0) {
            fprintf(stderr, "%s: %s\n", line, detail);
            return 1;
        }
        assert(claim->slot == key->slot);
        printf("%u", key->slot);
        print_hex(key->queue, key->queue_len);
        print_hex(key->counter, key->counter_len);
        print_hex(claim->claim, claim->claim_len);
        putchar('\n');
        pawli_key_unref(key);
        pawli_key_unref(claim);
    }
    return 0;
}
