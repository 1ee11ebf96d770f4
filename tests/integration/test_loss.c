/* The loss of a lock: told exactly once on every path, before the lease can pass on, whatever the
 * store, the process or the engine thread do. */
#include "integration/harness.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- a starved engine: while the gate is shut, threads of the engine stand still ---- */

static atomic_bool gate_shut;
static atomic_int at_gate;

static bool is_engine(void)
{
    char name[16] = "";

    prctl(PR_GET_NAME, name);
    return strncmp(name, "pawl-engine", 11) == 0;
}

/* Takes the place of libc's for the whole program. */
int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    static int (*real)(int, struct epoll_event *, int, int);
    int rc;

    if (real == NULL)
        real =
            (int (*)(int, struct epoll_event *, int, int))(intptr_t)dlsym(RTLD_NEXT, "epoll_wait");
    rc = real(fd, events, n, timeout);
    if (!atomic_load(&gate_shut) || !is_engine())
        return rc;
    atomic_fetch_add(&at_gate, 1);
    while (atomic_load(&gate_shut))
        pause_ms(2);
    atomic_fetch_sub(&at_gate, 1);
    return rc;
}

/* ---- a watched lock ---- */

struct watched {
    struct events events;
    struct pawl_client *client;
    struct pawl_lock *lock;
    int64_t taken_ms; /* before it was asked for */
    int64_t lease_ms;
    int fd;
};

static void watch(struct watched *w, const char *url, int64_t lease_ms)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_lock_options lock_opts = lock_options(lease_ms, 0);

    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->events.mu, NULL);
    opts.command_ms = 200;
    opts.connect_ms = 200;
    w->client = open_client(url, &opts);
    lock_opts.on_event = on_event;
    lock_opts.on_event_arg = &w->events;
    w->lease_ms = lease_ms;
    w->taken_ms = now_ms();
    w->lock = take_with(w->client, "job", &lock_opts);
    w->fd = pawl_lock_fd(w->lock);
    assert_true(w->fd >= 0);
    assert_false(fd_readable(w->fd));
}

/* Told within @within_ms, once, by callback, descriptor and check alike. */
static void expect_loss(struct watched *w, int reason, int64_t within_ms)
{
    EVENTUALLY(within_ms, events_count(&w->events, PAWL_EVENT_LOST) == 1);
    assert_string_equal(pawl_result_name(w->events.last[PAWL_EVENT_LOST]),
                        pawl_result_name(reason));
    assert_true(fd_readable(w->fd));
    EXPECT_RESULT(pawl_lock_check(w->lock), reason);
    assert_int_equal(pawl_lock_remaining_ms(w->lock), 0);
    ALWAYS(w->lease_ms, w->events.n[PAWL_EVENT_LOST] == 1);
    assert_true(fd_readable(w->fd)); /* and stays so */
}

static void unwatch(struct watched *w, int reason)
{
    EXPECT_RESULT(pawl_lock_release(w->lock), reason);
    pawl_lock_free(w->lock);
    pawl_client_close(w->client);
    assert_int_equal(w->events.n[PAWL_EVENT_LOST], 1);
}

/* The last renewal that can have succeeded was sent before @cut_ms. */
static void expect_told_in_time(const struct watched *w, int64_t cut_ms)
{
    int64_t told_ms = w->events.at_ms[PAWL_EVENT_LOST];

    assert_true(told_ms <= cut_ms + w->lease_ms);
}

static void deleted_key_is_told_once(void **state)
{
    struct server *s = *state;
    struct watched w;

    watch(&w, s->url, 600);
    server_do(s, "DEL job");
    expect_loss(&w, PAWL_LOST_TAKEN, 2000);
    assert_string_equal(w.events.order, "L");
    unwatch(&w, PAWL_LOST_TAKEN);
}

/* First an error, then another owner's lock, then that owner's renewals. */
static void foreign_owner_is_told_once_even_after_an_error(void **state)
{
    struct server *s = *state;
    struct pawl_client *b = open_client(s->url, NULL);
    struct relay *relay = relay_start(s->socket);
    struct pawl_lock *next;
    struct watched w;

    watch(&w, relay_url(relay), 900);
    relay_answer(relay, "EVAL", "-LOADING Redis is loading the dataset in memory\r\n", 1);
    server_do(s, "DEL job");
    next = take(b, "job", 900, 0);
    expect_loss(&w, PAWL_LOST_TAKEN, 3000);
    unwatch(&w, PAWL_LOST_TAKEN);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(b);
    relay_free(relay);
}

/* ---- a silent store ---- */

static void stopped_server_is_told_in_time(void **state)
{
    struct server *s = *state;
    struct watched w;
    int64_t cut_ms;

    watch(&w, s->url, 900);
    pause_ms(400);
    server_kill(s);
    cut_ms = now_ms();
    expect_loss(&w, PAWL_LOST_UNREACHABLE, 2000);
    expect_told_in_time(&w, cut_ms);
    assert_string_equal(w.events.order, "RL");
    unwatch(&w, PAWL_LOST_UNREACHABLE);
}

static void frozen_server_is_told_in_time(void **state)
{
    struct server *s = *state;
    struct watched w;
    int64_t cut_ms;

    watch(&w, s->url, 900);
    pause_ms(400);
    server_pause(s);
    cut_ms = now_ms();
    expect_loss(&w, PAWL_LOST_UNREACHABLE, 2000);
    expect_told_in_time(&w, cut_ms);
    server_resume(s);
    unwatch(&w, PAWL_LOST_UNREACHABLE);
    EVENTUALLY(3000, !exists(s, "job"));
}

static void unreachable_server_is_told_in_time(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);

    for (int way = 0; way < 2; way++) { /* our packets are lost, or theirs */
        struct watched w;
        int64_t cut_ms;

        watch(&w, relay_url(relay), 900);
        relay_drop(relay, (enum relay_way)way, true);
        cut_ms = now_ms();
        expect_loss(&w, PAWL_LOST_UNREACHABLE, 2500);
        /* With only the answers lost the server may have renewed once more, which is no harm. */
        expect_told_in_time(&w, cut_ms);
        relay_drop(relay, (enum relay_way)way, false);
        relay_break(relay);
        unwatch(&w, PAWL_LOST_UNREACHABLE);
        EVENTUALLY(3000, !exists(s, "job"));
    }
    relay_free(relay);
}

static void risk_is_withdrawn_when_the_store_comes_back(void **state)
{
    struct server *s = *state;
    struct watched w;

    watch(&w, s->url, 3000);
    server_pause(s);
    EVENTUALLY(4000, events_count(&w.events, PAWL_EVENT_AT_RISK) == 1);
    assert_true(w.events.last[PAWL_EVENT_AT_RISK] < 0);
    EXPECT_RESULT(pawl_lock_check(w.lock), 0);
    assert_false(fd_readable(w.fd));
    server_resume(s);
    EVENTUALLY(3000, events_count(&w.events, PAWL_EVENT_RECOVERED) == 1);
    assert_string_equal(w.events.order, "RC");
    EXPECT_RESULT(pawl_lock_check(w.lock), 0);
    EXPECT_RESULT(pawl_lock_release(w.lock), 0);
    pawl_lock_free(w.lock);
    pawl_client_close(w.client);
    assert_int_equal(w.events.n[PAWL_EVENT_LOST], 0);
}

/* ---- a starved engine ---- */

static void starved_engine_does_not_deceive_check(void **state)
{
    struct server *s = *state;
    struct watched w;
    int64_t shut_ms;

    watch(&w, s->url, 900);
    pause_ms(700); /* past the time in which callers stand in for the engine */
    atomic_store(&gate_shut, true);
    EVENTUALLY(2000, atomic_load(&at_gate) > 0);
    shut_ms = now_ms();
    EVENTUALLY(2000, pawl_lock_check(w.lock) != 0);
    assert_true(now_ms() <= shut_ms + 900 + slack_ms(100));
    assert_true(pawl_is_lost(pawl_lock_check(w.lock)));
    assert_int_equal(pawl_lock_remaining_ms(w.lock), 0);
    assert_int_equal(events_count(&w.events, PAWL_EVENT_LOST), 0); /* nobody could tell it yet */
    atomic_store(&gate_shut, false);
    expect_loss(&w, pawl_lock_check(w.lock), 2000);
    unwatch(&w, pawl_lock_check(w.lock));
}

/* ---- a paused process ---- */

static void paused_process_knows_before_anything_else(void **state)
{
    struct server *s = *state;
    struct pawl_client *b = open_client(s->url, NULL);
    struct child *holder = holder_start(s->url, NULL);
    struct pawl_lock *next;

    child_expect(holder, "open PAWL_OK", 5000);
    child_say(holder, "take job 900 0\n");
    child_expect(holder, "took PAWL_OK", 5000);
    child_pause(holder);
    next = take(b, "job", 30000, 10000);
    child_say(holder, "check\n"); /* the first thing that it does when it wakes */
    child_resume(holder);
    child_expect(holder, "check PAWL_LOST_", 3000);
    child_say(holder, "check\nrelease\n");
    child_expect(holder, "check PAWL_LOST_", 3000);
    child_expect(holder, "released PAWL_LOST_", 3000);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    assert_true(pttl(s, "job") > 20000);
    EXPECT_RESULT(give_back(next), 0);
    assert_int_equal(child_end(holder, 5000), 0);
    child_free(holder);
    pawl_client_close(b);
}

/* The answer waits in the socket of a frozen client until its lease is over. */
static void grant_that_is_read_too_late_is_none(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *b = open_client(s->url, NULL);
    struct child *holder = holder_start(relay_url(relay), NULL);
    struct pawl_lock *next;

    child_expect(holder, "open PAWL_OK", 5000);
    child_say(holder, "take warm 900 5000\n");
    child_expect(holder, "took PAWL_OK", 5000);
    relay_hold(relay, RELAY_DOWN, true);
    child_say(holder, "take job 600 3000\n");
    EVENTUALLY(3000, exists(s, "job"));
    child_pause(holder);
    relay_hold(relay, RELAY_DOWN, false);
    next = take(b, "job", 60000, 10000);
    child_resume(holder);
    /* It went on waiting, like anybody. */
    assert_string_equal(child_expect(holder, "took", 6000), "took PAWL_TIMEOUT 0");
    EXPECT_RESULT(pawl_lock_check(next), 0);
    EXPECT_RESULT(give_back(next), 0);
    assert_int_equal(child_end(holder, 5000), 0);
    child_free(holder);
    pawl_client_close(b);
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(deleted_key_is_told_once),
        SERVED(foreign_owner_is_told_once_even_after_an_error),
        SERVED(stopped_server_is_told_in_time),
        SERVED(frozen_server_is_told_in_time),
        SERVED(unreachable_server_is_told_in_time),
        SERVED(risk_is_withdrawn_when_the_store_comes_back),
        SERVED(starved_engine_does_not_deceive_check),
        SERVED(paused_process_knows_before_anything_else),
        SERVED(grant_that_is_read_too_late_is_none),
    };

    return RUN_SERVED(tests);
}
