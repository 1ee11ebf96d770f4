/* Exit codes of every subcommand but doctor; documented in pawl(1) and never renumbered. */
#ifndef PAWL_CLI_EXITS_H
#define PAWL_CLI_EXITS_H

/* Above 128 + 64, the last signal, and below 255, which ssh and others use; away from 64-78
 * (sysexits), 124-127 (timeout, shells) and 200-243 (systemd). */
enum cli_exit {
    EXIT_OK = 0,
    EXIT_NO = 1, /* the answer is no: free, not found, not the owner */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_USAGE = 245,
    EXIT_BUSY = 246,
    EXIT_UNREACHABLE = 247,
    EXIT_DENIED = 248,
    EXIT_LOST = 249,
    EXIT_MAX_HOLD = 250,
    EXIT_REFUSED = 251, /* the store, or the system, refused; nothing was done */
    EXIT_UNKNOWN = 252 /* no answer: it may have been done */
};

/* The exit code that goes with a result of the library. */
int cli_exit_of(int result);

/* Its name in --exit and in JSON: "busy", "lost", ...; NULL if it has none. */
const char *cli_exit_name(int code);
/* The code of that name, or -1. */
int cli_exit_by_name(const char *name, unsigned long len);

#endif
