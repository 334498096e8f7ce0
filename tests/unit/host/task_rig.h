/* SPDX-License-Identifier: Apache-2.0 */
/* A task with everything around it that a test needs: librdkafka's mock cluster, a worker that
 * answers, a log of statuses. Plugins are structs filled by the test. Offsets are "stored" in
 * memory. */
#ifndef TESTS_TASK_RIG_H
#define TESTS_TASK_RIG_H

#include "base/provider.h"
#include "host/task/task.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <stdatomic.h>

#define RIG_STATES 64

struct rig {
    rd_kafka_t *mock;
    rd_kafka_mock_cluster_t *cluster;
    char bootstrap[256];
    struct props worker;
    struct props config;
    json_t *plugins; /* where those are that config and worker name */
    struct providers *providers;
    struct black_box box;
    struct task *task;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum state states[RIG_STATES];
    size_t state_count;
    char trace[4096];
    bool ended;
    int64_t next_id;
    char member[512]; /* as the task told it last */
    json_t *offsets;  /* {"partition text": {offset object}}: what is stored */
    size_t puts;
    bool refuse_puts; /* answer with an error */
    bool hold_puts;   /* do not answer: held_id */
    int64_t held_id;
    json_t *held_entries;
    bool not_ours;         /* START_CHECK answers no */
    const char *no_answer; /* START_CHECK could not be sent: why; NULL: it could */
    bool lease_lost;       /* rig_start begins without a lease */
    char topics[256];      /* that it told of, "a b " */
    size_t quiets;         /* how often it said that it is quiet */
    pthread_t ticker;      /* control's timer: serve each 20 ms, nudge while stopping */
    bool ticking;
    bool nudging;
};

/* brokers of the mock cluster; config: key, value, ..., NULL for the connector (worker keys start
 * with "worker:"). */
void rig_init(struct rig *rig, int brokers, ...);
void rig_deinit(struct rig *rig);
void rig_start(struct rig *rig, const struct plugin *plugin, enum target_state target);

/* Bounded waits: the test fails when it does not happen. */
void rig_wait_state(struct rig *rig, enum state state);
void rig_wait_true(struct rig *rig, bool (*fn)(struct rig *rig, int64_t n), int64_t n);
int64_t rig_stop(struct rig *rig); /* stops and frees the task; ms that it took */
void rig_lose_lease(struct rig *rig, int64_t hard_in_ms); /* and waits until the task is quiet */
void rig_wait_end(struct rig *rig);                       /* the task ends by itself; frees it */
size_t rig_puts(struct rig *rig);                         /* requests to store offsets so far */
void rig_refuse_puts(struct rig *rig, bool refuse);
void rig_topics_are(struct rig *rig, const char *topics); /* told so far, in a bounded time */
bool rig_saw(struct rig *rig, enum state state);
int64_t rig_stored(struct rig *rig, const char *partition, const char *key); /* -1: nothing */
void rig_answer_held(struct rig *rig); /* hold_puts ends: what is held is stored and answered */
void rig_store(struct rig *rig, const char *partition, const char *key, int64_t next);

/* Plugins that are structs of the test: RigString, rig_plugin, and those of rig_more (ended by
 * NULL) when these are set. rig_places: as the worker says where they are, by property; those that
 * it does not know are left out. */
#define RIG_LIBRARY "(a struct of the test)"
extern const struct plugin *rig_plugin;
extern const struct plugin *const *rig_more;
json_t *rig_places(const struct props *connector, const struct props *worker);

/* All values of a topic in offset order per partition, as one JSON array of texts, read by a client
 * of its own. */
json_t *rig_read_topic(struct rig *rig, const char *topic, size_t expected);
/* Of its partition 0: how many records. */
int64_t rig_topic_end(struct rig *rig, const char *topic);
/* Write count records "0" … to a topic, partition by number. */
void rig_write_topic(struct rig *rig, const char *topic, int partitions, int from, int count);
int64_t rig_committed(struct rig *rig, const char *group, const char *topic, int32_t partition);

extern const struct plugin
    rig_string_converter;             /* text and bytes as they are; "bad" is a data error */
extern atomic_size_t rig_dense_bytes; /* what it takes of the arena besides for each value read */

#endif
