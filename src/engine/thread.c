/* Starting the library's own threads; see thread.h. */
#include "engine/thread.h"

#include <signal.h>

#include <pawl.h>

int pawli_thread_start(void *(*run)(void *arg), void *arg, const char *name, pthread_t *ret_thread)
{
    sigset_t all;
    sigset_t before;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0)
        return PAWL_ESYSTEM;
    (void)pthread_setname_np(*ret_thread, name);
    return 0;
}
