/* Lock names: what is allowed, and the names of the companion keys in the same cluster slot. */
#ifndef PAWLI_CORE_KEY_H
#define PAWLI_CORE_KEY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slot_tags.h"

#define PAWLI_SLOTS PAWLI_N_SLOTS

/* CRC16 of the key, or of its hash tag, modulo 16384: as CLUSTER KEYSLOT answers. */
uint16_t pawli_slot(const void *key, size_t len);

/* A lock's key with its companions, in one allocation, counted. */
struct pawli_key {
    atomic_uint refs;   /* handles are freed on any thread */
    uint16_t slot;
    size_t prefix_len;
    size_t name_len;    /* prefix and name: the key in Redis */
    size_t queue_len;
    size_t counter_len;
    size_t claim_len;
    const char *name;
    const char *queue;   /* <prefix>pawl:q:{tag}:<key> */
    const char *counter; /* <prefix>pawl:f:{tag} */
    const char *claim;   /* of a claim key only, which has neither queue nor counter */
};

/* 0; PAWL_EKEY (empty, too long, under "pawl:"); PAWL_ENOMEM. @detail names the rule. @prefix has
 * been checked by pawli_prefix_check(). Gives *ret_key, one reference. */
int pawli_key_new(const char *prefix, const void *name, size_t name_len, char *detail,
                  size_t detail_len, struct pawli_key **ret_key);
struct pawli_key *pawli_key_ref(struct pawli_key *key);
void pawli_key_unref(struct pawli_key *key);

/* A prefix must be printable ASCII without braces (they would move the companions to another
 * slot), at most 256 bytes, not under "pawl:". 0 or PAWL_EUSAGE. */
int pawli_prefix_check(const char *prefix, char *detail, size_t detail_len);

/* A fenced resource: name is the resource's key in Redis, and claim the key beside it,
 * <prefix>pawl:c:{tag}:<resource>. Same results. */
int pawli_claim_key_new(const char *prefix, const void *resource, size_t len, char *detail,
                        size_t detail_len, struct pawli_key **ret_key);

#endif
