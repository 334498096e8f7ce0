/* SPDX-License-Identifier: Apache-2.0 */
/* The real binary as a worker, standalone or of a cluster, in the test's folder, on a free port. */
#ifndef TESTS_WORKER_RUN_H
#define TESTS_WORKER_RUN_H

#include "support/process.h"
#include "support/http.h"

#include <stdbool.h>
#include <stddef.h>

struct worker_run {
    const char *exe;
    const char *config;  /* worker.properties */
    const char *log;     /* of all its lives */
    const char *offsets; /* offset.storage.file.filename */
    const char *group;   /* of its cluster; NULL: standalone */
    const char *run_dir;
    const char *mark; /* of the worker's and its hosts' processes: process_marked */
    const char *url;  /* http://HOST:PORT */
    const char *servers;
    int port;
    const char *const *files; /* connector files on its command line, ended by NULL; may be NULL */
    struct process *process;
};

struct worker_run_options {
    const char *exe;     /* NULL: the binary of this build */
    const char *name;    /* of its files: "<name>.properties"; NULL: worker */
    const char *servers; /* NULL: the shared broker */
    const char *props;   /* more properties, lines; later ones win */
    /* Of a cluster; its topics are <group>-configs, -offsets, -status; NULL: standalone. */
    const char *group;
    const char *host; /* where its REST API is; NULL: 127.0.0.1 */
    const char *const *files;
    bool dont_wait; /* for the first answer */
};

/* Configuration written, process started, first answer of GET / seen, or the cluster joined. Its
 * offsets are flushed every 200 ms, and the plugins of tests/plugins are on its path. Ended with
 * the test. */
struct worker_run *worker_run_start(const struct worker_run_options *options);
/* after its end: start once more, same files, same port */
void worker_run_again(struct worker_run *worker);
/* The same, without waiting for its first answer. */
void worker_run_launch(struct worker_run *worker);
void worker_run_kill(struct worker_run *worker); /* kill -9 and wait for its end */
int worker_run_stop(struct worker_run *worker);  /* SIGTERM; its exit code */
/* that live: worker, its nest (once it has looked at plugins), hosts, and what plugins forked */
size_t worker_run_processes(const struct worker_run *worker);
/* the host process of a connector, by what ps shows; 0 none */
pid_t worker_run_host(const struct worker_run *worker, const char *conn);

/* REST. path begins with a slash. */
struct http_reply worker_run_call(const struct worker_run *worker, const char *method,
                                  const char *path, const char *body);
/* The same, and the status is as expected. */
struct http_reply worker_run_expect(const struct worker_run *worker, int status, const char *method,
                                    const char *path, const char *body);
/* Create or change by PUT .../config; fields: the config's JSON without the outer braces. */
void worker_run_put(const struct worker_run *worker, const char *conn, const char *fields);

/* A text of GET /connectors/<conn>/status, such as "tasks.0.state"; "" when there is none. */
const char *worker_run_state(const struct worker_run *worker, const char *conn, const char *path);
/* The connector and exactly so many tasks are all in this state. */
bool worker_run_is(const struct worker_run *worker, const char *conn, const char *state, int tasks);
/* Wait until the connector and its tasks (exactly that many) are in this state. */
void worker_run_await(const struct worker_run *worker, const char *conn, const char *state,
                      int tasks, int ms);

/* Free port of 127.0.0.1, below those that the kernel gives to outgoing connections. */
int worker_run_free_port(void);

#endif
