/* submit.h: one submission, as its three files see it: submit.c takes the lock, submit_section.c
 * does what it protects, submit_end.c answers, releases and hears of losses. */
#ifndef ORDERS_SUBMIT_H
#define ORDERS_SUBMIT_H

#include "app.h"

#include <stdatomic.h>

enum submit_state { LOCKING, ENTERING, READING, WORKING, STORING, LEAVING, N_STATES };

struct submit {
    struct app *app;
    struct submit *next, *prev;
    struct web *web; /* NULL once answered */
    enum submit_state state;
    struct order order;
    int64_t believed_stock; /* unsafe only */
    char key[ORDER_ID_MAX + 16];
    struct pawl_owner *owner;
    struct pawl_lock *outer, *inner;
    uint64_t acquire_id;
    int is_held;
    int client_gone;
    int64_t asked_us, granted_us;
    struct event *timer;
    struct store_job job;
    /* Written by pawl's callback thread: */
    atomic_int loss;
    struct mail loss_mail;
    int n_releases;
};

/* submit_section.c: what the lock protects. */
void submit_work(struct submit *s);
void submit_read_unsafe(struct submit *s);
void submit_on_timer(evutil_socket_t fd, short what, void *arg);

/* submit_end.c. Answering ends the submission: @s is not to be used afterwards. */
void submit_move(struct submit *s, enum submit_state next);
const char *submit_owner(const struct submit *s);
const char *submit_state_name(const struct submit *s);
void submit_succeed(struct submit *s, int duplicate);
void submit_refuse(struct submit *s, enum problem problem, const char *detail);
/* Has the lock been lost, as far as this side can know? Any thread. */
int submit_is_lost(struct submit *s);
void submit_refuse_lost(struct submit *s);
/* Runs on pawl's callback thread; the mail it sends, on the loop. */
void submit_on_event(void *arg, struct pawl_lock *lock, enum pawl_event event, int result);
void submit_on_loss(struct mail *mail);

#endif
