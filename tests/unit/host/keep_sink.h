/* SPDX-License-Identifier: Apache-2.0 */
/* A sink plugin for tests of the sink loop: it keeps what it gets, and does what the script
 * says. */
#ifndef TESTS_KEEP_SINK_H
#define TESTS_KEEP_SINK_H

#include "task_rig.h"

#define GROUP "connect-conn"
#define QUICK \
    "consumer.override.heartbeat.interval.ms", "300", "consumer.override.session.timeout.ms", "6000"

/* What the plugin saw; written by the task's thread under lock. */
struct keep_seen {
    pthread_mutex_t lock;
    char *got; /* every value put, accepted or not, each with a blank behind it */
    size_t got_len;
    size_t accepted; /* records */
    size_t durable;  /* accepted before the last good flush */
    size_t puts;
    char first_try[65536]; /* the batch that was put first with a retry */
    char second_try[65536];
};

/* What it does next; set by tests, read by the task's thread. */
struct keep_script {
    atomic_int retries; /* puts that ask for a retry */
    atomic_int retry_after;
    atomic_int fail_put;
    atomic_int end_thread; /* the next put does, the next flush if it is 2 */
    atomic_int flush_code;
    atomic_int slow_put_ms; /* the next put takes so long */
    atomic_int each_put_ms; /* and each one at least so long */
    atomic_int flushes;
    atomic_int stopped;
    atomic_int headers; /* seen */
};

extern struct keep_seen keep_seen;
extern struct keep_script keep_script;
extern const struct plugin keep_plugin;

/* Fixtures: *state is a struct rig that is not initialised yet. */
int keep_setup(void **state);
int keep_teardown(void **state);

/* For rig_wait_true. Committed: of partition 0 of topic in. */
bool accepted_is(struct rig *rig, int64_t n);
bool accepted_at_least(struct rig *rig, int64_t n);
bool puts_at_least(struct rig *rig, int64_t n);
bool durable_is(struct rig *rig, int64_t n);
bool committed_is(struct rig *rig, int64_t n);
bool flushes_at_least(struct rig *rig, int64_t n);
/* Every number of 0..count-1 exactly once, in order within each of the partitions. */
void check_got(int count, int partitions);
/* Poll it until it has so many partitions. */
void wait_assignment(rd_kafka_t *other, int count);
/* A client of the group that is no member; and another member, as long as the test wants one. */
rd_kafka_t *group_client(struct rig *rig);
rd_kafka_t *join(struct rig *rig);

#endif
