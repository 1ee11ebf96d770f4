/* Lock names and their companions, see key.h. Sends nothing. */
#include "core/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl.h>

#define PREFIX_MAX 256
#define RESERVED "pawl:"
#define RESERVED_LEN (sizeof RESERVED - 1)

/* CRC16-XMODEM, half a byte at a time: fast enough for names of up to 512 bytes. */
static uint16_t crc16(const unsigned char *data, size_t len)
{
    static const uint16_t table[16] = { 0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                        0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                        0xc18c, 0xd1ad, 0xe1ce, 0xf1ef };
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc = ((crc << 4) ^ table[((crc >> 12) ^ (data[i] >> 4)) & 15u]) & 0xffffu;
        crc = ((crc << 4) ^ table[((crc >> 12) ^ (data[i] & 15u)) & 15u]) & 0xffffu;
    }
    return (uint16_t)crc;
}

/* Redis Cluster specification, "Hash tags": what lies between the first { and the first } after
 * it, unless that is nothing. */
uint16_t pawli_slot(const void *key, size_t len)
{
    const unsigned char *text = key;
    const unsigned char *open = len == 0 ? NULL : memchr(text, '{', len);

    if (open != NULL) {
        const unsigned char *tag = open + 1;
        const unsigned char *shut = memchr(tag, '}', (size_t)(text + len - tag));

        if (shut != NULL && shut > tag)
            return crc16(tag, (size_t)(shut - tag)) % PAWLI_SLOTS;
    }
    return crc16(text, len) % PAWLI_SLOTS;
}

/* The parts of one key on their way into one piece of memory. */
struct parts {
    const char *prefix;
    size_t prefix_len;
    const void *name;
    size_t name_len;
};

static int name_check(const struct parts *p, char *detail, size_t detail_len)
{
    char start[RESERVED_LEN] = { 0 };
    size_t of_prefix = p->prefix_len < RESERVED_LEN ? p->prefix_len : RESERVED_LEN;
    size_t of_name = RESERVED_LEN - of_prefix;

    if (p->name == NULL || p->name_len == 0) {
        (void)snprintf(detail, detail_len, "key: must not be empty");
        return PAWL_EKEY;
    }
    if (p->name_len > PAWL_KEY_MAX - p->prefix_len) {
        (void)snprintf(detail, detail_len, "key of %zu bytes: must be 1 to %zu (bytes%s)",
                       p->name_len, PAWL_KEY_MAX - p->prefix_len,
                       p->prefix_len > 0 ? "; 512 with the prefix" : "");
        return PAWL_EKEY;
    }
    if (p->name_len < of_name)
        of_name = p->name_len;
    memcpy(start, p->prefix, of_prefix);
    memcpy(start + of_prefix, p->name, of_name);
    /* The companions begin so, behind the prefix; and so do those of clients without a prefix. */
    if (memcmp(start, RESERVED, RESERVED_LEN) == 0 ||
        (p->name_len >= RESERVED_LEN && memcmp(p->name, RESERVED, RESERVED_LEN) == 0)) {
        (void)snprintf(detail, detail_len,
                       "key: must not begin with \"" RESERVED "\"; such names are pawl's own");
        return PAWL_EKEY;
    }
    return 0;
}

/* Write <prefix>pawl:<kind>:{tag}[:<name>] to @to, which has room; returns its length. A NUL
 * behind it keeps printable ones readable in a debugger. */
static size_t companion(const struct parts *p, char kind, uint16_t slot, int with_name, char *to)
{
    char *at = to;

    memcpy(at, p->prefix, p->prefix_len);
    at += p->prefix_len;
    /* "pawl:q:{abcd}:" has 14 bytes, within COMPANION_ROOM. */
    at += snprintf(at, 16, "pawl:%c:{%s}%s", kind, pawli_slot_tags[slot], with_name ? ":" : "");
    if (with_name) {
        memcpy(at, p->name, p->name_len);
        at += p->name_len;
    }
    *at = '\0';
    return (size_t)(at - to);
}

#define COMPANION_ROOM 16

/* Checked parts with room for two more texts behind: name, then first, then second. */
static int key_alloc(const char *prefix, const void *name, size_t name_len, char *detail,
                     size_t detail_len, struct parts *ret_parts, struct pawli_key **ret_key,
                     char **ret_rest)
{
    struct parts p = { prefix == NULL ? "" : prefix, 0, name, name_len };
    struct pawli_key *key;
    char *text;
    size_t full_len;
    int rc;

    p.prefix_len = strlen(p.prefix);
    rc = name_check(&p, detail, detail_len);
    if (rc < 0)
        return rc;
    full_len = p.prefix_len + p.name_len;
    key = calloc(1, sizeof *key + full_len + 1 + 2 * (full_len + COMPANION_ROOM));
    if (key == NULL) {
        (void)snprintf(detail, detail_len, "no memory for a key");
        return PAWL_ENOMEM;
    }
    text = (char *)(key + 1);
    memcpy(text, p.prefix, p.prefix_len);
    memcpy(text + p.prefix_len, p.name, p.name_len);
    atomic_init(&key->refs, 1);
    key->slot = pawli_slot(text, full_len);
    key->prefix_len = p.prefix_len;
    key->name = text;
    key->name_len = full_len;
    *ret_parts = p;
    *ret_key = key;
    *ret_rest = text + full_len + 1;
    return 0;
}

int pawli_key_new(const char *prefix, const void *name, size_t name_len, char *detail,
                  size_t detail_len, struct pawli_key **ret_key)
{
    struct parts p;
    struct pawli_key *key;
    char *rest;
    int rc = key_alloc(prefix, name, name_len, detail, detail_len, &p, &key, &rest);

    if (rc < 0)
        return rc;
    key->queue = rest;
    key->queue_len = companion(&p, 'q', key->slot, 1, rest);
    rest += key->queue_len + 1;
    key->counter = rest;
    key->counter_len = companion(&p, 'f', key->slot, 0, rest);
    *ret_key = key;
    return 0;
}

int pawli_claim_key_new(const char *prefix, const void *resource, size_t len, char *detail,
                        size_t detail_len, struct pawli_key **ret_key)
{
    struct parts p;
    struct pawli_key *key;
    char *rest;
    int rc = key_alloc(prefix, resource, len, detail, detail_len, &p, &key, &rest);

    if (rc < 0)
        return rc;
    key->claim = rest;
    key->claim_len = companion(&p, 'c', key->slot, 1, rest);
    *ret_key = key;
    return 0;
}

struct pawli_key *pawli_key_ref(struct pawli_key *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void pawli_key_unref(struct pawli_key *key)
{
    if (key != NULL && atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) == 1)
        free(key);
}

int pawli_prefix_check(const char *prefix, char *detail, size_t detail_len)
{
    size_t len = strlen(prefix);

    if (len > PREFIX_MAX) {
        (void)snprintf(detail, detail_len, "prefix of %zu bytes: must have at most %d", len,
                       PREFIX_MAX);
        return PAWL_EUSAGE;
    }
    for (size_t i = 0; i < len; i++) {
        if (prefix[i] < 0x20 || prefix[i] > 0x7e || prefix[i] == '{' || prefix[i] == '}') {
            (void)snprintf(detail, detail_len,
                           "prefix: must be printable ASCII without braces (byte %zu)", i + 1);
            return PAWL_EUSAGE;
        }
    }
    if (strncmp(prefix, RESERVED, RESERVED_LEN) == 0) {
        (void)snprintf(detail, detail_len, "prefix: must not begin with \"" RESERVED "\"");
        return PAWL_EUSAGE;
    }
    return 0;
}
