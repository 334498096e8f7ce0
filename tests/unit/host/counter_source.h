/* SPDX-License-Identifier: Apache-2.0 */
/* A source plugin for tests of the source loop: it counts, and does what the script says. */
#ifndef TESTS_COUNTER_SOURCE_H
#define TESTS_COUNTER_SOURCE_H

#include "task_rig.h"

/* What the next calls do; set by tests, read by the task's thread. */
struct counter_script {
    atomic_int limit; /* numbers to give */
    atomic_int per_poll;
    atomic_int bad_at;   /* this number gives a value that the converter refuses; -1 none */
    atomic_int large_at; /* this one has large_bytes */
    atomic_int large_bytes;
    atomic_int fail_at; /* poll fails for good before giving this one */
    atomic_int retries; /* polls that ask for a retry, after they added records */
    atomic_int fault;   /* enum fault */
    atomic_int polls;
    atomic_int committed;
    atomic_int started;
    atomic_int stopped;
    atomic_int interrupted;
    atomic_llong again_ms; /* wait at the end of the numbers; 0: give empty polls */
    atomic_int fd;         /* wait for it instead; -1 none */
    atomic_int start_code;
    atomic_int many_topics; /* each record has its own */
    /* Each record has a source partition and an offset of its own: so long are their names. */
    atomic_int name_bytes;
    atomic_int partition; /* -1: the producer's choice */
    atomic_int slow_stop_ms;
    atomic_int slow_poll_ms; /* each poll takes so long, whatever interrupts it */
    _Atomic(struct mr_task *) handle;
};

extern struct counter_script counter_script;
extern const struct plugin counter_plugin;

enum fault {
    FAULT_NONE,
    FAULT_NO_TOPIC,
    FAULT_TIMESTAMP,
    FAULT_BLOCK,
    FAULT_BAD_FD,
    FAULT_UNDECLARED,
    FAULT_NAME,
    FAULT_KEY,
    FAULT_HUGE
};

#define PART "{\"name\":\"numbers\"}" /* its source partition, as rig_stored takes it */

/* Fixtures: *state is a struct rig that is not initialised yet. */
int counter_setup(void **state);
int counter_teardown(void **state);

/* For rig_wait_true. */
bool stored_is(struct rig *rig, int64_t n);
bool delivered_some(struct rig *rig, int64_t n); /* more than n are stored */
bool polls_are(struct rig *rig, int64_t n);      /* at least */
/* The topic holds exactly from..to-1 in order. */
void check_topic(struct rig *rig, int from, int to);
/* Everything from 0 to n - 1 is there; what comes twice follows what it was sent after. Gives how
 * many there are in all. */
size_t check_no_gap(struct rig *rig, int n);

#endif
