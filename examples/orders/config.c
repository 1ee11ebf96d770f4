/* config.c: settings from a file, the environment and the arguments, all through one table. */
#include "config.h"

#include "order.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, NUMBER, FLAG, STOCK };
enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_ARGUMENT };

static const char *const source_names[] = { "default", "file", "environment", "argument" };

struct setting {
    const char *name;
    enum kind kind;
    size_t offset;
    size_t size; /* of a text */
    int64_t min, max; /* of a number */
    const char *initial;
    const char *help;
};

#define TEXT_AT(field)                                                                            \
    TEXT, offsetof(struct config, field), sizeof((struct config *)0)->field, 0, 0
#define NUMBER_AT(field, min, max) NUMBER, offsetof(struct config, field), 0, min, max
#define FLAG_AT(field) FLAG, offsetof(struct config, field), 0, 0, 1

static const struct setting settings[] = {
    { "config", TEXT_AT(file), "", "file with lines NAME = VALUE; # begins a comment" },
    { "port", NUMBER_AT(port, 0, 65535), "5000",
      "port shared with the other instances of this host" },
    { "own-port", NUMBER_AT(own_port, -1, 65535), "-1",
      "port of this instance alone; 0 any free one, -1 none" },
    { "bind", TEXT_AT(bind), "127.0.0.1", "address to listen on" },
    { "url", TEXT_AT(url), "redis://127.0.0.1:6379",
      "lock store: redis://, rediss://, redis+unix://" },
    { "password-file", TEXT_AT(password_file), "",
      "file whose first line is the store's password" },
    { "ca-file", TEXT_AT(ca_file), "", "authorities for rediss://, PEM" },
    { "cert-file", TEXT_AT(cert_file), "", "client certificate for rediss://, PEM" },
    { "key-file", TEXT_AT(key_file), "", "its key, PEM" },
    { "db", TEXT_AT(db), "orders.db", "database: a file or sqlite:FILE" },
    { "db-busy-ms", NUMBER_AT(db_busy_ms, 10, 60000), "2000",
      "how long a transaction waits for other instances" },
    { "db-sync", TEXT_AT(db_sync), "full",
      "full: every order survives a power cut; normal: faster" },
    { "instance", TEXT_AT(instance), "", "name in logs and answers; orders-PID" },
    { "stock", STOCK, 0, 0, 0, INT64_MAX, "",
      "SKU=N, sets the stock at the start; may be repeated" },
    { "work-ms", NUMBER_AT(work_ms, 0, 3600000), "0", "makes the business work take longer" },
    { "lease-ms", NUMBER_AT(lease_ms, 100, 3600000), "30000", "lease of the lock" },
    { "wait-ms", NUMBER_AT(wait_ms, 0, 600000), "5000", "how long a request waits for its lock" },
    { "max-hold-ms", NUMBER_AT(max_hold_ms, 100, 86400000), "180000", "longest hold of the lock" },
    { "grace-ms", NUMBER_AT(grace_ms, 0, 60000), "5000",
      "time to stop in after the longest hold" },
    { "expected-hold-ms", NUMBER_AT(expected_hold_ms, 1, 3600000), "1000",
      "99 of 100 holds are shorter; longer ones are counted" },
    { "request-ms", NUMBER_AT(request_ms, 100, 600000), "10000",
      "time in which header and body must arrive" },
    { "idle-ms", NUMBER_AT(idle_ms, 100, 3600000), "75000",
      "an idle connection is closed after that" },
    { "max-header", NUMBER_AT(max_header, 256, 65536), "16384",
      "bytes of request line and header" },
    { "max-body", NUMBER_AT(max_body, 256, 1048576), "65536", "bytes of a body" },
    { "max-connections", NUMBER_AT(max_connections, 1, 1000000), "10000",
      "connections at a time" },
    { "log-level", TEXT_AT(log_level), "info", "error, warn, info or debug" },
    { "log-file", TEXT_AT(log_file), "", "appended to; stderr without it" },
    { "no-lock", FLAG_AT(no_lock), "0", "take no lock, keep the database's guards (benchmark)" },
    { "unsafe", FLAG_AT(unsafe), "0",
      "no lock and no guard: shows what goes wrong (demonstration)" },
    { "ignore-loss", FLAG_AT(ignore_loss), "0",
      "do not look whether the lock is lost: shows the database's guard (test)" },
    { "print-config", FLAG_AT(print_config), "0",
      "print the settings and where they come from; end" },
    { "help", FLAG_AT(help), "0", "print this; end" },
    { "version", FLAG_AT(version), "0", "print the version; end" },
};
#define N_SETTINGS (sizeof settings / sizeof settings[0])

static enum source sources[N_SETTINGS];

static int64_t *number_at(struct config *config, const struct setting *s)
{
    return (int64_t *)(void *)((char *)config + s->offset);
}

static int parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_number)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (text[0] == '\0' || isspace((unsigned char)text[0]) || *end != '\0' || errno != 0 ||
        number < min || number > max)
        return -1;
    *ret_number = number;
    return 0;
}

/* "SKU=N"; a later one for the same SKU replaces the earlier. */
static int set_stock(struct config *config, const char *text)
{
    const char *equals = strchr(text, '=');
    struct config_stock *stock = NULL;
    size_t i, len;
    int64_t quantity;

    if (equals == NULL || !order_name_ok(text, (size_t)(equals - text)) ||
        parse_number(equals + 1, 0, INT64_C(1000000000), &quantity) < 0)
        return -1;
    len = (size_t)(equals - text);
    for (i = 0; i < config->n_stock; i++)
        if (strlen(config->stock[i].sku) == len && memcmp(config->stock[i].sku, text, len) == 0)
            stock = &config->stock[i];
    if (stock == NULL) {
        if (config->n_stock == CONFIG_STOCK_MAX)
            return -1;
        stock = &config->stock[config->n_stock++];
    }
    memcpy(stock->sku, text, len);
    stock->sku[len] = '\0';
    stock->quantity = quantity;
    return 0;
}

static int set_value(struct config *config, size_t i, const char *value, enum source source,
                     FILE *err)
{
    const struct setting *s = &settings[i];
    int rc = 0;

    switch (s->kind) {
    case TEXT:
        if (strlen(value) >= s->size)
            rc = -1;
        else
            snprintf((char *)config + s->offset, s->size, "%s", value);
        break;
    case STOCK:
        rc = set_stock(config, value);
        break;
    case NUMBER:
    case FLAG:
        rc = parse_number(value, s->min, s->max, number_at(config, s));
        break;
    }
    sources[i] = source;
    if (rc == 0)
        return 0;
    if (s->kind == TEXT)
        fprintf(err, "pawl-orders: %s (%s): longer than %zu bytes\n", s->name,
                source_names[source], s->size - 1);
    else if (s->kind == STOCK)
        fprintf(err, "pawl-orders: stock (%s): \"%s\" is not SKU=N\n", source_names[source],
                value);
    else
        fprintf(err, "pawl-orders: %s (%s): \"%s\" is not a number from %lld to %lld\n", s->name,
                source_names[source], value, (long long)s->min, (long long)s->max);
    return -1;
}

static size_t find_setting(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < N_SETTINGS; i++)
        if (strlen(settings[i].name) == len && memcmp(settings[i].name, name, len) == 0)
            break;
    return i;
}

/* Replace what stands between "user:" and "@" of a URL by stars. */
static void blank_password(char *url)
{
    char *start = strstr(url, "://");
    char *end, *p;

    if (start == NULL)
        return;
    start += 3;
    end = start + strcspn(start, "/");
    for (p = end; p > start && *p != '@'; p--)
        continue;
    if (*p != '@')
        return;
    end = p;
    for (p = start; p < end && *p != ':'; p++)
        continue;
    for (p++; p < end; p++)
        *p = '*';
}

/* Settings that make no sense in a file or in the environment. */
static int is_argument_only(size_t i)
{
    static const char *const names[] = { "print-config", "help", "version" };
    size_t k;

    for (k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(settings[i].name, names[k]) == 0)
            return 1;
    return 0;
}

static int load_arguments(struct config *config, int argc, char **argv, FILE *err)
{
    int a;

    for (a = 1; a < argc; a++) {
        const char *name = argv[a] + 2;
        char *value;
        size_t i, len;

        if (strncmp(argv[a], "--", 2) != 0) {
            fprintf(err, "pawl-orders: \"%s\" is not an option; see --help\n", argv[a]);
            return -1;
        }
        len = strcspn(name, "=");
        i = find_setting(name, len);
        if (i == N_SETTINGS) {
            fprintf(err, "pawl-orders: there is no option --%.*s; see --help\n", (int)len, name);
            return -1;
        }
        value = name[len] == '=' ? argv[a] + 2 + len + 1 : NULL;
        if (value == NULL && settings[i].kind != FLAG && ++a < argc)
            value = argv[a];
        if (value == NULL && settings[i].kind != FLAG) {
            fprintf(err, "pawl-orders: --%s needs a value\n", settings[i].name);
            return -1;
        }
        if (set_value(config, i, value == NULL ? "1" : value, FROM_ARGUMENT, err) < 0)
            return -1;
        if (value != NULL && strcmp(settings[i].name, "url") == 0)
            blank_password(value);
    }
    return 0;
}

static int load_environment(struct config *config, FILE *err)
{
    size_t i, k;

    for (i = 0; i < N_SETTINGS; i++) {
        char name[64];
        const char *value;

        if (is_argument_only(i))
            continue;
        snprintf(name, sizeof name, "PAWL_ORDERS_%s", settings[i].name);
        for (k = 0; name[k] != '\0'; k++)
            name[k] = name[k] == '-' ? '_' : (char)toupper((unsigned char)name[k]);
        value = getenv(name);
        if (value != NULL && set_value(config, i, value, FROM_ENVIRONMENT, err) < 0)
            return -1;
    }
    return 0;
}

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

static int load_line(struct config *config, char *line, int number, FILE *err)
{
    char *name = trim(line), *value;
    size_t i;

    if (name[0] == '\0' || name[0] == '#')
        return 0;
    value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    name = trim(name);
    i = find_setting(name, strlen(name));
    if (value == NULL || i == N_SETTINGS || is_argument_only(i) ||
        strcmp(settings[i].name, "config") == 0) {
        fprintf(err, "pawl-orders: %s line %d: not a known NAME = VALUE\n", config->file, number);
        return -1;
    }
    return set_value(config, i, trim(value), FROM_FILE, err);
}

static int load_file(struct config *config, FILE *err)
{
    char line[CONFIG_TEXT_MAX * 2];
    int number = 0, rc = 0;
    FILE *file = fopen(config->file, "re");

    if (file == NULL) {
        fprintf(err, "pawl-orders: %s: %s\n", config->file, strerror(errno));
        return -1;
    }
    while (rc == 0 && fgets(line, sizeof line, file) != NULL)
        rc = load_line(config, line, ++number, err);
    fclose(file);
    return rc;
}

/* The file's name comes from the stronger sources, so they are looked at before it is read. */
static void find_file(struct config *config, int argc, char **argv)
{
    const char *name = getenv("PAWL_ORDERS_CONFIG");
    int a;

    for (a = 1; a < argc; a++) {
        if (strncmp(argv[a], "--config=", 9) == 0)
            name = argv[a] + 9;
        else if (strcmp(argv[a], "--config") == 0 && a + 1 < argc)
            name = argv[a + 1];
    }
    if (name != NULL)
        snprintf(config->file, sizeof config->file, "%s", name);
}

static int one_of(const char *value, const char *const *words, const char *name, FILE *err)
{
    for (; *words != NULL; words++)
        if (strcmp(value, *words) == 0)
            return 0;
    fprintf(err, "pawl-orders: %s: \"%s\" is not one of its words; see --help\n", name, value);
    return -1;
}

static int check_whole(const struct config *config, FILE *err)
{
    static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
    static const char *const syncs[] = { "full", "normal", NULL };

    if (one_of(config->log_level, levels, "log-level", err) < 0 ||
        one_of(config->db_sync, syncs, "db-sync", err) < 0)
        return -1;
    if (config->max_hold_ms < config->lease_ms) {
        fprintf(err, "pawl-orders: max-hold-ms %lld is below lease-ms %lld\n",
                (long long)config->max_hold_ms, (long long)config->lease_ms);
        return -1;
    }
    if (!order_name_ok(config->instance, strlen(config->instance))) {
        fprintf(err, "pawl-orders: instance: 1 to 64 characters out of A-Z a-z 0-9 . _ : -\n");
        return -1;
    }
    return 0;
}

int config_load(struct config *config, int argc, char **argv, FILE *err)
{
    size_t i;

    memset(config, 0, sizeof *config);
    for (i = 0; i < N_SETTINGS; i++)
        if (settings[i].kind != STOCK &&
            set_value(config, i, settings[i].initial, FROM_DEFAULT, err) < 0)
            return -1;
    snprintf(config->instance, sizeof config->instance, "orders-%ld", (long)getpid());
    find_file(config, argc, argv);
    if (config->file[0] != '\0' && load_file(config, err) < 0)
        return -1;
    if (load_environment(config, err) < 0 || load_arguments(config, argc, argv, err) < 0)
        return -1;
    return check_whole(config, err);
}

void config_print(const struct config *config, FILE *out)
{
    size_t i, k;

    for (i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char text[CONFIG_TEXT_MAX];

        if (is_argument_only(i))
            continue;
        if (s->kind == STOCK) {
            for (k = 0; k < config->n_stock; k++)
                fprintf(out, "stock = %s=%lld # %s\n", config->stock[k].sku,
                        (long long)config->stock[k].quantity, source_names[sources[i]]);
            continue;
        }
        if (s->kind == TEXT)
            snprintf(text, sizeof text, "%s", (const char *)config + s->offset);
        else
            snprintf(
                text, sizeof text, "%lld",
                (long long)*(const int64_t *)(const void *)((const char *)config + s->offset));
        if (strcmp(s->name, "url") == 0)
            blank_password(text);
        fprintf(out, "%s = %s # %s\n", s->name, text, source_names[sources[i]]);
    }
}

void config_usage(FILE *out)
{
    size_t i;

    fprintf(out, "usage: pawl-orders [--NAME VALUE | --NAME=VALUE ...]\n"
                 "One instance of the order API. A setting comes from the file (--config), from\n"
                 "the environment (PAWL_ORDERS_NAME) or from the arguments; the later wins.\n\n");
    for (i = 0; i < N_SETTINGS; i++)
        fprintf(out, "  --%-17s %s%s%s%s\n", settings[i].name, settings[i].help,
                settings[i].kind == FLAG || settings[i].initial[0] == '\0' ? "" : " [",
                settings[i].kind == FLAG ? "" : settings[i].initial,
                settings[i].kind == FLAG || settings[i].initial[0] == '\0' ? "" : "]");
}
