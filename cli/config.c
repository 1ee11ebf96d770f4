/* Reading the config file. Knows no option by name. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exits.h"
#include "message.h"
#include "text.h"

#define BLANKS " \t\r\n"

/* @line without blanks around it; changes it. */
static char *trim(char *line)
{
    size_t len;

    line += strspn(line, BLANKS);
    for (len = strlen(line); len > 0 && strchr(BLANKS, line[len - 1]) != NULL; len--)
        line[len - 1] = '\0';
    return line;
}

static int take_line(const char *path, int number, char *line, config_cb cb, void *arg)
{
    char *equals;
    char *value;

    line = trim(line);
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    equals = strchr(line, '=');
    if (equals == NULL) {
        say(_("%s:%d: a line is 'name = value'"), path, number);
        return EXIT_USAGE;
    }
    *equals = '\0';
    value = strdup(trim(equals + 1));
    if (value == NULL)
        return EXIT_REFUSED;
    if (cb(arg, trim(line), value) == 0)
        return 0;
    say(_("%s:%d: there is no setting '%s', or its value is wrong"), path, number, trim(line));
    free(value);
    return EXIT_USAGE;
}

static int read_lines(const char *path, FILE *file, config_cb cb, void *arg)
{
    char *line = NULL;
    size_t size = 0;
    int rc = 0;

    for (int number = 1; rc == 0 && getline(&line, &size, file) >= 0; number++)
        rc = take_line(path, number, line, cb, arg);
    free(line);
    return rc;
}

static FILE *open_default(char *path, size_t len)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    FILE *file = NULL;

    if (base != NULL && base[0] == '/')
        (void)snprintf(path, len, "%s/pawl/config", base);
    else
        (void)snprintf(path, len, "%s/.config/pawl/config", home == NULL ? "" : home);
    if (path[0] == '/')
        file = fopen(path, "re");
    if (file == NULL) {
        (void)snprintf(path, len, "/etc/pawl.conf");
        file = fopen(path, "re");
    }
    return file;
}

int config_read(const char *path, config_cb cb, void *arg)
{
    char found[4096];
    FILE *file;
    int rc;

    if (path == NULL)
        path = getenv("PAWL_CONFIG");
    if (path != NULL) {
        (void)snprintf(found, sizeof found, "%s", path);
        file = fopen(found, "re");
        if (file == NULL) {
            say(_("cannot read the config file %s: %s"), found, strerror(errno));
            return EXIT_USAGE;
        }
    } else {
        file = open_default(found, sizeof found);
        if (file == NULL)
            return 0;
    }
    rc = read_lines(found, file, cb, arg);
    (void)fclose(file);
    return rc;
}
