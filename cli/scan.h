/* Finding locks: SCAN, and which of the keys look like one. */
#ifndef PAWL_CLI_SCAN_H
#define PAWL_CLI_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl.h>

#include "options.h"
#include "store.h"

struct scan_row {
    char *key; /* without the prefix */
    size_t key_len;
    int result; /* of the inspection */
    struct pawl_lock_info *info;
};

struct scan {
    struct scan_row *rows;
    size_t n;
    size_t room;
    bool strings; /* strings with an expiry too: any of them may be a SETNX lock */
};

/* All keys that match the glob @pattern and look like locks, without their state. 0, or a PAWL_
 * failure with @why. Never KEYS: the server goes on serving. */
int scan_keys(struct scan *scan, struct store *store, const struct options *o, const char *pattern,
              char *why, size_t why_len);
/* Their state, many at a time; the free ones are dropped. Longest held first. */
int scan_inspect(struct scan *scan, struct pawl_client *client);
void scan_done(struct scan *scan);

/* For poll loops: run @client's completions until *@pending is 0. */
void client_wait(struct pawl_client *client, const size_t *pending, size_t at_most);

#endif
