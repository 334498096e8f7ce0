/* SPDX-License-Identifier: Apache-2.0 */
/* wire_conf: Java's settings, good ones read and bad ones named, without a secret in any error. */
#include "wire/wire_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wire_conf *conf;
static struct mr_error err;

static int read_conf(const char *key, ...)
{
    struct props p;
    va_list args;

    memset(&err, 0, sizeof(err));
    wire_conf_free(&conf);
    props_init(&p);
    props_set(&p, "bootstrap.servers", "a:1");
    va_start(args, key);
    while (key != NULL) {
        props_set(&p, key, va_arg(args, const char *));
        key = va_arg(args, const char *);
    }
    va_end(args);
    conf = wire_conf_new(&p, &err);
    props_deinit(&p);
    return conf != NULL ? 0 : err.code;
}

static void assert_bad(const char *key, const char *value, const char *word)
{
    assert_int_equal(read_conf(key, value, NULL), MR_ERR_CONFIG);
    if (strstr(err.text, word) == NULL)
        fail_msg("\"%s\" is not in: %s", word, err.text);
}

static void addresses_are_read_as_java_does(void **state)
{
    assert_int_equal(read_conf("bootstrap.servers",
                               " one:9092, two.example.org:1 ,,[::1]:65535,PLAINTEXT://x:7 ", NULL),
                     0);
    assert_int_equal(conf->bootstrap_count, 4);
    assert_string_equal(conf->bootstrap[0].host, "one");
    assert_int_equal(conf->bootstrap[0].port, 9092);
    assert_string_equal(conf->bootstrap[1].host, "two.example.org");
    assert_string_equal(conf->bootstrap[2].host, "::1");
    assert_int_equal(conf->bootstrap[2].port, 65535);
    assert_string_equal(conf->bootstrap[3].host, "x");
}

static void bad_addresses_are_named(void **state)
{
    static const char *const bad[] = {"host",  "host:",     "host:0", "host:65536", ":9092",
                                      "h:99x", "::1:9092",  "[]:1",   "h:123456",   "h:-1",
                                      "a:1,b", "http://:1", "h:0x10", "[::1]"};
    char *big = malloc(30000);

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_bad("bootstrap.servers", bad[i], "bootstrap.servers");
    assert_bad("bootstrap.servers", "", "names no broker");
    assert_bad("bootstrap.servers", " , ", "names no broker");
    memset(big, 'h', 300);
    memcpy(big + 300, ":1", 3);
    assert_bad("bootstrap.servers", big, "host:port");
    big[0] = '\0';
    for (int i = 0; i < 1001; i++)
        memcpy(big + (size_t)i * 5, "h:12,", 6);
    assert_bad("bootstrap.servers", big, "more than 1000");
    free(big);
}

static void times_have_javas_defaults_and_bounds(void **state)
{
    assert_int_equal(read_conf(NULL), 0);
    assert_int_equal(wire_conf_request_timeout_ms(conf), 40000);
    assert_int_equal(wire_conf_retry_backoff_ms(conf), 100);
    assert_int_equal(conf->setup_timeout_ms, 10000);
    assert_int_equal(conf->reconnect_backoff_ms, 50);
    assert_int_equal(conf->reconnect_backoff_max_ms, 1000);
    assert_string_equal(wire_conf_client_id(conf), "");
    assert_int_equal(read_conf("request.timeout.ms", "7", "client.id", "me", NULL), 0);
    assert_int_equal(wire_conf_request_timeout_ms(conf), 7);
    assert_string_equal(wire_conf_client_id(conf), "me");
    assert_bad("request.timeout.ms", "0", "request.timeout.ms");
    assert_bad("request.timeout.ms", "-1", "from 1");
    assert_bad("request.timeout.ms", "ten", "request.timeout.ms");
    assert_bad("request.timeout.ms", "10s", "request.timeout.ms");
    assert_bad("request.timeout.ms", "", "request.timeout.ms");
    assert_bad("reconnect.backoff.ms", "99999999999", "reconnect.backoff.ms");
    assert_bad("reconnect.backoff.ms", "99999999999999999999999", "reconnect.backoff.ms");
}

static void protocols_decide_what_is_looked_at(void **state)
{
    assert_int_equal(read_conf("security.protocol", "plaintext", "sasl.mechanism", "NONSENSE",
                               "ssl.truststore.location", "/no/such", NULL),
                     0);
    assert_null(conf->tls);
    assert_false(conf->login);
    assert_int_equal(read_conf("security.protocol", "SASL_SSL", "sasl.mechanism", "PLAIN",
                               "sasl.jaas.config",
                               "PlainLoginModule required username=u password=p;", NULL),
                     0);
    assert_non_null(conf->tls);
    assert_true(conf->login && conf->check_host);
    assert_int_equal(
        read_conf("security.protocol", "SSL", "ssl.endpoint.identification.algorithm", "", NULL),
        0);
    assert_false(conf->check_host);
    assert_bad("security.protocol", "TLS", "security.protocol");
    assert_bad("security.protocol", "SASL_SSL", "GSSAPI");
    assert_bad("ssl.endpoint.identification.algorithm", "ldaps", "use https");
}

#define OAUTH "security.protocol", "SASL_SSL", "sasl.mechanism", "OAUTHBEARER"
#define ENDPOINT "sasl.oauthbearer.token.endpoint.url", "https://idp/token"

static void tokens_come_from_an_endpoint_or_are_unsecured(void **state)
{
    assert_int_equal(read_conf(OAUTH, "sasl.jaas.config",
                               "OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=a;",
                               NULL),
                     0);
    assert_null(conf->token);
    assert_int_equal(read_conf(OAUTH, ENDPOINT, "sasl.jaas.config",
                               "OAuthBearerLoginModule required clientId=a clientSecret=hunter2;",
                               NULL),
                     0);
    assert_non_null(conf->token);
    assert_int_equal(read_conf(OAUTH, ENDPOINT, "sasl.oauthbearer.client.credentials.client.id",
                               "a", "sasl.oauthbearer.client.credentials.client.secret", "hunter2",
                               NULL),
                     0);
    assert_non_null(conf->token);
    assert_int_equal(read_conf(OAUTH, ENDPOINT, "sasl.jaas.config",
                               "OAuthBearerLoginModule required clientSecret=hunter2;", NULL),
                     MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "client.id"));
    assert_null(strstr(err.text, "hunter2"));
}

static int forget(void **state)
{
    wire_conf_free(&conf);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_as_java_does),
        cmocka_unit_test(bad_addresses_are_named),
        cmocka_unit_test(times_have_javas_defaults_and_bounds),
        cmocka_unit_test(protocols_decide_what_is_looked_at),
        cmocka_unit_test(tokens_come_from_an_endpoint_or_are_unsecured),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
