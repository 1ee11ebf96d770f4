/* Certificates for tests, made anew by libcrypto, so that none lies in the repository. */
#ifndef TESTS_LIB_CERTS_H
#define TESTS_LIB_CERTS_H

/* Makes in @folder: ca.crt, other-ca.crt, and for each of
 *   good      for localhost and 127.0.0.1     client    for a client
 *   wrong     for another name                noip      for localhost, without the address
 *   expired   ended yesterday                 early     begins tomorrow
 *   stranger  for localhost by other-ca
 * NAME.crt and NAME.key. */
void certs_make(const char *folder);

/* "@folder/@file"; valid until called eight more times. */
const char *certs_path(const char *folder, const char *file);

#endif
