/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of workers of a cluster, ours or Java's, as texts that can be compared. */
#ifndef TESTS_REST_ANSWER_H
#define TESTS_REST_ANSWER_H

#include "support/worker_run.h"

/* While a round of the group is open, both refuse some requests, Java even reads: asked again until
 * that is over, for two minutes, which bounds a fault. */
struct http_reply rest_answer_call(const struct worker_run *worker, const char *method,
                                   const char *path, const char *body);
/* The same, and the status is as expected. */
struct http_reply rest_answer_expect(const struct worker_run *worker, int status,
                                     const char *method, const char *path, const char *body);

/* Status and body of GET path, as rest_answer_canonical writes it. */
const char *rest_answer_get(const struct worker_run *worker, const char *path);

/* JSON with sorted members; a list of texts is sorted too, since in Java its order is a hash map's.
 * Until the test's end. */
const char *rest_answer_canonical(const json_t *json);

/* text with each `from` replaced. Until the test's end. */
const char *rest_answer_replaced(const char *text, const char *from, const char *to);

/* Does it lead its group? */
bool rest_answer_leads(const struct worker_run *worker);

#endif
