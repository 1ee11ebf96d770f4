/* Holds on the loop: drives core/hold.h, tells the handles, keeps the facts that check reads. */
#include "engine/hold.h"

#include <stdlib.h>
#include <string.h>

#include "core/validity.h"
#include "engine/client.h"
#include "engine/lock.h"
#include "engine/release.h"
#include "util/printable.h"

#define BATCH_NS_MAX (100 * PAWLI_NS_PER_MS)

struct pawli_held *pawli_held_ref(struct pawli_held *held)
{
    atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
    return held;
}

void pawli_held_unref(struct pawli_held *held)
{
    if (held == NULL || atomic_fetch_sub_explicit(&held->refs, 1, memory_order_acq_rel) != 1)
        return;
    pawli_key_unref(held->key);
    pawl_owner_free(held->owner);
    free(held);
}

static void publish(struct pawli_held *held)
{
    const struct pawli_hold *sm = &held->sm;

    atomic_store_explicit(&held->failing, sm->renewing || sm->last_failure != 0,
                          memory_order_relaxed);
    atomic_store_explicit(&held->renew_on, sm->renew_on, memory_order_relaxed);
    atomic_store_explicit(&held->jump_ns, pawli_jump_ns(sm->lease_ms), memory_order_relaxed);
    atomic_store_explicit(&held->max_end_ns, sm->max_end_ns, memory_order_relaxed);
    /* In one order with the descriptor of pawl_lock_fd(): one of both sides sees the other. */
    atomic_store(&held->expiring, sm->state == PAWLI_HOLD_EXPIRING);
    atomic_store_explicit(&held->valid_until_ns, sm->valid_until_ns, memory_order_release);
}

static void tell(struct pawli_held *held, enum pawl_event event, int result)
{
    struct pawli_list *node;

    for (node = held->handles.next; node != &held->handles; node = node->next) {
        struct pawl_lock *lock = PAWLI_CONTAINER(node, struct pawl_lock, link);

        /* A handle that joined while the hold was at risk was not told so. */
        if (event == PAWL_EVENT_RECOVERED && !lock->at_risk)
            continue;
        if (event == PAWL_EVENT_AT_RISK || event == PAWL_EVENT_RECOVERED)
            lock->at_risk = event == PAWL_EVENT_AT_RISK;
        pawli_lock_tell(lock, event, result);
    }
}

/* Out of the client's tables: nothing finds it any more but its handles. */
static void unlist(struct pawli_held *held)
{
    struct pawl_client *client = held->client;

    if (pawli_list_empty(&held->link))
        return;
    pawli_map_remove(&client->holds, &held->by_owner);
    pawli_list_remove(&held->link);
    pawli_list_remove(&held->due);
    pawli_loop_timer_clear(client->loop, &held->timer);
    pawli_loop_timer_unreserve(client->loop);
    pawli_uncount(&client->stats.held);
    pawli_held_unref(held);
}

static void lose(struct pawli_held *held, int reason)
{
    struct pawl_client *client = held->client;
    char name[PAWLI_PRINTABLE_LEN];
    int none = 0;

    /* check may have noticed first, on its own thread: its reason stands, and is told once. */
    if (!atomic_compare_exchange_strong(&held->lost, &none, reason))
        reason = none;
    held->told_lost = true;
    pawli_count_loss(&client->stats, reason);
    pawli_log(&client->notifier, PAWL_LOG_ERROR, "lock %s %s; token %llu, owner %s",
              pawli_printable(held->key->name, held->key->name_len, name),
              pawl_result_text(reason), (unsigned long long)held->token, held->owner->text);
    tell(held, PAWL_EVENT_LOST, reason);
}

/* Renewals may come up to a hundredth of the lease late, so that those due close together meet in
 * one request. Nothing else is rounded. */
static int64_t wake_at(const struct pawli_held *held, int64_t wake_ns)
{
    int64_t grid_ns = held->sm.lease_ms * PAWLI_NS_PER_MS / 100;
    int64_t end_ns = held->sm.valid_until_ns;

    if (wake_ns != held->sm.renew_at_ns || wake_ns == PAWLI_NEVER)
        return wake_ns;
    if (grid_ns > BATCH_NS_MAX)
        grid_ns = BATCH_NS_MAX;
    wake_ns = (wake_ns / grid_ns + 1) * grid_ns;
    if (end_ns > held->sm.max_end_ns)
        end_ns = held->sm.max_end_ns;
    return wake_ns < end_ns ? wake_ns : end_ns; /* a loss is never told late */
}

static void apply(struct pawli_held *held, const struct pawli_hold_effects *fx)
{
    struct pawl_client *client = held->client;

    publish(held);
    if (fx->renew && pawli_list_empty(&held->due))
        pawli_list_append(&client->renewals_due, &held->due);
    if (fx->tell_at_risk)
        tell(held, PAWL_EVENT_AT_RISK, fx->result);
    if (fx->tell_recovered)
        tell(held, PAWL_EVENT_RECOVERED, 0);
    if (fx->tell_expiring)
        tell(held, PAWL_EVENT_EXPIRING, PAWL_EXPIRING);
    if (fx->tell_lost)
        lose(held, fx->result);
    if (fx->release_all)
        pawli_release_all(held);
    if (held->sm.state == PAWLI_HOLD_ENDED) {
        if (fx->tell_lost)
            pawli_hist_add(&client->stats.hold_ms,
                           pawli_loop_now_ns(client->loop) - held->granted_ns);
        unlist(held);
        pawli_client_settled(client);
    } else if (fx->wake_ns == PAWLI_NEVER) {
        pawli_loop_timer_clear(client->loop, &held->timer);
    } else {
        pawli_loop_timer_set(client->loop, &held->timer, wake_at(held, fx->wake_ns));
    }
}

void pawli_held_step(struct pawli_held *held, struct pawli_hold_event *ev)
{
    struct pawli_hold_effects fx;
    int lost = atomic_load_explicit(&held->lost, memory_order_acquire);

    pawli_held_ref(held); /* the step may end it */
    ev->now_ns = pawli_loop_now_ns(held->client->loop);
    if (lost != 0 && !held->told_lost && held->sm.state != PAWLI_HOLD_RELEASING) {
        struct pawli_hold_event noticed = { .kind = PAWLI_HOLD_LOST,
                                            .now_ns = ev->now_ns,
                                            .code = lost };

        pawli_hold_step(&held->sm, &noticed, &fx);
        apply(held, &fx);
    }
    pawli_hold_step(&held->sm, ev, &fx);
    apply(held, &fx);
    pawli_held_unref(held);
}

bool pawli_held_confirmed(struct pawli_held *held, int64_t sent_ns)
{
    int64_t offset_ns = pawli_clocks_offset_at(held->client, sent_ns);

    return offset_ns > atomic_exchange(&held->offset_ns, offset_ns);
}

/* The machine may have been frozen where BOOTTIME did not see it: confirm before believing. */
static bool jumped(struct pawli_held *held)
{
    int64_t then_ns = atomic_load_explicit(&held->offset_ns, memory_order_relaxed);

    return pawli_clocks_offset_ns(held->client) - then_ns > pawli_jump_ns(held->sm.lease_ms);
}

static void look(struct pawli_held *held)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_TICK };

    if (jumped(held) && !atomic_exchange(&held->doubt, true))
        ev.kind = PAWLI_HOLD_DOUBT;
    pawli_held_step(held, &ev);
}

static void timer_fired(struct pawli_timer *timer)
{
    look(PAWLI_CONTAINER(timer, struct pawli_held, timer));
}

static void kicked(struct pawli_task *task)
{
    struct pawli_held *held = PAWLI_CONTAINER(task, struct pawli_held, kick);

    atomic_store(&held->kicked, false);
    if (!pawli_list_empty(&held->link)) {
        struct pawli_hold_event ev = { .kind = PAWLI_HOLD_DOUBT };

        if (atomic_load(&held->doubt))
            pawli_held_step(held, &ev);
        else
            look(held);
    }
    pawli_held_unref(held);
}

/* ---- grants ---- */

static uint64_t hash_of(const struct pawli_key *key, const struct pawl_owner *owner)
{
    uint64_t hash = pawli_hash(PAWLI_HASH_START, key->name, key->name_len);

    return pawli_hash(hash, owner->text, strlen(owner->text));
}

static struct pawli_held *find(struct pawl_client *client, const struct pawl_lock *lock)
{
    struct pawli_map_node *node;

    for (node = pawli_map_first(&client->holds, hash_of(lock->key, lock->owner)); node != NULL;
         node = pawli_map_next(node)) {
        struct pawli_held *held = PAWLI_CONTAINER(node, struct pawli_held, by_owner);

        if (held->key->name_len == lock->key->name_len &&
            memcmp(held->key->name, lock->key->name, lock->key->name_len) == 0 &&
            strcmp(held->owner->text, lock->owner->text) == 0)
            return held;
    }
    return NULL;
}

static int list(struct pawli_held *held)
{
    struct pawl_client *client = held->client;
    int rc = pawli_loop_timer_reserve(client->loop);

    if (rc < 0)
        return rc;
    rc = pawli_map_add(&client->holds, &held->by_owner, hash_of(held->key, held->owner));
    if (rc < 0) {
        pawli_loop_timer_unreserve(client->loop);
        return rc;
    }
    pawli_list_append(&client->all_holds, &pawli_held_ref(held)->link);
    pawli_count(&client->stats.held);
    return 0;
}

static int make(struct pawl_lock *lock, const struct pawli_grant *grant,
                struct pawli_held **ret_held)
{
    struct pawl_client *client = lock->client;
    const struct pawli_lock_settings *set = &lock->settings;
    struct pawli_held *held = calloc(1, sizeof *held);
    struct pawli_backoff backoff;
    int rc;

    if (held == NULL)
        return PAWL_ENOMEM;
    atomic_init(&held->refs, 1);
    held->client = client;
    held->key = pawli_key_ref(lock->key);
    held->owner = pawli_owner_ref(lock->owner);
    held->token = grant->token;
    held->granted_ns = grant->base_ns;
    held->timer.fire = timer_fired;
    held->kick.run = kicked;
    pawli_list_init(&held->link);
    pawli_list_init(&held->due);
    pawli_list_init(&held->handles);
    pawli_client_backoff(client, &backoff);
    pawli_hold_init(&held->sm, grant->base_ns, grant->pttl_ms, set->lease_ms, set->max_hold_ms,
                    set->grace_ms, (set->flags & PAWL_NO_RENEW) == 0, &backoff);
    if (grant->claim)
        pawli_hold_claimed(&held->sm, pawli_loop_now_ns(client->loop));
    rc = list(held);
    if (rc < 0) {
        pawli_held_unref(held);
        return rc;
    }
    *ret_held = held;
    return 0;
}

/* The largest lease and any wish to renew among the live handles. */
static void sum_up(const struct pawli_held *held, struct pawli_hold_event *ev)
{
    const struct pawli_list *node;

    ev->lease_ms = 0;
    ev->renew = false;
    for (node = held->handles.next; node != &held->handles; node = node->next) {
        const struct pawl_lock *lock = PAWLI_CONTAINER(node, struct pawl_lock, link);

        if (lock->settings.lease_ms > ev->lease_ms)
            ev->lease_ms = lock->settings.lease_ms;
        if ((lock->settings.flags & PAWL_NO_RENEW) == 0)
            ev->renew = true;
    }
}

static void changed(struct pawli_held *held, int64_t sent_ns, int64_t pttl_ms, bool shorter)
{
    struct pawli_hold_event ev = {
        .kind = PAWLI_HOLD_CHANGED, .sent_ns = sent_ns, .pttl_ms = pttl_ms, .shorter = shorter
    };

    sum_up(held, &ev);
    pawli_held_step(held, &ev);
}

/* Takes the reference on @held. */
static void join(struct pawl_lock *lock, struct pawli_held *held, const struct pawli_grant *grant)
{
    lock->held = held;
    lock->outermost = grant->count == 1;
    pawli_list_append(&held->handles, &pawli_lock_ref(lock)->link);
    atomic_store(&lock->state, PAWLI_LOCK_HELD);
    atomic_store(&held->count, grant->count);
    atomic_store(&held->offset_ns, pawli_clocks_offset_at(lock->client, grant->base_ns));
}

/* Judged by our own wall clock: the server's is the one that minted it. */
static void see_token(struct pawl_client *client, uint16_t slot, uint64_t token)
{
    const struct pawli_clock *clock = pawli_loop_clock(client->loop);
    int64_t now_us = clock->real_ns(clock) / PAWLI_NS_PER_US;

    if (pawli_fence_saw(&client->fence, slot, token, now_us) < 0)
        pawli_log(
            &client->notifier, PAWL_LOG_WARN,
            "the store gave token %llu, more than a day ahead of this machine's clock; it is "
            "not remembered",
            (unsigned long long)token);
}

int pawli_hold_granted(struct pawl_lock *lock, const struct pawli_grant *grant)
{
    struct pawl_client *client = lock->client;
    struct pawli_held *held = find(client, lock);
    struct pawli_hold_event taken = { .kind = PAWLI_HOLD_REFUSED, .code = PAWL_LOST_TAKEN };
    bool frozen;
    int rc;

    see_token(client, lock->key->slot, grant->token);
    if (held != NULL && held->token != grant->token) {
        pawli_held_step(held, &taken); /* a new grant under the same owner: the old one is gone */
        held = NULL;
    }
    if (held == NULL) {
        rc = make(lock, grant, &held);
        if (rc < 0)
            return rc;
        join(lock, held, grant);
        look(held);
    } else {
        frozen = pawli_held_confirmed(held, grant->base_ns);
        join(lock, pawli_held_ref(held), grant);
        changed(held, grant->base_ns, grant->pttl_ms, frozen);
    }
    return 0;
}

void pawli_hold_give_back(struct pawl_lock *lock)
{
    pawli_release_begin(lock);
}

bool pawli_hold_leave(struct pawl_lock *lock)
{
    struct pawli_held *held = lock->held;
    struct pawl_client *client = lock->client;
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_RELEASE };

    pawli_list_remove(&lock->link);
    pawli_lock_unref(lock); /* the list's; the release has its own */
    if (pawli_list_empty(&held->link))
        return false;
    if (!pawli_list_empty(&held->handles)) {
        changed(held, 0, 0, false);
        return false;
    }
    pawli_hist_add(&client->stats.hold_ms, pawli_loop_now_ns(client->loop) - held->granted_ns);
    pawli_held_step(held, &ev);
    unlist(held);
    return true;
}

/* ---- from outside ---- */

void pawli_hold_extended(struct pawl_lock *lock, int64_t sent_ns, int64_t lease_ms,
                         int64_t pttl_ms)
{
    lock->settings.lease_ms = lease_ms;
    /* Whatever was believed before: the lease of a hold that was released since may last longer. */
    if (!pawli_list_empty(&lock->held->link))
        changed(lock->held, sent_ns, pttl_ms, true);
}

void pawli_hold_shortening(struct pawl_lock *lock, int64_t lease_ms)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_SHORTENED, .lease_ms = lease_ms };

    if (!pawli_list_empty(&lock->held->link))
        pawli_held_step(lock->held, &ev);
}

void pawli_hold_refused(struct pawl_lock *lock, int code)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_REFUSED, .code = code };

    if (!pawli_list_empty(&lock->link))
        pawli_held_step(lock->held, &ev);
}

void pawli_hold_extend_answered(struct pawl_lock *lock, bool kept)
{
    struct pawli_hold_event ev = { .kind = PAWLI_HOLD_EXTEND_ANSWERED, .kept = kept };

    if (!pawli_list_empty(&lock->held->link))
        pawli_held_step(lock->held, &ev);
}

void pawli_hold_shortened(struct pawl_lock *lock, int64_t lease_ms)
{
    lock->settings.lease_ms = lease_ms;
    if (!pawli_list_empty(&lock->held->link) && !pawli_list_empty(&lock->held->handles))
        changed(lock->held, 0, 0, false);
}

static void step_all(struct pawl_client *client, enum pawli_hold_event_kind kind)
{
    struct pawli_list *node = client->all_holds.next;

    while (node != &client->all_holds) {
        struct pawli_held *held = PAWLI_CONTAINER(node, struct pawli_held, link);
        struct pawli_hold_event ev = { .kind = kind };

        node = node->next; /* a step may end this one */
        if (kind == PAWLI_HOLD_DOUBT)
            atomic_store(&held->doubt, true);
        pawli_held_step(held, &ev);
    }
}

void pawli_holds_up(struct pawl_client *client)
{
    step_all(client, PAWLI_HOLD_UP);
}

void pawli_holds_doubt(struct pawl_client *client)
{
    step_all(client, PAWLI_HOLD_DOUBT);
}

/* A handle whose release was asked for before, and still waits for its turn on the loop, leaves by
 * that one. */
static void close_hold(struct pawli_held *held)
{
    struct pawli_list *node = held->handles.next;

    while (node != &held->handles) {
        struct pawl_lock *lock = PAWLI_CONTAINER(node, struct pawl_lock, link);

        node = node->next;
        if (pawli_lock_begin_release(lock))
            pawli_release_begin(lock);
    }
}

void pawli_holds_close(struct pawl_client *client)
{
    struct pawli_list *node = client->all_holds.next;

    while (node != &client->all_holds) {
        struct pawli_held *held = PAWLI_CONTAINER(node, struct pawli_held, link);

        node = node->next; /* the release of its last handle takes it off the list */
        pawli_held_ref(held);
        close_hold(held);
        pawli_held_unref(held);
    }
}

void pawli_holds_drop(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->all_holds))
        unlist(PAWLI_CONTAINER(client->all_holds.next, struct pawli_held, link));
}
