/* The rights that pawl needs of a Redis user: for `pawl acl` to print and for doctor to try. */
#ifndef PAWL_CLI_RIGHTS_H
#define PAWL_CLI_RIGHTS_H

#include <stddef.h>

struct right {
    const char *acl; /* "+pexpire" */
    const char *probe; /* a command on the probe key %s, for store_command(); NULL: not tried */
    const char *without; /* what does not work without it */
};

extern const struct right rights[];
extern const size_t n_rights;

#endif
