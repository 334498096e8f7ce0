/* SPDX-License-Identifier: Apache-2.0 */
/* One transaction after another, on the task's thread.
 *
 *   NONE ─first record─► OPEN ─boundary─► deliveries awaited ─► offsets sent ─► their deliveries
 *     ▲                    └─ failed, stopped in time of need ─► aborted ─┐             │
 *     └───────────────────────────────────────────────────────────────────┴── EndTxn ◄──┘
 *
 * Offsets of a source are records of the same producer (txn_offsets.c), those of a sink that emits
 * are its group's (sink_txn.c): they stand or fall with what they are the offsets of.
 *
 * Invariants: nothing of the next transaction is sent before the end of this one is known; a
 * producer whose transaction may have been ended twice is never used again (kafka/producer_txn.c).
 * The commit call is sliced, since stop and lease are looked at by this very thread. */
#include "host/task/send/txn.h"

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "host/task/send/offset_writer.h"
#include "host/task/task_client.h"
#include "model/offsets_topic.h"
#include "model/task_times.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOGGER "host.task.txn"
#include "base/log.h"

#define INTERVAL "transaction.boundary.interval.ms"
#define SLICE_MS 100
/* Of a commit or abort behind all its reports. A librdkafka that is too busy to begin it within the
 * slice takes the next call for another phase of it. */
#define END_MS 500
#define ABORT_MS 2000
#define TELL_MS 10000

/* --- settings --------------------------------------------------------------------------------- */

static int replace(struct props *java, const char *key, const char *value)
{
    const char *given = props_get(java, key);

    if (given != NULL && strcasecmp(given, value) != 0)
        log_warn("the producer's %s=%s gives way to %s: under exactly-once it can't be otherwise",
                 key, given, value);
    return props_set(java, key, value);
}

/* Fencing rounds know it. A standalone worker has no group and no rounds: there the sink's own
 * group stands for it. */
static char *transactional_id(const struct task *task)
{
    const char *group = props_get(task->worker, "group.id");
    char *id = NULL;

    mr_assert(asprintf(&id, "%s-%s-%d", group != NULL ? group : "connect", task->connector,
                       task->number) > 0);
    return id;
}

int txn_settings(const struct task *task, struct props *java, struct mr_error *err)
{
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    char *id;
    int rc = task_client_check_transactions(&client, java, err);

    if (rc != MR_OK)
        return rc;
    id = transactional_id(task);
    rc = replace(java, "transactional.id", id);
    free(id);
    if (rc == 0)
        rc = replace(java, "enable.idempotence", "true");
    return rc == 0 ? MR_OK : mr_fail(err, MR_ERR_NOMEM, "out of memory for producer settings");
}

static enum txn_boundary boundary_of(const struct props *config)
{
    const char *text = props_get(config, "transaction.boundary");

    if (text != NULL && strcasecmp(text, "interval") == 0)
        return TXN_INTERVAL;
    return text != NULL && strcasecmp(text, "connector") == 0 ? TXN_CONNECTOR : TXN_POLL;
}

/* Where the transactions' Kafka has the connector's offsets; where that is not the worker's topic,
 * this gets copies. */
static void name_topic(struct txn *t)
{
    t->topic = offsets_topic_own(t->task->worker, &t->task->connector_config);
    if (t->topic != NULL)
        t->copies = json_array();
    else
        t->topic = text_dup(props_get(t->task->worker, "offset.storage.topic"));
}

static int open_any(struct txn *t, struct task *task, struct sender *sender,
                    struct task_times *times, struct mr_error *err)
{
    int rc = task_times_read(task->worker, times, err);

    txn_close(t);
    if (rc == MR_OK)
        *t = (struct txn){.task = task, .sender = sender, .graceful_ms = times->graceful_ms};
    return rc;
}

int txn_open_sink(struct txn *t, struct task *task, struct sender *sender, int64_t interval_ms,
                  txn_adder add_offsets, void *arg, struct mr_error *err)
{
    struct task_times times = {0};
    int rc = open_any(t, task, sender, &times, err);

    t->boundary = TXN_INTERVAL;
    t->interval_ms = interval_ms;
    t->due_ms = clock_ms() + interval_ms;
    t->add_offsets = add_offsets;
    t->arg = arg;
    return rc;
}

/* Brokers abort what is open for longer than the timeout, and by default the two are the same. */
static int64_t interval_of(const struct txn *t, int64_t flush_ms)
{
    int64_t timeout_ms = task_client_number(&t->sender->java, "transaction.timeout.ms",
                                            TXN_TIMEOUT_MS, 1, INT32_MAX);
    int64_t given_ms =
        task_client_number(&t->task->connector_config, INTERVAL, flush_ms, 1, INT64_MAX / 2);

    if (t->boundary != TXN_INTERVAL || given_ms < timeout_ms)
        return given_ms;
    log_info("transactions end after %lld ms: " INTERVAL "=%lld is not below the producer's "
             "transaction.timeout.ms=%lld, which ends them without their records",
             (long long)(timeout_ms / 2), (long long)given_ms, (long long)timeout_ms);
    return timeout_ms / 2;
}

int txn_open(struct txn *t, struct task *task, struct sender *sender, struct mr_error *err)
{
    struct task_times times = {0};
    int rc = open_any(t, task, sender, &times, err);

    if (rc != MR_OK)
        return rc;
    t->add_offsets = txn_offsets_send;
    t->boundary = boundary_of(&task->connector_config);
    if (t->boundary == TXN_CONNECTOR && !task->plugin->source.boundaries)
        return mr_fail(err, MR_ERR_CONFIG,
                       "transaction.boundary=connector needs a plugin that says where its "
                       "transactions end, and %.200s does not: set poll or interval",
                       task->plugin->name);
    name_topic(t);
    t->interval_ms = interval_of(t, times.flush_interval_ms);
    t->due_ms = clock_ms() + t->interval_ms;
    t->portion = calloc(OFFSET_WRITER_PORTION, sizeof(*t->portion));
    mr_assert(t->portion != NULL && t->topic != NULL);
    buf_init(&t->text, TXN_TEXT_MAX);
    return MR_OK;
}

void txn_close(struct txn *t)
{
    if (t->portion != NULL)
        buf_deinit(&t->text);
    free(t->portion);
    free(t->topic);
    json_decref(t->copies);
    *t = (struct txn){0};
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int out_of_time(const struct txn *t, struct mr_error *err)
{
    if (!task_lease_held(t->task))
        return mr_fail(err, MR_ERR_CLOSED, "the lease was lost in a transaction");
    if (task_stopping(t->task) && clock_ms() >= task_stop_since(t->task) + t->graceful_ms * 8 / 10)
        return mr_fail(err, MR_ERR_TIMEOUT,
                       "the task was stopped before its last transaction "
                       "could be committed");
    return 0;
}

static void wait_for_reports(const struct txn *t)
{
    struct pollfd fd = {.fd = producer_fd(t->sender->producer), .events = POLLIN};

    task_wait(t->task, &fd, 1, clock_ms() + SLICE_MS);
}

int txn_wait(struct txn *t, struct mr_error *err)
{
    int rc = out_of_time(t, err);

    if (rc == 0)
        wait_for_reports(t);
    return rc;
}

static void ignore(void *arg, void *opaque, int code, const char *text)
{
    (void)arg, (void)opaque, (void)code, (void)text;
}

int txn_init(struct txn *t, struct mr_error *err)
{
    int64_t told_ms = clock_ms();
    int rc;

    while ((rc = producer_txn_init(t->sender->producer, SLICE_MS, err)) == MR_AGAIN) {
        if (task_stopping(t->task) || !task_lease_held(t->task))
            return mr_fail(err, MR_ERR_CLOSED, "the task is not to start now");
        if (clock_ms() - told_ms >= TELL_MS) {
            bool fatal = false;
            const char *trouble = producer_trouble(t->sender->producer, &fatal);

            log_warn("waits for Kafka to begin transactions: %s",
                     trouble != NULL ? trouble : "no answer from the transaction coordinator");
            told_ms = clock_ms();
        }
        producer_reports(t->sender->producer, 0, ignore, NULL);
    }
    return rc;
}

/* --- records ---------------------------------------------------------------------------------- */

int txn_begin(struct txn *t, const char *topic, struct mr_error *err)
{
    int rc;

    if (topic != t->topic && t->topic != NULL && strcmp(topic, t->topic) == 0)
        return mr_fail(err, MR_ERR_DATA,
                       "Source tasks may not produce to their own offsets topics when exactly-once "
                       "support is enabled: %.249s",
                       topic);
    if (t->open)
        return 0;
    CRASH_POINT(TXN_BEGIN);
    rc = producer_txn_begin(t->sender->producer, err);
    t->open = rc == 0;
    CRASH_POINT(TXN_BEGUN);
    return rc;
}

bool txn_due(const struct txn *t, int64_t now_ms)
{
    return t->boundary == TXN_POLL || (t->boundary == TXN_INTERVAL && now_ms >= t->due_ms);
}

int64_t txn_due_ms(const struct txn *t)
{
    return t->boundary == TXN_INTERVAL && t->open ? t->due_ms : INT64_MAX;
}

/* --- ends ------------------------------------------------------------------------------------- */

static int drain_records(struct txn *t, struct mr_error *err)
{
    struct sender *s = t->sender;
    int rc = 0;

    sender_walk_reports(s);
    while (rc == 0 && producer_in_flight(s->producer) > 0 && !s->lost) {
        rc = out_of_time(t, err);
        if (rc == 0)
            wait_for_reports(t);
        sender_walk_reports(s);
        sender_look_for_trouble(s, clock_ms());
    }
    if (rc == 0 && s->broken.code != 0)
        rc = mr_fail(err, s->broken.code, "%s", s->broken.text);
    else if (rc == 0 && (s->lost || t->task->failed))
        rc = mr_fail(err, MR_ERR_STATE, "%s", t->task->failure.text);
    return rc;
}

int txn_settle(struct txn *t)
{
    int rc = 0;

    sender_walk_reports(t->sender);
    while (rc == 0 && producer_in_flight(t->sender->producer) > 0) {
        rc = txn_wait(t, NULL);
        sender_walk_reports(t->sender);
    }
    return rc;
}

static int end_transaction(struct txn *t, struct mr_error *err)
{
    int rc;

    CRASH_POINT(TXN_END);
    while ((rc = producer_txn_commit(t->sender->producer, END_MS, err)) == MR_AGAIN) {
        rc = out_of_time(t, err);
        if (rc != 0)
            return rc;
    }
    CRASH_POINT(TXN_ENDED);
    t->open = rc == MR_ERR_STATE;
    return rc;
}

int txn_commit(struct txn *t, struct mr_error *err)
{
    int rc = drain_records(t, err);

    CRASH_POINT(TXN_FULL);
    if (rc == 0)
        rc = t->add_offsets(t, t->arg, err);
    if (rc == 0 && t->open)
        rc = end_transaction(t, err);
    if (rc != 0 && producer_txn_over(t->sender->producer))
        err->code = rc = MR_ERR_CLOSED;
    if (rc == 0)
        t->due_ms = clock_ms() + t->interval_ms;
    return rc;
}

/* What is under way is waited for: see producer_txn_abort. */
int txn_discard(struct txn *t, struct mr_error *err)
{
    int rc = drain_records(t, err);

    if (!t->open)
        log_warn("the plugin aborts a transaction in which nothing was sent");
    while (t->open && rc == 0) {
        rc = producer_txn_abort(t->sender->producer, END_MS, err);
        producer_reports(t->sender->producer, 0, ignore, NULL);
        t->open = rc != 0;
        if (rc == MR_AGAIN)
            rc = out_of_time(t, err);
    }
    if (rc != 0 && producer_txn_over(t->sender->producer))
        err->code = rc = MR_ERR_CLOSED;
    if (rc != 0)
        return rc;
    sender_settle_sent(t->sender);
    return txn_commit(t, err);
}

bool txn_abort(struct txn *t)
{
    int64_t until_ms = clock_ms() + ABORT_MS;
    struct mr_error err = {0};
    int rc = MR_AGAIN;

    if (!t->open)
        return true;
    CRASH_POINT(TXN_ABORT);
    while (rc == MR_AGAIN && clock_ms() < until_ms && task_lease_held(t->task)) {
        rc = producer_txn_abort(t->sender->producer, SLICE_MS, &err);
        producer_reports(t->sender->producer, 0, ignore, NULL);
    }
    CRASH_POINT(TXN_ABORTED);
    t->open = false;
    if (rc != 0 && rc != MR_ERR_CLOSED)
        log_warn(
            "the open transaction could not be aborted%s%s; it ends when its id is taken over, or "
            "after transaction.timeout.ms",
            err.text[0] != '\0' ? ": " : "", err.text);
    return rc == 0;
}
