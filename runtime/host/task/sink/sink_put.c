/* SPDX-License-Identifier: Apache-2.0 */
/* A sink task's batch on its way into the plugin: put, put again, put in parts. Thread: the task's.
 *
 *   batch ─put─► MR_OK, some refused ─► dead letters delivered ─► the ledger accepts
 *             ├► MR_ERR_RETRY: kept, values copied out of the fetch buffers, all partitions
 *             │  paused, put again later
 *             ├► MR_ERR_DATA of a put without effects, and dead letters are set: halves, until the
 *             │  guilty record stands alone
 *             ├► MR_ERR_STALE of a plugin that stores offsets: read again from where it stands
 *             └► all else: the task fails, the ledger accepts nothing
 *
 * Invariant (promise 1): a record is accepted when put took it, or when its dead letter is
 * delivered. Records of partitions that went are dropped from a batch in hand. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/sink/sink_emit.h"
#include "host/task/sink/sink_task_private.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"

#define LOGGER "host.task.sink"
#include "base/log.h"

#define RETRY_MS 1000 /* back-off after MR_ERR_RETRY */

/* --- the batch that is put again -------------------------------------------------------------- */

static bool is_among(const struct record *rec, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].partition == rec->from_partition &&
            strcmp(parts[i].topic, rec->from_topic) == 0)
            return true;
    return false;
}

void sink_task_drop_held(struct sink_task *s, const struct consumer_partition *parts, size_t count)
{
    struct batch *batch = s->held;
    size_t kept = 0;

    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->pub.count; i++) {
        if (is_among(batch_at(batch, i), parts, count))
            continue;
        if (kept != i)
            *batch_at(batch, kept) = *batch_at(batch, i);
        kept++;
    }
    batch->pub.count = kept;
}

void sink_task_batch_done(struct sink_task *s, struct batch *batch)
{
    batch_pool_give(s->pool, batch);
    if (s->held == batch)
        s->held = NULL;
}

/* The headers of the message, for a dead letter. */
static void own_wire_headers(struct batch *batch, struct record *rec)
{
    size_t count = rec->from->header_count;
    struct producer_header *own = mr_alloc(batch->pub.arena, count * sizeof(*own));

    for (size_t i = 0; i < count && !batch->over; i++) {
        struct consumer_header header = consumer_header_at(rec->from, i);

        own[i].name = batch_copy(batch, header.name, strlen(header.name) + 1);
        own[i].value =
            header.value == NULL ? NULL : batch_copy(batch, header.value, header.value_len);
        own[i].value_len = header.value_len;
    }
    rec->wire_headers = own;
    rec->wire_header_count = (uint32_t)count;
}

static const void *own_bytes(struct batch *batch, const void *bytes, size_t len)
{
    return bytes == NULL ? NULL : batch_copy(batch, bytes, len);
}

/* Copy what borrows from fetch buffers, so that these can be released while the batch waits. */
static bool own_record(struct batch *batch, struct record *rec, bool dead_letters)
{
    struct mr_header *headers = (struct mr_header *)(uintptr_t)rec->pub.headers;

    rec->pub.key = batch_own(batch, rec->pub.key);
    rec->pub.value = batch_own(batch, rec->pub.value);
    for (uint32_t i = 0; i < rec->pub.header_count; i++) {
        headers[i].name = batch_copy(batch, headers[i].name, headers[i].name_len + 1);
        headers[i].value = batch_own(batch, headers[i].value);
    }
    if (dead_letters) {
        rec->key_bytes = own_bytes(batch, rec->key_bytes, rec->key_len);
        rec->value_bytes = own_bytes(batch, rec->value_bytes, rec->value_len);
        own_wire_headers(batch, rec);
    } else {
        rec->key_bytes = rec->value_bytes = NULL;
    }
    rec->from = NULL;
    return !batch->over;
}

static bool hold(struct sink_task *s, struct batch *batch)
{
    bool dead_letters = pipeline_writes_dead_letters(s->pipeline);
    struct mr_error err = {0};

    if (s->held == batch)
        return true;
    for (size_t i = 0; i < batch->pub.count; i++) {
        if (own_record(batch, batch_at(batch, i), dead_letters))
            continue;
        mr_fail(&err, MR_ERR_NOMEM, "the batch that is to be put again can't be kept: %s",
                batch->fault);
        sink_task_fail(s, &err, NULL);
        return false;
    }
    s->held = batch;
    return true;
}

/* Those that were put already, in parts, are not put again. */
static void forget_done(struct batch *batch, size_t done)
{
    for (size_t i = done; done > 0 && i < batch->pub.count; i++)
        *batch_at(batch, i - done) = *batch_at(batch, i);
    batch->pub.count -= done;
}

static void put_again_later(struct sink_task *s, struct batch *batch, const struct mr_error *err)
{
    int64_t wait = err->retry_after_ms > 0 ? err->retry_after_ms : RETRY_MS;
    bool first = s->held == NULL;

    if (!hold(s, batch)) {
        ledger_reject(s->ledger);
        sink_task_batch_done(s, batch);
        return;
    }
    s->put_again_ms = clock_in_ms(wait);
    if (first)
        log_warn("put is tried again in %lld ms: %s", (long long)wait, err->text);
}

/* --- put -------------------------------------------------------------------------------------- */

static int call_put(struct sink_task *s, struct batch *batch, struct mr_error *err)
{
    int rc;

    if (s->emit != NULL)
        return sink_emit_call(s->emit, batch, err);
    task_enter(s->task, "put", true);
    rc = s->task->plugin->sink.put(s->task->inst.self, &batch->pub, err);
    if (rc >= 0 && batch->over)
        rc = mr_fail(err, MR_ERR_FATAL, "%s", batch->fault);
    return task_leave(s->task, "put", rc, err);
}

/* What a put that went well has refused. */
static int take_rejects(struct sink_task *s, struct batch *batch, struct mr_error *err)
{
    int rc = MR_OK;

    for (struct reject *r = batch->rejects; r != NULL && rc == MR_OK; r = r->next) {
        mr_fail(err, MR_ERR_DATA, "%s", r->text);
        rc = pipeline_reject(s->pipeline, batch_at(batch, r->i), err);
    }
    return rc;
}

/* Records from … from + count - 1, as a batch of their own. */
static int put_part(struct sink_task *s, struct batch *batch, size_t from, size_t count,
                    struct mr_error *err)
{
    struct mr_batch whole = batch->pub;
    int rc = s->places.stores ? sink_places_give(s, batch, from, count, err) : MR_OK;

    if (rc != MR_OK || (count == 0 && !s->empty_put && s->places.list.count == 0))
        return rc;
    batch->pub.records += from * batch->pub.record_size;
    batch->pub.count = count;
    batch_clear_rejects(batch);
    rc = call_put(s, batch, err);
    if (rc >= 0 && s->places.stores)
        sink_places_took(s);
    if (rc >= 0) {
        rc = take_rejects(s, batch, err);
        s->cut = rc == MR_ERR_CLOSED;
    }
    batch->pub.records = whole.records;
    batch->pub.count = whole.count;
    return rc;
}

/* By parts until the guilty ones stand alone. *done: how many, from the front, need no put any
 * more. At most as deep as a count has bits. */
static int put_parts(struct sink_task *s, struct batch *batch, size_t from, size_t count,
                     size_t *done, struct mr_error *err)
{
    size_t half = count / 2;
    int rc = put_part(s, batch, from, count, err);

    if (rc == MR_ERR_DATA && s->bisects && count > 1) {
        err_clear(err);
        rc = put_parts(s, batch, from, half, done, err);
        return rc < 0 ? rc : put_parts(s, batch, from + half, count - half, done, err);
    }
    if (rc == MR_ERR_DATA && s->bisects && count == 1) {
        rc = pipeline_reject(s->pipeline, batch_at(batch, from), err);
        s->cut = rc == MR_ERR_CLOSED;
        s->places.skipped = true;
    }
    if (rc >= 0)
        *done = from + count;
    return rc;
}

/* Of a plugin that stores offsets: those behind the last dead letter, too, or it would be written
 * again. */
static int put_rest(struct sink_task *s, struct batch *batch, struct mr_error *err)
{
    bool skipped = s->places.stores && s->places.skipped;

    s->places.skipped = false;
    return skipped ? put_part(s, batch, batch->pub.count, 0, err) : MR_OK;
}

/* Of what was put or given up so far. A batch that is put again does not bring them along. */
static int settle(struct sink_task *s, int rc, struct mr_error *err)
{
    struct mr_error why = {0};

    if (rc < 0 && rc != MR_ERR_RETRY)
        return rc;
    if (pipeline_settle(s->pipeline, &why) == MR_OK)
        return rc;
    s->cut = why.code == MR_ERR_CLOSED;
    *err = why;
    return why.code;
}

/* The plugin has it, or the dead-letter topic. */
static int put_all(struct sink_task *s, struct batch *batch, struct mr_error *err)
{
    size_t done = 0;
    int rc = MR_OK;

    if (batch->pub.count > 0 || s->empty_put) {
        s->put_due_ms = INT64_MAX;
        rc = put_parts(s, batch, 0, batch->pub.count, &done, err);
        if (rc >= 0)
            rc = put_rest(s, batch, err);
        s->unflushed = true; /* also what a failed put took: flush covers it, the ledger does not */
    }
    rc = settle(s, rc, err);
    if (rc == MR_ERR_RETRY)
        forget_done(batch, done);
    if (s->cut)
        pipeline_drop_letters(s->pipeline);
    return rc;
}

/* It is read again: a transaction can't wait for it. */
static void put_back(struct sink_task *s, int rc, const struct mr_error *err)
{
    int64_t wait = rc != MR_ERR_RETRY        ? 0
                   : err->retry_after_ms > 0 ? err->retry_after_ms
                                             : RETRY_MS;

    ledger_reject(s->ledger);
    if (wait > 0)
        log_warn("its records are read again in %lld ms: %s", (long long)wait, err->text);
    sink_txn_reject(s->emit, wait);
}

/* What becomes of a batch that went through emits. */
static void emitted(struct sink_task *s, size_t count, int rc, const struct mr_error *err)
{
    if (rc >= 0)
        sink_txn_accept(s->emit, count);
    else
        put_back(s, rc, err);
    if (rc < 0 && rc != MR_ERR_RETRY && !s->cut)
        sink_task_fail(s, err, s->task->where);
}

bool sink_task_put(struct sink_task *s, struct batch *batch)
{
    struct mr_error err = {0};
    bool lent, moved, stale;
    int rc;

    s->cut = false;
    sink_consumer_offer(s);
    CRASH_POINT(PUT);
    rc = put_all(s, batch, &err);
    CRASH_POINT(PUT_TAKEN);
    lent = sink_consumer_end_offer(s);
    if (rc >= 0)
        ledger_accept(s->ledger);
    if (lent)
        sink_consumer_take_back(s);
    moved = sink_control_apply(s);
    if (s->emit != NULL) {
        emitted(s, batch->pub.count, rc, &err);
        sink_task_batch_done(s, batch);
        return rc >= 0 && !lent && !moved;
    }
    if (rc == MR_ERR_RETRY) {
        put_again_later(s, batch, &err);
        return false;
    }
    if (rc < 0)
        ledger_reject(s->ledger);
    stale = rc == MR_ERR_STALE && s->places.stores;
    if (stale)
        sink_places_stale(s, &err);
    s->read_again = s->read_again || s->cut || stale;
    if (rc < 0 && !s->cut && !stale)
        sink_task_fail(s, &err, s->task->where);
    sink_task_batch_done(s, batch);
    return rc >= 0 && !lent && !moved;
}
