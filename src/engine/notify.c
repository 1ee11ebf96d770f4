/* The callback thread; see notify.h. Touches no engine state: only notes and log lines. */
#include "engine/notify.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/thread.h"

#define LINES_MAX 1000 /* log lines kept for a slow callback */

struct line {
    struct pawli_list link;
    enum pawl_log_level level;
    char text[];
};

int pawli_notifier_init(struct pawli_notifier *n, pawl_log_cb log, void *log_arg, int log_level)
{
    memset(n, 0, sizeof *n);
    pawli_list_init(&n->notes);
    pawli_list_init(&n->lines);
    n->log = log;
    n->log_arg = log_arg;
    n->log_level = log_level;
    if (pthread_mutex_init(&n->mu, NULL) != 0)
        return PAWL_ESYSTEM;
    if (pthread_cond_init(&n->todo, NULL) != 0)
        goto fail_mutex;
    if (pthread_cond_init(&n->idle, NULL) != 0)
        goto fail_todo;
    return 0;

fail_todo:
    pthread_cond_destroy(&n->todo);
fail_mutex:
    pthread_mutex_destroy(&n->mu);
    return PAWL_ESYSTEM;
}

/* Take the next event off @note, in the order in which they happen to a hold. */
static bool next_event(struct pawli_note *note, enum pawl_event *ret_event, int *ret_result)
{
    *ret_result = 0;
    if (note->at_risk) {
        note->at_risk = false;
        *ret_event = PAWL_EVENT_AT_RISK;
        *ret_result = note->at_risk_result;
    } else if (note->recovered) {
        note->recovered = false;
        *ret_event = PAWL_EVENT_RECOVERED;
    } else if (note->expiring) {
        note->expiring = false;
        *ret_event = PAWL_EVENT_EXPIRING;
        *ret_result = PAWL_EXPIRING;
    } else if (note->lost) {
        note->lost = false;
        *ret_event = PAWL_EVENT_LOST;
        *ret_result = note->lost_result;
    } else {
        return false;
    }
    return true;
}

/* With the mutex held; it is given up while the callback runs. */
static void tell_one(struct pawli_notifier *n)
{
    struct pawli_note *note = PAWLI_CONTAINER(n->notes.next, struct pawli_note, link);
    enum pawl_event event;
    int result;

    if (!next_event(note, &event, &result)) {
        pawli_list_remove(&note->link);
        return;
    }
    n->current = note;
    pthread_mutex_unlock(&n->mu);
    note->cb(note->arg, note->lock, event, result);
    pthread_mutex_lock(&n->mu);
    n->current = NULL;
    pthread_cond_broadcast(&n->idle);
}

static void log_one(struct pawli_notifier *n)
{
    struct line *line = PAWLI_CONTAINER(pawli_list_pop(&n->lines), struct line, link);
    size_t n_dropped = n->n_dropped;
    char text[64];

    n->n_lines--;
    n->n_dropped = 0;
    pthread_mutex_unlock(&n->mu);
    if (n_dropped > 0) {
        (void)snprintf(text, sizeof text, "%zu log lines were dropped", n_dropped);
        n->log(n->log_arg, PAWL_LOG_WARN, text);
    }
    n->log(n->log_arg, line->level, line->text);
    free(line);
    pthread_mutex_lock(&n->mu);
}

static void *notifier_main(void *arg)
{
    struct pawli_notifier *n = arg;

    pthread_mutex_lock(&n->mu);
    for (;;) {
        if (!pawli_list_empty(&n->notes))
            tell_one(n);
        else if (!pawli_list_empty(&n->lines))
            log_one(n);
        else if (n->stop)
            break;
        else
            pthread_cond_wait(&n->todo, &n->mu);
    }
    pthread_mutex_unlock(&n->mu);
    return NULL;
}

int pawli_notifier_start(struct pawli_notifier *n)
{
    int rc = 0;

    pthread_mutex_lock(&n->mu);
    if (!n->running && !n->stop) {
        rc = pawli_thread_start(notifier_main, n, "pawl-callbacks", &n->thread);
        n->running = rc == 0;
    }
    pthread_mutex_unlock(&n->mu);
    return rc;
}

void pawli_notifier_stop(struct pawli_notifier *n)
{
    bool running;

    pthread_mutex_lock(&n->mu);
    n->stop = true;
    running = n->running;
    n->running = false;
    pthread_cond_signal(&n->todo);
    pthread_mutex_unlock(&n->mu);
    if (running)
        pthread_join(n->thread, NULL);
}

void pawli_notifier_done(struct pawli_notifier *n)
{
    struct pawli_list *node;

    while ((node = pawli_list_pop(&n->lines)) != NULL)
        free(PAWLI_CONTAINER(node, struct line, link));
    pthread_cond_destroy(&n->idle);
    pthread_cond_destroy(&n->todo);
    pthread_mutex_destroy(&n->mu);
}

void pawli_note_init(struct pawli_note *note, struct pawl_lock *lock, pawl_event_cb cb, void *arg)
{
    memset(note, 0, sizeof *note);
    pawli_list_init(&note->link);
    note->lock = lock;
    note->cb = cb;
    note->arg = arg;
}

void pawli_notify(struct pawli_notifier *n, struct pawli_note *note, enum pawl_event event,
                  int result)
{
    pthread_mutex_lock(&n->mu);
    if (note->cb == NULL || n->stop) {
        pthread_mutex_unlock(&n->mu);
        return;
    }
    switch (event) {
    case PAWL_EVENT_AT_RISK:
        note->at_risk = !note->recovered;
        note->recovered = false;
        note->at_risk_result = result;
        break;
    case PAWL_EVENT_RECOVERED:
        note->recovered = !note->at_risk;
        note->at_risk = false;
        break;
    case PAWL_EVENT_EXPIRING:
        note->expiring = true;
        break;
    case PAWL_EVENT_LOST:
        note->lost = true;
        note->lost_result = result;
        break;
    }
    if (pawli_list_empty(&note->link))
        pawli_list_append(&n->notes, &note->link);
    pthread_cond_signal(&n->todo);
    pthread_mutex_unlock(&n->mu);
}

void pawli_note_withdraw(struct pawli_notifier *n, struct pawli_note *note)
{
    if (note->cb == NULL)
        return;
    pthread_mutex_lock(&n->mu);
    pawli_list_remove(&note->link);
    while (n->current == note && !pthread_equal(pthread_self(), n->thread))
        pthread_cond_wait(&n->idle, &n->mu);
    note->cb = NULL;
    pthread_mutex_unlock(&n->mu);
}

bool pawli_logs(const struct pawli_notifier *n, enum pawl_log_level level)
{
    return n->log != NULL && (int)level <= n->log_level;
}

void pawli_log(struct pawli_notifier *n, enum pawl_log_level level, const char *format, ...)
{
    char text[512];
    struct line *line;
    size_t len;
    va_list args;

    if (!pawli_logs(n, level))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    len = strlen(text) + 1;
    line = malloc(sizeof *line + len);
    if (line != NULL) {
        line->level = level;
        memcpy(line->text, text, len);
    }
    pthread_mutex_lock(&n->mu);
    if (line == NULL || n->n_lines >= LINES_MAX) {
        n->n_dropped++;
        free(line);
    } else {
        pawli_list_append(&n->lines, &line->link);
        n->n_lines++;
        pthread_cond_signal(&n->todo);
    }
    pthread_mutex_unlock(&n->mu);
}
