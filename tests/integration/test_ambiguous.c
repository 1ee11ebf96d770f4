/* Lost, late and repeated answers: whatever was executed, counts are right and nobody is locked
 * out by a ghost. */
#include "integration/harness.h"

static struct pawl_client *open_impatient(const char *url)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    opts.command_ms = 250;
    opts.connect_ms = 1000;
    return open_client(url, &opts);
}

/* The server granted and the answer was cut off: the same call finds its own grant. */
static void call_recognises_its_own_grant(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));

    for (int i = 0; i < 5; i++) {
        struct pawl_owner *owner = new_owner(NULL);
        struct pawl_lock *lock;

        EXPECT_RESULT(give_back(take(client, "warm", 1000, 5000)), 0);
        relay_cut_after(relay, RELAY_DOWN, 1);
        lock = take_as(client, "job", owner, 20000, slack_ms(5000));
        assert_int_equal(pawl_lock_count(lock), 1);
        assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), 1);
        EXPECT_RESULT(give_back(lock), 0);
        assert_false(exists(s, "job"));
        pawl_owner_free(owner);
    }
    pawl_client_close(client);
    relay_free(relay);
}

static void resent_acquire_counts_once(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));
    struct pawl_owner *owner = new_owner(NULL);
    struct pawl_lock *lock;

    relay_hold_present(relay, RELAY_DOWN); /* executed, answered, never heard */
    lock = take_as(client, "job", owner, 20000, slack_ms(5000));
    relay_pass_held(relay);
    assert_int_equal(pawl_lock_count(lock), 1);
    assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), 1);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    server_do(s, "CLIENT PAUSE 500"); /* longer than the command's time */
    lock = take_as(client, "job", owner, 20000, slack_ms(5000));
    assert_int_equal(server_int(s, "HGET job %s", pawl_owner_text(owner)), 1);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    pawl_owner_free(owner);
    pawl_client_close(client);
    relay_free(relay);
}

/* Try 1 is delayed, try 2 granted and released, then try 1 arrives. */
static void delayed_first_try_is_no_ghost(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_lock *lock;

    EXPECT_RESULT(give_back(take(client, "warm", 1000, 5000)), 0);
    relay_hold_present(relay, RELAY_UP);
    lock = take(client, "job", 30000, slack_ms(5000));
    EXPECT_RESULT(give_back(lock), 0);
    assert_true(relay_held(relay) > 0);
    assert_false(exists(s, "job"));
    relay_pass_held(relay);
    EVENTUALLY(2000, relay_held(relay) == 0);
    ALWAYS(300, !exists(s, "job"));
    EXPECT_RESULT(give_back(take(b, "job", 5000, 0)), 0);
    pawl_client_close(client);
    pawl_client_close(b);
    relay_free(relay);
}

/* A call that ends without a grant gives back what may have been granted. */
static void failed_call_leaves_the_lock_to_others(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));
    struct pawl_client *b = open_client(s->url, NULL);
    int64_t start_ms;

    for (int i = 0; i < 2; i++) {
        EXPECT_RESULT(give_back(take(client, "warm", 1000, 5000)), 0);
        relay_hold(relay, RELAY_DOWN, true); /* all connections, for longer than the wait */
        EXPECT_RESULT(refuse(client, "job", 60000, i * 700), PAWL_EUNKNOWN);
        assert_true(exists(s, "job"));
        assert_true(strlen(pawl_error_detail()) > 0);
        relay_hold(relay, RELAY_DOWN, false);
        start_ms = now_ms();
        EXPECT_RESULT(give_back(take(b, "job", 5000, 20000)), 0);
        assert_true(now_ms() - start_ms < slack_ms(5000)); /* not the lease of 60 s */
    }
    pawl_client_close(client);
    pawl_client_close(b);
    relay_free(relay);
}

/* A worker loop under one owner, one of its releases is lost. */
static void lost_release_does_not_fake_a_nested_hold(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));
    struct pawl_client *b = open_client(s->url, NULL);
    struct pawl_owner *owner = new_owner("worker");

    for (int i = 0; i < 8; i++) {
        struct pawl_lock *lock = take_as(client, "job", owner, 2000, slack_ms(5000));

        assert_int_equal(pawl_lock_count(lock), 1);
        if (i == 2) {
            relay_drop(relay, RELAY_UP, true);
            (void)pawl_lock_release(lock);
            relay_drop(relay, RELAY_UP, false);
            relay_break(relay);
        } else {
            EXPECT_RESULT(pawl_lock_release(lock), 0);
        }
        pawl_lock_free(lock);
        EXPECT_RESULT(give_back(take(b, "job", 2000, 5000)), 0); /* B has its turn each time */
    }
    EVENTUALLY(2000, !exists(s, "job"));
    pawl_owner_free(owner);
    pawl_client_close(client);
    pawl_client_close(b);
    relay_free(relay);
}

/* ---- a late answer is never read as the next one's ---- */

static void late_answer_is_nobody_elses(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    struct pawl_client *client = open_impatient(relay_url(relay));
    char key[16];

    foreign_hash(s, "busy", "stranger", 60000);
    for (int i = 0; i < 6; i++) {
        struct pawl_lock_info *info = NULL;
        uint64_t tokens[5];
        struct pawl_lock *locks[5];
        int rc;

        EXPECT_RESULT(give_back(take(client, "warm", 1000, slack_ms(5000))), 0);
        relay_hold_present(relay, RELAY_DOWN);
        rc = refuse(client, "busy", 1000, 300); /* its answer comes when nobody waits any more */
        assert_true(rc == PAWL_TIMEOUT || rc < 0);
        relay_pass_held(relay);
        for (int j = 0; j < 5; j++) {
            snprintf(key, sizeof key, "job%d", j);
            locks[j] = take(client, key, 20000, slack_ms(5000));
            tokens[j] = pawl_lock_token(locks[j]);
            assert_int_equal(server_int(s, "HGET %s %s", key, pawl_lock_owner(locks[j])), 1);
        }
        EXPECT_RESULT(refuse(client, "job1", 1000, 0), PAWL_BUSY);
        EXPECT_RESULT(pawl_inspect(client, "job3", 4, &info), 0);
        assert_true(info->token == tokens[3]);
        assert_string_equal(info->owner, pawl_lock_owner(locks[3]));
        pawl_lock_info_free(info);
        for (int j = 0; j < 5; j++)
            EXPECT_RESULT(give_back(locks[j]), 0);
    }
    pawl_client_close(client);
    relay_free(relay);
}

struct user {
    struct pawl_client *client;
    int number;
    int n_bad;
};

static void *use_own_key(void *arg)
{
    struct user *u = arg;
    char key[16];

    snprintf(key, sizeof key, "own%d", u->number);
    for (int i = 0; i < 20; i++) {
        struct pawl_lock_options opts = lock_options(5000, 20000);
        struct pawl_lock *lock = NULL;
        struct pawl_lock_info *info = NULL;

        if (pawl_lock_acquire(u->client, key, strlen(key), &opts, &lock) != 0 ||
            pawl_inspect(u->client, key, strlen(key), &info) != 0 ||
            info->token != pawl_lock_token(lock) ||
            strcmp(info->owner, pawl_lock_owner(lock)) != 0 || pawl_lock_release(lock) != 0)
            u->n_bad++;
        pawl_lock_info_free(info);
        pawl_lock_free(lock);
    }
    return NULL;
}

/* One slow command among many threads: the connection's limit is not the callers', and answers
 * find their askers. */
static void slow_command_among_many_threads(void **state)
{
    enum { N = 20 };
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct user users[N];
    pthread_t threads[N];

    for (int i = 0; i < N; i++) {
        users[i] = (struct user){ client, i, 0 };
        pthread_create(&threads[i], NULL, use_own_key, &users[i]);
    }
    server_do(s, "DEBUG SLEEP 0.5"); /* half of the command's time */
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(users[i].n_bad, 0);
    assert_int_equal(leftovers(s), 0);
    pawl_client_close(client);
}

/* ---- killed at any instant ---- */

static void killed_client_leaves_no_key_without_expiry(void **state)
{
    int rounds = getenv("PAWL_SANITIZE") == NULL ? 25 : 5;
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    unsigned seed = 107;

    relay_delay(relay, RELAY_UP, 0, 3);
    for (int i = 0; i < rounds; i++) {
        struct child *holder = holder_start(relay_url(relay), NULL);

        child_expect(holder, "open PAWL_OK", 5000);
        child_say(holder, "churn job 500\n");
        pause_ms(30 + rand_r(&seed) % 60);
        child_free(holder); /* SIGKILL */
        assert_int_equal(immortals(s), 0);
    }
    EVENTUALLY(3000, !exists(s, "job"));
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(call_recognises_its_own_grant),
        SERVED(resent_acquire_counts_once),
        SERVED(delayed_first_try_is_no_ghost),
        SERVED(failed_call_leaves_the_lock_to_others),
        SERVED(lost_release_does_not_fake_a_nested_hold),
        SERVED(late_answer_is_nobody_elses),
        SERVED(slow_command_among_many_threads),
        SERVED(killed_client_leaves_no_key_without_expiry),
    };

    return RUN_SERVED(tests);
}
