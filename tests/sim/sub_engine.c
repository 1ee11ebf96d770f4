/* Stands in for the parts of the engine that need threads or the system: the baton, the callback
 * thread, random bits, and who this process is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/baton.h"
#include "engine/notify.h"
#include "engine/who.h"
#include "sim.h"
#include "sub.h"
#include "util/random.h"

/* ---- the baton: the world runs the loop, or the caller of a close does ---- */

int pawli_baton_init(struct pawli_baton *b, struct pawli_loop *loop, bool (*at_rest)(void *arg),
                     void *arg)
{
    memset(b, 0, sizeof *b);
    b->loop = loop;
    b->at_rest = at_rest;
    b->arg = arg;
    return 0;
}

int pawli_baton_start(struct pawli_baton *b)
{
    b->running = true;
    sim->current->running = true;
    sim_loop_wake(sim->current, sim->now_ns);
    return 0;
}

void pawli_baton_stop(struct pawli_baton *b)
{
    b->running = false;
    if (sim->current != NULL)
        sim->current->running = false;
}

void pawli_baton_done(struct pawli_baton *b)
{
    (void)b;
}

void pawli_baton_poke(struct pawli_baton *b)
{
    (void)b;
}

bool pawli_baton_take(struct pawli_baton *b)
{
    (void)b;
    return true;
}

/* A dispatch may find the loop at rest or not. */
bool pawli_baton_take_driven(struct pawli_baton *b)
{
    struct sim_client *client = sim->current;

    return b->running && client != NULL && sim_chance(&client->rng, 500000);
}

void pawli_baton_sleeper(struct pawli_baton *b, bool asleep)
{
    (void)b;
    (void)asleep;
}

void pawli_baton_leave(struct pawli_baton *b)
{
    (void)b;
}

bool pawli_baton_stopping(struct pawli_baton *b)
{
    (void)b;
    return false;
}

/* ---- the callback thread ---- */

int pawli_notifier_init(struct pawli_notifier *n, pawl_log_cb log, void *log_arg, int log_level)
{
    memset(n, 0, sizeof *n);
    pawli_list_init(&n->notes);
    pawli_list_init(&n->lines);
    n->log = log;
    n->log_arg = log_arg;
    n->log_level = log_level;
    return 0;
}

int pawli_notifier_start(struct pawli_notifier *n)
{
    n->running = true;
    return 0;
}

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

void sim_notifier_run(struct pawli_notifier *n)
{
    while (!pawli_list_empty(&n->notes)) {
        struct pawli_note *note = PAWLI_CONTAINER(n->notes.next, struct pawli_note, link);
        enum pawl_event event;
        int result;

        if (next_event(note, &event, &result))
            note->cb(note->arg, note->lock, event, result);
        else
            pawli_list_remove(&note->link);
    }
}

void pawli_notifier_stop(struct pawli_notifier *n)
{
    sim_notifier_run(n);
    n->stop = true;
}

void pawli_notifier_done(struct pawli_notifier *n)
{
    (void)n;
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
    if (note->cb == NULL || n->stop)
        return;
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
    if (sim->current != NULL)
        sim_client_app_soon(sim->current, 50 * SIM_US);
}

void pawli_note_withdraw(struct pawli_notifier *n, struct pawli_note *note)
{
    (void)n;
    pawli_list_remove(&note->link);
    note->cb = NULL;
}

bool pawli_logs(const struct pawli_notifier *n, enum pawl_log_level level)
{
    (void)n;
    (void)level;
    return false;
}

void pawli_log(struct pawli_notifier *n, enum pawl_log_level level, const char *format, ...)
{
    (void)n;
    (void)level;
    (void)format;
}

/* ---- random bits ---- */

int pawli_random_bytes(void *ret_bytes, size_t len)
{
    unsigned char *bytes = ret_bytes;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)sim_u64(&sim->id_rng);
    return 0;
}

int pawli_random_id(char ret_id[PAWLI_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (int half = 0; half < 2; half++) {
        uint64_t bits = sim_u64(&sim->id_rng);

        for (int i = 0; i < PAWLI_ID_LEN / 2; i++)
            ret_id[half * PAWLI_ID_LEN / 2 + i] = digits[bits >> (4 * i) & 15];
    }
    ret_id[PAWLI_ID_LEN] = '\0';
    return 0;
}

uint64_t pawli_jitter(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % bound;
}

void pawli_who(char *ret_text, size_t len)
{
    (void)snprintf(ret_text, len, "machine%d %u 1 sim", sim->current->number,
                   1000 + sim->current->life);
}
