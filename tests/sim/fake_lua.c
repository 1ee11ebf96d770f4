/* The script engine of the in-memory Redis: liblua5.1 with the server's conversions. */
#include "fake_lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 8000

struct fr_lua {
    lua_State *state;
    struct fr_call *call; /* of the script that runs */
    struct fr_out out;    /* reply of a command inside a script */
    struct fr_bytes argv[ARGS_MAX];
    bool wrote;
    bool oom; /* at the limit when the script began */
};

static struct fr_lua *host_of(lua_State *state)
{
    struct fr_lua *host;

    lua_getfield(state, LUA_REGISTRYINDEX, "host");
    host = lua_touserdata(state, -1);
    lua_pop(state, 1);
    return host;
}

/* ---- replies to Lua ---- */

static const char *push_reply(lua_State *state, const char *p);

static const char *push_array(lua_State *state, const char *p, long long n)
{
    if (n < 0) {
        lua_pushboolean(state, 0);
        return p;
    }
    lua_createtable(state, (int)n, 0);
    for (long long i = 1; i <= n; i++) {
        luaL_checkstack(state, 4, "reply");
        p = push_reply(state, p);
        lua_rawseti(state, -2, (int)i);
    }
    return p;
}

static void push_line(lua_State *state, const char *field, const char *text, size_t len)
{
    lua_createtable(state, 0, 1);
    lua_pushlstring(state, text, len);
    lua_setfield(state, -2, field);
}

/* One RESP2 reply of ours, so it is whole and well-formed. */
static const char *push_reply(lua_State *state, const char *p)
{
    const char *end = strchr(p, '\r');
    const char *text = p + 1;
    long long n;

    switch (*p) {
    case '+':
        push_line(state, "ok", text, (size_t)(end - text));
        return end + 2;
    case '-':
        push_line(state, "err", text, (size_t)(end - text));
        return end + 2;
    case ':':
        lua_pushnumber(state, (lua_Number)strtoll(text, NULL, 10));
        return end + 2;
    case '$':
        n = strtoll(text, NULL, 10);
        if (n < 0) {
            lua_pushboolean(state, 0);
            return end + 2;
        }
        lua_pushlstring(state, end + 2, (size_t)n);
        return end + 2 + n + 2;
    default:
        return push_array(state, end + 2, strtoll(text, NULL, 10));
    }
}

/* ---- Lua to replies ---- */

static bool write_special(lua_State *state, struct fr_out *out)
{
    const char *text;

    lua_getfield(state, -1, "err");
    text = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : NULL;
    if (text != NULL)
        fr_error(out, text[0] == '-' ? text + 1 : text);
    lua_pop(state, 1);
    if (text != NULL)
        return true;
    lua_getfield(state, -1, "ok");
    text = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : NULL;
    if (text != NULL)
        fr_status(out, text);
    lua_pop(state, 1);
    return text != NULL;
}

/* The value on top of the stack, which it takes off. */
static void write_value(lua_State *state, struct fr_out *out)
{
    size_t len;
    const char *text;
    size_t n = 0;

    switch (lua_type(state, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(state, -1, &len);
        fr_bulk(out, text, len);
        break;
    case LUA_TNUMBER:
        fr_int(out, (int64_t)lua_tonumber(state, -1));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(state, -1))
            fr_int(out, 1);
        else
            fr_nil(out);
        break;
    case LUA_TTABLE:
        if (write_special(state, out))
            break;
        /* Up to the first nil, as the server counts. */
        for (;; n++) {
            lua_rawgeti(state, -1, (int)n + 1);
            if (lua_isnil(state, -1))
                break;
            lua_pop(state, 1);
        }
        lua_pop(state, 1);
        fr_array(out, n);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(state, -1, (int)i);
            write_value(state, out);
        }
        break;
    default:
        fr_nil(out);
        break;
    }
    lua_pop(state, 1);
}

/* ---- redis.call ---- */

static const char *read_args(lua_State *state, struct fr_lua *host, size_t *ret_argc)
{
    int argc = lua_gettop(state);

    if (argc == 0)
        return "ERR Please specify at least one argument for this redis.call call";
    if (argc > ARGS_MAX)
        return "ERR too many arguments";
    for (int i = 1; i <= argc; i++) {
        size_t len;

        if (lua_type(state, i) == LUA_TNUMBER) {
            char text[64];

            /* %.17g as the server; plain lua_tolstring() would give 14 digits. */
            (void)snprintf(text, sizeof text, "%.17g", lua_tonumber(state, i));
            lua_pushstring(state, text);
            lua_replace(state, i);
        } else if (lua_type(state, i) != LUA_TSTRING) {
            return "ERR Lua redis lib command arguments must be strings or integers";
        }
        host->argv[i - 1].data = (char *)lua_tolstring(state, i, &len);
        host->argv[i - 1].len = len;
    }
    *ret_argc = (size_t)argc;
    return NULL;
}

static const char *run_command(struct fr_lua *host, size_t argc)
{
    const struct fr_command *command = fr_find_command(&host->argv[0]);
    struct fr_call inner = *host->call;

    if (command == NULL)
        return "ERR Unknown Redis command called from script";
    if (!fr_arity_ok(command, argc))
        return "ERR Wrong number of args calling Redis command from script";
    if (inner.db->misconf && !host->wrote && (command->flags & FR_WRITE) != 0)
        return FR_MISCONF;
    if (host->oom && !host->wrote && (command->flags & FR_DENYOOM) != 0)
        return FR_OOM;
    if ((command->flags & FR_WRITE) != 0)
        host->wrote = true;
    inner.argc = argc;
    inner.argv = host->argv;
    inner.out = &host->out;
    host->out.len = 0;
    command->run(&inner);
    fr_append(&host->out, "", 1);
    return NULL;
}

static int call_or_raise(lua_State *state, bool raise)
{
    struct fr_lua *host = host_of(state);
    size_t argc = 0;
    const char *error = read_args(state, host, &argc);

    if (error == NULL)
        error = run_command(host, argc);
    lua_settop(state, 0);
    if (error != NULL)
        push_line(state, "err", error, strlen(error));
    else
        (void)push_reply(state, host->out.data);
    if (raise && (error != NULL || host->out.data[0] == '-'))
        return lua_error(state);
    return 1;
}

static int redis_call(lua_State *state)
{
    return call_or_raise(state, true);
}

static int redis_pcall(lua_State *state)
{
    return call_or_raise(state, false);
}

static int make_reply(lua_State *state, const char *field)
{
    const char *text = luaL_checkstring(state, 1);

    push_line(state, field, text, strlen(text));
    return 1;
}

static int redis_error_reply(lua_State *state)
{
    return make_reply(state, "err");
}

static int redis_status_reply(lua_State *state)
{
    return make_reply(state, "ok");
}

static int no_global(lua_State *state)
{
    return luaL_error(state, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(state, 2));
}

static int no_new_global(lua_State *state)
{
    return luaL_error(state, "Attempt to modify a readonly table");
}

/* ---- the engine ---- */

static void open_libraries(lua_State *state)
{
    static const luaL_Reg redis[] = {
        { "call", redis_call },
        { "pcall", redis_pcall },
        { "error_reply", redis_error_reply },
        { "status_reply", redis_status_reply },
        { NULL, NULL },
    };
    static const luaL_Reg libraries[] = {
        { "", luaopen_base },
        { LUA_TABLIBNAME, luaopen_table },
        { LUA_STRLIBNAME, luaopen_string },
        { LUA_MATHLIBNAME, luaopen_math },
        { NULL, NULL },
    };

    for (const luaL_Reg *l = libraries; l->func != NULL; l++) {
        lua_pushcfunction(state, l->func);
        lua_pushstring(state, l->name);
        lua_call(state, 1, 0);
    }
    luaL_register(state, "redis", redis);
    lua_settop(state, 0);
    for (int i = 0; i < 2; i++) { /* so that setting them is no new global */
        lua_newtable(state);
        lua_setglobal(state, i == 0 ? "KEYS" : "ARGV");
    }
    lua_pushvalue(state, LUA_GLOBALSINDEX);
    lua_newtable(state);
    lua_pushcfunction(state, no_global);
    lua_setfield(state, -2, "__index");
    lua_pushcfunction(state, no_new_global);
    lua_setfield(state, -2, "__newindex");
    lua_setmetatable(state, -2);
    lua_settop(state, 0);
}

struct fr_lua *fr_lua_new(void)
{
    struct fr_lua *host = calloc(1, sizeof *host);

    if (host == NULL)
        abort();
    host->state = luaL_newstate();
    if (host->state == NULL)
        abort();
    lua_pushlightuserdata(host->state, host);
    lua_setfield(host->state, LUA_REGISTRYINDEX, "host");
    open_libraries(host->state);
    return host;
}

void fr_lua_free(struct fr_lua *host)
{
    if (host == NULL)
        return;
    lua_close(host->state);
    free(host->out.data);
    free(host);
}

int fr_lua_load(struct fr_lua *host, const struct fr_bytes *text, const char *sha,
                struct fr_out *out)
{
    char error[512];

    if (luaL_loadbuffer(host->state, text->data, text->len, "@user_script") != 0) {
        (void)snprintf(error, sizeof error, "ERR Error compiling script (new function): %s",
                       lua_tostring(host->state, -1));
        fr_error(out, error);
        lua_settop(host->state, 0);
        return -1;
    }
    (void)sha;
    return luaL_ref(host->state, LUA_REGISTRYINDEX);
}

static void set_table(lua_State *state, const char *name, const struct fr_bytes *value, size_t n)
{
    lua_createtable(state, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(state, value[i].data, value[i].len);
        lua_rawseti(state, -2, (int)i + 1);
    }
    lua_pushstring(state, name);
    lua_insert(state, -2);
    lua_rawset(state, LUA_GLOBALSINDEX);
}

/* As 7.0 words it: the command's own error first, then where. */
static void write_error(lua_State *state, const char *sha, struct fr_out *out)
{
    char error[512];
    const char *text = NULL;
    bool ours = lua_istable(state, -1);

    if (ours) {
        lua_getfield(state, -1, "err");
        text = lua_tostring(state, -1);
    } else {
        text = lua_tostring(state, -1);
    }
    (void)snprintf(error, sizeof error, "%s%s script: %s, on @user_script:1.", ours ? "" : "ERR ",
                   text == NULL ? "unknown error" : text, sha);
    for (char *c = error; *c != '\0'; c++)
        if (*c == '\r' || *c == '\n')
            *c = ' ';
    fr_error(out, error);
}

void fr_lua_run(struct fr_lua *host, int ref, const char *sha, struct fr_call *call, size_t n_keys)
{
    lua_State *state = host->state;

    host->call = call;
    host->wrote = false;
    host->oom = call->db->oom;
    set_table(state, "KEYS", call->argv + 3, n_keys);
    set_table(state, "ARGV", call->argv + 3 + n_keys, call->argc - 3 - n_keys);
    lua_rawgeti(state, LUA_REGISTRYINDEX, ref);
    if (lua_pcall(state, 0, 1, 0) == 0)
        write_value(state, call->out);
    else
        write_error(state, sha, call->out);
    lua_settop(state, 0);
    host->call = NULL;
}
