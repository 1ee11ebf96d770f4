/* Machines and processes: their clocks, how they stand still, start and end, and when their loop
 * and their program get their turns. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "engine/client.h"
#include "sim.h"
#include "sub.h"

/* ---- clocks ---- */

int64_t sim_boot_ns(const struct sim_client *client)
{
    return client->buried ? client->buried_ns : sim_clock_at(&client->boot, client->w->now_ns);
}

int64_t sim_real_ns(const struct sim_client *client)
{
    return sim_boot_ns(client) + client->real_minus_boot_ns;
}

bool sim_stopped(const struct sim_client *client)
{
    return !client->alive || client->paused_until_ns > client->w->now_ns;
}

/* ---- turns ---- */

static void turn_event(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_client *client = arg;

    if ((uint64_t)number != client->turn_seq || !client->running || client->buried)
        return;
    client->turn_at_ns = PAWLI_NEVER;
    if (sim_stopped(client)) {
        client->turn_pending = true;
        return;
    }
    if (client->on_stack > 0) { /* its engine thread runs already, or its program closes it */
        sim_loop_wake(client, w->now_ns + 100 * SIM_US);
        return;
    }
    if (client->starved_until_ns > w->now_ns) {
        sim_loop_wake(client, client->starved_until_ns);
        return;
    }
    sim_log(w, "turn", client->number, 0);
    sim_client_enter(client);
    sim_loop_turn(client->loop);
    sim_client_leave(client);
    sim_client_app_soon(client, sim_between(&client->rng, 1000, 100 * SIM_US));
}

/* Only the earliest wish counts; later ones come from the turn itself. */
void sim_loop_wake(struct sim_client *client, int64_t at_ns)
{
    struct sim_world *w = client->w;

    if (client->buried || at_ns >= client->turn_at_ns)
        return;
    if (at_ns < w->now_ns)
        at_ns = w->now_ns;
    client->turn_at_ns = at_ns;
    sim_at(w, at_ns, turn_event, client, (int64_t)++client->turn_seq);
}

static void app_event(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_client *client = arg;

    (void)w;
    if (number != (int64_t)client->life || client->pawl == NULL || !client->alive)
        return;
    if (sim_stopped(client))
        return; /* sim_client_pause() has seen to it */
    if (client->on_stack > 0) {
        sim_at(w, w->now_ns + 100 * SIM_US, app_event, client, number);
        return;
    }
    client->app_pending = false;
    sim_client_enter(client);
    sim_notifier_run(&client->pawl->notifier);
    if (!pawli_list_empty(&client->pawl->calls.answered))
        (void)pawl_client_dispatch(client->pawl);
    sim_client_leave(client);
}

void sim_client_app_soon(struct sim_client *client, int64_t in_ns)
{
    struct sim_world *w = client->w;

    if (client->app_pending || client->pawl == NULL || !client->alive || client->buried ||
        (pawli_list_empty(&client->pawl->calls.answered) &&
         pawli_list_empty(&client->pawl->notifier.notes)))
        return;
    client->app_pending = true;
    sim_at(w, w->now_ns + in_ns, app_event, client, (int64_t)client->life);
}

/* ---- standing still ---- */

static void resume(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_client *client = arg;

    if (number != (int64_t)client->life || !client->alive || sim_stopped(client))
        return;
    if (client->disturbed_ns < w->now_ns)
        client->disturbed_ns = w->now_ns;
    if (client->boot.stopped) {
        client->boot.true_ns = w->now_ns;
        client->boot.stopped = false;
        client->real_minus_boot_ns += client->frozen_ns;
        client->frozen_ns = 0;
    }
    sim_log(w, "resumed", client->number, 0);
    client->turn_at_ns = PAWLI_NEVER;
    client->turn_pending = false;
    /* Who runs first, the program or the engine, is up to the scheduler. */
    sim_loop_wake(client, w->now_ns + sim_between(&client->rng, 1000, 500 * SIM_US));
    if (client->app_pending)
        sim_at(w, w->now_ns + sim_between(&client->rng, 1000, 500 * SIM_US), app_event, client,
               number);
    sim_client_enter(client);
    sim_check_client(w, client);
    sim_client_leave(client);
}

void sim_client_pause(struct sim_client *client, int64_t until_ns)
{
    if (until_ns <= client->paused_until_ns)
        return;
    client->paused_until_ns = until_ns;
    if (client->disturbed_ns < until_ns)
        client->disturbed_ns = until_ns;
    sim_at(client->w, until_ns, resume, client, (int64_t)client->life);
}

/* ---- starting and ending ---- */

void sim_client_open(struct sim_client *client)
{
    struct sim_world *w = client->w;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct sim_client *before = w->current;
    int rc;

    client->life++;
    client->alive = true;
    client->buried = false;
    client->turn_at_ns = PAWLI_NEVER;
    client->app_pending = false;
    client->turn_pending = false;
    client->starved_until_ns = 0;
    client->disturbed_ns = w->now_ns;
    w->current = client;
    opts.connect_ms = 1000;
    opts.command_ms = sim_chance(&client->rng, 300000) ? 200 : 1000;
    opts.release_ms = sim_between(&client->rng, 1, 3) * 400;
    opts.retry_max_ms = 500;
    rc = pawl_client_open("redis+unix:///sim", &opts, &client->pawl);
    if (rc < 0)
        sim_fail(w, "a client could not be opened: %s (%s)", pawl_result_name(rc),
                 pawl_error_detail());
    w->current = before;
    sim_log(w, "open", client->number, client->life);
}

static void forget(struct sim_client *client)
{
    client->pawl = NULL;
    client->loop = NULL;
    client->alive = false;
    client->running = false;
    client->turn_seq++;
    for (int i = 0; i < client->w->plan.n_actors; i++)
        if (client->actor[i] != NULL)
            sim_actor_reset(client->actor[i]);
}

void sim_client_enter(struct sim_client *client)
{
    client->on_stack++;
    client->w->current = client;
}

/* Free the memory of a process that is gone. */
static void bury(struct sim_client *client)
{
    struct sim_world *w = client->w;
    struct sim_client *before = w->current;
    struct pawl_client *pawl = client->pawl;

    w->current = client;
    pawl_client_close(pawl);
    forget(client);
    w->current = before;
}

void sim_client_leave(struct sim_client *client)
{
    if (--client->on_stack == 0 && client->buried && client->pawl != NULL)
        bury(client);
}

void sim_client_close(struct sim_client *client)
{
    sim_log(client->w, "close client", client->number, 0);
    sim_client_enter(client);
    client->closing = true;
    client->disturbed_ns = PAWLI_NEVER;
    pawl_client_close(client->pawl);
    client->closing = false;
    forget(client);
    sim_client_leave(client);
}

void sim_client_kill(struct sim_client *client)
{
    struct sim_world *w = client->w;

    if (client->pawl == NULL || client->buried)
        return;
    sim_log(w, "kill", client->number, client->life);
    sim_client_disconnect(client, sim_chance(&w->net_rng, 500000));
    client->buried_ns = sim_boot_ns(client);
    client->buried = true;
    client->alive = false;
    if (client->boot.stopped) {
        client->boot.true_ns = w->now_ns;
        client->boot.stopped = false;
        client->real_minus_boot_ns += client->frozen_ns;
        client->frozen_ns = 0;
    }
    client->paused_until_ns = 0;
    client->starved_until_ns = 0;
    if (client->on_stack == 0)
        bury(client);
}
