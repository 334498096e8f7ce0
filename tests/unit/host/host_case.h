/* SPDX-License-Identifier: Apache-2.0 */
/* A test with one host: made when it is started, ended in the test's teardown. */
#ifndef TESTS_HOST_CASE_H
#define TESTS_HOST_CASE_H

#include "host_peer.h"

extern struct host_peer *host_case_peer; /* of this test; NULL before it is started */
int host_case_teardown(void **state);

extern const char *const host_case_nothing[]; /* no configuration */

/* host_peer_await; no frame fails the test with what the host printed. */
json_t *host_case_await(enum msg_kind kind, const char *state, int ms);
/* A host whose connector runs. */
void host_case_start(const char *class_name, const char *const *pairs);
/* A task of it that runs. */
void host_case_task(int number, const char *const *pairs);
void host_case_assert_answers(void); /* a ping, in half a second */
/* About the connector; value is taken. */
void host_case_send(enum msg_kind kind, const char *key, json_t *value);

#endif
