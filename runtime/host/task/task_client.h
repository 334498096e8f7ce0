/* SPDX-License-Identifier: Apache-2.0 */
/* The effective Java settings of a task's Kafka clients. Pure.
 * Spec: org.apache.kafka.connect.runtime.Worker (baseProducerConfigs, baseConsumerConfigs);
 * reference worker-config 7. */
#ifndef HOST_TASK_CLIENT_H
#define HOST_TASK_CLIENT_H

#include "base/props.h"

struct task_client_spec {
    const char *connector;
    int number; /* below 0: of the connector, not of a task */
    const struct props *worker;
    const struct props *config; /* the connector's */
};

/* Fill java (initialised here; the caller deinits it, also after a failure). */
int task_client_producer(const struct task_client_spec *spec, struct props *java,
                         struct mr_error *err);
/* Can that producer have transactions? MR_ERR_CONFIG: what it can't have them with. */
int task_client_check_transactions(const struct task_client_spec *spec, const struct props *java,
                                   struct mr_error *err);
/* The producer that changes source offsets for REST. */
int task_client_change(const struct task_client_spec *spec, struct props *java,
                       struct mr_error *err);
/* The producer of dead letters: never idempotent by itself, as in Java. */
int task_client_dead_letters(const struct task_client_spec *spec, struct props *java,
                             struct mr_error *err);
/* client_id: Connect's, such as "connector-adminclient-<connector>-<task>". */
int task_client_admin(const struct task_client_spec *spec, const char *client_id,
                      struct props *java, struct mr_error *err);
int task_client_consumer(const struct task_client_spec *spec, struct props *java,
                         struct mr_error *err);

/* The consumer that reads the connector's own offsets topic, in no group. */
int task_client_offsets(const struct task_client_spec *spec, struct props *java,
                        struct mr_error *err);

/* Connect's "connector-ROLE-CONNECTOR-NUMBER". */
void task_client_id(const struct task_client_spec *spec, const char *role, char *out, size_t size);
/* The client.id that a sink's consumer has, if the user sets no other: this task's alone. */
void task_client_consumer_id(const struct task_client_spec *spec, char *out, size_t size);

/* A number among settings: fallback when it is absent or no whole number in min..max (who checked
 * the configuration has complained already). */
int64_t task_client_number(const struct props *props, const char *key, int64_t fallback,
                           int64_t min, int64_t max);

/* Bytes of records that may be on their way to the broker: buffer.memory of the producer's
 * settings, Java's default 32 MiB, at least 256 KiB. */
size_t task_client_budget(const struct props *java);

#endif
