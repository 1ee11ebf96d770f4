/* Faults as they happen, and how they heal. */
#include "check.h"
#include "sim.h"

static void thaw_clock(struct sim_world *w, struct sim_client *client)
{
    /* Fix where the clock is, so that its rate or state can change from here. */
    sim_clock_set(&client->boot, w->now_ns, sim_clock_at(&client->boot, w->now_ns));
}

static void pause(struct sim_world *w, struct sim_client *client, const struct sim_fault *fault)
{
    if (sim_stopped(client))
        return;
    if (fault->kind == SIM_FREEZE) {
        thaw_clock(w, client);
        client->boot.stopped = true;
        client->frozen_ns = fault->for_ns;
    }
    sim_client_pause(client, w->now_ns + fault->for_ns);
}

static void reopen(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_client *client = arg;

    (void)number;
    if (client->pawl != NULL || client->on_stack > 0) {
        if (client->buried || client->on_stack > 0)
            sim_at(w, w->now_ns + SIM_MS, reopen, client, 0);
        return;
    }
    sim_client_open(client);
    for (int i = 0; i < w->plan.n_actors; i++)
        sim_actor_start(client->actor[i]);
}

static void end_process(struct sim_world *w, struct sim_client *client,
                        const struct sim_fault *fault)
{
    if (client->pawl == NULL)
        return;
    if (fault->kind == SIM_KILL)
        sim_client_kill(client);
    else if (!sim_stopped(client) && client->on_stack == 0 && !w->nested)
        sim_client_close(client);
    else
        return;
    sim_at(w, w->now_ns + fault->for_ns, reopen, client, 0);
}

static void block(struct sim_world *w, struct sim_client *client, const struct sim_fault *fault)
{
    for (int i = 0; i < 2; i++)
        if ((fault->amount >> i & 1) != 0 &&
            client->blocked_until_ns[i] < w->now_ns + fault->for_ns)
            client->blocked_until_ns[i] = w->now_ns + fault->for_ns;
}

static void step_server(struct sim_world *w, int64_t by_ns)
{
    int64_t shown_ns = sim_clock_at(&w->server_clock, w->now_ns) + by_ns;

    if (by_ns > 0)
        sim_check_void(w, -1);
    sim_clock_set(&w->server_clock, w->now_ns, shown_ns);
}

static void on_client(struct sim_world *w, const struct sim_fault *fault)
{
    struct sim_client *client = &w->client[fault->client];

    switch (fault->kind) {
    case SIM_PAUSE:
    case SIM_SUSPEND:
    case SIM_FREEZE:
        pause(w, client, fault);
        break;
    case SIM_STARVE:
        client->starved_until_ns = w->now_ns + fault->for_ns;
        if (client->disturbed_ns < client->starved_until_ns)
            client->disturbed_ns = client->starved_until_ns;
        break;
    case SIM_KILL:
    case SIM_CLOSE:
        end_process(w, client, fault);
        break;
    case SIM_CLIENT_STEP:
        client->real_minus_boot_ns += fault->amount;
        break;
    case SIM_PARTITION:
        block(w, client, fault);
        break;
    case SIM_CUT:
    case SIM_SILENT_CUT:
        client->cut_in = fault->amount;
        client->cut_silent = fault->kind == SIM_SILENT_CUT;
        break;
    case SIM_SLOW:
        client->slow_ns = fault->amount;
        break;
    default:
        break;
    }
}

static void on_key(struct sim_world *w, const struct sim_fault *fault)
{
    const char *key = sim_lock_name(fault->lock);
    struct fr_bytes name = fr_text(key);
    const struct fr_entry *entry = fr_peek(&w->server.db, &name);

    if (fault->kind == SIM_PERSIST && entry != NULL && entry->type != FR_HASH)
        return; /* what somebody else keeps for ever is not for us to take */
    if (fault->kind != SIM_PERSIST)
        sim_check_void(w, fault->kind == SIM_FLUSHALL ? -1 : fault->lock);
    switch (fault->kind) {
    case SIM_FLUSHALL:
        w->data_lost = true;
        sim_operator(w, "FLUSHALL", NULL, NULL);
        break;
    case SIM_PERSIST:
        sim_check_persisted(w, fault->lock);
        sim_operator(w, "PERSIST", key, NULL);
        break;
    case SIM_FOREIGN:
        sim_check_foreign(w, fault->lock);
        sim_operator(w, "DEL", key, NULL);
        sim_operator(w, "SET", key, "somebody else");
        sim_operator(w, "PEXPIRE", key, "700");
        break;
    default:
        sim_operator(w, "DEL", key, NULL);
        break;
    }
}

static void on_server(struct sim_world *w, const struct sim_fault *fault)
{
    switch (fault->kind) {
    case SIM_REPLAY:
        sim_check_replay(w, fault->amount);
        break;
    case SIM_SERVER_PAUSE:
        w->server_paused_until_ns = w->now_ns + fault->for_ns;
        break;
    case SIM_RESTART:
    case SIM_RESTART_EMPTY:
        sim_server_restart(w, fault->for_ns, fault->kind == SIM_RESTART);
        break;
    case SIM_SCRIPT_FLUSH:
        fr_script_flush(&w->server);
        break;
    case SIM_SERVER_FORWARD:
        step_server(w, fault->amount);
        break;
    case SIM_SERVER_BACK:
        step_server(w, -fault->amount);
        break;
    case SIM_OOM:
        w->server.db.oom = true;
        break;
    case SIM_MISCONF:
        w->server.db.misconf = true;
        break;
    default:
        on_key(w, fault);
        break;
    }
}

/* Those that last until somebody ends them. */
static void over(struct sim_world *w, void *arg, int64_t number)
{
    const struct sim_fault *fault = arg;

    (void)number;
    if (fault->kind == SIM_SLOW)
        w->client[fault->client].slow_ns = 0;
    else if (fault->kind == SIM_OOM)
        w->server.db.oom = false;
    else if (fault->kind == SIM_MISCONF)
        w->server.db.misconf = false;
}

static void strike(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_fault *fault = arg;

    (void)number;
    if (w->healing)
        return;
    sim_log(w, sim_fault_name(fault->kind), fault->client, fault->for_ns);
    if (fault->kind <= SIM_SLOW)
        on_client(w, fault);
    else
        on_server(w, fault);
    if (fault->kind == SIM_SLOW || fault->kind == SIM_OOM || fault->kind == SIM_MISCONF)
        sim_at(w, w->now_ns + fault->for_ns, over, fault, 0);
}

void sim_faults_start(struct sim_world *w)
{
    w->calm = true;
    for (int i = 0; i < w->plan.n_faults; i++) {
        if ((w->plan.mask >> i & 1) != 0)
            continue;
        w->calm = false;
        sim_at(w, w->plan.fault[i].at_ns, strike, &w->plan.fault[i], i);
    }
    if (w->plan.preempt > 0)
        w->calm = false;
}

void sim_faults_heal(struct sim_world *w)
{
    w->healing = true;
    for (int i = 0; i < w->plan.n_locks; i++) { /* others give back what they have */
        struct fr_bytes name = fr_text(sim_lock_name(i));
        const struct fr_entry *entry = fr_peek(&w->server.db, &name);

        if (entry != NULL && entry->type == FR_STRING)
            sim_operator(w, "DEL", sim_lock_name(i), NULL);
    }
    w->server.db.oom = false;
    w->server.db.misconf = false;
    if (w->server_paused_until_ns > w->now_ns) {
        w->server_paused_until_ns = w->now_ns;
        w->server_scheduled = false;
        sim_server_wake(w);
    }
    for (int i = 0; i < w->plan.n_clients; i++) {
        struct sim_client *client = &w->client[i];

        client->blocked_until_ns[0] = 0;
        client->blocked_until_ns[1] = 0;
        client->slow_ns = 0;
        client->cut_in = -1;
        client->starved_until_ns = 0;
    }
}
