/* One run: a plan in, what happened out. Faults first, then everything heals and every live waiter
 * must get its turn; then nothing may be left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sim.h"

#define EPOCH_NS (INT64_C(1795000000) * SIM_SECOND)

static void client_starts(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_client *client = arg;

    (void)number;
    if (client->pawl != NULL)
        return;
    sim_client_open(client);
    for (int i = 0; i < w->plan.n_actors; i++)
        sim_actor_start(client->actor[i]);
}

static void set_up(struct sim_world *w, struct fr_lua *lua)
{
    struct sim_rng rng;
    int ppm = w->plan.drift_ppm;

    sim_rng_init(&rng, w->plan.seed, 1);
    sim_rng_init(&w->net_rng, w->plan.seed, 2);
    sim_rng_init(&w->id_rng, w->plan.seed, 3);
    w->server.lua = lua;
    w->server_clock.base_ns = EPOCH_NS + sim_below(&rng, SIM_SECOND);
    w->server_clock.ppm = sim_between(&rng, -ppm, ppm);
    w->check = sim_check_new(w);
    for (int i = 0; i < w->plan.n_clients; i++) {
        struct sim_client *client = &w->client[i];

        client->w = w;
        client->number = i;
        client->cut_in = -1;
        client->boot.base_ns = sim_between(&rng, 1, 1000000) * SIM_SECOND;
        client->boot.ppm = sim_between(&rng, -ppm, ppm);
        client->real_minus_boot_ns = EPOCH_NS - client->boot.base_ns + sim_below(&rng, SIM_SECOND);
        sim_rng_init(&client->rng, w->plan.seed, 10 + (uint64_t)i);
        for (int a = 0; a < w->plan.n_actors; a++)
            client->actor[a] = sim_actor_new(client, a);
        sim_at(w, sim_below(&rng, 50 * SIM_MS), client_starts, client, 0);
    }
}

static bool all_idle(const struct sim_world *w)
{
    for (int i = 0; i < w->plan.n_clients; i++) {
        if (w->client[i].pawl == NULL)
            return false;
        for (int a = 0; a < w->plan.n_actors; a++)
            if (!sim_actor_idle(w->client[i].actor[a]))
                return false;
    }
    return true;
}

/* I5 in its simplest form: nobody asks for more, so everybody must be served. */
static void settle(struct sim_world *w)
{
    int64_t bound_ns = w->now_ns + 10 * SIM_SECOND +
                       w->plan.n_clients * w->plan.n_actors * 25 * w->plan.lease_ms * SIM_MS;

    while (!all_idle(w) && w->now_ns < bound_ns && !sim_failed(w))
        sim_run_until(w, w->now_ns + 50 * SIM_MS);
    if (!all_idle(w) && !sim_failed(w)) {
        sim_fail(w, "I5: not everybody got a turn after the faults had healed");
        for (int i = 0; w->verbose && i < w->plan.n_clients; i++)
            for (int a = 0; a < w->plan.n_actors; a++)
                sim_actor_print(w->client[i].actor[a]);
    }
}

/* Nothing is held and nothing is on its way: then nobody has a reason to talk to the store. */
static void check_quiet(struct sim_world *w)
{
    int64_t lease_ns = w->plan.lease_ms * SIM_MS;
    uint64_t n_scripts;

    /* Releases that go on behind end with the longest lease, and a last command; what a lost reset
     * left behind comes within 3 s. */
    sim_run_until(w, w->now_ns + 3 * lease_ns + 5 * SIM_SECOND);
    n_scripts = sim_check_n_scripts(w);
    sim_run_until(w, w->now_ns + 3 * lease_ns);
    if (sim_check_n_scripts(w) != n_scripts)
        sim_fail(w, "I6: a client that holds nothing still asks the store");
    for (int i = 0; i < w->plan.n_clients && !sim_failed(w); i++) {
        struct pawl_stats stats = { .size = sizeof stats };

        (void)pawl_client_stats(w->client[i].pawl, &stats);
        if (stats.held != 0 || stats.waiting != 0)
            sim_fail(w, "I6: a client counts %llu held and %llu waiting, but has nothing",
                     (unsigned long long)stats.held, (unsigned long long)stats.waiting);
    }
}

static void end_clients(struct sim_world *w)
{
    for (int i = 0; i < w->plan.n_clients; i++) {
        struct sim_client *client = &w->client[i];

        if (client->pawl != NULL && sim_failed(w))
            sim_client_kill(client);
        else if (client->pawl != NULL)
            sim_client_close(client);
    }
}

static void tear_down(struct sim_world *w)
{
    for (int i = 0; i < w->plan.n_clients; i++)
        for (int a = 0; a < w->plan.n_actors; a++)
            sim_actor_free(w->client[i].actor[a]);
    sim_check_free(w->check);
    sim_conns_free(w);
    fr_db_clear(&w->server.db);
    free(w->server.scratch.data);
    free(w->heap);
}

/* Scripts are compiled once in a process; what the server knows of them is a run's own. */
static void share_scripts(struct sim_world *w, bool keep)
{
    static struct fr_script script[FR_SCRIPTS_MAX];
    static size_t n_scripts;

    if (keep) {
        n_scripts = w->server.n_scripts;
        memcpy(script, w->server.script, sizeof script);
    } else {
        w->server.n_scripts = n_scripts;
        memcpy(w->server.script, script, sizeof script);
        fr_script_flush(&w->server);
    }
}

void sim_run(const struct sim_plan *plan, struct fr_lua *lua, bool verbose,
             struct sim_result *ret_result)
{
    struct sim_world *w = calloc(1, sizeof *w);

    if (w == NULL)
        abort();
    sim = w;
    w->plan = *plan;
    w->verbose = verbose;
    share_scripts(w, false);
    set_up(w, lua);
    sim_faults_start(w);
    sim_run_until(w, plan->run_ns);
    sim_faults_heal(w);
    settle(w);
    if (!sim_failed(w))
        check_quiet(w);
    ret_result->simulated_ns = w->now_ns;
    end_clients(w);
    if (!sim_failed(w)) {
        /* A tombstone lives as long as its request may be late, by the server's clock. */
        sim_run_until(w, w->now_ns + 100000 * SIM_SECOND);
        sim_check_empty(w);
    }
    memcpy(ret_result->failure, w->failure, sizeof w->failure);
    ret_result->hash = w->hash;
    ret_result->n_steps = w->n_steps;
    ret_result->n_grants = w->n_grants;
    ret_result->n_checks = w->n_checks;
    ret_result->n_handovers = w->n_handovers;
    ret_result->n_ghosts = w->n_ghosts;
    ret_result->n_lost = w->n_lost;
    ret_result->n_unknown = w->n_unknown;
    ret_result->n_served = w->n_served;
    share_scripts(w, true);
    tear_down(w);
    sim = NULL;
    free(w);
}
