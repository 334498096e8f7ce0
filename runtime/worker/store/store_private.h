/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of cluster_store: the worker's loop asks (cluster_store.c), the store
 * thread does (store_thread.c, store_log.c). */
#ifndef WORKER_STORE_PRIVATE_H
#define WORKER_STORE_PRIVATE_H

#include "base/clock.h"
#include "base/loop.h"
#include "kafka/topic_log.h"
#include "worker/store/config_records.h"
#include "worker/store/fenced_writer.h"
#include "worker/store/internal_topics.h"
#include "model/offset_records.h"
#include "worker/store/offset_store.h"
#include "worker/store/status_records.h"
#include "worker/store/word_records.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* --- what is asked ---------------------------------------------------------------------------- */

struct store_write {
    char *key;
    size_t key_len;
    char *value; /* NULL: tombstone */
    size_t value_len;
};

/* A request is done step by step: writes up to `end`, all confirmed; then, if asked, the topic is
 * read to its end. */
struct store_step {
    size_t end;
    bool read_back;
};
#define STORE_STEPS 3

enum store_task { STORE_RECORDS, STORE_OFFSETS_GET, STORE_OFFSETS_LIST, STORE_OFFSETS_PUT };

/* Made by the loop, carried out by the thread, answered on the loop. Requests of one topic about
 * one subject (a connector) are carried out one after another. */
struct cluster_store;
struct store_thread;
struct store_request {
    struct store_request *prev; /* loop side: of the open ones, oldest first */
    struct store_request *next;
    struct cluster_store *owner; /* loop side; NULL: answered by the store's end */
    struct store_thread *thread;
    enum internal_topic_kind topic;
    enum store_task task;
    bool privileged; /* the leader's alone */
    char *subject;   /* NULL: waits for nobody */
    int64_t deadline_ms;
    struct store_write *writes;
    size_t write_count;
    struct store_step steps[STORE_STEPS];
    size_t step_count;
    json_t *body; /* of an offsets task: the question, then the answer's entries */
    struct mr_error err;
    atomic_bool finished;                      /* the thread is done with it */
    void (*answer)(struct store_request *req); /* on the loop */
    void (*done)(void *arg, const struct mr_error *err);
    offset_store_read_fn read_fn;
    offset_store_written_fn written_fn;
    void *arg;
};

/* --- what comes of itself --------------------------------------------------------------------- */

/* One record of the status, config or words topic. */
struct store_item {
    int64_t offset;
    bool skip; /* config: only its offset counts */
    union {
        struct config_record config;
        struct status_record status;
        struct word word;
    } rec;
};
#define STORE_BATCH 100
struct store_batch {
    enum internal_topic_kind topic;
    bool fresh; /* words: not of the replay */
    size_t count;
    size_t bytes;
    struct store_item items[STORE_BATCH];
};

/* Runs on the loop; what arrives after the loop's half has gone is dropped by `drop`. */
struct store_thread_events {
    void (*batch)(void *arg, struct store_batch *batch); /* taken */
    /* Err NULL: Connect's were read to their ends. */
    void (*ready)(void *arg, const struct mr_error *err);
    void (*lost)(void *arg, const char *topic, const struct mr_error *err);
    void (*answer)(void *arg, struct store_request *req);
};

/* --- the thread ------------------------------------------------------------------------------- */

struct store_thread;

/* Starts it. topics: taken, but only on success. */
struct store_thread *store_thread_new(struct loop *loop, struct internal_topics *topics,
                                      const struct store_thread_events *events, void *arg,
                                      struct mr_error *err);
void store_thread_ask(struct store_thread *thread, struct store_request *req);
void store_thread_claim(struct store_thread *thread, bool anew);        /* as cluster_store_claim */
void store_thread_lease(struct store_thread *thread, int64_t hard_ms);  /* as cluster_store_lease */
void store_thread_look(struct store_thread *thread, const char *topic); /* ..._look_at_topic */
/* Wait until deadline_ms for what is under way to be confirmed, then end the thread. No event runs
 * after this. Requests that were not answered are the loop's again, as they are. */
void store_thread_end(struct store_thread **thread, int64_t deadline_ms);

/* Frees what it holds. */
void store_request_free(struct store_request *req);
void store_batch_free(struct store_batch *batch);

/* --- store_log.c: one topic, on the thread ---------------------------------------------------- */

struct store_job; /* a request under way */

struct store_log;
struct store_log_events {
    void (*record)(struct store_log *log, const struct topic_log_record *rec);
    void (*flush)(struct store_log *log); /* what was read goes out before an answer does */
    void (*answer)(struct store_log *log, struct store_request *req);
    void (*lost)(struct store_log *log, const struct mr_error *err);
};

struct store_log {
    const struct internal_topic *topic;
    bool seldom; /* written */
    struct topic_admin *admin;
    struct loop *loop;            /* the thread's */
    struct offset_table *offsets; /* TOPIC_OFFSETS */
    const atomic_llong *lease_ms; /* TOPIC_OFFSETS: no offset is written after; 0 no end */
    const struct store_log_events *events;
    struct store_thread *thread;
    struct topic_log *log;
    struct fenced_writer *writer; /* of the leader's writes; NULL: they are as all others */
    int partitions;
    struct loop_fd *watch;
    struct store_job *first; /* oldest first */
    struct store_job *last;
    struct loop_timer round; /* jobs are looked at soon */
    struct loop_timer later; /* and now and then */
    int64_t said_ms;         /* about trouble */
    int64_t ask_ms;          /* for the next question about the end */
    int64_t rest_until_ms;   /* none before */
    bool moved;
    bool full; /* the client took no more in this look: what comes behind must not overtake */
    bool ending;
    struct mr_error lost; /* code 0: it is not */
};

/* Create or verify, and read to the end; blocks. Errors as internal_topics_ensure. */
int store_log_open(struct store_log *log, int64_t give_up_ms, struct mr_error *err);
/* An open one that holds nothing may still not be read: MR_ERR_UNSUPPORTED. Blocks for a moment,
 * side by side with others that are open. */
int store_log_prove(struct store_log *log, struct mr_error *err);
/* Follow it on the loop from now on. */
int store_log_start(struct store_log *log, struct mr_error *err);
void store_log_ask(struct store_log *log, struct store_request *req);
void store_log_claim(const struct store_log *log, bool anew);
/* ms until offsets are not written any more, 0 since then, -1 no end. Any thread. */
int64_t store_log_lease_left(const struct store_log *log);
/* The lease may have ended: offsets that wait are given up then. Gives the ms until it ends, 0 once
 * it has, -1 no end. */
int64_t store_log_look_at_lease(struct store_log *log);
/* What was appended and is not sent yet is not sent any more. Any thread, while it is open. */
void store_log_cut(const struct store_log *log);
/* Nothing is read for anybody any more. true: all that was to be written is confirmed, or never
 * will be. */
bool store_log_end(struct store_log *log);
void store_log_close(struct store_log *log);

#endif
