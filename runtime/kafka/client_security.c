/* SPDX-License-Identifier: Apache-2.0 */
/* security.protocol, sasl.* and ssl.* of a Java client, as librdkafka's.
 *
 * What protects the connection is either honoured or refused with its remedy, never weakened in silence: stores that only
 * Java reads, classes, protocol limits, mechanisms that this librdkafka lacks. Settings that merely tune are remarked on.
 * Nothing here is looked at unless security.protocol makes use of it, as in Java. Called by client_conf_map; files named by
 * the settings are read to see that they are PEM, and what they hold. Spec: reference worker-config 9.1 and 9.2. */
#include "kafka/kafka_private.h"

#include "base/file.h"

#include <string.h>
#include <strings.h>

#define PEM_MAX (1 << 20)
#define KAFKA_PACKAGE "org.apache.kafka."

/* --- rules: settings without a counterpart ---------------------------------------------------------------------------- */

enum verdict { REFUSED, REMARKED };

/* fine: values, or simple names of Kafka's own classes, that change nothing; comma separated. */
struct rule {
    const char *java;
    enum verdict verdict;
    const char *fine;
    const char *text;
};

#define JVM_ONLY "has a meaning only inside a JVM; ignored"
#define NO_CLASSES "Java classes can't run here; remove it and give user and password, or client id and secret, in sasl.jaas.config"
#define NO_ASSERTION "librdkafka can't log in by assertion; use client id and secret"

static const struct rule sasl_rules[] = {
    {"sasl.login.class", REFUSED, "", NO_CLASSES},
    {"sasl.client.callback.handler.class", REFUSED, "", NO_CLASSES},
    {"sasl.login.callback.handler.class", REFUSED, "OAuthBearerLoginCallbackHandler", NO_CLASSES},
    {"sasl.oauthbearer.jwt.retriever.class", REFUSED, "DefaultJwtRetriever,ClientCredentialsJwtRetriever", NO_CLASSES},
    {"sasl.oauthbearer.jwt.validator.class", REFUSED, "DefaultJwtValidator,ClientJwtValidator", NO_CLASSES},
    {"sasl.oauthbearer.assertion.file", REFUSED, "", NO_ASSERTION},
    {"sasl.oauthbearer.assertion.private.key.file", REFUSED, "", NO_ASSERTION},
    {"sasl.oauthbearer.assertion.template.file", REFUSED, "", NO_ASSERTION},
    {"sasl.kerberos.kinit.cmd", REFUSED, "/usr/bin/kinit,kinit",
     "the command can't be chosen; remove it and have kinit in the PATH of the worker"},
    {"sasl.login.connect.timeout.ms", REMARKED, "", JVM_ONLY},
    {"sasl.login.read.timeout.ms", REMARKED, "", JVM_ONLY},
    {"sasl.login.refresh.buffer.seconds", REMARKED, "300", JVM_ONLY},
    {"sasl.login.refresh.min.period.seconds", REMARKED, "60", JVM_ONLY},
    {"sasl.login.refresh.window.factor", REMARKED, "0.8", JVM_ONLY},
    {"sasl.login.refresh.window.jitter", REMARKED, "0.05", JVM_ONLY},
    {"sasl.login.retry.backoff.ms", REMARKED, "100", JVM_ONLY},
    {"sasl.login.retry.backoff.max.ms", REMARKED, "10000", JVM_ONLY},
    {"sasl.kerberos.ticket.renew.jitter", REMARKED, "0.05", JVM_ONLY},
    {"sasl.kerberos.ticket.renew.window.factor", REMARKED, "0.8", JVM_ONLY},
    {"sasl.oauthbearer.header.urlencode", REMARKED, "false", "librdkafka sends client id and secret as they are; ignored"},
    {"sasl.oauthbearer.scope.claim.name", REMARKED, "scope", "tokens are checked by the broker; ignored"},
    {"sasl.oauthbearer.sub.claim.name", REMARKED, "sub", "tokens are checked by the broker; ignored"},
};

static const struct rule ssl_rules[] = {
    {"ssl.engine.factory.class", REFUSED, "DefaultSslEngineFactory",
     "Java classes can't run here; give the certificates with ssl.truststore.type=PEM and ssl.keystore.type=PEM"},
    {"ssl.protocol", REFUSED, "TLSv1.3,TLS",
     "TLS 1.2 and 1.3 are always on; remove it, and limit versions with MinProtocol and MaxProtocol in openssl.cnf"},
    {"ssl.provider", REMARKED, "", JVM_ONLY},
    {"ssl.keymanager.algorithm", REMARKED, "SunX509,PKIX", JVM_ONLY},
    {"ssl.trustmanager.algorithm", REMARKED, "PKIX,SunX509", JVM_ONLY},
    {"ssl.secure.random.implementation", REMARKED, "", JVM_ONLY},
};

static int refuse(struct client_map *m, const char *java, const char *text)
{
    return mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s can't be honoured: %s", java, text);
}

static bool is_fine(const char *list, const char *value)
{
    const char *simple = strrchr(value, '.');
    const char *item;
    size_t len;

    while (client_map_item(&list, &item, &len)) {
        if (client_map_is(item, len, value))
            return true;
        if (simple != NULL && strncmp(value, KAFKA_PACKAGE, strlen(KAFKA_PACKAGE)) == 0 &&
            client_map_is(item, len, simple + 1))
            return true;
    }
    return false;
}

static int apply_rules(struct client_map *m, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = client_map_get(m, rules[i].java);

        if (value == NULL || value[0] == '\0' || is_fine(rules[i].fine, value))
            continue;
        if (rules[i].verdict == REFUSED)
            return refuse(m, rules[i].java, rules[i].text);
        client_map_remark(m, rules[i].java, "%s", rules[i].text);
    }
    return 0;
}

static bool library_has(const char *feature)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char list[512] = "";
    size_t size = sizeof(list);
    const char *at = list;
    const char *item;
    size_t len;
    bool found = false;

    rd_kafka_conf_get(conf, "builtin.features", list, &size);
    rd_kafka_conf_destroy(conf);
    while (!found && client_map_item(&at, &item, &len))
        found = client_map_is(item, len, feature);
    return found;
}

static int need_feature(struct client_map *m, const char *java, const char *feature, const char *what)
{
    if (library_has(feature))
        return 0;
    return mr_fail(m->err, MR_ERR_CONFIG,
                   "Configuration %s can't be honoured: librdkafka %s is built without %s; install one that has it, or use "
                   "another sasl.mechanism",
                   java, rd_kafka_version_str(), what);
}

/* --- SASL ------------------------------------------------------------------------------------------------------------- */

static const struct mechanism {
    const char *name;
    const char *feature;
    enum client_conf_module module;
} mechanisms[] = {
    {"GSSAPI", "sasl_gssapi", CLIENT_CONF_KERBEROS},         {"PLAIN", "sasl_plain", CLIENT_CONF_PASSWORD},
    {"SCRAM-SHA-256", "sasl_scram", CLIENT_CONF_PASSWORD},   {"SCRAM-SHA-512", "sasl_scram", CLIENT_CONF_PASSWORD},
    {"OAUTHBEARER", "sasl_oauthbearer", CLIENT_CONF_OAUTH},
};

/* What the login module said, put unless a setting of its own overrides it. */
static int put_jaas(struct client_map *m, const struct props *jaas)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < jaas->count; i++)
        rc = client_map_put(m, "sasl.jaas.config", jaas->entries[i].key, jaas->entries[i].value);
    return rc;
}

static int apply_password(struct client_map *m, const char *mechanism, struct props *jaas)
{
    const char *user = props_get(jaas, "sasl.username");
    const char *password = props_get(jaas, "sasl.password");

    if (user == NULL || password == NULL)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "sasl.mechanism %s needs username and password in sasl.jaas.config: \"org.apache.kafka.common."
                       "security.%s required username=\\\"…\\\" password=\\\"…\\\";\"",
                       mechanism, mechanism[0] == 'P' ? "plain.PlainLoginModule" : "scram.ScramLoginModule");
    return put_jaas(m, jaas);
}

/* Without key table the tickets of the environment are used, and librdkafka must not run kinit. */
static int apply_kerberos(struct client_map *m, struct props *jaas)
{
    const char *setting = client_map_get(m, "sasl.kerberos.service.name");
    const char *service = props_get(jaas, "sasl.kerberos.service.name");
    const char *relogin = client_map_get(m, "sasl.kerberos.min.time.before.relogin");
    int64_t ms = 60000;
    char text[24];
    int rc;

    if (setting != NULL && service != NULL && strcmp(setting, service) != 0)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "Conflicting serviceName values found in JAAS and Kafka configs value in sasl.jaas.config and "
                       "sasl.kerberos.service.name: remove one");
    if (setting == NULL && service == NULL)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "No serviceName defined in either sasl.jaas.config or sasl.kerberos.service.name");
    if (relogin != NULL && (!client_map_long(relogin, &ms) || ms < 0))
        return client_map_invalid(m, "sasl.kerberos.min.time.before.relogin", relogin, "Not a number of type LONG");
    ms = ms < 1 ? 1 : ms > 86400000 ? 86400000 : ms;
    snprintf(text, sizeof(text), "%lld", props_get(jaas, "sasl.kerberos.keytab") != NULL ? (long long)ms : 0LL);
    rc = put_jaas(m, jaas);
    if (rc == 0 && setting != NULL)
        rc = client_map_put(m, "sasl.kerberos.service.name", "sasl.kerberos.service.name", setting);
    return rc != 0 ? rc
                   : client_map_put(m, "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.min.time.before.relogin",
                                    text);
}

static int put_oidc(struct client_map *m, const struct props *jaas, const char *java, const char *rdkafka, bool needed)
{
    const char *value = client_map_get(m, java);

    if (value == NULL)
        value = props_get(jaas, rdkafka);
    if (value == NULL && needed)
        return mr_fail(m->err, MR_ERR_CONFIG, "sasl.mechanism OAUTHBEARER with a token endpoint needs %s, or the same in "
                                              "sasl.jaas.config",
                       java);
    return value != NULL ? client_map_put(m, java, rdkafka, value) : 0;
}

static int apply_oidc(struct client_map *m, const char *url, const struct props *jaas)
{
    const char *extensions = props_get(jaas, "sasl.oauthbearer.extensions");
    int rc;

    if (url == NULL)
        return mr_fail(m->err, MR_ERR_CONFIG, "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url");
    if (strncasecmp(url, "https://", 8) != 0 && strncasecmp(url, "http://", 7) != 0)
        return client_map_invalid(m, "sasl.oauthbearer.token.endpoint.url", url, "librdkafka takes http and https only");
    rc = need_feature(m, "sasl.oauthbearer.token.endpoint.url", "oidc", "OIDC (libcurl)");
    if (rc == 0)
        rc = client_map_put(m, "sasl.mechanism", "sasl.oauthbearer.method", "oidc");
    if (rc == 0)
        rc = client_map_put(m, "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.token.endpoint.url", url);
    if (rc == 0)
        rc = put_oidc(m, jaas, "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id", true);
    if (rc == 0)
        rc = put_oidc(m, jaas, "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret",
                      true);
    if (rc == 0)
        rc = put_oidc(m, jaas, "sasl.oauthbearer.scope", "sasl.oauthbearer.scope", false);
    if (rc == 0 && extensions != NULL)
        rc = client_map_put(m, "sasl.jaas.config", "sasl.oauthbearer.extensions", extensions);
    return rc;
}

static int apply_oauth(struct client_map *m, struct props *jaas)
{
    const char *url = client_map_get(m, "sasl.oauthbearer.token.endpoint.url");
    const char *handler = client_map_get(m, "sasl.login.callback.handler.class");

    if (url == NULL && handler == NULL && props_get(jaas, "sasl.oauthbearer.client.id") == NULL) {
        if (props_get(jaas, "enable.sasl.oauthbearer.unsecure.jwt") == NULL)
            return mr_fail(m->err, MR_ERR_CONFIG,
                           "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, or for tests an "
                           "unsecuredLoginStringClaim_sub in sasl.jaas.config");
        props_remove(jaas, "sasl.oauthbearer.extensions"); /* stand in sasl.oauthbearer.config */
        return put_jaas(m, jaas);
    }
    return apply_oidc(m, url, jaas);
}

static int apply_mechanism(struct client_map *m, const struct mechanism *mechanism, const char *text)
{
    enum client_conf_module module = mechanism->module;
    struct props jaas;
    int rc = 0;

    props_init(&jaas);
    if (text != NULL)
        rc = client_conf_jaas_module(text, &jaas, &module, m->err);
    if (rc == 0 && module != mechanism->module)
        rc = mr_fail(m->err, MR_ERR_CONFIG, "The login module in sasl.jaas.config does not go with sasl.mechanism %s",
                     mechanism->name);
    if (rc == 0 && module == CLIENT_CONF_PASSWORD)
        rc = apply_password(m, mechanism->name, &jaas);
    else if (rc == 0 && module == CLIENT_CONF_KERBEROS)
        rc = apply_kerberos(m, &jaas);
    else if (rc == 0)
        rc = apply_oauth(m, &jaas);
    props_deinit(&jaas);
    return rc;
}

static int apply_sasl(struct client_map *m)
{
    const char *name = client_map_get(m, "sasl.mechanism");
    const struct mechanism *mechanism = NULL;
    int rc = apply_rules(m, sasl_rules, sizeof(sasl_rules) / sizeof(*sasl_rules));

    if (rc != 0)
        return rc;
    name = name != NULL ? name : "GSSAPI";
    for (size_t i = 0; i < sizeof(mechanisms) / sizeof(*mechanisms); i++)
        if (strcmp(mechanisms[i].name, name) == 0)
            mechanism = &mechanisms[i];
    if (mechanism == NULL)
        return client_map_invalid(m, "sasl.mechanism", name,
                                  "use one of GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER");
    rc = need_feature(m, "sasl.mechanism", mechanism->feature, mechanism->name);
    if (rc == 0)
        rc = client_map_put(m, "sasl.mechanism", "sasl.mechanism", mechanism->name);
    return rc != 0 ? rc : apply_mechanism(m, mechanism, client_map_get(m, "sasl.jaas.config"));
}

/* --- TLS: stores ------------------------------------------------------------------------------------------------------- */

/* Read a PEM file and see what it holds. */
static int look_into(struct client_map *m, const char *java, const char *path, struct client_pem *found)
{
    struct mr_error why = {0};
    struct buf text;
    int rc;

    buf_init(&text, PEM_MAX);
    rc = file_read(path, &text, &why);
    if (rc != 0)
        rc = mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s: %s", java, why.text);
    else if (!client_pem_normalize(text.data != NULL ? text.data : "", text.len, NULL, found))
        rc = mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s: %s is not a PEM file", java, path);
    buf_deinit(&text);
    return rc;
}

static int put_pem(struct client_map *m, const char *java, const char *rdkafka, const char *text,
                   struct client_pem *found)
{
    struct buf out;
    int rc;

    buf_init(&out, 2 * PEM_MAX);
    if (client_pem_normalize(text, strlen(text), &out, found))
        rc = client_map_put(m, java, rdkafka, out.data);
    else
        rc = client_map_invalid(m, java, text, "not PEM");
    buf_deinit(&out);
    return rc;
}

static bool given(const struct client_map *m, const char *java)
{
    const char *value = client_map_get(m, java);

    return value != NULL && value[0] != '\0';
}

static int apply_truststore(struct client_map *m)
{
    const char *type = given(m, "ssl.truststore.type") ? client_map_get(m, "ssl.truststore.type") : "JKS";
    const char *path = client_map_get(m, "ssl.truststore.location");
    bool pem = strcasecmp(type, "PEM") == 0;
    struct client_pem found;
    int rc;

    if (given(m, "ssl.truststore.certificates")) {
        if (!pem || given(m, "ssl.truststore.location"))
            return refuse(m, "ssl.truststore.certificates",
                          pem ? "Both SSL trust store location and certificates are specified; remove one"
                              : "it goes with ssl.truststore.type=PEM only");
        rc = put_pem(m, "ssl.truststore.certificates", "ssl.ca.pem", client_map_get(m, "ssl.truststore.certificates"),
                     &found);
        if (rc == 0 && found.certificates == 0)
            rc = refuse(m, "ssl.truststore.certificates", "it holds no certificate");
        return rc;
    }
    if (!given(m, "ssl.truststore.location"))
        return 0;
    if (!pem)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "Configuration ssl.truststore.location can't be honoured: a trust store of type %.20s can't be read "
                       "here; convert it to PEM: keytool -list -rfc -keystore %.200s > ca.pem, then set "
                       "ssl.truststore.type=PEM and ssl.truststore.location=…/ca.pem",
                       type, path);
    if (given(m, "ssl.truststore.password"))
        return refuse(m, "ssl.truststore.password", "SSL trust store password cannot be specified for PEM format");
    rc = look_into(m, "ssl.truststore.location", path, &found);
    if (rc == 0 && found.certificates == 0)
        rc = refuse(m, "ssl.truststore.location", "the file holds no certificate");
    return rc != 0 ? rc : client_map_put(m, "ssl.truststore.location", "ssl.ca.location", path);
}

static int check_key(struct client_map *m, const char *java, const struct client_pem *found)
{
    if (found->keys != 1)
        return refuse(m, java, found->keys == 0 ? "no private key is found" : "more than one private key is found");
    if (found->encrypted && !given(m, "ssl.key.password"))
        return refuse(m, java, "the private key is encrypted; set ssl.key.password");
    return 0;
}

/* Key and chain in one file: librdkafka finds each by its marks, and takes the whole chain only from a file. */
static int apply_pem_file(struct client_map *m, const char *path)
{
    struct client_pem found;
    int rc;

    if (given(m, "ssl.keystore.password"))
        return refuse(m, "ssl.keystore.password",
                      "SSL key store password cannot be specified with PEM format, only key password may be specified");
    rc = look_into(m, "ssl.keystore.location", path, &found);
    if (rc == 0)
        rc = check_key(m, "ssl.keystore.location", &found);
    if (rc == 0 && found.certificates == 0)
        rc = refuse(m, "ssl.keystore.location", "the file holds no certificate");
    if (rc == 0)
        rc = client_map_put(m, "ssl.keystore.location", "ssl.certificate.location", path);
    return rc != 0 ? rc : client_map_put(m, "ssl.keystore.location", "ssl.key.location", path);
}

static int apply_pem_text(struct client_map *m)
{
    struct client_pem key;
    struct client_pem chain;
    int rc;

    if (!given(m, "ssl.keystore.key") || !given(m, "ssl.keystore.certificate.chain"))
        return refuse(m, given(m, "ssl.keystore.key") ? "ssl.keystore.key" : "ssl.keystore.certificate.chain",
                      "SSL certificate chain and private key must be specified together");
    rc = put_pem(m, "ssl.keystore.key", "ssl.key.pem", client_map_get(m, "ssl.keystore.key"), &key);
    if (rc == 0)
        rc = check_key(m, "ssl.keystore.key", &key);
    if (rc == 0)
        rc = put_pem(m, "ssl.keystore.certificate.chain", "ssl.certificate.pem",
                     client_map_get(m, "ssl.keystore.certificate.chain"), &chain);
    if (rc == 0 && chain.certificates != 1)
        rc = refuse(m, "ssl.keystore.certificate.chain",
                    "librdkafka takes one certificate as text; put key and chain into one PEM file and name it in "
                    "ssl.keystore.location");
    return rc;
}

static int apply_keystore(struct client_map *m)
{
    const char *type = given(m, "ssl.keystore.type") ? client_map_get(m, "ssl.keystore.type") : "JKS";
    const char *path = client_map_get(m, "ssl.keystore.location");
    bool text = given(m, "ssl.keystore.key") || given(m, "ssl.keystore.certificate.chain");
    int rc = 0;

    if (text && (strcasecmp(type, "PEM") != 0 || given(m, "ssl.keystore.location")))
        return refuse(m, "ssl.keystore.key", "it goes with ssl.keystore.type=PEM and without ssl.keystore.location");
    if (given(m, "ssl.key.password") && (text || given(m, "ssl.keystore.location")))
        rc = client_map_put(m, "ssl.key.password", "ssl.key.password", client_map_get(m, "ssl.key.password"));
    if (rc != 0 || (!text && !given(m, "ssl.keystore.location")))
        return rc;
    if (text)
        return apply_pem_text(m);
    if (strcasecmp(type, "PEM") == 0)
        return apply_pem_file(m, path);
    if (strcasecmp(type, "PKCS12") != 0)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "Configuration ssl.keystore.location can't be honoured: a key store of type %.20s can't be read "
                       "here; convert it: keytool -importkeystore -srckeystore %.200s -destkeystore key.p12 "
                       "-deststoretype PKCS12, then set ssl.keystore.type=PKCS12 and ssl.keystore.location=…/key.p12",
                       type, path);
    rc = client_map_put(m, "ssl.keystore.location", "ssl.keystore.location", path);
    if (rc == 0 && given(m, "ssl.keystore.password"))
        rc = client_map_put(m, "ssl.keystore.password", "ssl.keystore.password",
                            client_map_get(m, "ssl.keystore.password"));
    return rc;
}

/* --- TLS: ciphers and versions ----------------------------------------------------------------------------------------- */

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

/* Always offered by OpenSSL unless its own configuration says otherwise; librdkafka can't limit them. */
static const char *const tls13[] = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"};

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
                         "Configuration ssl.cipher.suites can't be honoured: the suite %.*s is not known here; name suites "
                         "as Java does, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                         (int)(len > 60 ? 60 : len), item);
    }
    if (rc == 0 && (newer > 0 ? newer < 3 || out.len == 0 : out.len > 0))
        rc = refuse(m, "ssl.cipher.suites",
                    "librdkafka can limit the suites of TLS 1.2 only; list all three of TLS 1.3 besides (TLS_AES_256_GCM_"
                    "SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256), or use Ciphersuites in openssl.cnf");
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
    return refuse(m, "ssl.enabled.protocols",
                  "TLSv1.2 and TLSv1.3 are both always on; remove it, and limit versions with MinProtocol and MaxProtocol in "
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
        return client_map_invalid(m, "ssl.endpoint.identification.algorithm", value, "use https, or nothing to switch it off");
    return client_map_put(m, "ssl.endpoint.identification.algorithm", "ssl.endpoint.identification.algorithm", value);
}

static int apply_ssl(struct client_map *m)
{
    static int (*const steps[])(struct client_map *) = {apply_versions,   apply_identification, apply_ciphers,
                                                        apply_truststore, apply_keystore};
    int rc = need_feature(m, "security.protocol", "ssl", "TLS");

    if (rc == 0)
        rc = apply_rules(m, ssl_rules, sizeof(ssl_rules) / sizeof(*ssl_rules));
    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](m);
    return rc;
}

/* --- the whole --------------------------------------------------------------------------------------------------------- */

/* The classic slip: credentials are there, but the protocol has no use for them. */
static void remark_unused(struct client_map *m, const char *protocol, const char *const *names)
{
    if (m->kind == CLIENT_ADMIN) /* gets the worker's settings, those of its REST listeners among them */
        return;
    for (; *names != NULL; names++)
        if (given(m, *names))
            client_map_remark(m, *names, "has no effect with security.protocol=%s", protocol);
}

int client_security_apply(struct client_map *m)
{
    static const char *const sasl_names[] = {"sasl.mechanism", "sasl.jaas.config", NULL};
    static const char *const ssl_names[] = {"ssl.truststore.location", "ssl.truststore.certificates", "ssl.keystore.location",
                                            "ssl.keystore.key", NULL};
    static const char *const protocols[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};
    const char *value = client_map_get(m, "security.protocol");
    const char *protocol = NULL;
    int rc = 0;

    for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
        if (strcasecmp(protocols[i], value != NULL ? value : "PLAINTEXT") == 0)
            protocol = protocols[i];
    if (protocol == NULL)
        return client_map_invalid(m, "security.protocol", value,
                                  "String must be one of (case insensitive): PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL");
    m->given = true;
    if (given(m, "security.providers"))
        return refuse(m, "security.providers", "Java security providers can't run here; remove it");
    rc = client_map_put(m, "security.protocol", "security.protocol", protocol);
    if (rc == 0 && strncmp(protocol, "SASL_", 5) == 0)
        rc = apply_sasl(m);
    else if (rc == 0)
        remark_unused(m, protocol, sasl_names);
    if (rc == 0 && strstr(protocol, "SSL") != NULL)
        rc = apply_ssl(m);
    else if (rc == 0)
        remark_unused(m, protocol, ssl_names);
    m->given = false;
    return rc;
}
