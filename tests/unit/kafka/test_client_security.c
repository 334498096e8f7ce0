/* SPDX-License-Identifier: Apache-2.0 */
/* Security settings: what is honoured, and that what is not ends in an error that names the
 * remedy. */
#include "mapped.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No real ones: nothing here looks into them. */
#define CERT "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN PRIVATE KEY-----\nTUlJRQ==\n-----END PRIVATE KEY-----\n"
#define CRYPTED \
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\nTUlJRg==\n-----END ENCRYPTED PRIVATE KEY-----\n"
#define PLAIN \
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" " \
    "password=\"hunter2\";"

/* A file with this text; gone at the end of the run. */
static const char *file(const char *text)
{
    static char path[64];
    int fd;

    snprintf(path, sizeof(path), "/tmp/test-security-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void passwords_log_in_by_plain_and_scram(void **state)
{
    struct mapped *m = MAP(CLIENT_PRODUCER, "security.protocol", "sasl_plaintext", "sasl.mechanism",
                           "PLAIN", "sasl.jaas.config", PLAIN);

    mapped_silent(m);
    mapped_value(m, "security.protocol", "SASL_PLAINTEXT");
    mapped_value(m, "sasl.mechanism", "PLAIN");
    mapped_value(m, "sasl.username", "u");
    mapped_value(m, "sasl.password", "hunter2");
    m = MAP(CLIENT_CONSUMER, "security.protocol", "SASL_SSL", "sasl.mechanism", "SCRAM-SHA-512",
            "sasl.jaas.config",
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"u\" "
            "password=\"p\";");
    if (rd_kafka_version() < 0x020601ff) /* and says why a login may fail */
        mapped_remark(m, "sasl.mechanism: newer brokers (seen on Kafka 4.3.1) refuse SCRAM");
    else
        mapped_silent(m);
    mapped_value(m, "sasl.mechanism", "SCRAM-SHA-512");
    mapped_value(m, "ssl.endpoint.identification.algorithm", "https");
}

static void what_cannot_log_in_is_refused_with_a_remedy(void **state)
{
#define SASL(...) MAP(CLIENT_PRODUCER, "security.protocol", "SASL_PLAINTEXT", __VA_ARGS__)
    mapped_refused(SASL("sasl.mechanism", "AWS_MSK_IAM"), "sasl.mechanism", "SCRAM-SHA-512", NULL);
    mapped_refused(SASL("sasl.mechanism", "PLAIN"), "needs username and password",
                   "PlainLoginModule", NULL);
    mapped_refused(
        SASL("sasl.mechanism", "PLAIN", "sasl.jaas.config", "com.example.IamLoginModule required;"),
        "sasl.jaas.config", "IamLoginModule can't run here", NULL);
    mapped_refused(SASL("sasl.mechanism", "OAUTHBEARER", "sasl.jaas.config", PLAIN), "OAUTHBEARER",
                   NULL);
    mapped_refused(
        SASL("sasl.mechanism", "PLAIN", "sasl.jaas.config", PLAIN, "sasl.login.class", "com.x.Y"),
        "sasl.login.class", "remove it", NULL);
    mapped_refused(SASL("sasl.mechanism", "PLAIN", "sasl.jaas.config", PLAIN,
                        "sasl.login.callback.handler.class", "com.x.Y"),
                   "sasl.login.callback.handler.class", NULL);
    mapped_refused(SASL("sasl.mechanism", "PLAIN", "sasl.jaas.config", PLAIN,
                        "sasl.client.callback.handler.class",
                        "com.x.OAuthBearerLoginCallbackHandler"),
                   "sasl.client.callback.handler.class", NULL);
    mapped_refused(
        SASL("sasl.mechanism", "PLAIN", "sasl.jaas.config", PLAIN, "security.providers", "com.x.Y"),
        "security.providers", NULL);
    mapped_refused(MAP(CLIENT_ADMIN, "security.protocol", "TLS"), "security.protocol", "SASL_SSL",
                   NULL);
}

static void kerberos_needs_a_service_and_no_command(void **state)
{
    struct mapped *m =
        SASL("sasl.kerberos.service.name", "kafka", "sasl.jaas.config",
             "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=\"/k\" "
             "principal=\"me@R\";");

    mapped_silent(m);
    mapped_value(m, "sasl.mechanism", "GSSAPI");
    mapped_value(m, "sasl.kerberos.keytab", "/k");
    mapped_value(m, "sasl.kerberos.principal", "me@R");
    mapped_value(m, "sasl.kerberos.min.time.before.relogin", "60000");
    mapped_unset(m, "sasl.kerberos.kinit.cmd");
    m = SASL("sasl.kerberos.service.name", "kafka");
    mapped_value(m, "sasl.kerberos.min.time.before.relogin",
                 "0"); /* tickets of the environment: no kinit */
    mapped_refused(SASL("sasl.mechanism", "GSSAPI"), "No serviceName", NULL);
    mapped_refused(
        SASL("sasl.kerberos.service.name", "kafka", "sasl.kerberos.kinit.cmd", "/bin/sh -c id"),
        "sasl.kerberos.kinit.cmd", "PATH", NULL);
    mapped_silent(
        SASL("sasl.kerberos.service.name", "kafka", "sasl.kerberos.kinit.cmd", "/usr/bin/kinit"));
}

static void tokens_need_an_endpoint_and_credentials(void **state)
{
    struct mapped *m = SASL("sasl.mechanism", "OAUTHBEARER", "sasl.jaas.config",
                            "OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"a\";");

    mapped_silent(m);
    mapped_value(m, "enable.sasl.oauthbearer.unsecure.jwt", "true");
    mapped_refused(SASL("sasl.mechanism", "OAUTHBEARER"), "sasl.oauthbearer.token.endpoint.url",
                   NULL);
    mapped_refused(
        SASL("sasl.mechanism", "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url", "file:///t"),
        "http", NULL);
    mapped_refused(SASL("sasl.mechanism", "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url",
                        "https://t", "sasl.oauthbearer.assertion.file", "/x"),
                   "sasl.oauthbearer.assertion.file", NULL);
    m = SASL(
        "sasl.mechanism", "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url", "https://t/token",
        "sasl.login.callback.handler.class",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config",
        "OAuthBearerLoginModule required clientId=\"i\" clientSecret=\"hunter2\" scope=\"s\";");
    mapped_silent(m);
    mapped_value(
        m, "sasl.oauthbearer.config",
        "-{\"settings\":{\"sasl.oauthbearer.token.endpoint.url\":\"https://t/token\"},\"jaas\":{"
        "\"sasl.oauthbearer.client.id\":\"i\",\"sasl.oauthbearer.client.secret\":\"hunter2\","
        "\"sasl.oauthbearer.scope\":\"s\"}}");
    mapped_unset(m, "enable.sasl.oauthbearer.unsecure.jwt");
    mapped_silent(SASL("sasl.mechanism", "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url",
                       "https://t", "sasl.oauthbearer.client.credentials.client.id", "i",
                       "sasl.oauthbearer.client.credentials.client.secret", "hunter2",
                       "sasl.oauthbearer.header.urlencode", "true", "sasl.login.read.timeout.ms",
                       "5"));
    mapped_remark(SASL("sasl.mechanism", "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url",
                       "https://t", "sasl.oauthbearer.client.credentials.client.id", "i",
                       "sasl.oauthbearer.client.credentials.client.secret", "hunter2",
                       "sasl.login.refresh.window.factor", "0.7"),
                  "four fifths");
}

#define SSL(...) MAP(CLIENT_CONSUMER, "security.protocol", "SSL", __VA_ARGS__)

static void trust_comes_from_pem_only(void **state)
{
    const char *path = file("some words\n" CERT CERT);
    struct mapped *m = SSL("ssl.truststore.type", "PEM", "ssl.truststore.location", path);

    mapped_silent(m);
    mapped_value(m, "ssl.ca.location", path);
    unlink(path);
    mapped_refused(SSL("ssl.truststore.type", "PEM", "ssl.truststore.location", path),
                   "ssl.truststore.location", path, NULL);
    mapped_refused(
        SSL("ssl.truststore.location", "/etc/trust.jks", "ssl.truststore.password", "hunter2"),
        "ssl.truststore.location", "keytool -list -rfc -keystore /etc/trust.jks",
        "ssl.truststore.type=PEM", NULL);
    mapped_refused(SSL("ssl.truststore.type", "PKCS12", "ssl.truststore.location", "/t.p12"),
                   "PKCS12", "convert it to PEM", NULL);
    path = file(KEY);
    mapped_refused(SSL("ssl.truststore.type", "PEM", "ssl.truststore.location", path),
                   "no certificate", NULL);
    unlink(path);
    path = file("PK\x03\x04 not PEM");
    mapped_refused(SSL("ssl.truststore.type", "PEM", "ssl.truststore.location", path),
                   "not a PEM file", NULL);
    unlink(path);
}

/* As it comes out of a properties file: one line. OpenSSL wants several. */
static void certificates_on_one_line_get_their_lines_back(void **state)
{
    struct mapped *m =
        SSL("ssl.truststore.type", "PEM", "ssl.truststore.certificates",
            "-----BEGIN CERTIFICATE----- TUlJ Qg== -----END CERTIFICATE----- -----BEGIN "
            "CERTIFICATE----- "
            "0123456789012345678901234567890123456789012345678901234567890123AAAA/+== "
            "-----END CERTIFICATE-----");

    mapped_silent(m);
    mapped_value(m, "ssl.ca.pem",
                 CERT "-----BEGIN CERTIFICATE-----\n"
                      "0123456789012345678901234567890123456789012345678901234567890123\n"
                      "AAAA/+==\n-----END CERTIFICATE-----\n");
    mapped_refused(SSL("ssl.truststore.certificates", CERT), "ssl.truststore.type=PEM", NULL);
    mapped_refused(SSL("ssl.truststore.type", "PEM", "ssl.truststore.certificates", "hunter2"),
                   "[hidden]", "not PEM", NULL);
    mapped_refused(SSL("ssl.truststore.type", "PEM", "ssl.truststore.certificates",
                       CERT "-----BEGIN CERTIFICATE-----x"),
                   "not PEM", NULL);
}

static void a_key_store_is_pkcs12_or_one_pem_file(void **state)
{
    const char *path = file(CERT CERT KEY);
    struct mapped *m = SSL("ssl.keystore.type", "PEM", "ssl.keystore.location", path);

    mapped_silent(m);
    mapped_value(m, "ssl.certificate.location", path);
    mapped_value(m, "ssl.key.location", path);
    unlink(path);
    path = file(CRYPTED CERT);
    mapped_refused(SSL("ssl.keystore.type", "PEM", "ssl.keystore.location", path), "encrypted",
                   "ssl.key.password", NULL);
    m = SSL("ssl.keystore.type", "PEM", "ssl.keystore.location", path, "ssl.key.password",
            "hunter2");
    mapped_silent(m);
    mapped_value(m, "ssl.key.password", "hunter2");
    unlink(path);
    path = file(CERT);
    mapped_refused(SSL("ssl.keystore.type", "PEM", "ssl.keystore.location", path), "no private key",
                   NULL);
    unlink(path);
    path = file(KEY KEY CERT);
    mapped_refused(SSL("ssl.keystore.type", "PEM", "ssl.keystore.location", path),
                   "more than one private key", NULL);
    unlink(path);
    m = SSL("ssl.keystore.type", "PKCS12", "ssl.keystore.location", "/k.p12",
            "ssl.keystore.password", "hunter2");
    mapped_silent(m);
    mapped_value(m, "ssl.keystore.location", "/k.p12");
    mapped_value(m, "ssl.keystore.password", "hunter2");
    mapped_refused(SSL("ssl.keystore.location", "/k.jks", "ssl.keystore.password", "hunter2"),
                   "ssl.keystore.location", "-deststoretype PKCS12", NULL);
}

static void key_and_chain_may_be_given_as_text(void **state)
{
    struct mapped *m = SSL("ssl.keystore.type", "PEM", "ssl.keystore.key", KEY,
                           "ssl.keystore.certificate.chain", CERT);

    mapped_silent(m);
    mapped_value(m, "ssl.key.pem", KEY);
    mapped_value(m, "ssl.certificate.pem", CERT);
    mapped_refused(SSL("ssl.keystore.type", "PEM", "ssl.keystore.key", KEY),
                   "must be specified together", NULL);
    mapped_refused(SSL("ssl.keystore.key", KEY, "ssl.keystore.certificate.chain", CERT),
                   "ssl.keystore.type=PEM", NULL);
    /* librdkafka would send the first certificate and forget the chain */
    mapped_refused(SSL("ssl.keystore.type", "PEM", "ssl.keystore.key", KEY,
                       "ssl.keystore.certificate.chain", CERT CERT),
                   "ssl.keystore.location", NULL);
}

static void limits_that_would_not_hold_are_refused(void **state)
{
    mapped_silent(SSL("ssl.enabled.protocols", "TLSv1.3,TLSv1.2", "ssl.protocol", "TLSv1.3"));
    mapped_refused(SSL("ssl.enabled.protocols", "TLSv1.3"), "ssl.enabled.protocols", "openssl.cnf",
                   NULL);
    mapped_refused(SSL("ssl.enabled.protocols", "TLSv1.1,TLSv1.2,TLSv1.3"), "ssl.enabled.protocols",
                   NULL);
    mapped_refused(SSL("ssl.protocol", "TLSv1.2"), "ssl.protocol", "openssl.cnf", NULL);
    mapped_refused(SSL("ssl.engine.factory.class", "com.x.Y"), "ssl.engine.factory.class", "PEM",
                   NULL);
    mapped_refused(SSL("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
                   "TLS 1.2 only", NULL);
    mapped_refused(SSL("ssl.cipher.suites", "RC4-MD5"), "RC4-MD5", NULL);
    mapped_value(SSL("ssl.cipher.suites",
                     "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256,"
                     "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_GCM_SHA256"),
                 "ssl.cipher.suites", "ECDHE-RSA-AES256-GCM-SHA384:AES128-GCM-SHA256");
    mapped_value(SSL("ssl.endpoint.identification.algorithm", ""),
                 "ssl.endpoint.identification.algorithm", "none");
    mapped_refused(SSL("ssl.endpoint.identification.algorithm", "ldaps"),
                   "ssl.endpoint.identification.algorithm", NULL);
    mapped_remark(SSL("ssl.provider", "BC"), "ssl.provider: ");
    mapped_silent(SSL("ssl.keymanager.algorithm", "SunX509", "ssl.trustmanager.algorithm", "PKIX"));
}

static void nothing_is_judged_that_the_protocol_does_not_use(void **state)
{
    struct mapped *m = MAP(CLIENT_PRODUCER, "ssl.keystore.location", "/k.jks", "sasl.login.class",
                           "com.x.Y", "ssl.enabled.protocols", "TLSv1.3");

    mapped_remark(m, "ssl.keystore.location: has no effect");
    m = MAP(CLIENT_ADMIN, "ssl.keystore.location", "/rest.jks");
    mapped_silent(m);
}

static void no_secret_leaves_through_an_error_or_remark(void **state)
{
    struct mapped *m = MAP(CLIENT_PRODUCER, "security.protocol", "SASL_SSL", "sasl.mechanism",
                           "PLAIN", "sasl.jaas.config", PLAIN "hunter2", "ssl.key.password",
                           "hunter2", "ssl.truststore.password", "hunter2");

    assert_int_equal(m->rc, MR_ERR_CONFIG);
    assert_null(strstr(m->err.text, "hunter2"));
    assert_true(m->remarks.len == 0 || strstr(m->remarks.data, "hunter2") == NULL);
    m = SSL("ssl.keystore.type", "PEM", "ssl.keystore.key", "hunter2",
            "ssl.keystore.certificate.chain", "hunter2");
    assert_int_equal(m->rc, MR_ERR_CONFIG);
    assert_null(strstr(m->err.text, "hunter2"));
}

/* The worker checks what a client of its REST sends: a path into a file system that hangs must not
 * stop its loop. */
static void a_check_opens_no_file(void **state)
{
    static const char *const places[] = {"ssl.truststore", "ssl.keystore"};
    char path[] = "/tmp/test-security-fifo-XXXXXX";
    struct props java;
    char key[64];

    assert_non_null(mkdtemp(path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* to open it would wait for a writer for ever */
    for (size_t i = 0; i < 2; i++) {
        struct mr_error err = {0};

        props_init(&java);
        props_set(&java, "bootstrap.servers", "b:9092");
        props_set(&java, "security.protocol", "SSL");
        snprintf(key, sizeof(key), "%s.location", places[i]);
        props_set(&java, key, path);
        snprintf(key, sizeof(key), "%s.type", places[i]);
        props_set(&java, key, "PEM");
        alarm(10);
        assert_int_equal(client_conf_check(CLIENT_PRODUCER, &java, &err), 0);
        alarm(0);
        props_set(&java, key, "JKS");
        assert_int_equal(client_conf_check(CLIENT_PRODUCER, &java, &err), MR_ERR_CONFIG);
        props_deinit(&java);
    }
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_log_in_by_plain_and_scram),
        cmocka_unit_test(what_cannot_log_in_is_refused_with_a_remedy),
        cmocka_unit_test(kerberos_needs_a_service_and_no_command),
        cmocka_unit_test(tokens_need_an_endpoint_and_credentials),
        cmocka_unit_test(trust_comes_from_pem_only),
        cmocka_unit_test(certificates_on_one_line_get_their_lines_back),
        cmocka_unit_test(a_key_store_is_pkcs12_or_one_pem_file),
        cmocka_unit_test(key_and_chain_may_be_given_as_text),
        cmocka_unit_test(limits_that_would_not_hold_are_refused),
        cmocka_unit_test(nothing_is_judged_that_the_protocol_does_not_use),
        cmocka_unit_test(no_secret_leaves_through_an_error_or_remark),
        cmocka_unit_test(a_check_opens_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, mapped_end);
}
