/* The user's handle of one hold. */
#ifndef PAWLI_ENGINE_LOCK_H
#define PAWLI_ENGINE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include <pawl.h>

#include "core/key.h"
#include "core/limits.h"
#include "engine/notify.h"
#include "engine/owner.h"
#include "util/list.h"
#include "util/random.h"

struct pawli_held;
struct pawli_release;

enum pawli_lock_state {
    PAWLI_LOCK_NEW,      /* not granted yet */
    PAWLI_LOCK_HELD,
    PAWLI_LOCK_RELEASED  /* its release has begun */
};

struct pawl_lock {
    atomic_uint refs;
    struct pawl_client *client;     /* one reference */
    struct pawli_held *held;        /* one reference; set before the user sees the handle */
    struct pawli_key *key;
    struct pawl_owner *owner;
    char hold_id[PAWLI_ID_LEN + 1]; /* a secret */
    struct pawli_release *release;  /* ready to go; whoever wins the release takes it */
    _Atomic int state;
    atomic_int fd;                  /* eventfd, -1: not asked for */
    struct pawli_note note;
    /* loop only */
    struct pawli_list link;         /* in the hold's handles */
    struct pawli_lock_settings settings;
    bool outermost;
    bool at_risk;   /* told so, and not withdrawn */
    bool tombstone; /* an attempt of the acquire went unanswered: see release */
};

/* A handle that waits for its grant; copies @key, @owner (references) and what @opts says of
 * callbacks. One reference. 0, PAWL_ENOMEM or PAWL_ESYSTEM. */
int pawli_lock_new(struct pawl_client *client, struct pawli_key *key, struct pawl_owner *owner,
                   const struct pawl_lock_options *opts,
                   const struct pawli_lock_settings *settings, struct pawl_lock **ret_lock);
struct pawl_lock *pawli_lock_ref(struct pawl_lock *lock);
void pawli_lock_unref(struct pawl_lock *lock);

/* Tell the handle's callback and descriptor. On the loop. */
void pawli_lock_tell(struct pawl_lock *lock, enum pawl_event event, int result);

/* HELD to RELEASED, true once. From any thread. */
bool pawli_lock_begin_release(struct pawl_lock *lock);

#endif
