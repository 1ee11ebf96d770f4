/* A call of the user on its way through the engine: handed in, answered exactly once, by a
 * completion or to a thread that waits. Every asynchronous and synchronous call is one. */
#ifndef PAWLI_ENGINE_CALL_H
#define PAWLI_ENGINE_CALL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>

#include <pawl.h>

#include "engine/detail.h"
#include "net/loop.h"
#include "util/list.h"
#include "util/map.h"

enum pawli_call_state {
    PAWLI_CALL_PENDING,
    PAWLI_CALL_ANSWERING, /* the engine is writing the answer */
    PAWLI_CALL_DONE,      /* the engine answered */
    PAWLI_CALL_ABANDONED  /* the caller was answered without the engine: canceled, or it is late */
};

enum pawli_call_kind {
    PAWLI_CALL_SYNC,
    PAWLI_CALL_ACQUIRE, /* completion pawl_acquire_cb */
    PAWLI_CALL_DONE_CB, /* completion pawl_done_cb; may be NULL */
    PAWLI_CALL_INSPECT  /* completion pawl_inspect_cb */
};

/* First member of every operation. */
struct pawli_call {
    struct pawli_task start;  /* runs the operation on the loop */
    struct pawli_task cancel; /* tells the operation that its caller is gone */
    struct pawl_client *client;
    enum pawli_call_kind kind;
    union {
        pawl_acquire_cb acquire;
        pawl_done_cb done;
        pawl_inspect_cb inspect;
    } cb;
    void *arg;
    _Atomic int state;
    atomic_uint refs;
    sem_t answered;            /* SYNC */
    struct pawli_list link;    /* in the completion queue */
    uint64_t id;               /* for pawl_cancel(); 0: none */
    struct pawli_map_node by_id;
    int result;
    struct pawl_lock *lock;
    struct pawl_lock_info *info;
    char detail[PAWLI_DETAIL_LEN];
    void (*free)(struct pawli_call *call);
};

/* Answers on their way to pawl_client_dispatch(), and calls that can be canceled by number. */
struct pawli_calls {
    pthread_mutex_t mu;
    struct pawli_list answered;
    int fd; /* eventfd: readable while answered is not empty */
    struct pawli_map by_id;
    uint64_t last_id;
};

int pawli_calls_init(struct pawli_calls *calls);
void pawli_calls_done(struct pawli_calls *calls);
/* Make @epoll_fd readable while answers wait. 0 or PAWL_ESYSTEM. */
int pawli_calls_show(struct pawli_calls *calls, int epoll_fd);

/* One reference, the engine's. @client gets one that lasts as long as the call. */
int pawli_call_init(struct pawli_call *call, struct pawl_client *client, enum pawli_call_kind kind,
                    void (*start)(struct pawli_task *task), void (*free_fn)(struct pawli_call *));
struct pawli_call *pawli_call_ref(struct pawli_call *call);
void pawli_call_unref(struct pawli_call *call);

/* Give @call a number by which it can be canceled until it is answered. 0 or PAWL_ENOMEM. */
int pawli_call_number(struct pawli_call *call, uint64_t *ret_id);

/* Answer with @result, and @lock or @info (given). Later calls do nothing but free what they are
 * given. @detail may be NULL. On the loop. */
void pawli_call_finish(struct pawli_call *call, int result, struct pawl_lock *lock,
                       struct pawl_lock_info *info, const char *detail);

/* Answer in the engine's stead: true if the call was still pending. */
bool pawli_call_abandon(struct pawli_call *call, int result);

/* Run one completion; false if none waits. */
bool pawli_calls_dispatch_one(struct pawli_calls *calls);
/* Is this thread inside pawl_client_dispatch() of that client? */
bool pawli_calls_dispatching(const struct pawli_calls *calls);

/* Drop the client's reference that an ended call holds; calls a user's lock free for a grant that
 * nobody took. Implemented beside the lock: */
void pawli_lock_discard(struct pawl_lock *lock);

#endif
