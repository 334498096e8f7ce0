/* SPDX-License-Identifier: Apache-2.0 */
/* ssl.* of a Java client, as OpenSSL's: which certificates are trusted, which is shown, which
 * versions and suites.
 *
 * PEM from files or from the settings themselves, PKCS12 for keys; what only Java reads is refused
 * with the remedy, in the words of kafka/client_tls.c where both know the case. Called once per
 * client by wire_conf.c; wire_tls_session once per connection, by wire_stream.c. Files are read
 * whole, at once: no path is looked at later. */
#include "wire_private.h"

#include "base/file.h"
#include "base/pem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define PEM_MAX (1 << 20)

struct tls {
    const struct props *settings;
    SSL_CTX *ctx;
    struct mr_error *err;
};

static const char *given(const struct tls *t, const char *key)
{
    const char *value = props_get(t->settings, key);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int refuse(const struct tls *t, const char *key, const char *text)
{
    ERR_clear_error();
    return mr_fail(t->err, MR_ERR_CONFIG, "Configuration %s can't be honoured: %s", key, text);
}

/* Is the type of a store PEM (or another that is named)? Java takes JKS when none is given. */
static bool type_is(const struct tls *t, const char *key, const char *type)
{
    const char *value = given(t, key);

    return strcasecmp(value != NULL ? value : "JKS", type) == 0;
}

/* --- PEM -------------------------------------------------------------------------------------- */

/* The text of a setting, or of the file that it names, with proper lines. */
static int read_pem(const struct tls *t, const char *key, bool file, struct buf *out,
                    struct pem_found *found)
{
    struct mr_error why = {0};
    struct buf text;
    int rc = 0;

    buf_init(&text, PEM_MAX);
    if (file)
        rc = file_read(given(t, key), &text, &why);
    else
        rc = buf_puts(&text, given(t, key));
    if (rc != 0)
        rc = mr_fail(t->err, MR_ERR_CONFIG, "Configuration %s: %s", key,
                     why.code != 0 ? why.text : "longer than 1 MiB");
    else if (!pem_normalize(text.data != NULL ? text.data : "", text.len, out, found))
        rc = refuse(t, key, file ? "the file is not a PEM file" : "it is not PEM");
    if (text.data != NULL)
        OPENSSL_cleanse(text.data, text.len);
    buf_deinit(&text);
    return rc;
}

static int key_password(char *out, int size, int writing, void *arg)
{
    const char *password = arg;
    int len = password != NULL ? (int)strlen(password) : 0;

    (void)writing;
    if (len > size)
        return -1;
    if (len > 0)
        memcpy(out, password, (size_t)len);
    return len;
}

static int trust_all_in(const struct tls *t, const char *key, const struct buf *pem)
{
    X509_STORE *store = SSL_CTX_get_cert_store(t->ctx);
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
    int count = 0;
    X509 *cert;

    while (bio != NULL && (cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, cert) == 1;
        X509_free(cert);
    }
    BIO_free(bio);
    ERR_clear_error(); /* the end of the text is one */
    return count > 0 ? 0 : refuse(t, key, "it holds no certificate");
}

/* Chain and key out of PEM texts; both may be the same one. */
static int use_chain(const struct tls *t, const char *key, const struct buf *pem)
{
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
    X509 *cert = bio != NULL ? PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL) : NULL;
    bool fine = cert != NULL && SSL_CTX_use_certificate(t->ctx, cert) == 1;

    X509_free(cert);
    while (fine && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(t->ctx, cert) != 1) {
            X509_free(cert);
            fine = false;
        }
    BIO_free(bio);
    ERR_clear_error();
    return fine ? 0 : refuse(t, key, "it holds no certificate that can be used");
}

static int use_key(const struct tls *t, const char *key, const struct buf *pem)
{
    void *password = (void *)(uintptr_t)given(t, "ssl.key.password");
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
    EVP_PKEY *pkey =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, key_password, password) : NULL;
    bool fine = pkey != NULL && SSL_CTX_use_PrivateKey(t->ctx, pkey) == 1;

    BIO_free(bio);
    EVP_PKEY_free(pkey);
    if (fine)
        return 0;
    return refuse(t, key,
                  pkey == NULL ? "the private key can't be read: is ssl.key.password right?"
                               : "the private key does not belong to the certificate");
}

/* --- stores ----------------------------------------------------------------------------------- */

static int apply_truststore(const struct tls *t)
{
    bool text = given(t, "ssl.truststore.certificates") != NULL;
    const char *key = text ? "ssl.truststore.certificates" : "ssl.truststore.location";
    struct pem_found found;
    struct buf pem;
    int rc;

    if (text && given(t, "ssl.truststore.location") != NULL)
        return refuse(t, key,
                      "Both SSL trust store location and certificates are specified; remove one");
    if (given(t, key) == NULL)
        return SSL_CTX_set_default_verify_paths(t->ctx) == 1
                   ? 0
                   : refuse(t, key, "the system has no certificates");
    if (!type_is(t, "ssl.truststore.type", "PEM"))
        return refuse(t, key,
                      "only trust stores of ssl.truststore.type=PEM can be read here; convert "
                      "others: keytool -list -rfc -keystore … > ca.pem");
    buf_init(&pem, 2 * PEM_MAX);
    rc = read_pem(t, key, !text, &pem, &found);
    if (rc == 0)
        rc = trust_all_in(t, key, &pem);
    buf_deinit(&pem);
    return rc;
}

static int check_key(const struct tls *t, const char *key, const struct pem_found *found)
{
    if (found->keys != 1)
        return refuse(t, key,
                      found->keys == 0 ? "no private key is found"
                                       : "more than one private key is found");
    if (found->encrypted && given(t, "ssl.key.password") == NULL)
        return refuse(t, key, "the private key is encrypted; set ssl.key.password");
    return 0;
}

static int apply_pem_keys(const struct tls *t, const char *chain_key, const char *key_key,
                          bool file)
{
    struct pem_found found;
    struct buf chain;
    struct buf key;
    int rc;

    buf_init(&chain, 2 * PEM_MAX);
    buf_init(&key, 2 * PEM_MAX);
    rc = read_pem(t, key_key, file, &key, &found);
    if (rc == 0)
        rc = check_key(t, key_key, &found);
    if (rc == 0)
        rc = read_pem(t, chain_key, file, &chain, &found);
    if (rc == 0)
        rc = use_chain(t, chain_key, &chain);
    if (rc == 0)
        rc = use_key(t, key_key, &key);
    if (key.data != NULL)
        OPENSSL_cleanse(key.data, key.len);
    if (chain.data != NULL)
        OPENSSL_cleanse(chain.data, chain.len);
    buf_deinit(&chain);
    buf_deinit(&key);
    return rc;
}

static int use_pkcs12(const struct tls *t, const struct buf *file)
{
    const char *password = given(t, "ssl.keystore.password");
    BIO *bio = BIO_new_mem_buf(file->data, (int)file->len);
    PKCS12 *store = bio != NULL ? d2i_PKCS12_bio(bio, NULL) : NULL;
    EVP_PKEY *key = NULL;
    X509 *cert = NULL;
    STACK_OF(X509) *chain = NULL;
    bool read = store != NULL && PKCS12_parse(store, password, &key, &cert, &chain) == 1;
    bool fine = read && key != NULL && cert != NULL &&
                SSL_CTX_use_cert_and_key(t->ctx, cert, key, chain, 1);

    sk_X509_pop_free(chain, X509_free);
    X509_free(cert);
    EVP_PKEY_free(key);
    PKCS12_free(store);
    BIO_free(bio);
    if (fine)
        return 0;
    return refuse(t, "ssl.keystore.location",
                  read ? "the key store holds no key with its certificate"
                       : "it is not PKCS12, or ssl.keystore.password is wrong");
}

static int apply_pkcs12(const struct tls *t)
{
    struct mr_error why = {0};
    struct buf file;
    int rc;

    buf_init(&file, PEM_MAX);
    rc = file_read(given(t, "ssl.keystore.location"), &file, &why);
    rc = rc != 0
             ? mr_fail(t->err, MR_ERR_CONFIG, "Configuration ssl.keystore.location: %s", why.text)
             : use_pkcs12(t, &file);
    buf_deinit(&file);
    return rc;
}

static int apply_keystore(const struct tls *t)
{
    static const char location[] = "ssl.keystore.location";
    static const char chain[] = "ssl.keystore.certificate.chain";
    bool text = given(t, "ssl.keystore.key") != NULL || given(t, chain) != NULL;
    bool pem = type_is(t, "ssl.keystore.type", "PEM");

    if (!text && given(t, location) == NULL)
        return 0;
    if (text && (!pem || given(t, location) != NULL))
        return refuse(t, "ssl.keystore.key",
                      "it goes with ssl.keystore.type=PEM and without ssl.keystore.location");
    if (text && (given(t, "ssl.keystore.key") == NULL || given(t, chain) == NULL))
        return refuse(t, given(t, chain) == NULL ? "ssl.keystore.key" : chain,
                      "SSL certificate chain and private key must be specified together");
    if (text)
        return apply_pem_keys(t, chain, "ssl.keystore.key", false);
    if (pem)
        return apply_pem_keys(t, location, location, true);
    if (type_is(t, "ssl.keystore.type", "PKCS12"))
        return apply_pkcs12(t);
    return refuse(t, location,
                  "only key stores of ssl.keystore.type PEM and PKCS12 can be read here; convert "
                  "others: keytool -importkeystore -srckeystore … -destkeystore key.p12 "
                  "-deststoretype PKCS12");
}

/* --- versions and suites ---------------------------------------------------------------------- */

/* Next item of a comma separated list without its blanks; false at the end. */
static bool next_item(const char **list, char *item, size_t size)
{
    const char *p = *list + strspn(*list, ", \t");
    size_t len = strcspn(p, ",");

    *list = p + len;
    while (len > 0 && isspace((unsigned char)p[len - 1]))
        len--;
    snprintf(item, size, "%.*s", (int)(len < size ? len : size), p);
    return len > 0;
}

static int apply_versions(const struct tls *t)
{
    const char *list = given(t, "ssl.enabled.protocols");
    char item[32];
    bool v12 = list == NULL;
    bool v13 = list == NULL;

    while (list != NULL && next_item(&list, item, sizeof(item))) {
        v12 = v12 || strcasecmp(item, "TLSv1.2") == 0;
        v13 = v13 || strcasecmp(item, "TLSv1.3") == 0;
    }
    if (!v12 && !v13)
        return refuse(t, "ssl.enabled.protocols", "TLSv1.2 and TLSv1.3 are what is spoken here");
    SSL_CTX_set_min_proto_version(t->ctx, v12 ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_CTX_set_max_proto_version(t->ctx, v13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    return 0;
}

/* Java names suites as IANA does, OpenSSL those of TLS 1.2 in its own way. */
static const char *openssl_name(STACK_OF(SSL_CIPHER) * all, const char *name, bool *newer)
{
    for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
        const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, i);
        const char *standard = SSL_CIPHER_standard_name(cipher);

        if (standard != NULL && strcasecmp(standard, name) == 0) {
            *newer = SSL_CIPHER_get_protocol_id(cipher) >> 8 == 0x13;
            return SSL_CIPHER_get_name(cipher);
        }
    }
    return NULL;
}

static int apply_suites(const struct tls *t)
{
    const char *list = given(t, "ssl.cipher.suites");
    char item[100];
    struct buf old;
    struct buf new;
    int rc = 0;

    if (list == NULL)
        return 0;
    buf_init(&old, 1 << 14);
    buf_init(&new, 1 << 14);
    buf_reserve(&old, 0);
    buf_reserve(&new, 0);
    while (rc == 0 && next_item(&list, item, sizeof(item))) {
        bool newer = false;
        const char *name = openssl_name(SSL_CTX_get_ciphers(t->ctx), item, &newer);
        struct buf *to = newer ? &new : &old;

        if (name == NULL)
            rc =
                mr_fail(t->err, MR_ERR_CONFIG,
                        "Configuration ssl.cipher.suites can't be honoured: the suite %.60s is not "
                        "known here",
                        item);
        else
            buf_printf(to, "%s%s", to->len > 0 ? ":" : "", name);
    }
    if (rc == 0 && (SSL_CTX_set_ciphersuites(t->ctx, new.data) != 1 ||
                    (old.len > 0 && SSL_CTX_set_cipher_list(t->ctx, old.data) != 1)))
        rc = refuse(t, "ssl.cipher.suites", "OpenSSL does not take it");
    if (rc == 0 && old.len == 0)
        SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION);
    if (rc == 0 && new.len == 0)
        SSL_CTX_set_max_proto_version(t->ctx, TLS1_2_VERSION);
    buf_deinit(&old);
    buf_deinit(&new);
    return rc;
}

SSL_CTX *wire_tls_context(const struct props *settings, struct mr_error *err)
{
    static int (*const steps[])(const struct tls *) = {apply_versions, apply_suites,
                                                       apply_truststore, apply_keystore};
    struct tls t = {.settings = settings, .ctx = SSL_CTX_new(TLS_client_method()), .err = err};
    int rc = 0;

    if (t.ctx == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for TLS");
        return NULL;
    }
    SSL_CTX_set_verify(t.ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(t.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(t.ctx, SSL_OP_NO_RENEGOTIATION);
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](&t);
    if (rc != 0)
        SSL_CTX_free(t.ctx);
    return rc == 0 ? t.ctx : NULL;
}

/* --- one connection --------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool name_peer(SSL *ssl, const struct wire_conf *conf, const char *host)
{
    bool address = is_address(host);

    if (!address && SSL_set_tlsext_host_name(ssl, host) != 1)
        return false;
    if (!conf->check_host)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
                   : SSL_set1_host(ssl, host) == 1;
}

SSL *wire_tls_session(const struct wire_conf *conf, const char *host, int fd, struct mr_error *err)
{
    SSL *ssl = SSL_new(conf->tls);

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || !name_peer(ssl, conf, host)) {
        SSL_free(ssl);
        ERR_clear_error();
        mr_fail(err, MR_ERR_NOMEM, "out of memory for TLS");
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

/* An alert of the broker's that says something about us, and will be the same next time. */
static bool refused_us(unsigned long code)
{
    static const int alerts[] = {SSL_AD_HANDSHAKE_FAILURE,
                                 SSL_AD_BAD_CERTIFICATE,
                                 SSL_AD_UNSUPPORTED_CERTIFICATE,
                                 SSL_AD_CERTIFICATE_REVOKED,
                                 SSL_AD_CERTIFICATE_EXPIRED,
                                 SSL_AD_CERTIFICATE_UNKNOWN,
                                 SSL_AD_UNKNOWN_CA,
                                 SSL_AD_ACCESS_DENIED,
                                 SSL_AD_PROTOCOL_VERSION,
                                 SSL_AD_INSUFFICIENT_SECURITY,
                                 SSL_AD_CERTIFICATE_REQUIRED};

    for (size_t i = 0; i < sizeof(alerts) / sizeof(*alerts); i++)
        if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
            ERR_GET_REASON(code) == SSL_AD_REASON_OFFSET + alerts[i])
            return true;
    return false;
}

int wire_tls_error(SSL *ssl, const char *who, struct mr_error *err)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    long verdict = SSL_get_verify_result(ssl);

    ERR_clear_error();
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return mr_fail(err, MR_ERR_FATAL,
                       "the certificate of broker %s is for another host: connect by the name that "
                       "stands in it, or set ssl.endpoint.identification.algorithm to nothing",
                       who);
    if (verdict != X509_V_OK)
        return mr_fail(err, MR_ERR_FATAL,
                       "the certificate of broker %s is not trusted (%s): is its authority in "
                       "ssl.truststore.location or ssl.truststore.certificates?",
                       who, X509_verify_cert_error_string(verdict));
    if (refused_us(code))
        return mr_fail(err, MR_ERR_FATAL, "broker %s refused the TLS connection: %s", who,
                       reason != NULL ? reason : "alert");
    return mr_fail(err, MR_ERR_IO, "TLS with broker %s failed: %s", who,
                   reason != NULL ? reason : "the connection was closed");
}
