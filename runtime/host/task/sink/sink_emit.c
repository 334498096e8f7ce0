/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's side of a sink that emits: records come in by mr_emit, stand in a batch of their own
 * until the call has gone well, and go to the sender in the order in which they came. Thread: the
 * task's.
 *
 *   begin ─► plugin: add, add … ─► MR_OK: converted, the mark moves behind them
 *               │                └► failed, or not to be converted: back to the mark
 *               └─ SPILL_BYTES in one call ─► converted and handed over before it ends: memory is
 *                  bounded, and if the call fails after all the whole transaction is turned back
 *
 * Invariant (exactly once): nothing of a call that failed is in a transaction that is committed. */
#include "host/task/sink/sink_emit.h"

#include "base/clock.h"
#include "host/task/sink/sink_state.h"

#include <string.h>

#define LOGGER "host.task.emit"
#include "base/log.h"

#define FULL_BYTES ((size_t)1024 * 1024)
#define FULL_RECORDS 4096
#define SPILL_BYTES ((size_t)16 * 1024 * 1024)

/* Not the plugin's failure: what it is about is read again. */
static int cut(struct sink_emit *e, struct mr_error *err)
{
    e->s->cut = true;
    return err->code = MR_ERR_CLOSED;
}

/* --- to the sender ---------------------------------------------------------------------------- */

/* Why nothing more can be sent in this transaction. */
static int trouble(struct sink_emit *e, struct mr_error *err)
{
    struct sender *sender = &e->sender;

    if (sender->broken.code != 0)
        return mr_fail(err, sender->broken.code, "%s", sender->broken.text);
    if (sender->lost || e->s->task->failed || sender->producer == NULL)
        return mr_fail(err, MR_ERR_STATE, "the transaction is lost");
    return 0;
}

static int finish_sending(struct sink_emit *e, struct mr_error *err)
{
    struct task *task = e->s->task;
    int rc = trouble(e, err);

    while (rc == 0 && e->sender.sending != NULL) {
        /* A stop is no end of sending: txn_wait knows how long that may take. */
        e->sender.send_until_ms = task_stop_since(task) + e->txn.graceful_ms * 8 / 10;
        sender_walk_reports(&e->sender);
        if (sender_go_on(&e->sender) == MR_ERR_FULL)
            rc = txn_wait(&e->txn, err);
        sender_look_for_trouble(&e->sender, clock_ms());
        if (rc == 0)
            rc = trouble(e, err);
    }
    return rc;
}

static void give_to_sender(struct sink_emit *e)
{
    struct batch *batch = e->filling;

    e->filling = NULL;
    e->mark = 0;
    if (batch == NULL)
        return;
    if (batch->pub.count > 0)
        sender_begin(&e->sender, batch);
    else
        batch_pool_give(e->pool, batch);
}

int sink_emit_hand_over(struct sink_emit *e, bool wait, struct mr_error *err)
{
    int rc = finish_sending(e, err);

    if (rc == 0) {
        give_to_sender(e);
        rc = wait ? finish_sending(e, err) : trouble(e, err);
    }
    if (rc != 0)
        sink_txn_tear(e);
    return rc;
}

void sink_emit_forget(struct sink_emit *e)
{
    if (e->filling != NULL)
        batch_pool_give(e->pool, e->filling);
    e->filling = NULL;
    e->mark = 0;
}

/* A batch for more records: reports give batches back. */
static int make_room(struct sink_emit *e, struct mr_error *err)
{
    int rc = 0;

    while (rc == 0 && e->filling == NULL && (e->filling = batch_pool_take(e->pool)) == NULL) {
        if (ack_window_empty(e->sender.window))
            return mr_fail(err, MR_ERR_NOMEM, "out of memory for emitted records");
        rc = sink_emit_hand_over(e, true, err);
        if (rc == 0)
            rc = txn_wait(&e->txn, err);
        if (rc == 0)
            sender_walk_reports(&e->sender);
    }
    e->topic = NULL;
    return rc == 0 ? 0 : cut(e, err);
}

/* --- within a call ---------------------------------------------------------------------------- */

static int convert(struct sink_emit *e, struct mr_error *err)
{
    int rc;

    if (e->filling == NULL || e->mark == e->filling->pub.count)
        return 0;
    rc = pipeline_emitted(e->s->pipeline, e->filling, e->mark, err);
    if (rc == 0)
        e->mark = e->filling->pub.count;
    return rc;
}

static int spill(struct sink_emit *e, struct mr_error *err)
{
    int rc = convert(e, err);

    if (rc != 0)
        return rc;
    e->spilled = true;
    rc = sink_emit_hand_over(e, false, err);
    return rc == 0 ? 0 : cut(e, err);
}

static bool fills(const struct sink_emit *e, size_t bytes)
{
    return e->filling != NULL && e->filling->bytes >= bytes;
}

/* A pipeline that writes to what it reads goes round for ever, unless it knows what it does. */
static void look_at_topic(struct sink_emit *e, const char *topic)
{
    e->topic = topic;
    if (e->told_own_topic || ledger_topic(e->s->ledger, topic) == NULL)
        return;
    e->told_own_topic = true;
    log_warn("emits to topic %s, which it reads as well: each record that it writes there comes "
             "back to it",
             topic);
}

/* Where what can't be emitted goes: to be thrown away. */
static struct mr_record *add_for_nothing(struct sink_emit *e, const char *topic)
{
    return &batch_add(e->scratch, topic)->pub;
}

struct mr_record *sink_emit_add(struct emitter *base, const char *topic)
{
    struct sink_emit *e = (struct sink_emit *)base;
    struct record *rec;
    int rc = 0;

    if (!e->in_call) {
        instance_misused(&e->s->task->inst, "%s: mr_emit was called outside of emits",
                         e->s->task->plugin->name);
        return add_for_nothing(e, topic);
    }
    if (e->failure.code == 0 && fills(e, SPILL_BYTES))
        rc = spill(e, &e->failure);
    if (e->failure.code == 0 && e->filling == NULL)
        rc = make_room(e, &e->failure);
    if (rc != 0 || e->failure.code != 0)
        return add_for_nothing(e, topic);
    rec = batch_add(e->filling, topic);
    if (rec->pub.topic != e->topic)
        look_at_topic(e, rec->pub.topic);
    return &rec->pub;
}

/* May the plugin ask about state now? */
static bool may_ask(struct sink_emit *e, const char *function)
{
    if (!e->in_call)
        instance_misused(&e->s->task->inst, "%s: %s was called outside of emits",
                         e->s->task->plugin->name, function);
    return e->in_call && e->failure.code == 0;
}

bool sink_emit_get(struct emitter *base, struct mr_value key, struct mr_value *value)
{
    struct sink_emit *e = (struct sink_emit *)base;

    return may_ask(e, "mr_state_get") && sink_state_get(e->state, key, value, &e->failure) > 0;
}

void sink_emit_set(struct emitter *base, struct mr_value key, struct mr_value value)
{
    struct sink_emit *e = (struct sink_emit *)base;

    if (may_ask(e, "mr_state_set"))
        sink_state_set(e->state, key, value, &e->failure);
}

static int begin(struct sink_emit *e, struct mr_error *err)
{
    struct batch *fresh;

    if (fills(e, FULL_BYTES) || (e->filling != NULL && e->filling->pub.count >= FULL_RECORDS))
        if (sink_emit_hand_over(e, false, err) != 0)
            return cut(e, err);
    fresh = batch_pool_take(e->scratches);
    if (fresh == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for what emits makes up");
    if (e->scratch != NULL)
        batch_pool_give(e->scratches, e->scratch);
    e->scratch = fresh;
    e->base.pub.arena = fresh->pub.arena;
    e->failure = (struct mr_error){0};
    e->spilled = false;
    e->in_call = true;
    return 0;
}

static void roll_back(struct sink_emit *e)
{
    if (e->filling != NULL)
        e->filling->pub.count = e->mark;
    if (e->spilled)
        sink_txn_tear(e);
}

/* What was over the limits of a batch is the plugin's fault, and of the whole batch. */
static const char *fault_of(const struct sink_emit *e)
{
    if (e->scratch->over)
        return e->scratch->fault;
    return e->filling != NULL && e->filling->over ? e->filling->fault : NULL;
}

/* The plugin's own word, unless it or the host has something against that. */
static int call(struct sink_emit *e, struct batch *batch, struct mr_error *err)
{
    struct task *task = e->s->task;
    int rc;

    task_enter(task, "emits", true);
    rc = task->plugin->sink.emits(task->inst.self, &batch->pub, &e->base.pub, err);
    e->in_call = false;
    if (rc >= 0 && (batch->over || fault_of(e) != NULL))
        rc = mr_fail(err, MR_ERR_FATAL, "%s", batch->over ? batch->fault : fault_of(e));
    rc = task_leave(task, "emits", rc, err);
    if (rc < 0 || e->failure.code == 0)
        return rc;
    *err = e->failure;
    return err->code;
}

/* A call that failed on data is to be taken apart, and its emits can't be called back singly: the
 * transaction is turned back, then come fewer records a call, and a single one is known again. */
static int take_apart(struct sink_emit *e, const struct batch *batch, struct mr_error *err)
{
    const struct record *rec = batch_at(batch, 0);

    e->limit = batch->pub.count > 1 ? batch->pub.count / 2 : 1;
    e->limit_left = e->uncommitted + batch->pub.count; /* all that is read again up to its end */
    if (batch->pub.count == 1) {
        e->guilt = *err;
        e->guilty_topic = ledger_topic(e->s->ledger, rec->from_topic);
        e->guilty_partition = rec->from_partition;
        e->guilty_offset = rec->pub.offset;
    }
    return cut(e, err);
}

static bool known_guilty(const struct sink_emit *e, const struct batch *batch)
{
    const struct record *rec = batch_at(batch, 0);

    return e->guilt.code != 0 && batch->pub.count == 1 && rec->pub.offset == e->guilty_offset &&
           rec->from_partition == e->guilty_partition &&
           ledger_topic(e->s->ledger, rec->from_topic) == e->guilty_topic;
}

int sink_emit_call(struct sink_emit *e, struct batch *batch, struct mr_error *err)
{
    int rc;

    if (known_guilty(e, batch)) {
        *err = e->guilt;
        e->guilt.code = 0;
        return err->code;
    }
    rc = begin(e, err);
    if (rc != 0)
        return rc;
    sink_state_begin(e->state, batch);
    rc = call(e, batch, err);
    if (rc >= 0) {
        task_enter(e->s->task, "from_connect", false);
        rc = convert(e, err);
        task_left(e->s->task);
        if (rc == MR_ERR_CLOSED && (task_stopping(e->s->task) || !task_lease_held(e->s->task)))
            cut(e, err);
    }
    sink_state_end(e->state, rc >= 0);
    if (rc < 0)
        roll_back(e);
    e->dirty = e->dirty || rc >= 0;
    return rc == MR_ERR_DATA && e->spilled && e->s->bisects ? take_apart(e, batch, err) : rc;
}

/* --- state, and dead letters ------------------------------------------------------------------ */

int sink_emit_borrowed(struct sink_emit *e, const struct sink_emit_bytes *bytes,
                       struct mr_error *err)
{
    struct record *rec;
    int rc = make_room(e, err);

    if (rc != 0)
        return rc;
    rec = batch_add_borrowed(e->filling, bytes->topic);
    rec->pub.partition = bytes->partition;
    rec->key_bytes = bytes->key;
    rec->key_len = bytes->key_len;
    rec->value_bytes = bytes->value;
    rec->value_len = bytes->value_len;
    e->mark = e->filling->pub.count;
    return e->mark < FULL_RECORDS ? 0 : sink_emit_hand_over(e, false, err);
}

static const void *copy(struct batch *batch, const void *bytes, size_t len)
{
    return bytes == NULL ? NULL : batch_copy(batch, bytes, len);
}

static void copy_headers(struct batch *batch, struct record *rec,
                         const struct producer_record *from)
{
    struct producer_header *headers =
        mr_alloc(batch->pub.arena, from->header_count * sizeof(*headers));

    for (size_t i = 0; i < from->header_count; i++) {
        const struct producer_header *header = &from->headers[i];

        headers[i].name = copy(batch, header->name, strlen(header->name) + 1);
        headers[i].value = copy(batch, header->value, header->value_len);
        headers[i].value_len = header->value_len;
    }
    rec->wire_headers = headers;
    rec->wire_header_count = rec->pub.header_count = (uint32_t)from->header_count;
}

int sink_emit_letter(void *emit, const char *topic, const struct producer_record *from,
                     struct mr_error *err)
{
    struct sink_emit *e = emit;
    struct record *rec;
    int rc = make_room(e, err);

    if (rc != 0)
        return rc;
    rec = batch_add(e->filling, topic);
    rec->pub.timestamp = from->timestamp_ms;
    rec->key_bytes = copy(e->filling, from->key, from->key_len);
    rec->key_len = from->key_len;
    rec->value_bytes = copy(e->filling, from->value, from->value_len);
    rec->value_len = from->value_len;
    copy_headers(e->filling, rec, from);
    e->mark = e->filling->pub.count;
    e->dirty = true;
    return e->filling->over ? mr_fail(err, MR_ERR_TOO_LARGE, "%s", e->filling->fault) : MR_OK;
}
