/* problem.h: every refusal of the API: its status, its stable code and its two sentences. */
#ifndef ORDERS_PROBLEM_H
#define ORDERS_PROBLEM_H

#include <stddef.h>

enum lang { LANG_ZH, LANG_EN };

/* X(name, status, code, Retry-After in seconds or 0, English, Chinese). Codes never change. */
#define PROBLEM_MAP(X)                                                                            \
    X(BAD_REQUEST, 400, "bad_request", 0, "The request is not valid HTTP/1.1.",                   \
      "请求不符合 HTTP/1.1 规范")                                                                 \
    X(BAD_JSON, 400, "bad_json", 0, "The body is not a JSON object.", "请求体不是 JSON 对象")     \
    X(BAD_FIELD, 400, "bad_field", 0, "A field is missing or wrong.", "字段缺失或取值不合法")     \
    X(UNKNOWN_FIELD, 400, "unknown_field", 0, "The body has a field that is not known.",          \
      "请求体包含未知字段")                                                                       \
    X(NOT_FOUND, 404, "not_found", 0, "There is nothing at this path.", "路径不存在")             \
    X(NO_ORDER, 404, "order_not_found", 0, "There is no such order.", "订单不存在")               \
    X(NO_SKU, 404, "sku_not_found", 0, "There is no such SKU.", "商品不存在")                     \
    X(METHOD, 405, "method_not_allowed", 0, "This path does not take this method.",               \
      "该路径不支持此请求方法")                                                                   \
    X(SLOW, 408, "request_timeout", 0, "The request took too long to arrive.", "请求发送超时")    \
    X(IN_PROGRESS, 409, "order_in_progress", 1,                                                   \
      "This order is being processed; please do not submit it again.",                            \
      "当前订单正在处理中，请勿重复提交")                                                         \
    X(CONFLICT, 409, "order_conflict", 0,                                                         \
      "This order id is already used by another user or with other content.",                     \
      "订单号已被使用，用户或内容不一致")                                                         \
    X(SOLD_OUT, 409, "out_of_stock", 0, "Not enough pieces are in stock.", "库存不足")            \
    X(SKU_UNKNOWN, 409, "sku_unknown", 0, "This SKU is not sold here.", "商品不存在，无法下单")   \
    X(LENGTH, 411, "length_required", 0, "Send a Content-Length, not a transfer coding.",         \
      "必须提供 Content-Length")                                                                  \
    X(BODY_LARGE, 413, "body_too_large", 0, "The body is too large.", "请求体过大")               \
    X(URI_LONG, 414, "uri_too_long", 0, "The request target is too long.", "请求地址过长")        \
    X(MEDIA_TYPE, 415, "unsupported_media_type", 0, "The body must be application/json.",         \
      "请求体必须为 application/json")                                                            \
    X(EXPECT, 417, "expectation_failed", 0, "Only Expect: 100-continue is understood.",           \
      "仅支持 Expect: 100-continue")                                                              \
    X(QUEUE_FULL, 429, "too_many_waiting", 1, "Too many requests already wait for this order.",   \
      "等待处理该订单的请求过多")                                                                 \
    X(HEADER_LARGE, 431, "headers_too_large", 0, "The header section is too large.",              \
      "请求头过大")                                                                               \
    X(GONE, 499, "client_gone", 0, "The client went away before its turn came.", "客户端已断开")  \
    X(INTERNAL, 500, "internal_error", 0, "Something is wrong on our side.", "服务内部错误")      \
    X(METHOD_UNKNOWN, 501, "method_unknown", 0, "This method is not known.", "未知的请求方法")    \
    X(LOCK_DOWN, 503, "lock_unavailable", 1,                                                      \
      "The lock service cannot be used; no order was made.", "锁服务不可用，未生成订单")          \
    X(DB_DOWN, 503, "database_unavailable", 1, "The database cannot be used; no order was made.", \
      "数据库不可用，未生成订单")                                                                 \
    X(LOCK_LOST, 503, "lock_lost", 1,                                                             \
      "The lock was lost in the middle of the work; no order was made.",                          \
      "处理过程中锁已失效，未生成订单")                                                           \
    X(MAX_HOLD, 503, "max_hold_reached", 1,                                                       \
      "The work took longer than a lock may be held; no order was made.",                         \
      "处理超过锁的最长持有时间，未生成订单")                                                     \
    X(STALE, 503, "stale_token", 1,                                                               \
      "The database has seen a newer holder of this order; nothing was written.",                 \
      "数据库已拒绝过期的令牌，未写入数据")                                                       \
    X(STOPPING, 503, "shutting_down", 1, "This instance is shutting down; please try again.",     \
      "服务实例正在停止，请重试")                                                                 \
    X(OVERLOADED, 503, "overloaded", 1, "This instance is at its limit; please try again.",       \
      "服务繁忙，请稍后重试")                                                                     \
    X(VERSION, 505, "version_not_supported", 0, "Only HTTP/1.0 and HTTP/1.1 are spoken.",         \
      "仅支持 HTTP/1.0 和 HTTP/1.1")

enum problem {
#define PROBLEM_ENUM(name, status, code, retry, en, zh) PROBLEM_##name,
    PROBLEM_MAP(PROBLEM_ENUM)
#undef PROBLEM_ENUM
        N_PROBLEMS
};

struct problem_info {
    int status;
    const char *code;
    int retry_after_s;
    const char *en;
    const char *zh;
};

const struct problem_info *problem_info(enum problem problem);

/* What else a problem says; every member may be NULL. */
struct problem_extra {
    const char *field; /* the field that is wrong */
    const char *detail; /* English, for developers: the value's rule, or the cause */
    const char *order_id;
    const char *request_id;
    const char *instance;
};

/* The application/problem+json text. Gives the string: free(). NULL without memory. */
char *problem_json(enum problem problem, enum lang lang, const struct problem_extra *extra);

/* The language that an Accept-Language value asks for; Chinese for NULL and in doubt. */
enum lang lang_from_header(const char *accept_language);

/* The word for a finished order. */
const char *message_done(enum lang lang);

#endif
