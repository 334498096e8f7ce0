/* SPDX-License-Identifier: Apache-2.0 */
/* security.protocol and sasl.* of a Java client, as librdkafka's; ssl.* is in client_tls.c.
 *
 * What protects the connection is either honoured or refused with its remedy, never weakened in
 * silence: classes, mechanisms that this librdkafka lacks, commands. Settings that merely tune are
 * remarked on. Nothing here is looked at unless security.protocol makes use of it, as in Java.
 * Called by client_conf_map. Spec: reference worker-config 9.1 and 9.2. */
#include "kafka/kafka_private.h"

#include <string.h>
#include <strings.h>

#define JVM_ONLY "has a meaning only inside a JVM; ignored"
#define NO_CLASSES \
    "Java classes can't run here; remove it and give user and password, or client id and secret, " \
    "in sasl.jaas.config"
#define NO_ASSERTION "logins by assertion are not spoken here; use client id and secret"
#define REFRESH \
    "librdkafka asks for a token after four fifths of the life of the one before; ignored"

static const struct client_map_rule sasl_rules[] = {
    {"sasl.login.class", CLIENT_MAP_REFUSED, "", NO_CLASSES},
    {"sasl.client.callback.handler.class", CLIENT_MAP_REFUSED, "", NO_CLASSES},
    {"sasl.login.callback.handler.class", CLIENT_MAP_REFUSED, "OAuthBearerLoginCallbackHandler",
     NO_CLASSES},
    {"sasl.oauthbearer.jwt.retriever.class", CLIENT_MAP_REFUSED,
     "DefaultJwtRetriever,ClientCredentialsJwtRetriever", NO_CLASSES},
    {"sasl.oauthbearer.jwt.validator.class", CLIENT_MAP_REFUSED,
     "DefaultJwtValidator,ClientJwtValidator", NO_CLASSES},
    {"sasl.oauthbearer.assertion.file", CLIENT_MAP_REFUSED, "", NO_ASSERTION},
    {"sasl.oauthbearer.assertion.private.key.file", CLIENT_MAP_REFUSED, "", NO_ASSERTION},
    {"sasl.oauthbearer.assertion.template.file", CLIENT_MAP_REFUSED, "", NO_ASSERTION},
    {"sasl.kerberos.kinit.cmd", CLIENT_MAP_REFUSED, "/usr/bin/kinit,kinit",
     "the command can't be chosen; remove it and have kinit in the PATH of the worker"},
    {"sasl.login.refresh.buffer.seconds", CLIENT_MAP_REMARKED, "300", REFRESH},
    {"sasl.login.refresh.min.period.seconds", CLIENT_MAP_REMARKED, "60", REFRESH},
    {"sasl.login.refresh.window.factor", CLIENT_MAP_REMARKED, "0.8", REFRESH},
    {"sasl.login.refresh.window.jitter", CLIENT_MAP_REMARKED, "0.05", REFRESH},
    {"sasl.kerberos.ticket.renew.jitter", CLIENT_MAP_REMARKED, "0.05", JVM_ONLY},
    {"sasl.kerberos.ticket.renew.window.factor", CLIENT_MAP_REMARKED, "0.8", JVM_ONLY},
    {"sasl.oauthbearer.scope.claim.name", CLIENT_MAP_REMARKED, "scope",
     "tokens are checked by the broker; ignored"},
    {"sasl.oauthbearer.sub.claim.name", CLIENT_MAP_REMARKED, "sub",
     "tokens are checked by the broker; ignored"},
};

/* --- SASL ------------------------------------------------------------------------------------- */

static const struct mechanism {
    const char *name;
    const char *feature;
    enum jaas_module module;
} mechanisms[] = {
    {"GSSAPI", "sasl_gssapi", JAAS_KERBEROS},        {"PLAIN", "sasl_plain", JAAS_PASSWORD},
    {"SCRAM-SHA-256", "sasl_scram", JAAS_PASSWORD},  {"SCRAM-SHA-512", "sasl_scram", JAAS_PASSWORD},
    {"OAUTHBEARER", "sasl_oauthbearer", JAAS_OAUTH},
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
                       "sasl.mechanism %s needs username and password in sasl.jaas.config: "
                       "\"org.apache.kafka.common."
                       "security.%s required username=\\\"…\\\" password=\\\"…\\\";\"",
                       mechanism,
                       mechanism[0] == 'P' ? "plain.PlainLoginModule" : "scram.ScramLoginModule");
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
                       "Conflicting serviceName values found in JAAS and Kafka configs value in "
                       "sasl.jaas.config and "
                       "sasl.kerberos.service.name: remove one");
    if (setting == NULL && service == NULL)
        return mr_fail(
            m->err, MR_ERR_CONFIG,
            "No serviceName defined in either sasl.jaas.config or sasl.kerberos.service.name");
    if (relogin != NULL && (!client_map_long(relogin, &ms) || ms < 0))
        return client_map_invalid(m, "sasl.kerberos.min.time.before.relogin", relogin,
                                  "Not a number of type LONG");
    ms = ms < 1 ? 1 : ms > 86400000 ? 86400000 : ms;
    snprintf(text, sizeof(text), "%lld",
             props_get(jaas, "sasl.kerberos.keytab") != NULL ? (long long)ms : 0LL);
    rc = put_jaas(m, jaas);
    if (rc == 0 && setting != NULL)
        rc = client_map_put(m, "sasl.kerberos.service.name", "sasl.kerberos.service.name", setting);
    return rc != 0 ? rc
                   : client_map_put(m, "sasl.kerberos.min.time.before.relogin",
                                    "sasl.kerberos.min.time.before.relogin", text);
}

static int apply_oauth(struct client_map *m, struct props *jaas)
{
    const char *url = client_map_get(m, "sasl.oauthbearer.token.endpoint.url");
    const char *handler = client_map_get(m, "sasl.login.callback.handler.class");

    if (url == NULL && handler == NULL && props_get(jaas, "sasl.oauthbearer.client.id") == NULL) {
        if (props_get(jaas, "enable.sasl.oauthbearer.unsecure.jwt") == NULL)
            return mr_fail(m->err, MR_ERR_CONFIG,
                           "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, "
                           "or for tests an "
                           "unsecuredLoginStringClaim_sub in sasl.jaas.config");
        props_remove(jaas, "sasl.oauthbearer.extensions"); /* stand in sasl.oauthbearer.config */
        return put_jaas(m, jaas);
    }
    return client_token_apply(m, jaas);
}

static int apply_mechanism(struct client_map *m, const struct mechanism *mechanism,
                           const char *text)
{
    enum jaas_module module = mechanism->module;
    struct props jaas;
    int rc = 0;

    props_init(&jaas);
    if (text != NULL)
        rc = jaas_parse(text, &jaas, &module, m->err);
    if (rc == 0 && module != mechanism->module)
        rc = mr_fail(m->err, MR_ERR_CONFIG,
                     "The login module in sasl.jaas.config does not go with sasl.mechanism %s",
                     mechanism->name);
    if (rc == 0 && module == JAAS_PASSWORD)
        rc = apply_password(m, mechanism->name, &jaas);
    else if (rc == 0 && module == JAAS_KERBEROS)
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
    int rc = client_map_rules(m, sasl_rules, sizeof(sasl_rules) / sizeof(*sasl_rules));

    if (rc != 0)
        return rc;
    name = name != NULL ? name : "GSSAPI";
    for (size_t i = 0; i < sizeof(mechanisms) / sizeof(*mechanisms); i++)
        if (strcmp(mechanisms[i].name, name) == 0)
            mechanism = &mechanisms[i];
    if (mechanism == NULL)
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "Invalid value %.200s for configuration sasl.mechanism: use one of GSSAPI, "
                       "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
                       name);
    rc = client_map_feature(m, "sasl.mechanism", mechanism->feature, mechanism->name);
    if (strncmp(name, "SCRAM", 5) == 0 && rd_kafka_version() < KAFKA_SCRAM_VERSION)
        client_map_remark(m, "sasl.mechanism", KAFKA_SCRAM_TEXT);
    if (rc == 0)
        rc = client_map_put(m, "sasl.mechanism", "sasl.mechanism", mechanism->name);
    return rc != 0 ? rc : apply_mechanism(m, mechanism, client_map_get(m, "sasl.jaas.config"));
}

/* --- the whole -------------------------------------------------------------------------------- */

/* The classic slip: credentials are there, but the protocol has no use for them. */
static void remark_unused(struct client_map *m, const char *protocol, const char *const *names)
{
    /* Gets the worker's settings, those of its REST listeners among them. */
    if (m->kind == CLIENT_ADMIN)
        return;
    for (; *names != NULL; names++)
        if (client_map_given(m, *names))
            client_map_remark(m, *names, "has no effect with security.protocol=%s", protocol);
}

int client_security_apply(struct client_map *m)
{
    static const char *const sasl_names[] = {"sasl.mechanism", "sasl.jaas.config", NULL};
    static const char *const ssl_names[] = {"ssl.truststore.location",
                                            "ssl.truststore.certificates", "ssl.keystore.location",
                                            "ssl.keystore.key", NULL};
    static const char *const protocols[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};
    const char *value = client_map_get(m, "security.protocol");
    const char *protocol = NULL;
    int rc = 0;

    for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
        if (strcasecmp(protocols[i], value != NULL ? value : "PLAINTEXT") == 0)
            protocol = protocols[i];
    if (protocol == NULL)
        return client_map_invalid(
            m, "security.protocol", value,
            "String must be one of (case insensitive): PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL");
    m->given = true;
    if (client_map_given(m, "security.providers"))
        return client_map_refuse(m, "security.providers",
                                 "Java security providers can't run here; remove it");
    rc = client_map_put(m, "security.protocol", "security.protocol", protocol);
    if (rc == 0 && strncmp(protocol, "SASL_", 5) == 0)
        rc = apply_sasl(m);
    else if (rc == 0)
        remark_unused(m, protocol, sasl_names);
    if (rc == 0 && strstr(protocol, "SSL") != NULL)
        rc = client_tls_apply(m);
    else if (rc == 0)
        remark_unused(m, protocol, ssl_names);
    m->given = false;
    return rc;
}
