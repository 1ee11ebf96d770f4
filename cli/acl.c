/* pawl acl: the least-privilege ACL line. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "rights.h"
#include "text.h"

enum { OPT_USER = OPT_OWN, OPT_OPERATOR };

/* What ls, watch and doctor need on top. */
static const char operator_rights[] =
    "+scan +hvals +config|get +slowlog|get +client|list +acl|whoami +dbsize";

/* A blank or a quote in the prefix would end the word for redis-cli. */
static void put_quoted(const char *before, const char *prefix, const char *after)
{
    (void)printf(" '%s", before);
    for (; *prefix != '\0'; prefix++) {
        if (*prefix == '\'')
            (void)fputs("'\\''", stdout);
        else if (strchr("*?[]\\", *prefix) != NULL)
            (void)printf("\\%c", *prefix);
        else
            (void)putchar(*prefix);
    }
    (void)printf("%s'", after);
}

static void print(const char *user, const char *prefix, bool operator_too)
{
    (void)printf("ACL SETUSER %s on '>PASSWORD' resetkeys resetchannels -@all", user);
    put_quoted("~", prefix, "*");
    put_quoted("&", prefix, "pawl:i:*");
    for (size_t i = 0; i < n_rights; i++)
        (void)printf(" %s", rights[i].acl);
    if (operator_too)
        (void)printf(" %s", operator_rights);
    (void)putchar('\n');
}

static json_t *as_json(const char *user, const char *prefix, bool operator_too)
{
    json_t *o = json_object();
    json_t *list = json_array();
    char text[NAME_TEXT];

    for (size_t i = 0; i < n_rights; i++)
        (void)json_array_append_new(list, json_string(rights[i].acl + 1));
    (void)json_object_set_new(o, "user", json_string(user));
    (void)snprintf(text, sizeof text, "%s*", prefix);
    (void)json_object_set_new(o, "keys", json_string(text));
    (void)snprintf(text, sizeof text, "%spawl:i:*", prefix);
    (void)json_object_set_new(o, "channels", json_string(text));
    (void)json_object_set_new(o, "commands", list);
    (void)json_object_set_new(o, "operator", json_boolean(operator_too));
    return o;
}

int command_acl(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "user", required_argument, NULL, OPT_USER },
        { "operator", no_argument, NULL, OPT_OPERATOR },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    const char *user = "pawl";
    const char *prefix;
    bool operator_too = false;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        if (c == OPT_USER)
            user = optarg;
        operator_too = operator_too || c == OPT_OPERATOR;
    }
    if (argc > optind || user[strcspn(user, " '\"\\\t\n")] != '\0' || user[0] == '\0')
        return usage_error("acl", _("only options; a user's name has no blanks and quotes"));
    prefix = opt->prefix == NULL ? "" : opt->prefix;
    if (opt->json)
        (void)json_print(as_json(user, prefix, operator_too), 0);
    else
        print(user, prefix, operator_too);
    return end_output(EXIT_OK);
}
