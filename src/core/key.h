/* Lock names: what is allowed, and the names of the companion keys in the same cluster slot. */
#ifndef PAWLI_CORE_KEY_H
#define PAWLI_CORE_KEY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PAWLI_SLOTS 16384

/* CRC16 of the key, or of its hash tag, modulo 16384: as CLUSTER KEYSLOT answers. */
uint16_t pawli_slot(const void *key, size_t len);

/* Generated: the tag of each slot, see tools/slots.py. */
extern const char pawli_slot_tags[PAWLI_SLOTS][5];

/* A lock's key with its companions, in one allocation, counted. */
struct pawli_key {
    atomic_uint refs;   /* handles are freed on any thread */
    uint16_t slot;
    size_t prefix_len;
    size_t name_len;    /* prefix and name: the key in Redis */
    size_t queue_len;
    size_t counter_len;
    const char *name;
    const char *queue;   /* <prefix>pawl:q:{tag}:<key> */
    const char *counter; /* <prefix>pawl:f:{tag} */
};

/* 0; PAWL_EKEY (empty, too long, under "pawl:"); PAWL_ENOMEM. @detail names the rule. @prefix has
 * been checked by pawli_prefix_check(). Gives *ret_key, one reference. */
int pawli_key_new(const char *prefix, const void *name, size_t name_len, char *detail,
                  size_t detail_len, struct pawli_key **ret_key);
struct pawli_key *pawli_key_ref(struct pawli_key *key);
void pawli_key_unref(struct pawli_key *key);

/* A prefix must be printable ASCII without braces (they would move the companions to another
 * slot), at most 256 bytes. 0 or PAWL_EUSAGE. */
int pawli_prefix_check(const char *prefix, char *detail, size_t detail_len);

/* <prefix>pawl:c:{tag}:<resource>, the claim beside a fenced resource. Same results. */
int pawli_claim_key_new(const char *prefix, const void *resource, size_t len, char *detail,
                        size_t detail_len, struct pawli_key **ret_key);

#endif
