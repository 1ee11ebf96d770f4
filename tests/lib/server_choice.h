/* Which server the tests run on. */
#ifndef PAWL_TESTS_LIB_SERVER_CHOICE_H
#define PAWL_TESTS_LIB_SERVER_CHOICE_H

/* PAWL_REDIS_SERVER, else redis-server, else valkey-server: for execvp. The first call has the
 * server print its version, which ./dev test shows. Main thread only. */
const char *server_program(void);

#endif
