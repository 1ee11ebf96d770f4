/* Calls, their answers and their completions; see call.h. Touches no engine state. */
#include "engine/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/client.h"

/* A dispatch on its way on this thread; a completion may dispatch another client. */
struct dispatching {
    const struct pawli_calls *calls;
    const struct dispatching *outer;
};

static _Thread_local const struct dispatching *dispatching_here;

int pawli_calls_init(struct pawli_calls *calls)
{
    memset(calls, 0, sizeof *calls);
    pawli_list_init(&calls->answered);
    pawli_map_init(&calls->by_id);
    calls->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (calls->fd < 0)
        return PAWL_ESYSTEM;
    if (pthread_mutex_init(&calls->mu, NULL) != 0) {
        close(calls->fd);
        return PAWL_ESYSTEM;
    }
    return 0;
}

int pawli_calls_show(struct pawli_calls *calls, int epoll_fd)
{
    struct epoll_event ev = { .events = EPOLLIN };

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, calls->fd, &ev) == 0 ? 0 : PAWL_ESYSTEM;
}

void pawli_calls_done(struct pawli_calls *calls)
{
    close(calls->fd);
    pawli_map_done(&calls->by_id);
    pthread_mutex_destroy(&calls->mu);
}

int pawli_call_init(struct pawli_call *call, struct pawl_client *client, enum pawli_call_kind kind,
                    void (*start)(struct pawli_task *task), void (*free_fn)(struct pawli_call *))
{
    if (kind == PAWLI_CALL_SYNC && sem_init(&call->answered, 0, 0) != 0)
        return PAWL_ESYSTEM;
    call->kind = kind;
    call->start.run = start;
    call->free = free_fn;
    call->client = pawli_client_ref(client);
    pawli_list_init(&call->link);
    atomic_init(&call->state, PAWLI_CALL_PENDING);
    atomic_init(&call->refs, 1);
    return 0;
}

struct pawli_call *pawli_call_ref(struct pawli_call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    return call;
}

void pawli_call_unref(struct pawli_call *call)
{
    struct pawl_client *client = call->client;

    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (call->kind == PAWLI_CALL_SYNC)
        sem_destroy(&call->answered);
    call->free(call);
    pawli_client_unref(client);
}

int pawli_call_number(struct pawli_call *call, uint64_t *ret_id)
{
    struct pawli_calls *calls = &call->client->calls;
    int rc;

    pthread_mutex_lock(&calls->mu);
    call->id = ++calls->last_id;
    rc = pawli_map_add(&calls->by_id, &call->by_id, call->id);
    if (rc < 0)
        call->id = 0;
    else
        *ret_id = call->id;
    pthread_mutex_unlock(&calls->mu);
    return rc;
}

/* Queue the completion, and let the number go. The queue holds a reference. */
static void answer(struct pawli_call *call)
{
    struct pawli_calls *calls = &call->client->calls;
    const uint64_t one = 1;
    bool was_empty;

    pthread_mutex_lock(&calls->mu);
    if (call->id != 0)
        pawli_map_remove(&calls->by_id, &call->by_id);
    call->id = 0;
    was_empty = pawli_list_empty(&calls->answered);
    pawli_list_append(&calls->answered, &pawli_call_ref(call)->link);
    if (was_empty)
        while (write(calls->fd, &one, sizeof one) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&calls->mu);
}

static void set_answer(struct pawli_call *call, int result, const char *detail)
{
    call->result = result;
    (void)snprintf(call->detail, sizeof call->detail, "%s", detail == NULL ? "" : detail);
}

static bool wants_completion(const struct pawli_call *call)
{
    return call->kind != PAWLI_CALL_SYNC &&
           !(call->kind == PAWLI_CALL_DONE_CB && call->cb.done == NULL);
}

void pawli_call_finish(struct pawli_call *call, int result, struct pawl_lock *lock,
                       struct pawl_lock_info *info, const char *detail)
{
    int pending = PAWLI_CALL_PENDING;

    if (!atomic_compare_exchange_strong(&call->state, &pending, PAWLI_CALL_ANSWERING)) {
        pawli_lock_discard(lock);
        pawl_lock_info_free(info);
        return;
    }
    call->lock = lock;
    call->info = info;
    set_answer(call, result, detail);
    atomic_store_explicit(&call->state, PAWLI_CALL_DONE, memory_order_release);
    if (call->kind == PAWLI_CALL_SYNC)
        sem_post(&call->answered);
    else if (wants_completion(call))
        answer(call);
}

bool pawli_call_abandon(struct pawli_call *call, int result)
{
    int pending = PAWLI_CALL_PENDING;

    if (!atomic_compare_exchange_strong(&call->state, &pending, PAWLI_CALL_ABANDONED))
        return false;
    if (wants_completion(call)) {
        set_answer(call, result, NULL);
        answer(call);
    }
    return true;
}

static void complete(struct pawli_call *call)
{
    bool abandoned = atomic_load(&call->state) == PAWLI_CALL_ABANDONED;

    if (call->result < 0)
        (void)pawli_fail_text(call->result, call->detail);
    switch (call->kind) {
    case PAWLI_CALL_ACQUIRE:
        call->cb.acquire(call->arg, call->result, abandoned ? NULL : call->lock);
        break;
    case PAWLI_CALL_INSPECT:
        call->cb.inspect(call->arg, call->result, abandoned ? NULL : call->info);
        break;
    case PAWLI_CALL_DONE_CB:
        call->cb.done(call->arg, call->result);
        break;
    case PAWLI_CALL_SYNC:
        break;
    }
}

bool pawli_calls_dispatch_one(struct pawli_calls *calls)
{
    struct pawli_list *node;
    struct pawli_call *call;
    uint64_t n;

    pthread_mutex_lock(&calls->mu);
    node = pawli_list_pop(&calls->answered);
    if (node != NULL && pawli_list_empty(&calls->answered))
        while (read(calls->fd, &n, sizeof n) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&calls->mu);
    if (node == NULL)
        return false;
    call = PAWLI_CONTAINER(node, struct pawli_call, link);
    complete(call);
    pawli_call_unref(call);
    return true;
}

/* Run the loop for a moment if nobody else does: reads what has come, sends what was asked. */
static void stand_in(struct pawl_client *client)
{
    if (!pawli_baton_take_driven(&client->baton))
        return;
    pawli_loop_run(client->loop, 0);
    pawli_baton_leave(&client->baton);
}

bool pawli_calls_dispatching(const struct pawli_calls *calls)
{
    const struct dispatching *d = dispatching_here;

    while (d != NULL && d->calls != calls)
        d = d->outer;
    return d != NULL;
}

int pawl_client_dispatch(struct pawl_client *client)
{
    struct dispatching here = { .outer = dispatching_here };
    int n = 0;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    if (pawli_calls_dispatching(&client->calls))
        return 0;
    stand_in(client);
    here.calls = &client->calls;
    dispatching_here = &here;
    /* Completions may ask for more; stop after a bound so that the caller's loop gets its turn. */
    while (n < 10000 && pawli_calls_dispatch_one(&client->calls))
        n++;
    dispatching_here = here.outer;
    /* What completions asked for goes out now, in one write. */
    if (pawli_loop_has_tasks(client->loop)) {
        stand_in(client);
        pawli_baton_poke(&client->baton);
    }
    return n;
}

int pawl_client_fd(const struct pawl_client *client)
{
    int rc = pawli_client_check(client);

    return rc < 0 ? rc : pawli_loop_fd(client->loop);
}

int pawl_cancel(struct pawl_client *client, uint64_t id)
{
    struct pawli_map_node *node;
    struct pawli_call *call = NULL;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&client->calls.mu);
    node = pawli_map_first(&client->calls.by_id, id);
    if (node != NULL)
        call = pawli_call_ref(PAWLI_CONTAINER(node, struct pawli_call, by_id));
    pthread_mutex_unlock(&client->calls.mu);
    if (call == NULL)
        return PAWL_NOT_OWNER;
    rc = PAWL_NOT_OWNER;
    if (pawli_call_abandon(call, PAWL_CANCELED)) {
        rc = 0;
        pawli_call_ref(call); /* for the task */
        pawli_client_post(client, &call->cancel);
    }
    pawli_call_unref(call);
    return rc;
}
