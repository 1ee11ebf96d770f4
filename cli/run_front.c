/* The front of pawl run: passes signals to the keeper and stops with the job. It holds no
 * connection; it ends the job only if the keeper cannot. */
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exits.h"
#include "message.h"
#include "run.h"
#include "text.h"

struct front {
    const struct run *run;
    const struct run_signals *signals;
    struct run_shared *shared;
    pid_t keeper; /* 0 once it has been waited for */
    unsigned long long keeper_start;
    int socket;
    int timer;
};

static void tell_keeper(struct front *f, int sig, bool from_kernel)
{
    struct run_message m = { RUN_SIGNAL, (uint8_t)sig, from_kernel };

    (void)send(f->socket, &m, sizeof m, MSG_NOSIGNAL);
}

/* All children: the keeper, and orphans if we are process 1 or the keeper is gone. */
static void reap(struct front *f)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        if (pid == f->keeper)
            f->keeper = 0;
}

static void take_signals(struct front *f)
{
    struct signalfd_siginfo si;

    while (read(f->signals->fd, &si, sizeof si) == (ssize_t)sizeof si) {
        int sig = (int)si.ssi_signo;

        if (sig == SIGCHLD)
            reap(f);
        else if (sig == SIGPIPE && si.ssi_pid == (uint32_t)getpid())
            continue; /* our own message to a closed stderr */
        else
            tell_keeper(f, sig, si.ssi_code == SI_KERNEL);
    }
}

/* Stop as the job did, so that the shell sees it. Goes on when the shell continues us; in an
 * orphaned group, where nobody could, the kernel does not stop us. */
static void stop_with_job(int sig)
{
    struct sigaction was;
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, sig);
    (void)sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL }, &was);
    (void)raise(sig);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)sigprocmask(SIG_BLOCK, &only, NULL);
    (void)sigaction(sig, &was, NULL);
}

static void take_words(struct front *f)
{
    struct run_message m;
    ssize_t n;

    /* RUN_TIME needs nothing: the timer is set anew after every word. */
    while ((n = recv(f->socket, &m, sizeof m, MSG_DONTWAIT)) == (ssize_t)sizeof m)
        if (m.word == RUN_STOPPED)
            stop_with_job(m.value);
    if (n == 0)
        f->socket = -1; /* closed by exit; poll() leaves negative numbers out */
}

static void arm(struct front *f)
{
    int64_t at = atomic_load(&f->shared->kill_by_ns);
    struct itimerspec when = { { 0, 0 }, { at / 1000000000, at % 1000000000 } };

    (void)timerfd_settime(f->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The keeper did not move the time on: it is frozen, or starved. The lease may pass on now. */
static void check_deadline(struct front *f)
{
    int64_t at = atomic_load(&f->shared->kill_by_ns);

    if (f->keeper <= 0 || at == 0 || boot_ns() < at)
        return;
    say(_("the process that holds the lock does not answer; stopping the job"));
    tree_kill(f->keeper, 0);
    atomic_store(&f->shared->kill_by_ns, 0);
    atomic_store(&f->shared->exit_code, run_exit(f->run, EXIT_LOST));
    (void)kill(f->keeper, SIGKILL); /* ours and not waited for: no reused number */
}

/* The keeper ended without a word: killed. What it left behind is ours now. */
static int without_keeper(struct front *f)
{
    say(_("the process that holds the lock was killed; stopping the job"));
    tree_kill(getpid(), f->keeper_start);
    reap(f);
    return run_exit(f->run, EXIT_LOST);
}

int front_run(const struct run *run, const struct run_signals *signals, pid_t keeper, int socket,
              struct run_shared *shared)
{
    struct front f = { run, signals, shared, keeper, tree_start(keeper), socket, -1 };
    int code;

    f.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    while (f.keeper > 0) {
        struct pollfd fds[] = { { signals->fd, POLLIN, 0 },
                                { f.socket, POLLIN, 0 },
                                { f.timer, POLLIN, 0 } };

        arm(&f);
        (void)poll(fds, 3, -1);
        take_signals(&f);
        if (f.socket >= 0)
            take_words(&f);
        check_deadline(&f);
    }
    code = atomic_load(&shared->exit_code);
    return code >= 0 ? code : without_keeper(&f);
}
