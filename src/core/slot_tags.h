/* slot_tags.h: a short hash tag for each Redis Cluster slot. The table is made at build time by
 * tools/slots.py. Must not know what the tags are used for. */
#ifndef PAWLI_CORE_SLOT_TAGS_H
#define PAWLI_CORE_SLOT_TAGS_H

#define PAWLI_N_SLOTS 16384

/* pawli_slot_tags[s] is the first lower-case base-36 text (by length, then 0-9 before a-z) whose
 * CRC16 modulo PAWLI_N_SLOTS is s; at most 4 bytes, terminated. */
extern const char pawli_slot_tags[PAWLI_N_SLOTS][5];

#endif
