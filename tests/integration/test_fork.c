/* After fork() the child's handles are dead and the parent's are unharmed. */
#include "integration/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* All calls in the child; returns the number of the first wrong one. */
static int misuse_everything(struct pawl_client *client, struct pawl_lock *lock)
{
    struct pawl_stats stats = { .size = sizeof stats };
    struct pawl_lock_info *info = NULL;
    struct pawl_lock *other = NULL;
    struct done done;

    if (pawl_lock_check(lock) != PAWL_EFORKED)
        return 1;
    if (pawl_lock_release(lock) != PAWL_EFORKED)
        return 2;
    if (pawl_lock_extend(lock, 1000) != PAWL_EFORKED || pawl_lock_fd(lock) != PAWL_EFORKED)
        return 3;
    if (pawl_lock_acquire(client, "x", 1, NULL, &other) != PAWL_EFORKED)
        return 4;
    if (pawl_lock_acquire_async(client, "x", 1, NULL, on_acquired, &done, NULL) != PAWL_EFORKED)
        return 5;
    if (pawl_client_fd(client) != PAWL_EFORKED || pawl_client_dispatch(client) != PAWL_EFORKED)
        return 6;
    if (pawl_inspect(client, "job", 3, &info) != PAWL_EFORKED)
        return 7;
    if (pawl_force_release(client, "job", 3, 0, PAWL_FORCE_NOW) != PAWL_EFORKED)
        return 8;
    if (pawl_client_stats(client, &stats) != PAWL_EFORKED ||
        pawl_client_ready(client, 0) != PAWL_EFORKED || pawl_cancel(client, 1) != PAWL_EFORKED)
        return 9;
    if (pawl_fence_claim(lock, "r", 1) != PAWL_EFORKED)
        return 10;
    if (pawl_lock_remaining_ms(lock) != 0)
        return 11;
    pawl_lock_free(lock);
    pawl_client_close(client);
    return 0;
}

static void child_can_do_nothing_to_the_parents_lock(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 900, 0);
    pid_t pid = fork();

    if (pid == 0)
        _exit(misuse_everything(client, lock));
    assert_int_equal(wait_for(pid), 0);
    ALWAYS(1500, pttl(s, "job") > 0); /* the parent goes on renewing over its own connection */
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(s, "job"));
    pawl_client_close(client);
}

static void child_may_open_its_own_client(void **state)
{
    struct server *s = *state;
    const char *kind = getenv("PAWL_SANITIZE");
    struct pawl_client *client;
    struct pawl_lock *lock;
    pid_t pid;

    if (kind != NULL && strcmp(kind, "thread") == 0)
        skip(); /* it allows no threads in a child of a program with threads */
    client = open_client(s->url, NULL);
    lock = take(client, "job", 5000, 0);
    pid = fork();
    if (pid == 0) {
        struct pawl_client *own = NULL;
        struct pawl_lock *other = NULL;
        struct pawl_lock_options opts = lock_options(5000, 0);
        int rc = 0;

        if (pawl_client_open(s->url, NULL, &own) != 0)
            _exit(1);
        if (pawl_lock_acquire(own, "job", 3, &opts, &other) != PAWL_BUSY)
            rc = 2;
        else if (pawl_lock_acquire(own, "mine", 4, &opts, &other) != 0)
            rc = 3;
        else if (pawl_lock_release(other) != 0)
            rc = 4;
        else if (pawl_lock_check(lock) != PAWL_EFORKED)
            rc = 5;
        pawl_lock_free(other);
        pawl_client_close(own);
        _exit(rc);
    }
    assert_int_equal(wait_for(pid), 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

/* Exit handlers and flushes of the child release nothing. */
static void child_that_exits_releases_nothing(void **state)
{
    struct server *s = *state;
    struct pawl_client *client = open_client(s->url, NULL);
    struct pawl_lock *lock = take(client, "job", 5000, 0);
    pid_t pid = fork();

    if (pid == 0) {
        PAWL_SCOPED struct pawl_lock *scoped = lock;

        _exit(scoped == NULL);
    }
    assert_int_equal(wait_for(pid), 0);
    assert_true(exists(s, "job"));
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

/* Descriptors that would outlive an exec, other than those that were open at @before. */
static size_t inherited(const bool *before, size_t n)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    size_t n_found = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[300];
        char *text;
        unsigned flags = 0;
        size_t fd = (size_t)strtoul(entry->d_name, NULL, 10);

        if (entry->d_name[0] == '.' || (fd < n && before[fd]))
            continue;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%s", entry->d_name);
        text = read_file(path, NULL);
        if (text != NULL && sscanf(strstr(text, "flags:"), "flags: %o", &flags) == 1)
            n_found += (flags & 02000000) == 0; /* O_CLOEXEC */
        free(text);
    }
    closedir(dir);
    return n_found;
}

static void every_descriptor_is_closed_on_exec(void **state)
{
    struct server *s = *state;
    bool before[256];
    struct pawl_client *client;
    struct pawl_lock *lock;

    for (int fd = 0; fd < (int)N_OF(before); fd++)
        before[fd] = fcntl(fd, F_GETFD) != -1;
    client = open_client(s->tcp_url, NULL);
    lock = take(client, "job", 5000, 0);
    assert_true(pawl_lock_fd(lock) >= 0);
    EXPECT_RESULT(refuse(client, "job", 5000, 200), PAWL_TIMEOUT); /* the inbox is open as well */
    assert_int_equal(inherited(before, N_OF(before)), 0);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(child_can_do_nothing_to_the_parents_lock),
        SERVED(child_may_open_its_own_client),
        SERVED(child_that_exits_releases_nothing),
        SERVED(every_descriptor_is_closed_on_exec),
    };

    return RUN_SERVED(tests);
}
