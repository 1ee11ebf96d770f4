/* pawl: finds the subcommand and runs it. */
#include <string.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "message.h"
#include "text.h"

static const struct {
    const char *name;
    int (*run)(struct options *opt, int argc, char **argv);
} commands[] = {
    { "run", command_run },         { "ls", command_ls },           { "show", command_show },
    { "watch", command_watch },     { "doctor", command_doctor },   { "break", command_break },
    { "acquire", command_acquire }, { "release", command_release }, { "hold", command_hold },
    { "lease", command_lease },     { "acl", command_acl },         { "verify", command_verify },
    { "bench", command_bench },
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static int command_help(const struct options *opt, int argc, char **argv)
{
    if (argc < 2)
        return help_print("");
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, argv[1]) == 0)
            return help_print(commands[i].name);
    return usage_error(opt->command, _("there is no command '%s'"), argv[1]);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = { COMMON_LONG, { NULL, 0, NULL, 0 } };
    static char program[] = "pawl";
    struct options opt;
    int c;

    text_init();
    options_init(&opt);
    if (argc > 0)
        argv[0] = program; /* getopt's messages begin as ours do */
    while ((c = getopt_long(argc, argv, "+" COMMON_SHORT, longs, NULL)) != -1) {
        int rc = options_take(&opt, c, optarg);

        if (rc >= 0)
            return rc;
    }
    argc -= optind;
    argv += optind;
    if (argc < 1) {
        (void)help_print("");
        return EXIT_USAGE;
    }
    if (strcmp(argv[0], "help") == 0)
        return command_help(&opt, argc, argv);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, argv[0]) != 0)
            continue;
        opt.command = commands[i].name;
        argv[0] = program;
        return commands[i].run(&opt, argc, argv);
    }
    return usage_error("", _("there is no command '%s'"), argv[0]);
}
