/* pawl run: three processes.
 *
 *   front   the process that was started. Passes signals on, stops and continues as a shell
 *           expects, ends with the exit code. Holds no connection.
 *   keeper  its child, in a process group of its own: holds the lock, is the job's parent.
 *   job     the command.
 *
 * Front and keeper are both subreapers and watch each other over a socket: if the keeper dies or
 * is frozen, the front stops the job's processes before the lease can pass on; if the front dies,
 * the keeper stops them and gives the lock back. */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <pawl.h>

#include "options.h"

enum leftover { LEFTOVER_STOP, LEFTOVER_WAIT, LEFTOVER_LEAVE };

/* What pawl run was asked to do. */
struct run {
    struct options opt;
    const char *key;
    size_t key_len;
    char **argv; /* the command, ends with NULL */
    const char *label;
    const char *owner; /* --owner or inherited; NULL: a new one */
    int64_t lease_ms;
    int64_t wait_ms;
    int64_t max_hold_ms;
    int64_t grace_ms;
    bool no_renew;
    bool new_owner;
    bool skip_if_busy;
    bool with_parent;
    bool pass_url;
    enum leftover leftover;
    int exit_for[256]; /* exit code instead of ours; see run_exit() */
};

/* The exit code to use for one of enum cli_exit. */
int run_exit(const struct run *run, int code);

/* What front and keeper share in memory. Written by the keeper, read by the front. */
struct run_shared {
    _Atomic int64_t kill_by_ns; /* CLOCK_BOOTTIME at which the job must be gone; 0: no job */
    atomic_int exit_code; /* of the whole; -1: not known yet */
};

/* One message on the socket between them. */
enum run_word {
    RUN_SIGNAL, /* front to keeper: a signal came; value, from_kernel */
    RUN_STOPPED, /* keeper to front: the job has stopped by the signal value */
    RUN_TIME /* keeper to front: kill_by_ns has come closer */
};
struct run_message {
    uint8_t word;
    uint8_t value;
    uint8_t from_kernel; /* the terminal sent it, to the whole foreground group */
};

/* How signals were when pawl was started; the job gets them back. */
struct run_signals {
    sigset_t mask; /* blocked at the start */
    struct sigaction action[NSIG];
    int fd; /* signalfd of everything that can be passed on */
};

/* Block and watch all signals but faults. Also makes sure that descriptors 0 to 2 are open.
 * 0 or an exit code after the message. */
int signals_init(struct run_signals *s);
/* In the job between fork and exec: everything as it was. */
void signals_restore(const struct run_signals *s);
/* Was it ignored when pawl was started? Then it neither cancels nor ends anything. */
bool signals_ignored(const struct run_signals *s, int sig);
/* Would it end a program that does nothing about it? */
bool signals_ends(int sig);

/* The descriptors that pawl was started with, which the job inherits and pawl itself must not
 * keep open. */
struct run_fds {
    int *fd;
    size_t n;
};
int fds_init(struct run_fds *fds);
/* Let go of them, of stdin and of stdout; stderr stays for messages. */
void fds_drop(struct run_fds *fds);

int64_t boot_ns(void);

/* The front: does not return before the keeper has ended. Returns the exit code. */
int front_run(const struct run *run, const struct run_signals *signals, pid_t keeper, int socket,
              struct run_shared *shared);

/* The keeper: the whole life of one hold. Returns the exit code. */
int keeper_run(const struct run *run, const struct run_signals *signals, struct run_fds *fds,
               int socket, struct run_shared *shared);

/* Environment of the job; NULL without memory. Freed with free(). */
char **job_environment(const struct run *run, struct pawl_lock *lock);
/* The owner that this process' job environment names for @key, or NULL. */
const char *job_outer_owner(const char *key);

/* Start the job. 0 and its pid; or the exit code 126 or 127 after the message, then nothing runs
 * any more. */
int job_start(const struct run *run, const struct run_signals *signals, char **env,
              pid_t *ret_pid);

/* Is there a terminal that controls this process? Then the job shares the front's process group. */
bool job_has_terminal(void);

/* Send @sig to every process below @root, by way of pidfds whose process is seen to be the same
 * before and after, so that no reused number is hit. Those that started before @since (as
 * tree_start() gives it) are left out: 0 for none. Returns how many live processes there were, -1
 * if /proc cannot be read. */
int tree_signal(pid_t root, unsigned long long since, int sig);
/* SIGKILL until nothing is left but zombies. */
void tree_kill(pid_t root, unsigned long long since);
/* When a process started, in ticks since boot; 0 if it is not there. */
unsigned long long tree_start(pid_t pid);

#endif
