/* Opening and closing a client. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/key.h"
#include "core/limits.h"
#include "engine/acquire.h"
#include "engine/client.h"
#include "engine/fork.h"
#include "engine/hold.h"
#include "engine/options.h"
#include "engine/ready.h"
#include "engine/release.h"
#include "engine/who.h"
#include "util/random.h"

/* ---- open ---- */

static int read_options(const struct pawl_client_options *opts,
                        struct pawl_client_options *ret_copy)
{
    char detail[PAWLI_DETAIL_LEN] = "";
    struct pawl_client_options all;
    int rc = pawli_client_options_read(opts, detail, sizeof detail, &all);

    if (rc == 0 && all.prefix != NULL)
        rc = pawli_prefix_check(all.prefix, detail, sizeof detail);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    if (all.name == NULL)
        all.name = program_invocation_short_name;
    rc = pawli_options_copy(&all, ret_copy);
    return rc < 0 ? pawli_fail(rc, "no memory for the options") : 0;
}

/* The parts that need nothing but memory and descriptors. */
static int make_parts(struct pawl_client *client)
{
    int rc = pawli_loop_new(&pawli_system_clock, &client->loop);

    if (rc < 0)
        return rc;
    rc = pawli_random_bytes(&client->seed, sizeof client->seed);
    if (rc < 0)
        return rc;
    client->seed |= 1;
    rc = pawli_baton_init(&client->baton, client->loop, pawli_client_at_rest, client);
    if (rc < 0)
        return rc;
    rc = pawli_calls_init(&client->calls);
    if (rc < 0)
        goto fail_baton;
    /* Who waits for completions sleeps on the sockets too, and so can stand in. */
    rc = pawli_calls_show(&client->calls, pawli_loop_fd(client->loop));
    if (rc < 0)
        goto fail_calls;
    rc = pawli_notifier_init(&client->notifier, client->opts.log, client->opts.log_arg,
                             client->opts.log_level);
    if (rc < 0)
        goto fail_calls;
    client->has_parts = true;
    return 0;

fail_calls:
    pawli_calls_done(&client->calls);
fail_baton:
    pawli_baton_done(&client->baton);
    return rc;
}

static int open_node(struct pawl_client *client, const char *url)
{
    struct pawli_node_events events = *pawli_client_events();
    char detail[PAWLI_DETAIL_LEN] = "";
    int rc;

    client->backend = pawli_backend_for(url);
    if (client->backend == NULL)
        return pawli_fail(PAWL_EURL, "the URL must begin with redis://, rediss:// or "
                                     "redis+unix://");
    events.arg = client;
    rc = client->backend->open(url, &client->opts, client->loop, &events, detail, sizeof detail,
                               &client->node);
    return rc < 0 ? pawli_fail_text(rc, detail) : 0;
}

static int start_threads(struct pawl_client *client)
{
    int rc = client->opts.log == NULL ? 0 : pawli_notifier_start(&client->notifier);

    if (rc == 0) {
        client->backend->start(client->node); /* nobody else runs the loop yet */
        rc = pawli_baton_start(&client->baton);
    }
    return rc < 0 ? pawli_fail(rc, "a thread could not be started") : 0;
}

static struct pawl_client *new_client(void)
{
    struct pawl_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    if (pthread_mutex_init(&client->end_mu, NULL) != 0) {
        free(client);
        return NULL;
    }
    atomic_init(&client->refs, 1);
    pawli_map_init(&client->holds);
    pawli_list_init(&client->all_holds);
    pawli_list_init(&client->waits);
    pawli_list_init(&client->lines);
    pawli_map_init(&client->by_id);
    pawli_map_init(&client->lines_by_key);
    pawli_list_init(&client->releases);
    pawli_list_init(&client->readies);
    pawli_list_init(&client->renewals_due);
    pawli_who(client->who, sizeof client->who);
    return client;
}

int pawl_client_open(const char *url, const struct pawl_client_options *opts,
                     struct pawl_client **ret_client)
{
    struct pawl_client *client;
    int rc;

    if (url == NULL || ret_client == NULL)
        return pawli_fail(PAWL_EUSAGE, "url or ret_client is NULL");
    client = new_client();
    if (client == NULL)
        return pawli_fail(PAWL_ENOMEM, "no memory for a client");
    rc = read_options(opts, &client->opts);
    if (rc < 0)
        goto fail;
    rc = pawli_fork_watch(&client->generation);
    if (rc == 0)
        rc = make_parts(client);
    if (rc < 0) {
        (void)pawli_fail(rc, "the client could not be set up: %s", pawl_result_text(rc));
        goto fail;
    }
    rc = open_node(client, url);
    if (rc < 0)
        goto fail;
    pawli_loop_on_flush(client->loop, pawli_client_flush, client);
    pawli_loop_on_post(client->loop, pawli_client_posted, client);
    rc = start_threads(client);
    if (rc < 0)
        goto fail_node;
    *ret_client = client;
    return 0;

fail_node:
    pawli_loop_on_flush(client->loop, NULL, NULL);
    client->stopped = true;
    client->backend->close(client->node);
fail:
    if (client->has_parts)
        pawli_notifier_stop(&client->notifier);
    pawli_client_unref(client);
    return rc;
}

/* ---- close ---- */

static void closing_free(struct pawli_call *call)
{
    free(call);
}

void pawli_client_settled(struct pawl_client *client)
{
    struct pawli_call *call = client->closing;

    if (call == NULL || !pawli_list_empty(&client->all_holds) ||
        !pawli_list_empty(&client->releases) || !pawli_list_empty(&client->waits))
        return;
    client->closing = NULL;
    pawli_call_finish(call, 0, NULL, NULL, NULL);
    pawli_call_unref(call);
}

static void closing_start(struct pawli_task *task)
{
    struct pawli_call *call = PAWLI_CONTAINER(task, struct pawli_call, start);
    struct pawl_client *client = call->client;

    pawli_acquires_close(client);
    pawli_holds_close(client);
    client->closing = call;
    pawli_client_settled(client);
}

/* Give everything back while the engine still runs, within release_ms. Without memory for this
 * the leases end by themselves. */
static void give_back(struct pawl_client *client)
{
    struct pawli_call *closing = calloc(1, sizeof *closing);
    int64_t limit_ns = pawli_loop_now_ns(client->loop) + client->opts.release_ms * PAWLI_NS_PER_MS;

    if (closing == NULL)
        return;
    if (pawli_call_init(closing, client, PAWLI_CALL_SYNC, closing_start, closing_free) < 0)
        free(closing);
    else
        (void)pawli_client_run(closing, limit_ns, PAWL_EUNKNOWN, NULL, NULL);
}

/* The engine thread is gone: this thread ends what is left. */
static void drop_all(struct pawl_client *client)
{
    pthread_mutex_lock(&client->end_mu);
    client->stopped = true;
    pawli_loop_on_flush(client->loop, NULL, NULL);
    client->backend->close(client->node);
    client->node = NULL;
    pawli_acquires_drop(client);
    pawli_releases_drop(client);
    pawli_holds_drop(client);
    pawli_readies_drop(client);
    if (client->closing != NULL) {
        pawli_call_unref(client->closing);
        client->closing = NULL;
    }
    atomic_store(&client->ended, true);
    pawli_loop_run(client->loop, 0); /* tasks that were posted meanwhile answer ECLOSED */
    pthread_mutex_unlock(&client->end_mu);
}

void pawl_client_close(struct pawl_client *client)
{
    if (client == NULL || pawli_forked(client->generation))
        return;
    if (atomic_exchange(&client->closed, true))
        return;
    give_back(client);
    pawli_baton_stop(&client->baton);
    drop_all(client);
    while (pawli_calls_dispatch_one(&client->calls))
        ;
    pawli_notifier_stop(&client->notifier);
    pawli_client_unref(client);
}

int pawl_client_stats(struct pawl_client *client, struct pawl_stats *ret_stats)
{
    int rc = pawli_client_check(client);

    if (rc < 0)
        return rc;
    if (ret_stats == NULL || ret_stats->size < sizeof ret_stats->size)
        return pawli_fail(PAWL_EUSAGE, "ret_stats is NULL or its size is not set");
    pawli_stats_read(&client->stats, ret_stats);
    return 0;
}
