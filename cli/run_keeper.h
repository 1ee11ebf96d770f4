/* The keeper's state, shared by run_keeper.c (what happens) and run_stop.c (ending the job). */
#ifndef PAWL_CLI_RUN_KEEPER_H
#define PAWL_CLI_RUN_KEEPER_H

#include "run.h"

enum keeper_state {
    KEEPER_ASKING, /* an acquire is under way */
    KEEPER_PAUSED, /* Ctrl-Z while waiting: out of the queue until continued */
    KEEPER_RUNNING, /* the job runs */
    KEEPER_STOPPING, /* lost, maximum hold, or no front: TERM was sent, KILL follows */
    KEEPER_LINGERING, /* the job has ended, processes that it started have not */
    KEEPER_RELEASING, /* all are gone; the release is under way */
    KEEPER_DONE
};

struct keeper {
    const struct run *run;
    const struct run_signals *signals;
    struct run_fds *fds;
    struct run_shared *shared;
    int socket; /* to the front; -1 once it is gone */
    int front_fd; /* pidfd of the front */
    int timer; /* CLOCK_BOOTTIME, so that it fires at once after a suspend */
    bool terminal;
    struct pawl_client *client;
    struct pawl_lock *lock;
    struct pawl_owner *owner;
    enum keeper_state state;
    uint64_t ask_id;
    int64_t asked_ns; /* the first ask: a pause does not prolong the wait limit by itself */
    bool told_busy;
    bool pause; /* the cancel under way is for Ctrl-Z */
    int ended_by; /* signal that ended a wait; 0: none */
    pid_t job; /* 0 before the start, and once it has been waited for */
    int job_code; /* its exit code, 128 + n for a signal */
    int code; /* exit code of the whole; -1: the job's */
    int64_t valid_ns; /* until when the lock is certainly ours, as last seen */
    int64_t span_ns; /* the most that was ever left of it: near the lease, or less for a
                             moment after a hand-over, which gives a short claim first */
    int64_t kill_ns; /* in STOPPING and LINGERING: when KILL follows */
    bool killing;
};

/* What grace there is: min(grace, a third of the lease), as the library counts it. */
int64_t keeper_grace_ns(const struct keeper *k);
/* What is kept back for KILL to do its work before the lease can pass on. */
int64_t keeper_reserve_ns(const struct keeper *k);

/* Look at the lock: moves valid_ns on, tells the front until when the job may live, and begins to
 * stop the job when it is time. Sets the timer for the next look. */
void keeper_look(struct keeper *k);

/* TERM to all of the job's processes now, KILL after the grace, but before the lock can pass on.
 * @code is the exit code then. */
void keeper_stop(struct keeper *k, int code, const char *why);
/* KILL now. */
void keeper_kill(struct keeper *k);
/* The job has ended: see to what it left behind. */
void keeper_linger(struct keeper *k);

#endif
