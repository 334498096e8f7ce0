/* SPDX-License-Identifier: Apache-2.0 */
/* A Kafka for unit tests: librdkafka's mock cluster, or a real one when KAFKA_BOOTSTRAP names it.
 * And settings, remarks. */
#ifndef TESTS_MOCK_KAFKA_H
#define TESTS_MOCK_KAFKA_H

#include "kafka/client_conf.h"

#include <librdkafka/rdkafka.h>

#include <librdkafka/rdkafka_mock.h>

#include <setjmp.h>

#include <cmocka.h>

struct mock_kafka {
    rd_kafka_t *rk;                   /* the mock's carrier; NULL with a real Kafka */
    rd_kafka_mock_cluster_t *cluster; /* NULL with a real Kafka */
    const char *bootstrap;
};

void mock_kafka_start(struct mock_kafka *k, int brokers);
void mock_kafka_stop(struct mock_kafka *k);
/* A topic; its name is new in this run. */
void mock_kafka_topic(struct mock_kafka *k, char *name, size_t size, int partitions);

/* Settings as pairs, ended by NULL. */
void mock_kafka_props(struct props *p, ...);

/* A client_conf_warn that gathers "key: text\n" in the struct buf that arg is. */
void mock_kafka_remark(void *arg, const char *key, const char *text);

#endif
