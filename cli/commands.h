/* The subcommands. Each gets the options said before its name, and its own arguments with its name
 * as argv[0]; it returns the exit code. */
#ifndef PAWL_CLI_COMMANDS_H
#define PAWL_CLI_COMMANDS_H

#include "options.h"

int command_run(struct options *opt, int argc, char **argv);
int command_ls(struct options *opt, int argc, char **argv);
int command_show(struct options *opt, int argc, char **argv);
int command_watch(struct options *opt, int argc, char **argv);
int command_doctor(struct options *opt, int argc, char **argv);
int command_break(struct options *opt, int argc, char **argv);
int command_acquire(struct options *opt, int argc, char **argv);
int command_release(struct options *opt, int argc, char **argv);
int command_hold(struct options *opt, int argc, char **argv);
int command_lease(struct options *opt, int argc, char **argv);
int command_acl(struct options *opt, int argc, char **argv);
int command_verify(struct options *opt, int argc, char **argv);
int command_bench(struct options *opt, int argc, char **argv);

#endif
