/* pawl break: take a lock away from its holder, knowingly. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "duration.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "text.h"

enum { OPT_TOKEN = OPT_OWN, OPT_YES, OPT_NOW, OPT_AUDIT };

struct breaking {
    struct options *opt;
    const char *key;
    int64_t token; /* 0: whatever it is when we look */
    bool yes;
    bool now;
};

/* Who, when, what was seen, what came of it: on stderr, and in the audit file if there is one. */
static void audit(const struct breaking *b, const struct pawl_lock_info *info, int result)
{
    const struct passwd *user = getpwuid(getuid());
    const char *sudo = getenv("SUDO_USER");
    char host[256] = "";
    char when[32];
    char *line;
    json_t *o = info_json(b->key, strlen(b->key), info);
    int fd;

    (void)gethostname(host, sizeof host - 1);
    (void)json_object_set_new(
        o, "time", json_string(time_text((int64_t)time(NULL) * 1000, when, sizeof when)));
    (void)json_object_set_new(o, "by",
                              json_string(sudo != NULL   ? sudo
                                          : user != NULL ? user->pw_name
                                                         : "?"));
    (void)json_object_set_new(o, "from", json_string(host));
    (void)json_object_set_new(o, "action", json_string(b->now ? "break-now" : "revoke"));
    (void)json_object_set_new(o, "result", json_string(pawl_result_name(result)));
    line = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(o);
    if (line == NULL)
        return;
    (void)fprintf(stderr, "audit: %s\n", line);
    fd = b->opt->audit == NULL
             ? -1
             : open(b->opt->audit, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (b->opt->audit != NULL && (fd < 0 || dprintf(fd, "%s\n", line) < 0))
        say(_("cannot write the audit file %s: %s"), b->opt->audit, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(line);
}

static void tell_danger(const struct breaking *b, const struct pawl_lock_info *info)
{
    char left[DURATION_TEXT];
    char third[DURATION_TEXT];

    (void)duration_text(info->remaining_ms, left, sizeof left);
    (void)duration_text(info->lease_ms / 3, third, sizeof third);
    if (!b->now)
        (void)fprintf(stderr,
                      _("Its renewals will be refused. The holder learns of it within %s; the "
                        "next waiter gets the lock in %s at the latest.\n"),
                      third, left);
    else if (info->kind == PAWL_KIND_PAWL)
        (void)fprintf(stderr,
                      _("DANGER: the next waiter gets the lock at once, while the holder may "
                        "believe in it for up to %s more. Only fencing protects the resource "
                        "then.\n"),
                      third);
    else
        (void)fprintf(stderr, "%s\n",
                      _("DANGER: this is another client's lock; its holder will not be told."));
}

/* On a terminal the user answers; elsewhere --yes must have been said. 0 or an exit code. */
static int confirm(const struct breaking *b, const struct pawl_lock_info *info)
{
    char name[NAME_TEXT];
    char text[512];
    char answer[16] = "";

    (void)fprintf(stderr, _("'%s' is held by %s: %s\n"),
                  printable(b->key, strlen(b->key), name, sizeof name), info->owner,
                  verdict_text(info_verdict(info), info, text, sizeof text));
    tell_danger(b, info);
    if (b->yes)
        return 0;
    if (isatty(STDIN_FILENO) != 1) {
        say(_("not confirmed: nothing was done. From a script: pawl break --token %llu --yes "
              "'%s'"),
            (unsigned long long)info->token, name);
        return EXIT_USAGE;
    }
    (void)fputs(_("Take it away? [y/N] "), stderr);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    say(_("nothing was done"));
    return EXIT_NO;
}

static int finish(const struct breaking *b, const struct pawl_lock_info *info, int result)
{
    char name[NAME_TEXT];

    (void)printable(b->key, strlen(b->key), name, sizeof name);
    audit(b, info, result);
    if (b->opt->json) {
        json_t *o = json_object();

        json_set_key(o, b->key, strlen(b->key));
        (void)json_object_set_new(o, "token", json_integer((json_int_t)info->token));
        (void)json_object_set_new(o, "result", json_string(pawl_result_name(result)));
        (void)json_print(o, 0);
    }
    if (result == PAWL_OK)
        note(b->now ? _("'%s' was taken away; it has passed on")
                    : _("'%s' is revoked; it passes on when its lease ends"),
             name);
    else if (result == PAWL_NOT_OWNER)
        say(_("'%s' has another token by now; nothing was done"), name);
    else
        (void)say_result(name, result);
    return end_output(cli_exit_of(result));
}

static int do_break(const struct breaking *b)
{
    struct pawl_lock_info *info = NULL;
    struct pawl_client *client = NULL;
    char name[NAME_TEXT];
    int code = options_client(b->opt, &client);
    int rc;

    if (code != 0)
        return code;
    rc = pawl_inspect(client, b->key, strlen(b->key), &info);
    if (rc != PAWL_OK) {
        code = say_result(printable(b->key, strlen(b->key), name, sizeof name), rc);
    } else if (b->token != 0 && (uint64_t)b->token != info->token) {
        code = EXIT_NO;
        say(_("the token is %llu, not %lld; nothing was done"), (unsigned long long)info->token,
            (long long)b->token);
    } else if (info->kind != PAWL_KIND_PAWL && !b->now) {
        code =
            usage_error("break", _("another client's lock cannot be revoked; --now deletes it"));
    } else {
        code = confirm(b, info);
        if (code == 0)
            code = finish(b, info,
                          pawl_force_release(client, b->key, strlen(b->key), info->token,
                                             b->now ? PAWL_FORCE_NOW : 0u));
    }
    pawl_lock_info_free(info);
    pawl_client_close(client);
    return code;
}

int command_break(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "token", required_argument, NULL, OPT_TOKEN },
        { "yes", no_argument, NULL, OPT_YES },
        { "now", no_argument, NULL, OPT_NOW },
        { "audit", required_argument, NULL, OPT_AUDIT },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct breaking b = { .opt = opt };
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        if (c == OPT_TOKEN)
            rc = options_number(opt, "--token", optarg, 1, INT64_C(9007199254740991), &b.token);
        else if (c == OPT_AUDIT)
            opt->audit = optarg;
        b.yes = b.yes || c == OPT_YES;
        b.now = b.now || c == OPT_NOW;
        if (rc > 0)
            return rc;
    }
    if (argc - optind != 1)
        return usage_error("break", _("one lock name is needed"));
    b.key = argv[optind];
    rc = options_finish(opt);
    return rc != 0 ? rc : do_break(&b);
}
