/* The keeper of pawl run: asks for the lock, starts the job, passes signals to it, and gives the
 * lock back when all of the job's processes are gone. */
#include "run_keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "duration.h"
#include "exits.h"
#include "message.h"
#include "text.h"

static void finish(struct keeper *k, int code)
{
    k->code = code;
    k->state = KEEPER_DONE;
}

static void release(struct keeper *k);

/* --- asking ------------------------------------------------------------------------------- */

static void start_job(struct keeper *k)
{
    char **env = job_environment(k->run, k->lock);
    int code = EXIT_REFUSED;

    if (env != NULL)
        code = job_start(k->run, k->signals, env, &k->job);
    free(env);
    if (code != 0) {
        k->code = code;
        release(k);
        return;
    }
    k->state = KEEPER_RUNNING;
    fds_drop(k->fds);
}

static int wait_failed(struct keeper *k, int result)
{
    char name[NAME_TEXT];
    int code = cli_exit_of(result);

    (void)printable(k->run->key, k->run->key_len, name, sizeof name);
    if (code == EXIT_BUSY && k->run->skip_if_busy) {
        note(_("'%s' is held by somebody else; skipping the job"), name);
        return 0;
    }
    (void)say_result(name, result);
    return run_exit(k->run, code);
}

static void asked(void *arg, int result, struct pawl_lock *lock)
{
    struct keeper *k = arg;

    k->ask_id = 0;
    k->lock = lock;
    if (k->ended_by != 0 || (k->socket < 0 && lock != NULL)) {
        k->code = k->ended_by != 0 ? 128 + k->ended_by : run_exit(k->run, EXIT_LOST);
        release(k);
    } else if (result == PAWL_OK && !k->pause) {
        start_job(k);
    } else if (k->pause && (result == PAWL_CANCELED || lock != NULL)) {
        /* A grant that raced with Ctrl-Z goes back: nobody works while we are stopped. */
        pawl_lock_free(lock);
        k->lock = NULL;
        k->state = KEEPER_PAUSED;
    } else {
        finish(k, wait_failed(k, result));
    }
    k->pause = false;
}

static void ask(struct keeper *k)
{
    struct pawl_lock_options o = PAWL_LOCK_OPTIONS_INIT;
    int rc;

    o.owner = k->owner;
    o.lease_ms = k->run->lease_ms;
    o.wait_ms = k->run->wait_ms;
    o.max_hold_ms = k->run->max_hold_ms;
    o.grace_ms = k->run->grace_ms;
    o.flags = k->run->no_renew ? PAWL_NO_RENEW : 0u;
    k->state = KEEPER_ASKING;
    rc =
        pawl_lock_acquire_async(k->client, k->run->key, k->run->key_len, &o, asked, k, &k->ask_id);
    if (rc < 0)
        finish(k, wait_failed(k, rc));
}

/* Waiting for long without a word makes people think of a hang: say once what for. */
static void looked(void *arg, int result, struct pawl_lock_info *info)
{
    struct keeper *k = arg;
    char name[NAME_TEXT];
    char held[DURATION_TEXT];

    if (k->state == KEEPER_ASKING) {
        (void)printable(k->run->key, k->run->key_len, name, sizeof name);
        if (result == PAWL_OK)
            note(_("waiting for '%s': held by %s, pid %lld on %s, for %s"), name,
                 info->owner[0] == '\0' ? "?" : info->owner, (long long)info->pid,
                 info->host[0] == '\0' ? "?" : info->host,
                 duration_text(info->held_ms, held, sizeof held));
        else if (result < 0)
            note(_("waiting for '%s': %s (%s); trying on, --wait sets a limit"), name,
                 result_text(result), pawl_error_detail());
    }
    pawl_lock_info_free(info);
}

static void tell_what_for(struct keeper *k)
{
    k->told_busy = true;
    (void)pawl_inspect_async(k->client, k->run->key, k->run->key_len, looked, k);
}

/* --- releasing ---------------------------------------------------------------------------- */

static void released(void *arg, int result)
{
    struct keeper *k = arg;
    int code = k->code;

    if (pawl_is_lost(result) && code < 0) {
        /* The job ended by itself, but somebody else may have been in before. */
        (void)say_result(_("the job ended, but the lock was lost before"), result);
        code = run_exit(k->run, cli_exit_of(result));
    } else if (result < 0) {
        (void)say_result(_("the job ended, but the release was not confirmed"), result);
    }
    finish(k, code >= 0 ? code : k->job_code);
}

static void release(struct keeper *k)
{
    k->state = KEEPER_RELEASING;
    if (k->lock == NULL || pawl_lock_release_async(k->lock, released, k) < 0)
        finish(k, k->code >= 0 ? k->code : k->job_code);
}

/* --- the job's processes ------------------------------------------------------------------- */

static void job_stopped(struct keeper *k, int sig)
{
    struct run_message m = { RUN_STOPPED, (uint8_t)sig, 0 };

    /* Without a terminal there is no shell to tell; and a stopped front passes no signals on. */
    if (k->terminal && k->socket >= 0)
        (void)send(k->socket, &m, sizeof m, MSG_NOSIGNAL);
}

static void job_ended(struct keeper *k, int status)
{
    k->job = 0;
    k->job_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Everything that ended, orphans too, which come to us because we are a subreaper. */
static void reap(struct keeper *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(status)) {
            if (pid == k->job)
                job_stopped(k, WSTOPSIG(status));
        } else if (WIFCONTINUED(status)) {
            /* Continued by somebody else than the shell: the front goes on too. */
            if (pid == k->job && k->terminal)
                (void)pidfd_send_signal(k->front_fd, SIGCONT, NULL, 0);
        } else if (pid == k->job) {
            job_ended(k, status);
        }
    }
    if (k->state != KEEPER_RUNNING && k->state != KEEPER_STOPPING && k->state != KEEPER_LINGERING)
        return;
    if (pid < 0 && errno == ECHILD)
        release(k);
    else if (k->job == 0 && k->state == KEEPER_RUNNING && k->run->leftover == LEFTOVER_LEAVE)
        release(k);
    else if (k->job == 0 && k->state == KEEPER_RUNNING)
        keeper_linger(k);
}

/* --- signals ------------------------------------------------------------------------------- */

static void stop_waiting(struct keeper *k, int sig)
{
    if (signals_ignored(k->signals, sig))
        return;
    if (sig == SIGTSTP) {
        struct run_message m = { RUN_STOPPED, (uint8_t)sig, 0 };

        /* Whoever is stopped must not be granted a lock and keep others out. */
        if (k->terminal && k->ask_id != 0) {
            k->pause = true;
            (void)pawl_cancel(k->client, k->ask_id);
            (void)send(k->socket, &m, sizeof m, MSG_NOSIGNAL);
        }
        return;
    }
    if (!signals_ends(sig))
        return;
    k->ended_by = sig;
    if (k->state == KEEPER_PAUSED)
        finish(k, 128 + sig);
    else
        (void)pawl_cancel(k->client, k->ask_id);
}

static void take_signal(struct keeper *k, int sig, bool from_kernel)
{
    switch (k->state) {
    case KEEPER_PAUSED:
        if (sig == SIGCONT) {
            ask(k);
            return;
        }
        stop_waiting(k, sig);
        return;
    case KEEPER_ASKING:
        stop_waiting(k, sig);
        return;
    case KEEPER_RUNNING:
        /* What the terminal sent, the job has got already: it is in the same group. The job's pid
         * is not reused as long as we have not waited for it. */
        if (k->job > 0 && !(from_kernel && k->terminal))
            (void)kill(k->job, sig);
        return;
    case KEEPER_STOPPING:
    case KEEPER_LINGERING:
        if (signals_ends(sig) || sig == SIGCONT)
            (void)tree_signal(getpid(), 0, sig);
        /* Who waits for a daemon and is told to end, does not wait any more. */
        if (k->state == KEEPER_LINGERING && signals_ends(sig) && k->kill_ns == 0)
            keeper_stop(k, 128 + sig, strsignal(sig));
        return;
    default:
        /* Releasing: at most a second more, and the job's own code is the answer. */
        return;
    }
}

static void take_signals(struct keeper *k)
{
    struct signalfd_siginfo si;

    while (read(k->signals->fd, &si, sizeof si) == (ssize_t)sizeof si) {
        if (si.ssi_signo == SIGCHLD)
            reap(k);
        else if (si.ssi_signo != SIGPIPE || si.ssi_pid != (uint32_t)getpid())
            take_signal(k, (int)si.ssi_signo, si.ssi_code == SI_KERNEL);
    }
}

/* The front was killed: nobody waits for the job's result, and whoever killed it wanted the job
 * gone. */
static void front_gone(struct keeper *k)
{
    k->socket = -1;
    if (k->state == KEEPER_ASKING && k->ask_id != 0)
        (void)pawl_cancel(k->client, k->ask_id);
    else if (k->state == KEEPER_PAUSED)
        finish(k, EXIT_LOST);
    else if (k->state == KEEPER_RUNNING || k->state == KEEPER_LINGERING) {
        keeper_stop(k, EXIT_LOST, _("pawl itself was killed"));
        k->kill_ns = boot_ns();
    }
}

static void take_words(struct keeper *k)
{
    struct run_message m;
    ssize_t n;

    while ((n = recv(k->socket, &m, sizeof m, MSG_DONTWAIT)) == (ssize_t)sizeof m)
        if (m.word == RUN_SIGNAL)
            take_signal(k, m.value, m.from_kernel != 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        front_gone(k);
}

/* --- the loop ------------------------------------------------------------------------------ */

static void one_turn(struct keeper *k)
{
    struct pollfd fds[] = {
        { k->signals->fd, POLLIN, 0 },
        { k->socket, POLLIN, 0 },
        { k->timer, POLLIN, 0 },
        { pawl_client_fd(k->client), POLLIN, 0 },
        /* Readable for good once lost: no news while the job is being stopped. */
        { k->state == KEEPER_RUNNING || k->state == KEEPER_LINGERING ? pawl_lock_fd(k->lock) : -1,
          POLLIN, 0 },
    };
    bool wait_told = k->told_busy || k->state != KEEPER_ASKING || k->run->opt.quiet;
    int n;

    keeper_look(k);
    n = poll(fds, sizeof fds / sizeof fds[0], wait_told ? -1 : 2000);
    if (n == 0 && !wait_told)
        tell_what_for(k);
    /* The lock before everything else: after a suspend the first thing to know is that it went. */
    keeper_look(k);
    take_signals(k);
    if (k->socket >= 0)
        take_words(k);
    if (k->state != KEEPER_DONE)
        (void)pawl_client_dispatch(k->client);
    reap(k);
}

static int open_all(struct keeper *k)
{
    int rc;

    k->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    k->front_fd = pidfd_open(getppid(), 0);
    k->terminal = job_has_terminal();
    /* A group of our own: Ctrl-C and a KILL of the group are not for us. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (k->timer < 0) {
        say(_("cannot start the job: %s"), strerror(errno));
        return EXIT_REFUSED;
    }
    rc = k->run->owner != NULL ? pawl_owner_parse(k->run->owner, &k->owner)
                               : pawl_owner_new(k->run->label, &k->owner);
    if (rc < 0)
        return say_result(k->run->owner != NULL ? _("the owner") : _("the label"), rc);
    return options_client(&k->run->opt, &k->client);
}

int keeper_run(const struct run *run, const struct run_signals *signals, struct run_fds *fds,
               int socket, struct run_shared *shared)
{
    struct keeper k = { .run = run,
                        .signals = signals,
                        .fds = fds,
                        .shared = shared,
                        .socket = socket,
                        .front_fd = -1,
                        .timer = -1,
                        .state = KEEPER_PAUSED,
                        .code = -1 };
    int code = open_all(&k);

    if (code != 0) {
        code = run_exit(run, code);
    } else {
        ask(&k);
        while (k.state != KEEPER_DONE)
            one_turn(&k);
        code = k.code;
    }
    atomic_store(&shared->kill_by_ns, 0);
    atomic_store(&shared->exit_code, code);
    pawl_lock_free(k.lock);
    pawl_client_close(k.client);
    pawl_owner_free(k.owner);
    return code;
}
