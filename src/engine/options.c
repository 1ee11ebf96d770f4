/* A client's own copy of its options; see options.h. */
#include "engine/options.h"

#include <stdlib.h>
#include <string.h>

/* X(member): every text among the options. */
/* clang-format off */
#define TEXT_MAP(X)                                                                               \
    X(name) X(prefix) X(username) X(password) X(password_env) X(password_file) X(ca_file)         \
    X(cert_file) X(key_file) X(server_name)
/* clang-format on */

int pawli_options_copy(const struct pawl_client_options *opts,
                       struct pawl_client_options *ret_copy)
{
    struct pawl_client_options copy = *opts;
    int failed = 0;

#define COPY(member)                                                                              \
    copy.member = opts->member == NULL ? NULL : strdup(opts->member);                             \
    failed |= opts->member != NULL && copy.member == NULL;
    TEXT_MAP(COPY)
#undef COPY
    if (failed) {
        pawli_options_done(&copy);
        return PAWL_ENOMEM;
    }
    *ret_copy = copy;
    return 0;
}

void pawli_options_done(struct pawl_client_options *copy)
{
    if (copy->password != NULL)
        explicit_bzero((char *)copy->password, strlen(copy->password));
#define FREE(member)                                                                              \
    free((char *)copy->member);                                                                   \
    copy->member = NULL;
    TEXT_MAP(FREE)
#undef FREE
}
