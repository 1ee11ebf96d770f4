/* config.h: the settings of one instance. */
#ifndef ORDERS_CONFIG_H
#define ORDERS_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#define CONFIG_TEXT_MAX 512
#define CONFIG_STOCK_MAX 64
#define CONFIG_NO_PORT (-1)

struct config_stock {
    char sku[65];
    int64_t quantity;
};

struct config {
    char file[CONFIG_TEXT_MAX];
    char url[CONFIG_TEXT_MAX];
    char db[CONFIG_TEXT_MAX];
    char instance[65];
    char bind[65];
    char db_sync[8];
    char log_level[8];
    char log_file[CONFIG_TEXT_MAX];
    char password_file[CONFIG_TEXT_MAX];
    char ca_file[CONFIG_TEXT_MAX];
    char cert_file[CONFIG_TEXT_MAX];
    char key_file[CONFIG_TEXT_MAX];
    int64_t port; /* shared by all instances of a host; 0: any free one */
    int64_t own_port; /* this instance alone; 0: any free one; CONFIG_NO_PORT: none */
    int64_t work_ms;
    int64_t lease_ms;
    int64_t wait_ms;
    int64_t max_hold_ms;
    int64_t grace_ms;
    int64_t db_busy_ms;
    int64_t request_ms; /* for header and body together */
    int64_t idle_ms; /* between two requests of a connection */
    int64_t max_header;
    int64_t max_body;
    int64_t max_connections;
    int64_t expected_hold_ms;
    int64_t no_lock;
    int64_t unsafe;
    int64_t ignore_loss;
    int64_t print_config;
    int64_t help;
    int64_t version;
    struct config_stock stock[CONFIG_STOCK_MAX];
    size_t n_stock;
};

/* Read the settings: defaults, then the file, then the environment, then the arguments; the later
 * wins. A password in a URL argument is blanked in @argv, so that it does not stay in the process
 * list. Returns 0, or -1 after a sentence on @err. */
int config_load(struct config *config, int argc, char **argv, FILE *err);

/* Every setting with its value and where the value came from; passwords are not shown. */
void config_print(const struct config *config, FILE *out);
void config_usage(FILE *out);

#endif
