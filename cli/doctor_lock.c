/* Doctor: one lock: its key, its owner, its renewals, and who waits for whom. Only reads. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "duration.h"
#include "info.h"
#include "message.h"
#include "scan.h"
#include "text.h"

static void look_at_key(struct doctor *d, const struct pawl_lock_info *info)
{
    char name[NAME_TEXT];
    char left[DURATION_TEXT];

    doctor_step(d, "key", _("2. The key"));
    (void)printable(d->key, strlen(d->key), name, sizeof name);
    if (info->remaining_ms < 0)
        doctor_find(d, LEVEL_FAIL, "no-expiry",
                    _("find what writes it without an expiry (SETNX, or EXPIRE in a second "
                      "command); then pawl break"),
                    _("ALARM: '%s' has no expiry: if its holder is gone it stays for ever"), name);
    else
        doctor_find(d, LEVEL_OK, "expiry", NULL, _("'%s' ends in %s unless renewed"), name,
                    duration_text(info->remaining_ms, left, sizeof left));
    if (info->kind == PAWL_KIND_PAWL)
        doctor_find(d, LEVEL_OK, "layout", NULL, _("taken by pawl, token %llu"),
                    (unsigned long long)info->token);
    else
        doctor_find(d, LEVEL_INFO, "layout",
                    _("that client's renewals, queue and tokens cannot be seen from here"),
                    info->kind == PAWL_KIND_HASH ? _("a hash of another client (Redisson, a Lua "
                                                     "recipe)")
                                                 : _("a string of another client (SET NX)"));
    if (strchr(d->key, ':') == NULL && d->opt->prefix == NULL)
        doctor_find(d, LEVEL_INFO, "prefix", _("name it like order:42, or use --prefix"),
                    _("the name has no business prefix; another program may use the same"));
}

static void look_at_owner(struct doctor *d, const struct pawl_lock_info *info)
{
    int alive = info_process_alive(info);

    doctor_step(d, "owner", _("3. The owner"));
    if (info->n_owners > 1)
        doctor_find(d, LEVEL_FAIL, "owners",
                    _("some client adds itself without looking; stop it, then pawl break --now"),
                    _("%lld owners at once: not a lock any more"), (long long)info->n_owners);
    else
        doctor_find(d, LEVEL_OK, "owners", NULL, _("one owner, %s, holds it %lld times"),
                    info->owner, (long long)info->count);
    if (info->kind != PAWL_KIND_PAWL)
        return;
    doctor_find(d, alive == 0 ? LEVEL_WARN : LEVEL_OK, "process",
                alive == 0 ? _("unless it runs in another container of this host, it crashed; the "
                               "lock passes on when the lease ends")
                           : NULL,
                alive == 0   ? _("%s, pid %lld: does not exist")
                : alive == 1 ? _("%s, pid %lld: alive")
                             : _("%s, pid %lld: cannot be seen from this host"),
                info->host, (long long)info->pid);
    if (info->count > 20)
        doctor_find(d, LEVEL_WARN, "count", _("is a release missed on some path?"),
                    _("held %lld times over"), (long long)info->count);
}

static void look_at_renewal(struct doctor *d, const struct pawl_lock_info *info)
{
    enum verdict verdict = info_verdict(info);
    enum level level = verdict == VERDICT_FINE || verdict == VERDICT_ENDING       ? LEVEL_OK
                       : verdict == VERDICT_FOREIGN || verdict == VERDICT_REVOKED ? LEVEL_INFO
                       : verdict >= VERDICT_SHARED                                ? LEVEL_FAIL
                                                                                  : LEVEL_WARN;
    char text[512];
    char held[DURATION_TEXT];

    doctor_step(d, "renewal", _("4. Renewal"));
    doctor_find(d, level, verdict_name(verdict),
                verdict == VERDICT_LATE ? _("look at that process: a stopped debugger, a full "
                                            "disk, a long pause, a lost network?")
                                        : NULL,
                "%s", verdict_text(verdict, info, text, sizeof text));
    if (info->kind != PAWL_KIND_PAWL)
        return;
    (void)duration_text(info->held_ms, held, sizeof held);
    if (info->latest_end_ms == 0)
        doctor_find(d, LEVEL_WARN, "max-hold",
                    _("set a maximum hold: a hung holder that still "
                      "renews blocks for ever"),
                    _("held for %s, without a maximum hold"), held);
    else if (info->held_ms > 10 * info->lease_ms)
        doctor_find(d, LEVEL_INFO, "held", _("pawl lease recommends a lease"),
                    _("held for %s with a lease of %lld ms"), held, (long long)info->lease_ms);
}

static void look_at_queue(struct doctor *d, const struct pawl_lock_info *info)
{
    char host[256] = "";
    char oldest[DURATION_TEXT];
    size_t ghosts = 0;
    int64_t longest = 0;

    (void)gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < info_listed(info); i++) {
        const struct pawl_waiter_info *w = &info->waiters[i];

        longest = w->waiting_ms > longest ? w->waiting_ms : longest;
        if (strcmp(w->host, host) == 0 && w->pid > 0 && kill((pid_t)w->pid, 0) < 0 &&
            errno == ESRCH)
            ghosts++;
        if (strcmp(w->owner, info->owner) == 0)
            doctor_find(d, LEVEL_WARN, "self",
                        _("an owner enters again at once; this one should "
                          "not be in the queue"),
                        _("the holder's own owner waits for itself"));
        else if (info->kind == PAWL_KIND_PAWL && w->pid == info->pid &&
                 strcmp(w->host, info->host) == 0)
            doctor_find(d, LEVEL_WARN, "new-owner",
                        _("if that is a nested call, pass the owner down; a new owner on each "
                          "call waits for itself"),
                        _("the holder's process waits with another owner: %s"), w->owner);
    }
    doctor_find(d, LEVEL_OK, "waiters", NULL, _("%zu wait, the longest for %s"), info->n_waiters,
                duration_text(longest, oldest, sizeof oldest));
    if (ghosts > 0)
        doctor_find(d, LEVEL_INFO, "ghosts",
                    _("they are skipped within two seconds of their "
                      "turn"),
                    _("%zu waiters of this host are gone"), ghosts);
}

/* The lock that @owner waits for, among all; NULL if none. */
static const struct scan_row *waits_for(const struct scan *all, const char *owner)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t j = 0; j < info_listed(all->rows[i].info); j++)
            if (strcmp(all->rows[i].info->waiters[j].owner, owner) == 0)
                return &all->rows[i];
    return NULL;
}

static void look_for_cycle(struct doctor *d, const struct scan *all,
                           const struct pawl_lock_info *info)
{
    const char *owner = info->owner;
    char path[1024] = "";
    size_t at = 0;

    for (size_t step = 0; step <= all->n && step < 32; step++) {
        const struct scan_row *row = waits_for(all, owner);
        char name[256];

        if (row == NULL)
            break;
        (void)printable(row->key, row->key_len, name, sizeof name);
        at += (size_t)snprintf(path + at, sizeof path - at, " -> %s", name);
        at = at < sizeof path ? at : sizeof path - 1;
        owner = row->info->owner;
        if (strcmp(owner, info->owner) == 0) {
            doctor_find(d, LEVEL_FAIL, "cycle",
                        _("take locks in one order everywhere; now break one of them"),
                        _("a cycle: each holds what the next waits for: %s%s"), d->key, path);
            return;
        }
    }
    if (path[0] == '\0')
        doctor_find(d, LEVEL_OK, "cycle", NULL, _("the holder waits for no other lock"));
    else
        doctor_find(d, LEVEL_INFO, "chain", _("look at the last one of the chain first"),
                    _("the holder itself waits: %s%s"), d->key, path);
}

void doctor_lock(struct doctor *d)
{
    struct pawl_lock_info *info = NULL;
    int rc =
        d->client == NULL ? PAWL_ECONNECT : pawl_inspect(d->client, d->key, strlen(d->key), &info);

    if (rc == PAWL_OK) {
        look_at_key(d, info);
        look_at_owner(d, info);
        look_at_renewal(d, info);
    } else {
        doctor_step(d, "key", _("2. The key"));
        doctor_find(
            d, rc == PAWL_FREE ? LEVEL_OK : LEVEL_FAIL, pawl_result_name(rc),
            rc == PAWL_EWRONGTYPE ? _("some other program uses the name; rename one")
            : rc == PAWL_FREE ? _("if it should be held: was it lost, evicted, or never taken?")
                              : NULL,
            "%s%s%s", result_text(rc), rc < 0 ? ": " : "", rc < 0 ? pawl_error_detail() : "");
    }
    pawl_lock_info_free(info);
}

void doctor_chain(struct doctor *d)
{
    struct pawl_lock_info *info = NULL;
    struct scan all = { 0 };
    char why[256];

    if (d->client == NULL || pawl_inspect(d->client, d->key, strlen(d->key), &info) != PAWL_OK)
        return;
    doctor_step(d, "chain", _("5. The chain"));
    look_at_queue(d, info);
    if (scan_keys(&all, d->store, d->opt, "*", why, sizeof why) < 0)
        doctor_find(d, LEVEL_REFUSED, "cycle", NULL, _("other locks cannot be listed: %s"), why);
    else if (all.n <= 5000 && scan_inspect(&all, d->client) == 0)
        look_for_cycle(d, &all, info);
    scan_done(&all);
    pawl_lock_info_free(info);
}
