/* SPDX-License-Identifier: Apache-2.0 */
/* rest.extension.classes: the extensions that are code of ours, today the one that asks for a user
 * and a password.
 * Spec: org.apache.kafka.connect.rest.basic.auth.extension. */
#ifndef WORKER_REST_AUTH_H
#define WORKER_REST_AUTH_H

#include "worker/worker_config.h"

#define REST_AUTH_USERS "millrace.rest.users.file"

#define REST_AUTH_FILTER "filter." /* and a class: the name of its service (rest_filter.h) */

struct rest_auth;

/* The classes of rest.extension.classes that are not built in, in their order. */
void rest_auth_filters(const struct props *props, void (*fn)(void *arg, const char *class_name),
                       void *arg);

/* *out: NULL when no extension is asked for. MR_ERR_CONFIG: a class that is neither
 * built in nor served as a filter, or no users' file, or one that can't be read. */
int rest_auth_new(const struct worker_config *config, struct rest_auth **out, struct mr_error *err);
void rest_auth_free(struct rest_auth **auth);

/* May this come in? authorization: the header's value, NULL none. Any thread. */
bool rest_auth_admits(const struct rest_auth *auth, const char *authorization);

#endif
