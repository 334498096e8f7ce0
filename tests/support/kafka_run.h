/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka that the tests of one run share. */
#ifndef TESTS_KAFKA_RUN_H
#define TESTS_KAFKA_RUN_H

#include <stdbool.h>

struct kafka_run;

/* bootstrap.servers of the shared broker: the one that `make check-integration` started
 * (MILLRACE_TEST_KAFKA), or else one started now through tests/kafka/kafka.sh and stopped when this
 * program ends. Topics spring into being by use. */
const char *kafka_run_servers(void);

/* The same, for kafka_run_folder_of; NULL: it is somebody else's. */
const struct kafka_run *kafka_run_shared(void);

/* A broker of this test's own, for faults; stopped when the test ends. env: more environment for
 * kafka.sh, such as "KAFKA_AUTO_CREATE=false", or "". */
struct kafka_run *kafka_run_start(const char *env);
/* The same of three, in one cluster; apart: whose controller is a process of its own, number 4. */
struct kafka_run *kafka_run_start_three(const char *env, bool apart);
/* Three that all tests of this program share, started at the first call and stopped when it
 * ends. */
struct kafka_run *kafka_run_share_three(const char *env);
const char *kafka_run_servers_of(const struct kafka_run *kafka);
const char *kafka_run_folder_of(const struct kafka_run *kafka); /* KAFKA_RUN of kafka.sh */
/* verb: "kill 1", "restart 1", "pause 1", "resume 1" */
void kafka_run_do(const struct kafka_run *kafka, const char *verb);

#endif
