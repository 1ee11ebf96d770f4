/* A blocking connection to Redis, plain, TLS or unix socket; hiredis only as codec. Knows nothing
 * of locks. */
#include "store.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "message.h"
#include "text.h"

struct store {
    int fd;
    SSL_CTX *tls_context;
    SSL *tls;
    redisReader *reader;
    bool broken;
};

static void set_limit(int fd, int64_t ms)
{
    struct timeval t = { ms / 1000, ms % 1000 * 1000 };

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static int connect_unix(const struct store_address *a, int64_t ms)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    set_limit(fd, ms);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", a->host);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_tcp(const struct store_address *a, int64_t ms, int *ret_resolve_error)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    int fd = -1;

    *ret_resolve_error = getaddrinfo(a->host, a->port, &hints, &list);
    if (*ret_resolve_error != 0)
        return -1;
    for (struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, i->ai_protocol);
        if (fd < 0)
            continue;
        set_limit(fd, ms);
        if (connect(fd, i->ai_addr, i->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

static int start_tls(struct store *s, const struct options *o, const struct store_address *a,
                     char *why, size_t why_len)
{
    const char *name = o->server_name != NULL ? o->server_name : a->host;

    s->tls_context = SSL_CTX_new(TLS_client_method());
    if (s->tls_context == NULL)
        return PAWL_ENOMEM;
    if (o->ca_file == NULL ? SSL_CTX_set_default_verify_paths(s->tls_context) != 1
                           : SSL_CTX_load_verify_locations(s->tls_context, o->ca_file, NULL) != 1)
        goto fail;
    if (o->cert_file != NULL &&
        (SSL_CTX_use_certificate_chain_file(s->tls_context, o->cert_file) != 1 ||
         SSL_CTX_use_PrivateKey_file(s->tls_context, o->key_file, SSL_FILETYPE_PEM) != 1))
        goto fail;
    s->tls = SSL_new(s->tls_context);
    if (s->tls == NULL)
        return PAWL_ENOMEM;
    if (!o->insecure) {
        SSL_set_verify(s->tls, SSL_VERIFY_PEER, NULL);
        if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->tls), name) != 1)
            (void)SSL_set1_host(s->tls, name);
    }
    (void)SSL_set_tlsext_host_name(s->tls, name);
    if (SSL_set_fd(s->tls, s->fd) == 1 && SSL_connect(s->tls) == 1)
        return 0;

fail:
    (void)snprintf(why, why_len, "TLS: %s",
                   s->tls != NULL && SSL_get_verify_result(s->tls) != X509_V_OK
                       ? X509_verify_cert_error_string(SSL_get_verify_result(s->tls))
                       : ERR_reason_error_string(ERR_peek_last_error()));
    return PAWL_ETLS;
}

static int write_all(struct store *s, const char *data, size_t len)
{
    while (len > 0 && !s->broken) {
        ssize_t n = s->tls != NULL ? SSL_write(s->tls, data, len > 16384 ? 16384 : (int)len)
                                   : send(s->fd, data, len, MSG_NOSIGNAL);

        if (n <= 0) {
            s->broken = true;
            break;
        }
        data += n;
        len -= (size_t)n;
    }
    return s->broken ? -1 : 0;
}

redisReply *store_receive(struct store *s)
{
    char data[16384];
    void *reply = NULL;

    while (!s->broken) {
        ssize_t n;

        if (redisReaderGetReply(s->reader, &reply) != REDIS_OK)
            break;
        if (reply != NULL)
            return reply;
        n = s->tls != NULL ? SSL_read(s->tls, data, sizeof data)
                           : recv(s->fd, data, sizeof data, 0);
        if (n <= 0 || redisReaderFeed(s->reader, data, (size_t)n) != REDIS_OK)
            break;
    }
    s->broken = true;
    return NULL;
}

static int send_list(struct store *s, const char *fmt, va_list ap)
{
    char *text = NULL;
    int len = redisvFormatCommand(&text, fmt, ap);
    int rc;

    if (len < 0)
        return -1;
    rc = write_all(s, text, (size_t)len);
    redisFreeCommand(text);
    return rc;
}

int store_send(struct store *s, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = send_list(s, fmt, ap);
    va_end(ap);
    return rc;
}

redisReply *store_command(struct store *s, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = send_list(s, fmt, ap);
    va_end(ap);
    return rc < 0 ? NULL : store_receive(s);
}

redisReply *store_argv(struct store *s, int argc, const char **argv, const size_t *lens)
{
    char *text = NULL;
    long long len = (long long)redisFormatCommandArgv(&text, argc, argv, lens);
    int rc = -1;

    if (len >= 0)
        rc = write_all(s, text, (size_t)len);
    redisFreeCommand(text);
    return rc < 0 ? NULL : store_receive(s);
}

bool store_is_error(const redisReply *r, const char *prefix)
{
    return r != NULL && r->type == REDIS_REPLY_ERROR &&
           strncmp(r->str, prefix, strlen(prefix)) == 0;
}

/* First line of the password file. NULL: cannot be read. */
static char *read_password(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;

    if (file == NULL)
        return NULL;
    if (getline(&line, &size, file) >= 0)
        line[strcspn(line, "\r\n")] = '\0';
    (void)fclose(file);
    return line;
}

static int log_in(struct store *s, const struct options *o, const struct store_address *a,
                  char *why, size_t why_len)
{
    char *from_file = o->password_file == NULL ? NULL : read_password(o->password_file);
    const char *password = o->password_env != NULL ? getenv(o->password_env) : a->password;
    const char *user = o->username != NULL ? o->username : a->user;
    redisReply *r = NULL;
    int rc = 0;

    if (o->password_file != NULL)
        password = from_file;
    if ((o->password_file != NULL || o->password_env != NULL) && password == NULL)
        rc = PAWL_ESECRET;
    else if (password != NULL && user != NULL && user[0] != '\0')
        r = store_command(s, "AUTH %s %s", user, password);
    else if (password != NULL)
        r = store_command(s, "AUTH %s", password);
    if (store_is_error(r, "")) {
        (void)snprintf(why, why_len, "%s", r->str);
        rc = PAWL_EAUTH;
    }
    freeReplyObject(r);
    if (from_file != NULL)
        explicit_bzero(from_file, strlen(from_file));
    free(from_file);
    if (rc != 0)
        return rc;
    r = store_command(s, "SELECT %d", a->db);
    if (r == NULL)
        rc = PAWL_ECONNECT;
    else if (store_is_error(r, "NOAUTH"))
        rc = PAWL_ENOAUTH;
    else if (store_is_error(r, "") && a->db != 0)
        rc = PAWL_ENOPERM; /* a managed server without SELECT is fine with database 0 */
    if (rc != 0)
        (void)snprintf(why, why_len, "%s", r == NULL ? _("no answer") : r->str);
    freeReplyObject(r);
    return rc;
}

static int connect_any(struct store *s, const struct options *o, const struct store_address *a,
                       char *why, size_t why_len)
{
    int64_t connect_ms = o->connect_ms >= 0 ? o->connect_ms : 2000;
    int resolve = 0;

    s->fd = a->unix_socket ? connect_unix(a, connect_ms) : connect_tcp(a, connect_ms, &resolve);
    if (s->fd >= 0)
        return 0;
    (void)snprintf(why, why_len, "%s%s%s: %s", a->host, a->port == NULL ? "" : ":",
                   a->port == NULL ? "" : a->port,
                   resolve != 0 ? gai_strerror(resolve) : strerror(errno));
    return resolve != 0 ? PAWL_ERESOLVE : PAWL_ECONNECT;
}

int store_open(const struct options *o, struct store **ret_store, char *why, size_t why_len)
{
    struct store *s = calloc(1, sizeof *s);
    struct store_address a;
    int rc = store_address_parse(o->url, &a);

    (void)snprintf(why, why_len, "%s", "");
    if (s == NULL || rc != 0) {
        rc = s == NULL ? PAWL_ENOMEM : rc;
        goto fail;
    }
    s->fd = -1;
    s->reader = redisReaderCreate();
    if (s->reader == NULL) {
        rc = PAWL_ENOMEM;
        goto fail;
    }
    rc = connect_any(s, o, &a, why, why_len);
    if (rc == 0 && a.tls)
        rc = start_tls(s, o, &a, why, why_len);
    if (rc == 0)
        rc = log_in(s, o, &a, why, why_len);
    if (rc == 0) {
        set_limit(s->fd, o->command_ms >= 0 ? o->command_ms : 5000);
        store_address_done(&a);
        *ret_store = s;
        return 0;
    }

fail:
    store_address_done(&a);
    store_close(s);
    return rc;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    SSL_free(s->tls);
    SSL_CTX_free(s->tls_context);
    if (s->fd >= 0)
        close(s->fd);
    if (s->reader != NULL)
        redisReaderFree(s->reader);
    free(s);
}
