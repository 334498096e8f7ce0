/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a source task's offsets: asked for by the plugin, stored once their records are
 * settled, told to the plugin. With transactions: where one ends. Thread: the task's.
 *
 *   window's settled prefix ─offset_writer─► own_offsets, if any ─► the worker's store ─► committed
 *                           └─────────────────── txn, at boundaries ──────────────────┘
 *
 * What stands in the connector's own topic goes to the worker's too (offset_copies): nothing waits
 * for that, the first one counts.
 *
 * Invariant (promise 1): an offset is stored only when its record and all before it are settled;
 * where one became a dead letter, when that is delivered.
 *
 * Spec: SourceTaskOffsetCommitter, OffsetStorageWriter, ExactlyOnceWorkerSourceTask, KIP-618. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/source/source_task_private.h"

#define LOGGER "host.task.source"
#include "base/log.h"

#define OWN_ID INT64_MAX /* of a write to own_offsets, among ids of questions to the worker */

/* --- answers of the worker -------------------------------------------------------------------- */

static void tell_committed(struct source_task *s)
{
    const struct mr_source *source = &s->task->plugin->source;
    struct mr_error err = {0};
    int rc;

    if (source->committed == NULL)
        return;
    task_enter(s->task, "committed", false);
    rc = source->committed(s->task->inst.self, &err);
    rc = task_leave(s->task, "committed", rc, &err);
    if (rc < 0) /* as in Java: logged only */
        log_error("%s: %s", s->task->where, err.text);
}

/* true: a flush is done. */
static bool take_answer(struct source_task *s, int64_t id, const char *error)
{
    if (!offset_writer_answer(&s->writer, id, error, clock_ms()))
        return false;
    tell_committed(s);
    return true;
}

int64_t source_commit_put_copies(void *arg, json_t *entries)
{
    struct source_task *s = arg;

    if (task_lease_held(s->task))
        return s->task->events->put_offsets(s->task->arg, s->task, entries);
    json_decref(entries);
    return -1;
}

static bool take_own(struct source_task *s)
{
    struct mr_error err = {0};
    json_t *entries = s->own_entries;

    own_offsets_serve(s->own);
    if (!own_offsets_ended(s->own, &err))
        return false;
    s->own_entries = NULL;
    if (err.code == 0)
        offset_copies_add(&s->copies, entries);
    else
        json_decref(entries);
    return take_answer(s, OWN_ID, err.text);
}

bool source_commit_take_answers(struct source_task *s)
{
    struct task_answer *answer;
    bool done = s->own != NULL && take_own(s);

    while ((answer = task_answer_next(s->task)) != NULL) {
        if (s->own == NULL)
            done = take_answer(s, answer->id, answer->error) || done;
        else
            (void)offset_copies_answer(&s->copies, answer->id, answer->error,
                                       own_offsets_topic(s->own));
        task_answer_free(answer);
    }
    return done;
}

/* A record that became a dead letter counts as done; its offset may be stored when the letter is
 * delivered, and not before. */
static bool letters_delivered(struct source_task *s)
{
    struct mr_error err = {0};

    if (s->unsettled || pipeline_settle(s->pipeline, &err) == MR_OK)
        return !s->unsettled;
    s->unsettled = true;
    if (err.code != MR_ERR_CLOSED)
        task_fail(s->task, &err, NULL);
    return false;
}

int64_t source_commit_put_offsets(void *arg, json_t *entries)
{
    struct source_task *s = arg;

    if (!letters_delivered(s)) {
        json_decref(entries);
        return -1;
    }
    if (s->own == NULL)
        return s->task->events->put_offsets(s->task->arg, s->task, entries);
    s->own_entries = entries;
    own_offsets_put(s->own, entries);
    return OWN_ID;
}

/* offset: NULL none. */
static int find_member(const json_t *offset, const char *key, bool *found, int64_t *out,
                       struct mr_error *err)
{
    const json_t *member = json_object_get(offset, key);

    if (member != NULL && !json_is_null(member) && !json_is_integer(member))
        return mr_fail(err, MR_ERR_DATA, "the stored offset has no integer as %.200s", key);
    *found = json_is_integer(member);
    if (*found)
        *out = json_integer_value(member);
    return MR_OK;
}

static int ask_worker(struct source_task *s, json_t *partition, const char *key, bool *found,
                      int64_t *out, struct mr_error *err)
{
    struct task_answer *answer = task_answer_wait(
        s->task, s->task->events->ask_offsets(s->task->arg, s->task, json_pack("[O]", partition)));
    int rc;

    if (answer == NULL)
        return mr_fail(err, MR_ERR_CLOSED, "the task is stopping");
    if (answer->error[0] != '\0')
        rc = mr_fail(err, MR_ERR_FATAL, "source offsets could not be read: %s", answer->error);
    else
        rc = find_member(json_array_get(json_array_get(answer->entries, 0), 1), key, found, out,
                         err);
    task_answer_free(answer);
    return rc;
}

int source_commit_read_offset(void *arg, const struct mr_source_partition *part, const char *key,
                              bool *found, int64_t *out, struct mr_error *err)
{
    struct source_task *s = arg;
    const json_t *offset = NULL;
    json_t *partition;
    int rc = MR_OK;

    if (!pthread_equal(pthread_self(), s->task->thread))
        return mr_fail(err, MR_ERR_STATE,
                       "offsets are read on the task's thread only, in start or poll");
    partition = json_pack("{s:s?}", part->key, part->value);
    if (partition == NULL)
        return mr_fail(err, MR_ERR_DATA, "the name of source partition %.200s is not UTF-8",
                       part->key);
    if (s->own != NULL)
        rc = own_offsets_read(s->own, err);
    if (s->own != NULL && rc == MR_OK)
        offset = own_offsets_get(s->own, partition);
    if (rc == MR_OK)
        rc = offset != NULL ? find_member(offset, key, found, out, err)
                            : ask_worker(s, partition, key, found, out, err);
    json_decref(partition);
    return rc;
}

/* --- transactions ----------------------------------------------------------------------------- */

static void committed(struct source_task *s)
{
    json_t *entries;

    while ((entries = txn_offsets_next_copy(&s->txn)) != NULL)
        offset_copies_add(&s->copies, entries);
    tell_committed(s);
    CRASH_POINT(TXN_TOLD);
}

void source_commit_end(struct source_task *s, bool aborts)
{
    struct mr_error err = {0};
    int rc;

    s->torn = true;
    if (!letters_delivered(s))
        return;
    rc = aborts ? txn_discard(&s->txn, &err) : txn_commit(&s->txn, &err);
    s->torn = rc != 0;
    if (rc == 0)
        committed(s);
    else if (!task_stopping(s->task) && task_lease_held(s->task)) /* else `rest` begins anew */
        sender_fail(&s->sender, &err);
    if (rc != 0 && !s->task->failed && s->sender.broken.code == 0)
        log_warn("%s", err.text);
    if (rc == 0 && producer_txn_tainted(s->sender.producer)) {
        log_info("the end of a transaction was sent twice: the producer sends no more");
        s->restart = true;
    }
}

bool source_commit_as_told(struct source_task *s)
{
    enum batch_end end = s->sender.end;

    if (end == BATCH_GOES_ON)
        return false;
    s->sender.end = BATCH_GOES_ON;
    source_commit_end(s, end == BATCH_ABORTS);
    return true;
}

bool source_commit_when_due(struct source_task *s, int64_t now_ms)
{
    if (!source_task_exactly_once(s) || !txn_due(&s->txn, now_ms) ||
        (!s->txn.open && ack_window_committable(s->sender.window) == 0))
        return false;
    source_commit_end(s, false);
    return true;
}
