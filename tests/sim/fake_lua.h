/* Runs Lua scripts for the in-memory Redis, with the server's rules for what redis.call and
 * redis.pcall take, answer and raise. Nothing is rolled back. */
#ifndef SIM_FAKE_LUA_H
#define SIM_FAKE_LUA_H

#include "fake_db.h"

struct fr_lua;

struct fr_lua *fr_lua_new(void);
void fr_lua_free(struct fr_lua *lua);

/* The number of a compiled script; its text is compiled once. -1: it does not compile, and the
 * error has been written to @out. */
int fr_lua_load(struct fr_lua *lua, const struct fr_bytes *text, const char *sha,
                struct fr_out *out);

/* Run script @ref for @call, whose argv is that of EVAL or EVALSHA: argv[2] keys from argv[3] on
 * have been counted by the caller. The reply goes to @call->out. */
void fr_lua_run(struct fr_lua *lua, int ref, const char *sha, struct fr_call *call, size_t n_keys);

#endif
