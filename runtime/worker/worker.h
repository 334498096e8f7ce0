/* SPDX-License-Identifier: Apache-2.0 */
/* The worker process. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

/* `millrace standalone WORKER.properties [CONNECTOR...]`: runs until SIGTERM or SIGINT; gives the
 * exit code: 0 stopped in order, 1 usage, 2 bad configuration or failed initialisation, 3 failed
 * start or connector file, 128 + n ended at once by a second signal n. argv[0] is the verb. */
int worker_standalone(int argc, char **argv);
/* `millrace worker WORKER.properties`: the same for a worker of a cluster; WORKER_LOST: a group or
 * topics that it can't work with, for which Connect has 1 too. */
#define WORKER_LOST (-1)
int worker_cluster(int argc, char **argv);

const char *worker_connect_version(void); /* of the Kafka Connect that we answer as: "4.3.1" */

#endif
