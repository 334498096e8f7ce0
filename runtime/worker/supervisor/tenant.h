/* SPDX-License-Identifier: Apache-2.0 */
/* What a host was given to run and what it says about that: its connector, its tasks, its open
 * questions. The one place, besides spawn.c, that knows that a host holds exactly one connector.
 * Owner: the worker's loop. */
#ifndef WORKER_TENANT_H
#define WORKER_TENANT_H

#include "worker/supervisor/child.h"
#include "worker/supervisor/supervisor.h"

struct tenant;

/* What tenant.c needs of the supervisor. Borrowed for life.
 *
 * welcome      the body of WELCOME for a host that is to hold this lock file; a new reference
 * lease        the body of LEASE; the same
 * gone         the host is dead: forget the tenant, which frees itself after events->died has
 *              returned
 * next_id      numbers of open questions, unique over all hosts: an answer never reaches a
 *              successor's question */
struct tenant_owner {
    const struct supervisor_events *events;
    void *events_arg;
    json_t *(*welcome)(void *arg, const char *lock_path);
    json_t *(*lease)(void *arg);
    void (*gone)(void *arg, struct tenant *tenant);
    void *arg;
    int64_t next_id;
    int64_t graceful_ms;
};

/* Spawn a host for a connector (options->name). lock_path: copied; removed when the host is dead.
 * NULL with err. */
struct tenant *tenant_new(struct loop *loop, const struct child_options *options,
                          struct tenant_owner *owner, const char *lock_path, struct mr_error *err);
void tenant_free(struct tenant **tenant); /* kills what is left; no events */

const char *tenant_conn(const struct tenant *tenant);
struct child *tenant_child(const struct tenant *tenant);

/* Queue a frame about new or changed work; body is taken. MR_ERR_CLOSED when the host drains or
 * dies: `died` follows. */
int tenant_send_take(struct tenant *tenant, enum msg_kind kind, json_t *body);

/* As the functions of supervisor.h. Starting a task that runs is MR_ERR_STATE. */
int tenant_start_task_take(struct tenant *tenant, int task, int64_t generation, json_t *body);
bool tenant_spent(const struct tenant *tenant);
int tenant_stop_task(struct tenant *tenant, int task);
int tenant_forget_topics(struct tenant *tenant);
void tenant_drain(struct tenant *tenant);

/* The answer to an open question, whichever it was: entries (taken), ok, or error; what its kind
 * does not have is NULL or false. Unknown id: ignored. */
struct tenant_answer {
    int64_t id;
    json_t *entries;
    bool ok;
    const char *error;
};
void tenant_answer_take(struct tenant *tenant, const struct tenant_answer *answer);

#endif
