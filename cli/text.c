/* Looking up texts in the compiled catalogue. Reads the environment once, calls no locale. */
#include "text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool chinese;

static bool is_set(const char *value)
{
    return value != NULL && value[0] != '\0';
}

void text_init(void)
{
    const char *value = getenv("LC_ALL");
    const char *list = getenv("LANGUAGE");

    if (!is_set(value))
        value = getenv("LC_MESSAGES");
    if (!is_set(value))
        value = getenv("LANG");
    if (!is_set(value) || strcmp(value, "C") == 0 || strcmp(value, "POSIX") == 0)
        return;
    /* A list of languages overrides the locale, but not the locale C. Of it, the first that we
     * speak counts. */
    for (; is_set(list); list += strcspn(list, ":"), list += *list == ':') {
        if (strncmp(list, "zh", 2) == 0) {
            chinese = true;
            return;
        }
        if (strncmp(list, "en", 2) == 0)
            return;
    }
    /* The texts are UTF-8. */
    chinese = strncmp(value, "zh", 2) == 0 &&
              (strchr(value, '.') == NULL || strstr(value, "UTF-8") != NULL ||
               strstr(value, "utf8") != NULL || strstr(value, "UTF8") != NULL ||
               strstr(value, "utf-8") != NULL);
}

static int compare(const void *key, const void *pair)
{
    return strcmp(key, ((const struct text_pair *)pair)->english);
}

const char *text_get(const char *text)
{
    const struct text_pair *found;

    if (!chinese)
        return text;
    found = bsearch(text, text_zh, text_n_zh, sizeof text_zh[0], compare);
    return found == NULL ? text : found->chinese;
}
