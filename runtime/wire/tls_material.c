/* SPDX-License-Identifier: Apache-2.0 */
/* Key, certificates and authorities taken out of an OpenSSL context that wire_tls.c has made
 * from the same settings, so that all TLS of a worker reads the same stores, by the same rules,
 * with the same refusals. Called at start, by worker/worker_https.c. */
#include "wire/tls_material.h"

#include "wire_private.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

static const char *given(const struct props *settings, const char *key)
{
    const char *value = props_get(settings, key);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* What was written there, as a text; NULL when nothing was, or memory is short. */
static char *text_of(BIO *bio)
{
    char *data = NULL;
    long len = bio != NULL ? BIO_get_mem_data(bio, &data) : 0;
    char *out = len > 0 ? strndup(data, (size_t)len) : NULL;

    if (len > 0)
        OPENSSL_cleanse(data, (size_t)len);
    BIO_free(bio);
    return out;
}

static char *chain_of(SSL_CTX *ctx)
{
    BIO *bio = BIO_new(BIO_s_mem());
    STACK_OF(X509) *above = NULL;
    bool fine = bio != NULL && PEM_write_bio_X509(bio, SSL_CTX_get0_certificate(ctx)) == 1 &&
                SSL_CTX_get0_chain_certs(ctx, &above) == 1;

    for (int i = 0; fine && i < sk_X509_num(above); i++)
        fine = PEM_write_bio_X509(bio, sk_X509_value(above, i)) == 1;
    if (fine)
        return text_of(bio);
    BIO_free(bio);
    return NULL;
}

static char *key_of(SSL_CTX *ctx)
{
    BIO *bio = BIO_new(BIO_s_secmem());

    if (bio == NULL || PEM_write_bio_PKCS8PrivateKey(bio, SSL_CTX_get0_privatekey(ctx), NULL, NULL,
                                                     0, NULL, NULL) != 1) {
        BIO_free(bio);
        return NULL;
    }
    return text_of(bio);
}

static char *trust_of(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    BIO *bio = BIO_new(BIO_s_mem());

    for (int i = 0; bio != NULL && i < sk_X509_OBJECT_num(all); i++) {
        X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

        if (cert != NULL)
            PEM_write_bio_X509(bio, cert);
    }
    return text_of(bio);
}

static int take(const struct props *settings, SSL_CTX *ctx, struct tls_material *out,
                struct mr_error *err)
{
    bool trusts = given(settings, "ssl.truststore.location") != NULL ||
                  given(settings, "ssl.truststore.certificates") != NULL;
    bool keyed = SSL_CTX_get0_certificate(ctx) != NULL;

    out->tls12 = SSL_CTX_get_min_proto_version(ctx) == TLS1_2_VERSION;
    out->tls13 = SSL_CTX_get_max_proto_version(ctx) == TLS1_3_VERSION;
    out->chain = keyed ? chain_of(ctx) : NULL;
    out->key = keyed ? key_of(ctx) : NULL;
    out->trust = trusts ? trust_of(ctx) : NULL;
    if ((!keyed || (out->chain != NULL && out->key != NULL)) && (!trusts || out->trust != NULL))
        return 0;
    tls_material_deinit(out);
    return mr_fail(err, MR_ERR_NOMEM, "out of memory for TLS");
}

int tls_material_load(const struct props *settings, struct tls_material *out, struct mr_error *err)
{
    struct tls_material found = {0};
    SSL_CTX *ctx;
    int rc;

    if (given(settings, "ssl.cipher.suites") != NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Configuration ssl.cipher.suites can't be honoured for HTTP: remove it, and "
                       "restrict by ssl.enabled.protocols");
    ctx = wire_tls_context(settings, err);
    if (ctx == NULL)
        return MR_ERR_CONFIG;
    rc = take(settings, ctx, &found, err);
    SSL_CTX_free(ctx);
    if (rc == 0)
        *out = found;
    return rc;
}

void tls_material_deinit(struct tls_material *material)
{
    if (material->key != NULL)
        OPENSSL_cleanse(material->key, strlen(material->key));
    free(material->chain);
    free(material->key);
    free(material->trust);
    *material = (struct tls_material){0};
}
