/* Ranges of the options, see limits.h. Looks at numbers and texts, never at what they mean. */
#include "core/limits.h"

#include <stdio.h>
#include <string.h>

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)

/* The structs as they were first released, without the padding behind the last member. */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define CLIENT_FIRST_SIZE END_OF(struct pawl_client_options, grace_ms)
#define LOCK_FIRST_SIZE END_OF(struct pawl_lock_options, on_event_arg)

struct range {
    const char *name;
    int64_t min_ms;
    int64_t max_ms;
    const char *special; /* what PAWL_FOREVER and PAWL_UNLIMITED mean; NULL: not allowed */
};

static const struct range lease_range = { "lease_ms", PAWL_LEASE_MIN_MS, PAWL_LEASE_MAX_MS, NULL };
static const struct range wait_range = { "wait_ms", 0, PAWL_WAIT_MAX_MS, "for ever" };
static const struct range grace_range = { "grace_ms", 0, MINUTE_MS, NULL };

static int range_check(const struct range *range, int64_t value, char *detail, size_t detail_len)
{
    if (value >= range->min_ms && value <= range->max_ms)
        return 0;
    if (range->special == NULL)
        (void)snprintf(detail, detail_len, "%s=%lld: must be %lld to %lld (milliseconds)",
                       range->name, (long long)value, (long long)range->min_ms,
                       (long long)range->max_ms);
    else if (value != -1)
        (void)snprintf(detail, detail_len,
                       "%s=%lld: must be %lld to %lld (milliseconds), or -1 (%s)", range->name,
                       (long long)value, (long long)range->min_ms, (long long)range->max_ms,
                       range->special);
    else
        return 0;
    return PAWL_ERANGE;
}

int pawli_lease_check(int64_t lease_ms, char *detail, size_t detail_len)
{
    return range_check(&lease_range, lease_ms, detail, detail_len);
}

/* What a client and a lock have in common. */
static int hold_check(int64_t lease_ms, int64_t wait_ms, int64_t max_hold_ms, int64_t grace_ms,
                      char *detail, size_t detail_len)
{
    struct range max_hold_range = { "max_hold_ms", lease_ms, PAWL_MAX_HOLD_MAX_MS, "unlimited" };
    int rc;

    rc = range_check(&lease_range, lease_ms, detail, detail_len);
    if (rc == 0)
        rc = range_check(&wait_range, wait_ms, detail, detail_len);
    if (rc == 0)
        rc = range_check(&max_hold_range, max_hold_ms, detail, detail_len);
    if (rc == 0)
        rc = range_check(&grace_range, grace_ms, detail, detail_len);
    return rc;
}

static int times_check(const struct pawl_client_options *opts, char *detail, size_t detail_len)
{
    const struct {
        struct range range;
        int64_t value;
    } row[] = {
        { { "connect_ms", 100, MINUTE_MS, NULL }, opts->connect_ms },
        { { "command_ms", 50, MINUTE_MS, NULL }, opts->command_ms },
        { { "release_ms", 0, MINUTE_MS, NULL }, opts->release_ms },
        { { "retry_min_ms", 10, MINUTE_MS, NULL }, opts->retry_min_ms },
        { { "retry_max_ms", opts->retry_min_ms, MINUTE_MS, NULL }, opts->retry_max_ms },
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof row / sizeof row[0]; i++)
        rc = range_check(&row[i].range, row[i].value, detail, detail_len);
    return rc;
}

static int flags_check(unsigned flags, unsigned known, char *detail, size_t detail_len)
{
    if ((flags & ~known) == 0)
        return 0;
    (void)snprintf(detail, detail_len, "flags=0x%x: 0x%x is no known flag", flags, flags & ~known);
    return PAWL_EUSAGE;
}

/* CLIENT SETNAME refuses blanks too. */
static int name_check(const char *name, char *detail, size_t detail_len)
{
    size_t len = strlen(name);

    if (len > 32) {
        (void)snprintf(detail, detail_len, "name of %zu bytes: must have at most 32", len);
        return PAWL_EUSAGE;
    }
    for (size_t i = 0; i < len; i++) {
        if (name[i] <= 0x20 || name[i] > 0x7e) {
            (void)snprintf(detail, detail_len,
                           "name: must be printable ASCII without blanks (byte %zu)", i + 1);
            return PAWL_EUSAGE;
        }
    }
    return 0;
}

static int texts_check(const struct pawl_client_options *opts, char *detail, size_t detail_len)
{
    int n_passwords =
        (opts->password != NULL) + (opts->password_env != NULL) + (opts->password_file != NULL);

    if (n_passwords > 1) {
        (void)snprintf(detail, detail_len,
                       "give only one of password, password_env and password_file");
        return PAWL_EUSAGE;
    }
    if ((opts->cert_file == NULL) != (opts->key_file == NULL)) {
        (void)snprintf(detail, detail_len, "%s: is given, so %s must be too",
                       opts->cert_file != NULL ? "cert_file" : "key_file",
                       opts->cert_file != NULL ? "key_file" : "cert_file");
        return PAWL_EUSAGE;
    }
    return opts->name == NULL ? 0 : name_check(opts->name, detail, detail_len);
}

int pawli_struct_read(const void *given, size_t given_size, size_t first_size, size_t known_size,
                      char *detail, size_t detail_len, void *ret_known)
{
    const unsigned char *bytes = given;

    if (given_size < first_size) {
        (void)snprintf(detail, detail_len,
                       "size=%zu: must be the size of the struct, at least %zu; begin with "
                       "its ..._INIT",
                       given_size, first_size);
        return PAWL_EUSAGE;
    }
    for (size_t i = known_size; i < given_size; i++) {
        if (bytes[i] != 0) {
            (void)snprintf(detail, detail_len,
                           "size=%zu: an option is set that this version (%s) does not know",
                           given_size, PAWL_VERSION);
            return PAWL_EUSAGE;
        }
    }
    memcpy(ret_known, given, given_size < known_size ? given_size : known_size);
    return 0;
}

int pawli_client_options_read(const struct pawl_client_options *opts, char *detail,
                              size_t detail_len, struct pawl_client_options *ret_opts)
{
    struct pawl_client_options all = PAWL_CLIENT_OPTIONS_INIT;
    int rc = 0;

    if (opts != NULL)
        rc = pawli_struct_read(opts, opts->size, CLIENT_FIRST_SIZE, sizeof all, detail, detail_len,
                               &all);
    if (rc == 0)
        rc = texts_check(&all, detail, detail_len);
    if (rc == 0)
        rc = flags_check(all.flags, PAWL_CLIENT_FLAGS_ALL, detail, detail_len);
    if (rc == 0 && (all.log_level < PAWL_LOG_ERROR || all.log_level > PAWL_LOG_DEBUG)) {
        (void)snprintf(detail, detail_len, "log_level=%d: must be %d (errors) to %d (debug)",
                       all.log_level, PAWL_LOG_ERROR, PAWL_LOG_DEBUG);
        rc = PAWL_ERANGE;
    }
    if (rc == 0)
        rc = times_check(&all, detail, detail_len);
    if (rc == 0)
        rc = hold_check(all.lease_ms, all.wait_ms, all.max_hold_ms, all.grace_ms, detail,
                        detail_len);
    if (rc < 0)
        return rc;
    all.size = sizeof all;
    *ret_opts = all;
    return 0;
}

static int64_t choose(int64_t value, int64_t fallback)
{
    return value == PAWL_DEFAULT ? fallback : value;
}

int pawli_lock_options_read(const struct pawl_lock_options *opts,
                            const struct pawl_client_options *client, char *detail,
                            size_t detail_len, struct pawl_lock_options *ret_opts,
                            struct pawli_lock_settings *ret_settings)
{
    struct pawl_lock_options all = PAWL_LOCK_OPTIONS_INIT;
    struct pawli_lock_settings set;
    int rc = 0;

    if (opts != NULL)
        rc = pawli_struct_read(opts, opts->size, LOCK_FIRST_SIZE, sizeof all, detail, detail_len,
                               &all);
    if (rc == 0)
        rc = flags_check(all.flags, PAWL_LOCK_FLAGS_ALL, detail, detail_len);
    if (rc < 0)
        return rc;
    set.lease_ms = choose(all.lease_ms, client->lease_ms);
    set.wait_ms = choose(all.wait_ms, client->wait_ms);
    set.max_hold_ms = choose(all.max_hold_ms, client->max_hold_ms);
    /* Who asks for a longer lease than the default maximum means to hold that long. */
    if (all.max_hold_ms == PAWL_DEFAULT && set.max_hold_ms != PAWL_UNLIMITED &&
        set.max_hold_ms < set.lease_ms)
        set.max_hold_ms = set.lease_ms;
    set.grace_ms = choose(all.grace_ms, client->grace_ms);
    set.flags = all.flags;
    rc = hold_check(set.lease_ms, set.wait_ms, set.max_hold_ms, set.grace_ms, detail, detail_len);
    if (rc < 0)
        return rc;
    all.size = sizeof all;
    *ret_opts = all;
    *ret_settings = set;
    return 0;
}
