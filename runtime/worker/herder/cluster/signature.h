/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between workers are signed with a key that the leader writes to the config topic. Pure, but
 * for the random source.
 * Spec: org.apache.kafka.connect.runtime.rest.InternalRequestSignature, KIP-507. */
#ifndef WORKER_SIGNATURE_H
#define WORKER_SIGNATURE_H

#include "worker/herder/herder.h"
#include "worker/store/config_records.h"
#include "worker/worker_config.h"

/* A fresh key, made now. */
int signature_new_key(const struct worker_cluster *config, int64_t wall_ms,
                      struct config_session_key *out, struct mr_error *err);
/* In how many ms is the leader to write another key than this one (NULL: there is none)? 0: now;
 * -1: never. */
int64_t signature_key_due_ms(const struct config_session_key *key,
                             const struct worker_cluster *config, int64_t wall_ms);

/* The text of X-Connect-Authorization for these bytes, malloc'ed; NULL with err. */
char *signature_make(const struct config_session_key *key, const char *algorithm, const void *body,
                     size_t len, struct mr_error *err);

/* key NULL: none was read yet. 0, or the HTTP status to answer with, and why in err: 400, 403,
 * 503. */
int signature_check(const struct herder_claim *claim, const struct config_session_key *key,
                    const struct worker_cluster *config, struct mr_error *err);

#endif
