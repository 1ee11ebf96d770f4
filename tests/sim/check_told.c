/* Invariants of what programs are told: held only while nobody else has been granted (I3), grants
 * and losses that are true (I7), events in their order and once each. */
#include "check_store.h"

#include <stdlib.h>
#include <string.h>

#include "engine/hold.h"
#include "engine/lock.h"

struct sim_check *sim_check_new(struct sim_world *w)
{
    struct sim_check *check = calloc(1, sizeof *check);

    if (check == NULL)
        abort();
    check->w = w;
    pawli_list_init(&check->handles);
    for (int i = 0; i < SIM_LOCKS_MAX; i++) {
        check->lock[i].key = fr_text(sim_lock_name(i));
        sim_queue_init(&check->lock[i]);
    }
    for (int i = 0; i < w->plan.n_faults; i++)
        if (w->plan.fault[i].kind == SIM_REPLAY)
            check->keeps_frames = true;
    w->server.watch = sim_watch;
    w->server.before = sim_queue_before;
    w->server.watch_arg = check;
    return check;
}

void sim_check_free(struct sim_check *check)
{
    for (int i = 0; i < SIM_LOCKS_MAX; i++) {
        free(check->lock[i].grant);
        free(check->lock[i].queue.data);
    }
    for (int i = 0; i < FRAMES_MAX; i++)
        free(check->frame[i].data);
    free(check);
}

uint64_t sim_check_n_scripts(const struct sim_world *w)
{
    return w->check->n_scripts;
}

/* ---- faults ---- */

void sim_check_void(struct sim_world *w, int lock)
{
    w->check->tombs_void = true;
    for (int i = 0; i < w->plan.n_locks; i++) {
        struct sim_lock_state *state = &w->check->lock[i];
        struct sim_grant *grant =
            state->snap.live ? sim_grant_find(state, state->snap.token, state->snap.owner) : NULL;

        if ((lock < 0 || lock == i) && grant != NULL)
            sim_grant_void(w, state, grant);
    }
}

void sim_check_persisted(struct sim_world *w, int lock)
{
    w->check->lock[lock].persisted = true;
}

void sim_check_foreign(struct sim_world *w, int lock)
{
    w->check->lock[lock].foreign = true;
}

void sim_check_replay(struct sim_world *w, int64_t which)
{
    struct sim_check *check = w->check;
    struct fr_conn conn;
    size_t n = check->n_frames < FRAMES_MAX ? (size_t)check->n_frames : FRAMES_MAX;
    const struct fr_out *frame;

    if (n == 0 || w->server_down)
        return;
    frame = &check->frame[(size_t)which % n];
    w->server.db.now_us = sim_server_us(w);
    check->replaying = true;
    fr_connect(&w->server, &conn);
    fr_append(&conn.in, frame->data, frame->len);
    (void)fr_execute_one(&w->server, &conn);
    fr_disconnect(&w->server, &conn);
    sim_conns_send(w);
    check->replaying = false;
}

/* ---- questions ---- */

bool sim_check_was_busy(struct sim_world *w, int lock, const char *owner, int64_t from_ns)
{
    const struct sim_lock_state *state = &w->check->lock[lock];

    if (state->foreign)
        return true;
    for (size_t i = state->n_grants; i > 0; i--) {
        const struct sim_grant *grant = &state->grant[i - 1];

        if (grant->end_ns >= from_ns && (grant->revoked || strcmp(grant->owner, owner) != 0))
            return true;
    }
    return false;
}

bool sim_check_lives(struct sim_world *w, int lock, const char *hold_id, uint64_t token)
{
    const struct sim_snap *snap = &w->check->lock[lock].snap;
    const struct fr_entry *entry;

    w->server.db.now_us = sim_server_us(w);
    entry = fr_peek(&w->server.db, &w->check->lock[lock].key);
    if (entry == NULL || !snap->live || snap->token != token)
        return false;
    for (int i = 0; i < snap->n_ids; i++)
        if (strcmp(snap->id[i], hold_id) == 0)
            return true;
    return false;
}

bool sim_check_is_void(struct sim_world *w, int lock, uint64_t token)
{
    const struct sim_grant *grant = sim_grant_find(&w->check->lock[lock], token, NULL);

    return grant != NULL && grant->void_ns != 0;
}

/* ---- handles ---- */

void sim_check_granted(struct sim_world *w, struct sim_handle *handle, int64_t asked_ns)
{
    struct sim_grant *grant = sim_grant_find(&w->check->lock[handle->lock_number], handle->token,
                                             pawl_lock_owner(handle->lock));
    bool known = false;

    for (int i = 0; grant != NULL && i < grant->n_ids; i++)
        known = known || strcmp(grant->id[i], handle->lock->hold_id) == 0;
    if (!known)
        sim_fail(w, "I7: a grant was told that the store never made (token %llu, id %.4s)",
                 (unsigned long long)handle->token, handle->lock->hold_id);
    else if (grant->end_ns < asked_ns)
        sim_fail(w, "I7: a grant was told that was over before it was asked for");
    pawli_list_append(&w->check->handles, &handle->link);
}

void sim_check_forget(struct sim_handle *handle)
{
    pawli_list_remove(&handle->link);
}

/* "Held" is said now: has anybody else been granted, or is it long gone? */
static void check_held(struct sim_world *w, struct sim_handle *handle)
{
    struct sim_lock_state *lock = &w->check->lock[handle->lock_number];
    const struct sim_grant *mine =
        sim_grant_of(lock, handle->token, pawl_lock_owner(handle->lock), handle->lock->hold_id);
    const struct sim_grant *newest = lock->n_grants == 0 ? NULL : &lock->grant[lock->n_grants - 1];
    bool late = false;

    if (mine == NULL) {
        sim_fail(w, "I7: held, but the store never granted it");
        return;
    }
    if (handle->released)
        sim_fail(w, "I7: held after its release");
    /* A fault took it away. The holder may believe until the end of the last lease that was
     * confirmed before, and no longer. */
    if (mine->void_ns != 0)
        late = w->now_ns > mine->void_ns + mine->lease_ms * SIM_MS + mine->lease_ms * SIM_US;
    if (late)
        sim_fail(w, "I3: client %d says held %lld ms after the store had lost it",
                 handle->client->number, (long long)((w->now_ns - mine->void_ns) / SIM_MS));
    else if (newest != mine && mine->void_ns == 0)
        sim_fail(w, "I3: client %d says held, but token %llu was granted after its %llu",
                 handle->client->number, (unsigned long long)newest->token,
                 (unsigned long long)mine->token);
}

int sim_check_handle(struct sim_world *w, struct sim_handle *handle)
{
    struct sim_client *before = w->current;
    int rc;

    w->current = NULL; /* not the process that runs: no preemption in here */
    rc = pawl_lock_check(handle->lock);
    w->current = before;
    w->n_checks++;
    if (rc == 0 || rc == PAWL_EXPIRING)
        check_held(w, handle);
    if ((rc == 0 || rc == PAWL_EXPIRING || rc == PAWL_UNSURE) && handle->told_lost)
        sim_fail(w, "I7: %s after it was told to be lost", pawl_result_name(rc));
    if (rc < 0 && rc != PAWL_ECLOSED)
        sim_fail(w, "I7: check answered %s", pawl_result_name(rc));
    return rc;
}

void sim_check_client(struct sim_world *w, struct sim_client *client)
{
    struct pawli_list *node = w->check->handles.next;

    while (node != &w->check->handles) {
        struct sim_handle *handle = PAWLI_CONTAINER(node, struct sim_handle, link);

        node = node->next;
        if (handle->client == client)
            (void)sim_check_handle(w, handle);
    }
}

static void check_lost(struct sim_world *w, struct sim_handle *handle, int result)
{
    const struct sim_grant *mine = sim_grant_find(&w->check->lock[handle->lock_number],
                                                  handle->token, pawl_lock_owner(handle->lock));

    w->n_lost++;
    if (result == PAWL_LOST_TAKEN &&
        sim_check_lives(w, handle->lock_number, handle->lock->hold_id, handle->token))
        sim_fail(w, "I7: told that it was taken, but the store still has it");
    if (result == PAWL_LOST_REVOKED && (mine == NULL || !mine->revoked))
        sim_fail(w, "I7: told that it was revoked, which nobody did");
    /* A margin early, if the lease grew since the grant. */
    if (result == PAWL_LOST_MAX_HOLD &&
        sim_boot_ns(handle->client) < handle->max_end_ns - 60 * SIM_MS)
        sim_fail(w, "I7: told that its maximum hold is over, %lld ms too early",
                 (long long)((handle->max_end_ns - sim_boot_ns(handle->client)) / SIM_MS));
    if (w->calm && result != PAWL_LOST_MAX_HOLD && result != PAWL_LOST_REVOKED &&
        !handle->no_renew && !handle->shared)
        sim_fail(w, "I7: %s in a world without faults", pawl_result_name(result));
}

void sim_check_told(struct sim_world *w, struct sim_handle *handle, enum pawl_event event,
                    int result)
{
    if (handle->told_lost)
        sim_fail(w, "an event after the loss was told");
    switch (event) {
    case PAWL_EVENT_AT_RISK:
        if (handle->at_risk++ != 0)
            sim_fail(w, "at risk was told twice");
        break;
    case PAWL_EVENT_RECOVERED:
        if (handle->at_risk-- != 1)
            sim_fail(w, "recovered, but it was not at risk");
        break;
    case PAWL_EVENT_EXPIRING:
        if (handle->told_expiring)
            sim_fail(w, "expiring was told twice");
        handle->told_expiring = true;
        break;
    case PAWL_EVENT_LOST:
        handle->told_lost = true;
        check_lost(w, handle, result);
        break;
    }
}

void sim_check_released(struct sim_world *w, int lock, const char *hold_id, uint64_t token,
                        int result)
{
    /* An old request that is delivered once more may bring an id back for a lease. */
    bool lives = !w->check->keeps_frames && sim_check_lives(w, lock, hold_id, token);
    const struct sim_snap *snap = &w->check->lock[lock].snap;

    if (lives && (result == 0 || result == PAWL_STILL_HELD || result == PAWL_LOST_TAKEN))
        sim_fail(w, "I7: release answered %s, but the store still has the id",
                 pawl_result_name(result));
    if (result == 0 && !w->check->keeps_frames && snap->live && snap->token == token &&
        fr_peek(&w->server.db, &w->check->lock[lock].key) != NULL)
        sim_fail(w, "I7: release answered free, but the owner still holds the lock");
    if (w->calm && result < 0)
        sim_fail(w, "I7: release answered %s in a world without faults", pawl_result_name(result));
}

/* ---- the end ---- */

/* Nobody asks for it any more, so nobody puts right what an operator did. */
static bool was_persisted(const struct sim_world *w, const struct fr_bytes *key)
{
    for (int i = 0; i < SIM_LOCKS_MAX; i++)
        if (w->check->lock[i].persisted && fr_same(&w->check->lock[i].key, key))
            return true;
    return false;
}

void sim_check_empty(struct sim_world *w)
{
    w->server.db.now_us = sim_server_us(w);
    for (int i = 0; i < FR_BUCKETS; i++)
        for (const struct fr_entry *e = w->server.db.bucket[i]; e != NULL; e = e->next)
            if (fr_peek(&w->server.db, &e->key) != NULL &&
                !(e->expire_ms == FR_NO_EXPIRE && was_persisted(w, &e->key)) &&
                (e->key.len < 7 || memcmp(e->key.data, "pawl:f:", 7) != 0))
                sim_fail(w, "I6: key %.*s is left", (int)e->key.len, e->key.data);
}
