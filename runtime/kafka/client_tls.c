/* SPDX-License-Identifier: Apache-2.0 */
/* ssl.* of a Java client, as librdkafka's.
 *
 * Trust and key stores must be what OpenSSL reads: PEM, and PKCS12 for keys. Stores that only Java
 * reads, classes, and limits of versions or suites that would not hold are refused with the remedy.
 * Files named by the settings are read to see that they are PEM, and what they hold. Called by
 * client_security.c. Spec: reference worker-config 9.1. */
#include "kafka/kafka_private.h"

#include "base/file.h"

#include <string.h>
#include <strings.h>

#define PEM_MAX (1 << 20)
#define JVM_ONLY "has a meaning only inside a JVM; ignored"

static const struct client_map_rule ssl_rules[] = {
    {"ssl.engine.factory.class", CLIENT_MAP_REFUSED, "DefaultSslEngineFactory",
     "Java classes can't run here; give the certificates with ssl.truststore.type=PEM and "
     "ssl.keystore.type=PEM"},
    {"ssl.protocol", CLIENT_MAP_REFUSED, "TLSv1.3,TLS",
     "TLS 1.2 and 1.3 are always on; remove it, and limit versions with MinProtocol and "
     "MaxProtocol in openssl.cnf"},
    {"ssl.provider", CLIENT_MAP_REMARKED, "", JVM_ONLY},
    {"ssl.keymanager.algorithm", CLIENT_MAP_REMARKED, "SunX509,PKIX", JVM_ONLY},
    {"ssl.trustmanager.algorithm", CLIENT_MAP_REMARKED, "PKIX,SunX509", JVM_ONLY},
    {"ssl.secure.random.implementation", CLIENT_MAP_REMARKED, "", JVM_ONLY},
};

/* --- TLS: stores ------------------------------------------------------------------------------ */

/* Read a PEM file and see what it holds. */
static int look_into(struct client_map *m, const char *java, const char *path,
                     struct pem_found *found)
{
    struct mr_error why = {0};
    struct buf text;
    int rc;

    buf_init(&text, PEM_MAX);
    rc = file_read(path, &text, &why);
    if (rc != 0)
        rc = mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s: %s", java, why.text);
    else if (!pem_normalize(text.data != NULL ? text.data : "", text.len, NULL, found))
        rc = mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s: %s is not a PEM file", java, path);
    buf_deinit(&text);
    return rc;
}

static int put_pem(struct client_map *m, const char *java, const char *rdkafka, const char *text,
                   struct pem_found *found)
{
    struct buf out;
    int rc;

    buf_init(&out, 2 * PEM_MAX);
    if (pem_normalize(text, strlen(text), &out, found))
        rc = client_map_put(m, java, rdkafka, out.data);
    else
        rc = client_map_invalid(m, java, text, "not PEM");
    buf_deinit(&out);
    return rc;
}

static int apply_truststore(struct client_map *m)
{
    const char *type = client_map_given(m, "ssl.truststore.type")
                           ? client_map_get(m, "ssl.truststore.type")
                           : "JKS";
    const char *path = client_map_get(m, "ssl.truststore.location");
    bool pem = strcasecmp(type, "PEM") == 0;
    struct pem_found found;
    int rc;

    if (client_map_given(m, "ssl.truststore.certificates")) {
        if (!pem || client_map_given(m, "ssl.truststore.location"))
            return client_map_refuse(
                m, "ssl.truststore.certificates",
                pem ? "Both SSL trust store location and certificates are specified; remove one"
                    : "it goes with ssl.truststore.type=PEM only");
        rc = put_pem(m, "ssl.truststore.certificates", "ssl.ca.pem",
                     client_map_get(m, "ssl.truststore.certificates"), &found);
        if (rc == 0 && found.certificates == 0)
            rc = client_map_refuse(m, "ssl.truststore.certificates", "it holds no certificate");
        return rc;
    }
    if (!client_map_given(m, "ssl.truststore.location"))
        return 0;
    if (!pem)
        return mr_fail(
            m->err, MR_ERR_CONFIG,
            "Configuration ssl.truststore.location can't be honoured: a trust store of type %.20s "
            "can't be read "
            "here; convert it to PEM: keytool -list -rfc -keystore %.200s > ca.pem, then set "
            "ssl.truststore.type=PEM and ssl.truststore.location=…/ca.pem",
            type, path);
    if (client_map_given(m, "ssl.truststore.password"))
        return client_map_refuse(m, "ssl.truststore.password",
                                 "SSL trust store password cannot be specified for PEM format");
    if (m->blind)
        return 0;
    rc = look_into(m, "ssl.truststore.location", path, &found);
    if (rc == 0 && found.certificates == 0)
        rc = client_map_refuse(m, "ssl.truststore.location", "the file holds no certificate");
    return rc != 0 ? rc : client_map_put(m, "ssl.truststore.location", "ssl.ca.location", path);
}

static int check_key(struct client_map *m, const char *java, const struct pem_found *found)
{
    if (found->keys != 1)
        return client_map_refuse(m, java,
                                 found->keys == 0 ? "no private key is found"
                                                  : "more than one private key is found");
    if (found->encrypted && !client_map_given(m, "ssl.key.password"))
        return client_map_refuse(m, java, "the private key is encrypted; set ssl.key.password");
    return 0;
}

/* Key and chain in one file: librdkafka finds each by its marks, and takes the whole chain only
 * from a file. */
static int apply_pem_file(struct client_map *m, const char *path)
{
    struct pem_found found;
    int rc;

    if (client_map_given(m, "ssl.keystore.password"))
        return client_map_refuse(
            m, "ssl.keystore.password",
            "SSL key store password cannot be specified with PEM format, only key "
            "password may be specified");
    if (m->blind)
        return 0;
    rc = look_into(m, "ssl.keystore.location", path, &found);
    if (rc == 0)
        rc = check_key(m, "ssl.keystore.location", &found);
    if (rc == 0 && found.certificates == 0)
        rc = client_map_refuse(m, "ssl.keystore.location", "the file holds no certificate");
    if (rc == 0)
        rc = client_map_put(m, "ssl.keystore.location", "ssl.certificate.location", path);
    return rc != 0 ? rc : client_map_put(m, "ssl.keystore.location", "ssl.key.location", path);
}

static int apply_pem_text(struct client_map *m)
{
    struct pem_found key;
    struct pem_found chain;
    int rc;

    if (!client_map_given(m, "ssl.keystore.key") ||
        !client_map_given(m, "ssl.keystore.certificate.chain"))
        return client_map_refuse(
            m,
            client_map_given(m, "ssl.keystore.key") ? "ssl.keystore.key"
                                                    : "ssl.keystore.certificate.chain",
            "SSL certificate chain and private key must be specified together");
    rc = put_pem(m, "ssl.keystore.key", "ssl.key.pem", client_map_get(m, "ssl.keystore.key"), &key);
    if (rc == 0)
        rc = check_key(m, "ssl.keystore.key", &key);
    if (rc == 0)
        rc = put_pem(m, "ssl.keystore.certificate.chain", "ssl.certificate.pem",
                     client_map_get(m, "ssl.keystore.certificate.chain"), &chain);
    if (rc == 0 && chain.certificates != 1)
        rc = client_map_refuse(
            m, "ssl.keystore.certificate.chain",
            "librdkafka takes one certificate as text; put key and chain into one PEM file "
            "and name it in "
            "ssl.keystore.location");
    return rc;
}

static int apply_keystore(struct client_map *m)
{
    const char *type =
        client_map_given(m, "ssl.keystore.type") ? client_map_get(m, "ssl.keystore.type") : "JKS";
    const char *path = client_map_get(m, "ssl.keystore.location");
    bool text = client_map_given(m, "ssl.keystore.key") ||
                client_map_given(m, "ssl.keystore.certificate.chain");
    int rc = 0;

    if (text && (strcasecmp(type, "PEM") != 0 || client_map_given(m, "ssl.keystore.location")))
        return client_map_refuse(
            m, "ssl.keystore.key",
            "it goes with ssl.keystore.type=PEM and without ssl.keystore.location");
    if (client_map_given(m, "ssl.key.password") &&
        (text || client_map_given(m, "ssl.keystore.location")))
        rc = client_map_put(m, "ssl.key.password", "ssl.key.password",
                            client_map_get(m, "ssl.key.password"));
    if (rc != 0 || (!text && !client_map_given(m, "ssl.keystore.location")))
        return rc;
    if (text)
        return apply_pem_text(m);
    if (strcasecmp(type, "PEM") == 0)
        return apply_pem_file(m, path);
    if (strcasecmp(type, "PKCS12") != 0)
        return mr_fail(
            m->err, MR_ERR_CONFIG,
            "Configuration ssl.keystore.location can't be honoured: a key store of type %.20s "
            "can't be read "
            "here; convert it: keytool -importkeystore -srckeystore %.200s -destkeystore key.p12 "
            "-deststoretype PKCS12, then set ssl.keystore.type=PKCS12 and "
            "ssl.keystore.location=…/key.p12",
            type, path);
    rc = client_map_put(m, "ssl.keystore.location", "ssl.keystore.location", path);
    if (rc == 0 && client_map_given(m, "ssl.keystore.password"))
        rc = client_map_put(m, "ssl.keystore.password", "ssl.keystore.password",
                            client_map_get(m, "ssl.keystore.password"));
    return rc;
}

/* --- TLS: ciphers and versions ---------------------------------------------------------------- */

/* Java's (IANA's) names of TLS 1.2 suites and OpenSSL's. */
static const char *const suites[][2] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"},
    {"TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"},
    {"TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
};

/* Always offered by OpenSSL unless its own configuration says otherwise; librdkafka can't limit
 * them. */
static const char *const tls13[] = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256",
                                    "TLS_CHACHA20_POLY1305_SHA256"};

static const char *openssl_name(const char *item, size_t len)
{
    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
        if (client_map_is(item, len, suites[i][0]))
            return suites[i][1];
    return NULL;
}

static int apply_ciphers(struct client_map *m)
{
    const char *value = client_map_get(m, "ssl.cipher.suites");
    const char *list = value != NULL ? value : "";
    const char *item;
    size_t len;
    size_t newer = 0;
    struct buf out;
    int rc = 0;

    buf_init(&out, 1 << 14);
    while (rc == 0 && client_map_item(&list, &item, &len)) {
        const char *name = openssl_name(item, len);
        bool is_newer = false;

        for (size_t i = 0; i < sizeof(tls13) / sizeof(*tls13); i++)
            is_newer = is_newer || client_map_is(item, len, tls13[i]);
        newer += is_newer;
        if (name != NULL)
            buf_printf(&out, "%s%s", out.len > 0 ? ":" : "", name);
        else if (!is_newer)
            rc = mr_fail(m->err, MR_ERR_CONFIG,
                         "Configuration ssl.cipher.suites can't be honoured: the suite %.*s is not "
                         "known here; name suites "
                         "as Java does, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                         (int)(len > 60 ? 60 : len), item);
    }
    if (rc == 0 && (newer > 0 ? newer < 3 || out.len == 0 : out.len > 0))
        rc = client_map_refuse(
            m, "ssl.cipher.suites",
            "librdkafka can limit the suites of TLS 1.2 only; list all three of TLS 1.3 "
            "besides (TLS_AES_256_GCM_"
            "SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256), or use "
            "Ciphersuites in openssl.cnf");
    if (rc == 0 && out.len > 0)
        rc = client_map_put(m, "ssl.cipher.suites", "ssl.cipher.suites", out.data);
    buf_deinit(&out);
    return rc;
}

/* OpenSSL negotiates 1.2 or 1.3: any other set is a limit that would not hold. */
static int apply_versions(struct client_map *m)
{
    const char *list = client_map_get(m, "ssl.enabled.protocols");
    const char *item;
    size_t len;
    bool v12 = false;
    bool v13 = false;
    bool other = false;

    if (list == NULL || list[0] == '\0')
        return 0;
    while (client_map_item(&list, &item, &len)) {
        bool is12 = client_map_is(item, len, "TLSv1.2");
        bool is13 = client_map_is(item, len, "TLSv1.3");

        v12 = v12 || is12;
        v13 = v13 || is13;
        other = other || (!is12 && !is13);
    }
    if (v12 && v13 && !other)
        return 0;
    return client_map_refuse(
        m, "ssl.enabled.protocols",
        "TLSv1.2 and TLSv1.3 are both always on; remove it, and limit versions with "
        "MinProtocol and MaxProtocol in "
        "openssl.cnf");
}

static int apply_identification(struct client_map *m)
{
    const char *value = client_map_get(m, "ssl.endpoint.identification.algorithm");

    if (value == NULL || strcasecmp(value, "https") == 0)
        value = "https";
    else if (value[0] == '\0')
        value = "none";
    else
        return client_map_invalid(m, "ssl.endpoint.identification.algorithm", value,
                                  "use https, or nothing to switch it off");
    return client_map_put(m, "ssl.endpoint.identification.algorithm",
                          "ssl.endpoint.identification.algorithm", value);
}

int client_tls_apply(struct client_map *m)
{
    static int (*const steps[])(struct client_map *) = {
        apply_versions, apply_identification, apply_ciphers, apply_truststore, apply_keystore};
    int rc = client_map_feature(m, "security.protocol", "ssl", "TLS");

    if (rc == 0)
        rc = client_map_rules(m, ssl_rules, sizeof(ssl_rules) / sizeof(*ssl_rules));
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](m);
    return rc;
}
