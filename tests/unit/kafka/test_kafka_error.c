/* SPDX-License-Identifier: Apache-2.0 */
/* What librdkafka's errors mean, and what a user reads of them. Texts are ones seen on 2.0.2. */
#include "kafka/kafka_private.h"

#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static void a_broken_connection_is_never_hopeless(void **state)
{
    assert_false(kafka_error_hopeless(RD_KAFKA_RESP_ERR__TRANSPORT,
                                      "b/1: Disconnected (after 3ms in state UP)"));
    assert_false(kafka_error_hopeless(RD_KAFKA_RESP_ERR__AUTHENTICATION, "b/1: Disconnected"));
    assert_false(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: "
        "broker's supported mechanisms: (n/a)"));
    assert_false(
        kafka_error_hopeless(RD_KAFKA_RESP_ERR__SSL, "SSL handshake failed: Disconnected"));
    assert_false(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        "Failed to acquire SASL OAUTHBEARER token: the token endpoint http://t can't be asked"));
    assert_false(kafka_error_hopeless(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                                      "SASL authentication error: {\"status\":\"invalid_token\"}"));
    assert_false(kafka_error_hopeless(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down"));
}

static void refused_credentials_and_certificates_are(void **state)
{
    assert_true(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        "SASL authentication error: Authentication failed: Invalid username or password"));
    assert_true(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        "SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Unsupported SASL "
        "mechanism: broker's supported mechanisms: PLAIN"));
    assert_true(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        "Failed to acquire SASL OAUTHBEARER token: refused: the token endpoint http://t answered "
        "with status 401"));
    assert_true(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__SSL,
        "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed"));
    assert_true(kafka_error_hopeless(
        RD_KAFKA_RESP_ERR__TRANSPORT,
        "Receive failed: error:0A000412:SSL routines::sslv3 alert bad certificate: SSL "
        "alert number 42"));
}

/* Going on after these would jump over records. */
static void what_librdkafka_would_skip_fails_a_consumer(void **state)
{
    static const rd_kafka_resp_err_t codes[] = {
        RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION,
        RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET};

    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        assert_int_equal(kafka_error_consume(codes[i], ""), MR_ERR_FATAL);
    assert_int_equal(kafka_error_consume(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, ""),
                     MR_ERR_RETRY);
    assert_int_equal(kafka_error_consume(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ""),
                     MR_ERR_RETRY);
    assert_int_equal(kafka_error_consume(RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, ""), MR_ERR_RETRY);
    assert_int_equal(kafka_error_consume(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, ""),
                     MR_ERR_FATAL);
}

static void a_record_is_given_up_too_large_dropped_or_hopeless(void **state)
{
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR_NO_ERROR), 0);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT), MR_ERR_RETRY);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE),
                     MR_ERR_TOO_LARGE);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT), MR_ERR_CLOSED);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION), MR_ERR_NOT_FOUND);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
                     MR_ERR_NOT_FOUND);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR__DESTROY), MR_ERR_NOT_FOUND);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
                     MR_ERR_FATAL);
    assert_int_equal(kafka_error_produce(RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID), MR_ERR_FATAL);
}

static void assert_text(const char *from, const char *to)
{
    char out[512];

    kafka_error_text(from, out, sizeof(out));
    assert_string_equal(out, to);
}

static void texts_speak_of_what_the_user_set(void **state)
{
    char small[12];

    assert_text("b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms "
                "in state CONNECT, 1 "
                "identical error(s) suppressed)",
                "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused");
    assert_text("ssl.ca.location failed: error", "ssl.truststore.location failed: error");
    assert_text("ssl.key.location failed: PEM lib",
                "ssl.keystore.location failed: PEM lib; is the password right (ssl.key.password, "
                "ssl.keystore.password)?");
    assert_text("Broker: Topic authorization failed",
                "Broker: Topic authorization failed; the client's principal needs the ACL Read on "
                "the topic to consume it, Write to produce to it");
    assert_text("FindCoordinator response error: Group authorization failed.",
                "FindCoordinator response error: Group authorization failed.; the client's "
                "principal needs the ACL Read on its consumer group");
    kafka_error_text("ssl.ca.location failed", small, sizeof(small));
    assert_string_equal(small, "ssl.trustst");
    kafka_error_text("a long enough text", small, sizeof(small));
    assert_string_equal(small, "a long enou");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_connection_is_never_hopeless),
        cmocka_unit_test(refused_credentials_and_certificates_are),
        cmocka_unit_test(what_librdkafka_would_skip_fails_a_consumer),
        cmocka_unit_test(a_record_is_given_up_too_large_dropped_or_hopeless),
        cmocka_unit_test(texts_speak_of_what_the_user_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
