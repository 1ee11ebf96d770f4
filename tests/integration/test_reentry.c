/* The same owner again: counts, tokens, leases and ends that nesting must not disturb. */
#include "integration/harness.h"

static void same_owner_enters_again_and_the_last_release_frees(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner("nested");
    struct pawl_lock *locks[3];

    for (int i = 0; i < 3; i++) {
        locks[i] = take_as(client, "job", owner, 5000, 0);
        assert_int_equal(pawl_lock_count(locks[i]), i + 1);
        assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), i + 1);
        assert_int_equal(pawl_lock_token(locks[i]), pawl_lock_token(locks[0]));
    }
    EXPECT_RESULT(pawl_lock_release(locks[1]), PAWL_STILL_HELD); /* in any order */
    EXPECT_RESULT(pawl_lock_release(locks[1]), PAWL_NOT_OWNER); /* and each once */
    EXPECT_RESULT(pawl_lock_release(locks[0]), PAWL_STILL_HELD);
    EXPECT_RESULT(pawl_lock_check(locks[2]), 0);
    assert_true(exists(s, "job"));
    EXPECT_RESULT(pawl_lock_release(locks[2]), 0);
    assert_false(exists(s, "job"));
    for (int i = 0; i < 3; i++)
        pawl_lock_free(locks[i]);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

static void hold_follows_the_owner_across_clients(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner("request 9");
    struct pawl_owner *same = NULL;
    struct pawl_lock *outer = take_as(a, "job", owner, 5000, 0);
    struct pawl_lock *inner;

    EXPECT_RESULT(pawl_owner_parse(pawl_owner_text(owner), &same), 0);
    inner = take_as(b, "job", same, 5000, 0);
    assert_int_equal(pawl_lock_count(inner), 2);
    assert_int_equal(pawl_lock_token(inner), pawl_lock_token(outer));
    EXPECT_RESULT(give_back(outer), PAWL_STILL_HELD);
    EXPECT_RESULT(pawl_lock_check(inner), 0);
    EXPECT_RESULT(give_back(inner), 0);
    pawl_owner_free(owner);
    pawl_owner_free(same);
    pawl_client_close(a);
    pawl_client_close(b);
}

struct passed {
    struct pawl_client *client;
    const struct pawl_owner *owner;
    struct pawl_lock *lock;
    int results[2];
};

static void *other_thread(void *arg)
{
    struct passed *p = arg;
    struct pawl_lock_options opts = lock_options(5000, 0);
    struct pawl_lock *none = NULL;

    p->results[0] = pawl_lock_acquire(p->client, "job", 3, &opts, &none);
    p->results[1] = pawl_lock_release(p->lock);
    return NULL;
}

/* Neither the thread nor the connection is the owner. */
static void hold_does_not_follow_the_thread(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct passed p = { client, NULL, take(client, "job", 5000, 0), { -1, -1 } };
    pthread_t thread;

    EXPECT_RESULT(refuse(client, "job", 5000, 0), PAWL_BUSY); /* the same thread, another task */
    pthread_create(&thread, NULL, other_thread, &p);
    pthread_join(thread, NULL);
    EXPECT_RESULT(p.results[0], PAWL_BUSY);
    EXPECT_RESULT(p.results[1], 0);
    pawl_lock_free(p.lock);
    pawl_client_close(client);
}

static void current_owner_scope_nests_and_ends(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *one = new_owner("one");
    struct pawl_owner *two = new_owner("two");
    struct pawl_lock *outer;
    struct pawl_lock *inner;

    EXPECT_RESULT(pawl_owner_leave(), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_owner_enter(NULL), PAWL_EUSAGE);
    EXPECT_RESULT(pawl_owner_enter(one), 0);
    outer = take(client, "job", 5000, 0);
    assert_string_equal(pawl_lock_owner(outer), pawl_owner_text(one));
    EXPECT_RESULT(pawl_owner_enter(two), 0);
    EXPECT_RESULT(refuse(client, "job", 5000, 0), PAWL_BUSY);
    EXPECT_RESULT(pawl_owner_leave(), 0);
    inner = take(client, "job", 5000, 0);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(pawl_owner_leave(), 0);
    EXPECT_RESULT(refuse(client, "job", 5000, 0), PAWL_BUSY);
    EXPECT_RESULT(give_back(outer), 0);
    for (int i = 0; i < 32; i++)
        EXPECT_RESULT(pawl_owner_enter(one), 0);
    EXPECT_RESULT(pawl_owner_enter(one), PAWL_EUSAGE);
    for (int i = 0; i < 32; i++)
        EXPECT_RESULT(pawl_owner_leave(), 0);
    pawl_owner_free(one);
    pawl_owner_free(two);
    pawl_client_close(client);
}

static void owners_that_cannot_be_are_refused(void **state)
{
    static const char *const texts[] = { "",
                                         "short",
                                         "0123456789abcdef0123456789abcdeg",
                                         "0123456789abcdef0123456789abcdef:a\nb",
                                         "0123456789abcdef0123456789abcdef0",
                                         "@123456789abcdef0123456789abcdef" };
    struct pawl_owner *owner = NULL;
    char label[PAWL_LABEL_MAX + 2];

    (void)state;
    memset(label, 'l', sizeof label);
    label[sizeof label - 1] = '\0';
    EXPECT_RESULT(pawl_owner_new(label, &owner), PAWL_EOWNER);
    EXPECT_RESULT(pawl_owner_new("tab\t", &owner), PAWL_EOWNER);
    for (size_t i = 0; i < N_OF(texts); i++)
        EXPECT_RESULT(pawl_owner_parse(texts[i], &owner), PAWL_EOWNER);
    assert_null(owner);
    label[PAWL_LABEL_MAX] = '\0';
    EXPECT_RESULT(pawl_owner_new(label, &owner), 0);
    assert_int_equal(strlen(pawl_owner_text(owner)), PAWL_OWNER_TEXT_MAX);
    pawl_owner_free(owner);
    pawl_owner_free(NULL);
}

/* ---- what nesting must not disturb ---- */

static void outer_renewal_keeps_the_longer_lease_of_an_inner_hold(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *outer = take_as(client, "job", owner, 600, 0);
    struct pawl_lock *inner = take_as(client, "job", owner, 20000, 0);

    assert_true(pttl(s, "job") > 15000);
    ALWAYS(1000, pttl(s, "job") > 15000);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    assert_true(pttl(s, "job") > 0);
    EXPECT_RESULT(pawl_lock_check(outer), 0);
    EXPECT_RESULT(give_back(outer), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

static void shorter_or_unrenewed_inner_hold_changes_nothing(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *outer = take_as(client, "job", owner, 3000, 0);
    struct pawl_lock_options opts = lock_options(100, 0);
    struct pawl_lock *inner;

    opts.owner = owner;
    opts.flags = PAWL_NO_RENEW;
    inner = take_with(client, "job", &opts);
    assert_true(pttl(s, "job") > 1500);
    assert_true(pawl_lock_remaining_ms(inner) > 1500); /* the hold is one, and the outer's */
    /* Renewal goes on: after 1.5 leases the lock still stands. */
    ALWAYS(4500, pttl(s, "job") > 500);
    EXPECT_RESULT(pawl_lock_check(outer), 0);
    EXPECT_RESULT(pawl_lock_check(inner), 0);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(give_back(outer), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

static void reentry_never_passes_the_latest_end(void **state)
{
    struct server *s = *state;
    struct pawl_client *a = open_client(s->url, NULL);
    struct pawl_client *b = open_client(s->url, NULL);
    struct events events = EVENTS_INIT;
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock_options opts = lock_options(900, 0);
    int64_t start_ms = now_ms();
    struct pawl_lock *outer;
    struct pawl_lock *inner[2];

    opts.owner = owner;
    opts.max_hold_ms = 900;
    opts.grace_ms = 300;
    opts.on_event = on_event;
    opts.on_event_arg = &events;
    outer = take_with(a, "job", &opts);
    inner[0] = take_as(a, "job", owner, 60000, 0); /* asks for more, and for 180 s at most */
    assert_true(pttl(s, "job") <= 900 + 300 + 50); /* the maximum, grace, margin */
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_EXPIRING) == 1);
    inner[1] = NULL;
    opts = lock_options(60000, 0);
    opts.owner = owner;
    /* While expiring, from a second client too: granted or not, the end stands. */
    (void)pawl_lock_acquire(b, "job", 3, &opts, &inner[1]);
    assert_true(pttl(s, "job") <= 900 + 300 + 50); /* the maximum, grace, margin */
    EVENTUALLY(3000, !exists(s, "job"));
    assert_true(now_ms() - start_ms < 900 + 300 + slack_ms(800));
    EVENTUALLY(3000, events_count(&events, PAWL_EVENT_LOST) == 1);
    EXPECT_RESULT(pawl_lock_check(outer), PAWL_LOST_MAX_HOLD);
    EXPECT_RESULT(pawl_lock_check(inner[0]), PAWL_LOST_MAX_HOLD);
    if (inner[1] != NULL)
        EVENTUALLY(3000, pawl_is_lost(pawl_lock_check(inner[1])));
    pawl_lock_free(inner[0]);
    pawl_lock_free(inner[1]);
    pawl_lock_free(outer);
    pawl_owner_free(owner);
    pawl_client_close(a);
    pawl_client_close(b);
}

static void extend_that_cannot_be_sent_leaves_the_lease_as_before(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 20000, 0);

    server_kill(s);
    EVENTUALLY(5000, pawl_client_ready(client, 0) != 0);
    EXPECT_RESULT(pawl_lock_extend(lock, 200), PAWL_ECONNECT);
    ALWAYS(400, pawl_lock_check(lock) == 0);
    assert_true(pawl_lock_remaining_ms(lock) > 5000);
    server_begin(s);
    pawl_lock_free(lock);
    pawl_client_close(client);
}

static void extend_is_for_the_outermost_hold(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *outer = take_as(client, "job", owner, 2000, 0);
    struct pawl_lock *inner = take_as(client, "job", owner, 2000, 0);
    uint64_t token = pawl_lock_token(outer);

    EXPECT_RESULT(pawl_lock_extend(inner, 60000), PAWL_ENESTED);
    assert_true(pttl(s, "job") <= 2000);
    EXPECT_RESULT(pawl_lock_extend(outer, 60000), 0);
    assert_true(pttl(s, "job") > 50000);
    assert_true(pawl_lock_remaining_ms(outer) > 50000);
    EXPECT_RESULT(pawl_lock_extend(outer, 99), PAWL_ERANGE);
    EXPECT_RESULT(pawl_lock_extend(NULL, 1000), PAWL_EUSAGE);
    assert_int_equal(pawl_lock_token(outer), token);
    EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
    EXPECT_RESULT(pawl_lock_extend(outer, 1000), 0); /* shorter, too */
    assert_in_range(pttl(s, "job"), 1, 1000);
    assert_in_range(pawl_lock_remaining_ms(outer), 1, 1000);
    EXPECT_RESULT(give_back(outer), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

/* ---- afterwards ---- */

static void nothing_mentions_the_key_after_the_last_release(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *locks[3];
    struct monitor *m;

    for (int i = 0; i < 3; i++)
        locks[i] = take_as(client, "job21", owner, 300, 0);
    for (int i = 0; i < 3; i++)
        EXPECT_RESULT(give_back(locks[i]), i < 2 ? PAWL_STILL_HELD : 0);
    m = monitor_start(s);
    ALWAYS(900, monitor_count(m, "job21") == 0);
    monitor_stop(m);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

static long resident_pages(void)
{
    char *text = read_file("/proc/self/statm", NULL);
    long pages = 0;

    assert_int_equal(sscanf(text, "%*d %ld", &pages), 1);
    free(text);
    return pages;
}

static void nesting_for_long_takes_no_memory(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 3000 : 200;
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner(NULL);
    long before = 0;

    for (int i = 0; i < rounds; i++) {
        struct pawl_lock *outer = take_as(client, "job", owner, 5000, 0);
        struct pawl_lock *inner = take_as(client, "job", owner, 5000, 0);

        EXPECT_RESULT(give_back(inner), PAWL_STILL_HELD);
        EXPECT_RESULT(give_back(outer), 0);
        if (i == rounds / 4)
            before = resident_pages();
    }
    if (getenv("PAWL_SANITIZE") == NULL)
        assert_true(resident_pages() - before < 128); /* half a megabyte */
    assert_int_equal(leftovers(s), 0);
    pawl_owner_free(owner);
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(same_owner_enters_again_and_the_last_release_frees),
        SERVED(hold_follows_the_owner_across_clients),
        SERVED(hold_does_not_follow_the_thread),
        SERVED(current_owner_scope_nests_and_ends),
        SERVED(owners_that_cannot_be_are_refused),
        SERVED(outer_renewal_keeps_the_longer_lease_of_an_inner_hold),
        SERVED(shorter_or_unrenewed_inner_hold_changes_nothing),
        SERVED(reentry_never_passes_the_latest_end),
        SERVED(extend_that_cannot_be_sent_leaves_the_lease_as_before),
        SERVED(extend_is_for_the_outermost_hold),
        SERVED(nothing_mentions_the_key_after_the_last_release),
        SERVED(nesting_for_long_takes_no_memory),
    };

    return RUN_SERVED(tests);
}
