/* Owners as objects: counted texts. */
#ifndef PAWLI_ENGINE_OWNER_H
#define PAWLI_ENGINE_OWNER_H

#include <stdatomic.h>

#include <pawl.h>

struct pawl_owner {
    atomic_uint refs;
    char text[];
};

struct pawl_owner *pawli_owner_ref(const struct pawl_owner *owner);

/* The owner for an acquire: @given, else this thread's current one, else a new one without a
 * label. Gives one reference. 0, PAWL_ENOMEM or PAWL_ESYSTEM. */
int pawli_owner_choose(const struct pawl_owner *given, struct pawl_owner **ret_owner);

#endif
