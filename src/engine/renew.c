/* Renewals: those that fall due together go out as one request for many locks. */
#include <stdlib.h>
#include <string.h>

#include "engine/client.h"
#include "engine/hold.h"
#include "util/printable.h"

/* Locks of one request: at about 4 us each a script of this size blocks the server for half a
 * millisecond, which nobody notices. */
#define BATCH_MAX 128

struct batch {
    struct pawl_client *client;
    struct pawli_request req;
    size_t n;
    struct pawli_renewal renewal[BATCH_MAX];
};

static void count_renewal(struct pawli_held *held, int64_t before_ns, int code)
{
    struct pawl_client *client = held->client;
    int64_t now_ns = pawli_loop_now_ns(client->loop);
    int64_t left_ms = (held->sm.valid_until_ns - now_ns) / PAWLI_NS_PER_MS;
    bool late = now_ns - before_ns > held->sm.lease_ms * PAWLI_NS_PER_MS / 2;
    enum pawl_log_level level = code != 0 || late ? PAWL_LOG_WARN : PAWL_LOG_DEBUG;
    char name[PAWLI_PRINTABLE_LEN];

    pawli_count(code == 0 ? &client->stats.renewals : &client->stats.failed_renewals);
    if (code == 0 && late)
        pawli_count(&client->stats.late_renewals);
    if (!pawli_logs(&client->notifier, level))
        return;
    pawli_log(&client->notifier, level, "renewal of %s %s%s%s; %lld ms of %lld ms left",
              pawli_printable(held->key->name, held->key->name_len, name),
              code == 0 ? (late ? "came late" : "done") : "failed: ",
              code == 0 ? "" : pawl_result_text(code), "", (long long)left_ms,
              (long long)held->sm.lease_ms);
}

void pawli_hold_renewed(struct pawli_held *held, int64_t sent_ns, int code, int64_t pttl_ms)
{
    struct pawli_hold_event ev = {
        .kind = PAWLI_HOLD_FAILED, .sent_ns = sent_ns, .pttl_ms = pttl_ms, .code = code
    };
    int64_t before_ns = held->sm.last_renewed_ns;
    bool live = !pawli_list_empty(&held->link);

    if (code == 0) {
        ev.kind = PAWLI_HOLD_RENEWED;
        ev.exact = pawli_held_confirmed(held, sent_ns);
        atomic_store(&held->doubt, false);
    } else if (pawl_is_lost(code)) {
        ev.kind = PAWLI_HOLD_REFUSED;
    }
    pawli_held_step(held, &ev);
    if (live && !pawl_is_lost(code))
        count_renewal(held, before_ns, code);
}

static void batch_done(struct pawli_request *req)
{
    struct batch *batch = PAWLI_CONTAINER(req, struct batch, req);
    int failure = req->answer.code;

    pawli_client_answered(batch->client);
    for (size_t i = 0; i < batch->n; i++) {
        struct pawli_renewal *r = &batch->renewal[i];
        struct pawli_held *held = r->arg;

        pawli_hold_renewed(held, req->sent_ns, failure != 0 ? failure : r->code, r->pttl_ms);
        pawli_held_unref(held);
    }
    free(batch);
}

/* Without memory for a batch the renewals fail like any other, and are tried again. */
static void fail_due(struct pawl_client *client)
{
    struct pawli_list *node = pawli_list_pop(&client->renewals_due);

    while (node != NULL) {
        pawli_hold_renewed(PAWLI_CONTAINER(node, struct pawli_held, due), 0, PAWL_ENOMEM, 0);
        node = pawli_list_pop(&client->renewals_due);
    }
}

static void send_batch(struct pawl_client *client)
{
    struct batch *batch = malloc(sizeof *batch);
    struct pawli_list *node;

    if (batch == NULL) {
        fail_due(client);
        return;
    }
    batch->client = client;
    batch->n = 0;
    while (batch->n < BATCH_MAX && (node = pawli_list_pop(&client->renewals_due)) != NULL) {
        struct pawli_held *held = PAWLI_CONTAINER(node, struct pawli_held, due);
        struct pawli_renewal *r = &batch->renewal[batch->n++];

        r->key = held->key;
        r->token = held->token;
        r->lease_ms = held->sm.lease_ms;
        r->arg = pawli_held_ref(held);
        r->code = PAWL_EUNKNOWN;
        r->pttl_ms = 0;
    }
    memset(&batch->req, 0, sizeof batch->req);
    batch->req.op = PAWLI_OP_RENEW;
    batch->req.renewals = batch->renewal;
    batch->req.n_renewals = batch->n;
    batch->req.done = batch_done;
    pawli_client_submit(client, &batch->req);
}

void pawli_renewals_flush(struct pawl_client *client)
{
    while (!pawli_list_empty(&client->renewals_due))
        send_batch(client);
}
