/* The job: its environment and its start. The lock is the keeper's business. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exits.h"
#include "message.h"
#include "run.h"
#include "text.h"

extern char **environ;

static int put(char **env, size_t *n, const char *name, const char *value)
{
    if (asprintf(&env[*n], "%s=%s", name, value) < 0)
        return -1;
    (*n)++;
    return 0;
}

static void put_hex(char *to, const char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (; *text != '\0'; text++) {
        *to++ = digits[(unsigned char)*text >> 4];
        *to++ = digits[(unsigned char)*text & 15];
    }
    *to = '\0';
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* PAWL_OUTER: for a job inside a job, "OWNER:KEY" of each lock around the innermost one, both in
 * hex, with blanks between. So a lock is re-entered also when another one was taken in between,
 * while a lock that nobody up the chain holds keeps the children of one job apart. */
const char *job_outer_owner(const char *key)
{
    static char found[PAWL_OWNER_TEXT_MAX + 1];
    const char *owner = getenv("PAWL_OWNER");
    const char *inner = getenv("PAWL_KEY");
    const char *list = getenv("PAWL_OUTER");
    char hex[2 * PAWL_KEY_MAX + 1];
    size_t hex_len = strlen(key) * 2;

    if (owner != NULL && inner != NULL && strcmp(inner, key) == 0)
        return owner;
    if (list == NULL || hex_len >= sizeof hex)
        return NULL;
    put_hex(hex, key);
    while (*list != '\0') {
        size_t owner_len = strcspn(list, ": ");
        const char *item = list + owner_len + (list[owner_len] == ':');
        size_t item_len = strcspn(item, " ");

        if (item_len == hex_len && strncmp(item, hex, hex_len) == 0 &&
            owner_len / 2 < sizeof found) {
            for (size_t i = 0; i < owner_len / 2; i++)
                found[i] = (char)(hex_digit(list[2 * i]) << 4 | hex_digit(list[2 * i + 1]));
            found[owner_len / 2] = '\0';
            return found;
        }
        list = item + item_len + (item[item_len] == ' ');
    }
    return NULL;
}

/* The lock around this one, if any, joins the list. */
static int put_outer(char **env, size_t *n, const char *key)
{
    const char *owner = getenv("PAWL_OWNER");
    const char *inner = getenv("PAWL_KEY");
    const char *list = getenv("PAWL_OUTER");
    size_t owner_len;
    size_t len;
    char *value;
    int rc;

    if (owner == NULL || inner == NULL || strcmp(inner, key) == 0)
        return list == NULL ? 0 : put(env, n, "PAWL_OUTER", list);
    owner_len = strlen(owner) * 2;
    len = owner_len + strlen(inner) * 2 + 3 + (list == NULL ? 0 : strlen(list));
    value = malloc(len);
    if (value == NULL)
        return -1;
    put_hex(value, owner);
    value[owner_len] = ':';
    put_hex(value + owner_len + 1, inner);
    if (list != NULL && list[0] != '\0') {
        size_t at = strlen(value);

        (void)snprintf(value + at, len - at, " %s", list);
    }
    rc = put(env, n, "PAWL_OUTER", value);
    free(value);
    return rc;
}

/* What is set anew, or must not be passed on. */
static bool is_ours(const struct run *run, const char *setting)
{
    static const char *const names[] = { "PAWL_KEY=", "PAWL_FENCE=", "PAWL_OWNER=",
                                         "PAWL_DEADLINE=", "PAWL_OUTER=" };
    const char *secret = run->opt.password_env;
    size_t len = secret == NULL ? 0 : strlen(secret);

    if (len > 0 && !run->pass_url && strncmp(setting, secret, len) == 0 && setting[len] == '=')
        return true;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(setting, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Seconds since 1970 at which the maximum hold, or a lease without renewal, is over; "" if there
 * is no end. */
static void deadline_text(const struct run *run, struct pawl_lock *lock, char *ret, size_t len)
{
    int64_t left_ms = pawl_lock_max_hold_remaining_ms(lock);
    struct timespec now;

    if (run->no_renew)
        left_ms = pawl_lock_remaining_ms(lock);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (left_ms < 0)
        ret[0] = '\0';
    else
        (void)snprintf(ret, len, "%lld",
                       (long long)(now.tv_sec + (now.tv_nsec / 1000000 + left_ms) / 1000));
}

static int put_url(const struct run *run, char **env, size_t *n, const char *setting)
{
    char *copy = strdup(setting);
    char *host;

    if (copy == NULL)
        return -1;
    host = strstr(copy, "://");
    /* The password stays here; a job that takes locks itself gets it by --pass-url, or better from
     * the config file. */
    if (!run->pass_url && host != NULL) {
        char *end = host + 3 + strcspn(host + 3, "/?#");
        char *at = memrchr(host, '@', (size_t)(end - host));
        char *colon = at == NULL ? NULL : memchr(host + 3, ':', (size_t)(at - host - 3));

        if (colon == host + 3)
            memmove(colon, at + 1, strlen(at + 1) + 1);
        else if (colon != NULL)
            memmove(colon, at, strlen(at) + 1);
    }
    env[(*n)++] = copy;
    return 0;
}

char **job_environment(const struct run *run, struct pawl_lock *lock)
{
    char number[32];
    char deadline[32];
    size_t n = 0;
    size_t n_env = 0;
    char **env;
    int rc = 0;

    while (environ[n_env] != NULL)
        n_env++;
    env = calloc(n_env + 8, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n_env && rc == 0; i++) {
        if (strncmp(environ[i], "PAWL_URL=", 9) == 0)
            rc = put_url(run, env, &n, environ[i]);
        else if (!is_ours(run, environ[i]))
            env[n++] = environ[i];
    }
    (void)snprintf(number, sizeof number, "%" PRIu64, pawl_lock_token(lock));
    deadline_text(run, lock, deadline, sizeof deadline);
    if (rc != 0 || put(env, &n, "PAWL_KEY", run->key) < 0 ||
        put(env, &n, "PAWL_FENCE", number) < 0 ||
        put(env, &n, "PAWL_OWNER", pawl_lock_owner(lock)) < 0 ||
        put(env, &n, "PAWL_DEADLINE", deadline) < 0 || put_outer(env, &n, run->key) < 0) {
        free(env);
        return NULL;
    }
    return env;
}

/* Between fork and exec of a process with threads: only calls that are safe in signal handlers. */
static _Noreturn void child(const struct run *run, const struct run_signals *signals, char **env,
                            pid_t keeper, pid_t group, int report)
{
    int error;

    /* The keeper's death is the job's. It may have died before this call: then the parent is
     * another one already. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(EXIT_LOST);
    (void)setpgid(0, group);
    signals_restore(signals);
    execvpe(run->argv[0], run->argv, env);
    error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(EXIT_NOT_FOUND);
    _exit(EXIT_NOT_FOUND);
}

bool job_has_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (terminal < 0)
        return false;
    close(terminal);
    return true;
}

/* With a terminal the job belongs to the front's process group, so that Ctrl-C, Ctrl-Z, fg and
 * pipelines work as without pawl. Without one it gets a group of its own, so that a signal to
 * pawl's group reaches it once, through pawl, and not twice. */
static pid_t job_group(void)
{
    return job_has_terminal() ? getpgid(getppid()) : 0;
}

int job_start(const struct run *run, const struct run_signals *signals, char **env, pid_t *ret_pid)
{
    pid_t keeper = getpid();
    pid_t group = job_group();
    char name[256];
    int report[2];
    int error = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0) {
        say(_("cannot start the job: %s"), strerror(errno));
        return run_exit(run, EXIT_REFUSED);
    }
    pid = fork();
    if (pid == 0)
        child(run, signals, env, keeper, group, report[1]);
    error = errno;
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        say(_("cannot start the job: %s"), strerror(error));
        return run_exit(run, EXIT_REFUSED);
    }
    do
        n = read(report[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n != (ssize_t)sizeof error) {
        *ret_pid = pid;
        return 0;
    }
    (void)waitpid(pid, NULL, 0);
    say("%s: %s", printable(run->argv[0], strlen(run->argv[0]), name, sizeof name),
        strerror(error));
    return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
