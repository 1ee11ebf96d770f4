/* The data of the in-memory Redis of the simulator: strings, hashes and sorted sets with an exact
 * expiry, and the commands on them. Knows no connection and no script; the time is the caller's. */
#ifndef SIM_FAKE_DB_H
#define SIM_FAKE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_bytes {
    char *data;
    size_t len;
};

/* Replies are built as RESP2, as the real server does it for scripts too. */
struct fr_out {
    char *data;
    size_t len;
    size_t room;
};

enum fr_type { FR_STRING, FR_HASH, FR_ZSET };

struct fr_pair { /* of a hash, in the order of insertion */
    struct fr_bytes field;
    struct fr_bytes value;
};

struct fr_scored { /* of a sorted set, kept sorted */
    struct fr_bytes member;
    double score;
};

struct fr_entry {
    struct fr_entry *next;
    struct fr_bytes key;
    enum fr_type type;
    int64_t expire_ms; /* server time; FR_NO_EXPIRE */
    struct fr_bytes string;
    struct fr_pair *pair;
    struct fr_scored *scored;
    size_t n;
    size_t room;
};

#define FR_NO_EXPIRE INT64_MAX
#define FR_BUCKETS 64

struct fr_db {
    struct fr_entry *bucket[FR_BUCKETS];
    size_t n_keys;
    int64_t now_us; /* set by the owner before each command */
    bool oom;     /* at the memory limit */
    bool misconf; /* cannot save, so it refuses writes */
    uint64_t n_expired;
};

/* What the server sees of one command. */
struct fr_call {
    struct fr_db *db;
    size_t argc;
    const struct fr_bytes *argv;
    struct fr_out *out;
    /* PUBLISH: deliver, and return the number of receivers. */
    int64_t (*publish)(void *arg, const struct fr_bytes *channel, const struct fr_bytes *text);
    void *publish_arg;
};

#define FR_WRITE 1u    /* a script that ran it counts as having written */
#define FR_DENYOOM 2u
#define FR_NOSCRIPT 4u

struct fr_command {
    const char *name;
    int arity; /* as Redis counts: with the name; negative: at least */
    unsigned flags;
    void (*run)(struct fr_call *call);
};

/* NULL: no such data command. */
const struct fr_command *fr_find_command(const struct fr_bytes *name);
bool fr_arity_ok(const struct fr_command *command, size_t argc);

/* Tables of the three files, each ended by a name of NULL. */
extern const struct fr_command fr_key_commands[];
extern const struct fr_command fr_hash_commands[];
extern const struct fr_command fr_zset_commands[];

void fr_db_clear(struct fr_db *db);
static inline int64_t fr_now_ms(const struct fr_db *db)
{
    return db->now_us / 1000;
}
/* The live entry of @key; one whose time is over is deleted first. NULL: none. */
struct fr_entry *fr_lookup(struct fr_db *db, const struct fr_bytes *key);
/* The same without deleting anything. */
const struct fr_entry *fr_peek(const struct fr_db *db, const struct fr_bytes *key);
struct fr_entry *fr_create(struct fr_db *db, const struct fr_bytes *key, enum fr_type type);
bool fr_delete(struct fr_db *db, const struct fr_bytes *key);
/* The live entry if it has @type; NULL with *ret_wrong set (and the error written) if it has
 * another, NULL if there is none. */
struct fr_entry *fr_typed(struct fr_call *call, enum fr_type type, bool *ret_wrong);
const struct fr_bytes *fr_hash_get(const struct fr_entry *hash, const struct fr_bytes *field);

/* ---- bytes and replies ---- */
struct fr_bytes fr_text(const char *text); /* borrows */
struct fr_bytes fr_copy(const struct fr_bytes *bytes);
void fr_set(struct fr_bytes *to, const struct fr_bytes *from);
bool fr_same(const struct fr_bytes *a, const struct fr_bytes *b);
bool fr_is(const struct fr_bytes *bytes, const char *word); /* any case */
int fr_compare(const struct fr_bytes *a, const struct fr_bytes *b);
/* A decimal number exactly as Redis accepts it. */
bool fr_integer(const struct fr_bytes *bytes, int64_t *ret_n);
void *fr_grow(void *old, size_t n, size_t *room, size_t size);

void fr_append(struct fr_out *out, const void *data, size_t len);
void fr_status(struct fr_out *out, const char *text);
void fr_error(struct fr_out *out, const char *text);
void fr_int(struct fr_out *out, int64_t n);
void fr_bulk(struct fr_out *out, const void *data, size_t len);
void fr_nil(struct fr_out *out);
void fr_array(struct fr_out *out, size_t n);
void fr_double(struct fr_out *out, double n);

#define FR_WRONGTYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define FR_SYNTAX "ERR syntax error"
#define FR_NOT_INTEGER "ERR value is not an integer or out of range"
#define FR_MISCONF                                                                                \
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "  \
    "disk. Commands that may modify the data set are disabled."
#define FR_OOM "OOM command not allowed when used memory > 'maxmemory'."

#endif
