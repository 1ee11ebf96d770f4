/* What a seed decides: how many clients, how fast, which faults and when. Made before the run, so
 * that the shrinker can leave parts out without changing the rest. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static const char *const names[SIM_N_FAULTS] = {
    "pause",        "suspend",     "freeze",       "starve",   "kill",
    "close",        "client step", "partition",    "cut",      "silent cut",
    "slow",         "replay",      "server pause", "restart",  "restart empty",
    "script flush", "evict",       "delete",       "flushall", "server forward",
    "server back",  "oom",         "misconf",      "persist",  "foreign",
};

const char *sim_fault_name(enum sim_fault_kind kind)
{
    return names[kind];
}

/* How often each kind comes, by the temper of the run. */
static const int weight[SIM_N_FAULTS] = {
    [SIM_PAUSE] = 8,        [SIM_SUSPEND] = 3,        [SIM_FREEZE] = 4,
    [SIM_STARVE] = 5,       [SIM_KILL] = 5,           [SIM_CLOSE] = 3,
    [SIM_CLIENT_STEP] = 3,  [SIM_PARTITION] = 7,      [SIM_CUT] = 10,
    [SIM_SILENT_CUT] = 5,   [SIM_SLOW] = 4,           [SIM_REPLAY] = 8,
    [SIM_SERVER_PAUSE] = 8, [SIM_RESTART] = 4,        [SIM_RESTART_EMPTY] = 2,
    [SIM_SCRIPT_FLUSH] = 4, [SIM_EVICT] = 2,          [SIM_DELETE] = 2,
    [SIM_FLUSHALL] = 1,     [SIM_SERVER_FORWARD] = 2, [SIM_SERVER_BACK] = 3,
    [SIM_OOM] = 2,          [SIM_MISCONF] = 2,        [SIM_PERSIST] = 2,
    [SIM_FOREIGN] = 1,
};

static enum sim_fault_kind pick(struct sim_rng *rng, uint64_t allowed)
{
    int total = 0;
    int64_t at;

    for (int i = 0; i < SIM_N_FAULTS; i++)
        total += (allowed >> i & 1) != 0 ? weight[i] : 0;
    at = sim_below(rng, total);
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        at -= (allowed >> i & 1) != 0 ? weight[i] : 0;
        if (at < 0)
            return (enum sim_fault_kind)i;
    }
    return SIM_PAUSE;
}

static void fill(struct sim_plan *plan, struct sim_rng *rng, struct sim_fault *fault)
{
    int64_t lease_ns = plan->lease_ms * SIM_MS;

    fault->at_ns = sim_between(rng, 100 * SIM_MS, plan->run_ns);
    fault->client = (int)sim_below(rng, SIM_CLIENTS_MAX) % plan->n_clients;
    fault->lock = (int)sim_below(rng, plan->n_locks);
    fault->for_ns =
        sim_between(rng, 2 * SIM_MS, sim_chance(rng, 300000) ? 3 * lease_ns : lease_ns);
    switch (fault->kind) {
    case SIM_CUT:
    case SIM_SILENT_CUT:
        fault->amount = sim_below(rng, 700);
        break;
    case SIM_PARTITION:
        fault->amount = sim_between(rng, 1, 3);
        break;
    case SIM_SLOW:
        fault->amount = sim_between(rng, SIM_MS, lease_ns / 2);
        break;
    case SIM_CLIENT_STEP:
    case SIM_SERVER_FORWARD:
    case SIM_SERVER_BACK:
        fault->amount =
            sim_chance(rng, 200000) ? 3600 * SIM_SECOND : sim_between(rng, SIM_MS, 3 * lease_ns);
        break;
    default:
        fault->amount = sim_below(rng, 1000);
        break;
    }
    if (fault->for_ns > 4 * SIM_SECOND)
        fault->for_ns = 4 * SIM_SECOND;
}

/* A run has only some kinds of faults, so that rare meetings of two kinds become frequent. */
static uint64_t kinds(struct sim_rng *rng)
{
    uint64_t allowed = 0;
    int64_t n = sim_between(rng, 1, 6);

    if (sim_chance(rng, 200000))
        return (UINT64_C(1) << SIM_N_FAULTS) - 1;
    while (n-- > 0)
        allowed |= UINT64_C(1) << pick(rng, (UINT64_C(1) << SIM_N_FAULTS) - 1);
    return allowed;
}

void sim_plan_make(struct sim_plan *plan, uint64_t seed)
{
    static const int64_t leases[] = { 100, 150, 200, 300, 500, 1000, 2000, 3000 };
    static const int64_t latencies[] = { 50, 200, 1000, 5000, 20000 };
    struct sim_rng rng;
    uint64_t allowed;

    memset(plan, 0, sizeof *plan);
    sim_rng_init(&rng, seed, 0);
    plan->seed = seed;
    plan->n_clients = (int)sim_between(&rng, 1, SIM_CLIENTS_MAX);
    plan->n_actors = (int)sim_between(&rng, 1, SIM_ACTORS_MAX);
    plan->n_locks = (int)sim_between(&rng, 1, SIM_LOCKS_MAX);
    plan->lease_ms = leases[sim_below(&rng, 8)];
    plan->run_ns = plan->lease_ms * SIM_MS * sim_between(&rng, 5, 30);
    if (plan->run_ns > 30 * SIM_SECOND)
        plan->run_ns = 30 * SIM_SECOND;
    plan->latency_ns = latencies[sim_below(&rng, plan->lease_ms < 300 ? 4 : 5)] * SIM_US;
    plan->preempt = sim_chance(&rng, 300000) ? 500 : 0;
    plan->late = sim_chance(&rng, 500000) ? 300000 : 0;
    plan->drift_ppm = (int)sim_below(&rng, 3) * 250;
    plan->checks = sim_chance(&rng, 500000);
    allowed = kinds(&rng);
    if (sim_chance(&rng, 900000))
        plan->n_faults = (int)sim_between(&rng, 1, SIM_FAULTS_MAX);
    for (int i = 0; i < plan->n_faults; i++) {
        plan->fault[i].kind = pick(&rng, allowed);
        fill(plan, &rng, &plan->fault[i]);
    }
    if (plan->n_faults == 0) { /* nothing may be lost in a calm world that is fast enough */
        plan->preempt = 0;
        if (plan->latency_ns > plan->lease_ms * SIM_MS / 200)
            plan->latency_ns = plan->lease_ms * SIM_MS / 200;
    }
}

void sim_plan_print(const struct sim_plan *plan)
{
    printf("seed %llu: %d clients with %d actors each, %d locks, lease %lld ms, latency %lld us, "
           "drift %d ppm, %lld ms, preempt %lld, late %lld\n",
           (unsigned long long)plan->seed, plan->n_clients, plan->n_actors, plan->n_locks,
           (long long)plan->lease_ms, (long long)(plan->latency_ns / 1000), plan->drift_ppm,
           (long long)(plan->run_ns / SIM_MS), (long long)plan->preempt, (long long)plan->late);
    for (int i = 0; i < plan->n_faults; i++) {
        const struct sim_fault *f = &plan->fault[i];

        if ((plan->mask >> i & 1) == 0)
            printf("  fault %2d at %9.3f ms: %s, client %d, lock %d, for %.3f ms, amount %lld\n",
                   i, (double)f->at_ns / 1e6, names[f->kind], f->client, f->lock,
                   (double)f->for_ns / 1e6, (long long)f->amount);
    }
}
