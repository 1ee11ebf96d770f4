/* Commands of a connection, scripts and channels of the in-memory Redis. */
#include "fake_redis.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGC_MAX 1024

void fr_server_init(struct fr_server *server, struct fr_lua *lua)
{
    memset(server, 0, sizeof *server);
    server->lua = lua;
}

void fr_server_reset(struct fr_server *server)
{
    fr_db_clear(&server->db);
    memset(&server->db, 0, sizeof server->db);
    fr_script_flush(server);
    server->conns = NULL;
    server->loading = false;
}

void fr_server_done(struct fr_server *server)
{
    fr_db_clear(&server->db);
    free(server->scratch.data);
}

void fr_script_flush(struct fr_server *server)
{
    for (size_t i = 0; i < server->n_scripts; i++)
        server->script[i].known = false;
}

/* ---- connections ---- */

void fr_connect(struct fr_server *server, struct fr_conn *conn)
{
    memset(conn, 0, sizeof *conn);
    conn->next = server->conns;
    server->conns = conn;
}

void fr_disconnect(struct fr_server *server, struct fr_conn *conn)
{
    struct fr_conn **place = &server->conns;

    while (*place != NULL && *place != conn)
        place = &(*place)->next;
    if (*place != NULL)
        *place = conn->next;
    for (size_t i = 0; i < conn->n_channels; i++)
        free(conn->channel[i].data);
    conn->n_channels = 0;
    free(conn->in.data);
    free(conn->out.data);
    memset(&conn->in, 0, sizeof conn->in);
    memset(&conn->out, 0, sizeof conn->out);
}

static size_t channel_of(const struct fr_conn *conn, const struct fr_bytes *name)
{
    size_t i = 0;

    while (i < conn->n_channels && !fr_same(&conn->channel[i], name))
        i++;
    return i;
}

static int64_t publish(void *arg, const struct fr_bytes *channel, const struct fr_bytes *text)
{
    struct fr_server *server = arg;
    int64_t n = 0;

    for (struct fr_conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (channel_of(conn, channel) == conn->n_channels)
            continue;
        fr_array(&conn->out, 3);
        fr_bulk(&conn->out, "message", 7);
        fr_bulk(&conn->out, channel->data, channel->len);
        fr_bulk(&conn->out, text->data, text->len);
        server->n_messages++;
        n++;
    }
    return n;
}

static void subscribe(struct fr_conn *conn, const struct fr_bytes *argv, size_t argc,
                      struct fr_out *out)
{
    for (size_t i = 1; i < argc; i++) {
        if (channel_of(conn, &argv[i]) == conn->n_channels && conn->n_channels < FR_CHANNELS_MAX)
            conn->channel[conn->n_channels++] = fr_copy(&argv[i]);
        fr_array(out, 3);
        fr_bulk(out, "subscribe", 9);
        fr_bulk(out, argv[i].data, argv[i].len);
        fr_int(out, (int64_t)conn->n_channels);
    }
}

static void unsubscribe_one(struct fr_conn *conn, size_t at, struct fr_out *out)
{
    struct fr_bytes name = conn->channel[at];

    conn->channel[at] = conn->channel[--conn->n_channels];
    fr_array(out, 3);
    fr_bulk(out, "unsubscribe", 11);
    fr_bulk(out, name.data, name.len);
    fr_int(out, (int64_t)conn->n_channels);
    free(name.data);
}

static void unsubscribe(struct fr_conn *conn, const struct fr_bytes *argv, size_t argc,
                        struct fr_out *out)
{
    for (size_t i = 1; i < argc; i++) {
        size_t at = channel_of(conn, &argv[i]);

        if (at < conn->n_channels)
            unsubscribe_one(conn, at, out);
    }
    while (argc == 1 && conn->n_channels > 0)
        unsubscribe_one(conn, conn->n_channels - 1, out);
}

/* ---- scripts ---- */

static struct fr_script *find_script(struct fr_server *server, const struct fr_bytes *sha)
{
    for (size_t i = 0; i < server->n_scripts; i++)
        if (sha->len == 40 && fr_is(sha, server->script[i].sha))
            return &server->script[i];
    return NULL;
}

static void sha_hex(const struct fr_bytes *text, char ret_sha[41])
{
    unsigned char digest[SHA_DIGEST_LENGTH];

    SHA1((const unsigned char *)text->data, text->len, digest);
    for (int i = 0; i < SHA_DIGEST_LENGTH; i++)
        (void)snprintf(ret_sha + 2 * i, 3, "%02x", digest[i]);
}

/* Learn a script from its text; NULL if it does not compile. */
static struct fr_script *learn(struct fr_server *server, const struct fr_bytes *text,
                               struct fr_out *out)
{
    char sha[41];
    struct fr_bytes name = { sha, 40 };
    struct fr_script *script;
    int ref;

    sha_hex(text, sha);
    script = find_script(server, &name);
    if (script == NULL) {
        ref = fr_lua_load(server->lua, text, sha, out);
        if (ref < 0)
            return NULL;
        if (server->n_scripts == FR_SCRIPTS_MAX)
            abort();
        script = &server->script[server->n_scripts++];
        memcpy(script->sha, sha, sizeof sha);
        script->ref = ref;
    }
    script->known = true;
    return script;
}

static void run_script(struct fr_server *server, struct fr_script *script, struct fr_call *call)
{
    int64_t n_keys;

    if (!fr_integer(&call->argv[2], &n_keys))
        fr_error(call->out, FR_NOT_INTEGER);
    else if (n_keys < 0)
        fr_error(call->out, "ERR Number of keys can't be negative");
    else if ((uint64_t)n_keys > call->argc - 3)
        fr_error(call->out, "ERR Number of keys can't be greater than number of args");
    else
        fr_lua_run(server->lua, script->ref, script->sha, call, (size_t)n_keys);
}

static void cmd_eval(struct fr_server *server, struct fr_call *call, bool by_sha)
{
    struct fr_script *script;

    if (call->argc < 3) {
        fr_error(call->out, "ERR wrong number of arguments for 'eval' command");
        return;
    }
    script =
        by_sha ? find_script(server, &call->argv[1]) : learn(server, &call->argv[1], call->out);
    if (by_sha && (script == NULL || !script->known))
        fr_error(call->out, "NOSCRIPT No matching script. Please use EVAL.");
    else if (script != NULL)
        run_script(server, script, call);
}

static void cmd_script(struct fr_server *server, const struct fr_bytes *argv, size_t argc,
                       struct fr_out *out)
{
    if (argc == 3 && fr_is(&argv[1], "LOAD")) {
        const struct fr_script *script = learn(server, &argv[2], out);

        if (script != NULL)
            fr_bulk(out, script->sha, 40);
    } else if (argc >= 2 && fr_is(&argv[1], "FLUSH")) {
        fr_script_flush(server);
        fr_status(out, "OK");
    } else {
        fr_error(out, "ERR unknown subcommand");
    }
}

/* ---- commands ---- */

static const char server_info[] =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:simulated\r\n"
    "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
    "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";

static void cmd_role(struct fr_out *out)
{
    fr_array(out, 3);
    fr_bulk(out, "master", 6);
    fr_int(out, 0);
    fr_array(out, 0);
}

/* How a subscribed connection is answered. */
static void cmd_pong(struct fr_out *out)
{
    fr_array(out, 2);
    fr_bulk(out, "pong", 4);
    fr_bulk(out, "", 0);
}

/* What a client says about itself and asks about the server. */
static bool run_admin(struct fr_server *server, struct fr_conn *conn, const struct fr_bytes *argv,
                      size_t argc, struct fr_out *out)
{
    if (conn != NULL && conn->n_channels > 0 && fr_is(&argv[0], "PING"))
        cmd_pong(out);
    else if (fr_is(&argv[0], "AUTH") || fr_is(&argv[0], "SELECT") || fr_is(&argv[0], "CLIENT"))
        fr_status(out, "OK");
    else if (fr_is(&argv[0], "HELLO"))
        fr_error(out, "NOPROTO unsupported protocol version");
    else if (fr_is(&argv[0], "INFO"))
        fr_bulk(out, server_info, sizeof server_info - 1);
    else if (fr_is(&argv[0], "ROLE"))
        cmd_role(out);
    else if (fr_is(&argv[0], "CONFIG"))
        fr_array(out, 0);
    else if (fr_is(&argv[0], "SCRIPT"))
        cmd_script(server, argv, argc, out);
    else if (fr_is(&argv[0], "SUBSCRIBE") && conn != NULL)
        subscribe(conn, argv, argc, out);
    else if (fr_is(&argv[0], "UNSUBSCRIBE") && conn != NULL)
        unsubscribe(conn, argv, argc, out);
    else
        return false;
    return true;
}

static void flush_all(struct fr_server *server)
{
    int64_t now_us = server->db.now_us;
    bool oom = server->db.oom;
    bool misconf = server->db.misconf;

    fr_db_clear(&server->db);
    server->db.now_us = now_us;
    server->db.oom = oom;
    server->db.misconf = misconf;
}

static void run_data(struct fr_server *server, struct fr_call *call)
{
    const struct fr_command *command;

    if (fr_is(&call->argv[0], "EVALSHA") || fr_is(&call->argv[0], "EVAL")) {
        cmd_eval(server, call, call->argv[0].len == 7);
        return;
    }
    if (fr_is(&call->argv[0], "FLUSHALL")) {
        flush_all(server);
        fr_status(call->out, "OK");
        return;
    }
    command = fr_find_command(&call->argv[0]);
    if (command == NULL)
        fr_error(call->out, "ERR unknown command");
    else if (!fr_arity_ok(command, call->argc))
        fr_error(call->out, "ERR wrong number of arguments");
    else if (server->db.misconf && (command->flags & FR_WRITE) != 0)
        fr_error(call->out, FR_MISCONF);
    else if (server->db.oom && (command->flags & FR_DENYOOM) != 0)
        fr_error(call->out, FR_OOM);
    else
        command->run(call);
}

static void run(struct fr_server *server, struct fr_conn *conn, const struct fr_bytes *argv,
                size_t argc, struct fr_out *out)
{
    struct fr_call call = { .db = &server->db,
                            .argc = argc,
                            .argv = argv,
                            .out = out,
                            .publish = publish,
                            .publish_arg = server };

    server->n_commands++;
    if (server->loading) {
        fr_error(out, "LOADING Redis is loading the dataset in memory");
        return;
    }
    if (run_admin(server, conn, argv, argc, out))
        return;
    if (server->before != NULL)
        server->before(server->watch_arg, argv, argc);
    run_data(server, &call);
    if (server->watch != NULL)
        server->watch(server->watch_arg, argv, argc);
}

void fr_execute(struct fr_server *server, const struct fr_bytes *argv, size_t argc,
                struct fr_out *out)
{
    run(server, NULL, argv, argc, out);
}

/* The number of a "*n" or "$n" line at @at; false if the line is not whole yet. */
static bool head(const struct fr_out *in, size_t *at, size_t *ret_n)
{
    const char *end = memchr(in->data + *at, '\n', in->len - *at);

    if (end == NULL)
        return false;
    *ret_n = (size_t)strtoull(in->data + *at + 1, NULL, 10);
    *at = (size_t)(end - in->data) + 1;
    return true;
}

static size_t parse(const struct fr_out *in, struct fr_bytes *argv, size_t *ret_argc)
{
    size_t at = 0;
    size_t argc = 0;
    size_t len;

    if (in->len == 0 || !head(in, &at, &argc) || argc > ARGC_MAX)
        return 0;
    for (size_t i = 0; i < argc; i++) {
        if (at >= in->len || !head(in, &at, &len) || at + len + 2 > in->len)
            return 0;
        argv[i].data = in->data + at;
        argv[i].len = len;
        at += len + 2;
    }
    *ret_argc = argc;
    return at;
}

bool fr_has_command(const struct fr_conn *conn)
{
    struct fr_bytes argv[ARGC_MAX];
    size_t argc = 0;

    return parse(&conn->in, argv, &argc) > 0;
}

bool fr_execute_one(struct fr_server *server, struct fr_conn *conn)
{
    struct fr_bytes argv[ARGC_MAX];
    size_t argc = 0;
    size_t used = parse(&conn->in, argv, &argc);

    if (used == 0 || argc == 0)
        return false;
    /* A message that the command publishes to its own connection comes before its reply. */
    server->scratch.len = 0;
    run(server, conn, argv, argc, &server->scratch);
    fr_append(&conn->out, server->scratch.data, server->scratch.len);
    conn->in.len -= used;
    memmove(conn->in.data, conn->in.data + used, conn->in.len);
    return true;
}
