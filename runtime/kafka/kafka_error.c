/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's error codes in the words of this runtime, in one table.
 *
 * For a produced record: is it too large, given up for now, dropped by us, its topic away, or
 * hopeless. For a consumer: does polling on help. What librdkafka skips when it goes on (a batch
 * with a bad checksum, an unreadable compression) is hopeless, since going on would lose records.
 * Codes that are not listed are hopeless for a record and retried by a consumer. Pure. */
#include "kafka/kafka_private.h"

#include <string.h>

static const struct {
    rd_kafka_resp_err_t code;
    int produce;
    int consume;
} table[] = {
    /* local */
    {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__TIMED_OUT, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__TRANSPORT, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__RESOLVE, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__QUEUE_FULL, MR_ERR_FULL, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__PURGE_QUEUE, MR_ERR_CLOSED, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, MR_ERR_CLOSED, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__DESTROY, MR_ERR_NOT_FOUND, MR_ERR_CLOSED}, /* with its partition */
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, MR_ERR_NOT_FOUND, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, MR_ERR_NOT_FOUND, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__FATAL, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__BAD_MSG, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__BAD_COMPRESSION, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, MR_ERR_FATAL, MR_ERR_FATAL},
    /* from brokers: passing */
    {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, MR_ERR_NOT_FOUND, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, MR_ERR_RETRY, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, MR_ERR_RETRY, MR_ERR_RETRY},
    /* from brokers: for good */
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, MR_ERR_TOO_LARGE, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, MR_ERR_TOO_LARGE, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_INVALID_GROUP_ID, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED, MR_ERR_FATAL, MR_ERR_FATAL},
    {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, MR_ERR_FATAL, MR_ERR_FATAL},
};

int kafka_error_produce(rd_kafka_resp_err_t code)
{
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code)
            return table[i].produce;
    return MR_ERR_FATAL;
}

/* The other side did not like our certificate, in OpenSSL's words. */
static bool certificate_alert(const char *text)
{
    return strstr(text, "SSL routines") != NULL && strstr(text, " alert ") != NULL &&
           (strstr(text, "certificate") != NULL || strstr(text, "unknown ca") != NULL);
}

/* Connections that break during a login or handshake also come with these codes; their texts tell.
 * So do tokens that could not be fetched, or that ended before they were used: the next one may
 * serve. */
bool kafka_error_hopeless(rd_kafka_resp_err_t code, const char *text)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        if (strstr(text, "OAUTHBEARER token: ") != NULL)
            return strstr(text, "OAUTHBEARER token: " CLIENT_TOKEN_REFUSED ": ") != NULL;
        return strstr(text, "Disconnected") == NULL && strstr(text, "mechanisms: (n/a)") == NULL &&
               strstr(text, "invalid_token") == NULL;
    case RD_KAFKA_RESP_ERR__SSL:
        return strstr(text, "certificate verify failed") != NULL ||
               strstr(text, "verify broker certificate") != NULL || certificate_alert(text);
    case RD_KAFKA_RESP_ERR__TRANSPORT:
        return certificate_alert(text);
    default:
        return code == RD_KAFKA_RESP_ERR__FATAL ||
               code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
               code == RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM;
    }
}

/* Names of librdkafka's in its texts, and what our user set. */
static const char *const words[][2] = {
    {"ssl.key.location", "ssl.keystore.location"},
    {"ssl.certificate.location", "ssl.keystore.location"},
    {"ssl.ca.location", "ssl.truststore.location"},
    {"ssl.key.pem", "ssl.keystore.key"},
    {"ssl.certificate.pem", "ssl.keystore.certificate.chain"},
    {"ssl.ca.pem", "ssl.truststore.certificates"},
    {"socket.timeout.ms", "request.timeout.ms"},
    {"message.timeout.ms", "delivery.timeout.ms"},
};

static const char *word_at(const char *text, size_t *len)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        *len = strlen(words[i][0]);
        if (strncmp(text, words[i][0], *len) == 0)
            return words[i][1];
    }
    return NULL;
}

/* A key that can't be read comes with OpenSSL's code and little else, a right that is missing
 * without its name. */
static const char *hint(const char *text)
{
    if (strstr(text, "opic authorization failed") != NULL)
        return "; the client's principal needs the ACL Read on the topic to consume it, Write to "
               "produce to it";
    if (strstr(text, "roup authorization failed") != NULL)
        return "; the client's principal needs the ACL Read on its consumer group";
    if (strstr(text, "ssl.key.") != NULL || strstr(text, "mac verify failure") != NULL)
        return "; is the password right (ssl.key.password, ssl.keystore.password)?";
    if (strstr(text, "SCRAM") != NULL && rd_kafka_version() < KAFKA_SCRAM_VERSION)
        return "; " KAFKA_SCRAM_TEXT;
    return "";
}

void kafka_error_text(const char *text, char *out, size_t size)
{
    const char *stop = strstr(text, " (after "); /* the library's own bookkeeping */
    const char *end = stop != NULL ? stop : text + strlen(text);
    size_t used = 0;

    for (const char *p = text; p < end && used + 1 < size;) {
        size_t len;
        const char *word = word_at(p, &len);

        if (word == NULL) {
            out[used++] = *p++;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s", word);
        p += len;
    }
    used = used < size ? used : size - 1;
    snprintf(out + used, size - used, "%s", hint(text));
}

int kafka_error_consume(rd_kafka_resp_err_t code, const char *text)
{
    if (kafka_error_hopeless(code, text))
        return MR_ERR_FATAL;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].code == code)
            return table[i].consume;
    return MR_ERR_RETRY;
}
