/* The config file: lines "name = value", names as the long options. */
#ifndef PAWL_CLI_CONFIG_H
#define PAWL_CLI_CONFIG_H

/* Called for each setting; returns 0, or -1 if it knows no such name. @value is given. */
typedef int (*config_cb)(void *arg, const char *name, char *value);

/* Read @path, or if it is NULL $PAWL_CONFIG, else the first there is of
 * $XDG_CONFIG_HOME/pawl/config (~/.config/pawl/config) and /etc/pawl.conf.
 * 0 (also if there is none), or an exit code after the message. */
int config_read(const char *path, config_cb cb, void *arg);

#endif
