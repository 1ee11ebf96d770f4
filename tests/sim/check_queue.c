/* First come, first served (I9): before each command the queue is read, and whoever is granted by
 * it must not have overtaken a waiter that lives. */
#include "check_store.h"

#include <stdlib.h>
#include <string.h>

#include "core/key.h"

#define HEARD_MS 1500 /* an inbox that was silent for longer may be passed over */
#define HEARD_BASE 1e15

void sim_queue_init(struct sim_lock_state *lock)
{
    char detail[256];
    struct pawli_key *key;

    if (pawli_key_new(NULL, lock->key.data, lock->key.len, detail, sizeof detail, &key) < 0)
        abort();
    lock->queue.data = (char *)key->queue;
    lock->queue.len = key->queue_len;
    lock->queue = fr_copy(&lock->queue);
    pawli_key_unref(key);
}

static bool is_heard(const struct fr_entry *queue, const struct fr_bytes *inbox, int64_t now_ms)
{
    for (size_t i = 0; i < queue->n; i++) {
        const struct fr_bytes *member = &queue->scored[i].member;

        if (member->len == inbox->len + 1 && member->data[0] == 'i' &&
            memcmp(member->data + 1, inbox->data, inbox->len) == 0)
            return (double)now_ms - (queue->scored[i].score - HEARD_BASE) <= HEARD_MS;
    }
    return false;
}

static bool is_subscribed(const struct fr_server *server, const struct fr_bytes *inbox)
{
    for (const struct fr_conn *conn = server->conns; conn != NULL; conn = conn->next)
        for (size_t i = 0; i < conn->n_channels; i++)
            if (fr_same(&conn->channel[i], inbox))
                return true;
    return false;
}

/* "w<id>\n<inbox>\n<lease>\n<span>\n<deadline us>\n..." */
static void read_waiter(const struct fr_server *server, const struct fr_entry *queue,
                        const struct fr_scored *scored, struct sim_waiter *ret)
{
    const char *line = scored->member.data + 34;
    struct fr_bytes inbox = { (char *)line, strcspn(line, "\n") };
    int64_t deadline_us;

    memcpy(ret->id, scored->member.data + 1, 32);
    ret->id[32] = '\0';
    ret->ticket = scored->score;
    for (int i = 0; i < 3; i++) {
        const char *end = strchr(line, '\n');

        line = end == NULL ? line + strlen(line) : end + 1;
    }
    deadline_us = strtoll(line, NULL, 10);
    ret->lives = (deadline_us == 0 || deadline_us >= server->db.now_us) &&
                 is_heard(queue, &inbox, fr_now_ms(&server->db)) && is_subscribed(server, &inbox);
}

void sim_queue_before(void *arg, const struct fr_bytes *argv, size_t argc)
{
    struct sim_check *check = arg;
    const struct fr_server *server = &check->w->server;

    (void)argv;
    (void)argc;
    for (int k = 0; k < check->w->plan.n_locks; k++) {
        struct sim_lock_state *lock = &check->lock[k];
        const struct fr_entry *queue = fr_peek(&server->db, &lock->queue);

        lock->n_waiters = 0;
        for (size_t i = 0; queue != NULL && queue->type == FR_ZSET && i < queue->n; i++)
            if (queue->scored[i].member.len > 40 && queue->scored[i].member.data[0] == 'w' &&
                lock->n_waiters < WAITERS_MAX)
                read_waiter(server, queue, &queue->scored[i], &lock->waiter[lock->n_waiters++]);
    }
}

void sim_queue_granted(struct sim_check *check, const struct sim_lock_state *lock, const char *id,
                       bool barging)
{
    double ticket = HEARD_BASE;

    /* A hand-over that the server refuses to write leaves the lock to whoever comes. */
    if (barging || check->w->server.db.oom || check->w->server.db.misconf)
        return;
    for (int i = 0; i < lock->n_waiters; i++)
        if (strcmp(lock->waiter[i].id, id) == 0)
            ticket = lock->waiter[i].ticket;
    for (int i = 0; i < lock->n_waiters; i++)
        if (lock->waiter[i].lives && lock->waiter[i].ticket < ticket)
            sim_fail(check->w, "I9: ticket %.0f was overtaken by %.0f", lock->waiter[i].ticket,
                     ticket == HEARD_BASE ? 0 : ticket);
    if (lock->n_waiters > 0)
        check->w->n_handovers++;
}
