/* The thread's last failure in words; touches thread-local memory only. */
#include "engine/detail.h"

#include <stdarg.h>
#include <stdio.h>

#include <pawl.h>

static _Thread_local char last_detail[PAWLI_DETAIL_LEN];

void pawli_set_detail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(last_detail, sizeof last_detail, format, args);
    va_end(args);
}

const char *pawl_error_detail(void)
{
    return last_detail;
}
