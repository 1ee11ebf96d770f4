/* Programs: each actor asks for locks, waits, changes its mind, works, enters again, extends,
 * releases, forgets to, and looks at locks as an operator; all from its own random stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "engine/lock.h"
#include "sim.h"

#define CALLS_MAX 16

enum actor_state { IDLE, ASKED, HOLDING, RELEASING };

/* One asynchronous call, kept until its answer. */
struct call {
    struct sim_actor *actor;
    unsigned life;
    bool used;
    bool canceled;
    int lock;
    int64_t asked_ns;
    int64_t asked_boot_ns;
    int64_t wait_ms;
    bool no_renew;
    char owner[PAWL_OWNER_TEXT_MAX + 1];
    char hold_id[33];
    uint64_t token;
    uint64_t id;
};

struct sim_actor {
    struct sim_client *client;
    int number;
    struct sim_rng rng;
    enum actor_state state;
    unsigned step; /* the only event that counts */
    struct sim_handle handle[2]; /* outer and inner */
    int n_handles;
    int want;      /* handles that it wants this time */
    int64_t until_ns;
    struct pawl_owner *owner;
    struct sim_handle early; /* what was told of a lock whose completion has not run yet */
    struct call *acquire;    /* the one under way */
    struct call call[CALLS_MAX];
};

static void act(struct sim_world *w, void *arg, int64_t number);

const char *sim_lock_name(int lock)
{
    static const char *const names[SIM_LOCKS_MAX] = { "stock", "a}b{c", "{}x" };

    return names[lock];
}

struct sim_actor *sim_actor_new(struct sim_client *client, int number)
{
    struct sim_actor *actor = calloc(1, sizeof *actor);

    if (actor == NULL)
        abort();
    actor->client = client;
    actor->number = number;
    sim_rng_init(&actor->rng, client->w->plan.seed,
                 100 + (uint64_t)(client->number * SIM_ACTORS_MAX + number));
    return actor;
}

static void next(struct sim_actor *actor, int64_t in_ns)
{
    struct sim_world *w = actor->client->w;

    sim_at(w, w->now_ns + in_ns, act, actor, ++actor->step);
}

static int64_t some(struct sim_actor *actor, int64_t max_ns)
{
    return sim_between(&actor->rng, 10 * SIM_US, max_ns);
}

static int64_t lease_ns(const struct sim_actor *actor)
{
    return actor->client->w->plan.lease_ms * SIM_MS;
}

void sim_actor_start(struct sim_actor *actor)
{
    int64_t login_ns = actor->client->w->calm ? 300 * SIM_MS : 0;

    actor->state = IDLE;
    next(actor, login_ns + some(actor, lease_ns(actor)));
}

bool sim_actor_idle(const struct sim_actor *actor)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (actor->call[i].used)
            return false;
    return actor->state == IDLE && actor->n_handles == 0;
}

void sim_actor_print(const struct sim_actor *actor)
{
    int n = 0;

    for (int i = 0; i < CALLS_MAX; i++)
        n += actor->call[i].used;
    printf("  client %d actor %d: state %d, %d handles, %d calls, until %.6f\n",
           actor->client->number, actor->number, (int)actor->state, actor->n_handles, n,
           (double)actor->until_ns / 1e9);
}

static void drop_handle(struct sim_actor *actor, int i)
{
    struct sim_handle *handle = &actor->handle[i];

    sim_check_forget(handle);
    pawl_lock_free(handle->lock);
    handle->lock = NULL;
}

static void drop_all(struct sim_actor *actor)
{
    while (actor->n_handles > 0)
        drop_handle(actor, --actor->n_handles);
    pawl_owner_free(actor->owner);
    actor->owner = NULL;
}

void sim_actor_reset(struct sim_actor *actor)
{
    actor->step++;
    for (int i = 0; i < CALLS_MAX; i++) {
        if (actor->call[i].used && !actor->client->buried)
            sim_fail(actor->client->w, "I7: a call was not answered by the close of its client");
        actor->call[i].used = false;
    }
    drop_all(actor);
    actor->acquire = NULL;
    actor->state = IDLE;
}

void sim_actor_free(struct sim_actor *actor)
{
    free(actor);
}

/* ---- calls ---- */

static struct call *new_call(struct sim_actor *actor, int lock)
{
    struct sim_world *w = actor->client->w;

    for (int i = 0; i < CALLS_MAX; i++) {
        struct call *call = &actor->call[i];

        if (call->used)
            continue;
        memset(call, 0, sizeof *call);
        call->used = true;
        call->actor = actor;
        call->life = actor->client->life;
        call->lock = lock;
        call->asked_ns = w->now_ns;
        call->asked_boot_ns = sim_boot_ns(actor->client);
        return call;
    }
    return NULL;
}

/* The answer of @call: false if its process is gone, and nobody listens. */
static bool answered(struct call *call, const char *what, int result)
{
    struct sim_client *client = call->actor->client;

    if (!call->used) {
        sim_fail(client->w, "I7: %s was answered twice", what);
        return false;
    }
    call->used = false;
    if (client->buried)
        return false;
    sim_log(client->w, what, client->number, result);
    if (pawl_result_class(result) == PAWL_CLASS_UNKNOWN)
        client->w->n_unknown++;
    return true;
}

/* ---- acquire ---- */

static void note_early(struct sim_handle *early, struct pawl_lock *lock, enum pawl_event event)
{
    if (early->lock != lock)
        memset(early, 0, sizeof *early);
    early->lock = lock;
    if (event == PAWL_EVENT_AT_RISK || event == PAWL_EVENT_RECOVERED)
        early->at_risk = event == PAWL_EVENT_AT_RISK;
    early->told_expiring |= event == PAWL_EVENT_EXPIRING;
    early->told_lost |= event == PAWL_EVENT_LOST;
}

static void on_event(void *arg, struct pawl_lock *lock, enum pawl_event event, int result)
{
    struct call *call = arg;
    struct sim_actor *actor = call->actor;
    bool early = true;

    if (actor->client->buried || call->life != actor->client->life)
        return;
    for (int i = 0; i < actor->n_handles; i++)
        if (actor->handle[i].lock == lock) {
            early = false;
            sim_log(actor->client->w, "event", actor->client->number, (int64_t)event);
            sim_check_told(actor->client->w, &actor->handle[i], event, result);
            if (event == PAWL_EVENT_LOST || event == PAWL_EVENT_EXPIRING)
                next(actor, some(actor, 5 * SIM_MS));
        }
    if (early)
        note_early(&actor->early, lock, event);
}

static void check_time(const struct call *call, int result)
{
    struct sim_client *client = call->actor->client;
    int64_t took_ns = sim_boot_ns(client) - call->asked_boot_ns;
    int64_t limit_ns = call->wait_ms == 0 ? 2100 * SIM_MS : call->wait_ms * SIM_MS;

    if (result == PAWL_TIMEOUT && took_ns < limit_ns - SIM_MS)
        sim_fail(client->w, "I7: TIMEOUT after %lld ms of %lld", (long long)(took_ns / SIM_MS),
                 (long long)call->wait_ms);
    if (call->wait_ms != PAWL_FOREVER && client->disturbed_ns < call->asked_ns &&
        took_ns > limit_ns + 10 * SIM_MS)
        sim_fail(client->w, "I7: an acquire with a limit of %lld ms was answered after %lld",
                 (long long)call->wait_ms, (long long)(took_ns / SIM_MS));
}

static void check_answer(const struct call *call, int result)
{
    struct sim_world *w = call->actor->client->w;
    bool busy = result == PAWL_BUSY || result == PAWL_TIMEOUT;

    if (result == PAWL_ECLOSED)
        return;
    check_time(call, result);
    if ((result == PAWL_BUSY && call->wait_ms != 0) ||
        (result == PAWL_TIMEOUT && call->wait_ms == 0) ||
        (result == PAWL_CANCELED && !call->canceled))
        sim_fail(w, "I7: acquire answered %s", pawl_result_name(result));
    /* The turn of another waiter with the same owner counts as busy as well. */
    if (busy && strstr(call->owner, ":actor") != NULL &&
        !sim_check_was_busy(w, call->lock, call->owner, call->asked_ns))
        sim_fail(w, "I7: acquire answered %s, but nobody held it", pawl_result_name(result));
    if (result > 0 && !busy && result != PAWL_CANCELED)
        sim_fail(w, "I7: acquire answered %s", pawl_result_name(result));
    if (pawl_result_class(result) == PAWL_CLASS_USAGE)
        sim_fail(w, "I7: acquire answered %s", pawl_result_name(result));
    /* A limit of less than a round trip is too short for any answer. */
    if (pawl_result_class(result) == PAWL_CLASS_UNKNOWN && call->wait_ms > 0 &&
        call->wait_ms * SIM_MS < 6 * w->plan.latency_ns + 2 * SIM_MS)
        return;
    if (result < 0 && w->calm)
        sim_fail(w, "I7: acquire answered %s in a world without faults", pawl_result_name(result));
    if (result == 0 && call->canceled)
        sim_fail(w, "I7: granted after its cancel was accepted");
}

static void take_handle(struct sim_actor *actor, const struct call *call, struct pawl_lock *lock)
{
    struct sim_world *w = actor->client->w;
    struct sim_handle *handle = &actor->handle[actor->n_handles++];
    int64_t left_ms;

    memset(handle, 0, sizeof *handle);
    pawli_list_init(&handle->link);
    handle->client = actor->client;
    handle->lock = lock;
    handle->lock_number = call->lock;
    handle->token = pawl_lock_token(lock);
    left_ms = pawl_lock_max_hold_remaining_ms(lock);
    handle->max_end_ns =
        left_ms == PAWL_UNLIMITED ? PAWLI_NEVER : sim_boot_ns(actor->client) + left_ms * SIM_MS;
    handle->no_renew = call->no_renew;
    handle->shared = strstr(call->owner, ":actor") == NULL || actor->n_handles > 1;
    if (actor->n_handles > 1)
        actor->handle[0].shared = true;
    if (actor->early.lock == lock) {
        handle->at_risk = actor->early.at_risk;
        handle->told_expiring = actor->early.told_expiring;
        handle->told_lost = actor->early.told_lost;
    }
    actor->early.lock = NULL;
    sim_check_granted(w, handle, call->asked_ns);
    (void)sim_check_handle(w, handle);
}

static void acquired(void *arg, int result, struct pawl_lock *lock)
{
    struct call *call = arg;
    struct sim_actor *actor = call->actor;
    int64_t work_ns = sim_chance(&actor->rng, 200000) ? 6 * lease_ns(actor) : lease_ns(actor);

    if (!answered(call, "acquired", result)) {
        pawl_lock_free(lock);
        return;
    }
    check_answer(call, result);
    actor->acquire = NULL;
    if (result == 0)
        take_handle(actor, call, lock);
    if (result == PAWL_ECLOSED)
        return;
    if (actor->n_handles == 0) {
        actor->state = IDLE;
        drop_all(actor);
        next(actor, some(actor, lease_ns(actor)));
        return;
    }
    if (actor->state == ASKED && actor->n_handles == 1)
        actor->until_ns = actor->client->w->now_ns + some(actor, work_ns);
    actor->state = HOLDING;
    next(actor, some(actor, lease_ns(actor) / 4));
}

static int64_t choose_wait(struct sim_actor *actor)
{
    switch (sim_below(&actor->rng, 5)) {
    case 0:
        return 0;
    case 1:
        return PAWL_FOREVER;
    default:
        return 1 + sim_below(&actor->rng, 5 * actor->client->w->plan.lease_ms);
    }
}

static void choose_owner(struct sim_actor *actor)
{
    static const char *const shared[] = { "0123456789abcdef0123456789abcdef:shared",
                                          "fedcba9876543210fedcba9876543210" };
    int rc;

    if (sim_chance(&actor->rng, 200000))
        rc = pawl_owner_parse(shared[sim_below(&actor->rng, 2)], &actor->owner);
    else
        rc = pawl_owner_new("actor", &actor->owner);
    if (rc < 0)
        sim_fail(actor->client->w, "no owner: %s", pawl_result_name(rc));
}

static void ask(struct sim_actor *actor, int lock)
{
    struct sim_world *w = actor->client->w;
    struct pawl_lock_options opts = PAWL_LOCK_OPTIONS_INIT;
    const char *name = sim_lock_name(lock);
    struct call *call = new_call(actor, lock);
    int rc;

    if (call == NULL)
        return;
    opts.owner = actor->owner;
    opts.lease_ms = w->plan.lease_ms * (1 + sim_below(&actor->rng, 4)) / 2;
    if (opts.lease_ms < PAWL_LEASE_MIN_MS)
        opts.lease_ms = PAWL_LEASE_MIN_MS;
    opts.wait_ms = choose_wait(actor);
    opts.max_hold_ms = opts.lease_ms * (sim_chance(&actor->rng, 200000) ? 1 : 20);
    opts.grace_ms = sim_below(&actor->rng, 500);
    opts.flags = sim_chance(&actor->rng, 150000) && !w->calm ? PAWL_NO_RENEW : 0;
    if (sim_chance(&actor->rng, 50000))
        opts.flags |= PAWL_BARGING;
    if (sim_chance(&actor->rng, 700000)) {
        opts.on_event = on_event;
        opts.on_event_arg = call;
    }
    call->wait_ms = opts.wait_ms;
    call->no_renew = (opts.flags & PAWL_NO_RENEW) != 0;
    (void)snprintf(call->owner, sizeof call->owner, "%s", pawl_owner_text(actor->owner));
    rc = pawl_lock_acquire_async(actor->client->pawl, name, strlen(name), &opts, acquired, call,
                                 &call->id);
    if (rc < 0)
        sim_fail(w, "acquire was refused: %s (%s)", pawl_result_name(rc), pawl_error_detail());
    actor->acquire = call;
}

/* ---- the rest of a hold's life ---- */

static void released(void *arg, int result)
{
    struct call *call = arg;
    struct sim_actor *actor = call->actor;

    if (!answered(call, "released", result))
        return;
    if (result != PAWL_ECLOSED)
        sim_check_released(actor->client->w, call->lock, call->hold_id, call->token, result);
}

static void extended(void *arg, int result)
{
    (void)answered(arg, "extended", result);
}

static void inspected(void *arg, int result, struct pawl_lock_info *info)
{
    struct call *call = arg;

    if (answered(call, "inspected", result) && result == 0 && info->n_owners > 1)
        sim_fail(call->actor->client->w, "I1: inspect shows %lld owners",
                 (long long)info->n_owners);
    pawl_lock_info_free(info);
}

static void forced(void *arg, int result)
{
    (void)answered(arg, "forced", result);
}

static void release_one(struct sim_actor *actor)
{
    struct sim_handle *handle = &actor->handle[actor->n_handles - 1];
    struct call *call = NULL;

    if (sim_chance(&actor->rng, 600000))
        call = new_call(actor, handle->lock_number);
    if (call != NULL) {
        memcpy(call->hold_id, handle->lock->hold_id, sizeof call->hold_id);
        call->token = handle->token;
        handle->released = true;
        if (pawl_lock_release_async(handle->lock, released, call) != 0)
            call->used = false;
        (void)sim_check_handle(actor->client->w, handle);
    }
    drop_handle(actor, --actor->n_handles);
}

static void end_work(struct sim_actor *actor)
{
    release_one(actor);
    if (actor->n_handles > 0) {
        next(actor, some(actor, lease_ns(actor) / 4));
        return;
    }
    drop_all(actor);
    actor->state = IDLE;
    next(actor, some(actor, lease_ns(actor)));
}

static void try_extend(struct sim_actor *actor)
{
    struct sim_world *w = actor->client->w;
    struct call *call = new_call(actor, actor->handle[0].lock_number);
    int64_t lease_ms = w->plan.lease_ms * (1 + sim_below(&actor->rng, 4)) / 2;

    if (call == NULL)
        return;
    if (lease_ms < PAWL_LEASE_MIN_MS)
        lease_ms = PAWL_LEASE_MIN_MS;
    if (pawl_lock_extend_async(actor->handle[0].lock, lease_ms, extended, call) != 0)
        call->used = false;
}

/* As an operator would. */
static void meddle(struct sim_actor *actor)
{
    struct sim_world *w = actor->client->w;
    int lock = (int)sim_below(&actor->rng, w->plan.n_locks);
    const char *name = sim_lock_name(lock);
    struct call *call = new_call(actor, lock);
    int rc;

    if (call == NULL)
        return;
    if (w->calm || w->healing || sim_chance(&actor->rng, 700000))
        rc = pawl_inspect_async(actor->client->pawl, name, strlen(name), inspected, call);
    else
        rc = pawl_force_release_async(actor->client->pawl, name, strlen(name), 0,
                                      sim_chance(&actor->rng, 500000) ? PAWL_FORCE_NOW : 0u,
                                      forced, call);
    if (rc < 0)
        sim_fail(w, "an operator's call was refused: %s", pawl_result_name(rc));
}

static void change_mind(struct sim_actor *actor)
{
    struct call *call = actor->acquire;

    if (call == NULL || call->canceled)
        return;
    if (pawl_cancel(actor->client->pawl, call->id) == 0)
        call->canceled = true;
}

static void hold(struct sim_actor *actor)
{
    struct sim_world *w = actor->client->w;
    int rc = 0;

    for (int i = 0; i < actor->n_handles; i++) {
        if (w->plan.checks || i == 0)
            rc = sim_check_handle(w, &actor->handle[i]);
        if (pawl_is_lost(rc))
            break;
    }
    if (actor->acquire != NULL) { /* of the inner hold */
        if (pawl_is_lost(rc) || w->now_ns >= actor->until_ns)
            change_mind(actor);
        return;
    }
    if (pawl_is_lost(rc) || rc == PAWL_EXPIRING || w->now_ns >= actor->until_ns) {
        end_work(actor);
        return;
    }
    if (actor->n_handles == 1 && sim_chance(&actor->rng, 100000))
        ask(actor, actor->handle[0].lock_number);
    else if (sim_chance(&actor->rng, 50000))
        try_extend(actor);
    next(actor, some(actor, lease_ns(actor) / 3));
}

static void act(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_actor *actor = arg;
    struct sim_client *client = actor->client;

    if ((unsigned)number != actor->step || client->pawl == NULL || !client->alive ||
        client->closing)
        return;
    if (sim_stopped(client)) {
        sim_at(w, client->paused_until_ns + sim_between(&actor->rng, 1000, SIM_MS), act, actor,
               number);
        return;
    }
    if (client->on_stack > 0) {
        sim_at(w, w->now_ns + 100 * SIM_US, act, actor, number);
        return;
    }
    sim_client_enter(client);
    switch (actor->state) {
    case IDLE:
        if (w->healing)
            break;
        if (sim_chance(&actor->rng, 50000))
            meddle(actor);
        choose_owner(actor);
        actor->state = ASKED;
        ask(actor, (int)sim_below(&actor->rng, w->plan.n_locks));
        if (sim_chance(&actor->rng, 250000))
            next(actor, some(actor, 2 * lease_ns(actor)));
        break;
    case ASKED:
        change_mind(actor);
        break;
    case HOLDING:
        hold(actor);
        break;
    case RELEASING:
        break;
    }
    sim_client_leave(client);
}
