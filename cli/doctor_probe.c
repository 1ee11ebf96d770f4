/* Doctor: speed, slow scripts, clock, and the rights that are really granted. Writes only a probe
 * key that expires at once, and not with --read-only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor.h"
#include "rights.h"
#include "text.h"

static int64_t now_us(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void check_latency(struct doctor *d)
{
    int64_t longest = 0;
    int64_t sum = 0;
    int n = 0;

    for (; n < 20; n++) {
        int64_t begun = now_us(CLOCK_MONOTONIC);
        redisReply *r = store_command(d->store, "TIME");
        int64_t took = now_us(CLOCK_MONOTONIC) - begun;

        if (r == NULL) {
            doctor_find(d, LEVEL_FAIL, "latency", _("is the server frozen, or the network cut?"),
                        _("no answer within the limit"));
            return;
        }
        freeReplyObject(r);
        sum += took;
        longest = took > longest ? took : longest;
    }
    doctor_find(d, longest > 100000 ? LEVEL_WARN : LEVEL_OK, "latency",
                longest > 100000 ? _("a lease should be at least a hundred times the latency")
                                 : NULL,
                _("a round trip takes %.2f ms, %.2f ms at most"), (double)sum / n / 1000,
                (double)longest / 1000);
}

static void check_slow_scripts(struct doctor *d)
{
    redisReply *r = store_command(d->store, "SLOWLOG GET 32");
    long long worst = 0;
    int n = 0;

    if (r == NULL || r->type != REDIS_REPLY_ARRAY) {
        doctor_find(d, LEVEL_REFUSED, "slow", NULL, _("SLOWLOG cannot be read"));
        freeReplyObject(r);
        return;
    }
    for (size_t i = 0; i < r->elements; i++) {
        const redisReply *e = r->element[i];

        if (e->type != REDIS_REPLY_ARRAY || e->elements < 4 || e->element[3]->elements < 1 ||
            strncasecmp(e->element[3]->element[0]->str, "eval", 4) != 0)
            continue;
        n++;
        worst = e->element[2]->integer > worst ? e->element[2]->integer : worst;
    }
    freeReplyObject(r);
    if (n > 0)
        doctor_find(d, worst > 100000 ? LEVEL_WARN : LEVEL_INFO, "slow",
                    _("SLOWLOG GET shows them: a script blocks everybody, renewals too"),
                    _("%d slow scripts in the log, the slowest %lld us"), n, worst);
    else
        doctor_find(d, LEVEL_OK, "slow", NULL, _("no slow scripts in the log"));
}

static void check_clock(struct doctor *d)
{
    redisReply *r = store_command(d->store, "TIME");
    int64_t off_ms;

    if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements != 2) {
        doctor_find(d, LEVEL_FAIL, "clock", _("pawl acl prints the rights that are needed"),
                    _("TIME is refused"));
        freeReplyObject(r);
        return;
    }
    off_ms = (strtoll(r->element[0]->str, NULL, 10) * 1000000 +
              strtoll(r->element[1]->str, NULL, 10) - now_us(CLOCK_REALTIME)) /
             1000;
    freeReplyObject(r);
    doctor_find(d, llabs(off_ms) > 1000 ? LEVEL_WARN : LEVEL_OK, "clock",
                llabs(off_ms) > 1000
                    ? _("NTP on both; locks do not depend on it, but tokens rise with it and "
                        "logs are compared by it")
                    : NULL,
                _("the server's clock is %lld ms ahead of ours"), (long long)off_ms);
}

void doctor_speed(struct doctor *d)
{
    check_latency(d);
    check_slow_scripts(d);
    check_clock(d);
}

/* @probe in words, %s being @key, "%20" a blank inside a word. */
static redisReply *try_probe(struct doctor *d, const char *probe, const char *key)
{
    char words[8][128];
    const char *argv[8];
    size_t lens[8];
    int n = 0;

    for (const char *at = probe; *at != '\0' && n < 8; n++) {
        size_t used = 0;

        while (*at != '\0' && *at != ' ' && used < 100) {
            if (strncmp(at, "%s", 2) == 0) {
                used += (size_t)snprintf(words[n] + used, sizeof words[n] - used, "%s", key);
                used = used < 100 ? used : 100;
                at += 2;
            } else if (strncmp(at, "%20", 3) == 0) {
                words[n][used++] = ' ';
                at += 3;
            } else {
                words[n][used++] = *at++;
            }
        }
        words[n][used] = '\0';
        argv[n] = words[n];
        lens[n] = used;
        at += *at == ' ';
    }
    return store_argv(d->store, n, argv, lens);
}

static bool is_denied(const redisReply *r)
{
    return store_is_error(r, "NOPERM") || store_is_error(r, "ERR unknown command") ||
           store_is_error(r, "ERR unknown subcommand");
}

void doctor_rights(struct doctor *d)
{
    const char *prefix = d->opt->prefix == NULL ? "" : d->opt->prefix;
    char key[128];
    int missing = 0;

    if (d->read_only) {
        doctor_find(d, LEVEL_INFO, "rights", NULL, _("rights are not tried: --read-only"));
        return;
    }
    for (size_t i = 0; i < n_rights; i++) {
        bool channel = rights[i].probe != NULL && strstr(rights[i].probe, "PUBLISH") != NULL;
        redisReply *r;

        if (rights[i].probe == NULL)
            continue;
        (void)snprintf(key, sizeof key, channel ? "%s" : "%s{pawl-doctor}", prefix);
        r = try_probe(d, rights[i].probe, key);
        if (r == NULL || is_denied(r)) {
            missing++;
            doctor_find(d,
                        strcmp(text_get(rights[i].without), text_get(N_("nothing works"))) == 0
                            ? LEVEL_FAIL
                            : LEVEL_WARN,
                        "right", _("pawl acl prints the line that grants it"),
                        _("no right to %s; without it: %s"), rights[i].acl + 1,
                        text_get(rights[i].without));
        }
        freeReplyObject(r);
    }
    (void)snprintf(key, sizeof key, "%s{pawl-doctor}", prefix);
    freeReplyObject(store_command(d->store, "DEL %s", key));
    if (missing == 0)
        doctor_find(d, LEVEL_OK, "rights", NULL, _("all rights that pawl needs are granted"));
}

void doctor_questions(struct doctor *d)
{
    static const char *const questions[] = {
        N_("Does the resource refuse a stale writer (claim by fencing token, then write if still "
           "mine)? The lock alone does not stop a paused holder."),
        N_("Is the lock released after the transaction commits, never inside it?"),
        N_("Is one owner made per request and passed down, never taken from a thread, a user or a "
           "trace alone?"),
        N_("Does every acquire have a wait limit, and is its refusal handled by not doing the "
           "work?"),
        N_("Is the lease two to three times the longest pause you have seen, and the maximum hold "
           "above the longest job?"),
        N_("Does the work stop when the lock is lost (callback, descriptor, pawl_lock_check)?"),
        N_("Do lock names begin with a business prefix, one lock per thing and not one for all?"),
        N_("Are lost locks and failed renewals counted and alarmed on?"),
        N_("Has a failover been tried while locks were held?"),
        N_("Are hours-long jobs safe across a redeploy?"),
    };

    doctor_step(d, "questions", _("What no tool can see"));
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        doctor_find(d, LEVEL_QUESTION, "question", NULL, "%s", text_get(questions[i]));
}
