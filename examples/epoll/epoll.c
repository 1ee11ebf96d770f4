/* epoll.c: locks on an event loop. Three jobs ask for the same lock at once, none of them blocks
 * the loop, and each gives the lock back from a timer when its work is done. */
#define _POSIX_C_SOURCE 200809L /* for CLOCK_MONOTONIC with -std=c11 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <pawl.h>

#define N_JOBS 3
#define WORK_MS 20

struct job {
    int number;
    int timer_fd; /* readable when the work is done */
    struct pawl_owner *owner;
    struct pawl_lock *lock;
    struct app *app;
};

struct app {
    int epoll_fd;
    int n_left;
    int failed;
    struct pawl_client *client;
    struct job jobs[N_JOBS];
};

static void job_end(struct job *job, const char *what, int result)
{
    if (result != 0) {
        fprintf(stderr, "job %d: %s: %s (%s)\n", job->number, what, pawl_result_text(result),
                pawl_error_detail());
        job->app->failed = 1;
    }
    job->app->n_left--;
}

static void on_released(void *arg, int result)
{
    struct job *job = arg;

    pawl_lock_free(job->lock);
    job->lock = NULL;
    job_end(job, "release", result);
}

/* Here the job would start what it has to do; its end is a timer. */
static void on_acquired(void *arg, int result, struct pawl_lock *lock)
{
    struct job *job = arg;
    struct itimerspec when = { .it_value = { .tv_nsec = WORK_MS * 1000000L } };

    if (result != 0) {
        job_end(job, "acquire", result);
        return;
    }
    job->lock = lock;
    printf("job %d works under token %llu\n", job->number,
           (unsigned long long)pawl_lock_token(lock));
    timerfd_settime(job->timer_fd, 0, &when, NULL);
}

static void on_work_done(struct job *job)
{
    uint64_t expirations;
    int rc;

    if (read(job->timer_fd, &expirations, sizeof expirations) < 0)
        return;
    rc = pawl_lock_release_async(job->lock, on_released, job);
    if (rc != 0)
        on_released(job, rc);
}

static int watch(struct app *app, int fd, void *what)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = what } };

    return epoll_ctl(app->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* An owner of its own for each job: the thread serves them all, so it cannot be the owner. */
static int job_start(struct app *app, struct job *job, int number)
{
    struct pawl_lock_options opts = PAWL_LOCK_OPTIONS_INIT;
    char label[16];
    int rc;

    job->app = app;
    job->number = number;
    job->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (job->timer_fd < 0 || watch(app, job->timer_fd, job) != 0)
        return PAWL_ESYSTEM;
    snprintf(label, sizeof label, "job-%d", number);
    rc = pawl_owner_new(label, &job->owner);
    if (rc != 0)
        return rc;
    opts.owner = job->owner;
    return pawl_lock_acquire_async(app->client, "epoll", 5, &opts, on_acquired, job, NULL);
}

static void run(struct app *app)
{
    struct epoll_event events[8];

    while (app->n_left > 0) {
        int n = epoll_wait(app->epoll_fd, events, 8, -1);

        if (n < 0 && errno != EINTR) {
            app->failed = 1;
            return;
        }
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == app)
                pawl_client_dispatch(app->client);
            else
                on_work_done(events[i].data.ptr);
        }
    }
}

int main(int argc, char **argv)
{
    struct app app = { .n_left = N_JOBS };
    int rc = pawl_client_open(argc > 1 ? argv[1] : "redis://127.0.0.1", NULL, &app.client);

    if (rc != 0) {
        fprintf(stderr, "epoll: %s (%s)\n", pawl_result_text(rc), pawl_error_detail());
        return 1;
    }
    app.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (app.epoll_fd < 0 || watch(&app, pawl_client_fd(app.client), &app) != 0) {
        fprintf(stderr, "epoll: %s\n", strerror(errno));
        pawl_client_close(app.client);
        return 1;
    }
    for (int i = 0; i < N_JOBS; i++) {
        rc = job_start(&app, &app.jobs[i], i + 1);
        if (rc != 0)
            job_end(&app.jobs[i], "start", rc);
    }
    run(&app);
    pawl_client_close(app.client);
    for (int i = 0; i < N_JOBS; i++) {
        pawl_owner_free(app.jobs[i].owner);
        if (app.jobs[i].timer_fd >= 0)
            close(app.jobs[i].timer_fd);
    }
    close(app.epoll_fd);
    return app.failed;
}
