/* Clocks that jump: the server's, by a preloaded shim, and our own wall clock, by a function of
 * this program that takes the place of libc's. */
#include "integration/harness.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HOUR_NS (INT64_C(3600) * 1000000000)

/* ---- our wall clock ---- */

static _Atomic int64_t wall_offset_ns;

int clock_gettime(clockid_t id, struct timespec *ret_now)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret_now);

    if (rc == 0 && id == CLOCK_REALTIME) {
        int64_t ns = (int64_t)ret_now->tv_sec * 1000000000 + ret_now->tv_nsec +
                     atomic_load(&wall_offset_ns);

        ret_now->tv_sec = ns / 1000000000;
        ret_now->tv_nsec = ns % 1000000000;
    }
    return rc;
}

/* As after a freeze that the other clock did not count. */
static void frozen_machine_confirms_before_it_believes(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 20000, 0);

    server_pause(s); /* so that the doubt can be seen */
    atomic_fetch_add(&wall_offset_ns, HOUR_NS);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_UNSURE);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_UNSURE);
    server_resume(s);
    EVENTUALLY(5000, pawl_lock_check(lock) == 0);
    assert_int_equal(server_int(s, "EXISTS job"), 1);
    atomic_fetch_add(&wall_offset_ns, HOUR_NS);
    server_do(s, "DEL job"); /* somebody took it in the meantime */
    EVENTUALLY(5000, pawl_lock_check(lock) == PAWL_LOST_TAKEN);
    pawl_lock_free(lock);
    pawl_client_close(client);
    atomic_store(&wall_offset_ns, 0);
}

static void unrenewed_hold_counts_a_freeze_as_time(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_options opts = lock_options(20000, 0);
    struct pawl_lock *lock;

    opts.flags = PAWL_NO_RENEW;
    lock = take_with(client, "job", &opts);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    atomic_fetch_add(&wall_offset_ns, HOUR_NS);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_EXPIRED);
    pawl_lock_free(lock);
    pawl_client_close(client);
    atomic_store(&wall_offset_ns, 0);
}

/* ---- the server's clock ---- */

struct shifted {
    char folder[64];
    int64_t *offset_ns;
    struct server *server;
};

static void shifted_up(struct shifted *sh)
{
    static char shim[512];
    struct server_options opts = { .preload = shim };
    char path[128];
    int fd;

    make_folder(sh->folder, sizeof sh->folder);
    snprintf(shim, sizeof shim, "%s", built("libclock_shim.so"));
    snprintf(path, sizeof path, "%s/offset", sh->folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, sizeof(int64_t)), 0);
    sh->offset_ns = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(sh->offset_ns, MAP_FAILED);
    close(fd);
    setenv("PAWL_CLOCK_FILE", path, 1);
    sh->server = server_start(&opts);
    *sh->offset_ns = 0;
}

static void shift(struct shifted *sh, int64_t by_ns)
{
    long long before = server_int(sh->server, "EVAL %s 0", "return redis.call('TIME')[1]");
    long long after;

    *(volatile int64_t *)sh->offset_ns += by_ns;
    after = server_int(sh->server, "EVAL %s 0", "return redis.call('TIME')[1]");
    assert_in_range(llabs(after - before - by_ns / 1000000000), 0, 5); /* the shim works */
}

static void shifted_down(struct shifted *sh)
{
    server_free(sh->server);
    munmap(sh->offset_ns, sizeof(int64_t));
    remove_folder(sh->folder);
    unsetenv("PAWL_CLOCK_FILE");
}

static void step_forward_is_told_and_tokens_rise(void **state)
{
    struct events events = EVENTS_INIT;
    struct pawl_lock_options opts = lock_options(3000, 0);
    struct pawl_client *a;
    struct pawl_client *b;
    struct pawl_lock *lock;
    struct pawl_lock *next;
    struct shifted sh;

    (void)state;
    shifted_up(&sh);
    a = open_client(sh.server->url, NULL);
    b = open_client(sh.server->url, NULL);
    opts.on_event = on_event;
    opts.on_event_arg = &events;
    lock = take_with(a, "job", &opts);
    shift(&sh, HOUR_NS);
    next = take(b, "job", 3000, 0); /* its "late" is answered by looking at the clock again */
    assert_true(pawl_lock_token(next) > pawl_lock_token(lock));
    EVENTUALLY(4000, events_count(&events, PAWL_EVENT_LOST) == 1);
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_TAKEN);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_TAKEN);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(a);
    pawl_client_close(b);
    shifted_down(&sh);
}

/* The expiry of a dead holder lies an hour ahead: the lease is the most that anybody waits. */
static void step_back_keeps_nobody_out_for_long(void **state)
{
    struct pawl_client *b;
    struct pawl_lock *next;
    struct child *holder;
    struct shifted sh;
    uint64_t token;
    int64_t start_ms;

    (void)state;
    shifted_up(&sh);
    b = open_client(sh.server->url, NULL);
    holder = holder_start(sh.server->url, NULL);
    child_expect(holder, "open PAWL_OK", 5000);
    child_say(holder, "take job 1000 0\n");
    token = strtoull(child_expect(holder, "took PAWL_OK", 5000) + 13, NULL, 10);
    child_free(holder); /* killed */
    shift(&sh, -HOUR_NS);
    assert_true(pttl(sh.server, "job") > 3000000);
    start_ms = now_ms();
    next = take(b, "job", 1000, 10000);
    assert_true(now_ms() - start_ms < slack_ms(4000));
    assert_true(pawl_lock_token(next) > token); /* the counter carries it, the time does not */
    EXPECT_RESULT(give_back(next), 0);
    pawl_client_close(b);
    shifted_down(&sh);
}

static void step_back_does_not_disturb_a_holder(void **state)
{
    struct pawl_client *a;
    struct pawl_lock *lock;
    struct shifted sh;

    (void)state;
    shifted_up(&sh);
    a = open_client(sh.server->url, NULL);
    lock = take(a, "job", 900, 0);
    shift(&sh, -HOUR_NS);
    EVENTUALLY(3000, pttl(sh.server, "job") <= 900); /* the next renewal mends it */
    pause_ms(900);
    EVENTUALLY(2000, pawl_lock_check(lock) == 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(a);
    shifted_down(&sh);
}

static void clock_far_ahead_for_a_moment(void **state)
{
    static struct book book;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *a;
    struct pawl_client *b;
    struct shifted sh;
    uint64_t last = 0;

    (void)state;
    shifted_up(&sh);
    book_init(&book);
    opts.log = book_write;
    opts.log_arg = &book;
    a = open_client(sh.server->url, &opts);
    b = open_client(sh.server->url, NULL);
    for (int i = 0; i < 6; i++) {
        struct pawl_lock *lock;

        if (i == 2)
            shift(&sh, 48 * HOUR_NS);
        if (i == 4)
            shift(&sh, -48 * HOUR_NS);
        lock = take(i % 2 == 0 ? a : b, "job", 1000, slack_ms(3000));
        assert_true(pawl_lock_token(lock) > last);
        last = pawl_lock_token(lock);
        EXPECT_RESULT(give_back(lock), 0);
    }
    /* Once the counter is gone too, a client that saw the far token must not impose it. */
    server_do(sh.server, "FLUSHALL");
    EXPECT_RESULT(give_back(take(a, "job", 1000, 1000)), 0);
    EXPECT_RESULT(give_back(take(b, "job", 1000, 1000)), 0);
    pawl_client_close(a);
    pawl_client_close(b);
    shifted_down(&sh);
}

/* "Late" is tried again at once, with the time that the answer told; late again and again is a
 * refusal. */
static void always_late_is_told(void **state)
{
    struct pawl_lock_options opts = lock_options(1000, 0);
    struct pawl_client *client;
    struct relay *relay;
    struct shifted sh;
    struct done done = { 0 };

    (void)state;
    shifted_up(&sh);
    relay = relay_start(sh.server->socket);
    client = open_client(relay_url(relay), NULL);
    EXPECT_RESULT(give_back(take(client, "warm", 1000, 0)), 0);
    relay_delay(relay, RELAY_UP, 300, 300);
    EXPECT_RESULT(pawl_lock_acquire_async(client, "job", 3, &opts, on_acquired, &done, NULL), 0);
    for (int i = 0; i < 8 && done.n == 0; i++) {
        size_t n = relay_bytes(relay, RELAY_UP);

        dispatch_for(client, 50);
        shift(&sh, HOUR_NS); /* while the attempt is on its way */
        EVENTUALLY(2000, relay_bytes(relay, RELAY_UP) != n || fd_readable(pawl_client_fd(client)));
        dispatch_for(client, 20);
    }
    await_done(client, &done, 0);
    EXPECT_RESULT(done.result, PAWL_ELATE);
    assert_int_equal(pawl_result_class(PAWL_ELATE), PAWL_CLASS_REFUSED);
    relay_delay(relay, RELAY_UP, 0, 0);
    assert_false(exists(sh.server, "job"));
    EXPECT_RESULT(give_back(take(client, "job", 1000, 3000)), 0);
    pawl_client_close(client);
    relay_free(relay);
    shifted_down(&sh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(frozen_machine_confirms_before_it_believes),
        SERVED(unrenewed_hold_counts_a_freeze_as_time),
        cmocka_unit_test(step_forward_is_told_and_tokens_rise),
        cmocka_unit_test(step_back_keeps_nobody_out_for_long),
        cmocka_unit_test(step_back_does_not_disturb_a_holder),
        cmocka_unit_test(clock_far_ahead_for_a_moment),
        cmocka_unit_test(always_late_is_told),
    };

    return RUN_SERVED(tests);
}
