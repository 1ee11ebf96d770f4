/* metrics.c: counters and the Prometheus text format, by hand. docs/orders.md lists the names. */
#include "metrics.h"

#include "app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0.5 ms to 60 s: from one transaction to long work. */
static const int64_t bounds_us[METRICS_BUCKETS] = { 500,     1000,     2000,     5000,
                                                    10000,   20000,    50000,    100000,
                                                    200000,  500000,   1000000,  2000000,
                                                    5000000, 10000000, 30000000, 60000000 };

void metrics_hist_add(struct metrics_hist *hist, int64_t us)
{
    size_t i;

    for (i = 0; i < METRICS_BUCKETS; i++)
        if (us <= bounds_us[i])
            break;
    hist->bucket[i]++;
    hist->count++;
    hist->sum_us += us;
}

void metrics_answer(struct metrics *metrics, const char *route, int status, int64_t took_us)
{
    size_t i;

    for (i = 0; i < metrics->n_answers; i++)
        if (metrics->answers[i].status == status && metrics->answers[i].route == route)
            break;
    if (i == metrics->n_answers) {
        if (i == sizeof metrics->answers / sizeof metrics->answers[0])
            return;
        metrics->answers[i].route = route;
        metrics->answers[i].status = status;
        metrics->n_answers++;
    }
    metrics->answers[i].count++;
    metrics_hist_add(&metrics->request, took_us);
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    head(out, name, type, help);
    fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void hist(FILE *out, const char *name, const char *help, const struct metrics_hist *h)
{
    uint64_t sum = 0;
    size_t i;

    head(out, name, "histogram", help);
    for (i = 0; i < METRICS_BUCKETS; i++) {
        sum += h->bucket[i];
        fprintf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_us[i] / 1e6,
                (unsigned long long)sum);
    }
    fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name,
            (unsigned long long)h->count, name, (double)h->sum_us / 1e6, name,
            (unsigned long long)h->count);
}

static void pawl_hist_print(FILE *out, const char *name, const char *help,
                            const struct pawl_hist *h)
{
    uint64_t sum = 0;
    int i;

    head(out, name, "histogram", help);
    for (i = 0; i < PAWL_HIST_BUCKETS && pawl_hist_bound_ms(i) >= 0; i++) {
        sum += h->bucket[i];
        fprintf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)pawl_hist_bound_ms(i) / 1e3,
                (unsigned long long)sum);
    }
    fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.3f\n%s_count %llu\n", name,
            (unsigned long long)h->count, name, (double)h->sum_ms / 1e3, name,
            (unsigned long long)h->count);
}

static void print_own(const struct app *app, FILE *out)
{
    const struct metrics *m = &app->metrics;
    size_t i;

    head(out, "pawl_orders_info", "gauge", "Version and name of the instance.");
    fprintf(out, "pawl_orders_info{version=\"%s\",instance_name=\"%s\"} 1\n", pawl_version(),
            app->config.instance);
    head(out, "pawl_orders_http_answers_total", "counter", "Answers by route and status.");
    for (i = 0; i < m->n_answers; i++)
        fprintf(out, "pawl_orders_http_answers_total{route=\"%s\",status=\"%d\"} %llu\n",
                m->answers[i].route, m->answers[i].status,
                (unsigned long long)m->answers[i].count);
    head(out, "pawl_orders_submits_total", "counter", "Submissions by outcome.");
    fprintf(out, "pawl_orders_submits_total{outcome=\"made\"} %llu\n",
            (unsigned long long)m->made);
    fprintf(out, "pawl_orders_submits_total{outcome=\"duplicate\"} %llu\n",
            (unsigned long long)m->repeated);
    for (i = 0; i < N_PROBLEMS; i++)
        if (m->outcome[i] > 0)
            fprintf(out, "pawl_orders_submits_total{outcome=\"%s\"} %llu\n",
                    problem_info((enum problem)i)->code, (unsigned long long)m->outcome[i]);
    one(out, "pawl_orders_hangups_waiting_total", "counter", "Clients gone before their grant.",
        m->hangups_waiting);
    one(out, "pawl_orders_hangups_held_total", "counter", "Clients gone after their grant.",
        m->hangups_held);
    one(out, "pawl_orders_holds_past_expected_total", "counter",
        "Holds longer than expected-hold-ms.", m->holds_past_expected);
    one(out, "pawl_orders_waiting", "gauge", "Submissions that wait for their lock.",
        app->n_waiting);
    one(out, "pawl_orders_held", "gauge", "Submissions in the protected section.", app->n_held);
    one(out, "pawl_orders_connections", "gauge", "Open connections.",
        http_n_connections(app->http));
    one(out, "pawl_orders_database_queue", "gauge", "Jobs that wait for the database thread.",
        store_queue_len(app->store));
    hist(out, "pawl_orders_request_seconds", "From the whole request to its answer.", &m->request);
    hist(out, "pawl_orders_lock_wait_seconds", "From the submission to its grant.", &m->wait);
    hist(out, "pawl_orders_hold_seconds", "In the protected section.", &m->hold);
    hist(out, "pawl_orders_transaction_seconds", "In the database.", &m->transaction);
}

static void print_losses(FILE *out, const struct pawl_stats *s)
{
    const char *name = "pawl_client_losses_total";

    head(out, name, "counter", "Holds that were lost, by reason.");
    fprintf(out, "%s{reason=\"taken\"} %llu\n", name, (unsigned long long)s->lost_taken);
    fprintf(out, "%s{reason=\"expired\"} %llu\n", name, (unsigned long long)s->lost_expired);
    fprintf(out, "%s{reason=\"unreachable\"} %llu\n", name,
            (unsigned long long)s->lost_unreachable);
    fprintf(out, "%s{reason=\"max_hold\"} %llu\n", name, (unsigned long long)s->lost_max_hold);
    fprintf(out, "%s{reason=\"revoked\"} %llu\n", name, (unsigned long long)s->lost_revoked);
}

static void print_pawl(FILE *out, const struct pawl_stats *s)
{
    one(out, "pawl_client_acquires_total", "counter", "Grants.", s->acquires);
    one(out, "pawl_client_reentries_total", "counter", "Grants to an owner that held it already.",
        s->reentries);
    one(out, "pawl_client_waits_total", "counter", "Acquires that met a busy lock.", s->waits);
    one(out, "pawl_client_busy_total", "counter", "Acquires that ended busy.", s->busy);
    one(out, "pawl_client_canceled_total", "counter", "Waits that were canceled.", s->canceled);
    one(out, "pawl_client_failed_total", "counter", "Acquires that failed.", s->failed);
    one(out, "pawl_client_releases_total", "counter", "Releases.", s->releases);
    one(out, "pawl_client_renewals_total", "counter", "Renewals.", s->renewals);
    one(out, "pawl_client_late_renewals_total", "counter",
        "Renewals after more than half of the lease.", s->late_renewals);
    one(out, "pawl_client_failed_renewals_total", "counter", "Renewals that failed.",
        s->failed_renewals);
    print_losses(out, s);
    one(out, "pawl_client_connects_total", "counter", "Connections that became usable.",
        s->connects);
    one(out, "pawl_client_commands_total", "counter", "Commands sent.", s->commands);
    one(out, "pawl_client_held", "gauge", "Holds now.", s->held);
    one(out, "pawl_client_waiting", "gauge", "Waits now.", s->waiting);
    pawl_hist_print(out, "pawl_client_wait_seconds", "From an acquire to its grant.", &s->wait_ms);
    pawl_hist_print(out, "pawl_client_hold_seconds", "From a grant to its release or loss.",
                    &s->hold_ms);
}

char *metrics_print(struct app *app, size_t *ret_len)
{
    struct pawl_stats stats = { .size = sizeof stats };
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_len);

    if (out == NULL)
        return NULL;
    print_own(app, out);
    if (pawl_client_stats(app->pawl, &stats) == 0)
        print_pawl(out, &stats);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
