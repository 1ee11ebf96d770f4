/* A node on a loop of its own, driven by the test, and requests to send through it. */
#ifndef PAWL_TESTS_UNIT_REDIS_FIXTURE_H
#define PAWL_TESTS_UNIT_REDIS_FIXTURE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "backend/backend.h"

struct fixture {
    struct pawli_loop *loop;
    struct pawl_client_options opts;
    struct pawli_node *node;
    int state;      /* the last one told; 1: none yet */
    int n_states;
    int64_t jump_ms;
    bool inbox_up;
    uint64_t granted_token;
    char log[16384];
};

struct call {
    struct pawli_request req;
    bool done;
};

static inline void fixture_state(void *arg, int code, const char *detail)
{
    struct fixture *fx = arg;

    (void)detail;
    fx->state = code;
    fx->n_states++;
}

static inline void fixture_jump(void *arg, int64_t by_ms)
{
    struct fixture *fx = arg;

    fx->jump_ms = by_ms;
}

static inline void fixture_inbox(void *arg, bool up)
{
    struct fixture *fx = arg;

    fx->inbox_up = up;
}

static inline void fixture_freed(void *arg, const char *name, size_t name_len)
{
    (void)arg;
    (void)name;
    (void)name_len;
}

static inline void fixture_granted(void *arg, const char *hold_id, uint64_t token)
{
    struct fixture *fx = arg;

    (void)hold_id;
    fx->granted_token = token;
}

static inline void fixture_log(void *arg, enum pawl_log_level level, const char *line)
{
    struct fixture *fx = arg;
    size_t len = strlen(fx->log);

    (void)level;
    (void)snprintf(fx->log + len, sizeof fx->log - len, "%s\n", line);
}

static inline void fixture_flush(void *arg)
{
    struct fixture *fx = arg;

    pawli_backend_redis.flush(fx->node);
}

static inline void fixture_init(struct fixture *fx)
{
    const struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    memset(fx, 0, sizeof *fx);
    fx->opts = opts;
    fx->opts.log_level = PAWL_LOG_DEBUG;
    fx->state = 1;
    assert_int_equal(pawli_loop_new(&pawli_system_clock, &fx->loop), 0);
}

static inline void fixture_open(struct fixture *fx, const char *url)
{
    const struct pawli_node_events events = { .state = fixture_state,
                                              .clock_jump = fixture_jump,
                                              .inbox = fixture_inbox,
                                              .granted = fixture_granted,
                                              .freed = fixture_freed,
                                              .log = fixture_log,
                                              .arg = fx };
    char detail[256] = "";
    int rc = pawli_backend_redis.open(url, &fx->opts, fx->loop, &events, detail, sizeof detail,
                                      &fx->node);

    if (rc != 0)
        fail_msg("open: %d %s", rc, detail);
    pawli_loop_on_flush(fx->loop, fixture_flush, fx);
    pawli_backend_redis.start(fx->node);
}

static inline void fixture_done(struct fixture *fx)
{
    pawli_loop_on_flush(fx->loop, NULL, NULL);
    if (fx->node != NULL)
        pawli_backend_redis.close(fx->node);
    pawli_loop_free(fx->loop);
}

/* One short turn of the loop. */
static inline void turn(struct fixture *fx)
{
    pawli_loop_run(fx->loop, pawli_loop_now_ns(fx->loop) + 2 * PAWLI_NS_PER_MS);
}

/* Turns until @flag holds; fails after 10 s. */
#define UNTIL(fx, flag)                                                                           \
    do {                                                                                          \
        int64_t limit_ns_ = pawli_loop_now_ns((fx)->loop) + INT64_C(10000000000);                 \
        while (!(flag)) {                                                                         \
            if (pawli_loop_now_ns((fx)->loop) > limit_ns_)                                        \
                fail_msg("never: %s; log:\n%s", #flag, (fx)->log);                                \
            turn(fx);                                                                             \
        }                                                                                         \
    } while (0)

static inline void call_done(struct pawli_request *req)
{
    struct call *call = (struct call *)(void *)req;

    assert_false(call->done);
    call->done = true;
}

static inline struct call *call_init(struct call *call, enum pawli_op op,
                                     const struct pawli_key *key, const char *hold_id)
{
    memset(call, 0, sizeof *call);
    call->req.op = op;
    call->req.key = key;
    call->req.owner = "00112233445566778899aabbccddeeff:u1";
    call->req.hold_id = hold_id;
    call->req.who = "host 12 345 abcdef01";
    call->req.lease_ms = 30000;
    call->req.span_ms = 180000;
    call->req.done = call_done;
    return call;
}

static inline int call_run(struct fixture *fx, struct call *call)
{
    pawli_backend_redis.submit(fx->node, &call->req);
    assert_false(call->done);
    UNTIL(fx, call->done);
    return call->req.answer.code;
}

static inline struct pawli_key *key_of(const char *name)
{
    struct pawli_key *key = NULL;
    char detail[128];

    assert_int_equal(pawli_key_new(NULL, name, strlen(name), detail, sizeof detail, &key), 0);
    return key;
}

#define ID1 "11111111111111111111111111111111"
#define ID3 "33333333333333333333333333333333"
#define ID2 "22222222222222222222222222222222"

#endif
