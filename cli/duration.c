/* Durations with units, read and written. Touches nothing but its arguments. */
#include "duration.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

static const struct {
    const char *name;
    int64_t ms;
} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };

#define N_UNITS (sizeof units / sizeof units[0])
#define MOST_MS INT64_C(3153600000000) /* 100 years */

static int64_t unit_of(const char *text, size_t len)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0)
            return units[i].ms;
    return 0;
}

/* One number and its unit, from *@text on; in *@ret_ms what it adds. The number in thousandths,
 * so that 1.5s is exact. */
static int parse_part(const char **text, int64_t *ret_ms, bool *ret_bare)
{
    const char *p = *text;
    int64_t thousandths = 0;
    int64_t place = 1000;
    bool after_dot = false;
    size_t n_digits = 0;

    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !after_dot); p++) {
        if (*p == '.') {
            after_dot = true;
            continue;
        }
        n_digits++;
        if (after_dot) {
            place /= 10;
            thousandths += (*p - '0') * place;
        } else if (thousandths > MOST_MS) {
            return -1;
        } else {
            thousandths = thousandths * 10 + (int64_t)(*p - '0') * 1000;
        }
    }
    size_t unit_len = strspn(p, "abcdefghijklmnopqrstuvwxyz");
    int64_t unit = unit_of(p, unit_len);

    *ret_bare = n_digits > 0 && p[unit_len] == '\0' && unit_len == 0;
    if (n_digits == 0 || unit == 0 || thousandths > MOST_MS / unit * 1000)
        return -1;
    *ret_ms = thousandths / 1000 * unit + thousandths % 1000 * unit / 1000;
    *text = p + unit_len;
    return 0;
}

int duration_parse(const char *text, int64_t *ret_ms, char *why, size_t why_len)
{
    const char *p = text;
    int64_t total = 0;
    bool bare = false;

    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    do {
        int64_t part = 0;

        if (parse_part(&p, &part, &bare) < 0 || total > MOST_MS - part) {
            if (bare)
                (void)snprintf(why, why_len, _("'%s' has no unit: write %ss or %sms"), text, text,
                               text);
            else
                (void)snprintf(why, why_len, _("'%s' is no duration: write 500ms, 30s, 1h30m"),
                               text);
            return -1;
        }
        total += part;
    } while (*p != '\0');
    *ret_ms = total;
    return 0;
}

const char *duration_text(int64_t ms, char *buf, size_t len)
{
    long long v = (long long)(ms < 0 ? -ms : ms);
    const char *sign = ms < 0 ? "-" : "";

    if (v == 0)
        (void)snprintf(buf, len, "0s");
    else if (v < 1000)
        (void)snprintf(buf, len, "%s%lldms", sign, v);
    else if (v < 60000 && v / 100 % 10 != 0)
        (void)snprintf(buf, len, "%s%lld.%llds", sign, v / 1000, v / 100 % 10);
    else if (v < 60000)
        (void)snprintf(buf, len, "%s%llds", sign, v / 1000);
    else if (v < 3600000 && v / 1000 % 60 != 0)
        (void)snprintf(buf, len, "%s%lldm%llds", sign, v / 60000, v / 1000 % 60);
    else if (v < 3600000)
        (void)snprintf(buf, len, "%s%lldm", sign, v / 60000);
    else if (v < 172800000 && v / 60000 % 60 != 0)
        (void)snprintf(buf, len, "%s%lldh%lldm", sign, v / 3600000, v / 60000 % 60);
    else if (v < 172800000)
        (void)snprintf(buf, len, "%s%lldh", sign, v / 3600000);
    else
        (void)snprintf(buf, len, "%s%lldd", sign, v / 86400000);
    return buf;
}
