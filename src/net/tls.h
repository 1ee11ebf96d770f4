/* TLS on a connected stream. Knows nothing of Redis. */
#ifndef PAWLI_NET_TLS_H
#define PAWLI_NET_TLS_H

#include "net/stream.h"

struct pawli_tls_config {
    const char *server_name; /* host name or address that the certificate must carry */
    const char *ca_file;     /* NULL: the system's authorities */
    const char *cert_file;   /* with key_file; NULL: none */
    const char *key_file;
    bool insecure;           /* accept any certificate */
};

/* Turn a connected plain stream into a TLS one; then call step until it answers 1. The files are
 * read now, so a certificate renewed on disk is used from the next connection on. @config is
 * borrowed during the call. 0, PAWL_ETLS (@stream->reason names the file or the rule) or
 * PAWL_ENOMEM. */
int pawli_tls_start(struct pawli_stream *stream, const struct pawli_tls_config *config);

#endif
