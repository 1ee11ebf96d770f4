/* Who this process is; reads /proc once per client. */
#include "engine/who.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first bytes of a small file as text; "" if it cannot be read. */
static void read_text(const char *path, char *ret_text, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd >= 0) {
        n = read(fd, ret_text, len - 1);
        close(fd);
    }
    ret_text[n > 0 ? n : 0] = '\0';
}

/* Field 22 of /proc/self/stat. The second field is the program's name in parentheses and may hold
 * anything, so count from the last ')'. */
static void start_ticks(char *ret_text, size_t len)
{
    char stat[1024];
    char *field;
    char *end;

    read_text("/proc/self/stat", stat, sizeof stat);
    field = strrchr(stat, ')');
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    end = field == NULL ? NULL : strchr(field + 1, ' ');
    if (end == NULL)
        (void)snprintf(ret_text, len, "-");
    else
        (void)snprintf(ret_text, len, "%.*s", (int)(end - field - 1), field + 1);
}

void pawli_who(char *ret_text, size_t len)
{
    char host[256] = "-";
    char boot[64];
    char start[24];

    if (gethostname(host, sizeof host) != 0)
        (void)snprintf(host, sizeof host, "-");
    host[24] = '\0';
    for (char *c = host; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            *c = '?';
    read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    boot[8] = '\0';
    start_ticks(start, sizeof start);
    (void)snprintf(ret_text, len, "%s %ld %s %s", host, (long)getpid(), start,
                   boot[0] == '\0' ? "-" : boot);
}
