/* Tests of an acquire in the store's queue: the rules of wait.h. */
#include "wait_run.h"

#define CLAIM_MARGIN_MS 50 /* of the lease used here */

/* An event with the send time of the request whose answer it is. */
static void step_sent(struct run *r, enum pawli_wait_event_kind kind, int code, int64_t sent_ns)
{
    struct pawli_wait_event ev = {
        .kind = kind, .now_ns = r->now_ns, .code = code, .pttl_ms = LEASE_MS, .sent_ns = sent_ns
    };

    pawli_wait_step(&r->wait, &ev, &r->fx);
}

static void message(struct run *r)
{
    step_sent(r, PAWLI_WAIT_GRANTED, 0, 0);
}

static void checked(struct run *r, int code, int64_t sent_ns)
{
    step_sent(r, PAWLI_WAIT_CHECKED, code, sent_ns);
}

/* A wait that joined with the attempt of time 0. */
static void queue(struct run *r)
{
    begin(r, false);
    reply(r, PAWLI_QUEUED);
    assert_int_equal(r->wait.state, PAWLI_WAIT_QUEUED);
    assert_false(r->fx.complete || r->fx.send_acquire || r->fx.send_cancel);
    assert_int_equal(r->fx.wake_ns, LIMIT_MS * MS);
}

static void granted_from(const struct run *r, int64_t base_ns, int64_t pttl_ms, bool claim)
{
    ends(r, 0);
    assert_int_equal(r->fx.base_ns, base_ns);
    assert_int_equal(r->fx.pttl_ms, pttl_ms);
    assert_int_equal(r->fx.claim, claim);
}

static void asks_first(const struct run *r)
{
    assert_true(r->fx.check_now);
    assert_false(r->fx.complete || r->fx.finished || r->fx.send_acquire);
    assert_int_equal(r->wait.state, PAWLI_WAIT_QUEUED);
}

static void a_message_is_believed_from_the_last_answer_that_named_the_id(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    r.now_ns = 300 * MS;
    message(&r);
    granted_from(&r, 0, PAWLI_CLAIM_MS, true);

    queue(&r);
    r.now_ns = 900 * MS;
    checked(&r, PAWLI_QUEUED, 700 * MS);
    r.now_ns = (700 + PAWLI_CLAIM_MS - CLAIM_MARGIN_MS) * MS - 1;
    message(&r);
    granted_from(&r, 700 * MS, PAWLI_CLAIM_MS, true);
}

static void a_message_too_late_is_confirmed_first(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    r.now_ns = (PAWLI_CLAIM_MS - CLAIM_MARGIN_MS) * MS;
    message(&r);
    asks_first(&r);
    checked(&r, 0, r.now_ns);
    granted_from(&r, r.now_ns, LEASE_MS, false);
}

static void a_message_before_the_answer_counts_when_that_says_queued(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    message(&r);
    assert_false(r.fx.complete || r.fx.check_now);
    r.now_ns = 10 * MS;
    reply(&r, PAWLI_QUEUED);
    granted_from(&r, 0, PAWLI_CLAIM_MS, true);
}

static void a_message_proves_that_an_unanswered_attempt_joined(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    message(&r);
    r.now_ns = 10 * MS;
    reply(&r, PAWL_EUNKNOWN);
    granted_from(&r, 0, PAWLI_CLAIM_MS, true);
}

static void a_message_while_asleep_is_followed_by_an_attempt_at_once(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_EUNKNOWN);
    sleeps(&r);
    message(&r);
    tries(&r);
}

static void in_doubt_no_message_is_believed_unconfirmed(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_EUNKNOWN);
    wake(&r);
    reply(&r, PAWLI_QUEUED);
    message(&r);
    asks_first(&r);
}

static void a_grant_in_another_answer_counts_from_that_request(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    r.now_ns = 2000 * MS;
    step_sent(&r, PAWLI_WAIT_GRANTED, 0, 1900 * MS);
    granted_from(&r, 1900 * MS, PAWLI_CLAIM_MS, true);
}

static void a_lost_place_is_taken_again_under_a_new_id(void **state)
{
    struct run r;

    (void)state;
    for (int doubt = 0; doubt < 2; doubt++) {
        begin(&r, false);
        if (doubt) {
            reply(&r, PAWL_EUNKNOWN);
            wake(&r);
        }
        reply(&r, PAWLI_QUEUED);
        checked(&r, PAWL_FREE, r.now_ns);
        tries(&r);
        assert_true(r.fx.new_id);
        assert_int_equal(r.fx.bury, doubt);
        assert_int_equal(r.wait.missed, 1);
        reply(&r, 0);
        ends(&r, 0);
        assert_int_equal(r.fx.base_ns, 0);
    }
}

static void a_place_taken_again_begins_afresh(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_EUNKNOWN);
    wake(&r);
    message(&r);
    reply(&r, PAWLI_QUEUED);
    asks_first(&r);
    r.now_ns = 3000 * MS;
    checked(&r, PAWL_FREE, r.now_ns);
    tries(&r);
    r.now_ns = 3010 * MS;
    reply(&r, PAWLI_QUEUED); /* nobody told of the new id */
    assert_false(r.fx.complete || r.fx.check_now);
    message(&r); /* and nothing of it is in doubt; it counts from the new attempt */
    granted_from(&r, 3000 * MS, PAWLI_CLAIM_MS, true);
}

static void a_lost_place_in_doubt_leaves_no_doubt_about_the_new_one(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    reply(&r, PAWL_EUNKNOWN);
    wake(&r);
    reply(&r, PAWLI_QUEUED);
    checked(&r, PAWL_FREE, r.now_ns);
    assert_true(r.fx.bury);
    reply(&r, PAWL_BUSY);
    cancel(&r);
    ends(&r, PAWL_CANCELED); /* the old id was buried; the new one is clean */
}

static void joining_forgets_what_failed_before(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, 1);
    checked(&r, PAWL_ECONNECT, 1);
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, 1);
    checked(&r, PAWL_FREE, 1);
    tries(&r);
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, 1); /* of others; late */
    reply(&r, PAWL_ECONNECT);
    wake(&r);
    reply(&r, PAWLI_QUEUED);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_TIMEOUT);
}

static void a_message_too_late_for_an_unanswered_attempt_is_asked_about_by_the_next(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    message(&r);
    r.now_ns = 2000 * MS;
    reply(&r, PAWL_EUNKNOWN);
    sleeps(&r);
    assert_false(r.fx.check_now);
}

static void a_failed_recheck_changes_nothing_before_the_limit(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    checked(&r, PAWL_ECONNECT, 0);
    assert_int_equal(r.wait.state, PAWLI_WAIT_QUEUED);
    assert_false(r.fx.complete || r.fx.send_acquire);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_EUNKNOWN);
    cancels(&r, false);
}

static void a_recheck_that_will_never_succeed_ends_the_wait(void **state)
{
    static const int codes[] = { PAWL_EWRONGTYPE, PAWL_ENOPERM };

    (void)state;
    for (size_t i = 0; i < N_OF(codes); i++) {
        struct run r;

        queue(&r);
        r.now_ns = 1000 * MS;
        checked(&r, codes[i], 900 * MS);
        answers(&r, codes[i]);
        cancels(&r, false);
    }
}

static void at_the_limit_the_queue_is_left(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    r.now_ns = (LIMIT_MS - 199) * MS;
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, r.now_ns);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_TIMEOUT);
    cancels(&r, false);

    queue(&r);
    r.now_ns = (LIMIT_MS - 200) * MS;
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, r.now_ns);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_EUNKNOWN);
    cancels(&r, false);
}

static void an_answered_recheck_is_no_longer_waited_for(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    step_sent(&r, PAWLI_WAIT_CHECKING, 0, 1);
    checked(&r, PAWLI_QUEUED, 1);
    tick_at(&r, LIMIT_MS * MS);
    answers(&r, PAWL_TIMEOUT);
}

static void cancel_leaves_the_queue(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    cancel(&r);
    answers(&r, PAWL_CANCELED);
    cancels(&r, false);
    cleaned(&r, PAWL_NOT_OWNER);
    assert_true(r.fx.finished);
}

static void an_orphan_that_joined_leaves_the_queue(void **state)
{
    struct run r;

    (void)state;
    begin(&r, false);
    cancel(&r);
    message(&r);
    assert_false(r.fx.send_cancel || r.fx.complete);
    reply(&r, PAWLI_QUEUED);
    cancels(&r, false);
}

static void cleaning_lasts_for_a_lease_from_the_last_place(void **state)
{
    struct run r;

    (void)state;
    queue(&r);
    r.now_ns = 1000 * MS;
    checked(&r, PAWLI_QUEUED, 900 * MS);
    cancel(&r);
    r.now_ns = (LEASE_MS + 899) * MS;
    cleaned(&r, PAWL_ECONNECT);
    assert_int_equal(r.fx.wake_ns, (LEASE_MS + 900) * MS);
}

static void an_inbox_ends_the_sleep_of_a_wait_but_not_of_a_single_try(void **state)
{
    struct run r;

    (void)state;
    for (int once = 0; once < 2; once++) {
        begin(&r, once != 0);
        reply(&r, once ? PAWL_EUNKNOWN : PAWL_BUSY);
        sleeps(&r);
        step_sent(&r, PAWLI_WAIT_INBOX, 0, 0);
        if (once)
            sleeps(&r);
        else
            tries(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_believed_from_the_last_answer_that_named_the_id),
        cmocka_unit_test(a_message_too_late_is_confirmed_first),
        cmocka_unit_test(a_message_before_the_answer_counts_when_that_says_queued),
        cmocka_unit_test(a_message_proves_that_an_unanswered_attempt_joined),
        cmocka_unit_test(a_message_while_asleep_is_followed_by_an_attempt_at_once),
        cmocka_unit_test(in_doubt_no_message_is_believed_unconfirmed),
        cmocka_unit_test(a_grant_in_another_answer_counts_from_that_request),
        cmocka_unit_test(a_lost_place_is_taken_again_under_a_new_id),
        cmocka_unit_test(a_place_taken_again_begins_afresh),
        cmocka_unit_test(a_lost_place_in_doubt_leaves_no_doubt_about_the_new_one),
        cmocka_unit_test(joining_forgets_what_failed_before),
        cmocka_unit_test(a_message_too_late_for_an_unanswered_attempt_is_asked_about_by_the_next),
        cmocka_unit_test(a_failed_recheck_changes_nothing_before_the_limit),
        cmocka_unit_test(a_recheck_that_will_never_succeed_ends_the_wait),
        cmocka_unit_test(at_the_limit_the_queue_is_left),
        cmocka_unit_test(an_answered_recheck_is_no_longer_waited_for),
        cmocka_unit_test(cancel_leaves_the_queue),
        cmocka_unit_test(an_orphan_that_joined_leaves_the_queue),
        cmocka_unit_test(cleaning_lasts_for_a_lease_from_the_last_place),
        cmocka_unit_test(an_inbox_ends_the_sleep_of_a_wait_but_not_of_a_single_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
