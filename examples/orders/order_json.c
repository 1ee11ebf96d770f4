/* order_json.c: JSON to orders and back. Pure: no socket, no database, no clock. */
#include "order.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char name_rule[] = "a string of 1 to 64 characters out of A-Z a-z 0-9 . _ : -";
static const char quantity_rule[] = "an integer from 1 to 1000";

int order_name_ok(const char *text, size_t len)
{
    size_t i;

    if (len < 1 || len > ORDER_ID_MAX)
        return 0;
    for (i = 0; i < len; i++) {
        char c = text[i];

        /* By hand: isalnum() follows the locale. */
        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
            c == '.' || c == '_' || c == ':' || c == '-')
            continue;
        return 0;
    }
    return 1;
}

static int fail(struct order_fault *fault, enum problem problem, const char *field,
                const char *rule)
{
    fault->problem = problem;
    snprintf(fault->field, sizeof fault->field, "%s", field);
    fault->rule = rule;
    return -1;
}

/* @fallback  taken if the field is absent; NULL: the field must be there. */
static int take_name(json_t *root, const char *field, const char *fallback, char *ret_name,
                     struct order_fault *fault)
{
    json_t *value = json_object_get(root, field);

    if (value == NULL && fallback != NULL) {
        snprintf(ret_name, ORDER_ID_MAX + 1, "%s", fallback);
        return 0;
    }
    if (!json_is_string(value) ||
        !order_name_ok(json_string_value(value), json_string_length(value)))
        return fail(fault, PROBLEM_BAD_FIELD, field, name_rule);
    snprintf(ret_name, ORDER_ID_MAX + 1, "%s", json_string_value(value));
    return 0;
}

static int take_quantity(json_t *root, int *ret_quantity, struct order_fault *fault)
{
    json_t *value = json_object_get(root, "quantity");
    json_int_t number;

    if (value == NULL) {
        *ret_quantity = 1;
        return 0;
    }
    number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > ORDER_QUANTITY_MAX)
        return fail(fault, PROBLEM_BAD_FIELD, "quantity", quantity_rule);
    *ret_quantity = (int)number;
    return 0;
}

/* Unknown fields are refused, not ignored: a mistyped "quantitty" would buy one piece, and a
 * changed field that we do not compare would pass as a repetition of the same order. */
static int refuse_unknown(json_t *root, struct order_fault *fault)
{
    static const char *const known[] = { "orderId", "userId", "sku", "quantity" };
    const char *name;
    json_t *value;
    size_t i;

    json_object_foreach(root, name, value)
    {
        for (i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strcmp(name, known[i]) == 0)
                break;
        if (i < sizeof known / sizeof known[0])
            continue;
        if (!order_name_ok(name, strlen(name)))
            name = "?";
        return fail(fault, PROBLEM_UNKNOWN_FIELD, name, "known: orderId, userId, sku, quantity");
    }
    return 0;
}

int order_parse(const char *body, size_t len, struct order *ret_order,
                struct order_fault *ret_fault)
{
    struct order order = { 0 };
    json_error_t error;
    json_t *root;
    int rc = -1;

    root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        fail(ret_fault, PROBLEM_BAD_JSON, "", "one JSON object, each field at most once");
        goto out;
    }
    if (take_name(root, "orderId", NULL, order.order_id, ret_fault) < 0 ||
        take_name(root, "userId", NULL, order.user_id, ret_fault) < 0 ||
        take_name(root, "sku", ORDER_DEFAULT_SKU, order.sku, ret_fault) < 0 ||
        take_quantity(root, &order.quantity, ret_fault) < 0 || refuse_unknown(root, ret_fault) < 0)
        goto out;
    *ret_order = order;
    rc = 0;

out:
    json_decref(root);
    return rc;
}

static char *dump(json_t *object)
{
    char *text = NULL;

    if (object != NULL)
        text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

char *order_print_done(const struct order *order, enum lang lang, int duplicate,
                       const char *served_by, const char *request_id)
{
    return dump(json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:I, s:s, s:s, s:s}", "message",
                          message_done(lang), "orderId", order->order_id, "userId", order->user_id,
                          "sku", order->sku, "quantity", order->quantity, "duplicate", duplicate,
                          "token", (json_int_t)order->token, "instance", order->instance,
                          "servedBy", served_by, "requestId", request_id));
}

char *order_print(const struct order *order)
{
    return dump(json_pack("{s:s, s:s, s:s, s:i, s:I, s:s, s:I}", "orderId", order->order_id,
                          "userId", order->user_id, "sku", order->sku, "quantity", order->quantity,
                          "token", (json_int_t)order->token, "instance", order->instance,
                          "createdUs", (json_int_t)order->created_us));
}

char *stock_print(const char *sku, int64_t quantity)
{
    return dump(json_pack("{s:s, s:I}", "sku", sku, "quantity", (json_int_t)quantity));
}
