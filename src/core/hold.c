/* Decisions of one hold, see hold.h. Touches no socket, clock or memory but its own. */
#include "core/hold.h"

#include <assert.h>
#include <string.h>

#include <pawl.h>

#include "core/validity.h"
#include "util/clock.h"
#include "util/random.h"

#define TO(state) (1u << (PAWLI_HOLD_##state))
static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [PAWLI_HOLD_HELD] = { "held", TO(EXPIRING) | TO(RELEASING) | TO(ENDED) },
    [PAWLI_HOLD_EXPIRING] = { "expiring", TO(RELEASING) | TO(ENDED) },
    [PAWLI_HOLD_RELEASING] = { "releasing", TO(ENDED) },
    [PAWLI_HOLD_ENDED] = { "ended", 0 },
};
#undef TO

const char *pawli_hold_state_name(enum pawli_hold_state state)
{
    return states[state].name;
}

static void move(struct pawli_hold *h, enum pawli_hold_state to)
{
    assert((states[h->state].next & (1u << to)) != 0);
    h->state = to;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t lease_ns(const struct pawli_hold *h)
{
    return h->lease_ms * PAWLI_NS_PER_MS;
}

static int64_t grace_ns(const struct pawli_hold *h)
{
    return pawli_grace_ns(h->grace_ms, h->lease_ms);
}

static int64_t max_hold_over_ns(const struct pawli_hold *h)
{
    return pawli_after(h->max_end_ns, grace_ns(h));
}

static int64_t valid_until(const struct pawli_hold *h, int64_t sent_ns, int64_t pttl_ms)
{
    int64_t until_ns = pawli_valid_until_ns(sent_ns, h->lease_ms, pttl_ms);

    /* Equal too: which of both went out first is not known. */
    if (sent_ns <= h->short_sent_ns)
        until_ns = earlier(until_ns, h->short_until_ns);
    return earlier(until_ns, max_hold_over_ns(h));
}

/* A third of the lease, less up to a tenth of that, so that holds of one start drift apart. */
static int64_t interval_ns(struct pawli_hold *h)
{
    int64_t third_ns = lease_ns(h) / 3;

    return third_ns - (int64_t)pawli_jitter(&h->backoff.seed, (uint64_t)(third_ns / 10) + 1);
}

/* After a grant with @pttl_ms left, which is less than the lease if the answer to an earlier
 * attempt was lost: two thirds of the lease before the end, as always, but not before the grant. */
static void schedule(struct pawli_hold *h, int64_t pttl_ms)
{
    int64_t left_ms = earlier(pttl_ms, h->lease_ms);
    int64_t early_ns = left_ms * PAWLI_NS_PER_MS - lease_ns(h) / 3 * 2;

    h->renew_at_ns = PAWLI_NEVER;
    if (h->renew_on)
        h->renew_at_ns = h->last_renewed_ns + earlier(interval_ns(h), later(early_ns, 0));
}

void pawli_hold_init(struct pawli_hold *h, int64_t base_ns, int64_t pttl_ms, int64_t lease_ms,
                     int64_t max_hold_ms, int64_t grace_ms, bool renew,
                     const struct pawli_backoff *backoff)
{
    memset(h, 0, sizeof *h);
    h->lease_ms = lease_ms;
    /* A re-entry with a longer lease must not make the grace longer, and the end later. */
    h->grace_ms = pawli_grace_ns(grace_ms, lease_ms) / PAWLI_NS_PER_MS;
    h->max_end_ns = PAWLI_NEVER;
    if (max_hold_ms != PAWL_UNLIMITED)
        h->max_end_ns = pawli_after(base_ns, max_hold_ms * PAWLI_NS_PER_MS);
    h->renew_on = renew;
    h->backoff = *backoff;
    h->last_renewed_ns = base_ns;
    h->valid_until_ns = valid_until(h, base_ns, pttl_ms);
    schedule(h, pttl_ms);
}

void pawli_hold_claimed(struct pawli_hold *h, int64_t now_ns)
{
    int64_t half_ns = later(h->valid_until_ns - now_ns, 0) / 2;

    h->unconfirmed = true;
    h->renew_at_ns = now_ns + earlier(PAWLI_CONFIRM_NS, half_ns);
}

/* Is the store to be asked at all? */
static bool asks(const struct pawli_hold *h)
{
    return h->renew_on || h->unconfirmed;
}

/* ---- what happened ---- */

static void lose(struct pawli_hold *h, int reason, struct pawli_hold_effects *fx)
{
    /* What ends by the maximum has been expiring before, though perhaps for no time at all. */
    if (h->state == PAWLI_HOLD_HELD && reason == PAWL_LOST_MAX_HOLD)
        fx->tell_expiring = true;
    move(h, PAWLI_HOLD_ENDED);
    fx->tell_lost = true;
    fx->result = reason;
    fx->release_all = reason != PAWL_LOST_TAKEN && reason != PAWL_LOST_REVOKED;
}

/* The store confirmed the hold. */
static void succeeded(struct pawli_hold *h, int64_t sent_ns)
{
    h->last_renewed_ns = later(h->last_renewed_ns, sent_ns);
    h->last_failure = 0;
    pawli_backoff_reset(&h->backoff);
}

static void renewed(struct pawli_hold *h, const struct pawli_hold_event *ev)
{
    int64_t until_ns;

    h->renewing = false;
    h->again = false;
    h->unconfirmed = false;
    until_ns = valid_until(h, ev->sent_ns, ev->pttl_ms);
    h->valid_until_ns = ev->exact ? until_ns : later(h->valid_until_ns, until_ns);
    if (ev->exact)
        h->long_until_ns = 0;
    succeeded(h, ev->sent_ns);
    /* Not sooner if the time left is short: the latest end cuts it, and a renewal is no help. */
    schedule(h, h->lease_ms);
    if (h->confirm && h->renew_on)
        h->renew_at_ns = ev->now_ns;
    h->confirm = false;
}

static void failed(struct pawli_hold *h, const struct pawli_hold_event *ev)
{
    int64_t delay_ns = earlier(pawli_backoff_next_ns(&h->backoff), lease_ns(h) / 6);

    h->renewing = false;
    h->last_failure = ev->code;
    if (asks(h))
        h->renew_at_ns = pawli_after(ev->now_ns, h->again || h->confirm ? 0 : delay_ns);
    h->again = false;
    h->confirm = false;
}

static void store_up(struct pawli_hold *h, int64_t now_ns)
{
    pawli_backoff_reset(&h->backoff);
    if (h->renewing)
        h->again = true;
    else if (h->last_failure != 0 && asks(h))
        h->renew_at_ns = now_ns;
}

static void doubted(struct pawli_hold *h, int64_t now_ns)
{
    if (h->renewing)
        h->confirm = true;
    else if (asks(h))
        h->renew_at_ns = now_ns;
}

static void shortened(struct pawli_hold *h, const struct pawli_hold_event *ev)
{
    int64_t third_ns = ev->lease_ms * PAWLI_NS_PER_MS / 3;

    assert(ev->lease_ms > 0);
    if (h->n_extends++ == 0)
        h->long_until_ns = h->valid_until_ns;
    h->short_sent_ns = ev->now_ns;
    h->short_until_ns = pawli_valid_until_ns(ev->now_ns, ev->lease_ms, ev->lease_ms);
    h->valid_until_ns = earlier(h->valid_until_ns, h->short_until_ns);
    /* Should it fail, a renewal brings back what was. */
    if (asks(h))
        h->renew_at_ns = earlier(h->renew_at_ns, pawli_after(ev->now_ns, third_ns));
}

static void extend_answered(struct pawli_hold *h, bool kept)
{
    assert(h->n_extends > 0);
    h->n_extends--;
    if (!kept)
        h->long_until_ns = 0;
    if (h->n_extends > 0 || h->long_until_ns == 0)
        return;
    h->short_sent_ns = 0;
    h->valid_until_ns = later(h->valid_until_ns, h->long_until_ns);
}

static void changed(struct pawli_hold *h, const struct pawli_hold_event *ev)
{
    bool was_on = h->renew_on;

    assert(ev->lease_ms > 0);
    h->lease_ms = ev->lease_ms;
    h->renew_on = ev->renew;
    if (ev->sent_ns > 0) { /* a re-entry or an extend: the store answered */
        int64_t until_ns = valid_until(h, ev->sent_ns, ev->pttl_ms);

        h->valid_until_ns = ev->shorter ? until_ns : later(h->valid_until_ns, until_ns);
        if (ev->shorter)
            h->long_until_ns = 0;
        succeeded(h, ev->sent_ns);
        schedule(h, ev->pttl_ms);
        h->unconfirmed = false; /* a re-entry or an extend sets the lease, as a renewal does */
    } else if (h->unconfirmed) {
        /* The confirm that is due stays due. */
    } else if (!h->renew_on) {
        h->renew_at_ns = PAWLI_NEVER;
    } else {
        /* A partial release: by its own lease what remains may be due sooner, never later. */
        int64_t due_ns = h->last_renewed_ns + interval_ns(h);

        h->renew_at_ns = was_on ? earlier(h->renew_at_ns, due_ns) : due_ns;
    }
}

/* ---- what follows ---- */

/* Since when, or from when on, the renewals are in trouble. */
static int64_t trouble_ns(const struct pawli_hold *h, int64_t now_ns)
{
    if (h->last_failure != 0)
        return now_ns;
    return h->renewing ? h->asked_ns + lease_ns(h) / 6 : PAWLI_NEVER;
}

static int64_t at_risk_ns(const struct pawli_hold *h, int64_t now_ns)
{
    return later(h->valid_until_ns - grace_ns(h), trouble_ns(h, now_ns));
}

static void look_at_risk(struct pawli_hold *h, int64_t now_ns, bool success,
                         struct pawli_hold_effects *fx)
{
    bool risk = now_ns >= at_risk_ns(h, now_ns);

    if (!h->at_risk && risk) {
        h->at_risk = true;
        fx->tell_at_risk = true;
        fx->result = h->last_failure != 0 ? h->last_failure : PAWL_EUNKNOWN;
    } else if (h->at_risk && success && !risk) {
        h->at_risk = false;
        fx->tell_recovered = true;
    }
}

/* Why valid_until passed. A lease that grew since the grant has a larger margin than the store was
 * told to leave behind the maximum hold: then that is what ended it, a little early. */
static int reason_at_end(const struct pawli_hold *h)
{
    if (h->last_failure != 0 || h->renewing)
        return PAWL_LOST_UNREACHABLE;
    if (h->renew_on &&
        pawli_after(h->valid_until_ns, pawli_margin_ns(h->lease_ms)) >= h->max_end_ns)
        return PAWL_LOST_MAX_HOLD;
    return PAWL_LOST_EXPIRED;
}

static void look_held(struct pawli_hold *h, int64_t now_ns, bool success,
                      struct pawli_hold_effects *fx)
{
    /* Without a grace valid_until is cut to the very end: that is the maximum, no expiry. */
    if (now_ns >= h->max_end_ns && h->max_end_ns <= h->valid_until_ns) {
        move(h, PAWLI_HOLD_EXPIRING);
        fx->tell_expiring = true;
        return;
    }
    if (now_ns >= h->valid_until_ns) {
        lose(h, reason_at_end(h), fx);
        return;
    }
    if (!h->renewing && now_ns >= h->renew_at_ns) {
        h->renewing = true;
        h->asked_ns = now_ns;
        fx->renew = true;
    }
    look_at_risk(h, now_ns, success, fx);
}

static void look(struct pawli_hold *h, int64_t now_ns, bool success, struct pawli_hold_effects *fx)
{
    if (h->state == PAWLI_HOLD_HELD)
        look_held(h, now_ns, success, fx);
    if (h->state == PAWLI_HOLD_EXPIRING &&
        now_ns >= earlier(max_hold_over_ns(h), h->valid_until_ns))
        lose(h, PAWL_LOST_MAX_HOLD, fx);
}

static int64_t wake_at(const struct pawli_hold *h, int64_t now_ns)
{
    int64_t wake_ns = h->valid_until_ns;

    if (h->state == PAWLI_HOLD_EXPIRING)
        return earlier(wake_ns, max_hold_over_ns(h));
    if (h->state != PAWLI_HOLD_HELD)
        return PAWLI_NEVER;
    wake_ns = earlier(wake_ns, h->max_end_ns);
    if (!h->renewing)
        wake_ns = earlier(wake_ns, h->renew_at_ns);
    if (!h->at_risk)
        wake_ns = earlier(wake_ns, at_risk_ns(h, now_ns));
    return wake_ns;
}

static void take(struct pawli_hold *h, const struct pawli_hold_event *ev,
                 struct pawli_hold_effects *fx)
{
    switch (ev->kind) {
    case PAWLI_HOLD_TICK:
        break;
    case PAWLI_HOLD_RENEWED:
        renewed(h, ev);
        break;
    case PAWLI_HOLD_FAILED:
        failed(h, ev);
        break;
    case PAWLI_HOLD_REFUSED:
    case PAWLI_HOLD_LOST:
        lose(h, ev->code, fx);
        break;
    case PAWLI_HOLD_UP:
        store_up(h, ev->now_ns);
        break;
    case PAWLI_HOLD_DOUBT:
        doubted(h, ev->now_ns);
        break;
    case PAWLI_HOLD_CHANGED:
        changed(h, ev);
        break;
    case PAWLI_HOLD_SHORTENED:
        shortened(h, ev);
        break;
    case PAWLI_HOLD_EXTEND_ANSWERED:
        extend_answered(h, ev->kept);
        break;
    case PAWLI_HOLD_RELEASE:
        move(h, PAWLI_HOLD_RELEASING);
        break;
    }
}

void pawli_hold_step(struct pawli_hold *h, const struct pawli_hold_event *ev,
                     struct pawli_hold_effects *ret_do)
{
    struct pawli_hold_effects fx = { .wake_ns = PAWLI_NEVER };
    bool success =
        ev->kind == PAWLI_HOLD_RENEWED || (ev->kind == PAWLI_HOLD_CHANGED && ev->sent_ns > 0);

    if (h->state == PAWLI_HOLD_RELEASING) {
        /* Nothing is told and nothing asked any more; the release has deadlines of its own. */
        if (ev->now_ns >= h->valid_until_ns)
            move(h, PAWLI_HOLD_ENDED);
    } else if (h->state != PAWLI_HOLD_ENDED) {
        take(h, ev, &fx);
        look(h, ev->now_ns, success, &fx);
    }
    fx.wake_ns = wake_at(h, ev->now_ns);
    *ret_do = fx;
}
