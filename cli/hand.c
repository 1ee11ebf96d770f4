/* pawl acquire, release and hold: for scripts that cannot wrap what they protect. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "run.h"
#include "text.h"

enum {
    OPT_WAIT = OPT_OWN,
    OPT_LEASE,
    OPT_MAX_HOLD,
    OPT_LABEL,
    OPT_OWNER,
    OPT_FOR_PID,
    OPT_BACKGROUND
};

struct hand {
    struct options *opt;
    const char *key;
    const char *label;
    const char *owner_text;
    struct pawl_owner *owner;
    struct pawl_client *client;
    int64_t wait_ms;
    int64_t lease_ms;
    int64_t max_hold_ms;
    int64_t pid;
    bool background;
};

/* clang-format off */
static const struct option longs[] = {
    COMMON_LONG,
    { "wait", required_argument, NULL, OPT_WAIT },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "max-hold", required_argument, NULL, OPT_MAX_HOLD },
    { "label", required_argument, NULL, OPT_LABEL },
    { "owner", required_argument, NULL, OPT_OWNER },
    { "for-pid", required_argument, NULL, OPT_FOR_PID },
    { "background", no_argument, NULL, OPT_BACKGROUND },
    { NULL, 0, NULL, 0 }
};
/* clang-format on */

static int take_option(struct hand *h, int c, char *arg)
{
    switch (c) {
    case OPT_WAIT:
        if (strcmp(arg, "forever") == 0) {
            h->wait_ms = PAWL_FOREVER;
            return 0;
        }
        return options_duration(h->opt, "--wait", arg, &h->wait_ms);
    case OPT_LEASE:
        return options_duration(h->opt, "--lease", arg, &h->lease_ms);
    case OPT_MAX_HOLD:
        if (strcmp(arg, "none") == 0) {
            h->max_hold_ms = PAWL_UNLIMITED;
            return 0;
        }
        return options_duration(h->opt, "--max-hold", arg, &h->max_hold_ms);
    case OPT_LABEL:
        h->label = arg;
        return 0;
    case OPT_OWNER:
        h->owner_text = arg;
        return 0;
    case OPT_BACKGROUND:
        h->background = true;
        return 0;
    default:
        return options_number(h->opt, "--for-pid", arg, 1, 4194304, &h->pid);
    }
}

/* 0 or an exit code + 1000. */
static int take_arguments(struct hand *h, struct options *opt, int argc, char **argv, int n_args)
{
    int rc;
    int c;

    *h = (struct hand){ .opt = opt, .wait_ms = PAWL_FOREVER, .lease_ms = 30000 };
    h->max_hold_ms = INT64_C(24) * 3600 * 1000;
    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc + 1000;
        rc = rc == OPTION_OTHER ? take_option(h, c, optarg) : 0;
        if (rc != 0)
            return rc + 1000;
    }
    if (argc - optind < 1 || argc - optind > n_args)
        return usage_error(opt->command, _("one lock name is needed")) + 1000;
    h->key = argv[optind];
    if (argc - optind == 2)
        h->owner_text = argv[optind + 1];
    rc = options_finish(opt);
    return rc == 0 ? 0 : rc + 1000;
}

static int open_all(struct hand *h)
{
    int rc = h->owner_text != NULL ? pawl_owner_parse(h->owner_text, &h->owner)
                                   : pawl_owner_new(h->label, &h->owner);

    if (rc < 0)
        return say_result(h->owner_text != NULL ? _("the owner") : _("the label"), rc);
    return options_client(h->opt, &h->client);
}

static void close_all(struct hand *h)
{
    pawl_client_close(h->client);
    pawl_owner_free(h->owner);
}

static int take_lock(struct hand *h, unsigned flags, struct pawl_lock **ret_lock)
{
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;
    char name[NAME_TEXT];
    int rc;

    o.owner = h->owner;
    o.wait_ms = h->wait_ms;
    o.lease_ms = h->lease_ms;
    o.max_hold_ms = h->max_hold_ms != PAWL_UNLIMITED && h->max_hold_ms < h->lease_ms
                        ? h->lease_ms
                        : h->max_hold_ms;
    o.flags = flags;
    rc = pawl_lock_acquire(h->client, h->key, strlen(h->key), &o, ret_lock);
    return rc == PAWL_OK ? 0
                         : say_result(printable(h->key, strlen(h->key), name, sizeof name), rc);
}

static int print_handle(const struct hand *h, const struct pawl_lock *lock)
{
    json_t *o;

    if (!h->opt->json) {
        (void)printf("%s\n", pawl_owner_text(h->owner));
        return end_output(EXIT_OK);
    }
    o = json_object();
    json_set_key(o, h->key, strlen(h->key));
    (void)json_object_set_new(o, "owner", json_string(pawl_owner_text(h->owner)));
    (void)json_object_set_new(o, "token", json_integer((json_int_t)pawl_lock_token(lock)));
    (void)json_object_set_new(o, "lease_ms", json_integer(h->lease_ms));
    return end_output(json_print(o, EXIT_OK));
}

int command_acquire(struct options *opt, int argc, char **argv)
{
    struct pawl_lock *lock = NULL;
    struct hand h;
    int code = take_arguments(&h, opt, argc, argv, 1);

    if (code != 0)
        return code - 1000;
    code = open_all(&h);
    if (code == 0)
        code = take_lock(&h, PAWL_NO_RENEW, &lock);
    if (code != 0) {
        close_all(&h);
        return code;
    }
    code = print_handle(&h, lock);
    if (code != EXIT_OK) {
        /* Whoever cannot read the handle cannot give the lock back. */
        pawl_lock_free(lock);
        close_all(&h);
        return code;
    }
    /* Closing the client would release the lock. The lease is its end now. */
    (void)fflush(stderr);
    _exit(EXIT_OK);
}

/* Only if the lock is still the one that this owner took: the token says so to the store. */
static int give_back(struct hand *h)
{
    struct pawl_lock_info *info = NULL;
    int rc = pawl_inspect(h->client, h->key, strlen(h->key), &info);

    if (rc == PAWL_OK && strcmp(info->owner, pawl_owner_text(h->owner)) != 0)
        rc = PAWL_NOT_OWNER;
    if (rc == PAWL_OK)
        rc = pawl_force_release(h->client, h->key, strlen(h->key), info->token, PAWL_FORCE_NOW);
    pawl_lock_info_free(info);
    return rc;
}

int command_release(struct options *opt, int argc, char **argv)
{
    char name[NAME_TEXT];
    struct hand h;
    int code = take_arguments(&h, opt, argc, argv, 2);
    int rc;

    if (code != 0)
        return code - 1000;
    if (h.owner_text == NULL)
        return usage_error("release", _("the owner that 'pawl acquire' printed is needed"));
    code = open_all(&h);
    if (code == 0) {
        rc = give_back(&h);
        code = rc == PAWL_OK ? EXIT_OK
                             : say_result(printable(h.key, strlen(h.key), name, sizeof name), rc);
    }
    close_all(&h);
    return code;
}

/* Until the process ends, the lock is lost, or somebody ends us. */
static int keep(struct hand *h, struct pawl_lock *lock, int pid_fd, int signal_fd)
{
    struct pollfd fds[] = { { pid_fd, POLLIN, 0 },
                            { pawl_lock_fd(lock), POLLIN, 0 },
                            { signal_fd, POLLIN, 0 } };
    struct signalfd_siginfo si;
    int code = EXIT_OK;
    int rc;

    while (code == EXIT_OK && fds[0].revents == 0) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            code = EXIT_REFUSED;
        if (fds[1].revents != 0)
            code = say_result(h->key, pawl_lock_check(lock));
        else if (fds[2].revents != 0 && read(signal_fd, &si, sizeof si) > 0 &&
                 signals_ends((int)si.ssi_signo))
            code = 128 + (int)si.ssi_signo;
    }
    rc = pawl_lock_release(lock);
    /* The hold of an acquire before, which nobody else would give back. */
    if (rc == PAWL_STILL_HELD)
        (void)give_back(h);
    return code;
}

int command_hold(struct options *opt, int argc, char **argv)
{
    struct run_signals signals;
    struct pawl_lock *lock = NULL;
    int report[2] = { -1, -1 };
    struct hand h;
    int code = take_arguments(&h, opt, argc, argv, 1);
    unsigned char answer = EXIT_REFUSED;
    int pid_fd;

    if (code != 0)
        return code - 1000;
    if (h.pid == 0)
        return usage_error("hold", _("--for-pid PID is needed"));
    pid_fd = pidfd_open((pid_t)h.pid, 0);
    if (pid_fd < 0)
        return usage_error("hold", _("process %lld: %s"), (long long)h.pid, strerror(errno));
    if (h.background) {
        if (pipe(report) < 0 || (code = fork()) < 0)
            return EXIT_REFUSED;
        if (code > 0) {
            close(report[1]);
            return read(report[0], &answer, 1) == 1 ? answer : EXIT_REFUSED;
        }
        (void)setsid();
    }
    code = signals_init(&signals);
    if (code == 0)
        code = open_all(&h);
    if (code == 0)
        code = take_lock(&h, 0u, &lock);
    if (code == 0)
        code = print_handle(&h, lock);
    if (h.background) {
        struct run_fds fds = { NULL, 0 };

        answer = (unsigned char)code;
        if (write(report[1], &answer, 1) == 1)
            close(report[1]);
        fds_drop(&fds);
    }
    if (code == 0)
        code = keep(&h, lock, pid_fd, signals.fd);
    pawl_lock_free(lock);
    close_all(&h);
    return code;
}
