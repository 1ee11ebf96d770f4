/* The fake world: one thread, one true time, machines with clocks of their own, a network, a
 * server, and clients that run the real core, engine and Redis backend. What the parts of the
 * simulator share. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl.h>

#include "fake_redis.h"
#include "rng.h"
#include "util/clock.h"
#include "util/list.h"

#define SIM_CLIENTS_MAX 6
#define SIM_ACTORS_MAX 3
#define SIM_LOCKS_MAX 3
#define SIM_FAULTS_MAX 24
#define SIM_MS INT64_C(1000000)
#define SIM_US INT64_C(1000)
#define SIM_SECOND INT64_C(1000000000)

struct sim_world;
struct sim_client;
struct sim_conn;
struct sim_actor;

/* ---- what a seed decides ---- */

enum sim_fault_kind {
    SIM_PAUSE,          /* a client's process is stopped */
    SIM_SUSPEND,        /* its machine sleeps: BOOTTIME goes on */
    SIM_FREEZE,         /* its virtual machine is frozen: BOOTTIME stops, REALTIME jumps */
    SIM_STARVE,         /* its engine thread gets no CPU, the program does */
    SIM_KILL,           /* its process is killed; another is started */
    SIM_CLOSE,          /* it closes its client and opens another */
    SIM_CLIENT_STEP,    /* its REALTIME is stepped */
    SIM_PARTITION,      /* nothing gets through, either or both ways */
    SIM_CUT,            /* its connection breaks within the next bytes */
    SIM_SILENT_CUT,     /* the same, and the client hears nothing of it */
    SIM_SLOW,           /* latency rises */
    SIM_REPLAY,         /* an old request is delivered once more */
    SIM_SERVER_PAUSE,
    SIM_RESTART,        /* with its data */
    SIM_RESTART_EMPTY,  /* without */
    SIM_SCRIPT_FLUSH,
    SIM_EVICT,          /* a key vanishes */
    SIM_DELETE,         /* an operator deletes a lock */
    SIM_FLUSHALL,
    SIM_SERVER_FORWARD, /* the server's clock is stepped */
    SIM_SERVER_BACK,
    SIM_OOM,
    SIM_MISCONF,
    SIM_PERSIST,        /* somebody takes the expiry away */
    SIM_FOREIGN,        /* somebody else writes a string at the lock's key */
    SIM_N_FAULTS
};

struct sim_fault {
    int64_t at_ns;
    enum sim_fault_kind kind;
    int client;
    int lock;
    int64_t for_ns;
    int64_t amount; /* by kind: ns of a step, bytes until a cut, directions */
};

struct sim_plan {
    uint64_t seed;
    int n_clients;
    int n_actors; /* per client */
    int n_locks;
    int64_t run_ns;
    int64_t lease_ms;
    int64_t latency_ns;
    int64_t preempt; /* of a million readings of the clock, how many stop the process */
    int64_t late;    /* of a million resets, how many do not stop what was sent before */
    int drift_ppm;
    bool checks;     /* programs ask often */
    int n_faults;
    struct sim_fault fault[SIM_FAULTS_MAX];
    uint32_t mask; /* of faults that are left out, by the shrinker */
};

void sim_plan_make(struct sim_plan *plan, uint64_t seed);
void sim_plan_print(const struct sim_plan *plan);
const char *sim_fault_name(enum sim_fault_kind kind);

/* ---- the world ---- */

typedef void (*sim_event_fn)(struct sim_world *w, void *arg, int64_t number);

struct sim_event {
    int64_t at_ns;
    uint64_t seq;
    sim_event_fn run;
    void *arg;
    int64_t number;
};

/* A clock that runs at its own rate. */
struct sim_clock {
    int64_t true_ns; /* at this true time ... */
    int64_t base_ns; /* ... it showed this */
    int64_t ppm;
    bool stopped;
};

int64_t sim_clock_at(const struct sim_clock *clock, int64_t true_ns);
/* The first true time at which it shows @shown_ns. */
int64_t sim_clock_when(const struct sim_clock *clock, int64_t shown_ns);
void sim_clock_set(struct sim_clock *clock, int64_t true_ns, int64_t shown_ns);

struct sim_client {
    struct sim_world *w;
    int number;
    unsigned life; /* counts processes */
    struct pawl_client *pawl;
    struct pawli_loop *loop;
    struct sim_clock boot;
    int64_t real_minus_boot_ns;
    struct sim_rng rng;
    bool alive;
    bool running;       /* its engine thread runs */
    bool closing;       /* its program closes it just now */
    int on_stack;       /* its code is being run, perhaps stopped half-way */
    bool buried;        /* dead: it runs on a private clock to free its memory */
    int64_t buried_ns;
    int64_t frozen_ns;  /* how long the freeze under way has lasted when it ends */
    int64_t paused_until_ns;
    int64_t starved_until_ns;
    int64_t disturbed_ns; /* when the process last stood still for any reason */
    bool turn_pending;
    uint64_t turn_seq;    /* the only turn that counts */
    int64_t turn_at_ns;
    bool app_pending;
    bool notes_pending;
    int64_t blocked_until_ns[2]; /* to and from the server */
    int64_t slow_ns;
    int64_t cut_in; /* bytes until the cut; -1: none */
    bool cut_silent;
    struct sim_actor *actor[SIM_ACTORS_MAX];
};

struct sim_world {
    struct sim_plan plan;
    int64_t now_ns;
    struct sim_event *heap;
    size_t n_events;
    size_t room;
    uint64_t seq;
    uint64_t n_steps;
    uint64_t hash; /* of everything that happened, in order */
    bool verbose;
    bool nested;   /* inside a turn that was preempted */
    bool healing;
    bool calm;     /* the plan has no faults at all */
    struct sim_rng net_rng;
    struct sim_rng id_rng;
    struct sim_client client[SIM_CLIENTS_MAX];
    struct sim_client *current; /* whose process runs */
    struct sim_conn *conns;
    int last_fd;

    /* the server */
    struct fr_server server;
    struct sim_clock server_clock; /* REALTIME, ns since 1970 */
    int64_t server_paused_until_ns;
    bool server_down;
    bool server_scheduled;
    int64_t server_max_us; /* largest time it has shown */
    bool data_lost;
    uint64_t n_served;

    struct sim_check *check;
    char failure[400]; /* what was violated; "": nothing */
    uint64_t n_grants;
    uint64_t n_checks;
    uint64_t n_handovers;
    uint64_t n_ghosts; /* claims for nobody */
    uint64_t n_lost;
    uint64_t n_unknown;
};

extern struct sim_world *sim; /* the one that runs: the library's calls come in here */

void sim_at(struct sim_world *w, int64_t at_ns, sim_event_fn run, void *arg, int64_t number);
/* Run the next event; false if none is left or something failed. */
bool sim_step(struct sim_world *w);
void sim_run_until(struct sim_world *w, int64_t until_ns);
/* Goes into the hash, and out if verbose. */
void sim_log(struct sim_world *w, const char *what, int64_t a, int64_t b);
/* An invariant is broken: the first one is kept, and the run ends. */
void sim_fail(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool sim_failed(const struct sim_world *w)
{
    return w->failure[0] != '\0';
}

struct sim_result {
    char failure[400];
    uint64_t hash;
    uint64_t n_steps;
    int64_t simulated_ns;
    uint64_t n_grants;
    uint64_t n_checks;
    uint64_t n_handovers;
    uint64_t n_ghosts; /* claims for nobody */
    uint64_t n_lost;
    uint64_t n_unknown;
    uint64_t n_served;
};

/* Run one plan to its end. @lua is shared between runs. */
void sim_run(const struct sim_plan *plan, struct fr_lua *lua, bool verbose,
             struct sim_result *ret_result);

/* ---- clients ---- */

int64_t sim_boot_ns(const struct sim_client *client);
int64_t sim_real_ns(const struct sim_client *client);
bool sim_stopped(const struct sim_client *client);
void sim_client_open(struct sim_client *client);
void sim_client_close(struct sim_client *client);
/* The process is gone between two instructions. */
void sim_client_kill(struct sim_client *client);
/* Around everything that runs code of its process: a kill waits until its stack is gone. */
void sim_client_enter(struct sim_client *client);
void sim_client_leave(struct sim_client *client);
/* Stop the process until then. */
void sim_client_pause(struct sim_client *client, int64_t until_ns);
/* Its program has something to do: completions, questions. */
void sim_client_app_soon(struct sim_client *client, int64_t in_ns);

/* sub_loop.c: the client's loop wants its turn at @at_ns. */
void sim_loop_wake(struct sim_client *client, int64_t at_ns);

/* ---- network and server ---- */

void sim_conns_free(struct sim_world *w);
/* Something of the client's connections may be ready. */
unsigned sim_conn_ready(const struct sim_world *w, int fd);
/* Both ends hear of it, or only the server's. */
void sim_client_disconnect(struct sim_client *client, bool reset);
void sim_server_wake(struct sim_world *w);
void sim_server_restart(struct sim_world *w, int64_t down_ns, bool keep_data);
int64_t sim_server_us(struct sim_world *w);
/* Run a command as an operator on the server. */
void sim_operator(struct sim_world *w, const char *command, const char *key, const char *more);
/* net.c: what the server wrote goes on its way. */
void sim_conns_send(struct sim_world *w);
struct sim_conn *sim_conn_with_input(struct sim_world *w);
struct fr_conn *sim_conn_peer(struct sim_conn *conn);
void sim_conns_break(struct sim_world *w);

/* ---- faults ---- */

void sim_faults_start(struct sim_world *w);
void sim_faults_heal(struct sim_world *w);

/* ---- programs ---- */

struct sim_actor *sim_actor_new(struct sim_client *client, int number);
void sim_actor_free(struct sim_actor *actor);
bool sim_actor_idle(const struct sim_actor *actor);
void sim_actor_start(struct sim_actor *actor);
/* Its process died or its client was closed: what it knew is forgotten. */
void sim_actor_reset(struct sim_actor *actor);
void sim_actor_print(const struct sim_actor *actor);
const char *sim_lock_name(int lock);

#endif
