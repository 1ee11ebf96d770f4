/* The callback thread of a client: runs the user's event and log callbacks, so that they can
 * neither delay a renewal nor be delayed by one. Started at the first callback that is set. */
#ifndef PAWLI_ENGINE_NOTIFY_H
#define PAWLI_ENGINE_NOTIFY_H

#include <pthread.h>
#include <stdbool.h>

#include <pawl.h>

#include "util/list.h"

/* What is to be told to one handle; embedded in it, so that telling needs no memory. */
struct pawli_note {
    struct pawli_list link;
    struct pawl_lock *lock;
    pawl_event_cb cb;
    void *arg;
    bool at_risk;
    bool recovered;
    bool expiring;
    bool lost;
    int at_risk_result;
    int lost_result;
};

struct pawli_notifier {
    pthread_mutex_t mu;
    pthread_cond_t todo;   /* something to tell, or stop */
    pthread_cond_t idle;   /* a callback has returned */
    struct pawli_list notes;
    struct pawli_list lines;
    size_t n_lines;
    size_t n_dropped;
    pthread_t thread;
    bool running;
    bool stop;
    struct pawli_note *current;
    pawl_log_cb log;
    void *log_arg;
    int log_level;
};

int pawli_notifier_init(struct pawli_notifier *n, pawl_log_cb log, void *log_arg, int log_level);
/* Start the thread if it does not run yet. 0 or PAWL_ESYSTEM. */
int pawli_notifier_start(struct pawli_notifier *n);
/* Tell what is left and end the thread. What comes later is dropped. */
void pawli_notifier_stop(struct pawli_notifier *n);
void pawli_notifier_done(struct pawli_notifier *n);

void pawli_note_init(struct pawli_note *note, struct pawl_lock *lock, pawl_event_cb cb, void *arg);
/* Tell @event; AT_RISK and RECOVERED that meet before they were told cancel out. */
void pawli_notify(struct pawli_notifier *n, struct pawli_note *note, enum pawl_event event,
                  int result);
/* Nothing is told to @note any more when this has returned; waits for a callback that runs, unless
 * this is called from inside it. */
void pawli_note_withdraw(struct pawli_notifier *n, struct pawli_note *note);

/* A log line; formatted only if somebody listens at that level. Never blocks: when the callback
 * is slow, lines are dropped and counted. */
void pawli_log(struct pawli_notifier *n, enum pawl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool pawli_logs(const struct pawli_notifier *n, enum pawl_log_level level);

#endif
