/* What the parts of a client share, and what the store tells them; see client.h. */
#include "engine/client.h"

#include <stdlib.h>
#include <string.h>

#include "core/validity.h"
#include "engine/acquire.h"
#include "engine/fork.h"
#include "engine/hold.h"
#include "engine/line.h"
#include "engine/options.h"
#include "engine/ready.h"
#include "engine/release.h"
#include "util/random.h"

struct pawl_client *pawli_client_ref(struct pawl_client *client)
{
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    return client;
}

void pawli_client_unref(struct pawl_client *client)
{
    if (atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (client->has_parts) {
        pawli_notifier_done(&client->notifier);
        pawli_calls_done(&client->calls);
        pawli_baton_done(&client->baton);
    }
    pawli_loop_free(client->loop);
    pawli_map_done(&client->holds);
    pawli_map_done(&client->by_id);
    pawli_map_done(&client->lines_by_key);
    pawli_fence_done(&client->fence);
    pawli_options_done(&client->opts);
    pthread_mutex_destroy(&client->end_mu);
    free(client);
}

int pawli_client_check(const struct pawl_client *client)
{
    if (client == NULL)
        return pawli_fail(PAWL_EUSAGE, "client is NULL");
    if (pawli_forked(client->generation))
        return pawli_fail(PAWL_EFORKED, "the client was opened before fork(); open one here");
    if (atomic_load_explicit(&client->closed, memory_order_acquire))
        return pawli_fail(PAWL_ECLOSED, "the client is closed");
    return 0;
}

/* ---- clocks ---- */

int64_t pawli_clocks_offset_ns(const struct pawl_client *client)
{
    const struct pawli_clock *clock = pawli_loop_clock(client->loop);

    return clock->real_ns(clock) - clock->boot_ns(clock);
}

/* Before a request is sent, so that a freeze between this and the sending counts as well. */
static void note_offset(struct pawl_client *client)
{
    struct pawli_offsets *offsets = &client->offsets;
    int64_t offset_ns = pawli_clocks_offset_ns(client);
    int64_t change_ns =
        offsets->n == 0 ? INT64_MAX : offset_ns - offsets->offset_ns[offsets->n - 1];

    if (change_ns > -PAWLI_NS_PER_MS && change_ns < PAWLI_NS_PER_MS)
        return;
    if (offsets->n == PAWLI_OFFSETS) {
        offsets->n--;
        memmove(offsets->at_ns, offsets->at_ns + 1, offsets->n * sizeof *offsets->at_ns);
        memmove(offsets->offset_ns, offsets->offset_ns + 1,
                offsets->n * sizeof *offsets->offset_ns);
    }
    offsets->at_ns[offsets->n] = pawli_loop_now_ns(client->loop);
    offsets->offset_ns[offsets->n++] = offset_ns;
}

/* What was sent before the oldest that is kept is judged by that: it cannot have been larger then
 * unless the clock was set back meanwhile. */
int64_t pawli_clocks_offset_at(const struct pawl_client *client, int64_t sent_ns)
{
    const struct pawli_offsets *offsets = &client->offsets;
    unsigned i = offsets->n;

    if (i == 0)
        return pawli_clocks_offset_ns(client);
    while (i > 1 && offsets->at_ns[i - 1] > sent_ns)
        i--;
    return offsets->offset_ns[i - 1];
}

int64_t pawli_clocks_jump_ns(const struct pawl_client *client, int64_t sent_ns, int64_t lease_ms)
{
    int64_t jump_ns = pawli_clocks_offset_ns(client) - pawli_clocks_offset_at(client, sent_ns);

    return jump_ns > pawli_jump_ns(lease_ms) ? jump_ns : 0;
}

/* ---- requests ---- */

void pawli_client_submit(struct pawl_client *client, struct pawli_request *req)
{
    note_offset(client);
    client->n_outstanding++;
    client->backend->submit(client->node, req);
}

void pawli_client_answered(struct pawl_client *client)
{
    struct pawli_node_stats node;

    client->n_outstanding--;
    if (client->stopped)
        return;
    client->backend->stats(client->node, &node);
    atomic_store_explicit(&client->stats.connects, node.connects, memory_order_relaxed);
    atomic_store_explicit(&client->stats.commands, node.commands, memory_order_relaxed);
}

const char *pawli_client_detail(const struct pawl_client *client)
{
    return client->stopped ? "the client is closed" : client->backend->detail(client->node);
}

void pawli_client_backoff(struct pawl_client *client, struct pawli_backoff *ret_backoff)
{
    pawli_backoff_init(ret_backoff, client->opts.retry_min_ms, client->opts.retry_max_ms,
                       pawli_client_jitter(client, UINT64_MAX - 1) + 1);
}

uint64_t pawli_client_jitter(struct pawl_client *client, uint64_t bound)
{
    return pawli_jitter(&client->seed, bound);
}

int64_t pawli_client_patience_ns(const struct pawl_client *client)
{
    return (client->opts.connect_ms + client->opts.command_ms) * PAWLI_NS_PER_MS;
}

/* ---- what the node tells ---- */

static void node_state(void *arg, int code, const char *detail)
{
    struct pawl_client *client = arg;

    client->node_up = code == 0;
    if (code == 0)
        pawli_log(&client->notifier, PAWL_LOG_INFO, "store connected");
    else
        pawli_log(&client->notifier, PAWL_LOG_WARN, "store not usable: %s (%s)",
                  pawl_result_text(code), detail == NULL ? "" : detail);
    pawli_ready_tell(client, code, detail);
    if (code != 0)
        return;
    pawli_holds_up(client);
    pawli_releases_up(client);
    pawli_acquires_up(client);
    pawli_lines_check(client);
}

/* Messages may have been missed while there was no inbox, so all are asked for; and who could not
 * queue can now. */
static void node_inbox(void *arg, bool up)
{
    struct pawl_client *client = arg;

    client->inbox_up = up;
    if (!up)
        return;
    client->inbox = client->backend->inbox(client->node);
    pawli_lines_listen(client);
    pawli_lines_check(client);
    pawli_acquires_inbox(client);
}

static void node_granted(void *arg, const char *hold_id, uint64_t token)
{
    pawli_line_granted(arg, hold_id, token, 0);
}

static void node_freed(void *arg, const char *name, size_t name_len)
{
    pawli_line_freed(arg, name, name_len);
}

static void node_clock_jump(void *arg, int64_t by_ms)
{
    struct pawl_client *client = arg;

    pawli_log(&client->notifier, PAWL_LOG_WARN,
              "the server's clock moved by %lld ms against ours; all locks are confirmed now",
              (long long)by_ms);
    pawli_holds_doubt(client);
}

static void node_log(void *arg, enum pawl_log_level level, const char *line)
{
    struct pawl_client *client = arg;

    pawli_log(&client->notifier, level, "%s", line);
}

const struct pawli_node_events *pawli_client_events(void)
{
    static const struct pawli_node_events events = {
        .state = node_state,
        .clock_jump = node_clock_jump,
        .inbox = node_inbox,
        .granted = node_granted,
        .freed = node_freed,
        .log = node_log,
    };

    return &events;
}

void pawli_client_flush(void *arg)
{
    struct pawl_client *client = arg;

    pawli_renewals_flush(client);
    client->backend->flush(client->node);
}

void pawli_client_posted(void *arg)
{
    struct pawl_client *client = arg;

    /* A dispatch that is under way on this thread sees to what its completions ask for. */
    if (!pawli_calls_dispatching(&client->calls))
        pawli_baton_poke(&client->baton);
}

bool pawli_client_at_rest(void *arg)
{
    const struct pawl_client *client = arg;

    return client->node_up && client->n_outstanding == 0 && pawli_list_empty(&client->waits) &&
           pawli_list_empty(&client->readies);
}
