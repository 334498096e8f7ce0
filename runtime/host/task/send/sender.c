/* SPDX-License-Identifier: Apache-2.0 */
/* Between the ack window and the producer of a task, a source or a sink that emits: records out,
 * delivery reports in. Thread: the task's.
 *
 *   batch ─► window ─send─► producer ─► Kafka
 *               ▲ settle                  │
 *               └──────── reports ◄───────┘
 *
 * Invariants (promise 1): a batch enters the window before its first record is sent; a record that
 * failed under errors.tolerance=none is never settled, and nothing behind it is sent.
 *
 * A topic that is away (MR_ERR_NOT_FOUND): a broker that is behind does not know one that was just
 * made, and librdkafka then fails what is queued for it. Java's producer waits until the topic is
 * there. So do we: what is refused when it is sent is tried again, AWAY_MS later; what comes back
 * is sent again in order (sender_again.c); until delivery.timeout.ms has passed. In a transaction
 * what comes back breaks it. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/send/sender_private.h"
#include "host/task/task_client.h"
#include "host/task/send/txn.h"
#include "host/trace.h"

#include <stdlib.h>

#define PRODUCER_CLASS "org.apache.kafka.clients.producer.KafkaProducer"
#define LOGGER "host.task.send"
#include "base/log.h"

#define TROUBLE_AGAIN_MS 600000 /* trouble that lasts is told again */
#define AWAY_MS 500
#define AWAY_OVER_MS 10000 /* not heard of for so long, a topic is no longer away */

static bool ending(struct sender *s)
{
    return s->task->failed || s->broken.code != 0 || task_stopping(s->task);
}

bool sender_halted(struct sender *s)
{
    return ending(s) || s->silenced || !task_lease_held(s->task);
}

/* --- failures --------------------------------------------------------------------------------- */

/* What fails because another producer has our transactional id, or Kafka gave the transaction up,
 * is no failure of the task's. */
void sender_fail(struct sender *s, const struct mr_error *err)
{
    bool breaks = s->txn != NULL && (err->code == MR_ERR_STATE || err->code == MR_ERR_CLOSED ||
                                     producer_txn_over(s->producer));

    if (!breaks && s->broken.code == 0)
        task_fail(s->task, err, NULL);
    else if (s->broken.code == 0)
        s->broken = *err;
}

void sender_lose(struct sender *s, const struct mr_error *err)
{
    s->lost = true;
    sender_fail(s, err);
}

/* Java learns it later, from the producer; a trace begins the same. */
static void not_delivered(struct sender *s, int code, const char *text)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL, "Unrecoverable exception from producer send callback");
    mr_caused_by(&err, MR_ERR_FATAL, "%s: %s", trace_class(code), text);
    sender_lose(s, &err);
}

void sender_record_lost(struct sender *s, struct record *rec, int code, const char *text)
{
    const struct failure failure = {"KAFKA_PRODUCE", PRODUCER_CLASS, rec};
    struct mr_error err = {0};

    if (!s->tolerance->all || s->txn != NULL) {
        not_delivered(s, code, text);
        return;
    }
    mr_fail(&err, MR_ERR_FATAL, "%s", text);
    if (tolerance_skips(s->tolerance, &failure, &err)) {
        rec->dropped = true;    /* isolate does not send it again */
        ack_window_settle(rec); /* counts as done: its offset is stored in its turn */
        return;
    }
    sender_lose(s, &err);
}

/* --- a topic that is away --------------------------------------------------------------------- */

static void begin_away(struct sender *s, const char *topic, int64_t now_ms)
{
    s->away.since_ms = now_ms;
    s->away.told_ms = 0;
    snprintf(s->away.topic, sizeof(s->away.topic), "%s", topic);
}

/* false: it has been away for too long. text: what the brokers say. */
static bool wait_for_topic(struct sender *s, const char *topic, const char *text)
{
    int64_t now_ms = clock_ms();

    if (s->away.since_ms == 0 || now_ms - s->away.newest_ms > AWAY_OVER_MS)
        begin_away(s, topic, now_ms);
    s->away.newest_ms = now_ms;
    if (now_ms - s->away.since_ms >= s->timeout_ms)
        return false;
    if (s->away.again_ms == 0)
        s->away.again_ms = now_ms + AWAY_MS;
    if (s->away.told_ms == 0 || now_ms - s->away.told_ms >= TROUBLE_AGAIN_MS) {
        s->away.told_ms = now_ms;
        log_warn("%s: its records wait until it is there", text);
    }
    return true;
}

/* A record was delivered that was sent after the wait. */
static void end_away(struct sender *s, const char *topic)
{
    if (s->came_back || strcmp(s->away.topic, topic) != 0)
        return;
    log_info("topic %s takes records again", topic);
    s->away.since_ms = 0;
}

bool sender_held_up(struct sender *s)
{
    if (s->away.again_ms != 0 && clock_ms() >= s->away.again_ms)
        s->away.again_ms = 0;
    return s->away.again_ms != 0;
}

int64_t sender_due_ms(const struct sender *s)
{
    if (s->came_back && producer_in_flight(s->producer) > 0)
        return INT64_MAX;
    return s->away.again_ms != 0 ? s->away.again_ms : INT64_MAX;
}

static void break_transaction(struct sender *s, const char *text)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_STATE, "%s", text);
    sender_lose(s, &err);
}

void sender_come_back(struct sender *s, struct record *rec, const char *text)
{
    if (!wait_for_topic(s, rec->pub.topic, text))
        sender_record_lost(s, rec, MR_ERR_FATAL, text);
    else if (s->txn == NULL)
        s->came_back = true;
    else
        break_transaction(s, text);
}

/* --- delivery reports ------------------------------------------------------------------------- */

void sender_on_report(void *arg, void *opaque, int code, const char *text)
{
    struct sender *s = arg;
    struct record *rec = opaque;

    if (rec == NULL) /* an offset, of a transaction that is given up (txn_offsets.c) */
        return;
    if (code == MR_OK) {
        CRASH_POINT(DELIVERED);
        task_topics_use(s->task, rec->pub.topic);
        ack_window_settle(rec);
        CRASH_POINT(SETTLED);
        if (s->away.since_ms != 0 && s->away.again_ms == 0)
            end_away(s, rec->pub.topic);
    } else if (code == MR_ERR_NOT_FOUND) {
        sender_come_back(s, rec, text);
    } else if (code == MR_ERR_RETRY && s->txn != NULL) { /* out of time, as its transaction is */
        break_transaction(s, text);
    } else if (code == MR_ERR_TOO_LARGE && s->txn == NULL) {
        s->too_large++;                 /* judged by isolate, which may find another one guilty */
    } else if (code != MR_ERR_CLOSED) { /* purged: it stays unsettled */
        sender_record_lost(s, rec, code, text);
    }
}

void sender_walk_reports(struct sender *s)
{
    struct mr_error err = {0};

    producer_reports(s->producer, 0, sender_on_report, s);
    if (ack_window_advance(s->window, &err) != MR_OK)
        task_fail(s->task, &err, NULL);
}

/* Failures of the client as such: their beginning and their end are told in the log; fatal ones end
 * the task. */
void sender_look_for_trouble(struct sender *s, int64_t now_ms)
{
    struct mr_error err = {0};
    bool fatal = false;
    const char *trouble = producer_trouble(s->producer, &fatal);

    if (trouble == NULL) {
        if (s->trouble_ms != 0)
            log_info("producer: Kafka takes records again");
        s->trouble_ms = 0;
        return;
    }
    if (fatal) {
        mr_fail(&err, MR_ERR_FATAL, "the producer can't go on: %s", trouble);
        sender_fail(s, &err);
    } else if (s->trouble_ms == 0 || now_ms - s->trouble_ms >= TROUBLE_AGAIN_MS) {
        log_warn("producer: %s (%zu records wait; they are sent when the brokers answer)", trouble,
                 producer_in_flight(s->producer));
        s->trouble_ms = now_ms;
    }
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Have the topic of a record at hand, created first where that is ours to do. MR_ERR_FULL: the task
 * ends or its lease is lost. */
static int find_topic(struct sender *s, const struct record *rec, struct mr_error *err)
{
    int rc;

    if (s->topic_name == rec->pub.topic)
        return MR_OK;
    rc = topic_create_ensure(s->topics, rec->pub.topic, err);
    if (rc != MR_OK)
        return rc;
    s->topic = producer_topic(s->producer, rec->pub.topic, err);
    s->topic_name = s->topic == NULL ? NULL : rec->pub.topic;
    if (s->topic != NULL)
        return MR_OK;
    if (err->code == MR_ERR_DATA) /* such a topic can't be */
        err->code = MR_ERR_NOT_FOUND;
    return mr_fail(err, MR_ERR_FATAL, "no handle for topic %s", rec->pub.topic);
}

/* The producer is full although nothing is under way: the record alone is above its limit, and
 * waiting would be for ever. */
static int above_memory(const struct sender *s, const struct record *rec, struct mr_error *err)
{
    const char *limit = props_get(&s->java, "buffer.memory");

    err_clear(err);
    return mr_fail(err, MR_ERR_TOO_LARGE,
                   "A record for topic %.249s with a key of %zu and a value of %zu bytes is larger "
                   "than buffer.memory, which is %.20s",
                   rec->pub.topic, rec->key_len, rec->value_len,
                   limit != NULL ? limit : "33554432");
}

bool sender_is_record_s(int rc)
{
    return rc == MR_ERR_TOO_LARGE || rc == MR_ERR_NOT_FOUND;
}

int sender_send_record(struct sender *s, struct record *rec, struct mr_error *err)
{
    int rc = find_topic(s, rec, err);
    struct producer_record out = {
        .topic = s->topic,
        .partition = rec->pub.partition,
        .timestamp_ms = rec->pub.timestamp,
        .key = rec->key_bytes,
        .key_len = rec->key_len,
        .value = rec->value_bytes,
        .value_len = rec->value_len,
        .headers = rec->wire_headers,
        .header_count = rec->wire_headers == NULL ? 0 : rec->pub.header_count,
        .opaque = rec,
    };

    if (rc == MR_OK && s->txn != NULL)
        rc = txn_begin(s->txn, rec->pub.topic, err);
    if (rc != MR_OK)
        return rc;
    CRASH_POINT(SEND);
    rc = producer_send(s->producer, &out, err);
    CRASH_POINT(SENT);
    if (rc == MR_ERR_NOT_FOUND)
        return MR_AGAIN;
    return rc == MR_ERR_FULL && producer_in_flight(s->producer) == 0 ? above_memory(s, rec, err)
                                                                     : rc;
}

/* A topic that the producer does not know yet takes it up to 200 ms, and a batch may name
 * thousands: between two of them the end is looked for. */
static bool out_of_time(struct sender *s, const struct record *rec)
{
    return rec->pub.topic != s->topic_name &&
           ((ending(s) && clock_ms() >= s->send_until_ms) || !task_lease_held(s->task));
}

/* Also behind a record that was dropped. */
static enum batch_end end_behind(const struct sender *s, const struct record *rec)
{
    bool last = s->at + 1 == s->sending->pub.count;

    if (s->txn == NULL || s->txn->boundary != TXN_CONNECTOR)
        return BATCH_GOES_ON;
    return last && rec->end == BATCH_GOES_ON ? s->sending->end : (enum batch_end)rec->end;
}

int sender_go_on(struct sender *s)
{
    struct batch *batch = s->sending;
    struct mr_error err = {0};

    if (!task_lease_held(s->task) || s->came_back || sender_held_up(s))
        return MR_ERR_FULL;
    for (; s->at < batch->pub.count && !s->lost && !s->silenced && s->end == BATCH_GOES_ON;
         s->at++) {
        struct record *rec = batch_at(batch, s->at);
        int rc = MR_OK;

        if (!rec->settled)
            rc = out_of_time(s, rec) ? MR_ERR_FULL : sender_send_record(s, rec, &err);
        if (rc == MR_ERR_FULL || (rc == MR_AGAIN && wait_for_topic(s, rec->pub.topic, err.text)))
            return MR_ERR_FULL;
        if (sender_is_record_s(rc) || rc == MR_AGAIN) {
            sender_record_lost(s, rec, rc == MR_AGAIN ? MR_ERR_FATAL : err.code, err.text);
            err_clear(&err);
        } else if (rc < 0) {
            sender_lose(s, &err);
        }
        s->end = end_behind(s, rec);
    }
    if (s->at < batch->pub.count && !s->lost)
        return MR_ERR_FULL;
    s->sending = NULL;
    topic_create_rest(s->topics);
    return MR_OK;
}

/* Hand a converted batch to the window and begin to send. */
void sender_begin(struct sender *s, struct batch *batch)
{
    ack_window_push(s->window, batch);
    for (size_t i = 0; i < batch->pub.count; i++)
        if (batch_at(batch, i)->dropped)
            ack_window_settle(batch_at(batch, i));
    s->sending = batch;
    s->at = 0;
    s->topic_name = NULL;
    sender_go_on(s);
}

void sender_settle_sent(struct sender *s)
{
    struct ack_cursor at = ack_window_first(s->window);
    struct mr_error err = {0};

    for (; sender_was_sent(s, &at); ack_cursor_next(&at))
        ack_window_settle(ack_cursor_record(&at));
    if (ack_window_advance(s->window, &err) != MR_OK)
        task_fail(s->task, &err, NULL);
}

/* Sending on would put records into the topic before some that the next start sends again (promise:
 * order). */
bool sender_may_go_on(const struct sender *s)
{
    return s->sending != NULL && s->end == BATCH_GOES_ON && s->too_large == 0 && !s->gap &&
           !s->came_back && !s->silenced;
}

/* --- life ------------------------------------------------------------------------------------- */

int sender_connect(struct sender *s, struct task *task, struct mr_error *err)
{
    s->task = task;
    s->producer = producer_new(&s->java, task_client_warning, task, err);
    return s->producer != NULL ? MR_OK : err->code;
}

void sender_open(struct sender *s, struct tolerance *tolerance)
{
    s->tolerance = tolerance;
    s->window = ack_window_new();
    s->timeout_ms = task_client_number(&s->java, "delivery.timeout.ms", INT32_MAX, 0, INT64_MAX);
}

void sender_drop(struct sender *s)
{
    if (s->producer != NULL)
        producer_free(&s->producer);
}

void sender_close(struct sender *s)
{
    sender_drop(s);
    topic_create_close(&s->topics);
    ack_window_free(&s->window);
    map_free(&s->behind, NULL);
    props_deinit(&s->java);
}
