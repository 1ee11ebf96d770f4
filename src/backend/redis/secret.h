/* The password: from options, environment, file or URL. */
#ifndef PAWLI_REDIS_SECRET_H
#define PAWLI_REDIS_SECRET_H

#include <stddef.h>

#include <pawl.h>

/* Read the password that goes with @opts; @of_url is what the URL carries, or NULL. Gives
 * *ret_password (NULL: none), to be freed with pawli_secret_free(). 0, PAWL_ENOMEM, or
 * PAWL_ESECRET: then @detail names the source and never its content. */
int pawli_redis_secret(const struct pawl_client_options *opts, const char *of_url, char *detail,
                       size_t detail_len, char **ret_password);

#endif
