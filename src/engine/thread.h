/* Starting the library's own threads. */
#ifndef PAWLI_ENGINE_THREAD_H
#define PAWLI_ENGINE_THREAD_H

#include <pthread.h>

/* A thread with all signals blocked, so that the program's handlers never run on it and no SIGPIPE
 * can reach it. @name at most 15 bytes. 0 or PAWL_ESYSTEM. */
int pawli_thread_start(void *(*run)(void *arg), void *arg, const char *name,
                       pthread_t *ret_thread);

#endif
