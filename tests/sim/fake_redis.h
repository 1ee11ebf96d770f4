/* The in-memory Redis: one server with its data, scripts, clock and connections. Bytes in, bytes
 * out; the network between is not its business. */
#ifndef SIM_FAKE_REDIS_H
#define SIM_FAKE_REDIS_H

#include "fake_db.h"
#include "fake_lua.h"

#define FR_SCRIPTS_MAX 64
#define FR_CHANNELS_MAX 8

struct fr_script {
    char sha[41];
    int ref;
    bool known; /* SCRIPT FLUSH and a restart forget it */
};

/* One connection as the server sees it. Embedded in what carries its bytes. */
struct fr_conn {
    struct fr_conn *next;
    struct fr_out in;  /* received, not yet executed */
    struct fr_out out; /* replies and messages, not yet sent */
    struct fr_bytes channel[FR_CHANNELS_MAX];
    size_t n_channels;
};

/* Before and after each command that touches data; for the checker. */
typedef void (*fr_watch_cb)(void *arg, const struct fr_bytes *argv, size_t argc);

struct fr_server {
    struct fr_db db;
    struct fr_lua *lua;
    struct fr_script script[FR_SCRIPTS_MAX];
    size_t n_scripts;
    struct fr_conn *conns;
    struct fr_out scratch;
    fr_watch_cb before;
    fr_watch_cb watch;
    void *watch_arg;
    bool loading; /* answers -LOADING */
    uint64_t n_commands;
    uint64_t n_messages;
};

void fr_server_init(struct fr_server *server, struct fr_lua *lua);
void fr_server_done(struct fr_server *server);
/* For the next run in the same process; compiled scripts stay compiled. */
void fr_server_reset(struct fr_server *server);
void fr_script_flush(struct fr_server *server);

void fr_connect(struct fr_server *server, struct fr_conn *conn);
void fr_disconnect(struct fr_server *server, struct fr_conn *conn);

/* Has a whole command arrived? */
bool fr_has_command(const struct fr_conn *conn);
/* Execute one whole command that has arrived on @conn; the time is in server->db.now_us. False if
 * there is none. */
bool fr_execute_one(struct fr_server *server, struct fr_conn *conn);
/* Execute a command given as words, for tests and operators; @out gets the reply. */
void fr_execute(struct fr_server *server, const struct fr_bytes *argv, size_t argc,
                struct fr_out *out);

#endif
