/* The invariants: what the store did, what the programs were told, and whether both agree. Looks
 * at the data after each command, never at how the scripts work. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "sim.h"

struct sim_check *sim_check_new(struct sim_world *w);
void sim_check_free(struct sim_check *check);

/* ---- faults that void promise A ---- */

/* The grant of @lock (-1: of every lock) may end before its time from now on, by a fault that the
 * holder cannot know of before its next renewal. */
void sim_check_void(struct sim_world *w, int lock);
/* Somebody took the expiry of @lock away. */
void sim_check_persisted(struct sim_world *w, int lock);
/* Another client writes a string at @lock. */
void sim_check_foreign(struct sim_world *w, int lock);
/* Deliver an old request once more; @which chooses it. */
void sim_check_replay(struct sim_world *w, int64_t which);

/* ---- handles: what a program holds ---- */

struct sim_handle {
    struct pawli_list link;
    struct sim_client *client;
    struct pawl_lock *lock;
    int lock_number;
    uint64_t token;
    int64_t max_end_ns; /* BOOTTIME; PAWLI_NEVER */
    bool no_renew;
    bool shared; /* others hold it under the same owner, and may end it for all */
    bool released;      /* its release has begun */
    bool told_expiring;
    bool told_lost;
    int at_risk;        /* told and not withdrawn */
};

/* A grant was completed to a program. */
void sim_check_granted(struct sim_world *w, struct sim_handle *handle, int64_t asked_ns);
void sim_check_forget(struct sim_handle *handle);
/* Ask all handles of a client; it runs just now. */
void sim_check_client(struct sim_world *w, struct sim_client *client);
/* Ask one, check the answer, and return it. */
int sim_check_handle(struct sim_world *w, struct sim_handle *handle);
void sim_check_told(struct sim_world *w, struct sim_handle *handle, enum pawl_event event,
                    int result);
/* The answer of a release; the handle is still there. */
void sim_check_released(struct sim_world *w, int lock, const char *hold_id, uint64_t token,
                        int result);
/* Was @lock held by anybody but @owner at some time from @from_ns until now? */
bool sim_check_was_busy(struct sim_world *w, int lock, const char *owner, int64_t from_ns);
/* Is this id alive at the store under this token? */
bool sim_check_lives(struct sim_world *w, int lock, const char *hold_id, uint64_t token);
bool sim_check_is_void(struct sim_world *w, int lock, uint64_t token);

/* At the end: nothing but counters is left. */
void sim_check_empty(struct sim_world *w);
/* The number of script calls so far. */
uint64_t sim_check_n_scripts(const struct sim_world *w);

#endif
