/* metrics.h: what one instance counts, and its Prometheus text. Loop thread only. */
#ifndef ORDERS_METRICS_H
#define ORDERS_METRICS_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

struct app;

#define METRICS_BUCKETS 16

struct metrics_hist {
    uint64_t bucket[METRICS_BUCKETS + 1];
    uint64_t count;
    int64_t sum_us;
};

#define METRICS_ROUTES 16

struct metrics {
    struct {
        const char *route; /* static */
        int status;
        uint64_t count;
    } answers[METRICS_ROUTES * 8];
    size_t n_answers;
    uint64_t outcome[N_PROBLEMS]; /* of submissions, refused */
    uint64_t made, repeated; /* of submissions, 200 */
    uint64_t hangups_waiting, hangups_held;
    uint64_t holds_past_expected;
    struct metrics_hist request, wait, hold, transaction;
};

void metrics_hist_add(struct metrics_hist *hist, int64_t us);
void metrics_answer(struct metrics *metrics, const char *route, int status, int64_t took_us);

/* Gives the text: free(). NULL without memory. */
char *metrics_print(struct app *app, size_t *ret_len);

#endif
