/* Releases on their way: repeated until the store has answered, or the lease is over. */
#ifndef PAWLI_ENGINE_RELEASE_H
#define PAWLI_ENGINE_RELEASE_H

#include <pawl.h>

struct pawl_client;
struct pawl_lock;
struct pawli_held;
struct pawli_release;

/* Made together with the lock, so that giving it back never needs memory. NULL: out of memory. */
struct pawli_release *pawli_release_new(void);
/* One that never began. NULL is allowed. */
void pawli_release_free(struct pawli_release *release);

/* Begin the release of @lock (state RELEASED) with nobody waiting for it. On the loop. */
void pawli_release_begin(struct pawl_lock *lock);

/* Remove the ids of all of @held's handles at the store, behind. On the loop. */
void pawli_release_all(struct pawli_held *held);

/* See to it that nothing is ever granted to @lock's present hold id, an attempt of which may still
 * be on its way, or have joined the queue just now with @entry. Takes @entry; NULL: it did not ask
 * to queue. On the loop. */
void pawli_release_bury(struct pawl_lock *lock, char *entry, size_t entry_len);

void pawli_releases_up(struct pawl_client *client);
void pawli_releases_drop(struct pawl_client *client);

#endif
