/* Signals, descriptors and the clock of pawl run. Decides nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "exits.h"
#include "message.h"
#include "run.h"
#include "text.h"

/* A message must never end in a socket that took the number of a closed stderr. Close-on-exec: for
 * the job they are closed, as they were. */
static void open_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static bool is_fault(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP ||
           sig == SIGABRT || sig == SIGSYS;
}

int signals_init(struct run_signals *s)
{
    sigset_t all;

    open_standard_fds();
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, NULL, &s->action[sig]);
    sigfillset(&all);
    for (int sig = 1; sig < NSIG; sig++)
        if (is_fault(sig))
            sigdelset(&all, sig);
    (void)sigprocmask(SIG_BLOCK, &all, &s->mask);
    /* With SIGCHLD ignored, as some parents leave it, there would be no exit code to wait for. */
    (void)sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    s->fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        say(_("the system gives no descriptor for signals"));
        return EXIT_REFUSED;
    }
    return 0;
}

void signals_restore(const struct run_signals *s)
{
    (void)sigaction(SIGCHLD, &s->action[SIGCHLD], NULL);
    (void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

bool signals_ignored(const struct run_signals *s, int sig)
{
    return sig > 0 && sig < NSIG && s->action[sig].sa_handler == SIG_IGN;
}

bool signals_ends(int sig)
{
    switch (sig) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return false;
    default:
        return true;
    }
}

int fds_init(struct run_fds *fds)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    size_t room = 0;

    fds->fd = NULL;
    fds->n = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd <= STDERR_FILENO || fd == dirfd(dir))
            continue;
        if (fds->n == room) {
            int *more = reallocarray(fds->fd, room + 64, sizeof *more);

            if (more == NULL)
                break;
            fds->fd = more;
            room += 64;
        }
        fds->fd[fds->n++] = fd;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return 0;
}

void fds_drop(struct run_fds *fds)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        if (null > STDERR_FILENO)
            close(null);
    }
    for (size_t i = 0; i < fds->n; i++)
        close(fds->fd[i]);
    free(fds->fd);
    fds->fd = NULL;
    fds->n = 0;
}

int64_t boot_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
