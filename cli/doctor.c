/* pawl doctor: options, findings and the order of the steps. The looking is in doctor_*.c. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "text.h"

enum { OPT_SYMPTOM = OPT_OWN, OPT_PRODUCTION, OPT_READ_ONLY };

static const struct {
    const char *name;
    const char *colour;
    const char *mark;
} levels[] = {
    [LEVEL_OK] = { "ok", "\033[32m", N_("ok") },
    [LEVEL_INFO] = { "info", "", N_("note") },
    [LEVEL_QUESTION] = { "question", "\033[36m", N_("ask") },
    [LEVEL_REFUSED] = { "not-permitted", "", N_("not permitted here") },
    [LEVEL_WARN] = { "warn", "\033[33m", N_("WARN") },
    [LEVEL_FAIL] = { "fail", "\033[31m", N_("FAIL") },
};

void doctor_step(struct doctor *d, const char *id, const char *title)
{
    d->step = id;
    if (!d->opt->json)
        (void)printf("\n%s\n", title);
}

void doctor_find(struct doctor *d, enum level level, const char *id, const char *advice,
                 const char *fmt, ...)
{
    bool colour = !d->opt->json && colour_ok(STDOUT_FILENO);
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (level > d->worst)
        d->worst = level;
    if (d->opt->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "step", json_string(d->step));
        (void)json_object_set_new(o, "id", json_string(id));
        (void)json_object_set_new(o, "level", json_string(levels[level].name));
        (void)json_object_set_new(o, "seen", json_string(text));
        (void)json_object_set_new(o, "advice", json_string(advice == NULL ? "" : advice));
        (void)json_array_append_new(d->findings, o);
        return;
    }
    (void)printf("  %s%s%s: %s\n", colour ? levels[level].colour : "",
                 text_get(levels[level].mark), colour ? "\033[0m" : "", text);
    if (advice != NULL && advice[0] != '\0')
        (void)printf("      -> %s\n", advice);
}

const char *doctor_info(const struct doctor *d, const char *field)
{
    static char value[256];
    size_t len = strlen(field);

    value[0] = '\0';
    for (const char *at = d->info; at != NULL && *at != '\0';
         at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, field, len) == 0 && at[len] == ':') {
            (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at + len + 1, "\r\n"),
                           at + len + 1);
            break;
        }
    }
    return value;
}

long long doctor_info_number(const struct doctor *d, const char *field)
{
    return strtoll(doctor_info(d, field), NULL, 10);
}

int doctor_config(struct doctor *d, const char *name, char *value, size_t len)
{
    redisReply *r = store_command(d->store, "CONFIG GET %s", name);
    int rc = -1;

    if (r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == 2) {
        (void)snprintf(value, len, "%s", r->element[1]->str);
        rc = 0;
    }
    freeReplyObject(r);
    return rc;
}

/* What the symptom usually is, before looking. */
static void tell_symptom(struct doctor *d)
{
    static const struct {
        const char *name;
        const char *text;
    } symptoms[] = {
        { "stuck", N_("stuck: a lock that nobody gives back. Look below at: no expiry, a dead "
                      "process, a holder that hangs, a cycle, a process waiting for itself.") },
        { "oversold",
          N_("oversold: two were in at once, or a late one wrote. Look below at: lease "
             "against the work, eviction, no AOF, failover, several owners; and at "
             "the resource: does it claim by the fencing token?") },
        { "twice", N_("twice: the same request was done twice, one after the other. A lock does "
                      "not prevent that; a record of what is done, kept with the effect, does.") },
        { "never", N_("never: a waiter that is never granted. Look below at: the queue, a holder "
                      "that is renewed for hours, rights on channels, other clients that "
                      "overtake.") },
    };

    if (d->symptom == NULL)
        return;
    doctor_step(d, "symptom", _("1. The symptom"));
    for (size_t i = 0; i < sizeof symptoms / sizeof symptoms[0]; i++)
        if (strcmp(symptoms[i].name, d->symptom) == 0)
            doctor_find(d, LEVEL_INFO, symptoms[i].name,
                        _("docs/troubleshooting.md has the whole list"), "%s",
                        text_get(symptoms[i].text));
}

static void read_info(struct doctor *d)
{
    redisReply *r = store_command(d->store, "INFO");

    d->info = strdup(r != NULL && r->type != REDIS_REPLY_ERROR && r->str != NULL ? r->str : "");
    freeReplyObject(r);
}

static void connect_all(struct doctor *d)
{
    char why[512];
    int rc = store_open(d->opt, &d->store, why, sizeof why);

    doctor_step(d, "connect", _("The connection"));
    if (rc < 0) {
        d->store = NULL;
        doctor_find(d, LEVEL_FAIL, pawl_result_name(rc),
                    rc == PAWL_EAUTH || rc == PAWL_ENOAUTH
                        ? _("user and password: --username, --password-file, or in the URL")
                        : _("is the server up, is the address right, does a firewall drop it?"),
                    "%s (%s)", result_text(rc), why);
        return;
    }
    read_info(d);
    doctor_find(d, LEVEL_OK, "connected", NULL, _("connected and logged in"));
    if (options_client(d->opt, &d->client) != 0)
        return;
    rc = pawl_client_ready(d->client, 3000);
    if (rc < 0)
        doctor_find(d, LEVEL_FAIL, pawl_result_name(rc),
                    _("pawl cannot use this server as it is; the steps below say more"), "%s (%s)",
                    result_text(rc), pawl_error_detail());
}

static int examine(struct doctor *d)
{
    static const int codes[] = { [LEVEL_WARN] = 1, [LEVEL_FAIL] = 2 };

    d->findings = json_array();
    tell_symptom(d);
    connect_all(d);
    if (d->store != NULL) {
        if (d->key != NULL) {
            doctor_lock(d);
            doctor_chain(d);
        }
        doctor_server(d);
        doctor_speed(d);
        doctor_rights(d);
    }
    if (d->production)
        doctor_questions(d);
    if (d->opt->json) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "worst", json_string(levels[d->worst].name));
        (void)json_object_set(o, "findings", d->findings);
        (void)json_print(o, 0);
    } else {
        (void)printf("\n%s\n", d->worst == LEVEL_FAIL   ? _("Result: something fails")
                               : d->worst == LEVEL_WARN ? _("Result: warnings")
                                                        : _("Result: all well"));
    }
    json_decref(d->findings);
    pawl_client_close(d->client);
    store_close(d->store);
    free(d->info);
    return end_output(d->worst >= LEVEL_WARN ? codes[d->worst] : 0);
}

int command_doctor(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "symptom", required_argument, NULL, OPT_SYMPTOM },
        { "production", no_argument, NULL, OPT_PRODUCTION },
        { "read-only", no_argument, NULL, OPT_READ_ONLY },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct doctor d = { .opt = opt };
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        if (c == OPT_SYMPTOM)
            d.symptom = optarg;
        d.production = d.production || c == OPT_PRODUCTION;
        d.read_only = d.read_only || c == OPT_READ_ONLY;
    }
    if (d.symptom != NULL && strcmp(d.symptom, "stuck") != 0 &&
        strcmp(d.symptom, "oversold") != 0 && strcmp(d.symptom, "twice") != 0 &&
        strcmp(d.symptom, "never") != 0)
        return usage_error("doctor", _("--symptom is stuck, oversold, twice or never"));
    if (argc - optind > 1)
        return usage_error("doctor", _("one lock name at most"));
    d.key = argc > optind ? argv[optind] : NULL;
    rc = options_finish(opt);
    return rc != 0 ? rc : examine(&d);
}
