/* SPDX-License-Identifier: Apache-2.0 */
/* The three internal topics of a cluster worker: configurations, source offsets, status.
 *
 * A store thread owns the topics: replays them at the start, writes, reads to the end. What it read
 * comes to the worker's loop in batches and is applied there, so that the loop reads configuration
 * and status from its own memory, without a lock. Everything below is called on that loop, never
 * blocks, and is answered there.
 * Spec: KafkaConfigBackingStore, KafkaOffsetBackingStore, KafkaStatusBackingStore. */
#ifndef WORKER_CLUSTER_STORE_H
#define WORKER_CLUSTER_STORE_H

#include "base/loop.h"
#include "worker/store/config_state.h"
#include "worker/store/offset_store.h"
#include "worker/store/status_state.h"
#include "worker/store/word_state.h"

struct cluster_store;

struct cluster_store_options {
    struct loop *loop;
    const struct props *worker; /* the worker's whole configuration; read during the call only */
    void *arg;                  /* of all events */
};

/* Run on the loop, from cluster_store_open until cluster_store_close. */
struct cluster_store_events {
    /* All three topics are there and were read to their ends (err NULL), or the worker can't start
     * (err: what, and what to do). Exactly once, unless the store is closed before. */
    void (*ready)(void *arg, const struct mr_error *err);
    /* One record of the config topic was applied after `ready`; config_state shows it already. */
    void (*config)(void *arg, const struct config_change *change);
    /* Status of a connector (task -1) or task changed. After `ready`. */
    void (*status)(void *arg, const char *conn, int task);
    /* A topic was taken off the list of those that a connector uses, or came to it. After
     * `ready`. */
    void (*topic)(void *arg, const char *conn, const char *topic, bool gone);
    /* Another worker said this just now: not read in a replay. After `ready`. */
    void (*word)(void *arg, const struct word *word);
    void (*unclaimed)(void *arg); /* see cluster_store_claim */
    /* One of Connect's topics is gone for good (deleted, made anew without compaction, damaged):
     * memory goes on to answer, all that needs it is refused with err's text until the worker is
     * started again. Once a topic. */
    void (*lost)(void *arg, const char *topic, const struct mr_error *err);
};

/* Start the store thread. NULL with err: MR_ERR_CONFIG (a setting of the worker). Topics that are
 * missing are created, those that exist are verified. */
struct cluster_store *cluster_store_open(const struct cluster_store_options *options,
                                         const struct cluster_store_events *events,
                                         struct mr_error *err);
/* Status that waits is written until deadline_ms (monotonic), what else waits is answered with an
 * error; then the thread ends. Blocks for that long at most, and a little. Before loop_free. */
void cluster_store_close(struct cluster_store **store, int64_t deadline_ms);

/* What was read so far. Borrowed for the store's life; changes only between two events of the
 * loop. */
const struct config_state *cluster_store_config(const struct cluster_store *store);
const struct status_state *cluster_store_status(const struct cluster_store *store);

/* How a request ended: err NULL, or MR_ERR_TIMEOUT (a write may still show up later), MR_ERR_FULL
 * (too many wait), MR_ERR_TOO_LARGE, MR_ERR_FATAL (topic gone, no rights), MR_ERR_CLOSED. Exactly
 * once, never inside the call that asked (but inside cluster_store_close). */
typedef void (*cluster_store_done)(void *arg, const struct mr_error *err);

/* This worker leads: the leader's writes are its own from now on, nobody else's any more
 * (exactly.once.source.support=preparing or enabled; else nothing). anew: it did not lead until
 * now. They fail with MR_ERR_STATE, and `unclaimed` runs, when another worker has claimed them
 * since, or that is in doubt: claim once more, if it still leads. */
void cluster_store_claim(struct cluster_store *store, bool anew);

/* Read the config topic to the end it has now: at `done`, cluster_store_config has it all. Java
 * gives worker.sync.timeout.ms for it when a member lags. */
void cluster_store_refresh(struct cluster_store *store, int64_t timeout_ms, cluster_store_done done,
                           void *arg);

/* --- writing configuration. Each is confirmed by all in-sync replicas before `done`; but for
 * target and logger level it was also read back, so that cluster_store_config shows it. 30 s at
 * most. Which member may write what, and that it still leads, is the caller's to know.
 * ---------------------------------------------------------------------------------- */

#define CLUSTER_STORE_WRITE_MS 30000

/* config: copied. initial: NULL, or written before it. */
void cluster_store_put_connector(struct cluster_store *store, const char *conn,
                                 const struct props *config, const enum target_state *initial,
                                 cluster_store_done done, void *arg);
void cluster_store_remove_connector(struct cluster_store *store, const char *conn,
                                    cluster_store_done done, void *arg);
/* A full set, and its commit once the set was read back; count 0 writes the commit alone. tasks:
 * copied. */
void cluster_store_put_tasks(struct cluster_store *store, const char *conn,
                             const struct props *tasks, size_t count, cluster_store_done done,
                             void *arg);
void cluster_store_put_target(struct cluster_store *store, const char *conn,
                              enum target_state target, cluster_store_done done, void *arg);
void cluster_store_put_task_count(struct cluster_store *store, const char *conn, int count,
                                  cluster_store_done done, void *arg);
void cluster_store_put_session_key(struct cluster_store *store,
                                   const struct config_session_key *key, cluster_store_done done,
                                   void *arg);
void cluster_store_put_restart(struct cluster_store *store, const char *conn, bool include_tasks,
                               bool only_failed, cluster_store_done done, void *arg);
void cluster_store_put_logger(struct cluster_store *store, const char *logger, const char *level,
                              cluster_store_done done, void *arg);

/* --- status ----------------------------------------------------------------------------------- */

/* Write when there is time: the newest of each connector or task wins, one after another for each,
 * again after a failure. status: copied. safe: not if it would overwrite a newer owner's (for
 * UNASSIGNED and FAILED). No answer: status_state changes when the record was read back. A failure
 * that no retry mends is logged. */
void cluster_store_put_status(struct cluster_store *store, const char *conn, int task /* -1 */,
                              const struct status *status, bool safe);
void cluster_store_remove_status(struct cluster_store *store, const char *conn, int task /* -1 */);
/* Topics a connector uses; as status is written. */
void cluster_store_put_topic(struct cluster_store *store, const char *conn, const char *topic,
                             int task);
void cluster_store_remove_topic(struct cluster_store *store, const char *conn, const char *topic);
/* Transactions write to it: once, the log says by which settings it is too weak for what they
 * promise. */
void cluster_store_look_at_topic(struct cluster_store *store, const char *topic);

/* --- words among workers of Millrace ---------------------------------------------------------- */

/* Who said goodbye, as far as was read. Nothing while the topic can't be used, which was told in
 * the log. */
const struct word_state *cluster_store_words(const struct cluster_store *store);
/* Read the words to the end that they have now. */
void cluster_store_refresh_words(struct cluster_store *store, int64_t timeout_ms,
                                 cluster_store_done done, void *arg);
/* Say it; borrowed for the call. done: NULL, or runs once it is confirmed by all in-sync replicas,
 * or could not be said. */
void cluster_store_say(struct cluster_store *store, const struct word *word, int64_t timeout_ms,
                       cluster_store_done done, void *arg);

/* --- source offsets --------------------------------------------------------------------------- */

/* Until when this worker's hosts may write offsets (CLOCK_BOOTTIME; 0 no end, as at first): their
 * lease. Shortly before, puts that wait are answered with an error and not sent any more, and so
 * are new ones until there is a longer lease: a successor elsewhere may have begun to write. What a
 * broker has been sent already may still come about. */
void cluster_store_lease(struct cluster_store *store, int64_t hard_ms);

/* get and put for host_desk. get reads the topic to its end first. Valid for the store's life. */
struct offset_store cluster_store_offsets(struct cluster_store *store);
/* Every known [partition, offset] of a connector, after a read to the end. */
void cluster_store_list_offsets(struct cluster_store *store, const char *conn,
                                offset_store_read_fn fn, void *arg);

#endif
