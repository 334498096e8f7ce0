/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's producer and its thread.
 *
 *   UNCLAIMED ─claim─► producer made, its transactions ─► CLAIMED ─write─► a transaction ─► CLAIMED
 *       ▲                                                    │ taken over, unclear, failed for good
 *       └────────────────────────────────────────────────────┘
 *
 * From UNCLAIMED only a claim leads on, since taking the id over would fence a leader that came
 * after: whether this worker still leads is the herder's to know. Threads: the store's asks, this
 * one does; answers are posted. */
#include "worker/store/fenced_writer.h"

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/queue.h"
#include "kafka/producer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOGGER "worker.store"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"

#define WAITING_MAX 4096
#define SLICE_MS 100
#define CLAIM_MS 30000

/* A set of records to be written, or (done NULL) a claim; and then its answer. */
struct job {
    struct fenced_writer *w;
    bool anew; /* of a claim */
    int64_t deadline_ms;
    fenced_writer_done done;
    void *arg;
    struct mr_error err;
    size_t count;
    struct fenced_write *writes; /* into bytes */
    char *bytes;
};

struct fenced_writer {
    struct loop *loop;
    struct queue *jobs;
    pthread_t thread;
    atomic_bool ending;
    bool gone; /* the loop's: answers that are still posted are dropped */
    atomic_int refs;
    /* the thread's */
    char *topic;
    struct props settings;
    struct producer *producer; /* NULL: unclaimed */
    struct producer_topic *handle;
    struct mr_error lost; /* a record of the transaction under way */
};

static void drop(struct fenced_writer *w)
{
    if (atomic_fetch_sub(&w->refs, 1) > 1)
        return;
    props_deinit(&w->settings);
    free(w->topic);
    free(w);
}

static void free_job(void *arg)
{
    struct job *job = arg;

    free(job->writes);
    free(job->bytes);
    free(job);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void unclaim(struct fenced_writer *w)
{
    producer_free(&w->producer);
    w->handle = NULL;
}

static int out_of_time(const struct fenced_writer *w, int64_t deadline_ms, struct mr_error *err)
{
    if (atomic_load(&w->ending))
        return mr_fail(err, MR_ERR_CLOSED, "the worker is stopping");
    if (clock_ms() >= deadline_ms)
        return mr_fail(err, MR_ERR_TIMEOUT, "topic %s: the brokers did not commit in time",
                       w->topic);
    return 0;
}

/* A failure that the next write need not share: it is too large, or a broker that is behind does
 * not know the topic. */
static bool is_write_s(int code)
{
    return code == MR_ERR_TOO_LARGE || code == MR_ERR_NOT_FOUND;
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct fenced_writer *w = arg;

    (void)opaque;
    if (code != 0 && w->lost.code == 0)
        mr_fail(&w->lost, is_write_s(code) ? code : MR_ERR_FATAL, "%s", text);
}

typedef int (*txn_step)(struct producer *p, int64_t timeout_ms, struct mr_error *err);

static int insist(struct fenced_writer *w, txn_step step, int64_t deadline_ms, struct mr_error *err)
{
    int rc;

    while ((rc = step(w->producer, SLICE_MS, err)) == MR_AGAIN) {
        rc = out_of_time(w, deadline_ms, err);
        if (rc != 0)
            return rc;
        producer_reports(w->producer, 0, on_report, w);
    }
    return rc;
}

static void claim(struct fenced_writer *w, bool anew)
{
    struct mr_error err = {0};
    int rc = MR_ERR_CONFIG;

    if (w->producer != NULL && !anew)
        return;
    unclaim(w);
    w->producer = producer_new(&w->settings, NULL, NULL, &err);
    if (w->producer != NULL)
        rc = insist(w, producer_txn_init, clock_ms() + CLAIM_MS, &err);
    if (rc == 0)
        return;
    unclaim(w);
    if (rc != MR_ERR_CLOSED)
        log_error("topic %s can't be written by this worker as the leader: %s", w->topic, err.text);
}

static int send_all(struct fenced_writer *w, const struct job *job, struct mr_error *err)
{
    int rc = 0;

    if (w->handle == NULL)
        w->handle = producer_topic(w->producer, w->topic, err);
    if (w->handle == NULL)
        return err->code;
    w->lost = (struct mr_error){0};
    for (size_t i = 0; rc == 0 && i < job->count; i++) {
        struct producer_record rec = {.topic = w->handle,
                                      .partition = -1,
                                      .timestamp_ms = -1,
                                      .key = job->writes[i].key,
                                      .key_len = job->writes[i].key_len,
                                      .value = job->writes[i].value,
                                      .value_len = job->writes[i].value_len};

        CRASH_POINT(LEADER_SEND);
        while ((rc = producer_send(w->producer, &rec, err)) == MR_ERR_FULL &&
               (rc = out_of_time(w, job->deadline_ms, err)) == 0)
            producer_reports(w->producer, SLICE_MS, on_report, w);
    }
    while (rc == 0 && producer_in_flight(w->producer) > 0) {
        producer_reports(w->producer, SLICE_MS, on_report, w);
        rc = out_of_time(w, job->deadline_ms, err);
    }
    return rc == 0 && w->lost.code != 0 ? mr_fail(err, w->lost.code, "%s", w->lost.text) : rc;
}

static int write_set(struct fenced_writer *w, const struct job *job, struct mr_error *err)
{
    int rc;

    CRASH_POINT(LEADER_BEGIN);
    rc = producer_txn_begin(w->producer, err);
    if (rc != 0)
        return rc;
    rc = send_all(w, job, err);
    CRASH_POINT(LEADER_SENT);
    if (rc == 0)
        return insist(w, producer_txn_commit, job->deadline_ms, err);
    if (is_write_s(rc)) {
        struct mr_error own = {0};

        if (insist(w, producer_txn_abort, clock_ms() + SLICE_MS * 20, &own) != 0)
            unclaim(w);
    }
    return rc;
}

/* Written again while the topic is not known, a moment later. */
static bool goes_again(struct fenced_writer *w, struct job *job, int rc)
{
    if (rc != MR_ERR_NOT_FOUND || w->producer == NULL || producer_txn_tainted(w->producer) ||
        out_of_time(w, job->deadline_ms, NULL) != 0)
        return false;
    producer_reports(w->producer, SLICE_MS, on_report, w);
    err_clear(&job->err);
    return true;
}

static void carry_out(struct fenced_writer *w, struct job *job)
{
    int rc;

    if (w->producer == NULL) {
        mr_fail(&job->err, MR_ERR_STATE,
                "this worker is not sure to lead its cluster: another may have taken over");
        return;
    }
    do
        rc = write_set(w, job, &job->err);
    while (goes_again(w, job, rc));
    CRASH_POINT(LEADER_ENDED);
    if (rc == MR_ERR_NOT_FOUND)
        job->err.code = MR_ERR_TIMEOUT;
    if (rc == MR_ERR_CLOSED && !atomic_load(&w->ending))
        job->err.code = MR_ERR_STATE;
    if (w->producer != NULL && ((rc != 0 && !is_write_s(rc)) || producer_txn_tainted(w->producer)))
        unclaim(w);
}

static void deliver(void *arg)
{
    struct job *job = arg;
    struct fenced_writer *w = job->w;

    if (!w->gone)
        job->done(job->arg, job->err.code, job->err.text);
    free_job(job);
    drop(w);
}

static void *run(void *arg)
{
    struct fenced_writer *w = arg;
    struct job *job;

    pthread_setname_np(pthread_self(), "leader");
    while ((job = queue_pop(w->jobs, -1)) != NULL) {
        if (job->done == NULL) {
            claim(w, job->anew);
            free_job(job);
            continue;
        }
        carry_out(w, job);
        atomic_fetch_add(&w->refs, 1);
        mr_assert(loop_post(w->loop, deliver, job) == 0); /* which outlives this thread */
    }
    unclaim(w);
    return NULL;
}

/* --- whoever asks ----------------------------------------------------------------------------- */

static int start(struct fenced_writer *w, struct mr_error *err)
{
    errno = thread_start(&w->thread, run, w);
    return errno == 0 ? 0 : err_errno(err, "no thread for the leader's writes");
}

struct fenced_writer *fenced_writer_new(const struct fenced_writer_options *options,
                                        struct mr_error *err)
{
    struct fenced_writer *w = calloc(1, sizeof(*w));

    mr_assert(w != NULL);
    w->loop = options->loop;
    w->jobs = queue_new(WAITING_MAX);
    w->topic = text_dup(options->topic);
    atomic_init(&w->refs, 1);
    mr_assert(w->jobs != NULL && props_copy(&w->settings, options->producer) == 0);
    if (start(w, err) == 0)
        return w;
    queue_free(&w->jobs, free_job);
    drop(w);
    return NULL;
}

void fenced_writer_free(struct fenced_writer **wp)
{
    struct fenced_writer *w = *wp;

    *wp = NULL;
    if (w == NULL)
        return;
    w->gone = true;
    atomic_store(&w->ending, true);
    queue_close(w->jobs);
    pthread_join(w->thread, NULL);
    queue_free(&w->jobs, free_job);
    drop(w);
}

static struct job *job_new(struct fenced_writer *w)
{
    struct job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    job->w = w;
    return job;
}

void fenced_writer_claim(struct fenced_writer *w, bool anew)
{
    struct job *job = job_new(w);

    job->anew = anew;
    if (queue_push(w->jobs, job) != 0)
        free_job(job);
}

static void copy(struct job *job, const struct fenced_write *writes, size_t count)
{
    size_t bytes = 1, at = 0;

    for (size_t i = 0; i < count; i++)
        bytes += writes[i].key_len + writes[i].value_len;
    job->count = count;
    job->writes = calloc(count + 1, sizeof(*job->writes));
    job->bytes = malloc(bytes);
    mr_assert(job->writes != NULL && job->bytes != NULL);
    for (size_t i = 0; i < count; i++) {
        struct fenced_write *to = &job->writes[i];

        *to = writes[i];
        to->key = memcpy(job->bytes + at, writes[i].key, writes[i].key_len);
        at += writes[i].key_len;
        if (writes[i].value != NULL)
            to->value = memcpy(job->bytes + at, writes[i].value, writes[i].value_len);
        at += writes[i].value_len;
    }
}

void fenced_writer_write(struct fenced_writer *w, const struct fenced_write *writes, size_t count,
                         int64_t deadline_ms, fenced_writer_done done, void *arg)
{
    struct job *job = job_new(w);

    copy(job, writes, count);
    job->deadline_ms = deadline_ms;
    job->done = done;
    job->arg = arg;
    if (queue_push(w->jobs, job) == 0)
        return;
    mr_fail(&job->err, MR_ERR_FULL, "too many writes of the leader wait");
    atomic_fetch_add(&w->refs, 1);
    mr_assert(loop_post(w->loop, deliver, job) == 0);
}
