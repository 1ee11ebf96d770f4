/* Ranges of every number a user may set. Names the value and the rule when one is outside. */
#ifndef PAWLI_CORE_LIMITS_H
#define PAWLI_CORE_LIMITS_H

#include <stddef.h>

#include <pawl.h>

/* What a lock is asked with, after defaults have been filled in. */
struct pawli_lock_settings {
    int64_t lease_ms;
    int64_t wait_ms;     /* PAWL_FOREVER: no limit */
    int64_t max_hold_ms; /* PAWL_UNLIMITED: none */
    int64_t grace_ms;
    unsigned flags;
};

/* Check @opts (which may be an older, shorter struct) against the ranges in pawl.h and write all
 * of its known members to @ret_opts, defaults for the rest. @detail gets "name=value: rule" on
 * failure. 0, PAWL_ERANGE or PAWL_EUSAGE (size, unknown flag). */
int pawli_client_options_read(const struct pawl_client_options *opts, char *detail,
                              size_t detail_len, struct pawl_client_options *ret_opts);

/* The same for a lock; PAWL_DEFAULT members are taken from @client. @ret_opts gets the callback
 * and owner as they were given. */
int pawli_lock_options_read(const struct pawl_lock_options *opts,
                            const struct pawl_client_options *client, char *detail,
                            size_t detail_len, struct pawl_lock_options *ret_opts,
                            struct pawli_lock_settings *ret_settings);

/* Copy the @given_size bytes of a caller's struct, which may be of an older version (shorter, at
 * least @first_size, the first that was released) or a newer one (longer; what we do not know must
 * be zero), over the defaults in @ret_known. 0 or PAWL_EUSAGE. */
int pawli_struct_read(const void *given, size_t given_size, size_t first_size, size_t known_size,
                      char *detail, size_t detail_len, void *ret_known);

/* A lease for pawl_lock_extend(). 0 or PAWL_ERANGE. */
int pawli_lease_check(int64_t lease_ms, char *detail, size_t detail_len);

#endif
