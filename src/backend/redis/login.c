/* Login: one pipelined burst, then one look at each reply. Survives servers that refuse CLIENT,
 * ROLE or INFO. Never logs what it sends. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/node.h"
#include "backend/redis/script.h"
#include "backend/redis/secret.h"
#include "util/printable.h"

#define VERSION_MIN 6

static void put(struct pawli_node *node, enum pawli_redis_login_step step, const char *first,
                const char *second, const char *third)
{
    struct pawli_command cmd;

    pawli_command_begin(&cmd, &node->out, 1u + (second != NULL) + (third != NULL));
    pawli_command_text(&cmd, first);
    if (second != NULL)
        pawli_command_text(&cmd, second);
    if (third != NULL)
        pawli_command_text(&cmd, third);
    if (pawli_command_end(&cmd) == 0)
        node->steps[node->n_steps++] = step;
}

static int put_auth(struct pawli_node *node)
{
    const char *user = node->opts->username;
    char *password = NULL;
    int rc = pawli_redis_secret(node->opts, node->url.password, node->detail, sizeof node->detail,
                                &password);

    if (rc < 0)
        return rc;
    if (user == NULL)
        user = node->url.username;
    if (password != NULL && user != NULL)
        put(node, PAWLI_LOGIN_AUTH, "AUTH", user, password);
    else if (password != NULL)
        put(node, PAWLI_LOGIN_AUTH, "AUTH", password, NULL);
    pawli_secret_free(password);
    return 0;
}

/* Blanks are not allowed in a connection's name. */
static void put_name(struct pawli_node *node)
{
    const char *name = node->opts->name;
    char text[33];
    char *c;

    (void)snprintf(text, sizeof text, "%s", name != NULL ? name : program_invocation_short_name);
    for (c = text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            *c = '_';
    put(node, PAWLI_LOGIN_SETNAME, "CLIENT", "SETNAME", text);
}

int pawli_redis_login(struct pawli_node *node)
{
    size_t expected;
    char db[24];
    int rc;

    node->n_steps = 0;
    node->step = 0;
    node->login_sent_ns = pawli_loop_now_ns(node->loop);
    rc = put_auth(node);
    if (rc < 0)
        return rc;
    if (node->parent != NULL) {
        expected = node->n_steps + 2;
        put_name(node);
        put(node, PAWLI_LOGIN_TIME, "TIME", NULL, NULL);
        return node->n_steps == expected ? 0 : PAWL_ENOMEM;
    }
    expected = node->n_steps + 5;
    if (node->url.db != 0) {
        (void)snprintf(db, sizeof db, "%ld", node->url.db);
        put(node, PAWLI_LOGIN_SELECT, "SELECT", db, NULL);
        expected++;
    }
    put_name(node);
    put(node, PAWLI_LOGIN_TIME, "TIME", NULL, NULL);
    put(node, PAWLI_LOGIN_ROLE, "ROLE", NULL, NULL);
    put(node, PAWLI_LOGIN_SERVER, "INFO", "server", NULL);
    put(node, PAWLI_LOGIN_MEMORY, "INFO", "memory", NULL);
    rc = pawli_redis_append_probe(&node->out, node->opts->prefix);
    if (rc < 0 || node->n_steps != expected)
        return PAWL_ENOMEM;
    node->steps[node->n_steps++] = PAWLI_LOGIN_PROBE;
    return 0;
}

static const char *said(const redisReply *reply, char text[PAWLI_PRINTABLE_LEN])
{
    return pawli_printable(reply->str, reply->len, text);
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* A step that pawl can do without was refused. */
static int lost(struct pawli_node *node, const redisReply *reply, const char *what)
{
    char text[PAWLI_PRINTABLE_LEN];

    pawli_redis_log(node, PAWL_LOG_INFO, "redis: %s; the server said %s", what, said(reply, text));
    return 0;
}

static int refused(struct pawli_node *node, const redisReply *reply, int code, const char *what)
{
    char text[PAWLI_PRINTABLE_LEN];

    return pawli_redis_why(node, code, "%s: the server said %s", what, said(reply, text));
}

/* Answers that any first command may get and that end the login. */
static int hopeless(struct pawli_node *node, const redisReply *reply)
{
    int code = pawli_redis_caught_error(reply->str, reply->len);

    if (code == PAWL_ENOAUTH)
        return refused(node, reply, code, "login without a password");
    if (strncmp(reply->str, "DENIED", 6) == 0)
        return refused(node, reply, code, "login");
    if (strncmp(reply->str, "ERR max number of clients", 25) == 0)
        return refused(node, reply, PAWL_ESERVER, "login");
    return 0;
}

/* A server that does not know AUTH repeats its arguments: of a text that we do not know, only what
 * stands before the first mark is shown. */
static void hide_arguments(redisReply *reply)
{
    reply->len = strcspn(reply->str, "'`\",:");
    reply->str[reply->len] = '\0';
}

static int read_auth(struct pawli_node *node, redisReply *reply)
{
    int code;

    if (!is_error(reply))
        return 0;
    code = pawli_redis_caught_error(reply->str, reply->len);
    if (code == PAWL_ESERVER)
        hide_arguments(reply);
    if (code == PAWL_ESERVER && strncmp(reply->str, "ERR wrong number of arg", 23) == 0)
        code = PAWL_EVERSION; /* before 6.0 AUTH knew no user */
    return refused(node, reply, code == PAWL_ESERVER ? PAWL_EAUTH : code, "login");
}

static int read_select(struct pawli_node *node, const redisReply *reply)
{
    char what[48];

    if (!is_error(reply))
        return 0;
    (void)snprintf(what, sizeof what, "database %ld", node->url.db);
    return refused(node, reply, pawli_redis_caught_error(reply->str, reply->len), what);
}

static int read_time(struct pawli_node *node, const redisReply *reply)
{
    int64_t server_us;

    if (is_error(reply))
        return refused(node, reply, pawli_redis_caught_error(reply->str, reply->len), "TIME");
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "TIME was answered in a strange form");
    server_us = strtoll(reply->element[0]->str, NULL, 10);
    if (server_us <= 0 || server_us > INT64_MAX / 2000000)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "TIME was answered by a strange number");
    server_us = server_us * 1000000 + strtol(reply->element[1]->str, NULL, 10);
    pawli_redis_saw_time(node, server_us, node->login_sent_ns);
    return 0;
}

static int read_role(struct pawli_node *node, const redisReply *reply)
{
    char host[PAWLI_PRINTABLE_LEN];
    const redisReply *role;

    if (is_error(reply))
        return lost(node, reply, "ROLE is refused: a replica is noticed only by its refusals");
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->type != REDIS_REPLY_STRING)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "ROLE was answered in a strange form");
    role = reply->element[0];
    if (strcmp(role->str, "master") == 0)
        return 0;
    if (strcmp(role->str, "sentinel") == 0)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "this is a Sentinel, not a data server");
    if (strcmp(role->str, "slave") != 0 || reply->elements < 3 ||
        reply->element[1]->type != REDIS_REPLY_STRING ||
        reply->element[2]->type != REDIS_REPLY_INTEGER)
        return pawli_redis_why(node, PAWL_EPROTOCOL, "ROLE was answered in a strange form");
    return pawli_redis_why(node, PAWL_EREPLICA, "this is a replica; its master is %s port %lld",
                           said(reply->element[1], host), reply->element[2]->integer);
}

/* The value of "name:" at the start of a line of INFO, up to the end of the line. */
static const char *info_value(const redisReply *info, const char *name, size_t *ret_len)
{
    size_t len = strlen(name);
    const char *line = info->str;

    while (line != NULL && *line != '\0') {
        if (strncmp(line, name, len) == 0 && line[len] == ':') {
            *ret_len = strcspn(line + len + 1, "\r\n");
            return line + len + 1;
        }
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return NULL;
}

static int read_server(struct pawli_node *node, const redisReply *reply)
{
    const char *version;
    char text[PAWLI_PRINTABLE_LEN];
    size_t len;

    if (is_error(reply) || reply->type != REDIS_REPLY_STRING)
        return is_error(reply) ? lost(node, reply,
                                      "INFO is refused: the server's version is not "
                                      "known")
                               : 0;
    version = info_value(reply, "redis_version", &len);
    if (version == NULL) {
        pawli_redis_log(node, PAWL_LOG_INFO, "redis: the server does not say its version");
        return 0;
    }
    if (strtol(version, NULL, 10) < VERSION_MIN)
        return pawli_redis_why(node, PAWL_EVERSION,
                               "the server says version %s; 6.0 or later "
                               "is needed",
                               pawli_printable(version, len, text));
    return 0;
}

static int read_memory(struct pawli_node *node, const redisReply *reply)
{
    const char *policy;
    char text[PAWLI_PRINTABLE_LEN];
    size_t len;

    if (is_error(reply) || reply->type != REDIS_REPLY_STRING)
        return is_error(reply) ? lost(node, reply,
                                      "INFO is refused: the eviction policy is not "
                                      "known")
                               : 0;
    policy = info_value(reply, "maxmemory_policy", &len);
    if (policy != NULL && (len != 10 || strncmp(policy, "noeviction", 10) != 0))
        pawli_redis_log(node, PAWL_LOG_WARN,
                        "redis: maxmemory-policy is %s: locks may be evicted before their lease "
                        "ends; use noeviction",
                        pawli_printable(policy, len, text));
    return 0;
}

/* What the probe met that makes the server useless for locks; the rest may pass. */
static bool disables(int code)
{
    switch (code) {
    case PAWL_ENOPERM:
    case PAWL_ENOAUTH:
    case PAWL_ENOSCRIPTING:
    case PAWL_ELOADING:
    case PAWL_ESCRIPTBUSY:
    case PAWL_EMASTERDOWN:
    case PAWL_EREPLICA:
        return true;
    default:
        return false;
    }
}

static int read_probe(struct pawli_node *node, const redisReply *reply)
{
    const redisReply *text = reply;
    char printable[PAWLI_PRINTABLE_LEN];
    char what[64] = "trying what locks need";
    int code;

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 4) {
        text = reply->element[2];
        if (reply->element[3]->type == REDIS_REPLY_STRING)
            (void)snprintf(what, sizeof what, "trying %.32s, which locks need",
                           reply->element[3]->str);
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        return 1;
    }
    if (text->type != REDIS_REPLY_STRING && !is_error(text))
        return pawli_redis_why(node, PAWL_EPROTOCOL, "EVAL was answered in a strange form");
    /* The probe writes nothing, so that even an error raised inside it tells the truth. */
    code = pawli_redis_caught_error(text->str, text->len);
    if (code == PAWL_EREADONLY)
        code = PAWL_EREPLICA;
    if (disables(code))
        return refused(node, text, code, what);
    pawli_redis_log(node, PAWL_LOG_WARN,
                    "redis: locks will be refused for now; the server said %s",
                    said(text, printable));
    return 1;
}

static int read_step(struct pawli_node *node, redisReply *reply)
{
    switch (node->steps[node->step++]) {
    case PAWLI_LOGIN_AUTH:
        return read_auth(node, reply);
    case PAWLI_LOGIN_SELECT:
        return read_select(node, reply);
    case PAWLI_LOGIN_SETNAME:
        return is_error(reply)
                   ? lost(node, reply, "CLIENT is refused: CLIENT LIST will not show a name")
                   : 0;
    case PAWLI_LOGIN_TIME:
        return read_time(node, reply);
    case PAWLI_LOGIN_ROLE:
        return read_role(node, reply);
    case PAWLI_LOGIN_SERVER:
        return read_server(node, reply);
    case PAWLI_LOGIN_MEMORY:
        return read_memory(node, reply);
    case PAWLI_LOGIN_PROBE:
    case PAWLI_LOGIN_STEPS:
        break;
    }
    return read_probe(node, reply);
}

int pawli_redis_login_reply(struct pawli_node *node, redisReply *reply)
{
    int rc = is_error(reply) ? hopeless(node, reply) : 0;

    if (rc == 0)
        rc = read_step(node, reply);
    /* The login for requests ends with the probe, an inbox needs none. */
    return rc == 0 && node->parent != NULL && node->step == node->n_steps ? 1 : rc;
}
