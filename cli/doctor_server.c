/* Doctor: the server's version, role, replicas, persistence, memory and clients. Only reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "duration.h"
#include "text.h"

static void check_version(struct doctor *d)
{
    char version[64];
    bool valkey = strcmp(doctor_info(d, "server_name"), "valkey") == 0;
    long major;

    (void)snprintf(version, sizeof version, "%s",
                   doctor_info(d, valkey ? "valkey_version" : "redis_version"));
    major = strtol(version, NULL, 10);
    if (version[0] == '\0')
        doctor_find(d, LEVEL_REFUSED, "version", NULL, _("INFO does not tell the version"));
    else if (valkey || major >= 7)
        doctor_find(d, LEVEL_OK, "version", NULL, "%s %s", valkey ? "Valkey" : "Redis", version);
    else
        doctor_find(d, major < 6 ? LEVEL_FAIL : LEVEL_WARN, "version",
                    _("use Redis 7 or Valkey: channels in ACLs, and a clock that stands still "
                      "within a script"),
                    "Redis %s", version);
}

static void check_replicas(struct doctor *d)
{
    long long n = doctor_info_number(d, "connected_slaves");
    char least[32] = "";

    if (n == 0) {
        doctor_find(d, LEVEL_INFO, "replicas", NULL,
                    _("no replicas: no failover; the locks live as long as this server's disk"));
        return;
    }
    for (int i = 0; i < n && i < 16; i++) {
        char field[16];
        char line[256];
        const char *lag;

        (void)snprintf(field, sizeof field, "slave%d", i);
        (void)snprintf(line, sizeof line, "%s", doctor_info(d, field));
        lag = strstr(line, "lag=");
        doctor_find(d, lag != NULL && strtol(lag + 4, NULL, 10) > 1 ? LEVEL_WARN : LEVEL_OK,
                    "replica-lag", NULL, "%s: %s", field, line);
    }
    if (doctor_config(d, "min-replicas-to-write", least, sizeof least) < 0)
        doctor_find(d, LEVEL_REFUSED, "min-replicas", NULL,
                    _("min-replicas-to-write cannot be read; ask the provider"));
    else
        doctor_find(d, strtol(least, NULL, 10) > 0 ? LEVEL_OK : LEVEL_WARN, "min-replicas",
                    strtol(least, NULL, 10) > 0
                        ? NULL
                        : _("CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10: a "
                            "master that is cut off stops granting"),
                    _("min-replicas-to-write is %s with %lld replicas"), least, n);
}

static void check_role(struct doctor *d)
{
    const char *role = doctor_info(d, "role");

    if (role[0] == '\0')
        doctor_find(d, LEVEL_REFUSED, "role", NULL, _("INFO does not tell the role"));
    else if (strcmp(role, "master") == 0)
        doctor_find(d, LEVEL_OK, "role", NULL, _("it is the master"));
    else
        doctor_find(d, LEVEL_FAIL, "role", _("name the master in the URL, or all servers"),
                    _("it is a replica: locks there are copies, and nothing can be granted"));
    check_replicas(d);
    if (doctor_info_number(d, "cluster_enabled") == 1)
        doctor_find(d, LEVEL_INFO, "cluster", NULL, _("a node of a cluster"));
}

static void check_fsync(struct doctor *d)
{
    char when[32] = "";

    if (doctor_config(d, "appendfsync", when, sizeof when) < 0)
        doctor_find(d, LEVEL_REFUSED, "appendfsync", NULL, _("appendfsync cannot be read"));
    else if (strcmp(when, "always") == 0)
        doctor_find(d, LEVEL_OK, "appendfsync", NULL, "appendfsync always");
    else
        doctor_find(d, strcmp(when, "everysec") == 0 ? LEVEL_WARN : LEVEL_FAIL, "appendfsync",
                    _("appendfsync always if two holders would be worse than slower grants; else "
                      "fence at the resource"),
                    _("appendfsync %s: a crash forgets up to a second of locks"), when);
}

static void check_persistence(struct doctor *d)
{
    const char *aof = doctor_info(d, "aof_enabled");

    if (aof[0] == '\0')
        doctor_find(d, LEVEL_REFUSED, "aof", NULL, _("INFO does not tell about persistence"));
    else if (aof[0] == '0')
        doctor_find(d, LEVEL_FAIL, "aof",
                    _("CONFIG SET appendonly yes, and in redis.conf; until then a restart frees "
                      "every lock under its holder"),
                    _("no AOF: a restart forgets the locks of today"));
    else {
        doctor_find(d, LEVEL_OK, "aof", NULL, _("AOF is on"));
        check_fsync(d);
        if (strcmp(doctor_info(d, "aof_last_write_status"), "ok") != 0)
            doctor_find(d, LEVEL_FAIL, "aof-write", _("is the disk full?"),
                        _("the last write of the AOF failed: writes are refused"));
    }
    if (strcmp(doctor_info(d, "rdb_last_bgsave_status"), "err") == 0)
        doctor_find(d, LEVEL_FAIL, "rdb", _("is the disk full, is there memory to fork?"),
                    _("the last RDB save failed: writes may be refused"));
    if (doctor_info_number(d, "loading") == 1)
        doctor_find(d, LEVEL_WARN, "loading", _("wait until it has loaded"),
                    _("the server is loading its data"));
}

static void check_memory(struct doctor *d)
{
    long long most = doctor_info_number(d, "maxmemory");
    long long used = doctor_info_number(d, "used_memory");
    char policy[64];

    (void)snprintf(policy, sizeof policy, "%s", doctor_info(d, "maxmemory_policy"));
    if (policy[0] == '\0')
        doctor_find(d, LEVEL_REFUSED, "eviction", NULL, _("INFO does not tell the policy"));
    else if (strcmp(policy, "noeviction") == 0)
        doctor_find(d, LEVEL_OK, "eviction", NULL, _("maxmemory-policy noeviction"));
    else
        doctor_find(d, most > 0 ? LEVEL_FAIL : LEVEL_WARN, "eviction",
                    _("CONFIG SET maxmemory-policy noeviction, or a server of its own for locks"),
                    _("maxmemory-policy %s: a held lock may be evicted when memory is full"),
                    policy);
    if (most > 0 && used * 10 > most * 9)
        doctor_find(d, used >= most ? LEVEL_FAIL : LEVEL_WARN, "memory",
                    _("more memory, or less data: at the limit nothing is granted"),
                    _("%lld of %lld bytes used"), used, most);
    else if (most > 0)
        doctor_find(d, LEVEL_OK, "memory", NULL, _("%lld of %lld bytes used"), used, most);
    else
        doctor_find(d, LEVEL_INFO, "memory", NULL,
                    _("no maxmemory: %lld bytes used, the machine is the limit"), used);
}

static void check_clients(struct doctor *d)
{
    long long n = doctor_info_number(d, "connected_clients");
    long long most = doctor_info_number(d, "maxclients");
    char text[32];

    if (most == 0 && doctor_config(d, "maxclients", text, sizeof text) == 0)
        most = strtoll(text, NULL, 10);
    if (most == 0)
        return;
    doctor_find(d, n * 5 > most * 4 ? LEVEL_WARN : LEVEL_OK, "clients",
                n * 5 > most * 4 ? _("one client per process, not per request; or raise "
                                     "maxclients")
                                 : NULL,
                _("%lld connections of at most %lld"), n, most);
}

static void check_uptime(struct doctor *d)
{
    long long seconds = doctor_info_number(d, "uptime_in_seconds");
    char text[DURATION_TEXT];

    if (doctor_info(d, "uptime_in_seconds")[0] == '\0')
        return;
    (void)duration_text(seconds * 1000, text, sizeof text);
    if (seconds < 600)
        doctor_find(d, LEVEL_INFO, "uptime",
                    _("a restart is what happened to locks that vanished before that"),
                    _("restarted %s ago"), text);
    else
        doctor_find(d, LEVEL_OK, "uptime", NULL, _("up for %s"), text);
}

void doctor_server(struct doctor *d)
{
    char notify[32];

    doctor_step(d, "server", _("6. Redis itself"));
    check_version(d);
    check_role(d);
    check_persistence(d);
    check_memory(d);
    check_clients(d);
    check_uptime(d);
    if (doctor_config(d, "notify-keyspace-events", notify, sizeof notify) == 0)
        doctor_find(d, LEVEL_INFO, "notify", NULL,
                    _("notify-keyspace-events '%s': pawl does not need it"), notify);
    if (d->production && strncmp(d->opt->url, "redis://", 8) == 0 &&
        strstr(d->opt->url, "127.0.0.1") == NULL && strstr(d->opt->url, "localhost") == NULL)
        doctor_find(d, LEVEL_WARN, "tls", _("rediss:// with a certificate that is checked"),
                    _("the connection is not encrypted: passwords and locks are for all to read"));
}
