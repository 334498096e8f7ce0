/* SPDX-License-Identifier: Apache-2.0 */
/* Everything worker and host say to each other: one table of kinds. Bodies are JSON objects;
 * members named below. conn = connector name, task = number, id = a number that the answer repeats.
 * Unknown members are ignored. */
#ifndef LINK_MSG_H
#define LINK_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msg_kind {
    /* host → worker */
    MSG_HELLO = 1,          /* version, build, pid: must be first */
    MSG_CONNECTOR_STATUS,   /* conn, state, trace?, version? */
    MSG_TASK_CONFIGS_READY, /* conn, configs: [{key: text}] | error */
    /* conn, task, state, trace?; UNASSIGNED = stopped as asked. spent?: true with FAILED = what this
     * process may hold of something is used up for good: another start belongs in a new one */
    MSG_TASK_STATUS,
    MSG_TASK_MEMBER, /* conn, task, member: its consumer's id in its group */
    MSG_OFFSETS_GET, /* id, conn, partitions: [object] */
    MSG_OFFSETS_PUT, /* id, conn, entries: [[partition object, offset object | null]] */
    /* id, conn, task, generation (of TASK_START): is this task still to run here? */
    MSG_START_CHECK,
    MSG_FENCE, /* id, conn: fence the producers of earlier generations */
    /* conn, task, topic: records went there, or came from there; once a topic and life of the
     * host */
    MSG_TOPIC_USED,
    MSG_PONG,    /* id */
    MSG_DRAINED, /* every task has stopped; the host exits with 0 */
    /* worker → host */
    /* version, worker: {worker properties}, lock: path of the lock file the host holds while it
     * lives, loggers?: {name: level}, secrets?: {reference: value} of what was resolved in worker:
     * answer to HELLO */
    MSG_WELCOME,
    /* conn, library: path, class: name of a descriptor in it, config: {}, target, plugins:
     * {property: {library, class} | {error}}: those besides itself that its configuration names
     * (host/plugin_places.h); object?: false = for tasks alone: the library is opened, and nothing
     * said of the connector but that this FAILED */
    MSG_CONNECTOR_START,
    /* conn, target: STARTED | PAUSED | STOPPED; from now on the object is there too */
    MSG_CONNECTOR_TARGET,
    MSG_TASK_CONFIGS,   /* conn, max: answered by TASK_CONFIGS_READY */
    MSG_TASK_START,     /* conn, task, config: {}, target, generation */
    MSG_TASK_TARGET,    /* conn, task, target: STARTED | PAUSED */
    MSG_TASK_STOP,      /* conn, task: answered by UNASSIGNED, also when it had ended before */
    MSG_OFFSETS,        /* id, entries: [[partition, offset]] | error: answer to OFFSETS_GET */
    MSG_OFFSETS_STORED, /* id, error?: answer to OFFSETS_PUT, after the store has them for good */
    /* id, ok, entries?: [text], ids that earlier lives of the task had in its group */
    MSG_START_CHECKED,
    MSG_FENCED,        /* id, error? */
    MSG_TOPICS_FORGET, /* conn: tell of topics anew that are used from now on */
    MSG_LEASE,         /* soft_ms, hard_ms: CLOCK_BOOTTIME; 0 = no lease is needed */
    MSG_LOG_LEVELS,    /* loggers: {name: level} */
    MSG_DRAIN,         /* stop all tasks and the connector, commit, exit: answered by DRAINED */
    MSG_PING,          /* id */
    /* host → worker, as those above */
    /* conn: values that its configuration refers to are others than those that what runs was
     * started with */
    MSG_CONFIG_STALE,
    MSG_KIND_END
};

/* States of a link, as bits: which kinds may arrive when. */
enum msg_state {
    MSG_STATE_HELLO = 1, /* nothing but HELLO (at the worker) or WELCOME (at the host) */
    MSG_STATE_OPEN = 2,
    MSG_STATE_DRAINING = 4 /* DRAIN was sent: no new work */
};

struct msg_rule {
    const char *name; /* "OFFSETS_PUT" */
    bool from_host;
    uint32_t max_body; /* bytes */
    uint32_t states;   /* enum msg_state, combined: where it may arrive */
};

const struct msg_rule *msg_rule(uint32_t kind); /* NULL: no such kind */

#endif
