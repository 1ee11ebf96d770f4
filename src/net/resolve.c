/* getaddrinfo on a helper thread; see resolve.h.
 *
 * The answer comes by an eventfd of the lookup's own and not by the loop's task queue: a lookup
 * may outlive the loop, and a descriptor that both sides hold needs nobody to be alive. */
#include "net/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <pawl.h>

#define STACK_SIZE ((size_t)512 * 1024) /* NSS modules keep buffers on the stack */

/* Shared by thread and loop; the last of them frees it. */
struct lookup {
    pthread_mutex_t mu;
    int refs;
    int fd;
    char port[8];
    struct addrinfo *list;
    int error;     /* EAI_... */
    int sys_error; /* errno with EAI_SYSTEM */
    char host[];
};

struct pawli_resolve {
    struct pawli_watch watch;
    struct lookup *lookup;
    void (*done)(void *arg);
    void *arg;
    bool answered;
    char reason[160];
};

static void lookup_unref(struct lookup *lookup)
{
    int refs;

    pthread_mutex_lock(&lookup->mu);
    refs = --lookup->refs;
    pthread_mutex_unlock(&lookup->mu);
    if (refs > 0)
        return;
    if (lookup->list != NULL)
        freeaddrinfo(lookup->list);
    close(lookup->fd);
    pthread_mutex_destroy(&lookup->mu);
    free(lookup);
}

static void look_up(struct lookup *lookup, int flags)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    const uint64_t one = 1;
    int error;
    int sys_error;

    hints.ai_flags = flags | AI_NUMERICSERV;
    error = getaddrinfo(lookup->host, lookup->port, &hints, &list);
    sys_error = errno;
    pthread_mutex_lock(&lookup->mu);
    lookup->list = error == 0 ? list : NULL;
    lookup->error = error;
    lookup->sys_error = sys_error;
    pthread_mutex_unlock(&lookup->mu);
    while (write(lookup->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void *lookup_thread(void *arg)
{
    struct lookup *lookup = arg;

    look_up(lookup, AI_ADDRCONFIG);
    lookup_unref(lookup);
    return NULL;
}

static struct lookup *lookup_new(const char *host, uint16_t port)
{
    size_t len = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof *lookup + len);

    if (lookup == NULL)
        return NULL;
    lookup->refs = 1;
    memcpy(lookup->host, host, len);
    snprintf(lookup->port, sizeof lookup->port, "%u", (unsigned)port);
    lookup->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (lookup->fd < 0 || pthread_mutex_init(&lookup->mu, NULL) != 0) {
        if (lookup->fd >= 0)
            close(lookup->fd);
        free(lookup);
        return NULL;
    }
    return lookup;
}

/* Signals are the program's business: none is delivered on this thread. */
static int start_thread(struct lookup *lookup)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    int err;

    if (pthread_attr_init(&attr) != 0)
        return PAWL_ESYSTEM;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    lookup->refs++;
    err = pthread_create(&thread, &attr, lookup_thread, lookup);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    if (err == 0)
        return 0;
    lookup->refs--;
    return PAWL_ESYSTEM;
}

static bool is_literal(const char *host)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;

    hints.ai_flags = AI_NUMERICHOST;
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return false;
    freeaddrinfo(list);
    return true;
}

static void answer_ready(struct pawli_watch *watch, unsigned what)
{
    struct pawli_resolve *resolve = PAWLI_CONTAINER(watch, struct pawli_resolve, watch);
    struct lookup *lookup = resolve->lookup;
    char text[96];

    (void)what;
    pawli_loop_unwatch(watch);
    pthread_mutex_lock(&lookup->mu);
    if (lookup->error != 0)
        snprintf(resolve->reason, sizeof resolve->reason, "%s",
                 lookup->error == EAI_SYSTEM ? strerror_r(lookup->sys_error, text, sizeof text)
                                             : gai_strerror(lookup->error));
    pthread_mutex_unlock(&lookup->mu);
    resolve->answered = true;
    resolve->done(resolve->arg);
}

int pawli_resolve_start(struct pawli_loop *loop, const char *host, uint16_t port,
                        void (*done)(void *arg), void *arg, struct pawli_resolve **ret_resolve)
{
    struct pawli_resolve *resolve = calloc(1, sizeof *resolve);
    int rc;

    if (resolve == NULL)
        return PAWL_ENOMEM;
    resolve->done = done;
    resolve->arg = arg;
    resolve->watch.ready = answer_ready;
    resolve->lookup = lookup_new(host, port);
    rc = resolve->lookup == NULL ? PAWL_ESYSTEM : 0;
    if (rc == 0)
        rc = pawli_loop_watch(loop, &resolve->watch, resolve->lookup->fd, PAWLI_IN);
    if (rc == 0) {
        if (is_literal(host))
            look_up(resolve->lookup, AI_NUMERICHOST);
        else
            rc = start_thread(resolve->lookup);
    }
    if (rc < 0) {
        pawli_resolve_free(resolve);
        return rc;
    }
    *ret_resolve = resolve;
    return 0;
}

bool pawli_resolve_is_done(const struct pawli_resolve *resolve)
{
    return resolve->answered;
}

const struct addrinfo *pawli_resolve_addresses(const struct pawli_resolve *resolve,
                                               const char **ret_reason)
{
    *ret_reason = resolve->reason;
    return resolve->answered ? resolve->lookup->list : NULL;
}

void pawli_resolve_free(struct pawli_resolve *resolve)
{
    if (resolve == NULL)
        return;
    pawli_loop_unwatch(&resolve->watch);
    if (resolve->lookup != NULL)
        lookup_unref(resolve->lookup);
    free(resolve);
}
