/* Options that every subcommand has, the config file behind them, and the client they open. */
#ifndef PAWL_CLI_OPTIONS_H
#define PAWL_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl.h>

/* What was asked for. Text is the program's arguments, its environment, or from the config file,
 * and lives as long as the program. */
struct options {
    const char *command; /* the subcommand's name, for messages */
    const char *url;
    bool url_from_env;
    const char *config; /* --config */
    const char *prefix;
    const char *username;
    const char *password_file;
    const char *password_env;
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    const char *server_name;
    const char *audit;
    bool insecure;
    bool json;
    bool quiet;
    bool verbose;
    int64_t connect_ms;
    int64_t command_ms;
};

enum {
    OPT_URL = 1000,
    OPT_CONFIG,
    OPT_PREFIX,
    OPT_USERNAME,
    OPT_PASSWORD_FILE,
    OPT_PASSWORD_ENV,
    OPT_CA,
    OPT_CERT,
    OPT_KEY,
    OPT_SERVER_NAME,
    OPT_INSECURE,
    OPT_JSON,
    OPT_CONNECT,
    OPT_COMMAND,
    OPT_HELP,
    OPT_VERSION,
    OPT_OWN /* a subcommand's own begin here */
};

#define COMMON_SHORT "hqvu:j"
/* clang-format off */
#define COMMON_LONG                                                                               \
    { "url", required_argument, NULL, OPT_URL },                                                  \
    { "config", required_argument, NULL, OPT_CONFIG },                                            \
    { "prefix", required_argument, NULL, OPT_PREFIX },                                            \
    { "username", required_argument, NULL, OPT_USERNAME },                                        \
    { "password-file", required_argument, NULL, OPT_PASSWORD_FILE },                              \
    { "password-env", required_argument, NULL, OPT_PASSWORD_ENV },                                \
    { "ca-file", required_argument, NULL, OPT_CA },                                               \
    { "cert-file", required_argument, NULL, OPT_CERT },                                           \
    { "key-file", required_argument, NULL, OPT_KEY },                                             \
    { "server-name", required_argument, NULL, OPT_SERVER_NAME },                                  \
    { "insecure", no_argument, NULL, OPT_INSECURE },                                              \
    { "json", no_argument, NULL, OPT_JSON },                                                      \
    { "connect-timeout", required_argument, NULL, OPT_CONNECT },                                  \
    { "command-timeout", required_argument, NULL, OPT_COMMAND },                                  \
    { "quiet", no_argument, NULL, 'q' },                                                          \
    { "verbose", no_argument, NULL, 'v' },                                                        \
    { "help", no_argument, NULL, OPT_HELP },                                                      \
    { "version", no_argument, NULL, OPT_VERSION }
/* clang-format on */

/* Options from the start of the program on. */
void options_init(struct options *o);

/* One option that getopt_long() returned as @code, or '?' and ':'. Returns OPTION_OURS if it was
 * one of the common ones, OPTION_OTHER if it is the subcommand's, else the exit code (also 0, for
 * --help and --version) with which to end. */
#define OPTION_OURS (-1)
#define OPTION_OTHER (-2)
int options_take(struct options *o, int code, char *arg);

/* A duration of an option: 0, or the exit code after the message. */
int options_duration(const struct options *o, const char *name, const char *text, int64_t *ret_ms);
/* A number from @least to @most. */
int options_number(const struct options *o, const char *name, const char *text, int64_t least,
                   int64_t most, int64_t *ret_value);

/* After the options: environment and config file for what was not given. 0 or an exit code; no
 * URL at all is a usage error. */
int options_finish(struct options *o);

/* Open a client. 0 or an exit code, after the message. */
int options_client(const struct options *o, struct pawl_client **ret_client);

/* An argument with a password in it, seen by all in ps: overwrite the password. */
void options_hide_password(char *url);

#endif
