/* Where the password comes from, in this order: option, file, environment, URL. A file is read
 * anew for each login, so that a rotated password is used from the next connection on. */
#include "backend/redis/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET_MAX 4096

/* Read the file's first line. open() and read() because stdio would keep a copy in its buffer. */
static int read_line(const char *file, char *line, size_t room)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t len = 0;
    ssize_t n = 0;

    if (fd < 0)
        return errno;
    while (len < room - 1 && (n = read(fd, line + len, room - 1 - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        len += (size_t)n;
    }
    line[len] = '\0';
    close(fd);
    line[strcspn(line, "\r\n")] = '\0';
    return n < 0 ? EIO : 0;
}

static int from_file(const char *file, char *detail, size_t detail_len, char **ret_password)
{
    char line[SECRET_MAX] = "";
    char text[96];
    char *password = NULL;
    int err = read_line(file, line, sizeof line);
    int rc = 0;

    if (err != 0) {
        (void)snprintf(detail, detail_len, "password_file=%.120s: %s", file,
                       strerror_r(err, text, sizeof text));
        rc = PAWL_ESECRET;
    } else if (line[0] == '\0') {
        (void)snprintf(detail, detail_len, "password_file=%.120s: its first line is empty", file);
        rc = PAWL_ESECRET;
    } else {
        password = strdup(line);
        rc = password == NULL ? PAWL_ENOMEM : 0;
    }
    explicit_bzero(line, sizeof line);
    if (rc == 0)
        *ret_password = password;
    return rc;
}

int pawli_redis_secret(const struct pawl_client_options *opts, const char *of_url, char *detail,
                       size_t detail_len, char **ret_password)
{
    const char *password = opts->password;

    if (password == NULL && opts->password_file != NULL)
        return from_file(opts->password_file, detail, detail_len, ret_password);
    if (password == NULL && opts->password_env != NULL) {
        password = getenv(opts->password_env);
        if (password == NULL || password[0] == '\0') {
            (void)snprintf(detail, detail_len, "password_env=%.120s: this variable is not set",
                           opts->password_env);
            return PAWL_ESECRET;
        }
    }
    if (password == NULL)
        password = of_url;
    *ret_password = password == NULL ? NULL : strdup(password);
    return password != NULL && *ret_password == NULL ? PAWL_ENOMEM : 0;
}
