/* script_texts.h: the Lua scripts of scripts/, embedded at build time by tools/embed.py. Must not
 * know how they are sent.
 *
 * scripts/NAME.lua becomes pawli_script_NAME (a '-' in the name becomes '_'). To add a script, add
 * its name to script_names in src/meson.build and a line here. */
#ifndef PAWLI_REDIS_SCRIPT_TEXTS_H
#define PAWLI_REDIS_SCRIPT_TEXTS_H

#include <stddef.h>

struct pawli_script_text {
    const char *name;   /* file name without .lua */
    const char *text;   /* comments and indentation stripped, line numbers kept; terminated */
    size_t len;         /* bytes of text without the terminator */
    const char *sha;    /* 40 lower-case hex digits: what EVALSHA takes */
};

extern const struct pawli_script_text pawli_script_acquire;
extern const struct pawli_script_text pawli_script_check;
extern const struct pawli_script_text pawli_script_renew;
extern const struct pawli_script_text pawli_script_release;
extern const struct pawli_script_text pawli_script_extend;
extern const struct pawli_script_text pawli_script_inspect;
extern const struct pawli_script_text pawli_script_force;
extern const struct pawli_script_text pawli_script_claim;
extern const struct pawli_script_text pawli_script_set_if;
extern const struct pawli_script_text pawli_script_probe;

/* All of them, ended by NULL, in the order of script_names. */
extern const struct pawli_script_text *const pawli_script_texts[];

#endif
