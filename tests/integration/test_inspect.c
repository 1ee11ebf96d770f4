/* What operators see and may do: inspect and force-release. */
#include "integration/harness.h"

#include <unistd.h>

static struct pawl_lock_info *look(struct pawl_client *client, const char *key)
{
    struct pawl_lock_info *info = NULL;

    EXPECT_RESULT(pawl_inspect(client, key, strlen(key), &info), 0);
    return info;
}

static void inspect_tells_who_since_when_and_how_long(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner("user u001");
    struct pawl_lock *outer = take_as(client, "job", owner, 5000, 0);
    struct pawl_lock *inner = take_as(client, "job", owner, 5000, 0);
    struct pawl_lock_info *info = look(client, "job");
    struct pawl_lock_info *none = NULL;
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    assert_int_equal(info->kind, PAWL_KIND_PAWL);
    assert_string_equal(info->owner, pawl_owner_text(owner));
    assert_int_equal(info->count, 2);
    assert_int_equal(info->n_owners, 1);
    assert_true(info->token == pawl_lock_token(outer));
    assert_in_range(info->remaining_ms, 1, 5000);
    assert_int_equal(info->lease_ms, 5000);
    assert_in_range(info->held_ms, 0, slack_ms(3000));
    assert_true(info->since_ms > INT64_C(1700000000000));
    assert_int_equal(info->pid, getpid());
    assert_true(strlen(info->host) > 0);
    assert_memory_equal(info->host, host, strlen(info->host));
    assert_true(info->process_start > 0);
    assert_true(strlen(info->boot_id) > 0);
    assert_false(info->revoked);
    pawl_lock_info_free(info);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(give_back(outer), 0);
    EXPECT_RESULT(pawl_inspect(client, "job", 3, &none), PAWL_FREE);
    assert_null(none);
    EXPECT_RESULT(pawl_inspect(client, "job", 3, NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_inspect(client, "", 0, &none), PAWL_EKEY);
    pawl_lock_info_free(NULL);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

static void inspect_tells_of_locks_of_other_makes(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_info *info;

    server_do(s, "SET text stranger PX 5000");
    info = look(client, "text");
    assert_int_equal(info->kind, PAWL_KIND_STRING);
    assert_string_equal(info->owner, "stranger");
    assert_in_range(info->remaining_ms, 1, 5000);
    pawl_lock_info_free(info);
    server_do(s, "HSET hash someone:7 3");
    info = look(client, "hash");
    assert_int_equal(info->kind, PAWL_KIND_HASH);
    assert_string_equal(info->owner, "someone:7");
    assert_int_equal(info->count, 3);
    assert_int_equal(info->remaining_ms, -1); /* no expiry: an alarm */
    pawl_lock_info_free(info);
    server_do(s, "HSET hash other:9 1");
    info = look(client, "hash");
    assert_int_equal(info->n_owners, 2);
    pawl_lock_info_free(info);
    server_do(s, "RPUSH list x");
    info = NULL;
    EXPECT_RESULT(pawl_inspect(client, "list", 4, &info), PAWL_EWRONGTYPE);
    assert_null(info);
    pawl_client_close(client);
}

static void inspect_is_printable_whatever_lies_there(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock_info *info;

    server_do(s, "SET text %b", "esc\x1b[2J\nnew\0line", (size_t)16);
    info = look(client, "text");
    for (const char *c = info->owner; *c != '\0'; c++)
        assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    pawl_lock_info_free(info);
    pawl_client_close(client);
}

static void inspect_shows_the_waiters(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock = take(a, "job", 20000, 0);
    struct done done[3];
    struct pawl_lock_info *info;
    size_t n_waiters;
    int64_t start_ms;

    memset(done, 0, sizeof done);
    for (int i = 0; i < 3; i++) {
        struct pawl_lock_options opts = lock_options(1000, 20000);

        EXPECT_RESULT(pawl_lock_acquire_async(b, "job", 3, &opts, on_acquired, &done[i], NULL), 0);
    }
    do {
        pause_ms(10);
        info = look(a, "job");
        n_waiters = info->n_waiters;
        if (n_waiters == 3) {
            assert_int_equal(info->waiters[0].pid, getpid());
            assert_int_equal(strspn(info->waiters[0].owner, "0123456789abcdef"), 32);
        }
        pawl_lock_info_free(info);
    } while (n_waiters < 3);
    EXPECT_RESULT(give_back(lock), 0);
    start_ms = now_ms();
    for (int n = 0; n < 3;) { /* in the order of the queue */
        struct done *next = done[0].lock != NULL   ? &done[0]
                            : done[1].lock != NULL ? &done[1]
                                                   : &done[2];

        assert_true(now_ms() - start_ms < slack_ms(10000));
        dispatch_for(b, 20);
        n += next->lock != NULL;
        pawl_lock_free(next->lock);
        next->lock = NULL;
    }
    pawl_client_close(a);
    pawl_client_close(b);
}

/* ---- force-release ---- */

/* By default the holder knows before the lock passes on. */
static void revoked_lock_passes_on_when_its_lease_ends(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock_options opts = lock_options(1500, 0);
    struct pawl_lock_info *info;
    struct pawl_lock *lock;
    struct pawl_lock *next;

    opts.on_event = on_event;
    opts.on_event_arg = &events;
    lock = take_with(a, "job", &opts);
    EXPECT_RESULT(pawl_force_release(b, "job", 3, pawl_lock_token(lock) + 1, 0), PAWL_NOT_OWNER);
    EXPECT_RESULT(pawl_force_release(b, "job", 3, pawl_lock_token(lock), 0), 0);
    info = look(b, "job");
    assert_true(info->revoked);
    pawl_lock_info_free(info);
    next = take(b, "job", 5000, 5000);
    /* The grant comes after the notice, and the notice is one. */
    assert_int_equal(events_count(&events, PAWL_EVENT_LOST), 1);
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_REVOKED);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_REVOKED);
    EXPECT_RESULT(give_back(lock), PAWL_LOST_REVOKED);
    EXPECT_RESULT(pawl_lock_check(next), 0);
    EXPECT_RESULT(give_back(next), 0);
    EXPECT_RESULT(pawl_force_release(b, "job", 3, 0, 0), PAWL_FREE);
    EXPECT_RESULT(pawl_force_release(b, "job", 3, 0, 0x40), PAWL_EUSAGE);
    pawl_client_close(a);
    pawl_client_close(b);
}

/* What an extend learns counts at once, and not from the next renewal on. */
static void extend_that_finds_the_lock_gone_ends_the_hold(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 30000, 0);

    EXPECT_RESULT(pawl_force_release(client, "job", 3, 0, 0), 0);
    EXPECT_RESULT(pawl_lock_extend(lock, 20000), PAWL_LOST_REVOKED);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_REVOKED);
    pawl_lock_free(lock);
    server_do(s, "DEL job");
    lock = take(client, "job", 30000, 0);
    server_do(s, "DEL job");
    EXPECT_RESULT(pawl_lock_extend(lock, 20000), PAWL_LOST_TAKEN);
    EXPECT_RESULT(pawl_lock_check(lock), PAWL_LOST_TAKEN);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void force_now_passes_on_at_once(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_lock_options opts = lock_options(1500, 0);
    struct pawl_lock *lock;
    struct pawl_lock *next;

    opts.on_event = on_event;
    opts.on_event_arg = &events;
    lock = take_with(a, "job", &opts);
    EXPECT_RESULT(pawl_force_release(b, "job", 3, 0, PAWL_FORCE_NOW), 0);
    next = take(b, "job", 5000, 0);
    EVENTUALLY(2000, events_count(&events, PAWL_EVENT_LOST) == 1); /* at its next renewal */
    assert_int_equal(events.last[PAWL_EVENT_LOST], PAWL_LOST_TAKEN);
    ALWAYS(1500, exists(s, "job")); /* and what it does then leaves the new holder alone */
    EXPECT_RESULT(pawl_lock_check(next), 0);
    pawl_lock_free(lock);
    EXPECT_RESULT(give_back(next), 0);
    server_do(s, "SET job stranger");
    assert_true(pawl_force_release(b, "job", 3, 0, 0) < 0);
    assert_true(exists(s, "job"));
    EXPECT_RESULT(pawl_force_release(b, "job", 3, 0, PAWL_FORCE_NOW), 0);
    assert_false(exists(s, "job"));
    pawl_client_close(a);
    pawl_client_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(inspect_tells_who_since_when_and_how_long),
        SERVED(inspect_tells_of_locks_of_other_makes),
        SERVED(inspect_is_printable_whatever_lies_there),
        SERVED(inspect_shows_the_waiters),
        SERVED(revoked_lock_passes_on_when_its_lease_ends),
        SERVED(extend_that_finds_the_lock_gone_ends_the_hold),
        SERVED(force_now_passes_on_at_once),
    };

    return RUN_SERVED(tests);
}
