/* The handle of one hold: what a user reads from it on any thread. Touches no socket. */
#include "engine/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/validity.h"
#include "engine/client.h"
#include "engine/fork.h"
#include "engine/hold.h"
#include "engine/release.h"

int pawli_lock_new(struct pawl_client *client, struct pawli_key *key, struct pawl_owner *owner,
                   const struct pawl_lock_options *opts,
                   const struct pawli_lock_settings *settings, struct pawl_lock **ret_lock)
{
    struct pawl_lock *lock = calloc(1, sizeof *lock);
    int rc;

    if (lock == NULL)
        return pawli_fail(PAWL_ENOMEM, "no memory for a lock");
    lock->release = pawli_release_new();
    if (lock->release == NULL) {
        rc = pawli_fail(PAWL_ENOMEM, "no memory for a lock");
        goto fail;
    }
    rc = pawli_random_id(lock->hold_id);
    if (rc < 0) {
        (void)pawli_fail(rc, "the system gave no random bytes");
        goto fail;
    }
    rc = opts->on_event == NULL ? 0 : pawli_notifier_start(&client->notifier);
    if (rc < 0) {
        (void)pawli_fail(rc, "the callback thread could not be started");
        goto fail;
    }
    atomic_init(&lock->refs, 1);
    atomic_init(&lock->state, PAWLI_LOCK_NEW);
    atomic_init(&lock->fd, -1);
    lock->client = pawli_client_ref(client);
    lock->key = pawli_key_ref(key);
    lock->owner = pawli_owner_ref(owner);
    lock->settings = *settings;
    pawli_list_init(&lock->link);
    pawli_note_init(&lock->note, lock, opts->on_event, opts->on_event_arg);
    *ret_lock = lock;
    return 0;

fail:
    pawli_release_free(lock->release);
    free(lock);
    return rc;
}

struct pawl_lock *pawli_lock_ref(struct pawl_lock *lock)
{
    atomic_fetch_add_explicit(&lock->refs, 1, memory_order_relaxed);
    return lock;
}

void pawli_lock_unref(struct pawl_lock *lock)
{
    struct pawl_client *client;
    int fd;

    if (lock == NULL || atomic_fetch_sub_explicit(&lock->refs, 1, memory_order_acq_rel) != 1)
        return;
    client = lock->client;
    fd = atomic_load(&lock->fd);
    if (fd >= 0)
        close(fd);
    pawli_release_free(lock->release);
    pawli_held_unref(lock->held);
    pawli_key_unref(lock->key);
    pawl_owner_free(lock->owner);
    free(lock);
    pawli_client_unref(client);
}

bool pawli_lock_begin_release(struct pawl_lock *lock)
{
    int held = PAWLI_LOCK_HELD;

    return atomic_compare_exchange_strong(&lock->state, &held, PAWLI_LOCK_RELEASED);
}

static void make_readable(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void pawli_lock_tell(struct pawl_lock *lock, enum pawl_event event, int result)
{
    int fd = atomic_load(&lock->fd);

    if (fd >= 0 && (event == PAWL_EVENT_EXPIRING || event == PAWL_EVENT_LOST))
        make_readable(fd);
    pawli_notify(&lock->client->notifier, &lock->note, event, result);
}

/* ---- the hold's facts ---- */

int pawli_held_lost(const struct pawli_held *held)
{
    return atomic_load_explicit(&held->lost, memory_order_acquire);
}

/* Ask the engine to look at the hold now; at most one question is on its way. */
static void kick(struct pawli_held *held)
{
    if (atomic_exchange(&held->kicked, true))
        return;
    pawli_client_post(held->client, &pawli_held_ref(held)->kick);
}

/* The clock says that the lease is over: the first to notice fixes the reason. */
static int lose(struct pawli_held *held)
{
    int reason = atomic_load_explicit(&held->failing, memory_order_relaxed) ? PAWL_LOST_UNREACHABLE
                                                                            : PAWL_LOST_EXPIRED;
    int none = 0;

    if (atomic_load_explicit(&held->expiring, memory_order_relaxed))
        reason = PAWL_LOST_MAX_HOLD;
    if (!atomic_compare_exchange_strong(&held->lost, &none, reason))
        reason = none;
    kick(held);
    return reason;
}

int pawli_held_check(struct pawli_held *held)
{
    const struct pawli_clock *clock = pawli_loop_clock(held->client->loop);
    int64_t now_ns = clock->boot_ns(clock);
    int64_t jump_ns = clock->real_ns(clock) - now_ns -
                      atomic_load_explicit(&held->offset_ns, memory_order_relaxed);
    int lost = pawli_held_lost(held);
    bool renews = atomic_load_explicit(&held->renew_on, memory_order_relaxed);
    bool jumped = jump_ns > atomic_load_explicit(&held->jump_ns, memory_order_relaxed);

    if (lost != 0)
        return lost;
    /* Without renewal nothing will confirm the hold: count the jump as time that passed. */
    if (jumped && !renews)
        now_ns += jump_ns;
    if (now_ns >= atomic_load_explicit(&held->valid_until_ns, memory_order_acquire))
        return lose(held);
    if (renews && (jumped || atomic_load(&held->doubt))) {
        atomic_store(&held->doubt, true);
        kick(held);
        return PAWL_UNSURE;
    }
    return atomic_load_explicit(&held->expiring, memory_order_relaxed) ? PAWL_EXPIRING : 0;
}

/* ---- public ---- */

int pawl_lock_check(struct pawl_lock *lock)
{
    int rc;

    if (lock == NULL)
        return pawli_fail(PAWL_EUSAGE, "lock is NULL");
    rc = pawli_client_check(lock->client);
    if (rc < 0)
        return rc;
    rc = pawli_held_lost(lock->held);
    if (rc != 0)
        return rc;
    if (atomic_load_explicit(&lock->state, memory_order_relaxed) != PAWLI_LOCK_HELD)
        return PAWL_NOT_OWNER;
    return pawli_held_check(lock->held);
}

static int64_t left_ms(const struct pawl_lock *lock, const _Atomic int64_t *end_ns)
{
    const struct pawli_clock *clock = pawli_loop_clock(lock->client->loop);
    int64_t left_ns = atomic_load_explicit(end_ns, memory_order_acquire) - clock->boot_ns(clock);

    return left_ns <= 0 ? 0 : left_ns / PAWLI_NS_PER_MS;
}

int64_t pawl_lock_remaining_ms(struct pawl_lock *lock)
{
    int rc = pawl_lock_check(lock);

    if (rc != 0 && rc != PAWL_EXPIRING && rc != PAWL_UNSURE)
        return 0;
    return left_ms(lock, &lock->held->valid_until_ns);
}

int64_t pawl_lock_max_hold_remaining_ms(struct pawl_lock *lock)
{
    if (lock == NULL)
        return 0;
    if (atomic_load(&lock->held->max_end_ns) == PAWLI_NEVER)
        return PAWL_UNLIMITED;
    return left_ms(lock, &lock->held->max_end_ns);
}

uint64_t pawl_lock_token(const struct pawl_lock *lock)
{
    return lock == NULL ? 0 : lock->held->token;
}

int pawl_lock_count(const struct pawl_lock *lock)
{
    return lock == NULL ? 0 : atomic_load(&lock->held->count);
}

const char *pawl_lock_owner(const struct pawl_lock *lock)
{
    return lock == NULL ? "" : lock->owner->text;
}

const void *pawl_lock_key(const struct pawl_lock *lock, size_t *ret_len)
{
    if (lock == NULL)
        return NULL;
    if (ret_len != NULL)
        *ret_len = lock->key->name_len - lock->key->prefix_len;
    return lock->key->name + lock->key->prefix_len;
}

int pawl_lock_fd(struct pawl_lock *lock)
{
    int none = -1;
    int rc;
    int fd;

    if (lock == NULL)
        return pawli_fail(PAWL_EUSAGE, "lock is NULL");
    rc = pawli_client_check(lock->client);
    if (rc < 0)
        return rc;
    fd = atomic_load(&lock->fd);
    if (fd >= 0)
        return fd;
    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return pawli_fail(PAWL_ESYSTEM, "no descriptor for the lock (errno %d)", errno);
    if (!atomic_compare_exchange_strong(&lock->fd, &none, fd)) {
        close(fd);
        return none;
    }
    /* What was told before the descriptor existed is shown by it too. */
    if (atomic_load(&lock->held->lost) != 0 || atomic_load(&lock->held->expiring))
        make_readable(fd);
    return fd;
}
