/* Ending the job in time: when to look at the lock, TERM, grace, KILL. Starts and releases
 * nothing. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "exits.h"
#include "message.h"
#include "run_keeper.h"
#include "text.h"

#define MS INT64_C(1000000)

int64_t keeper_grace_ns(const struct keeper *k)
{
    int64_t grace = k->run->grace_ms * MS;

    return grace < k->span_ns / 3 ? grace : k->span_ns / 3;
}

int64_t keeper_reserve_ns(const struct keeper *k)
{
    return k->span_ns / 10 < 500 * MS ? k->span_ns / 10 : 500 * MS;
}

static bool has_processes(const struct keeper *k)
{
    return k->state == KEEPER_RUNNING || k->state == KEEPER_STOPPING ||
           k->state == KEEPER_LINGERING;
}

/* The front kills what is left at half of the reserve, should this process be frozen by then. */
static void tell_front(struct keeper *k, int64_t kill_by)
{
    struct run_message m = { RUN_TIME, 0, 0 };
    int64_t before = atomic_exchange(&k->shared->kill_by_ns, kill_by);

    if (k->socket >= 0 && kill_by != 0 && (before == 0 || kill_by < before))
        (void)send(k->socket, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void arm(struct keeper *k, int64_t at)
{
    struct itimerspec when = { { 0, 0 }, { at / 1000000000, at % 1000000000 } };

    (void)timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The lock is gone or must be given up; @result says why. */
static void must_stop(struct keeper *k, int result)
{
    int code = result == PAWL_EXPIRING || result == PAWL_LOST_MAX_HOLD ? EXIT_MAX_HOLD : EXIT_LOST;

    keeper_stop(k, run_exit(k->run, code), result_text(result));
}

/* Why nothing moves the end of the lease on any more. */
static int why_short(const struct keeper *k, int64_t before_end)
{
    int64_t left_ms = pawl_lock_max_hold_remaining_ms(k->lock);

    /* The lease is never renewed past the maximum hold. */
    if (left_ms != PAWL_UNLIMITED && left_ms * MS <= before_end)
        return PAWL_EXPIRING;
    return k->run->no_renew ? PAWL_LOST_EXPIRED : PAWL_LOST_UNREACHABLE;
}

/* Running: is it time to stop, or when to look again? */
static int64_t next_look(struct keeper *k, int64_t now)
{
    int64_t before_end = keeper_grace_ns(k) + keeper_reserve_ns(k);
    int64_t half = k->span_ns / 2;
    int result = pawl_lock_check(k->lock);

    if (result != PAWL_OK && result != PAWL_UNSURE && result > 0) {
        must_stop(k, result);
        return k->kill_ns;
    }
    if (now >= k->valid_ns - before_end) {
        must_stop(k, why_short(k, before_end));
        return k->kill_ns;
    }
    /* A renewal comes after a third of the lease; at half of it it is late, so look then. */
    return now < k->valid_ns - half ? k->valid_ns - half : k->valid_ns - before_end;
}

void keeper_look(struct keeper *k)
{
    int64_t now = boot_ns();
    int64_t left = k->lock == NULL ? 0 : pawl_lock_remaining_ms(k->lock);
    int64_t at = 0;

    if (!has_processes(k)) {
        tell_front(k, 0);
        arm(k, 0);
        return;
    }
    if (left > 0)
        k->valid_ns = now + left * MS;
    if (left * MS > k->span_ns)
        k->span_ns = left * MS;
    if (k->state == KEEPER_RUNNING)
        at = next_look(k, now);
    else if (k->state == KEEPER_LINGERING && k->run->leftover == LEFTOVER_WAIT)
        at = next_look(k, now);
    else
        at = k->kill_ns;
    /* Once it is being stopped, the loop comes back often until all are gone. */
    if (k->state != KEEPER_RUNNING && k->kill_ns != 0 && now >= k->kill_ns) {
        keeper_kill(k);
        at = now + 20 * MS;
    }
    tell_front(k, k->valid_ns - keeper_reserve_ns(k) / 2);
    arm(k, at);
}

/* The latest moment for KILL: the end of what is certainly ours, less the reserve. */
static int64_t kill_time(const struct keeper *k, int64_t grace_ns, int64_t now)
{
    int64_t latest = k->valid_ns - keeper_reserve_ns(k);
    int64_t at = now + grace_ns;

    at = at < latest ? at : latest;
    return at > now ? at : now;
}

void keeper_stop(struct keeper *k, int code, const char *why)
{
    int64_t now = boot_ns();
    int64_t grace = keeper_grace_ns(k);
    int n;

    if (k->state == KEEPER_STOPPING)
        return;
    /* At the maximum hold the lock is given up when the grace ends: be done before. */
    grace = grace > 2 * keeper_reserve_ns(k) ? grace - keeper_reserve_ns(k) : grace / 2;
    k->state = KEEPER_STOPPING;
    k->code = code;
    n = tree_signal(getpid(), 0, SIGTERM);
    if (n < 0 && k->job > 0)
        (void)kill(k->job, SIGTERM);
    k->kill_ns = kill_time(k, grace, now);
    say(_("stopping the job: %s"), why);
}

void keeper_kill(struct keeper *k)
{
    /* Without /proc: the job itself, which is ours and not waited for. */
    if (tree_signal(getpid(), 0, SIGKILL) < 0 && k->job > 0)
        (void)kill(k->job, SIGKILL);
    k->killing = true;
}

void keeper_linger(struct keeper *k)
{
    int64_t now = boot_ns();
    int n;

    k->state = KEEPER_LINGERING;
    if (k->run->leftover == LEFTOVER_WAIT) {
        note(_("the job has ended; the lock stays held for the processes that it left behind"));
        return;
    }
    n = tree_signal(getpid(), 0, SIGTERM);
    if (n > 0)
        note(_("the job left %d processes behind; stopping them (--keep-for-daemon holds the lock "
               "for them)"),
             n);
    k->kill_ns = kill_time(k, k->run->grace_ms * MS, now);
}
