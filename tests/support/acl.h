/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of a broker with an authorizer. */
#ifndef TESTS_ACL_H
#define TESTS_ACL_H

#include <librdkafka/rdkafka.h>
#include <stddef.h>

struct acl {
    rd_kafka_ResourceType_t type;
    const char *name; /* of the topic or group, literally */
    rd_kafka_AclOperation_t operation;
};

/* Allow the principal ("User:alice") all of them, and wait until the broker answers accordingly.
 * servers: of a listener where one may do so. */
void acl_allow(const char *servers, const char *principal, const struct acl *acls, size_t count);

#endif
