/* Printing --help and --version. The texts are in help_texts.c. */
#include "help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pawl.h>

#include "exits.h"
#include "help_texts.h"
#include "message.h"
#include "text.h"

int end_output(int rc)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return rc;
    say(_("cannot write the output: %s"), strerror(errno));
    return EXIT_REFUSED;
}

int help_print(const char *command)
{
    for (size_t i = 0; i < n_help_texts; i++) {
        if (strcmp(help_texts[i].command, command) != 0)
            continue;
        (void)fputs(text_get(help_texts[i].text), stdout);
        return end_output(EXIT_OK);
    }
    return EXIT_USAGE;
}

int help_version(bool json)
{
    if (json)
        (void)printf("{\"pawl\":\"%s\",\"commit\":\"%s\",\"library\":\"%s\"}\n", PAWL_VERSION,
                     cli_commit, pawl_version());
    else
        (void)printf("pawl %s (commit %s), libpawl %s\n", PAWL_VERSION, cli_commit,
                     pawl_version());
    return end_output(EXIT_OK);
}
