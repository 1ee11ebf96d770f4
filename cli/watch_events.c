/* Events found by comparing two looks. Asks no store. */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "duration.h"
#include "info.h"
#include "message.h"
#include "text.h"

static const char *const names[] = { N_("held"), N_("granted"), N_("handed over"), N_("revoked"),
                                     N_("gone") };
static const char *const codes[] = { "held", "granted", "handed-over", "revoked", "gone" };

static void add(struct watch_events *events, enum watch_kind kind, const struct scan_row *row)
{
    struct watch_event *e = &events->event[events->n++ % WATCH_KEEP];
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    e->kind = kind;
    e->at_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    e->token = row->info->token;
    e->held_ms = row->info->held_ms;
    (void)printable(row->key, row->key_len, e->key, sizeof e->key);
    (void)info_holder(row->info, e->holder, sizeof e->holder);
}

static const struct scan_row *find(const struct scan *scan, const struct scan_row *row)
{
    for (size_t i = 0; i < scan->n; i++)
        if (scan->rows[i].key_len == row->key_len &&
            memcmp(scan->rows[i].key, row->key, row->key_len) == 0)
            return &scan->rows[i];
    return NULL;
}

static bool same_grant(const struct pawl_lock_info *a, const struct pawl_lock_info *b)
{
    return a->token == b->token && strcmp(a->owner, b->owner) == 0;
}

void watch_compare(struct watch_events *events, const struct scan *before, const struct scan *now)
{
    for (size_t i = 0; i < before->n; i++)
        if (find(now, &before->rows[i]) == NULL)
            add(events, WATCH_GONE, &before->rows[i]);
    for (size_t i = 0; i < now->n; i++) {
        const struct scan_row *row = &now->rows[i];
        const struct scan_row *was = find(before, row);

        if (was == NULL)
            add(events, events->begun ? WATCH_GRANTED : WATCH_HELD, row);
        else if (!same_grant(was->info, row->info))
            add(events, WATCH_HANDED, row);
        else if (row->info->revoked && !was->info->revoked)
            add(events, WATCH_REVOKED, row);
    }
    events->begun = true;
}

static void text_of(const struct watch_event *e, char *buf, size_t len)
{
    char when[32];
    char held[DURATION_TEXT];

    (void)snprintf(buf, len, "%s %s '%s' %s %s (%" PRIu64 ")",
                   time_text(e->at_ms, when, sizeof when), text_get(names[e->kind]), e->key,
                   e->holder, duration_text(e->held_ms, held, sizeof held), e->token);
}

void watch_print(const struct watch_events *events, size_t i, bool json)
{
    const struct watch_event *e = &events->event[i % WATCH_KEEP];
    char text[512];
    json_t *o;

    if (!json) {
        text_of(e, text, sizeof text);
        (void)printf("%s\n", text);
        return;
    }
    o = json_object();
    (void)json_object_set_new(o, "event", json_string(codes[e->kind]));
    (void)json_object_set_new(o, "time_ms", json_integer(e->at_ms));
    (void)json_object_set_new(o, "key", json_string(e->key));
    (void)json_object_set_new(o, "holder", json_string(e->holder));
    (void)json_object_set_new(o, "token", json_integer((json_int_t)e->token));
    (void)json_object_set_new(o, "held_ms", json_integer(e->held_ms));
    (void)json_print(o, 0);
}

const char *watch_event_text(const struct watch_events *events, size_t i)
{
    static char text[512];
    size_t shown = events->n < 5 ? events->n : 5;

    text[0] = '\0';
    if (i < shown)
        text_of(&events->event[(events->n - shown + i) % WATCH_KEEP], text, sizeof text);
    return text;
}
