/* SPDX-License-Identifier: Apache-2.0 */
#include "certificates.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define DAY 86400L

static void must(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "certificates: %s failed\n", what);
    abort();
}

static char *text_of(BIO *bio)
{
    char *data;
    long len = BIO_get_mem_data(bio, &data);
    char *text = strndup(data, (size_t)len);

    must(text != NULL, "strndup");
    BIO_free(bio);
    return text;
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(ext != NULL && X509_add_ext(cert, ext, -1) == 1, "extension");
    X509_EXTENSION_free(ext);
}

static X509 *certificate_of(EVP_PKEY *key, const char *name, X509 *issuer)
{
    static long serial = 1000;
    X509 *cert = X509_new();
    X509_NAME *subject;

    must(cert != NULL, "X509_new");
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert), -DAY);
    X509_gmtime_adj(X509_getm_notAfter(cert), DAY);
    X509_set_pubkey(cert, key);
    subject = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(cert, issuer != NULL ? X509_get_subject_name(issuer) : subject);
    return cert;
}

static void write_texts(struct certificates_pair *pair, X509 *cert, EVP_PKEY *key,
                        const char *password)
{
    BIO *bio = BIO_new(BIO_s_mem());

    must(PEM_write_bio_X509(bio, cert) == 1, "PEM of a certificate");
    pair->certificate = text_of(bio);
    bio = BIO_new(BIO_s_mem());
    must(PEM_write_bio_PKCS8PrivateKey(bio, key, password != NULL ? EVP_aes_128_cbc() : NULL, NULL,
                                       0, NULL, (void *)(uintptr_t)password) == 1,
         "PEM of a key");
    pair->key = text_of(bio);
    pair->handles[0] = cert;
    pair->handles[1] = key;
}

struct certificates_pair certificates_authority(const char *name)
{
    struct certificates_pair pair;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = certificate_of(key, name, NULL);

    add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(cert, cert, NID_key_usage, "critical,keyCertSign");
    must(X509_sign(cert, key, EVP_sha256()) > 0, "signing");
    write_texts(&pair, cert, key, NULL);
    return pair;
}

struct certificates_pair certificates_for(const struct certificates_pair *authority,
                                          const char *host, const char *password)
{
    struct certificates_pair pair;
    unsigned char address[16];
    char name[300];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = certificate_of(key, host, authority->handles[0]);
    bool is_address =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;

    snprintf(name, sizeof(name), "%s:%s", is_address ? "IP" : "DNS", host);
    add_extension(cert, authority->handles[0], NID_subject_alt_name, name);
    must(X509_sign(cert, authority->handles[1], EVP_sha256()) > 0, "signing");
    write_texts(&pair, cert, key, password);
    return pair;
}

void certificates_free(struct certificates_pair *pair)
{
    free(pair->certificate);
    free(pair->key);
    X509_free(pair->handles[0]);
    EVP_PKEY_free(pair->handles[1]);
    memset(pair, 0, sizeof(*pair));
}
