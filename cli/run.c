/* pawl run: its options, and the start of its two processes. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands.h"
#include "duration.h"
#include "exits.h"
#include "message.h"
#include "text.h"

enum {
    OPT_WAIT = OPT_OWN,
    OPT_LEASE,
    OPT_MAX_HOLD,
    OPT_GRACE,
    OPT_NO_RENEW,
    OPT_LABEL,
    OPT_ON_BUSY,
    OPT_EXIT,
    OPT_OWNER,
    OPT_NEW_OWNER,
    OPT_WITH_PARENT,
    OPT_PASS_URL,
    OPT_LEFTOVER,
    OPT_KEEP
};

/* clang-format off */
static const struct option longs[] = {
    COMMON_LONG,
    { "wait", required_argument, NULL, OPT_WAIT },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "max-hold", required_argument, NULL, OPT_MAX_HOLD },
    { "grace", required_argument, NULL, OPT_GRACE },
    { "no-renew", no_argument, NULL, OPT_NO_RENEW },
    { "label", required_argument, NULL, OPT_LABEL },
    { "on-busy", required_argument, NULL, OPT_ON_BUSY },
    { "exit", required_argument, NULL, OPT_EXIT },
    { "owner", required_argument, NULL, OPT_OWNER },
    { "new-owner", no_argument, NULL, OPT_NEW_OWNER },
    { "with-parent", no_argument, NULL, OPT_WITH_PARENT },
    { "pass-url", no_argument, NULL, OPT_PASS_URL },
    { "leftover", required_argument, NULL, OPT_LEFTOVER },
    { "keep-for-daemon", no_argument, NULL, OPT_KEEP },
    { NULL, 0, NULL, 0 }
};
/* clang-format on */

int run_exit(const struct run *run, int code)
{
    return run->exit_for[code & 255] >= 0 ? run->exit_for[code & 255] : code;
}

/* "75" is for busy, as with flock -E; "busy=75,lost=3" names them. */
static int take_exits(struct run *run, const char *text)
{
    const char *p = text;
    char *end;

    while (*p != '\0') {
        size_t name_len = strcspn(p, "=,");
        int code = EXIT_BUSY;
        long value;

        if (p[name_len] == '=') {
            code = cli_exit_by_name(p, name_len);
            p += name_len + 1;
        }
        value = strtol(p, &end, 10);
        if (code < EXIT_USAGE || end == p || (*end != '\0' && *end != ',') || value < 0 ||
            value > 255)
            return usage_error("run",
                               _("--exit: '%s' is neither a code from 0 to 255 nor NAME=CODE; "
                                 "names: busy, unreachable, denied, lost, max-hold, refused, "
                                 "unknown, usage"),
                               text);
        run->exit_for[code] = (int)value;
        p = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int take_word(struct run *run, int code, const char *arg)
{
    if (code == OPT_ON_BUSY && (strcmp(arg, "fail") == 0 || strcmp(arg, "skip") == 0)) {
        run->skip_if_busy = arg[0] == 's';
        return 0;
    }
    if (code == OPT_ON_BUSY)
        return usage_error("run", _("--on-busy is 'fail' or 'skip'"));
    if (strcmp(arg, "stop") == 0)
        run->leftover = LEFTOVER_STOP;
    else if (strcmp(arg, "wait") == 0)
        run->leftover = LEFTOVER_WAIT;
    else if (strcmp(arg, "leave") == 0)
        run->leftover = LEFTOVER_LEAVE;
    else
        return usage_error("run", _("--leftover is 'stop', 'wait' or 'leave'"));
    return 0;
}

static int take_time(struct run *run, int code, const char *arg)
{
    switch (code) {
    case OPT_WAIT:
        if (strcmp(arg, "forever") == 0) {
            run->wait_ms = PAWL_FOREVER;
            return 0;
        }
        return options_duration(&run->opt, "--wait", arg, &run->wait_ms);
    case OPT_LEASE:
        return options_duration(&run->opt, "--lease", arg, &run->lease_ms);
    case OPT_MAX_HOLD:
        if (strcmp(arg, "none") == 0) {
            run->max_hold_ms = PAWL_UNLIMITED;
            return 0;
        }
        return options_duration(&run->opt, "--max-hold", arg, &run->max_hold_ms);
    default:
        return options_duration(&run->opt, "--grace", arg, &run->grace_ms);
    }
}

static int take_option(struct run *run, int code, char *arg)
{
    switch (code) {
    case OPT_NO_RENEW:
        run->no_renew = true;
        return 0;
    case OPT_LABEL:
        run->label = arg;
        return 0;
    case OPT_OWNER:
        run->owner = arg;
        return 0;
    case OPT_NEW_OWNER:
        run->new_owner = true;
        return 0;
    case OPT_WITH_PARENT:
        run->with_parent = true;
        return 0;
    case OPT_PASS_URL:
        run->pass_url = true;
        return 0;
    case OPT_KEEP:
        run->leftover = LEFTOVER_WAIT;
        return 0;
    case 'n':
        run->wait_ms = 0;
        return 0;
    case 'E':
    case OPT_EXIT:
        return take_exits(run, arg);
    case OPT_ON_BUSY:
    case OPT_LEFTOVER:
        return take_word(run, code, arg);
    default:
        return take_time(run, code, arg);
    }
}

/* Options may stand before and after KEY, up to "--" or, without one, up to the command. */
static int take_arguments(struct run *run, int argc, char **argv)
{
    int at = 1;
    int rc;
    int c;

    optind = 0;
    while (at < argc) {
        while ((c = getopt_long(argc, argv, "+" COMMON_SHORT "nE:", longs, NULL)) != -1) {
            rc = options_take(&run->opt, c, optarg);
            if (rc >= 0)
                return rc + 1000;
            rc = rc == OPTION_OTHER ? take_option(run, c, optarg) : 0;
            if (rc != 0)
                return rc + 1000;
        }
        at = optind;
        if (run->key != NULL || at >= argc)
            break;
        run->key = argv[at];
        optind = ++at;
        /* After one "--" getopt knows no second one. */
        if (at < argc && strcmp(argv[at], "--") == 0)
            at++;
        else if (at >= argc || argv[at][0] == '-')
            continue;
        break;
    }
    run->argv = argv + at;
    if (run->key == NULL)
        return usage_error("run", _("the name of the lock is missing")) + 1000;
    if (at >= argc)
        return usage_error("run", _("the command is missing: pawl run KEY -- COMMAND")) + 1000;
    return 0;
}

static int check_ranges(const struct run *run)
{
    if (run->lease_ms < PAWL_LEASE_MIN_MS || run->lease_ms > PAWL_LEASE_MAX_MS)
        return usage_error("run", _("--lease is from 100ms to 1h"));
    if (run->max_hold_ms != PAWL_UNLIMITED &&
        (run->max_hold_ms < run->lease_ms || run->max_hold_ms > PAWL_MAX_HOLD_MAX_MS))
        return usage_error("run", _("--max-hold is from the lease to 30d, or 'none'"));
    if (run->wait_ms != PAWL_FOREVER && run->wait_ms > PAWL_WAIT_MAX_MS)
        return usage_error("run", _("--wait is from 0 to 7d, or 'forever'"));
    if (run->grace_ms > 60000)
        return usage_error("run", _("--grace is from 0 to 60s"));
    return 0;
}

/* The job's name as label, for whoever looks at the lock, unless another was given. */
static void default_label(struct run *run)
{
    const char *slash = strrchr(run->argv[0], '/');
    const char *name = slash == NULL ? run->argv[0] : slash + 1;

    if (run->label == NULL && strlen(name) <= PAWL_LABEL_MAX && is_clean(name, strlen(name)))
        run->label = name;
}

static int start(const struct run *run, const struct run_signals *signals, struct run_fds *fds)
{
    struct run_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int sockets[2];
    pid_t keeper;
    int code;

    if (shared == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        say(_("cannot start the job: %s"), strerror(errno));
        return run_exit(run, EXIT_REFUSED);
    }
    atomic_init(&shared->kill_by_ns, 0);
    atomic_init(&shared->exit_code, -1);
    /* If the keeper is killed, what it kept comes to the front. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    keeper = fork();
    if (keeper < 0) {
        say(_("cannot start the job: %s"), strerror(errno));
        return run_exit(run, EXIT_REFUSED);
    }
    if (keeper == 0) {
        close(sockets[0]);
        code = keeper_run(run, signals, fds, sockets[1], shared);
        _exit(code);
    }
    close(sockets[1]);
    fds_drop(fds);
    return front_run(run, signals, keeper, sockets[0], shared);
}

int command_run(struct options *opt, int argc, char **argv)
{
    pid_t parent = getppid();
    struct run_signals signals;
    struct run_fds fds;
    struct run run = { .opt = *opt,
                       .lease_ms = 30000,
                       .wait_ms = PAWL_FOREVER,
                       .max_hold_ms = INT64_C(24) * 3600 * 1000,
                       .grace_ms = 5000 };
    int rc;

    (void)fds_init(&fds);
    for (size_t i = 0; i < 256; i++)
        run.exit_for[i] = -1;
    rc = take_arguments(&run, argc, argv);
    if (rc >= 1000)
        return run_exit(&run, rc - 1000);
    rc = check_ranges(&run);
    if (rc == 0)
        rc = options_finish(&run.opt);
    if (rc == 0)
        rc = signals_init(&signals);
    if (rc != 0)
        return run_exit(&run, rc);
    run.key_len = strlen(run.key);
    if (run.owner == NULL && !run.new_owner)
        run.owner = job_outer_owner(run.key);
    default_label(&run);
    if (run.with_parent) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            return 128 + SIGTERM;
    }
    return start(&run, &signals, &fds);
}
