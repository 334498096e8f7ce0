/* SPDX-License-Identifier: Apache-2.0 */
/* The Java Connect worker, the oracle, as a member of a cluster. It is given as a struct
 * worker_run, without files and processes: the REST functions of worker_run.h serve it as they
 * serve ours. */
#ifndef TESTS_JAVA_WORKER_H
#define TESTS_JAVA_WORKER_H

#include "support/worker_run.h"

/* Begins to start one, with topics named as worker_run.h names them; a JVM takes its seconds,
 * meanwhile the test goes on. servers: NULL the shared broker. props: more properties, lines; may
 * be NULL. Killed when the test ends; its log is then in java.logs/. One at a time in a test. */
struct worker_run *java_worker_start(const char *servers, const char *group, const char *props);
/* Waits until it answers; only then are url and port known. */
void java_worker_await(struct worker_run *java);
/* after its end: start once more, on another port */
void java_worker_again(struct worker_run *java);

void java_worker_leave(struct worker_run *java); /* SIGTERM, and waits for its end */
void java_worker_kill(struct worker_run *java);
void java_worker_signal(const struct worker_run *java, int signal); /* its process */

#endif
