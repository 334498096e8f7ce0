/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a source task: poll → convert → produce → delivery reports → ack window → offsets. Thread: the task's.
 *
 *                      ┌─────────────── reports ◄──────────────┐
 *                      ▼                                       │
 *   plugin ─poll─► batch ─pipeline─► (window takes it) ─send─► producer ─► Kafka
 *                      ▲                   │ frontier
 *                      └── given back ◄────┴──► offset_writer ─► worker's store ─► plugin's committed
 *
 * Every turn of the loop walks the reports that have arrived and then does one thing: send on, poll, or wait. All waits are
 * one poll(2) on stop, commands, reports, the plugin's wake-up and its own descriptor. Nothing spins, nothing is dropped:
 * a full producer or a batch budget that is used up waits for reports.
 *
 * Invariants (promise 1): a batch enters the window before its first record is sent; an offset is stored only when its
 * record and all before it are settled; a record that failed under errors.tolerance=none is never settled.
 *
 * A record that the topic can't take (MR_ERR_TOO_LARGE by report): the broker refuses whole requests, so innocent records
 * fail with it, and what was queued behind may have been written before we hear of it. So everything from the first
 * unsettled record on is sent again, in order and in ever smaller groups (isolate), until the guilty record stands alone.
 *
 * Spec: AbstractWorkerSourceTask, WorkerSourceTask, SubmittedRecords, SourceTaskOffsetCommitter. */
#include "base/clock.h"
#include "host/task/ack_window.h"
#include "host/task/offset_writer.h"
#include "host/task/pipeline.h"
#include "host/task/task_client.h"
#include "host/task/task_priv.h"
#include "kafka/producer.h"
#include "model/task_times.h"

#include <stdlib.h>

#define LOGGER "host.task.source"
#include "base/log.h"

#define BATCH_RECORDS 4096 /* what mr_batch_full calls full */
#define RETRY_MIN_MS 100   /* back-off after MR_ERR_RETRY from poll: doubled up to the maximum */
#define RETRY_MAX_MS 5000
#define EMPTY_FREE 16 /* polls in a row that gave nothing, asked for no wait and took no time */
#define EMPTY_MAX_MS 100
#define TROUBLE_LOG_MS 30000
#define LATE_SEND_MS \
    400 /* at least this long for deliveries after a poll that came back late, ... */
#define LATE_STORE_MS 200 /* ... and this for their offsets; ... */
#define OVER_SEND_MS 300  /* ... over the graceful time at most this, and */
#define OVER_STORE_MS 500 /* this: the worker waits a second */
#define TRIM_MS 2000      /* idle for so long: cached memory goes back */
#define SMALL_BATCH 16384 /* Java's default batch.size */
#define GROUP_MAX 1024

struct source_task {
    struct task *task;
    struct pipeline *pipeline;
    struct props java; /* the producer's settings */
    struct producer *producer;
    struct batch_pool *pool;
    struct ack_window *window;
    struct offset_writer writer;
    int64_t graceful_ms;

    struct batch *sending; /* in the window, records from `at` on are not sent yet; NULL none */
    size_t at;
    int64_t send_until_ms;  /* while ending */
    const char *topic_name; /* the last record's, a pointer into `sending` */
    struct producer_topic *topic;

    int64_t next_poll_ms;
    int again_fd; /* poll again when it is readable; -1 none */
    int64_t backoff_ms;
    uint32_t empty_polls;
    int64_t idle_since_ms; /* 0: busy, or trimmed */

    size_t too_large; /* records that came back so since the last look */
    bool gap;         /* records behind the first unsettled one were taken back from the producer */
    bool failing;     /* no more polls: settle what can be, then end */
    int64_t failing_since_ms;
    bool lost; /* a record failed for good: nothing behind it is sent any more */
    int64_t trouble_log_ms;
};

/* --- failure ------------------------------------------------------------------------------------------------------- */

static void fail(struct source_task *s, const struct mr_error *err, const char *where)
{
    task_fail(s->task, err, where);
    if (!s->failing)
        s->failing_since_ms = clock_ms();
    s->failing = true;
}

MR_PRINTF(3, 4)
static void fail_with(struct source_task *s, int code, const char *fmt, ...)
{
    struct mr_error err = {.code = code};
    va_list args;

    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    fail(s, &err, NULL);
}

static bool ending(struct source_task *s)
{
    return s->failing || task_stopping(s->task);
}

/* --- delivery reports ------------------------------------------------------------------------------------------------ */

/* Nothing behind this record may be sent any more. */
static void lose(struct source_task *s, const struct mr_error *err)
{
    s->lost = true;
    fail(s, err, NULL);
}

/* A record was not delivered and never will be. */
static void record_lost(struct source_task *s, struct record *rec, const char *text)
{
    struct mr_error err = {0};
    char where[400];

    mr_fail(&err, MR_ERR_FATAL, "%s", text);
    snprintf(where, sizeof(where), "KAFKA_PRODUCE, a record for topic %.249s", rec->pub.topic);
    if (pipeline_tolerance(s->pipeline)->all) {
        tolerance_skips(pipeline_tolerance(s->pipeline), &err, where, clock_ms());
        rec->dropped = true;    /* isolate does not send it again */
        ack_window_settle(rec); /* counts as done: its offset is stored in its turn */
        return;
    }
    lose(s, &err);
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct source_task *s = arg;
    struct record *rec = opaque;

    if (code == MR_OK)
        ack_window_settle(rec);
    else if (code == MR_ERR_TOO_LARGE)
        s->too_large++;             /* judged by isolate, which may find another one guilty */
    else if (code != MR_ERR_CLOSED) /* purged: it stays unsettled */
        record_lost(s, rec, text);
}

static void walk_reports(struct source_task *s)
{
    struct mr_error err = {0};

    producer_reports(s->producer, 0, on_report, s);
    if (ack_window_advance(s->window, &err) != MR_OK)
        fail(s, &err, NULL);
}

/* Failures of the client as such: told in the log, now and then; fatal ones end the task. */
static void look_for_trouble(struct source_task *s, int64_t now_ms)
{
    bool fatal = false;
    const char *trouble = producer_trouble(s->producer, &fatal);

    if (trouble == NULL)
        return;
    if (fatal) {
        fail_with(s, MR_ERR_FATAL, "the producer can't go on: %s", trouble);
    } else if (now_ms >= s->trouble_log_ms) {
        log_warn("producer: %s (%zu records wait; they are sent when the brokers answer)", trouble,
                 producer_in_flight(s->producer));
        s->trouble_log_ms = now_ms + TROUBLE_LOG_MS;
    }
}

/* --- waiting --------------------------------------------------------------------------------------------------------- */

/* Wait for reports, stop, commands; with polling also for what ends the wait before the next poll. */
static void wait_for(struct source_task *s, bool polling, int64_t deadline_ms)
{
    struct pollfd fds[3] = {
        {.fd = producer_fd(s->producer), .events = POLLIN},
        {.fd = polling ? s->task->wake_fd : -1, .events = POLLIN},
        {.fd = polling ? s->again_fd : -1, .events = POLLIN},
    };
    int64_t due = offset_writer_due_ms(&s->writer);

    task_wait(s->task, fds, 3, due < deadline_ms ? due : deadline_ms);
    if (fds[1].revents != 0) {
        task_drain_fd(s->task->wake_fd);
        s->next_poll_ms = 0;
    }
    if (fds[2].revents & POLLNVAL)
        fail_with(s, MR_ERR_FATAL, "mr_again_on_fd was given descriptor %d, which is not open",
                  s->again_fd);
    else if (fds[2].revents != 0)
        s->next_poll_ms = 0;
}

/* Nothing to do before the next poll: give memory back after a while. */
static void wait_idle(struct source_task *s, int64_t now_ms)
{
    int64_t deadline_ms = s->next_poll_ms;

    if (ack_window_empty(s->window) && s->idle_since_ms != 0) {
        if (now_ms - s->idle_since_ms >= TRIM_MS) {
            batch_pool_trim(s->pool);
            s->idle_since_ms = 0;
        } else if (s->idle_since_ms + TRIM_MS < deadline_ms) {
            deadline_ms = s->idle_since_ms + TRIM_MS;
        }
    }
    wait_for(s, true, deadline_ms);
}

/* --- answers of the worker --------------------------------------------------------------------------------------- */

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
static bool take_answers(struct source_task *s)
{
    struct task_answer *answer;
    bool done = false;

    while ((answer = task_answer_next(s->task)) != NULL) {
        if (offset_writer_answer(&s->writer, answer->id, answer->error, clock_ms())) {
            tell_committed(s);
            done = true;
        }
        task_answer_free(answer);
    }
    return done;
}

static int64_t put_offsets(void *arg, json_t *entries)
{
    struct source_task *s = arg;

    return s->task->events->put_offsets(s->task->arg, s->task, entries);
}

/* What mr_offset_long does: ask the worker and wait. */
static int find_offset(const struct task_answer *answer, const char *key, bool *found, int64_t *out,
                       struct mr_error *err)
{
    const json_t *offset = json_array_get(json_array_get(answer->entries, 0), 1);
    const json_t *member = json_object_get(offset, key);

    if (answer->error[0] != '\0')
        return mr_fail(err, MR_ERR_FATAL, "source offsets could not be read: %s", answer->error);
    if (member != NULL && !json_is_null(member) && !json_is_integer(member))
        return mr_fail(err, MR_ERR_DATA, "the stored offset has no integer as %.200s", key);
    *found = json_is_integer(member);
    if (*found)
        *out = json_integer_value(member);
    return MR_OK;
}

static int read_offset(void *arg, const struct mr_source_partition *part, const char *key,
                       bool *found, int64_t *out, struct mr_error *err)
{
    struct source_task *s = arg;
    json_t *partition;
    struct task_answer *answer;
    int rc;

    if (!pthread_equal(pthread_self(), s->task->thread))
        return mr_fail(err, MR_ERR_STATE,
                       "offsets are read on the task's thread only, in start or poll");
    partition = json_pack("{s:s?}", part->key, part->value);
    if (partition == NULL)
        return mr_fail(err, MR_ERR_DATA, "the name of source partition %.200s is not UTF-8",
                       part->key);
    answer = task_answer_wait(
        s->task, s->task->events->ask_offsets(s->task->arg, s->task, json_pack("[o]", partition)));
    if (answer == NULL)
        return mr_fail(err, MR_ERR_CLOSED, "the task is stopping");
    rc = find_offset(answer, key, found, out, err);
    task_answer_free(answer);
    return rc;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

static struct producer_topic *topic_of(struct source_task *s, const struct record *rec,
                                       struct mr_error *err)
{
    if (s->topic_name != rec->pub.topic) {
        s->topic = producer_topic(s->producer, rec->pub.topic, err);
        s->topic_name = s->topic == NULL ? NULL : rec->pub.topic;
    }
    return s->topic;
}

/* The producer is full although nothing is under way: the record alone is above its limit, and waiting would be for ever. */
static int above_memory(const struct source_task *s, const struct record *rec, struct mr_error *err)
{
    const char *limit = props_get(&s->java, "buffer.memory");

    err_clear(err);
    return mr_fail(err, MR_ERR_TOO_LARGE,
                   "A record for topic %.249s with a key of %zu and a value of %zu bytes is larger "
                   "than buffer.memory, which is %.20s",
                   rec->pub.topic, rec->key_len, rec->value_len,
                   limit != NULL ? limit : "33554432");
}

/* MR_ERR_FULL only while reports are awaited; MR_ERR_TOO_LARGE for what is above max.request.size or buffer.memory. */
static int send_record(struct source_task *s, struct record *rec, struct mr_error *err)
{
    struct producer_record out = {
        .topic = topic_of(s, rec, err),
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

    int rc = out.topic == NULL
                 ? mr_fail(err, MR_ERR_FATAL, "no handle for topic %s", rec->pub.topic)
                 : producer_send(s->producer, &out, err);

    return rc == MR_ERR_FULL && producer_in_flight(s->producer) == 0 ? above_memory(s, rec, err)
                                                                     : rc;
}

/* A topic that the producer does not know yet takes it up to 200 ms, and a batch may name thousands: between two of them
 * the end is looked for. */
static bool out_of_time(struct source_task *s, const struct record *rec)
{
    return rec->pub.topic != s->topic_name && ending(s) && clock_ms() >= s->send_until_ms;
}

/* Send on until the batch is through (then sending is NULL), a record fails, or the producer is full or the task ends:
 * MR_ERR_FULL. */
static int send_on(struct source_task *s)
{
    struct batch *batch = s->sending;
    struct mr_error err = {0};

    for (; s->at < batch->pub.count && !s->lost; s->at++) {
        struct record *rec = batch_at(batch, s->at);
        int rc = MR_OK;

        if (!rec->settled)
            rc = out_of_time(s, rec) ? MR_ERR_FULL : send_record(s, rec, &err);
        if (rc == MR_ERR_FULL)
            return rc;
        if (rc == MR_ERR_TOO_LARGE) {
            record_lost(s, rec, err.text);
            err_clear(&err);
        } else if (rc < 0) {
            lose(s, &err);
        }
    }
    s->sending = NULL;
    return MR_OK;
}

/* Hand a converted batch to the window and begin to send. */
static void begin_sending(struct source_task *s, struct batch *batch)
{
    ack_window_push(s->window, batch);
    for (size_t i = 0; i < batch->pub.count; i++)
        if (batch_at(batch, i)->dropped)
            ack_window_settle(batch_at(batch, i));
    s->sending = batch;
    s->at = 0;
    s->topic_name = NULL;
    send_on(s);
}

/* --- a record too large for its topic ----------------------------------------------------------------------------- */

static bool drain_producer(struct source_task *s)
{
    while (producer_in_flight(s->producer) > 0) {
        if (ending(s))
            return false;
        wait_for(s, false, INT64_MAX);
        producer_reports(s->producer, 0, on_report, s);
    }
    return !ending(s);
}

/* Behind the last record that was sent. */
static bool was_sent(const struct source_task *s, const struct ack_cursor *at)
{
    return at->batch != NULL && !(at->batch == s->sending && at->i >= s->at);
}

/* Send up to max records from *from on, also settled ones, so that the order in the topic stays. Gives how many, *next is
 * behind them; when one can't be sent, and tolerance does not help, the task fails. */
static size_t send_group(struct source_task *s, const struct ack_cursor *from, size_t max,
                         struct ack_cursor *next)
{
    size_t sent = 0;
    struct mr_error err = {0};

    for (*next = *from; sent < max && was_sent(s, next) && !ending(s); ack_cursor_next(next)) {
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
        else if (rc == MR_ERR_TOO_LARGE)
            record_lost(s, rec, err.text);
        else if (rc != MR_ERR_FULL) /* full: the task ends */
            lose(s, &err);
        if (s->lost || rc == MR_ERR_FULL)
            break;
        err_clear(&err);
    }
    return sent;
}

static struct ack_cursor first_unsettled(const struct source_task *s, const struct ack_cursor *from)
{
    struct ack_cursor at = *from;

    while (was_sent(s, &at) && ack_cursor_record(&at)->settled)
        ack_cursor_next(&at);
    return at;
}

/* Smaller requests from now on: the topic takes the records, but not as many in one request. */
static void shrink_requests(struct source_task *s)
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
        fail(s, &err, NULL);
        return;
    }
    producer_free(&s->producer);
    s->producer = smaller;
    log_warn("the topic's max.message.bytes is below the producer's batch.size; going on with "
             "batch.size=%d",
             SMALL_BATCH);
}

/* One guilty record, alone in its request. */
static void judge(struct source_task *s, struct record *rec)
{
    char text[400];

    snprintf(
        text, sizeof(text),
        "A record for topic %.249s with a key of %zu and a value of %zu bytes is larger than the "
        "topic's max.message.bytes",
        rec->pub.topic, rec->key_len, rec->value_len);
    record_lost(s, rec, text);
}

static void isolate(struct source_task *s)
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
    while (was_sent(s, &at) && !ending(s)) {
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
    if (!guilty && !ending(s))
        shrink_requests(s);
}

/* --- polling ------------------------------------------------------------------------------------------------------- */

/* When to poll next, after a call that gave no reason to hurry. */
static void schedule(struct source_task *s, const struct batch *batch, int rc, int64_t began_ms,
                     int64_t now_ms)
{
    s->again_fd = -1;
    s->next_poll_ms = 0;
    if (batch->again && rc == MR_AGAIN) {
        s->next_poll_ms = batch->again_ms < 0 ? INT64_MAX : now_ms + batch->again_ms;
        s->again_fd = batch->again_fd;
        s->empty_polls = 0;
    } else if (batch->pub.count > 0 || now_ms > began_ms) {
        s->empty_polls = 0;
    } else if (++s->empty_polls > EMPTY_FREE) {
        /* A poll that gives nothing and waits for nothing would take a whole core. */
        int64_t wait = s->empty_polls - EMPTY_FREE;

        s->next_poll_ms = now_ms + (wait < EMPTY_MAX_MS ? wait : EMPTY_MAX_MS);
    }
}

static void poll_retry(struct source_task *s, const struct mr_error *err, int64_t now_ms)
{
    int64_t wait = err->retry_after_ms > 0 ? err->retry_after_ms : s->backoff_ms;

    if (s->backoff_ms == RETRY_MIN_MS || s->backoff_ms == RETRY_MAX_MS)
        log_warn("poll is tried again in %lld ms: %s", (long long)wait, err->text);
    s->backoff_ms = s->backoff_ms * 2 < RETRY_MAX_MS ? s->backoff_ms * 2 : RETRY_MAX_MS;
    s->again_fd = -1;
    s->next_poll_ms = now_ms + wait;
}

static void convert_and_send(struct source_task *s, struct batch *batch)
{
    struct mr_error err = {0};
    size_t ready = 0;
    int rc;

    task_enter(s->task, "from_connect", false);
    rc = pipeline_to_kafka(s->pipeline, batch, &ready, &err);
    task_left(s->task);
    batch->pub.count = ready; /* what precedes a bad record is sent, and its offset stored */
    begin_sending(s, batch);
    if (rc != MR_OK)
        fail(s, &err, NULL);
}

static void poll_plugin(struct source_task *s, struct batch *batch)
{
    struct mr_error err = {0};
    int64_t began_ms = clock_ms();
    int64_t now_ms;
    int rc;

    task_enter(s->task, "poll", true);
    rc = s->task->plugin->source.poll(s->task->inst.self, &batch->pub, &err);
    if (rc >= 0 && batch->over)
        rc = mr_fail(&err, MR_ERR_FATAL, "%s", batch->fault);
    rc = task_leave(s->task, "poll", rc, &err);
    now_ms = clock_ms();
    if (rc >= 0) {
        s->backoff_ms = RETRY_MIN_MS;
        schedule(s, batch, rc, began_ms, now_ms);
    }
    if (rc >= 0 && batch->pub.count > 0) {
        s->idle_since_ms = now_ms;
        convert_and_send(s, batch);
        return;
    }
    batch_pool_give(s->pool, batch);
    if (rc == MR_ERR_RETRY)
        poll_retry(s, &err, now_ms);
    else if (rc < 0)
        fail(s, &err, s->task->where);
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

static void turn_paused(struct source_task *s)
{
    if (s->task->reported != STATE_PAUSED) {
        offset_writer_flush(&s->writer, clock_ms());
        task_report(s->task, STATE_PAUSED);
    }
    wait_for(s, false, INT64_MAX);
}

static void turn(struct source_task *s)
{
    int64_t now_ms = clock_ms();
    struct batch *batch;

    if (s->sending != NULL) {
        if (send_on(s) == MR_ERR_FULL)
            wait_for(s, false, INT64_MAX);
        return;
    }
    if (task_paused(s->task)) {
        turn_paused(s);
        return;
    }
    task_report(s->task, STATE_RUNNING);
    if (now_ms < s->next_poll_ms) {
        wait_idle(s, now_ms);
        return;
    }
    batch = batch_pool_take(s->pool);
    if (batch != NULL)
        poll_plugin(s, batch);
    else if (!ack_window_empty(s->window))
        wait_for(s, false, INT64_MAX); /* reports give batches back */
    else
        fail_with(s, MR_ERR_NOMEM, "out of memory for records");
}

static void serve(struct source_task *s)
{
    walk_reports(s);
    take_answers(s);
    offset_writer_tick(&s->writer, clock_ms());
    look_for_trouble(s, clock_ms());
}

static void loop(struct source_task *s)
{
    while (!ending(s)) {
        serve(s);
        if (s->too_large > 0)
            isolate(s);
        else if (!s->failing)
            turn(s);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* Sending on would put records into the topic before some that the next start sends again (promise: order). */
static bool may_send_on(const struct source_task *s)
{
    return s->sending != NULL && s->too_large == 0 && !s->gap;
}

/* What poll has handed over is delivered also while stopping, as far as the time allows. */
static void finish_sending(struct source_task *s, int64_t deadline_ms)
{
    s->send_until_ms = deadline_ms;
    for (;;) {
        if (may_send_on(s))
            send_on(s);
        if ((!may_send_on(s) && producer_in_flight(s->producer) == 0) || clock_ms() >= deadline_ms)
            break;
        wait_for(s, false, deadline_ms);
        walk_reports(s);
        take_answers(s);
    }
    walk_reports(s);
    if (ack_window_unsettled(s->window) > 0)
        log_warn("%zu records are not acknowledged at the end; the next start sends them again",
                 ack_window_unsettled(s->window));
}

/* Reports that arrive meanwhile count: their offsets go with one more flush. */
static void finish_offsets(struct source_task *s, int64_t deadline_ms)
{
    bool again = true;

    while (again && clock_ms() < deadline_ms) {
        again = false;
        offset_writer_flush(&s->writer, clock_ms());
        while (offset_writer_busy(&s->writer) && clock_ms() < deadline_ms) {
            wait_for(s, false, deadline_ms);
            walk_reports(s);
            again = take_answers(s) || again;
        }
        again = again && ack_window_committable(s->window) > 0;
    }
    if (offset_writer_busy(&s->writer))
        log_warn("the worker did not confirm the last offsets in time; records may be sent again");
}

static int64_t between(int64_t least, int64_t n, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Of the graceful time most is for deliveries, then the offsets, and a rest for the plugin's stop. What a poll hands over that
 * came back late still gets a moment for both. */
static void finish(struct source_task *s)
{
    int64_t from_ms = task_stopping(s->task) ? task_stop_since(s->task) : s->failing_since_ms;
    int64_t send_ms = from_ms + s->graceful_ms * 6 / 10;
    int64_t store_ms = from_ms + s->graceful_ms * 9 / 10;
    int64_t over_ms = from_ms + s->graceful_ms;

    finish_sending(s, between(send_ms, clock_ms() + LATE_SEND_MS, over_ms + OVER_SEND_MS));
    finish_offsets(s, between(store_ms, clock_ms() + LATE_STORE_MS, over_ms + OVER_STORE_MS));
}

static bool open_all(struct source_task *s)
{
    struct task *task = s->task;
    const struct pipeline_spec spec = {
        .connector = &task->connector_config,
        .worker = task->worker,
        .converters = task->converters,
        .name = task->connector,
        .task = task->number,
        .stop_fd = task->stop_fd,
    };
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    struct task_times times = {0};
    struct mr_error err = {0};

    task_enter(task, "converter start", false);
    s->pipeline = pipeline_new(&spec, &err);
    task_left(task);
    if (s->pipeline != NULL && task_times_read(task->worker, &times, &err) == MR_OK &&
        task_client_producer(&client, &s->java, &err) == MR_OK)
        s->producer = producer_new(&s->java, task_client_warning, task, &err);
    if (s->producer == NULL) {
        task_fail(task, &err, NULL);
        return false;
    }
    s->pool = batch_pool_new(&host_api_table, task_client_budget(&s->java), BATCH_RECORDS);
    s->window = ack_window_new();
    s->graceful_ms = times.graceful_ms;
    offset_writer_init(&s->writer, s->window, put_offsets, s, times.flush_interval_ms,
                       times.flush_timeout_ms, clock_ms());
    return true;
}

/* The producer goes before the batches: until it is gone it may read from them. */
static void close_all(struct source_task *s)
{
    if (s->producer != NULL)
        producer_free(&s->producer);
    offset_writer_deinit(&s->writer);
    ack_window_free(&s->window);
    batch_pool_free(&s->pool);
    pipeline_free(&s->pipeline);
    props_deinit(&s->java);
}

static void run(struct source_task *s)
{
    if (open_all(s) && task_start_plugin(s->task)) {
        loop(s);
        finish(s);
    }
    task_stop_plugin(s->task);
    close_all(s);
}

/* A plugin ended the thread: what was handed over and not sent must not reach the topic behind a successor's back. Batches
 * stay, one of them may be the plugin's still. */
static void drop_producer(void *arg)
{
    struct source_task *s = arg;

    if (s->producer != NULL)
        producer_free(&s->producer);
}

void source_task_run(struct task *task)
{
    struct source_task s = {.task = task, .again_fd = -1, .backoff_ms = RETRY_MIN_MS};

    if (!task_begin(task))
        return;
    task->inst.offset_read = read_offset;
    task->inst.offset_arg = &s;
    pthread_cleanup_push(drop_producer, &s);
    run(&s);
    pthread_cleanup_pop(0);
}
