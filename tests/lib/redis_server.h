/* A private redis-server for C tests: own folder, unix socket, ends with the test. */
#ifndef PAWL_TESTS_LIB_REDIS_SERVER_H
#define PAWL_TESTS_LIB_REDIS_SERVER_H

#include <sys/types.h>

struct redis_server {
    pid_t pid;
    char dir[64];
    char socket[96];
    int port; /* of those that were asked for */
};

/* Start it with more words of the command line (NULL-terminated, "%d" becomes a free port, "%s"
 * the folder; NULL: none) and wait until it answers. Fails the test if it cannot. */
void redis_server_start(struct redis_server *server, const char *const *more);
/* A folder for its files, before it starts; redis_server_start() uses it. */
void redis_server_folder(struct redis_server *server);
/* End it and remove the folder. */
void redis_server_stop(struct redis_server *server);
/* Send one inline command and give the answer's first line. */
const char *redis_server_command(const struct redis_server *server, const char *line);
/* Run a program and wait for it; fails the test if it fails. */
void run_program(const char *const *argv);
/* A port that was free a moment ago. */
int free_port(void);

#endif
