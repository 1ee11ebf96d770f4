/* Tells a forked child that the handles it inherited are its parent's. */
#ifndef PAWLI_ENGINE_FORK_H
#define PAWLI_ENGINE_FORK_H

/* Called by pawl_client_open(). 0 or PAWL_ESYSTEM. Gives the number of this process among its
 * ancestors. */
int pawli_fork_watch(unsigned *ret_generation);

/* 1 if the process forked since a client was opened with @generation. A load, no system call. */
int pawli_forked(unsigned generation);

#endif
