/* Handing calls to the engine and waiting for their answers; see client.h. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "engine/client.h"

#define SLACK_NS (20 * PAWLI_NS_PER_MS) /* for an engine that is woken late */

void pawli_client_post(struct pawl_client *client, struct pawli_task *task)
{
    pawli_loop_post(client->loop, task);
    /* After the end of the engine nobody else runs the loop: a task that came too late for the
     * last run by pawl_client_close() is run here, and answers ECLOSED. */
    if (atomic_load(&client->ended)) {
        pthread_mutex_lock(&client->end_mu);
        pawli_loop_run(client->loop, 0);
        pthread_mutex_unlock(&client->end_mu);
    }
}

/* Wait for the answer until @limit_ns on BOOTTIME. */
static bool wait_answer(struct pawli_call *call, int64_t limit_ns)
{
    const struct pawli_clock *clock = pawli_loop_clock(call->client->loop);

    for (;;) {
        struct timespec when;
        int64_t left_ns = limit_ns - clock->boot_ns(clock);
        int rc;

        if (limit_ns == PAWLI_NEVER) {
            rc = sem_wait(&call->answered);
        } else {
            if (left_ns < 0)
                left_ns = 0;
            clock_gettime(CLOCK_MONOTONIC, &when);
            when.tv_nsec += (long)(left_ns % 1000000000);
            when.tv_sec += left_ns / 1000000000 + when.tv_nsec / 1000000000;
            when.tv_nsec %= 1000000000;
            rc = sem_clockwait(&call->answered, CLOCK_MONOTONIC, &when);
        }
        if (rc == 0)
            return atomic_load_explicit(&call->state, memory_order_acquire) == PAWLI_CALL_DONE;
        if (errno == ETIMEDOUT && clock->boot_ns(clock) >= limit_ns)
            return false;
    }
}

/* Run the loop on this thread until the call is answered, or the client closes: then who closes it
 * answers. */
static bool stand_in(struct pawli_call *call, int64_t limit_ns)
{
    struct pawli_loop *loop = call->client->loop;
    struct pawli_baton *baton = &call->client->baton;
    bool stopping = false;

    call->start.run(&call->start);
    while (atomic_load(&call->state) == PAWLI_CALL_PENDING && !stopping &&
           pawli_loop_now_ns(loop) < limit_ns) {
        pawli_loop_run(loop, limit_ns);
        stopping = pawli_baton_stopping(baton);
    }
    pawli_baton_leave(baton);
    return atomic_load(&call->state) == PAWLI_CALL_DONE ||
           (stopping && wait_answer(call, limit_ns));
}

static int take_answer(struct pawli_call *call, struct pawl_lock **ret_lock,
                       struct pawl_lock_info **ret_info)
{
    int result = call->result;

    if (result < 0)
        (void)pawli_fail_text(result, call->detail);
    if (result == 0 && ret_lock != NULL)
        *ret_lock = call->lock;
    if (result == 0 && ret_info != NULL)
        *ret_info = call->info;
    return result;
}

int pawli_client_run(struct pawli_call *call, int64_t limit_ns, int late,
                     struct pawl_lock **ret_lock, struct pawl_lock_info **ret_info)
{
    struct pawl_client *client = call->client;
    int64_t until_ns = pawli_after(limit_ns, SLACK_NS);
    bool answered;
    int result;

    pawli_call_ref(call); /* the engine's reference may go before we have read the answer */
    if (pawli_baton_take(&client->baton)) {
        answered = stand_in(call, until_ns);
    } else {
        pawli_baton_sleeper(&client->baton, true);
        pawli_client_post(client, &call->start);
        answered = wait_answer(call, until_ns);
        pawli_baton_sleeper(&client->baton, false);
    }
    if (!answered && pawli_call_abandon(call, late)) {
        if (call->cancel.run != NULL) {
            pawli_call_ref(call);
            pawli_client_post(client, &call->cancel);
        }
        result = pawli_fail(late, "the engine did not answer in time");
    } else {
        if (!answered)
            (void)wait_answer(call, PAWLI_NEVER); /* it lost the race: the answer is there */
        result = take_answer(call, ret_lock, ret_info);
    }
    pawli_call_unref(call);
    return result;
}
