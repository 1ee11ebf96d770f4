/* The processes below one process, found in /proc, and signals to them. Waits for nobody. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

struct process {
    pid_t pid;
    pid_t parent;
    unsigned long long start; /* ticks since boot: tells a reused number */
    char state;
    bool below;
};

/* Field 2 is the program's name in parentheses and may hold anything; count from the last ')'. */
static int read_process(pid_t pid, struct process *ret)
{
    char path[64];
    char text[1024];
    const char *field;
    ssize_t n;
    int fd;
    long parent;
    char state;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    field = strrchr(text, ')');
    if (field == NULL || field[1] != ' ')
        return -1;
    state = field[2];
    parent = strtol(field + 3, NULL, 10);
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    if (field == NULL)
        return -1;
    *ret = (struct process){
        .pid = pid, .parent = (pid_t)parent, .start = strtoull(field + 1, NULL, 10), .state = state
    };
    return 0;
}

/* All processes there are; NULL if /proc cannot be read. */
static struct process *read_all(size_t *ret_n)
{
    DIR *proc = opendir("/proc");
    struct process *all = NULL;
    size_t n = 0;
    size_t room = 0;
    struct dirent *entry;

    if (proc == NULL)
        return NULL;
    while ((entry = readdir(proc)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (n == room) {
            struct process *more;

            room = room == 0 ? 256 : room * 2;
            more = reallocarray(all, room, sizeof *all);
            if (more == NULL)
                break;
            all = more;
        }
        if (read_process((pid_t)strtol(entry->d_name, NULL, 10), &all[n]) == 0)
            n++;
    }
    (void)closedir(proc);
    *ret_n = n;
    return all;
}

static void mark_below(struct process *all, size_t n, pid_t root)
{
    bool more = true;

    /* A number may be above its parent's or below: go on until a round finds nothing new. */
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            bool found = all[i].parent == root;

            for (size_t j = 0; !found && !all[i].below && j < n; j++)
                found = all[j].below && all[j].pid == all[i].parent;
            if (found && !all[i].below) {
                all[i].below = true;
                more = true;
            }
        }
    }
}

/* Between reading /proc and opening the pidfd the number may have passed to another process; the
 * same start time afterwards says that it has not. */
static void signal_same(const struct process *p, int sig)
{
    struct process now;
    int fd = pidfd_open(p->pid, 0);

    if (fd < 0)
        return;
    if (read_process(p->pid, &now) == 0 && now.start == p->start) {
        (void)pidfd_send_signal(fd, sig, NULL, 0);
        /* What is stopped would not see it. */
        if (sig != SIGKILL && (now.state == 'T' || now.state == 't'))
            (void)pidfd_send_signal(fd, SIGCONT, NULL, 0);
    }
    close(fd);
}

/* A zombie too: its number is not free before it has been waited for. */
static bool is_own_child(pid_t pid)
{
    siginfo_t info;

    return pid > 1 && waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

unsigned long long tree_start(pid_t pid)
{
    struct process p;

    return read_process(pid, &p) == 0 ? p.start : 0;
}

int tree_signal(pid_t root, unsigned long long since, int sig)
{
    size_t n = 0;
    struct process *all;
    int count = 0;

    /* Below 0 and 1 lies the whole machine. Only ever ourselves, or a child that we have not
     * waited for. */
    if (root != getpid() && !is_own_child(root))
        return 0;
    all = read_all(&n);
    if (all == NULL)
        return -1;
    mark_below(all, n, root);
    for (size_t i = 0; i < n; i++) {
        if (!all[i].below || all[i].start < since || all[i].state == 'Z' || all[i].state == 'X')
            continue;
        count++;
        if (sig != 0)
            signal_same(&all[i], sig);
    }
    free(all);
    return count;
}

void tree_kill(pid_t root, unsigned long long since)
{
    /* A process may fork while it is being found; its children are there in the next round. */
    for (int round = 0; round < 200; round++) {
        if (tree_signal(root, since, SIGKILL) <= 0)
            return;
        (void)poll(NULL, 0, round < 10 ? 1 : 10);
    }
}
