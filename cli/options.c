/* The options that every subcommand has, and the client that they open. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "duration.h"
#include "exits.h"
#include "help.h"
#include "message.h"
#include "text.h"

void options_init(struct options *o)
{
    memset(o, 0, sizeof *o);
    o->command = "";
    o->connect_ms = -1;
    o->command_ms = -1;
}

/* From "scheme://user:" to the last '@' before the path. */
void options_hide_password(char *url)
{
    char *host = strstr(url, "://");
    char *end;
    char *at;
    char *colon;

    if (host == NULL)
        return;
    host += 3;
    end = host + strcspn(host, "/?#");
    at = memrchr(host, '@', (size_t)(end - host));
    colon = at == NULL ? NULL : memchr(host, ':', (size_t)(at - host));
    if (colon != NULL)
        memset(colon + 1, '*', (size_t)(at - colon - 1));
}

static void take_url(struct options *o, char *arg)
{
    char *copy = strdup(arg);

    if (copy == NULL)
        return;
    options_hide_password(arg);
    o->url = copy;
    o->url_from_env = false;
}

static const struct {
    int code;
    size_t offset;
} texts[] = {
    { OPT_CONFIG, offsetof(struct options, config) },
    { OPT_PREFIX, offsetof(struct options, prefix) },
    { OPT_USERNAME, offsetof(struct options, username) },
    { OPT_PASSWORD_FILE, offsetof(struct options, password_file) },
    { OPT_PASSWORD_ENV, offsetof(struct options, password_env) },
    { OPT_CA, offsetof(struct options, ca_file) },
    { OPT_CERT, offsetof(struct options, cert_file) },
    { OPT_KEY, offsetof(struct options, key_file) },
    { OPT_SERVER_NAME, offsetof(struct options, server_name) },
};

static const char **text_of(struct options *o, int code)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].code == code)
            return (const char **)(void *)((char *)o + texts[i].offset);
    return NULL;
}

int options_take(struct options *o, int code, char *arg)
{
    const char **text = text_of(o, code);
    int rc = 0;

    if (text != NULL) {
        *text = arg;
        return OPTION_OURS;
    }
    switch (code) {
    case 'u':
    case OPT_URL:
        take_url(o, arg);
        break;
    case OPT_INSECURE:
        o->insecure = true;
        break;
    case 'j':
    case OPT_JSON:
        o->json = true;
        message_init(o->json, o->quiet);
        break;
    case 'q':
        o->quiet = true;
        message_init(o->json, o->quiet);
        break;
    case 'v':
        o->verbose = true;
        break;
    case OPT_CONNECT:
        rc = options_duration(o, "--connect-timeout", arg, &o->connect_ms);
        break;
    case OPT_COMMAND:
        rc = options_duration(o, "--command-timeout", arg, &o->command_ms);
        break;
    case 'h':
    case OPT_HELP:
        return help_print(o->command);
    case OPT_VERSION:
        return help_version(o->json);
    case '?':
    case ':':
        /* getopt has named the option; it writes to stderr itself. */
        say(_("try: pawl %s%s--help"), o->command, o->command[0] == '\0' ? "" : " ");
        return EXIT_USAGE;
    default:
        return OPTION_OTHER;
    }
    return rc == 0 ? OPTION_OURS : rc;
}

int options_duration(const struct options *o, const char *name, const char *text, int64_t *ret_ms)
{
    char why[256];

    if (duration_parse(text, ret_ms, why, sizeof why) == 0)
        return 0;
    return usage_error(o->command, "%s: %s", name, why);
}

int options_number(const struct options *o, const char *name, const char *text, int64_t least,
                   int64_t most, int64_t *ret_value)
{
    char *end = NULL;
    long long value = strtoll(text, &end, 10);

    if (text[0] == '\0' || *end != '\0' || value < least || value > most)
        return usage_error(o->command, _("%s: '%s' is no number from %lld to %lld"), name, text,
                           (long long)least, (long long)most);
    *ret_value = value;
    return 0;
}

/* A setting of the config file counts if no option said it before. */
static int take_setting(void *arg, const char *name, char *value)
{
    static const struct option names[] = { COMMON_LONG, { NULL, 0, NULL, 0 } };
    struct options *o = arg;
    char why[256];

    if (strcmp(name, "url") == 0) {
        if (o->url == NULL)
            o->url = value;
        return 0;
    }
    if (strcmp(name, "audit") == 0) {
        if (o->audit == NULL)
            o->audit = value;
        return 0;
    }
    for (size_t i = 0; names[i].name != NULL; i++) {
        const char **text;

        if (strcmp(names[i].name, name) != 0 || names[i].val == OPT_CONFIG)
            continue;
        text = text_of(o, names[i].val);
        if (text != NULL) {
            if (*text == NULL)
                *text = value;
            return 0;
        }
        if (names[i].val == OPT_CONNECT && o->connect_ms < 0)
            return duration_parse(value, &o->connect_ms, why, sizeof why);
        if (names[i].val == OPT_COMMAND && o->command_ms < 0)
            return duration_parse(value, &o->command_ms, why, sizeof why);
        if (names[i].val == OPT_INSECURE)
            o->insecure = o->insecure || strcmp(value, "yes") == 0;
        return 0;
    }
    return -1;
}

int options_finish(struct options *o)
{
    const char *url = getenv("PAWL_URL");
    int rc;

    message_init(o->json, o->quiet);
    if (o->url == NULL && url != NULL && url[0] != '\0') {
        o->url = url;
        o->url_from_env = true;
    }
    if (o->prefix == NULL)
        o->prefix = getenv("PAWL_PREFIX");
    if (o->password_file == NULL)
        o->password_file = getenv("PAWL_PASSWORD_FILE");
    if (o->audit == NULL)
        o->audit = getenv("PAWL_AUDIT");
    rc = config_read(o->config, take_setting, o);
    if (rc != 0)
        return rc;
    if (o->url == NULL)
        return usage_error(o->command,
                           _("no store is named: --url redis://HOST, PAWL_URL, or 'url = ' in "
                             "~/.config/pawl/config"));
    return 0;
}

static void log_line(void *arg, enum pawl_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    say("%s", line);
}

int options_client(const struct options *o, struct pawl_client **ret_client)
{
    struct pawl_client_options c = PAWL_CLIENT_OPTIONS_INIT;
    int rc;

    c.name = "pawl";
    c.prefix = o->prefix;
    c.username = o->username;
    c.password_file = o->password_file;
    c.password_env = o->password_env;
    c.ca_file = o->ca_file;
    c.cert_file = o->cert_file;
    c.key_file = o->key_file;
    c.server_name = o->server_name;
    c.flags = o->insecure ? PAWL_TLS_INSECURE : 0u;
    if (o->connect_ms >= 0)
        c.connect_ms = o->connect_ms;
    if (o->command_ms >= 0)
        c.command_ms = o->command_ms;
    if (o->verbose) {
        c.log = log_line;
        c.log_level = PAWL_LOG_DEBUG;
    }
    rc = pawl_client_open(o->url, &c, ret_client);
    return rc < 0 ? say_result(_("cannot open the store"), rc) : 0;
}
