/* A client's own copy of its options. */
#ifndef PAWLI_ENGINE_OPTIONS_H
#define PAWLI_ENGINE_OPTIONS_H

#include <pawl.h>

/* Copy all texts of @opts. 0 or PAWL_ENOMEM, and then nothing is left. */
int pawli_options_copy(const struct pawl_client_options *opts,
                       struct pawl_client_options *ret_copy);
/* Free the copies; the password is wiped first. */
void pawli_options_done(struct pawl_client_options *copy);

#endif
