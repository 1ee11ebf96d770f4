/* What the checker remembers of each lock at the store. Private to check_*.c. */
#ifndef SIM_CHECK_STORE_H
#define SIM_CHECK_STORE_H

#include "check.h"

#define IDS_MAX 256 /* of one grant: nested holds come and go under one token */
#define TEXT_MAX 136
#define FRAMES_MAX 32
#define DONE_MAX 64
#define WAITERS_MAX 64

/* One grant, from its first id to its end. */
struct sim_grant {
    uint64_t token;
    char owner[TEXT_MAX];
    char id[IDS_MAX][33]; /* every hold id it ever had */
    int n_ids;
    int64_t from_ns;
    int64_t end_ns;   /* when it was seen to be over; PAWLI_NEVER */
    int64_t void_ns;  /* a fault may have ended it early; 0 */
    int64_t true_end_ns; /* with void_ns: true time at which it would have ended without it */
    int64_t lease_ms; /* the longest it ever had */
    bool revoked;
};

/* What the store says now. */
struct sim_snap {
    bool live;
    bool revoked;
    uint64_t token;
    char owner[TEXT_MAX];
    char id[IDS_MAX][33];
    int n_ids;
    int64_t expire_ms;
};

struct sim_tomb {
    char id[33];
    int64_t until_us;
};

/* One entry of a queue before the command. */
struct sim_waiter {
    char id[33];
    double ticket;
    bool lives;
};

struct sim_lock_state {
    struct fr_bytes key;
    struct fr_bytes queue;
    struct sim_waiter waiter[WAITERS_MAX];
    int n_waiters;
    struct sim_snap snap;
    struct sim_grant *grant;
    size_t n_grants;
    size_t room;
    uint64_t max_token;
    bool persisted;
    bool foreign;
};

struct sim_check {
    struct sim_world *w;
    struct sim_lock_state lock[SIM_LOCKS_MAX];
    struct pawli_list handles;
    struct fr_out frame[FRAMES_MAX]; /* old requests, for replay */
    uint64_t n_frames;
    bool keeps_frames;
    bool replaying;
    bool by_operator;
    uint64_t n_scripts;
    struct sim_tomb tomb[DONE_MAX];
    size_t n_tombs;
    bool tombs_void; /* what they were kept in may be gone */
};

/* The newest with @token and @owner (NULL: any). A store that lost its data while its clock was
 * behind may give a token twice. */
struct sim_grant *sim_grant_find(struct sim_lock_state *lock, uint64_t token, const char *owner);
/* The one that a handle holds by: a server that lost its data and its time may give one owner the
 * same token twice. */
struct sim_grant *sim_grant_of(struct sim_lock_state *lock, uint64_t token, const char *owner,
                               const char *id);
/* It may end early from now on. */
void sim_grant_void(struct sim_world *w, const struct sim_lock_state *lock,
                    struct sim_grant *grant);
/* ---- check_queue.c ---- */
void sim_queue_init(struct sim_lock_state *lock);
/* Before a command. */
void sim_queue_before(void *arg, const struct fr_bytes *argv, size_t argc);
/* @id was granted by it. */
void sim_queue_granted(struct sim_check *check, const struct sim_lock_state *lock, const char *id,
                       bool barging);

/* After a command: compare the store with what it was. */
void sim_watch(void *arg, const struct fr_bytes *argv, size_t argc);

#endif
