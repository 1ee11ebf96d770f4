/* The server's process and clock: runs one command at a time, stands still, restarts, forgets. */
#include <stdlib.h>

#include "check.h"
#include "sim.h"

int64_t sim_server_us(struct sim_world *w)
{
    int64_t us = sim_clock_at(&w->server_clock, w->now_ns) / 1000;

    if (us > w->server_max_us)
        w->server_max_us = us;
    return us;
}

static void serve(struct sim_world *w, void *arg, int64_t number);

static void schedule(struct sim_world *w, int64_t in_ns)
{
    if (w->server_scheduled)
        return;
    w->server_scheduled = true;
    sim_at(w, w->now_ns + in_ns, serve, NULL, 0);
}

void sim_server_wake(struct sim_world *w)
{
    schedule(w, sim_between(&w->net_rng, 5 * SIM_US, 40 * SIM_US));
}

/* A connection that has only a part of a frame waits for the rest; the others go on. */
static void serve(struct sim_world *w, void *arg, int64_t number)
{
    struct sim_conn *conn;

    (void)arg;
    (void)number;
    w->server_scheduled = false;
    if (w->server_down)
        return;
    if (w->server_paused_until_ns > w->now_ns) {
        schedule(w, w->server_paused_until_ns - w->now_ns);
        return;
    }
    w->server.db.now_us = sim_server_us(w);
    conn = sim_conn_with_input(w);
    if (conn != NULL && fr_execute_one(&w->server, sim_conn_peer(conn))) {
        w->n_served++;
        sim_conns_send(w);
    }
    if (sim_conn_with_input(w) != NULL)
        schedule(w, sim_between(&w->net_rng, 10 * SIM_US, 60 * SIM_US));
}

static void come_back(struct sim_world *w, void *arg, int64_t number)
{
    (void)arg;
    (void)number;
    w->server_down = false;
    sim_log(w, "server up", 0, 0);
}

void sim_server_restart(struct sim_world *w, int64_t down_ns, bool keep_data)
{
    w->server_down = true;
    w->server_paused_until_ns = 0;
    fr_script_flush(&w->server);
    if (!keep_data) {
        sim_check_void(w, -1);
        sim_operator(w, "FLUSHALL", NULL, NULL);
        w->data_lost = true;
    }
    sim_conns_break(w);
    sim_at(w, w->now_ns + down_ns, come_back, NULL, 0);
}

void sim_operator(struct sim_world *w, const char *command, const char *key, const char *more)
{
    struct fr_bytes argv[3];
    struct fr_out out = { 0 };
    size_t argc = 0;

    argv[argc++] = fr_text(command);
    if (key != NULL)
        argv[argc++] = fr_text(key);
    if (more != NULL)
        argv[argc++] = fr_text(more);
    w->server.db.now_us = sim_server_us(w);
    fr_execute(&w->server, argv, argc, &out);
    sim_conns_send(w);
    free(out.data);
}
