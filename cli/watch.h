/* Events for pawl watch: what changed between two looks. */
#ifndef PAWL_CLI_WATCH_H
#define PAWL_CLI_WATCH_H

#include "scan.h"

enum watch_kind {
    WATCH_HELD, /* was there when we began */
    WATCH_GRANTED, /* free before */
    WATCH_HANDED, /* another token, without having been seen free */
    WATCH_REVOKED,
    WATCH_GONE
};

struct watch_event {
    enum watch_kind kind;
    int64_t at_ms; /* our clock, ms since 1970 */
    char key[128]; /* printable, shortened */
    char holder[128];
    uint64_t token;
    int64_t held_ms;
};

#define WATCH_KEEP 4096

/* The last WATCH_KEEP ones, by number from 0. */
struct watch_events {
    struct watch_event event[WATCH_KEEP];
    size_t n; /* ever */
    size_t n_printed;
    bool begun;
};

/* Add what changed from @before to @now. */
void watch_compare(struct watch_events *events, const struct scan *before, const struct scan *now);
/* Number @i on stdout. */
void watch_print(const struct watch_events *events, size_t i, bool json);
/* For the screen: the last five, 0 the oldest of them; "" if there are fewer. Valid until the next
 * call. */
const char *watch_event_text(const struct watch_events *events, size_t i);

#endif
