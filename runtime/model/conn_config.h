/* SPDX-License-Identifier: Apache-2.0 */
/* What the framework itself reads of a connector's configuration. Pure.
 * Spec: org.apache.kafka.connect.runtime.ConnectorConfig, SinkConnectorConfig,
 * SourceConnectorConfig. */
#ifndef MODEL_CONN_CONFIG_H
#define MODEL_CONN_CONFIG_H

#include "model/config_def.h"

#define CONN_CONFIG_KEYS_MAX 4096     /* keys of one configuration */
#define CONN_CONFIG_TASKS_MAX 1000000 /* whatever tasks.max says */

/* The framework's keys, ended by a zeroed entry, in Connect's order (reference: connector-config.md
 * 1 and 10). */
extern const struct mr_config_key conn_config_common[];
extern const struct mr_config_key conn_config_sink[];   /* appended for sinks */
extern const struct mr_config_key conn_config_source[]; /* appended for sources */

/* The value of one of these keys by its definition: trimmed, its default where it is not set. As
 * config_def_check; the caller deinitialises out of a list. */
int conn_config_get(const char *key, const struct props *config, struct config_value *out,
                    struct mr_error *err);

/* Refuse what librdkafka alone knows and what a connector must not set: keys below
 * producer.override., consumer.override. and admin.override. that are not Java client names are
 * warned about, never passed on (kafka/client_conf does both). */

/* Room for a connector's name in the path of a request, where all but letters, digits and -._~ take
 * three bytes: the server's 8 KiB, without the rest of the longest path and its parameters. */
#define CONN_CONFIG_NAME_MAX 8000

/* Connector name: not empty after trimming, no control characters; the text is Connect's. And not
 * longer than a path has room for: the worker that has the connector could not tell the leader of
 * its tasks, and nobody could change it. (Connect takes such a name, and then its follower can't
 * tell either: "Request headers too large", for ever; tried on 4.3.1.) */
int conn_config_check_name(const char *name, struct mr_error *err);
/* Of a name that is stored already, by a Java worker: has a path room for it? */
int conn_config_check_path(const char *name, struct mr_error *err);

/* "connect-<name>", or consumer.override.group.id. Copied into out. */
int conn_config_group_id(const char *name, const struct props *config, char *out, size_t size);

#endif
