/* problem.c: refusals as RFC 9457 documents in two languages. Pure text: no socket, no request. */
#include "problem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct problem_info problems[N_PROBLEMS] = {
#define PROBLEM_ROW(name, status, code, retry, en, zh) { status, code, retry, en, zh },
    PROBLEM_MAP(PROBLEM_ROW)
#undef PROBLEM_ROW
};

const struct problem_info *problem_info(enum problem problem)
{
    return &problems[problem];
}

static int put_text(json_t *object, const char *name, const char *text)
{
    if (text == NULL)
        return 0;
    return json_object_set_new(object, name, json_string(text));
}

char *problem_json(enum problem problem, enum lang lang, const struct problem_extra *extra)
{
    const struct problem_info *info = &problems[problem];
    json_t *object;
    char *text = NULL;

    object = json_pack("{s:s+, s:s, s:i, s:s, s:s}", "type", "urn:pawl-orders:", info->code,
                       "title", info->en, "status", info->status, "code", info->code, "message",
                       lang == LANG_EN ? info->en : info->zh);
    if (object == NULL)
        return NULL;
    if (put_text(object, "field", extra->field) == 0 &&
        put_text(object, "detail", extra->detail) == 0 &&
        put_text(object, "orderId", extra->order_id) == 0 &&
        put_text(object, "requestId", extra->request_id) == 0 &&
        put_text(object, "servedBy", extra->instance) == 0)
        text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

/* One range of the list, "en-US;q=0.8": its language if it is one of ours, and its weight. */
static int range_weight(const char *range, size_t len, enum lang *ret_lang)
{
    const char *q = memchr(range, ';', len);
    int weight = 1000;

    if (len >= 2 && strncasecmp(range, "zh", 2) == 0)
        *ret_lang = LANG_ZH;
    else if (len >= 2 && strncasecmp(range, "en", 2) == 0)
        *ret_lang = LANG_EN;
    else
        return -1;
    if (len > 2 && strchr("-; \t", range[2]) == NULL)
        return -1; /* "enm" is not English */
    if (q == NULL)
        return weight;
    for (q++; q < range + len && (*q == ' ' || *q == '\t'); q++)
        continue;
    if (q + 2 < range + len && (q[0] == 'q' || q[0] == 'Q') && q[1] == '=')
        weight = (int)(strtod(q + 2, NULL) * 1000.0);
    return weight;
}

enum lang lang_from_header(const char *accept_language)
{
    const char *p = accept_language;
    enum lang best = LANG_ZH;
    int best_weight = 0;

    while (p != NULL && *p != '\0') {
        size_t len = strcspn(p, ",");
        enum lang lang = LANG_ZH;
        int weight;

        while (len > 0 && (*p == ' ' || *p == '\t')) {
            p++;
            len--;
        }
        weight = range_weight(p, len, &lang);
        if (weight > best_weight) {
            best = lang;
            best_weight = weight;
        }
        p += len;
        if (*p == ',')
            p++;
    }
    return best;
}

const char *message_done(enum lang lang)
{
    return lang == LANG_EN ? "Order submitted" : "提交成功";
}
