/* The help of each subcommand: usage, options, examples. */
#ifndef PAWL_CLI_HELP_TEXTS_H
#define PAWL_CLI_HELP_TEXTS_H

#include <stddef.h>

struct help_text {
    const char *command; /* "": the overview */
    const char *text;
};

extern const struct help_text help_texts[];
extern const size_t n_help_texts;

#endif
