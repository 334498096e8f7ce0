/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's error codes: their names, and what a client is to do. Pure.
 * Spec: reference group-protocol 4, org.apache.kafka.common.protocol.Errors. */
#ifndef WIRE_KAFKA_CODE_H
#define WIRE_KAFKA_CODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KAFKA_CODE_UNKNOWN_SERVER_ERROR = -1,
    KAFKA_CODE_NONE = 0,
    KAFKA_CODE_UNKNOWN_TOPIC_OR_PARTITION = 3,
    KAFKA_CODE_LEADER_NOT_AVAILABLE = 5,
    KAFKA_CODE_NOT_LEADER_OR_FOLLOWER = 6,
    KAFKA_CODE_REQUEST_TIMED_OUT = 7,
    KAFKA_CODE_COORDINATOR_LOAD_IN_PROGRESS = 14,
    KAFKA_CODE_COORDINATOR_NOT_AVAILABLE = 15,
    KAFKA_CODE_NOT_COORDINATOR = 16,
    KAFKA_CODE_ILLEGAL_GENERATION = 22,
    KAFKA_CODE_INCONSISTENT_GROUP_PROTOCOL = 23,
    KAFKA_CODE_INVALID_GROUP_ID = 24,
    KAFKA_CODE_UNKNOWN_MEMBER_ID = 25,
    KAFKA_CODE_INVALID_SESSION_TIMEOUT = 26,
    KAFKA_CODE_REBALANCE_IN_PROGRESS = 27,
    KAFKA_CODE_GROUP_AUTHORIZATION_FAILED = 30,
    KAFKA_CODE_UNSUPPORTED_SASL_MECHANISM = 33,
    KAFKA_CODE_ILLEGAL_SASL_STATE = 34,
    KAFKA_CODE_UNSUPPORTED_VERSION = 35,
    KAFKA_CODE_INVALID_PRODUCER_EPOCH = 47,
    KAFKA_CODE_CONCURRENT_TRANSACTIONS = 51,
    KAFKA_CODE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53,
    KAFKA_CODE_SASL_AUTHENTICATION_FAILED = 58,
    KAFKA_CODE_GROUP_ID_NOT_FOUND = 69,
    KAFKA_CODE_MEMBER_ID_REQUIRED = 79,
    KAFKA_CODE_GROUP_MAX_SIZE_REACHED = 81,
    KAFKA_CODE_FENCED_INSTANCE_ID = 82,
    KAFKA_CODE_PRODUCER_FENCED = 90,
};

/* What to do about a code, whatever the request was. Codes that nobody knows, and
 * UNKNOWN_SERVER_ERROR, are RETRY: a newer broker's word for something, which Java too takes for
 * UNKNOWN_SERVER_ERROR. */
enum kafka_code_act {
    KAFKA_CODE_OK,
    KAFKA_CODE_RETRY,      /* the same request again, after retry.backoff.ms */
    KAFKA_CODE_REFRESH,    /* leaders moved: metadata anew, then again */
    KAFKA_CODE_REDISCOVER, /* FindCoordinator anew, then again; member id and generation stay */
    KAFKA_CODE_REJOIN,     /* join again at once, with the same member id */
    /* the generation is over: forget it, keep the member id, join again */
    KAFKA_CODE_REJOIN_GENERATION,
    KAFKA_CODE_REJOIN_NEW, /* forget member id and generation, join again */
    KAFKA_CODE_REJOIN_AS,  /* join again with the member id that the answer gave */
    KAFKA_CODE_FATAL       /* the same request will never succeed */
};

enum kafka_code_act kafka_code_act(int16_t code);
/* "REBALANCE_IN_PROGRESS"; "UNKNOWN" for a code that nobody knows. A constant. */
const char *kafka_code_name(int16_t code);
/* What a user should look at, as a clause, or "" : "see group.min.session.timeout.ms and … of the
 * broker". A constant. */
const char *kafka_code_hint(int16_t code);

#endif
