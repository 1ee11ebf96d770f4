/* A program that uses libpawl and does what it is told on its input, so that tests can stop, kill
 * or disguise it: holder URL. One command a line, one answer a line:
 *   take KEY LEASE WAIT [FLAGS] -> took RESULT TOKEN       (lock handle: the last one taken)
 *   check                       -> check RESULT REMAINING
 *   release                     -> released RESULT
 *   churn KEY LEASE             -> takes and releases until it is killed, no answer
 *   sections KEY N FILE         -> N protected sections that append to FILE, then "done FAILURES"
 *   owner                       -> owner TEXT
 *   exit MS                     -> after that time exits as it is, without closing anything
 * and unasked "event N RESULT MS" for each event of a lock, MS being CLOCK_BOOTTIME. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl.h>

#include "lib/patience.h"

static struct pawl_lock *lock;

static void on_event(void *arg, struct pawl_lock *of, enum pawl_event event, int result)
{
    (void)arg;
    (void)of;
    printf("event %d %s %" PRId64 "\n", (int)event, pawl_result_name(result), now_ms());
}

static int acquire(struct pawl_client *client, const char *key, long lease_ms, long wait_ms,
                   unsigned flags)
{
    struct pawl_lock_options opts = PAWL_LOCK_OPTIONS_INIT;

    opts.lease_ms = lease_ms;
    opts.wait_ms = wait_ms;
    opts.flags = flags;
    opts.on_event = on_event;
    pawl_lock_free(lock);
    lock = NULL;
    return pawl_lock_acquire(client, key, strlen(key), &opts, &lock);
}

static void note(int fd, const char *what, int i)
{
    char line[64];
    int len = snprintf(line, sizeof line, "%ld %s %d\n", (long)getpid(), what, i);

    if (write(fd, line, (size_t)len) != len)
        exit(3);
}

static void sections(struct pawl_client *client, const char *key, int n, const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int n_failed = 0;

    for (int i = 0; i < n; i++) {
        if (acquire(client, key, 2000, 60000, 0) != 0) {
            n_failed++;
            continue;
        }
        note(fd, "enter", i);
        pause_ms(1);
        note(fd, "leave", i);
        if (pawl_lock_release(lock) != 0)
            n_failed++;
    }
    close(fd);
    printf("done %d\n", n_failed);
}

static void obey(struct pawl_client *client, const char *line)
{
    char key[256] = "";
    char path[256] = "";
    long lease_ms = 0;
    long wait_ms = 0;
    unsigned flags = 0;
    int n = 0;

    if (sscanf(line, "take %255s %ld %ld %u", key, &lease_ms, &wait_ms, &flags) >= 3) {
        int rc = acquire(client, key, lease_ms, wait_ms, flags);

        printf("took %s %" PRIu64 "\n", pawl_result_name(rc), pawl_lock_token(lock));
    } else if (strncmp(line, "check", 5) == 0) {
        int rc = pawl_lock_check(lock);

        printf("check %s %" PRId64 "\n", pawl_result_name(rc),
               lock == NULL ? 0 : pawl_lock_remaining_ms(lock));
    } else if (strncmp(line, "release", 7) == 0) {
        printf("released %s\n", pawl_result_name(pawl_lock_release(lock)));
    } else if (sscanf(line, "churn %255s %ld", key, &lease_ms) == 2) {
        for (;;)
            if (acquire(client, key, lease_ms, 1000, 0) == 0)
                (void)pawl_lock_release(lock);
    } else if (sscanf(line, "sections %255s %d %255s", key, &n, path) == 3) {
        sections(client, key, n, path);
    } else if (sscanf(line, "exit %ld", &wait_ms) == 1) {
        pause_ms(wait_ms);
        exit(0);
    } else if (strncmp(line, "owner", 5) == 0) {
        printf("owner %s\n", pawl_lock_owner(lock));
    } else {
        printf("what? %s", line);
    }
}

int main(int argc, char **argv)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    char line[1024];
    int rc;

    if (argc != 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    opts.name = "holder";
    opts.password_env = getenv("HOLDER_PASSWORD") == NULL ? NULL : "HOLDER_PASSWORD";
    rc = pawl_client_open(argv[1], &opts, &client);
    printf("open %s\n", pawl_result_name(rc));
    if (rc != 0)
        return 1;
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(client, line);
    pawl_lock_free(lock);
    pawl_client_close(client);
    return 0;
}
