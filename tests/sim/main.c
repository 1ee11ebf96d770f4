/* sim: runs seeds, replays one, and shrinks what fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

struct options {
    int64_t seeds;
    int64_t first;
    int64_t seconds; /* stop after that; 0: no limit */
    int64_t seed;    /* only this one, verbosely; -1 */
    int64_t mask;
    int64_t clients;
    int64_t actors;
    int64_t run_ms;
    int64_t stop; /* after so many failures */
    bool quiet;
};

struct total {
    uint64_t n_seeds;
    uint64_t n_replayed;
    uint64_t n_failed;
    struct sim_result sum;
};

static double now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void add(struct total *total, const struct sim_result *one)
{
    total->n_seeds++;
    total->sum.n_steps += one->n_steps;
    total->sum.simulated_ns += one->simulated_ns;
    total->sum.n_grants += one->n_grants;
    total->sum.n_checks += one->n_checks;
    total->sum.n_handovers += one->n_handovers;
    total->sum.n_ghosts += one->n_ghosts;
    total->sum.n_lost += one->n_lost;
    total->sum.n_unknown += one->n_unknown;
    total->sum.n_served += one->n_served;
}

/* ---- shrinking ---- */

/* What was violated, without the time and the numbers of the case. */
static char wanted[16];

static void kind_of(const char *failure, char ret_kind[16])
{
    const char *at = strstr(failure, " s: ");

    (void)snprintf(ret_kind, 16, "%s", at == NULL ? "" : at + 4);
}

static bool fails(const struct sim_plan *plan, struct fr_lua *lua, struct sim_result *ret_result)
{
    char kind[16];

    sim_run(plan, lua, false, ret_result);
    kind_of(ret_result->failure, kind);
    return kind[0] != '\0' && strcmp(kind, wanted) == 0;
}

static bool drop_fault(struct sim_plan *plan, struct fr_lua *lua)
{
    struct sim_result result;
    bool smaller = false;

    for (int i = 0; i < plan->n_faults; i++) {
        uint32_t before = plan->mask;

        plan->mask |= UINT32_C(1) << i;
        if (plan->mask == before)
            continue;
        if (fails(plan, lua, &result))
            smaller = true;
        else
            plan->mask = before;
    }
    return smaller;
}

static bool fewer(struct sim_plan *plan, int *what, struct fr_lua *lua)
{
    struct sim_result result;

    if (*what == 1)
        return false;
    (*what)--;
    if (fails(plan, lua, &result))
        return true;
    (*what)++;
    return false;
}

static bool shorter(struct sim_plan *plan, struct fr_lua *lua)
{
    struct sim_result result;
    int64_t before = plan->run_ns;

    plan->run_ns = before * 3 / 4;
    if (before > 100 * SIM_MS && fails(plan, lua, &result))
        return true;
    plan->run_ns = before;
    return false;
}

static void shrink(struct sim_plan *plan, struct fr_lua *lua)
{
    bool smaller = true;

    for (int round = 0; smaller && round < 20; round++) {
        smaller = drop_fault(plan, lua);
        smaller |= fewer(plan, &plan->n_clients, lua);
        smaller |= fewer(plan, &plan->n_actors, lua);
        smaller |= shorter(plan, lua);
    }
}

static void report(const struct sim_plan *plan, struct fr_lua *lua,
                   const struct sim_result *result)
{
    struct sim_plan small = *plan;
    struct sim_result last;

    printf("seed %llu failed: %s\n", (unsigned long long)plan->seed, result->failure);
    kind_of(result->failure, wanted);
    shrink(&small, lua);
    (void)fails(&small, lua, &last);
    printf("shrunk: %s\n", last.failure);
    sim_plan_print(&small);
    printf("replay: ./dev sim --seed %llu --mask %u --clients %d --actors %d --ms %lld\n",
           (unsigned long long)small.seed, (unsigned)small.mask, small.n_clients, small.n_actors,
           (long long)(small.run_ns / SIM_MS));
    (void)fflush(stdout);
}

/* ---- running ---- */

static void run_one(uint64_t seed, struct fr_lua *lua, struct total *total)
{
    struct sim_plan plan;
    struct sim_result result;
    struct sim_result again;

    sim_plan_make(&plan, seed);
    sim_run(&plan, lua, false, &result);
    add(total, &result);
    if (result.failure[0] != '\0') {
        total->n_failed++;
        report(&plan, lua, &result);
    }
    if (seed % 100 == 0 || result.failure[0] != '\0') {
        sim_run(&plan, lua, false, &again);
        total->n_replayed++;
        if (again.hash != result.hash) {
            total->n_failed++;
            printf("seed %llu did not replay bit-equal\n", (unsigned long long)seed);
        }
    }
}

static int run_many(const struct options *options, struct fr_lua *lua)
{
    struct total total = { 0 };
    double from = now_s();
    double took = 0;
    int64_t i = 0;

    while (i < options->seeds && total.n_failed < (uint64_t)options->stop &&
           (options->seconds == 0 || took < (double)options->seconds)) {
        run_one((uint64_t)(options->first + i++), lua, &total);
        took = now_s() - from;
    }
    printf(
        "%llu seeds in %.1f s (%.0f/s), %llu replayed bit-equal; %.0f steps/s; %.0f s simulated, "
        "%.0f times real time\n",
        (unsigned long long)total.n_seeds, took, (double)total.n_seeds / took,
        (unsigned long long)total.n_replayed, (double)total.sum.n_steps / took,
        (double)total.sum.simulated_ns / 1e9, (double)total.sum.simulated_ns / 1e9 / took);
    printf("%llu commands, %llu grants, %llu of them from a queue, %llu checks, %llu losses told, "
           "%llu unknown results, %llu claims for nobody\n",
           (unsigned long long)total.sum.n_served, (unsigned long long)total.sum.n_grants,
           (unsigned long long)total.sum.n_handovers, (unsigned long long)total.sum.n_checks,
           (unsigned long long)total.sum.n_lost, (unsigned long long)total.sum.n_unknown,
           (unsigned long long)total.sum.n_ghosts);
    printf("2 passed, %llu failed, 0 skipped\n", (unsigned long long)total.n_failed);
    return total.n_failed == 0 ? 0 : 1;
}

static int run_seed(const struct options *options, struct fr_lua *lua)
{
    struct sim_plan plan;
    struct sim_result result;
    struct sim_result again;

    sim_plan_make(&plan, (uint64_t)options->seed);
    plan.mask = (uint32_t)options->mask;
    if (options->clients > 0)
        plan.n_clients = (int)options->clients;
    if (options->actors > 0)
        plan.n_actors = (int)options->actors;
    if (options->run_ms > 0)
        plan.run_ns = options->run_ms * SIM_MS;
    sim_plan_print(&plan);
    sim_run(&plan, lua, !options->quiet, &result);
    sim_run(&plan, lua, false, &again);
    printf("%llu steps, %llu grants, %llu checks, hash %016llx%s\n",
           (unsigned long long)result.n_steps, (unsigned long long)result.n_grants,
           (unsigned long long)result.n_checks, (unsigned long long)result.hash,
           again.hash == result.hash ? ", bit-equal when replayed" : ", NOT bit-equal");
    printf("%s\n", result.failure[0] == '\0' ? "no invariant was broken" : result.failure);
    return result.failure[0] == '\0' && again.hash == result.hash ? 0 : 1;
}

static bool take(const char *name, int *i, int argc, char **argv, int64_t *ret_n)
{
    if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc)
        return false;
    *ret_n = strtoll(argv[++*i], NULL, 10);
    return true;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: sim [--seeds N] [--first SEED] [--seconds S] [--hours H] "
                          "[--stop FAILURES]\n"
                          "       sim --seed S [--mask M] [--clients N] [--actors N] [--ms T] "
                          "[--quiet]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct options options = { .seeds = 10000, .seed = -1, .first = 1, .stop = 5 };
    struct fr_lua *lua;
    int64_t hours = 0;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0)
            options.quiet = true;
        else if (!take("--seeds", &i, argc, argv, &options.seeds) &&
                 !take("--first", &i, argc, argv, &options.first) &&
                 !take("--seconds", &i, argc, argv, &options.seconds) &&
                 !take("--hours", &i, argc, argv, &hours) &&
                 !take("--seed", &i, argc, argv, &options.seed) &&
                 !take("--mask", &i, argc, argv, &options.mask) &&
                 !take("--clients", &i, argc, argv, &options.clients) &&
                 !take("--stop", &i, argc, argv, &options.stop) &&
                 !take("--actors", &i, argc, argv, &options.actors) &&
                 !take("--ms", &i, argc, argv, &options.run_ms))
            return usage();
    }
    if (hours > 0) {
        options.seconds = hours * 3600;
        options.seeds = INT64_MAX;
        if (options.first == 1)
            options.first = (int64_t)time(NULL) * 1000000;
    }
    lua = fr_lua_new();
    rc = options.seed >= 0 ? run_seed(&options, lua) : run_many(&options, lua);
    fr_lua_free(lua);
    return rc;
}
