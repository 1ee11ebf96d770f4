/* The texts of --help and --version. */
#ifndef PAWL_CLI_HELP_H
#define PAWL_CLI_HELP_H

#include <stdbool.h>

/* The help of a subcommand, of "" the overview, on stdout. Returns an exit code. */
int help_print(const char *command);
int help_version(bool json);

/* The commit that the program was built from, or "unknown". */
extern const char *const cli_commit;

/* End of anything that printed on stdout: a full disk or a closed pipe is a failure, not a
 * success. Returns @rc, or EXIT_REFUSED after a message. */
int end_output(int rc);

#endif
