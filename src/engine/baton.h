/* Who runs a client's loop: its engine thread, or a caller that stands in while that one rests.
 *
 * Waking a sleeping thread is the dearest part of a short call. So a synchronous call that finds
 * the loop at rest takes the baton, sends, sleeps on the socket and reads by itself; the engine
 * thread takes over when the caller leaves something undone. A thread that runs an event loop of
 * its own stands in likewise, a moment at each dispatch: it sleeps on the same sockets through the
 * client's descriptor.
 * After such calls the engine thread rests on a condition variable instead of the loop, so that
 * the next caller can take the baton. It wakes for timers, and when no caller came for
 * PAWLI_REST_NS it goes back to the loop, to hear what the sockets say. */
#ifndef PAWLI_ENGINE_BATON_H
#define PAWLI_ENGINE_BATON_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"

#define PAWLI_REST_NS INT64_C(50000000)

enum pawli_baton_holder { PAWLI_BATON_FREE, PAWLI_BATON_ENGINE, PAWLI_BATON_CALLER };

struct pawli_baton {
    struct pawli_loop *loop;
    /* Nothing is under way that needs the loop but timers. Asked by the holder. */
    bool (*at_rest)(void *arg);
    void *arg;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t free; /* the baton became free, or the engine has work */
    enum pawli_baton_holder holder;
    bool resting;        /* the engine thread sleeps until wakes_ns, the baton is free to take */
    int64_t wakes_ns;
    int64_t stood_in_ns; /* when a caller last ran the loop, or wished to */
    int64_t driven_ns;   /* when a dispatch last did */
    unsigned n_sleepers; /* callers that wait for somebody else to run the loop */
    bool stop;
    bool running;
    int cancel_before;   /* of the holding caller: pthread_setcancelstate() */
};

int pawli_baton_init(struct pawli_baton *b, struct pawli_loop *loop, bool (*at_rest)(void *arg),
                     void *arg);
/* Start the engine thread. 0 or PAWL_ESYSTEM. */
int pawli_baton_start(struct pawli_baton *b);
/* End it, and wait for it and for a caller that stands in: then this thread may run the loop. */
void pawli_baton_stop(struct pawli_baton *b);
void pawli_baton_done(struct pawli_baton *b);

/* Wake the engine thread if nobody runs the loop: after work was posted. From any thread. */
void pawli_baton_poke(struct pawli_baton *b);

/* Take the baton for a synchronous call: true, and the caller runs the loop until it leaves; false:
 * somebody else runs it, so post and wait. In between the thread cannot be canceled: it would take
 * the baton with it. */
bool pawli_baton_take(struct pawli_baton *b);
/* The same for a dispatch, whose thread will look at the sockets again. */
bool pawli_baton_take_driven(struct pawli_baton *b);
/* A caller that could not take it goes to sleep until its answer, and wakes. */
void pawli_baton_sleeper(struct pawli_baton *b, bool asleep);
/* The client closes: who stands in must leave, answered or not. */
bool pawli_baton_stopping(struct pawli_baton *b);
void pawli_baton_leave(struct pawli_baton *b);

#endif
