/* hello.c: take a lock, work, and have it given back on every way out. */
#include <stdio.h>

#include <pawl.h>

static int work(struct pawl_client *client)
{
    PAWL_SCOPED struct pawl_lock *lock = NULL;
    int rc = pawl_lock_acquire(client, "hello", 5, NULL, &lock);

    if (rc != 0)
        return rc;
    printf("mine, with token %llu\n", (unsigned long long)pawl_lock_token(lock));
    return pawl_lock_check(lock);
}

int main(int argc, char **argv)
{
    struct pawl_client *client = NULL;
    int rc = pawl_client_open(argc > 1 ? argv[1] : "redis://127.0.0.1", NULL, &client);

    if (rc == 0)
        rc = work(client);
    if (rc != 0)
        fprintf(stderr, "hello: %s (%s)\n", pawl_result_text(rc), pawl_error_detail());
    pawl_client_close(client);
    return rc == 0 ? 0 : 1;
}
