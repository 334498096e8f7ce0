/* SPDX-License-Identifier: Apache-2.0 */
/* worker_https: which of a worker's ssl.* settings count for its own HTTP, and what ends the
 * start. */
#include "support/unit/certificates.h"
#include "worker/worker_https.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct certificates_pair authority, pair, locked;

static int make(void **state)
{
    authority = certificates_authority("tests");
    pair = certificates_for(&authority, "localhost", NULL);
    locked = certificates_for(&authority, "localhost", "secret");
    return 0;
}

static int unmake(void **state)
{
    certificates_free(&pair);
    certificates_free(&locked);
    certificates_free(&authority);
    return 0;
}

static int load(const char *const *settings, struct worker_https *out, struct mr_error *err)
{
    struct worker_config config = {.path = "w.properties"};
    int rc;

    memset(err, 0, sizeof(*err));
    props_init(&config.props);
    for (; *settings != NULL; settings += 2)
        assert_int_equal(props_set(&config.props, settings[0], settings[1]), 0);
    rc = worker_https_load_server(&config, WORKER_HTTPS_MAIN, out, err);
    props_deinit(&config.props);
    return rc;
}

static void keys_and_certificates_come_out_as_pem(void **state)
{
    const char *const settings[] = {"ssl.keystore.type",
                                    "PEM",
                                    "ssl.keystore.key",
                                    locked.key,
                                    "ssl.keystore.certificate.chain",
                                    locked.certificate,
                                    "ssl.key.password",
                                    "secret",
                                    "ssl.enabled.protocols",
                                    "TLSv1.3",
                                    NULL};
    struct worker_https https;
    struct mr_error err;

    (void)state;
    assert_int_equal(load(settings, &https, &err), 0);
    assert_memory_equal(https.material.key, "-----BEGIN PRIVATE KEY-----", 27);
    assert_memory_equal(https.material.chain, "-----BEGIN CERTIFICATE-----", 27);
    assert_null(https.material.trust);
    assert_true(https.material.tls13 && !https.material.tls12);
    assert_true(https.check_host);
    assert_int_equal(https.client_auth, WORKER_CLIENT_NONE);
    worker_https_deinit(&https);
}

static void one_key_below_the_prefix_hides_all_without_it(void **state)
{
    const char *const settings[] = {"ssl.keystore.type",
                                    "PEM",
                                    "ssl.keystore.key",
                                    pair.key,
                                    "ssl.keystore.certificate.chain",
                                    pair.certificate,
                                    "listeners.https.ssl.client.auth",
                                    "none",
                                    NULL};
    struct worker_https https;
    struct mr_error err;

    (void)state;
    assert_int_equal(load(settings, &https, &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "an https listener needs a certificate and its key"));
}

static void clients_are_judged_by_authorities_that_are_named(void **state)
{
    const char *settings[] = {"listeners.https.ssl.keystore.type",
                              "PEM",
                              "listeners.https.ssl.keystore.key",
                              pair.key,
                              "listeners.https.ssl.keystore.certificate.chain",
                              pair.certificate,
                              "listeners.https.ssl.client.auth",
                              "required",
                              "listeners.https.ssl.endpoint.identification.algorithm",
                              "",
                              NULL,
                              NULL,
                              NULL,
                              NULL,
                              NULL};
    struct worker_https https;
    struct mr_error err;

    (void)state;
    assert_int_equal(load(settings, &https, &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "ssl.client.auth asks clients for certificates"));
    settings[10] = "listeners.https.ssl.truststore.type";
    settings[11] = "PEM";
    settings[12] = "listeners.https.ssl.truststore.certificates";
    settings[13] = authority.certificate;
    assert_int_equal(load(settings, &https, &err), 0);
    assert_int_equal(https.client_auth, WORKER_CLIENT_REQUIRED);
    assert_memory_equal(https.material.trust, "-----BEGIN CERTIFICATE-----", 27);
    assert_false(https.check_host);
    worker_https_deinit(&https);
    settings[7] = "REQUIRED";
    assert_int_equal(load(settings, &https, &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "listeners.https.*: Invalid value REQUIRED for configuration "
                                     "ssl.client.auth"));
}

static void what_cannot_be_honoured_ends_the_start(void **state)
{
    static const char *const rows[][3] = {
        {"ssl.keystore.location", "/nowhere.jks", "only key stores of ssl.keystore.type PEM and "},
        {"ssl.cipher.suites", "TLS_AES_128_GCM_SHA256", "ssl.cipher.suites can't be honoured"},
        {"ssl.enabled.protocols", "TLSv1.1", "TLSv1.2 and TLSv1.3 are what is spoken here"},
        {"ssl.truststore.location", "/x.jks", "only trust stores of ssl.truststore.type=PEM"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *const settings[] = {rows[i][0], rows[i][1], NULL};
        struct worker_https https;
        struct mr_error err;

        assert_int_equal(load(settings, &https, &err), MR_ERR_CONFIG);
        if (strstr(err.text, rows[i][2]) == NULL)
            fail_msg("%s: %s", rows[i][0], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_certificates_come_out_as_pem),
        cmocka_unit_test(one_key_below_the_prefix_hides_all_without_it),
        cmocka_unit_test(clients_are_judged_by_authorities_that_are_named),
        cmocka_unit_test(what_cannot_be_honoured_ends_the_start),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
