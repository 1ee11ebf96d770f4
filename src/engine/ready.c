/* Callers that wait until the store can be used; see ready.h. */
#include "engine/ready.h"

#include <stdlib.h>

#include "engine/client.h"

struct ready {
    struct pawli_call call;
    struct pawli_list link; /* in the client's readies */
    struct pawli_timer timer;
    int64_t limit_ns;
};

static void ready_free(struct pawli_call *call)
{
    free(PAWLI_CONTAINER(call, struct ready, call));
}

static void end(struct ready *r, int code, const char *detail)
{
    struct pawl_client *client = r->call.client;

    pawli_call_finish(&r->call, code, NULL, NULL, detail);
    if (!pawli_list_empty(&r->link)) {
        pawli_list_remove(&r->link);
        pawli_loop_timer_clear(client->loop, &r->timer);
        pawli_loop_timer_unreserve(client->loop);
    }
    pawli_call_unref(&r->call);
}

/* What is known of the store now; a first attempt that still runs is no answer yet. */
static int status(const struct pawl_client *client, char *detail, size_t detail_len)
{
    int code = client->backend->status(client->node, detail, detail_len);

    return code == PAWL_BUSY ? PAWL_ECONNECT : code;
}

static void timer_fired(struct pawli_timer *timer)
{
    struct ready *r = PAWLI_CONTAINER(timer, struct ready, timer);
    char detail[PAWLI_DETAIL_LEN] = "";
    int code = status(r->call.client, detail, sizeof detail);

    end(r, code, detail);
}

static void start(struct pawli_task *task)
{
    struct ready *r = PAWLI_CONTAINER(task, struct ready, call.start);
    struct pawl_client *client = r->call.client;
    char detail[PAWLI_DETAIL_LEN] = "";
    int code = PAWL_ECLOSED;

    if (!client->stopped)
        code = status(client, detail, sizeof detail);
    if (code == 0 || client->stopped || pawl_result_class(code) == PAWL_CLASS_DENIED ||
        r->limit_ns <= pawli_loop_now_ns(client->loop)) {
        end(r, code, detail);
        return;
    }
    if (pawli_loop_timer_reserve(client->loop) < 0) {
        end(r, PAWL_ENOMEM, "");
        return;
    }
    pawli_list_append(&client->readies, &r->link);
    pawli_loop_timer_set(client->loop, &r->timer, r->limit_ns);
}

void pawli_ready_tell(struct pawl_client *client, int code, const char *detail)
{
    if (code != 0 && pawl_result_class(code) != PAWL_CLASS_DENIED)
        return;
    while (!pawli_list_empty(&client->readies))
        end(PAWLI_CONTAINER(client->readies.next, struct ready, link), code, detail);
}

void pawli_readies_drop(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->readies))
        end(PAWLI_CONTAINER(client->readies.next, struct ready, link), PAWL_ECLOSED,
            "the client is closed");
}

int pawl_client_ready(struct pawl_client *client, int64_t wait_ms)
{
    struct ready *r;
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    if (wait_ms < 0 || wait_ms > PAWL_WAIT_MAX_MS)
        return pawli_fail(PAWL_ERANGE, "wait_ms=%lld: must be 0 to %lld (milliseconds)",
                          (long long)wait_ms, (long long)PAWL_WAIT_MAX_MS);
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return pawli_fail(PAWL_ENOMEM, "no memory for a call");
    rc = pawli_call_init(&r->call, client, PAWLI_CALL_SYNC, start, ready_free);
    if (rc < 0) {
        free(r);
        return pawli_fail_text(rc, pawl_result_text(rc));
    }
    r->limit_ns = pawli_loop_now_ns(client->loop) + wait_ms * PAWLI_NS_PER_MS;
    r->timer.fire = timer_fired;
    pawli_list_init(&r->link);
    return pawli_client_run(&r->call, pawli_after(r->limit_ns, PAWLI_NS_PER_MS * 200),
                            PAWL_ECONNECT, NULL, NULL);
}
