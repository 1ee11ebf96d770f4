/* order.h: an order as a request names it and as the API prints it. */
#ifndef ORDERS_ORDER_H
#define ORDERS_ORDER_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

#define ORDER_ID_MAX 64 /* bytes of an order id, user id or SKU */
#define ORDER_QUANTITY_MAX 1000
#define ORDER_DEFAULT_SKU "default"

struct order {
    char order_id[ORDER_ID_MAX + 1];
    char user_id[ORDER_ID_MAX + 1];
    char sku[ORDER_ID_MAX + 1];
    int quantity;
    /* Known once it is made: */
    int64_t token; /* fencing token under which it was written; 0 without a lock */
    int64_t created_us; /* wall clock */
    char instance[64 + 1]; /* who wrote it */
};

/* What is wrong with a body; text is static. */
struct order_fault {
    enum problem problem;
    char field[ORDER_ID_MAX + 1];
    const char *rule;
};

/* Is @text 1 to ORDER_ID_MAX characters of A-Z a-z 0-9 . _ : - ? */
int order_name_ok(const char *text, size_t len);

/* Read the body of a submission. Returns 0 and fills *ret_order, or -1 and fills *ret_fault. */
int order_parse(const char *body, size_t len, struct order *ret_order,
                struct order_fault *ret_fault);

/* Answer texts; each gives a string: free(). NULL without memory. */
char *order_print_done(const struct order *order, enum lang lang, int duplicate,
                       const char *served_by, const char *request_id);
char *order_print(const struct order *order);
char *stock_print(const char *sku, int64_t quantity);

#endif
