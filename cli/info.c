/* Verdict, words and JSON of one lock's state. Asks the store nothing. */
#include "info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "duration.h"
#include "exits.h"
#include "message.h"
#include "text.h"

static bool same_host(const struct pawl_lock_info *info)
{
    char host[256] = "";
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file != NULL) {
        if (fgets(boot, sizeof boot, file) == NULL)
            boot[0] = '\0';
        (void)fclose(file);
    }
    (void)gethostname(host, sizeof host - 1);
    return info->host[0] != '\0' && strncmp(host, info->host, strlen(info->host)) == 0 &&
           info->boot_id[0] != '\0' && strncmp(boot, info->boot_id, strlen(info->boot_id)) == 0;
}

int info_process_alive(const struct pawl_lock_info *info)
{
    char path[64];
    char text[1024] = "";
    const char *field;
    FILE *file;
    size_t n;

    if (info->pid <= 0 || info->process_start <= 0 || !same_host(info))
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)info->pid);
    file = fopen(path, "re");
    /* In another container of this host the number means another process: not known. */
    if (file == NULL)
        return 0;
    n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    field = strrchr(text, ')');
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field != NULL && strtoll(field + 1, NULL, 10) == info->process_start;
}

/* How long ago the last renewal was, as the remaining time tells. */
static int64_t renewed_ago(const struct pawl_lock_info *info)
{
    return info->lease_ms > info->remaining_ms ? info->lease_ms - info->remaining_ms : 0;
}

enum verdict info_verdict(const struct pawl_lock_info *info)
{
    int64_t end_ms = info->latest_end_ms - info->since_ms - info->held_ms;

    if (info->remaining_ms < 0)
        return VERDICT_NO_EXPIRY;
    if (info->n_owners > 1)
        return VERDICT_SHARED;
    if (info->kind != PAWL_KIND_PAWL)
        return VERDICT_FOREIGN;
    if (info->revoked)
        return VERDICT_REVOKED;
    if (info_process_alive(info) == 0)
        return VERDICT_DEAD;
    if (info->latest_end_ms > 0 && end_ms <= info->lease_ms)
        return VERDICT_ENDING;
    /* Due after a third of the lease; a tenth more for a slow moment. A lock that was handed over
     * has a short claim until it is confirmed. */
    if (renewed_ago(info) > info->lease_ms * 13 / 30 && info->held_ms > 2000)
        return VERDICT_LATE;
    return VERDICT_FINE;
}

static const char *const names[] = { "fine", "foreign", "ending", "revoked",
                                     "late", "dead",    "shared", "no-expiry" };

const char *verdict_name(enum verdict verdict)
{
    return names[verdict];
}

const char *verdict_text(enum verdict verdict, const struct pawl_lock_info *info, char *buf,
                         size_t len)
{
    char ago[DURATION_TEXT];
    char left[DURATION_TEXT];
    char interval[DURATION_TEXT];

    (void)duration_text(renewed_ago(info), ago, sizeof ago);
    (void)duration_text(info->remaining_ms, left, sizeof left);
    (void)duration_text(info->lease_ms / 3, interval, sizeof interval);
    switch (verdict) {
    case VERDICT_FINE:
        (void)snprintf(buf, len,
                       _("its watchdog keeps up: last renewed about %s ago, due every %s"), ago,
                       interval);
        break;
    case VERDICT_FOREIGN:
        (void)snprintf(buf, len,
                       _("taken by another client, not pawl; it ends in %s unless that "
                         "client renews it"),
                       left);
        break;
    case VERDICT_ENDING:
        (void)snprintf(buf, len,
                       _("its maximum hold is near or over: no renewal goes past it; "
                         "it ends in %s at the latest"),
                       left);
        break;
    case VERDICT_REVOKED:
        (void)snprintf(buf, len, _("revoked by an operator: passes on in %s"), left);
        break;
    case VERDICT_LATE:
        (void)snprintf(buf, len,
                       _("not renewed for %s, due every %s: its process hangs or is cut off, or "
                         "it was taken without renewal; it ends in %s"),
                       ago, interval, left);
        break;
    case VERDICT_DEAD:
        (void)snprintf(buf, len,
                       _("its process %lld on this host does not exist (any more, or "
                         "in this container); unless renewed it ends in %s"),
                       (long long)info->pid, left);
        break;
    case VERDICT_SHARED:
        (void)snprintf(buf, len,
                       _("%lld owners at once: not a lock any more; some client writes "
                         "it without looking"),
                       (long long)info->n_owners);
        break;
    default:
        (void)snprintf(buf, len, "%s",
                       _("ALARM: no expiry; if its holder is gone it stays for ever"));
        break;
    }
    return buf;
}

const char *info_kind(const struct pawl_lock_info *info)
{
    return info->kind == PAWL_KIND_PAWL   ? "pawl"
           : info->kind == PAWL_KIND_HASH ? "hash"
                                          : "string";
}

const char *info_holder(const struct pawl_lock_info *info, char *buf, size_t len)
{
    const char *colon = info->kind == PAWL_KIND_PAWL ? strchr(info->owner, ':') : NULL;
    char owner[16];

    (void)snprintf(owner, sizeof owner, "%.8s", info->owner);
    if (info->kind != PAWL_KIND_PAWL)
        (void)snprintf(buf, len, "%s", info->owner);
    else
        (void)snprintf(buf, len, "%s@%s:%lld", colon == NULL ? owner : colon + 1, info->host,
                       (long long)info->pid);
    return buf;
}

void json_set_key(json_t *object, const void *key, size_t key_len)
{
    char text[NAME_TEXT];

    (void)printable(key, key_len, text, sizeof text);
    (void)json_object_set_new(object, "key", json_string(text));
    if (strlen(text) == key_len && memcmp(text, key, key_len) == 0)
        return;
    for (size_t i = 0; i < key_len && 2 * i + 2 < sizeof text; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)key)[i]);
    (void)json_object_set_new(object, "key_hex", json_string(text));
}

static void set_int(json_t *object, const char *name, int64_t value)
{
    (void)json_object_set_new(object, name, json_integer(value));
}

static void set_text(json_t *object, const char *name, const char *value)
{
    (void)json_object_set_new(object, name, json_string(value));
}

size_t info_listed(const struct pawl_lock_info *info)
{
    return info->n_waiters < 100 ? info->n_waiters : 100;
}

static json_t *waiters_json(const struct pawl_lock_info *info)
{
    json_t *list = json_array();

    for (size_t i = 0; i < info_listed(info); i++) {
        json_t *one = json_object();

        set_text(one, "owner", info->waiters[i].owner);
        set_text(one, "host", info->waiters[i].host);
        set_int(one, "pid", info->waiters[i].pid);
        set_int(one, "waiting_ms", info->waiters[i].waiting_ms);
        (void)json_array_append_new(list, one);
    }
    return list;
}

json_t *info_json(const void *key, size_t key_len, const struct pawl_lock_info *info)
{
    json_t *o = json_object();

    json_set_key(o, key, key_len);
    set_text(o, "kind", info_kind(info));
    set_text(o, "owner", info->owner);
    set_int(o, "count", info->count);
    set_int(o, "owners", info->n_owners);
    set_int(o, "token", (int64_t)info->token);
    set_int(o, "remaining_ms", info->remaining_ms);
    set_int(o, "lease_ms", info->lease_ms);
    set_int(o, "since_ms", info->since_ms);
    set_int(o, "held_ms", info->held_ms);
    set_int(o, "latest_end_ms", info->latest_end_ms);
    (void)json_object_set_new(o, "revoked", json_boolean(info->revoked));
    set_text(o, "host", info->host);
    set_int(o, "pid", info->pid);
    set_text(o, "verdict", verdict_name(info_verdict(info)));
    set_int(o, "n_waiters", (int64_t)info->n_waiters);
    (void)json_object_set_new(o, "waiters", waiters_json(info));
    return o;
}

int json_print(json_t *value, int rc)
{
    /* ASCII only: whatever reads it, and whatever the name was, it stays one line. */
    if (value != NULL)
        (void)json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    (void)putchar('\n');
    json_decref(value);
    return rc;
}

const char *time_text(int64_t ms, char *buf, size_t len)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(buf, len, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(buf, len, "?");
    return buf;
}
