/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of this room's clients, read from Java's property names once and shared by all
 * connections. */
#ifndef WIRE_WIRE_CONF_H
#define WIRE_WIRE_CONF_H

#include "base/props.h"

struct wire_conf;

/* settings: the Java names of one Kafka client (already layered): bootstrap.servers, client.id,
 * security.protocol, ssl.*, sasl.*, request.timeout.ms, retry.backoff.ms, reconnect.backoff.ms and
 * .max.ms, socket.connection.setup.timeout.ms. Others are not looked at. Reads the files that ssl.*
 * name. NULL with err (MR_ERR_CONFIG: key, what is wrong, remedy; no secret in it).
 * Spec: reference worker-config 9.1 and 9.2; GSSAPI is refused by name. */
struct wire_conf *wire_conf_new(const struct props *settings, struct mr_error *err);
void wire_conf_free(struct wire_conf **conf); /* after everything that was made with it */

const char *wire_conf_client_id(const struct wire_conf *conf); /* "" when none was given */
int64_t wire_conf_request_timeout_ms(const struct wire_conf *conf);
int64_t wire_conf_retry_backoff_ms(const struct wire_conf *conf);

#endif
