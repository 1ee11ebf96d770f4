/* TLS by OpenSSL on a non-blocking descriptor; see tls.h. Writes go through send() with
 * MSG_NOSIGNAL: OpenSSL's own socket BIO uses write(2), which raises SIGPIPE. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <pawl.h>

#include "net/loop.h"

struct tls {
    SSL *ssl;
    SSL_CTX *ctx;
    BIO_METHOD *method;
    bool ready;
};

static int bio_read(BIO *bio, char *data, int len)
{
    struct pawli_stream *stream = BIO_get_data(bio);
    ssize_t n;

    BIO_clear_retry_flags(bio);
    do {
        n = recv(stream->fd, data, (size_t)len, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(bio);
    return (int)n;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    struct pawli_stream *stream = BIO_get_data(bio);
    ssize_t n;

    BIO_clear_retry_flags(bio);
    do {
        n = send(stream->fd, data, (size_t)len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(bio);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

static void tls_done(struct pawli_stream *stream)
{
    struct tls *tls = stream->tls;

    stream->tls = NULL;
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->method);
    free(tls);
}

/* The innermost reason of OpenSSL's error queue, or what errno says. */
static const char *queue_reason(char *text, size_t len)
{
    unsigned long err = ERR_peek_last_error();
    const char *reason = err == 0 ? NULL : ERR_reason_error_string(err);

    if (err != 0 && ERR_SYSTEM_ERROR(err))
        reason = strerror_r(ERR_GET_REASON(err), text, len);
    return reason != NULL ? reason : "unknown reason";
}

static int fail_file(struct pawli_stream *stream, const char *option, const char *file)
{
    char text[96];

    snprintf(stream->reason, sizeof stream->reason, "%s=%.120s: %s", option, file,
             queue_reason(text, sizeof text));
    return PAWL_ETLS;
}

static int load_files(struct pawli_stream *stream, SSL_CTX *ctx,
                      const struct pawli_tls_config *config)
{
    const char *key = config->key_file;

    if (config->ca_file != NULL) {
        if (SSL_CTX_load_verify_file(ctx, config->ca_file) != 1)
            return fail_file(stream, "ca_file", config->ca_file);
    } else {
        (void)SSL_CTX_set_default_verify_paths(ctx);
    }
    if (config->cert_file == NULL)
        return 0;
    if (key == NULL)
        key = config->cert_file;
    if (SSL_CTX_use_certificate_chain_file(ctx, config->cert_file) != 1)
        return fail_file(stream, "cert_file", config->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return fail_file(stream, "key_file", key);
    return 0;
}

static bool is_address(const char *name)
{
    unsigned char addr[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, addr) == 1 || inet_pton(AF_INET6, name, addr) == 1;
}

static int set_identity(SSL *ssl, const struct pawli_tls_config *config)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    const char *name = config->server_name;

    SSL_set_verify(ssl, config->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1 ? 0 : PAWL_ETLS;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(param, name, 0) != 1)
        return PAWL_ETLS;
    return SSL_set_tlsext_host_name(ssl, name) == 1 ? 0 : PAWL_ETLS;
}

static int set_bio(struct pawli_stream *stream, struct tls *tls)
{
    BIO *bio;

    tls->method = BIO_meth_new(BIO_TYPE_SOCKET, "pawl");
    if (tls->method == NULL)
        return PAWL_ENOMEM;
    BIO_meth_set_read(tls->method, bio_read);
    BIO_meth_set_write(tls->method, bio_write);
    BIO_meth_set_ctrl(tls->method, bio_ctrl);
    bio = BIO_new(tls->method);
    if (bio == NULL)
        return PAWL_ENOMEM;
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return 0;
}

static bool verify_failed(const struct tls *tls)
{
    return SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE &&
           SSL_get_verify_result(tls->ssl) != X509_V_OK;
}

/* What went wrong, in words; called right after the failed operation. */
static int fail_ssl(struct pawli_stream *stream, int kind)
{
    struct tls *tls = stream->tls;
    char text[96];

    if (verify_failed(tls)) {
        snprintf(stream->reason, sizeof stream->reason, "the server's certificate is refused: %s",
                 X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl)));
    } else if (kind == SSL_ERROR_SSL) {
        const char *why = queue_reason(text, sizeof text);
        bool plain = !tls->ready && (strstr(why, "wrong version number") != NULL ||
                                     strstr(why, "packet length") != NULL);

        snprintf(stream->reason, sizeof stream->reason, "%s%s%s",
                 tls->ready ? "TLS: " : "TLS handshake: ", why,
                 plain ? " (does the port speak plain Redis? then use redis://)" : "");
    } else {
        snprintf(stream->reason, sizeof stream->reason, "%s",
                 tls->ready ? "the server closed the connection"
                            : "the server closed the connection during the TLS handshake (does "
                              "the port speak plain Redis? then use redis://)");
        return tls->ready ? PAWL_ECONNECT : PAWL_ETLS;
    }
    return PAWL_ETLS;
}

/* After an operation that answered @n: 0 wait, negative over. */
static int judge(struct pawli_stream *stream, int n)
{
    struct tls *tls = stream->tls;
    int kind = SSL_get_error(tls->ssl, n);

    if (kind == SSL_ERROR_WANT_READ) {
        stream->want = PAWLI_IN;
        return 0;
    }
    if (kind == SSL_ERROR_WANT_WRITE) {
        stream->want = PAWLI_OUT;
        return 0;
    }
    return fail_ssl(stream, kind);
}

static int tls_step(struct pawli_stream *stream)
{
    struct tls *tls = stream->tls;
    int n;

    ERR_clear_error();
    n = SSL_connect(tls->ssl);
    if (n != 1)
        return judge(stream, n);
    tls->ready = true;
    return 1;
}

static ssize_t tls_read(struct pawli_stream *stream, void *data, size_t len)
{
    struct tls *tls = stream->tls;
    int n;

    ERR_clear_error();
    n = SSL_read(tls->ssl, data, len > INT_MAX ? INT_MAX : (int)len);
    return n > 0 ? n : judge(stream, n);
}

static ssize_t tls_write(struct pawli_stream *stream, const void *data, size_t len)
{
    struct tls *tls = stream->tls;
    int n;

    ERR_clear_error();
    n = SSL_write(tls->ssl, data, len > INT_MAX ? INT_MAX : (int)len);
    return n > 0 ? n : judge(stream, n);
}

static const struct pawli_stream_ops tls_ops = {
    .step = tls_step,
    .read = tls_read,
    .write = tls_write,
    .done = tls_done,
};

static int make_ssl(struct pawli_stream *stream, struct tls *tls,
                    const struct pawli_tls_config *config)
{
    int rc;

    tls->ctx = SSL_CTX_new(TLS_client_method());
    if (tls->ctx == NULL || SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION) != 1)
        return PAWL_ENOMEM;
    /* The buffer may move between two tries to write the same bytes. */
    SSL_CTX_set_mode(tls->ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    rc = load_files(stream, tls->ctx, config);
    if (rc < 0)
        return rc;
    tls->ssl = SSL_new(tls->ctx);
    if (tls->ssl == NULL)
        return PAWL_ENOMEM;
    rc = set_identity(tls->ssl, config);
    if (rc < 0) {
        snprintf(stream->reason, sizeof stream->reason, "server_name=%.120s: not a usable name",
                 config->server_name);
        return rc;
    }
    return set_bio(stream, tls);
}

int pawli_tls_start(struct pawli_stream *stream, const struct pawli_tls_config *config)
{
    struct tls *tls = calloc(1, sizeof *tls);
    int rc;

    if (tls == NULL)
        return PAWL_ENOMEM;
    /* A program may call exit() while a client is open: OpenSSL would then free its tables under
     * the engine thread, which crashed one exit in five during a handshake. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
    rc = make_ssl(stream, tls, config);
    stream->tls = tls;
    if (rc < 0) {
        tls_done(stream);
        return rc;
    }
    stream->ops = &tls_ops;
    return 0;
}
