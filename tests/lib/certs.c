/* Certificates for tests; see certs.h. */
#include "lib/certs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cmocka.h>

#define DAY 86400L

const char *certs_path(const char *folder, const char *file)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, file);
    return path;
}

static void save(const char *folder, const char *name, X509 *cert, EVP_PKEY *key)
{
    char file[64];
    FILE *f;

    snprintf(file, sizeof file, "%s.crt", name);
    f = fopen(certs_path(folder, file), "we");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, cert), 1);
    fclose(f);
    snprintf(file, sizeof file, "%s.key", name);
    f = fopen(certs_path(folder, file), "we");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
}

struct authority {
    X509 *cert;
    EVP_PKEY *key;
};

/* A certificate that @by signs, or itself if @by is NULL. Caller frees both. */
static struct authority make(const char *name, const char *alt_names, long from, long to,
                             const struct authority *by)
{
    static long serial = 1;
    struct authority made = { X509_new(), EVP_EC_gen("P-256") };
    X509_NAME *subject = X509_get_subject_name(made.cert);
    X509 *issuer = by == NULL ? made.cert : by->cert;

    assert_non_null(made.key);
    X509_set_version(made.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.cert), from);
    X509_gmtime_adj(X509_getm_notAfter(made.cert), to);
    X509_set_pubkey(made.cert, made.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(made.cert, X509_get_subject_name(issuer));
    extend(made.cert, issuer, NID_basic_constraints, by == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    extend(made.cert, issuer, NID_subject_key_identifier, "hash");
    if (alt_names != NULL)
        extend(made.cert, issuer, NID_subject_alt_name, alt_names);
    assert_true(X509_sign(made.cert, by == NULL ? made.key : by->key, EVP_sha256()) > 0);
    return made;
}

static void drop(struct authority *a)
{
    X509_free(a->cert);
    EVP_PKEY_free(a->key);
}

void certs_make(const char *folder)
{
    static const struct {
        const char *name;
        const char *alt_names;
        long from;
        long to;
        int by;
    } rows[] = {
        { "good", "DNS:localhost,IP:127.0.0.1", -DAY, DAY, 0 },
        { "client", "DNS:client.example", -DAY, DAY, 0 },
        { "wrong", "DNS:elsewhere.example", -DAY, DAY, 0 },
        { "noip", "DNS:localhost", -DAY, DAY, 0 },
        { "expired", "DNS:localhost,IP:127.0.0.1", -2 * DAY, -DAY, 0 },
        { "early", "DNS:localhost,IP:127.0.0.1", DAY, 2 * DAY, 0 },
        { "stranger", "DNS:localhost,IP:127.0.0.1", -DAY, DAY, 1 },
    };
    struct authority by[2];

    by[0] = make("pawl test authority", NULL, -3 * DAY, 3 * DAY, NULL);
    by[1] = make("another authority", NULL, -3 * DAY, 3 * DAY, NULL);
    save(folder, "ca", by[0].cert, by[0].key);
    save(folder, "other-ca", by[1].cert, by[1].key);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority made =
            make(rows[i].name, rows[i].alt_names, rows[i].from, rows[i].to, &by[rows[i].by]);

        save(folder, rows[i].name, made.cert, made.key);
        drop(&made);
    }
    drop(&by[0]);
    drop(&by[1]);
}
