/* Decisions of one acquire, see wait.h. Touches no socket, clock or memory but its own. */
#include "core/wait.h"

#include <assert.h>
#include <string.h>

#include <pawl.h>

#include "core/validity.h"
#include "util/clock.h"

/* An attempt younger than this at the limit is ordinary traffic; the last answer still stands. */
#define YOUNG_NS (200 * PAWLI_NS_PER_MS)

#define TO(state) (1u << (PAWLI_WAIT_##state))
static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [PAWLI_WAIT_TRYING] = { "trying", TO(TRYING) | TO(SLEEPING) | TO(QUEUED) | TO(ANSWERED) |
                                          TO(ORPHANED) | TO(CLEANING) },
    [PAWLI_WAIT_SLEEPING] = { "sleeping", TO(TRYING) | TO(ANSWERED) | TO(CLEANING) },
    [PAWLI_WAIT_QUEUED] = { "queued", TO(TRYING) | TO(ANSWERED) | TO(CLEANING) },
    [PAWLI_WAIT_ANSWERED] = { "answered", 0 },
    [PAWLI_WAIT_ORPHANED] = { "orphaned", TO(ANSWERED) | TO(CLEANING) },
    [PAWLI_WAIT_CLEANING] = { "cleaning", TO(ANSWERED) },
};
#undef TO

const char *pawli_wait_state_name(enum pawli_wait_state state)
{
    return states[state].name;
}

static void move(struct pawli_wait *w, enum pawli_wait_state to)
{
    assert((states[w->state].next & (1u << to)) != 0);
    w->state = to;
}

void pawli_wait_init(struct pawli_wait *w, bool once, int64_t limit_ns, int64_t lease_ms,
                     const struct pawli_backoff *backoff)
{
    memset(w, 0, sizeof *w);
    w->state = PAWLI_WAIT_SLEEPING; /* until START */
    w->once = once;
    w->limit_ns = limit_ns;
    w->next_ns = PAWLI_NEVER;
    w->lease_ns = lease_ms * PAWLI_NS_PER_MS;
    w->backoff = *backoff;
}

/* ---- before the answer ---- */

static void try_now(struct pawli_wait *w, int64_t now_ns, struct pawli_wait_effects *fx)
{
    move(w, PAWLI_WAIT_TRYING);
    w->sent_ns = now_ns;
    w->next_ns = PAWLI_NEVER;
    fx->send_acquire = true;
}

static void finish(struct pawli_wait *w, struct pawli_wait_effects *fx)
{
    move(w, PAWLI_WAIT_ANSWERED);
    fx->finished = true;
}

static void cancel_now(struct pawli_wait *w, struct pawli_wait_effects *fx)
{
    w->next_ns = PAWLI_NEVER; /* in flight */
    fx->send_cancel = true;
    fx->tombstone = w->maybe_granted;
}

static void clean(struct pawli_wait *w, struct pawli_wait_effects *fx)
{
    /* What a place in the queue may still turn into is a claim, which is no longer than a lease. */
    int64_t since_ns = w->base_ns > w->sent_ns ? w->base_ns : w->sent_ns;

    move(w, PAWLI_WAIT_CLEANING);
    w->give_up_ns = pawli_after(since_ns, w->lease_ns);
    pawli_backoff_reset(&w->backoff);
    cancel_now(w, fx);
}

/* The caller gets its one answer; what may be left at the store decides what follows. */
static void answer(struct pawli_wait *w, int result, bool in_flight, struct pawli_wait_effects *fx)
{
    fx->complete = true;
    fx->result = result;
    if (result != 0 && in_flight)
        move(w, PAWLI_WAIT_ORPHANED);
    else if (result != 0 && (w->maybe_granted || w->state == PAWLI_WAIT_QUEUED))
        clean(w, fx);
    else
        finish(w, fx);
}

static void answer_at_limit(struct pawli_wait *w, int64_t now_ns, struct pawli_wait_effects *fx)
{
    bool in_flight = w->state == PAWLI_WAIT_TRYING;
    bool queued = w->state == PAWLI_WAIT_QUEUED;
    bool old = in_flight && now_ns - w->sent_ns >= YOUNG_NS;
    int result;

    if (queued)
        old = w->last_failure != 0 || (w->checking_ns != 0 && now_ns - w->checking_ns >= YOUNG_NS);
    if (w->saw_busy && !old)
        result = PAWL_TIMEOUT;
    else if (in_flight || old || w->maybe_granted)
        result = PAWL_EUNKNOWN; /* all other failures say that nothing was executed */
    else if (w->last_failure != 0)
        result = w->last_failure;
    else
        result = PAWL_ECONNECT;
    answer(w, result, in_flight, fx);
}

/* Sleep for the backoff, or less: until the holder's lease has run out by then. */
static void sleep_on(struct pawli_wait *w, const struct pawli_wait_event *ev)
{
    move(w, PAWLI_WAIT_SLEEPING);
    w->next_ns = pawli_after(ev->now_ns, pawli_backoff_next_ns(&w->backoff));
    if (ev->code == PAWL_BUSY && ev->pttl_ms >= 0 && ev->pttl_ms < w->backoff.max_ms) {
        /* The store's keys live through the last millisecond of their expiry. */
        int64_t free_ns = pawli_after(ev->now_ns, (ev->pttl_ms + 1) * PAWLI_NS_PER_MS);

        if (free_ns < w->next_ns)
            w->next_ns = free_ns;
    }
}

/* ---- the queue ---- */

static int64_t claim_ms(const struct pawli_wait *w)
{
    int64_t lease_ms = w->lease_ns / PAWLI_NS_PER_MS;

    return lease_ms < PAWLI_CLAIM_MS ? lease_ms : PAWLI_CLAIM_MS;
}

/* The lock was handed to us at some moment after @base_ns: believe, or ask first. If an earlier
 * attempt under this id was not answered, it may have joined before, been handed the lock and
 * missed it, and its message be late: then @base_ns says nothing of the grant that is told. */
static void granted_since(struct pawli_wait *w, int64_t base_ns, int64_t now_ns,
                          struct pawli_wait_effects *fx)
{
    int64_t claim = claim_ms(w);

    if (!w->maybe_granted &&
        pawli_valid_until_ns(base_ns, w->lease_ns / PAWLI_NS_PER_MS, claim) > now_ns) {
        fx->base_ns = base_ns;
        fx->pttl_ms = claim;
        fx->claim = true;
        answer(w, 0, false, fx);
    } else {
        fx->check_now = true;
    }
}

static void replied_queued(struct pawli_wait *w, const struct pawli_wait_event *ev,
                           struct pawli_wait_effects *fx)
{
    move(w, PAWLI_WAIT_QUEUED);
    w->saw_busy = true;
    w->last_failure = 0;
    w->base_ns = w->sent_ns;
    w->checking_ns = 0;
    if (w->told)
        granted_since(w, w->base_ns, ev->now_ns, fx);
}

static void told(struct pawli_wait *w, const struct pawli_wait_event *ev,
                 struct pawli_wait_effects *fx)
{
    if (w->state == PAWLI_WAIT_QUEUED)
        granted_since(w, ev->sent_ns > w->base_ns ? ev->sent_ns : w->base_ns, ev->now_ns, fx);
    else if (w->state == PAWLI_WAIT_TRYING)
        w->told = true;
    else
        w->next_ns = ev->now_ns; /* the attempt that was not answered did join: ask again */
}

/* Will waiting help? The rest is the program's or an operator's to mend. */
static bool may_pass(int code)
{
    enum pawl_class kind = pawl_result_class(code);

    return kind != PAWL_CLASS_USAGE && kind != PAWL_CLASS_DENIED;
}

/* Its place is gone: a dead inbox, a claim that ended, or a queue that was lost. */
static void rejoin(struct pawli_wait *w, int64_t now_ns, struct pawli_wait_effects *fx)
{
    w->missed++;
    w->base_ns = 0;
    w->told = false;
    fx->new_id = true;
    fx->bury = w->maybe_granted;
    w->maybe_granted = false; /* of the new id nothing is known */
    try_now(w, now_ns, fx);
}

static void checked(struct pawli_wait *w, const struct pawli_wait_event *ev,
                    struct pawli_wait_effects *fx)
{
    w->checking_ns = 0;
    w->last_failure = ev->code < 0 ? ev->code : 0;
    if (ev->code == PAWLI_QUEUED) {
        w->base_ns = ev->sent_ns;
    } else if (ev->code == 0) {
        fx->base_ns = ev->sent_ns;
        fx->pttl_ms = ev->pttl_ms;
        answer(w, 0, false, fx);
    } else if (ev->code == PAWL_FREE) {
        rejoin(w, ev->now_ns, fx);
    } else if (!may_pass(ev->code)) {
        answer(w, ev->code, false, fx);
    }
}

/* ---- replies ---- */

static void replied_busy(struct pawli_wait *w, const struct pawli_wait_event *ev,
                         struct pawli_wait_effects *fx)
{
    w->saw_busy = true;
    w->last_failure = 0;
    if (w->once)
        answer(w, PAWL_BUSY, false, fx);
    else
        sleep_on(w, ev);
}

static void replied_failure(struct pawli_wait *w, const struct pawli_wait_event *ev,
                            struct pawli_wait_effects *fx)
{
    w->saw_busy = false;
    w->last_failure = ev->code;
    switch (pawl_result_class(ev->code)) {
    case PAWL_CLASS_UNKNOWN:
        if (w->told) /* the message proves that the attempt joined, or an earlier one */
            granted_since(w, w->sent_ns, ev->now_ns, fx);
        w->maybe_granted = true;
        if (!fx->complete)
            sleep_on(w, ev);
        fx->check_now = false; /* not queued for sure: the next attempt asks */
        break;
    case PAWL_CLASS_REFUSED:
    case PAWL_CLASS_UNAVAILABLE:
        if (ev->code == PAWL_EQUEUEFULL)
            answer(w, ev->code, false, fx);
        else if (ev->code == PAWL_ELATE && !w->told_late && ev->now_ns < w->limit_ns) {
            w->told_late = true; /* the answer carried the time: now we know better */
            try_now(w, ev->now_ns, fx);
        } else if (w->once && !w->maybe_granted) {
            answer(w, ev->code, false, fx);
        } else {
            sleep_on(w, ev); /* once: to learn what became of the earlier attempt */
        }
        break;
    default:
        answer(w, ev->code, false, fx);
        break;
    }
}

static void replied(struct pawli_wait *w, const struct pawli_wait_event *ev,
                    struct pawli_wait_effects *fx)
{
    assert(w->state == PAWLI_WAIT_TRYING);
    if (ev->code == 0)
        answer(w, 0, false, fx);
    else if (ev->code == PAWLI_QUEUED)
        replied_queued(w, ev, fx);
    else if (ev->code == PAWL_BUSY)
        replied_busy(w, ev, fx);
    else
        replied_failure(w, ev, fx);
}

/* Before the answer: is it time to answer, or to try again? */
static void look(struct pawli_wait *w, int64_t now_ns, struct pawli_wait_effects *fx)
{
    if (now_ns >= w->limit_ns)
        answer_at_limit(w, now_ns, fx);
    else if (w->state == PAWLI_WAIT_SLEEPING && now_ns >= w->next_ns)
        try_now(w, now_ns, fx);
}

static void step_open(struct pawli_wait *w, const struct pawli_wait_event *ev,
                      struct pawli_wait_effects *fx)
{
    assert(ev->kind != PAWLI_WAIT_CLEANED);
    switch (ev->kind) {
    case PAWLI_WAIT_START:
        try_now(w, ev->now_ns, fx);
        return; /* the first try is made even if the limit is nothing */
    case PAWLI_WAIT_CANCEL:
        answer(w, ev->code, w->state == PAWLI_WAIT_TRYING, fx);
        return;
    case PAWLI_WAIT_REPLY:
        replied(w, ev, fx);
        break;
    case PAWLI_WAIT_GRANTED:
        told(w, ev, fx);
        break;
    case PAWLI_WAIT_CHECKING:
        w->checking_ns = ev->sent_ns;
        break;
    case PAWLI_WAIT_INBOX:
        if (w->state == PAWLI_WAIT_SLEEPING && !w->once)
            w->next_ns = ev->now_ns;
        break;
    case PAWLI_WAIT_CHECKED:
        checked(w, ev, fx);
        break;
    case PAWLI_WAIT_UP:
        /* Delays grown while the store was away say nothing about the lock. */
        pawli_backoff_reset(&w->backoff);
        if (w->state == PAWLI_WAIT_SLEEPING && w->last_failure != 0)
            w->next_ns = ev->now_ns;
        break;
    default:
        break;
    }
    if (!fx->complete && !fx->send_acquire)
        look(w, ev->now_ns, fx);
}

/* ---- behind the answer ---- */

/* The attempt that was in flight when the caller was answered. What is told meanwhile changes
 * nothing: its reply will say that it joined, and then it leaves. */
static void step_orphaned(struct pawli_wait *w, const struct pawli_wait_event *ev,
                          struct pawli_wait_effects *fx)
{
    if (ev->kind != PAWLI_WAIT_REPLY)
        return;
    if (pawl_result_class(ev->code) == PAWL_CLASS_UNKNOWN)
        w->maybe_granted = true;
    if (ev->code == 0 || ev->code == PAWLI_QUEUED || w->maybe_granted)
        clean(w, fx);
    else
        finish(w, fx);
}

/* A failure of class USAGE, a key of another type say, means that nothing of ours is there. */
static bool is_clean(int code)
{
    return code >= 0 || pawl_result_class(code) == PAWL_CLASS_USAGE;
}

static void step_cleaning(struct pawli_wait *w, const struct pawli_wait_event *ev,
                          struct pawli_wait_effects *fx)
{
    bool in_flight = w->next_ns == PAWLI_NEVER;

    if (ev->kind == PAWLI_WAIT_CLEANED) {
        assert(in_flight);
        if (is_clean(ev->code) || ev->now_ns >= w->give_up_ns)
            finish(w, fx);
        else
            w->next_ns = pawli_after(ev->now_ns, pawli_backoff_next_ns(&w->backoff));
        return;
    }
    if (in_flight)
        return;
    if (ev->now_ns >= w->give_up_ns)
        finish(w, fx);
    else if (ev->now_ns >= w->next_ns || ev->kind == PAWLI_WAIT_UP)
        cancel_now(w, fx);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t wake_at(const struct pawli_wait *w)
{
    switch (w->state) {
    case PAWLI_WAIT_TRYING:
    case PAWLI_WAIT_QUEUED:
        return w->limit_ns;
    case PAWLI_WAIT_SLEEPING:
        return earlier(w->next_ns, w->limit_ns);
    case PAWLI_WAIT_CLEANING:
        /* A cancel in flight is answered by whatever happens to its connection. */
        return w->next_ns == PAWLI_NEVER ? PAWLI_NEVER : earlier(w->next_ns, w->give_up_ns);
    default:
        return PAWLI_NEVER;
    }
}

void pawli_wait_step(struct pawli_wait *w, const struct pawli_wait_event *ev,
                     struct pawli_wait_effects *ret_do)
{
    struct pawli_wait_effects fx = { .wake_ns = PAWLI_NEVER };

    switch (w->state) {
    case PAWLI_WAIT_TRYING:
    case PAWLI_WAIT_SLEEPING:
    case PAWLI_WAIT_QUEUED:
        step_open(w, ev, &fx);
        break;
    case PAWLI_WAIT_ORPHANED:
        step_orphaned(w, ev, &fx);
        break;
    case PAWLI_WAIT_CLEANING:
        step_cleaning(w, ev, &fx);
        break;
    case PAWLI_WAIT_ANSWERED:
        break;
    }
    fx.wake_ns = wake_at(w);
    *ret_do = fx;
}
