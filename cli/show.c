/* pawl show: everything about one lock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "duration.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "text.h"

static void line(const char *name, const char *value)
{
    size_t columns = text_columns(name);

    (void)printf("%s", name);
    for (; columns < 12; columns++)
        (void)putchar(' ');
    (void)printf("%s\n", value);
}

static void print_queue(const struct pawl_lock_info *info)
{
    char text[512];
    char age[DURATION_TEXT];

    (void)snprintf(text, sizeof text, "%zu", info->n_waiters);
    line(_("waiting"), text);
    for (size_t i = 0; i < info_listed(info); i++) {
        const struct pawl_waiter_info *w = &info->waiters[i];

        (void)printf("  %zu. %s  %s:%lld  %s\n", i + 1,
                     duration_text(w->waiting_ms, age, sizeof age), w->host, (long long)w->pid,
                     w->owner);
    }
}

static void print_pawl(const struct pawl_lock_info *info)
{
    static const char *const alive[] = { N_("not known from here"), N_("gone"), N_("alive") };
    char text[512];
    char when[32];
    char held[DURATION_TEXT];

    (void)snprintf(text, sizeof text, "%" PRIu64, info->token);
    line(_("token"), text);
    (void)snprintf(text, sizeof text, _("%s, pid %lld (%s)"), info->host, (long long)info->pid,
                   text_get(alive[info_process_alive(info) + 1]));
    line(_("process"), text);
    (void)snprintf(text, sizeof text, _("%s, since %s"),
                   duration_text(info->held_ms, held, sizeof held),
                   time_text(info->since_ms, when, sizeof when));
    line(_("held for"), text);
    if (info->latest_end_ms > 0)
        line(_("until"), time_text(info->latest_end_ms, when, sizeof when));
    else
        line(_("until"), _("no maximum hold was set"));
}

static void print(const char *key, const struct pawl_lock_info *info)
{
    enum verdict verdict = info_verdict(info);
    char text[NAME_TEXT];
    char left[DURATION_TEXT];
    char lease[DURATION_TEXT];

    line(_("lock"), printable(key, strlen(key), text, sizeof text));
    line(_("kind"), info->kind == PAWL_KIND_PAWL   ? "pawl"
                    : info->kind == PAWL_KIND_HASH ? _("hash of another client")
                                                   : _("string of another client"));
    line(_("owner"), info->owner);
    (void)snprintf(text, sizeof text, "%lld", (long long)info->count);
    line(_("count"), text);
    if (info->kind == PAWL_KIND_PAWL)
        print_pawl(info);
    (void)duration_text(info->lease_ms, lease, sizeof lease);
    if (info->remaining_ms < 0)
        (void)snprintf(text, sizeof text, "%s", _("never ends"));
    else if (info->kind == PAWL_KIND_PAWL)
        (void)snprintf(text, sizeof text, _("%s of a lease of %s"),
                       duration_text(info->remaining_ms, left, sizeof left), lease);
    else
        (void)duration_text(info->remaining_ms, text, sizeof text);
    line(_("remaining"), text);
    line(_("state"), verdict_text(verdict, info, text, sizeof text));
    print_queue(info);
}

int command_show(struct options *opt, int argc, char **argv)
{
    static const struct option longs[] = { COMMON_LONG, { NULL, 0, NULL, 0 } };
    struct pawl_lock_info *info = NULL;
    struct pawl_client *client = NULL;
    char name[NAME_TEXT];
    const char *key;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
    }
    if (argc - optind != 1)
        return usage_error("show", _("one lock name is needed"));
    key = argv[optind];
    rc = options_finish(opt);
    if (rc == 0)
        rc = options_client(opt, &client);
    if (rc != 0)
        return rc;
    rc = pawl_inspect(client, key, strlen(key), &info);
    if (rc == PAWL_OK && opt->json)
        rc = json_print(info_json(key, strlen(key), info), EXIT_OK);
    else if (rc == PAWL_OK)
        print(key, info);
    else
        rc = say_result(printable(key, strlen(key), name, sizeof name), rc);
    pawl_lock_info_free(info);
    pawl_client_close(client);
    return end_output(rc);
}
