/* SPDX-License-Identifier: Apache-2.0 */
/* From Kafka's Java property names to librdkafka's. A table decides: only Java names are mapped,
 * librdkafka's own names are refused (some of them load libraries or run commands), what has no
 * counterpart is reported by name. Pure but for the librdkafka conf object. Spec: reference
 * worker-config 7 and 9. */
#ifndef KAFKA_CLIENT_CONF_H
#define KAFKA_CLIENT_CONF_H

#include "base/props.h"

enum client_kind { CLIENT_PRODUCER, CLIENT_CONSUMER, CLIENT_ADMIN };

/* One remark about a setting: it was ignored, or is weaker than asked. */
typedef void (*client_conf_warn)(void *arg, const char *key, const char *text);

/* Java names and values (already layered: defaults, worker prefix, override, forced) → librdkafka
 * names and values. MR_ERR_CONFIG names key and remedy for: librdkafka-only names, security
 * settings that can't be honoured (JKS or PKCS12 truststore, login or handler class, ssl.protocol
 * limits, unknown mechanism or login module), values out of range. */
int client_conf_map(enum client_kind kind, const struct props *java, struct props *rdkafka,
                    client_conf_warn warn, void *arg, struct mr_error *err);

/* Would client_conf_map take these? The same checks, but for what stands in files that settings
 * name: none is opened, so this never waits for a file system, and a client of the worker's makes
 * it read nothing. */
int client_conf_check(enum client_kind kind, const struct props *java, struct mr_error *err);

/* The same, but for values that no client of Kafka's takes, such as a number out of range: Connect
 * leaves these to the task, whose client then says so. What is left are means that clients here
 * lack. */
int client_conf_check_means(enum client_kind kind, const struct props *java, struct mr_error *err);

/* What rules an idempotent producer out, and so its transactions. */
struct client_conf_clash {
    const char *key;   /* a Java name */
    const char *needs; /* the values that it may have */
    const char *text;  /* in Java's words */
};
const struct client_conf_clash *client_conf_clash(const struct props *java); /* NULL: nothing */

/* The Java names a kind of client knows: for "nearest known name". Ended by NULL. */
const char *const *client_conf_names(enum client_kind kind);
/* Is this value a secret (sasl.jaas.config, ssl.*.password, ssl.keystore.key …)? */
bool client_conf_secret(const char *key);

/* The layers of Connect for one client of a connector, lowest first: built_in < unprefixed ones of
 * the worker (bootstrap.servers alone; admin: all) < the worker's with the kind's prefix
 * ("producer.") < the connector's ("producer.override.") < forced. */
struct client_conf_layers {
    enum client_kind kind;
    const struct props *worker;    /* whole worker configuration */
    const struct props *connector; /* whole connector configuration, may be NULL */
    const struct props *built_in;
    const struct props *forced;
};
int client_conf_layer(const struct client_conf_layers *layers, struct props *java);

#endif
