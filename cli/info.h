/* What is known of one lock, in words, columns and JSON: the same verdict everywhere. */
#ifndef PAWL_CLI_INFO_H
#define PAWL_CLI_INFO_H

#include <stddef.h>

#include <jansson.h>
#include <pawl.h>

/* Ordered by how much it matters. */
enum verdict {
    VERDICT_FINE, /* renewed in time, or fresh */
    VERDICT_FOREIGN, /* another client's: nothing is known of its renewals */
    VERDICT_ENDING, /* maximum hold near: nothing is renewed any more, and that is right */
    VERDICT_REVOKED, /* goes when the lease ends */
    VERDICT_LATE, /* a renewal is due and has not come */
    VERDICT_DEAD, /* its process is on this host and does not exist any more */
    VERDICT_SHARED, /* several owners: a broken lock */
    VERDICT_NO_EXPIRY /* never ends by itself */
};

enum verdict info_verdict(const struct pawl_lock_info *info);
/* Its name in JSON: "fine", "late", ... */
const char *verdict_name(enum verdict verdict);
/* A sentence about it, with the numbers. */
const char *verdict_text(enum verdict verdict, const struct pawl_lock_info *info, char *buf,
                         size_t len);

/* 1 alive, 0 gone, -1 not known: on another host, or nothing to compare with. */
int info_process_alive(const struct pawl_lock_info *info);

/* "order:42@web1:4711" in short: label or owner, host, pid. */
const char *info_holder(const struct pawl_lock_info *info, char *buf, size_t len);
/* "pawl", "hash", "string". */
const char *info_kind(const struct pawl_lock_info *info);

/* Everything, with keys that never change. NULL without memory. */
json_t *info_json(const void *key, size_t key_len, const struct pawl_lock_info *info);
/* A name as JSON members "key" (made printable) and, if that is not the name itself, "key_hex". */
void json_set_key(json_t *object, const void *key, size_t key_len);

/* How many of the waiters are described: the library counts all, and lists the first 100. */
size_t info_listed(const struct pawl_lock_info *info);

/* Print a JSON value and a newline, and release it. Returns an exit code. */
int json_print(json_t *value, int rc);

/* "2026-11-29T15:54:43Z" of ms since 1970. */
const char *time_text(int64_t ms, char *buf, size_t len);

#endif
