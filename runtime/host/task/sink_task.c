/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a sink task: consume → convert → put → ledger → flush → commit. Thread: the task's.
 *
 *   Kafka ─poll─► messages ─pipeline─► batch ─put─► plugin
 *                     │ stage                │ MR_OK: ledger accepts
 *                     ▼                      ▼
 *                  ledger ──── flush MR_OK ────► commit of the ledger's offsets
 *
 * A put that asks for a retry keeps its batch: values are copied out of the fetch buffers, all partitions are paused, and
 * the loop goes on polling (which gives nothing) to keep its place in the group until the batch is put again.
 *
 * A put or flush that takes long: control's thread borrows the consumer (server below) and keeps the place in the group.
 *
 *   NONE ─before a call─► OFFERED ─a third of max.poll.interval.ms after the last poll, control─► LENT
 *     ▲                      │ call ended                                             │ call ended: take back
 *     └──────────────────────┴────────────────────────────────────────────────────────┘
 *
 * Invariants (promise 1): a committed offset never exceeds what put accepted and a flush after it made durable; records of
 * partitions that went are dropped from a batch in hand; positions are sought from the ledger after each pause.
 *
 * Spec: org.apache.kafka.connect.runtime.WorkerSinkTask. */
#include "base/clock.h"
#include "host/task/ledger.h"
#include "host/task/pipeline.h"
#include "host/task/task_client.h"
#include "host/task/task_priv.h"
#include "kafka/consumer.h"
#include "model/task_times.h"

#include <stdlib.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

#define POLL_RECORDS 500 /* Java's default max.poll.records */
#define RETRY_MS 1000    /* back-off after MR_ERR_RETRY from put or flush */
#define TROUBLE_LOG_MS 30000
#define BATCH_BUDGET ((size_t)64 * 1024 * 1024)
#define TOPICS_MAX 10000
/* Of the graceful time, when the last commit and the leaving of the group must be over, and what they get at least; the rest is
 * for the plugin's stop. With brokers away both last as long as they may. */
#define COMMIT_TENTHS 7
#define LEAVE_TENTHS 9
#define LATE_COMMIT_MS 200
#define LATE_LEAVE_MS 100
#define LEAVE_MS 3000 /* of a task that fails */

enum lend { LEND_NONE, LEND_OFFERED, LEND_LENT };

struct sink_task {
    struct task *task;
    struct pipeline *pipeline;
    struct consumer *consumer;
    struct batch_pool *pool;
    struct ledger *ledger;
    struct consumer_msg *msgs; /* max_poll of them */
    size_t max_poll;
    int64_t max_poll_interval_ms;
    struct task_times times; /* flush_timeout_ms: for commits, too */

    struct batch *held; /* to be put again; staged in the ledger; NULL none */
    int64_t put_again_ms;
    int64_t commit_due_ms;
    bool unflushed;        /* put accepted something since the last good flush */
    bool broken;           /* flush failed for good: nothing may be committed any more */
    bool stopped_delivery; /* consumer_pause was called */

    struct consumer_partition *parts; /* scratch, as many as the ledger holds */
    size_t parts_cap;
    struct consumer_partition *sent; /* of the asynchronous commit that is out */
    size_t sent_count;
    size_t sent_cap;
    int64_t sent_ms;
    int64_t trouble_log_ms;
    int64_t polled_ms; /* when the consumer was last served */

    /* Under task->serve_lock. */
    enum lend lend;
    int64_t offered_ms; /* the consumer was not served since */
};

static void fail(struct sink_task *s, const struct mr_error *err, const char *where)
{
    task_fail(s->task, err, where);
    if (s->consumer != NULL)
        consumer_wake(s->consumer); /* it may be inside consumer_poll, in a callback */
}

static bool ending(struct sink_task *s)
{
    return s->task->failed || task_stopping(s->task);
}

/* --- lists of partitions -------------------------------------------------------------------------------------------- */

static bool grow(struct consumer_partition **list, size_t *cap, size_t want)
{
    struct consumer_partition *grown;

    if (want <= *cap)
        return true;
    grown = realloc(*list, want * sizeof(*grown));
    if (grown == NULL)
        return false;
    *list = grown;
    *cap = want;
    return true;
}

static bool room_for_parts(struct sink_task *s)
{
    struct mr_error err = {0};

    if (grow(&s->parts, &s->parts_cap, ledger_count(s->ledger)))
        return true;
    mr_fail(&err, MR_ERR_NOMEM, "out of memory for the offsets of %zu partitions",
            ledger_count(s->ledger));
    fail(s, &err, NULL);
    return false;
}

/* --- lending the consumer during a long call ----------------------------------------------------------------------- */

/* Control's thread, each 200 ms, with task->serve_lock held. */
static void serve(void *arg)
{
    struct sink_task *s = arg;
    struct mr_error err = {0};

    if (s->lend == LEND_OFFERED && clock_ms() - s->offered_ms >= s->max_poll_interval_ms / 3) {
        if (consumer_lend(s->consumer, &err) == MR_OK)
            s->lend = LEND_LENT;
        else
            s->offered_ms = clock_ms(); /* not now: again later */
    }
    if (s->lend == LEND_LENT)
        consumer_keep_alive(s->consumer);
}

static void set_lend(struct sink_task *s, enum lend lend)
{
    pthread_mutex_lock(&s->task->serve_lock);
    s->lend = lend;
    s->offered_ms = s->polled_ms;
    pthread_mutex_unlock(&s->task->serve_lock);
}

/* After the call. true: control had the consumer, and take_back must follow. */
static bool end_offer(struct sink_task *s)
{
    bool lent;

    pthread_mutex_lock(&s->task->serve_lock);
    lent = s->lend == LEND_LENT;
    s->lend = LEND_NONE;
    pthread_mutex_unlock(&s->task->serve_lock);
    return lent;
}

/* Positions are those after the call, so what put accepted is not read again. */
static void take_back(struct sink_task *s)
{
    struct mr_error err = {0};
    size_t count;

    if (!room_for_parts(s))
        return;
    count = ledger_positions(s->ledger, s->parts);
    if (consumer_take_back(s->consumer, s->parts, count, &err) != MR_OK)
        fail(s, &err, NULL);
    s->polled_ms = clock_ms();
    s->stopped_delivery = false; /* settled anew before the next poll */
}

/* --- delivery on and off ------------------------------------------------------------------------------------------- */

/* Nothing is to be delivered while the task is paused or a batch waits to be put again. It holds for partitions that come
 * meanwhile, too. */
static void settle_delivery(struct sink_task *s)
{
    bool stop = s->held != NULL || task_paused(s->task);
    struct mr_error err = {0};
    size_t count;

    if (stop && !s->stopped_delivery) {
        if (consumer_pause(s->consumer, &err) != MR_OK)
            fail(s, &err, NULL);
        s->stopped_delivery = true;
    } else if (!stop && s->stopped_delivery && room_for_parts(s)) {
        count = ledger_positions(s->ledger, s->parts);
        if (consumer_resume(s->consumer, s->parts, count, &err) != MR_OK)
            fail(s, &err, NULL);
        s->stopped_delivery = false;
    }
}

/* --- flush and commit ---------------------------------------------------------------------------------------------- */

/* Make durable what put accepted. offer: lend the consumer meanwhile; not inside the consumer's own callbacks. true: offsets may
 * be committed. A flush that fails for good ends the task also inside a revocation: it could never commit again. */
static bool flush(struct sink_task *s, bool offer)
{
    const struct mr_sink *sink = &s->task->plugin->sink;
    struct mr_error err = {0};
    bool lent;
    int rc = MR_OK;

    if (s->broken)
        return false;
    if (!s->unflushed || sink->flush == NULL)
        return true;
    if (offer)
        set_lend(s, LEND_OFFERED);
    task_enter(s->task, "flush", false);
    rc = sink->flush(s->task->inst.self, &err);
    rc = task_leave(s->task, "flush", rc, &err);
    lent = offer && end_offer(s);
    if (lent)
        take_back(s);
    s->unflushed = rc < 0;
    if (rc >= 0)
        return true;
    s->broken = rc != MR_ERR_RETRY;
    if (rc == MR_ERR_RETRY && err.retry_after_ms > 0)
        s->commit_due_ms = clock_ms() + err.retry_after_ms;
    log_warn("offsets are not committed: %s: %s", s->task->where, err.text);
    if (s->broken)
        fail(s, &err, s->task->where);
    return false;
}

static void commit_failed(const struct mr_error *err)
{
    log_warn("offsets were not committed: %s; they go with the next commit", err->text);
}

/* Take the answer to an asynchronous commit. */
static void take_commit_result(struct sink_task *s)
{
    struct mr_error err = {0};
    int rc;

    if (s->sent_count == 0)
        return;
    rc = consumer_commit_result(s->consumer, &err);
    if (rc == 0 && clock_ms() - s->sent_ms < s->times.flush_timeout_ms)
        return;
    if (rc == 0)
        rc = mr_fail(&err, MR_ERR_TIMEOUT, "no answer within %lld ms",
                     (long long)s->times.flush_timeout_ms);
    if (rc > 0)
        ledger_committed(s->ledger, s->sent, s->sent_count);
    else
        commit_failed(&err);
    s->sent_count = 0;
}

static void commit_async(struct sink_task *s)
{
    struct mr_error err = {0};
    size_t count;

    if (s->sent_count > 0 || ledger_count(s->ledger) == 0 || !room_for_parts(s))
        return;
    if (ledger_uncommitted(s->ledger, NULL, 0, s->parts) == 0 || !flush(s, true))
        return;
    /* Positions after the flush are those before it: nothing was put meanwhile. */
    if (!grow(&s->sent, &s->sent_cap, ledger_count(s->ledger)))
        return;
    count = ledger_uncommitted(s->ledger, NULL, 0, s->sent);
    if (count > 0 && consumer_commit(s->consumer, s->sent, count, false, 0, &err) != MR_OK)
        commit_failed(&err);
    else
        s->sent_count = count;
    s->sent_ms = clock_ms();
}

/* When something must be over while the task stops: at tenths of the graceful time, but with least_ms from now on. While it does
 * not stop: timeout_ms from now on. */
static int64_t due_by(struct sink_task *s, int tenths, int64_t least_ms, int64_t timeout_ms)
{
    int64_t now_ms = clock_ms();
    int64_t due_ms;

    if (!task_stopping(s->task))
        return now_ms + timeout_ms;
    due_ms = task_stop_since(s->task) + s->times.graceful_ms * tenths / 10;
    return due_ms < now_ms + least_ms     ? now_ms + least_ms
           : due_ms > now_ms + timeout_ms ? now_ms + timeout_ms
                                          : due_ms;
}

/* Partitions are going: what is done in them is made durable and committed before. Inside the consumer's callback. */
static void commit_before_leaving(struct sink_task *s, const struct consumer_partition *going,
                                  size_t count)
{
    struct mr_error err = {0};
    int64_t commit_ms;
    size_t n;

    if (!room_for_parts(s))
        return;
    n = ledger_uncommitted(s->ledger, going, count, s->parts);
    if (n == 0 || !flush(s, false))
        return;
    commit_ms = due_by(s, COMMIT_TENTHS, LATE_COMMIT_MS, s->times.flush_timeout_ms) - clock_ms();
    s->sent_count = 0; /* an answer that is still out can't be told from this one's */
    if (consumer_commit(s->consumer, s->parts, n, true, commit_ms, &err) == MR_OK)
        ledger_committed(s->ledger, s->parts, n);
    else
        log_warn("the last offsets of %zu partitions were not committed: %s; their records are "
                 "read again",
                 n, err.text);
}

/* --- the group ----------------------------------------------------------------------------------------------------- */

/* So that whoever cleans up after a crash can make this member leave its group. */
static void note_member(struct sink_task *s, const char *id)
{
    struct black_box *box = s->task->box;

    if (box != NULL && s->task->box_slot < BLACK_BOX_SLOTS)
        snprintf(box->slots[s->task->box_slot].member_id, sizeof(box->slots[0].member_id), "%s",
                 id);
}

static void on_assigned(void *arg, const struct consumer_partition *parts, size_t count)
{
    struct sink_task *s = arg;
    struct mr_error err = {0};

    if (ledger_assign(s->ledger, parts, count, &err) != MR_OK)
        fail(s, &err, NULL);
    note_member(s, consumer_member_id(s->consumer));
    log_info("%zu partitions assigned, %zu in all", count, ledger_count(s->ledger));
}

static bool is_among(const struct record *rec, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].partition == rec->from_partition &&
            strcmp(parts[i].topic, rec->from_topic) == 0)
            return true;
    return false;
}

/* Records of partitions that went leave the batch in hand. */
static void drop_from_held(struct sink_task *s, const struct consumer_partition *parts,
                           size_t count)
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

static void on_revoked(void *arg, const struct consumer_partition *parts, size_t count, bool lost)
{
    struct sink_task *s = arg;

    if (!lost)
        commit_before_leaving(s, parts, count);
    else
        log_warn("%zu partitions are lost to the group; their records since the last commit are "
                 "read again elsewhere",
                 count);
    ledger_revoke(s->ledger, parts, count);
    drop_from_held(s, parts, count);
    if (!lost)
        log_info("%zu partitions revoked, %zu left", count, ledger_count(s->ledger));
}

/* An answer to a commit of the old offsets would hide that the new ones are not committed, and these should not wait: until they
 * are, a restart begins in the void again. */
static void on_moved(void *arg, const struct consumer_partition *part)
{
    struct sink_task *s = arg;

    log_warn("partition %s-%d ends before the offset at which reading went on: it was truncated, "
             "or its topic created anew; "
             "going on at %lld by auto.offset.reset",
             part->topic, part->partition, (long long)part->offset);
    ledger_move(s->ledger, part->topic, part->partition, part->offset);
    s->sent_count = 0;
    s->commit_due_ms = clock_ms();
}

/* --- put ------------------------------------------------------------------------------------------------------------- */

static void batch_done(struct sink_task *s, struct batch *batch)
{
    batch_pool_give(s->pool, batch);
    if (s->held == batch)
        s->held = NULL;
}

/* Copy what borrows from fetch buffers, so that these can be released while the batch waits. */
static bool own_record(struct batch *batch, struct record *rec)
{
    struct mr_header *headers = (struct mr_header *)(uintptr_t)rec->pub.headers;

    rec->pub.key = batch_own(batch, rec->pub.key);
    rec->pub.value = batch_own(batch, rec->pub.value);
    for (uint32_t i = 0; i < rec->pub.header_count; i++) {
        headers[i].name = batch_copy(batch, headers[i].name, headers[i].name_len + 1);
        headers[i].value = batch_own(batch, headers[i].value);
    }
    return !batch->over;
}

static bool hold(struct sink_task *s, struct batch *batch)
{
    struct mr_error err = {0};

    if (s->held == batch)
        return true;
    for (size_t i = 0; i < batch->pub.count; i++) {
        if (own_record(batch, batch_at(batch, i)))
            continue;
        mr_fail(&err, MR_ERR_NOMEM, "the batch that is to be put again can't be kept: %s",
                batch->fault);
        fail(s, &err, NULL);
        return false;
    }
    s->held = batch;
    return true;
}

static void put_again_later(struct sink_task *s, struct batch *batch, const struct mr_error *err)
{
    int64_t wait = err->retry_after_ms > 0 ? err->retry_after_ms : RETRY_MS;
    bool first = s->held == NULL;

    if (!hold(s, batch)) {
        ledger_reject(s->ledger);
        batch_done(s, batch);
        return;
    }
    s->put_again_ms = clock_ms() + wait;
    if (first)
        log_warn("put is tried again in %lld ms: %s", (long long)wait, err->text);
}

/* true: accepted, and the consumer still stands behind the messages that were polled. */
static bool put(struct sink_task *s, struct batch *batch)
{
    struct mr_error err = {0};
    bool lent;
    int rc = MR_OK;

    if (batch->pub.count > 0) {
        set_lend(s, LEND_OFFERED);
        task_enter(s->task, "put", true);
        rc = s->task->plugin->sink.put(s->task->inst.self, &batch->pub, &err);
        if (rc >= 0 && batch->over)
            rc = mr_fail(&err, MR_ERR_FATAL, "%s", batch->fault);
        rc = task_leave(s->task, "put", rc, &err);
        lent = end_offer(s);
        s->unflushed = true; /* also what a failed put took: flush covers it, the ledger does not */
    } else {
        lent = false;
    }
    if (rc >= 0)
        ledger_accept(s->ledger);
    if (lent)
        take_back(s);
    if (rc == MR_ERR_RETRY) {
        put_again_later(s, batch, &err);
        return false;
    }
    if (rc < 0) {
        ledger_reject(s->ledger);
        fail(s, &err, s->task->where);
    }
    batch_done(s, batch);
    return rc >= 0 && !lent;
}

/* --- from messages to a batch ----------------------------------------------------------------------------------------- */

/* Messages of partitions that are not ours any more, or below the ledger, go out. */
static size_t stage(struct sink_task *s, struct consumer_msg *msgs, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (!ledger_stage(s->ledger, msgs[i].topic, msgs[i].partition, msgs[i].offset))
            continue;
        if (kept != i)
            msgs[kept] = msgs[i];
        kept++;
    }
    return kept;
}

/* Convert staged messages until the batch is full; those behind it are not staged any more. Gives how many, 0 on failure. */
static size_t convert(struct sink_task *s, struct consumer_msg *msgs, size_t count,
                      struct batch *batch)
{
    struct mr_error err = {0};
    size_t done = 0;
    int rc;

    task_enter(s->task, "to_connect", false);
    rc = pipeline_from_kafka(s->pipeline, msgs, count, batch, &done, &err);
    task_left(s->task);
    if (rc == MR_OK && done == count)
        return done;
    ledger_reject(s->ledger);
    if (rc == MR_OK)
        return stage(s, msgs, done);
    fail(s, &err, NULL);
    return 0;
}

/* One batch to the plugin, or several when it is full before the messages end. What does not go now (the plugin is busy, the
 * consumer was lent, the task ends) is read again from the ledger's positions. */
static void deliver(struct sink_task *s, size_t count)
{
    struct consumer_msg *msgs = s->msgs;
    bool more = true;

    while (more && (count = stage(s, msgs, count)) > 0) {
        struct mr_error err = {0};
        struct batch *batch = batch_pool_take(s->pool);
        size_t done;

        if (batch == NULL) {
            ledger_reject(s->ledger);
            mr_fail(&err, MR_ERR_NOMEM, "out of memory for records");
            fail(s, &err, NULL);
            return;
        }
        done = convert(s, msgs, count, batch);
        if (done == 0) {
            batch_done(s, batch);
            return;
        }
        more = put(s, batch) && !ending(s);
        msgs += done;
        count -= done;
    }
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

static void poll_failed(struct sink_task *s, int rc, const struct mr_error *err)
{
    int64_t now_ms = clock_ms();

    if (rc != MR_ERR_RETRY)
        fail(s, err, NULL);
    else if (now_ms >= s->trouble_log_ms) {
        log_warn("consumer: %s (it goes on trying)", err->text);
        s->trouble_log_ms = now_ms + TROUBLE_LOG_MS;
    }
}

static int64_t poll_timeout(const struct sink_task *s, int64_t now_ms)
{
    int64_t until = s->commit_due_ms;

    if (s->held != NULL && s->put_again_ms < until)
        until = s->put_again_ms;
    if (s->sent_count > 0 && now_ms + 100 < until)
        until = now_ms + 100; /* the answer to a commit is asked for, it wakes nobody */
    return until > now_ms ? until - now_ms : 0;
}

static void turn(struct sink_task *s)
{
    struct mr_error err = {0};
    int64_t now_ms = clock_ms();
    int n;

    take_commit_result(s);
    if (now_ms >= s->commit_due_ms) {
        s->commit_due_ms = now_ms + s->times.flush_interval_ms;
        commit_async(s);
    }
    if (s->held != NULL && now_ms >= s->put_again_ms && !task_paused(s->task))
        put(s, s->held);
    settle_delivery(s);
    if (s->task->failed)
        return;
    task_report(s->task, task_paused(s->task) ? STATE_PAUSED : STATE_RUNNING);
    n = consumer_poll(s->consumer, s->msgs, s->max_poll, poll_timeout(s, clock_ms()), &err);
    s->polled_ms = clock_ms();
    if (n < 0)
        poll_failed(s, n, &err);
    else if (n == 0)
        batch_pool_trim(s->pool); /* a quiet topic: cached memory goes back */
    else if (!ending(s))
        deliver(s, (size_t)n);
    consumer_release(s->consumer);
}

/* --- start and end --------------------------------------------------------------------------------------------------- */

static void on_wake(void *consumer)
{
    consumer_wake(consumer);
}

/* The topics property taken apart in place: names between commas, without blanks. */
static size_t split_topics(char *text, const char **out, size_t max)
{
    size_t count = 0;
    char *save = NULL;

    for (char *item = strtok_r(text, ",", &save); item != NULL && count < max;
         item = strtok_r(NULL, ",", &save)) {
        char *end;

        while (*item == ' ' || *item == '\t' || *item == '\n' || *item == '\r')
            item++;
        end = item + strlen(item);
        while (end > item &&
               (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r'))
            *--end = '\0';
        if (*item != '\0')
            out[count++] = item;
    }
    out[count] = NULL;
    return count;
}

static int subscribe_list(struct sink_task *s, const char *topics, struct mr_error *err)
{
    const char **names = calloc(TOPICS_MAX + 1, sizeof(*names));
    char *text = strdup(topics);
    int rc;

    if (names == NULL || text == NULL)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for the list of topics");
    else if (split_topics(text, names, TOPICS_MAX) == 0)
        rc = mr_fail(err, MR_ERR_CONFIG, "topics names no topic");
    else
        rc = consumer_subscribe(s->consumer, names, err);
    free(names);
    free(text);
    return rc;
}

static int subscribe(struct sink_task *s, struct mr_error *err)
{
    const char *topics = props_get(&s->task->config, "topics");
    const char *regex = props_get(&s->task->config, "topics.regex");
    const char *pattern[2] = {NULL, NULL};
    char *anchored;
    int rc;

    if (topics == NULL && regex == NULL) {
        topics = props_get(&s->task->connector_config, "topics");
        regex = props_get(&s->task->connector_config, "topics.regex");
    }
    if ((topics == NULL || topics[0] == '\0') == (regex == NULL || regex[0] == '\0'))
        return mr_fail(err, MR_ERR_CONFIG, "a sink needs either topics or topics.regex");
    if (topics != NULL && topics[0] != '\0')
        return subscribe_list(s, topics, err);
    if (asprintf(&anchored, "^%s", regex) < 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for topics.regex");
    pattern[0] = anchored;
    rc = consumer_subscribe(s->consumer, pattern, err);
    free(anchored);
    return rc;
}

static int read_settings(struct sink_task *s, const struct props *java, struct mr_error *err)
{
    s->max_poll = (size_t)task_client_number(java, "max.poll.records", POLL_RECORDS, 1, 100000);
    s->max_poll_interval_ms =
        task_client_number(java, "max.poll.interval.ms", 300000, 1, INT32_MAX);
    return task_times_read(s->task->worker, &s->times, err);
}

static int open_consumer(struct sink_task *s, struct mr_error *err)
{
    static const struct consumer_events events = {
        .assigned = on_assigned, .revoked = on_revoked, .moved = on_moved};
    const struct task_client_spec spec = {s->task->connector, s->task->number, s->task->worker,
                                          &s->task->connector_config};
    struct props java;
    int rc = task_client_consumer(&spec, &java, err);

    if (rc == MR_OK)
        rc = read_settings(s, &java, err);
    if (rc == MR_OK) {
        s->consumer = consumer_new(&java, &events, task_client_warning, s, err);
        rc = s->consumer == NULL ? err->code : MR_OK;
    }
    props_deinit(&java);
    return rc;
}

static int open_pipeline(struct sink_task *s, struct mr_error *err)
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

    task_enter(task, "converter start", false);
    s->pipeline = pipeline_new(&spec, err);
    task_left(task);
    return s->pipeline == NULL ? err->code : MR_OK;
}

static bool open_all(struct sink_task *s)
{
    struct mr_error err = {0};
    int rc = open_pipeline(s, &err);

    if (rc == MR_OK)
        rc = open_consumer(s, &err);
    if (rc == MR_OK) {
        s->ledger = ledger_new();
        s->pool = batch_pool_new(&host_api_table, BATCH_BUDGET, s->max_poll);
        s->msgs = calloc(s->max_poll, sizeof(*s->msgs));
        if (s->msgs == NULL)
            rc = mr_fail(&err, MR_ERR_NOMEM, "out of memory for %zu messages", s->max_poll);
    }
    if (rc != MR_OK)
        fail(s, &err, NULL);
    return rc == MR_OK;
}

/* Leaving the group revokes everything: what is done is flushed and committed in there. */
static void close_consumer(struct sink_task *s)
{
    struct consumer *closing = s->consumer; /* s->consumer stays: on_revoked commits through it */

    if (closing == NULL)
        return;
    task_set_waker(s->task, NULL, NULL);
    task_set_server(s->task, NULL, NULL);
    if (s->held != NULL) {
        ledger_reject(s->ledger);
        batch_done(s, s->held);
    }
    take_commit_result(s);
    consumer_close(&closing, due_by(s, LEAVE_TENTHS, LATE_LEAVE_MS, LEAVE_MS));
    s->consumer = NULL;
    note_member(s, "");
}

static void close_all(struct sink_task *s)
{
    batch_pool_free(&s->pool);
    ledger_free(&s->ledger);
    pipeline_free(&s->pipeline);
    free(s->msgs);
    free(s->parts);
    free(s->sent);
}

static void run(struct sink_task *s)
{
    struct mr_error err = {0};

    /* The plugin is started before the group is joined: a start that fails or takes long disturbs no other member. */
    if (!open_all(s) || !task_start_plugin(s->task))
        return;
    if (subscribe(s, &err) != MR_OK) {
        fail(s, &err, NULL);
        return;
    }
    s->polled_ms = clock_ms();
    s->commit_due_ms = s->polled_ms + s->times.flush_interval_ms;
    task_set_waker(s->task, on_wake, s->consumer);
    task_set_server(s->task, serve, s);
    while (!ending(s))
        turn(s);
}

void sink_task_run(struct task *task)
{
    struct sink_task s = {.task = task};

    if (!task_begin(task))
        return;
    run(&s);
    close_consumer(&s);
    task_stop_plugin(task);
    close_all(&s);
}
