/* SPDX-License-Identifier: Apache-2.0 */
/* Between the ack window and the producer of a source task: records out, delivery reports in.
 * Thread: the task's.
 *
 *   batch ─► window ─send─► producer ─► Kafka
 *               ▲ settle                  │
 *               └──────── reports ◄───────┘
 *
 * Invariants (promise 1): a batch enters the window before its first record is sent; a record that
 * failed under errors.tolerance=none is never settled, and nothing behind it is sent.
 *
 * A record that the topic can't take (MR_ERR_TOO_LARGE by report): the broker refuses whole
 * requests, so innocent records fail with it, and what was queued behind may have been written
 * before we hear of it. So everything from the first unsettled record on is sent again, in order
 * and in ever smaller groups (isolate), until the guilty record stands alone. */
#include "host/task/sender.h"

#include "base/clock.h"
#include "host/task/task_client.h"
#include "host/task/txn.h"
#include "host/trace.h"

#include <stdlib.h>

#define PRODUCER_CLASS "org.apache.kafka.clients.producer.KafkaProducer"
#define LOGGER "host.task.source"
#include "base/log.h"

#define TROUBLE_AGAIN_MS 600000 /* trouble that lasts is told again */
#define SMALL_BATCH 16384       /* Java's default batch.size */
#define GROUP_MAX 1024

static bool ending(struct sender *s)
{
    return s->task->failed || s->broken.code != 0 || task_stopping(s->task);
}

/* Nothing more may be sent, for now or for good. */
static bool halted(struct sender *s)
{
    return ending(s) || !task_lease_held(s->task);
}

/* --- delivery reports ------------------------------------------------------------------------- */

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

/* Nothing behind this record may be sent any more. */
static void lose(struct sender *s, const struct mr_error *err)
{
    s->lost = true;
    sender_fail(s, err);
}

/* Java learns it later, from the producer; a trace begins the same. */
static void not_delivered(struct sender *s, int code, const char *text)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL,
            "Unrecoverable exception from producer send callback\nCaused by: %s: %s",
            trace_class(code), text);
    lose(s, &err);
}

/* A record was not delivered and never will be. */
static void record_lost(struct sender *s, struct record *rec, int code, const char *text)
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
    lose(s, &err);
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct sender *s = arg;
    struct record *rec = opaque;

    if (code == MR_OK) {
        task_topics_use(s->task, rec->pub.topic);
        ack_window_settle(rec);
    } else if (code == MR_ERR_TOO_LARGE && s->txn == NULL) {
        s->too_large++;                 /* judged by isolate, which may find another one guilty */
    } else if (code != MR_ERR_CLOSED) { /* purged: it stays unsettled */
        record_lost(s, rec, code, text);
    }
}

void sender_walk_reports(struct sender *s)
{
    struct mr_error err = {0};

    producer_reports(s->producer, 0, on_report, s);
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

/* A failure of this record alone, which tolerance may skip: too large, or for a topic that can't
 * be. */
static bool is_record_s(int rc)
{
    return rc == MR_ERR_TOO_LARGE || rc == MR_ERR_NOT_FOUND;
}

/* MR_ERR_FULL only while reports are awaited; MR_ERR_TOO_LARGE for what is above max.request.size
 * or buffer.memory. */
static int send_record(struct sender *s, struct record *rec, struct mr_error *err)
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
    rc = producer_send(s->producer, &out, err);
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

    if (!task_lease_held(s->task))
        return MR_ERR_FULL;
    for (; s->at < batch->pub.count && !s->lost && s->end == BATCH_GOES_ON; s->at++) {
        struct record *rec = batch_at(batch, s->at);
        int rc = MR_OK;

        if (!rec->settled)
            rc = out_of_time(s, rec) ? MR_ERR_FULL : send_record(s, rec, &err);
        if (rc == MR_ERR_FULL)
            return rc;
        if (is_record_s(rc)) {
            record_lost(s, rec, err.code, err.text);
            err_clear(&err);
        } else if (rc < 0) {
            lose(s, &err);
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

/* --- a record too large for its topic --------------------------------------------------------- */

static void sender_wait(struct sender *s, int64_t deadline_ms)
{
    struct pollfd fd = {.fd = producer_fd(s->producer), .events = POLLIN};

    task_wait(s->task, &fd, 1, deadline_ms);
}

static bool drain_producer(struct sender *s)
{
    while (producer_in_flight(s->producer) > 0) {
        if (halted(s))
            return false;
        sender_wait(s, INT64_MAX);
        producer_reports(s->producer, 0, on_report, s);
    }
    return !halted(s);
}

/* Behind the last record that was sent. */
static bool was_sent(const struct sender *s, const struct ack_cursor *at)
{
    return at->batch != NULL && !(at->batch == s->sending && at->i >= s->at);
}

/* Send up to max records from *from on, also settled ones, so that the order in the topic stays.
 * Gives how many, *next is behind them; when one can't be sent, and tolerance does not help, the
 * task fails. */
static size_t send_group(struct sender *s, const struct ack_cursor *from, size_t max,
                         struct ack_cursor *next)
{
    size_t sent = 0;
    struct mr_error err = {0};

    for (*next = *from; sent < max && was_sent(s, next) && !halted(s); ack_cursor_next(next)) {
        struct record *rec = ack_cursor_record(next);
        int rc;

        if (rec->dropped)
            continue;
        if (rec->settled) {
            rec->settled = false;
            rec->batch->unsettled++;
        }
        s->topic_name = NULL; /* names of another batch may stand at the same address */
        while ((rc = send_record(s, rec, &err)) == MR_ERR_FULL && drain_producer(s))
            err_clear(&err);
        if (rc == MR_OK)
            sent++;
        else if (is_record_s(rc))
            record_lost(s, rec, err.code, err.text);
        else if (rc != MR_ERR_FULL) /* full: halted */
            lose(s, &err);
        if (s->lost || rc == MR_ERR_FULL)
            break;
        err_clear(&err);
    }
    return sent;
}

static struct ack_cursor first_unsettled(const struct sender *s, const struct ack_cursor *from)
{
    struct ack_cursor at = *from;

    while (was_sent(s, &at) && ack_cursor_record(&at)->settled)
        ack_cursor_next(&at);
    return at;
}

/* Smaller requests from now on: the topic takes the records, but not as many in one request. */
static void shrink_requests(struct sender *s)
{
    struct mr_error err = {0};
    struct producer *smaller;
    char size[16];

    if (task_client_number(&s->java, "batch.size", INT64_MAX, 0, INT64_MAX) <= SMALL_BATCH)
        return;
    snprintf(size, sizeof(size), "%d", SMALL_BATCH);
    if (props_set(&s->java, "batch.size", size) != 0)
        return;
    smaller = producer_new(&s->java, NULL, NULL, &err);
    if (smaller == NULL) {
        task_fail(s->task, &err, NULL);
        return;
    }
    producer_free(&s->producer);
    s->producer = smaller;
    log_warn("the topic's max.message.bytes is below the producer's batch.size; going on with "
             "batch.size=%d",
             SMALL_BATCH);
}

/* One guilty record, alone in its request. */
static void judge(struct sender *s, struct record *rec)
{
    char text[400];

    snprintf(
        text, sizeof(text),
        "A record for topic %.249s with a key of %zu and a value of %zu bytes is larger than the "
        "topic's max.message.bytes",
        rec->pub.topic, rec->key_len, rec->value_len);
    record_lost(s, rec, MR_ERR_TOO_LARGE, text);
}

void sender_isolate(struct sender *s)
{
    struct ack_cursor at;
    size_t group = 64;
    bool guilty = false;

    log_warn("the broker refuses a request as too large; looking for the record");
    s->gap = true;
    producer_purge(s->producer);
    if (!drain_producer(s))
        return;
    at = ack_window_first(s->window);
    at = first_unsettled(s, &at);
    while (was_sent(s, &at) && !halted(s)) {
        struct ack_cursor next;
        struct ack_cursor back;
        size_t sent;

        s->too_large = 0;
        sent = send_group(s, &at, group, &next);
        if (!drain_producer(s))
            break;
        back = first_unsettled(s, &at);
        if (s->too_large == 0) {
            at = next;
            group = group * 2 < GROUP_MAX ? group * 2 : GROUP_MAX;
        } else if (sent == 1) {
            guilty = true;
            judge(s, ack_cursor_record(&back));
            at = next;
        } else {
            at = back;
            group = sent < 8 ? 1 : sent / 8;
        }
    }
    s->too_large = 0;
    s->gap = was_sent(s, &at);
    s->topic_name = NULL;
    if (!guilty && !halted(s))
        shrink_requests(s);
}

void sender_settle_sent(struct sender *s)
{
    struct ack_cursor at = ack_window_first(s->window);
    struct mr_error err = {0};

    for (; was_sent(s, &at); ack_cursor_next(&at))
        ack_window_settle(ack_cursor_record(&at));
    if (ack_window_advance(s->window, &err) != MR_OK)
        task_fail(s->task, &err, NULL);
}

/* Sending on would put records into the topic before some that the next start sends again (promise:
 * order). */
bool sender_may_go_on(const struct sender *s)
{
    return s->sending != NULL && s->end == BATCH_GOES_ON && s->too_large == 0 && !s->gap;
}

/* --- without a lease -------------------------------------------------------------------------- */

/* A producer that is gone can send nothing, whatever its state was; the next one is another to the
 * brokers. */
void sender_take_back(struct sender *s)
{
    sender_walk_reports(s);
    producer_free(&s->producer);
    s->topic = NULL;
    s->topic_name = NULL;
    s->too_large = 0;
}

void sender_send_again(struct sender *s)
{
    struct mr_error err = {0};
    struct ack_cursor at = ack_window_first(s->window);

    s->producer = producer_new(&s->java, NULL, NULL, &err);
    if (s->producer == NULL) {
        task_fail(s->task, &err, NULL);
        return;
    }
    at = first_unsettled(s, &at);
    while (was_sent(s, &at) && !halted(s)) {
        struct ack_cursor next;

        send_group(s, &at, GROUP_MAX, &next);
        at = next;
    }
    s->gap = was_sent(s, &at);
    s->topic_name = NULL;
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
    props_deinit(&s->java);
}
