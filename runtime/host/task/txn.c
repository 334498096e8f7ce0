/* SPDX-License-Identifier: Apache-2.0 */
/* One transaction after another, on the task's thread.
 *
 *   NONE ─first record─► OPEN ─boundary─► deliveries awaited ─► offsets sent ─► their deliveries
 *     ▲                    └─ failed, stopped in time of need ─► aborted ─┐             │
 *     └───────────────────────────────────────────────────────────────────┴── EndTxn ◄──┘
 *
 * Offsets are records of the same producer, so they stand or fall with what they are the offsets
 * of. Which ones: those of the ack window's settled prefix, which at a boundary is everything;
 * records that were dropped are among them.
 *
 * Invariants: nothing of the next transaction is sent before the end of this one is known; a
 * producer whose transaction may have been ended twice is never used again (kafka/producer_txn.c).
 * The commit call is sliced, since stop and lease are looked at by this very thread. */
#include "host/task/txn.h"

#include "base/clock.h"
#include "base/text.h"
#include "host/task/offset_writer.h"
#include "host/task/task_client.h"
#include "model/offsets_topic.h"
#include "model/task_times.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOGGER "host.task.txn"
#include "base/log.h"

#define SLICE_MS 100
/* Of a commit or abort behind all its reports. A librdkafka that is too busy to begin it within the
 * slice takes the next call for another phase of it. */
#define END_MS 500
#define ABORT_MS 2000
#define TELL_MS 10000
#define TEXT_MAX ((size_t)64 << 20) /* keys and values of one portion of offsets */

/* --- settings --------------------------------------------------------------------------------- */

static int replace(struct props *java, const char *key, const char *value)
{
    const char *given = props_get(java, key);

    if (given != NULL && strcasecmp(given, value) != 0)
        log_warn("the producer's %s=%s gives way to %s: under exactly-once it can't be otherwise",
                 key, given, value);
    return props_set(java, key, value);
}

int txn_settings(const struct task *task, struct props *java, struct mr_error *err)
{
    char *id = NULL;
    int rc;

    mr_assert(asprintf(&id, "%s-%s-%d", props_get(task->worker, "group.id"), task->connector,
                       task->number) > 0);
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

int txn_open(struct txn *t, struct task *task, struct sender *sender, struct mr_error *err)
{
    struct task_times times = {0};
    int rc = task_times_read(task->worker, &times, err);

    txn_close(t);
    if (rc != MR_OK)
        return rc;
    *t = (struct txn){.task = task,
                      .sender = sender,
                      .boundary = boundary_of(&task->connector_config),
                      .graceful_ms = times.graceful_ms};
    if (t->boundary == TXN_CONNECTOR && !task->plugin->source.boundaries)
        return mr_fail(err, MR_ERR_CONFIG,
                       "transaction.boundary=connector needs a plugin that says where its "
                       "transactions end, and %.200s does not: set poll or interval",
                       task->plugin->name);
    name_topic(t);
    t->interval_ms = task_client_number(&task->connector_config, "transaction.boundary.interval.ms",
                                        times.flush_interval_ms, 1, INT64_MAX / 2);
    t->due_ms = clock_ms() + t->interval_ms;
    t->portion = calloc(OFFSET_WRITER_PORTION, sizeof(*t->portion));
    mr_assert(t->portion != NULL && t->topic != NULL);
    buf_init(&t->text, TEXT_MAX);
    return MR_OK;
}

void txn_close(struct txn *t)
{
    if (t->portion == NULL)
        return;
    free(t->portion);
    free(t->topic);
    json_decref(t->copies);
    buf_deinit(&t->text);
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

    if (topic != t->topic && strcmp(topic, t->topic) == 0)
        return mr_fail(err, MR_ERR_DATA,
                       "Source tasks may not produce to their own offsets topics when exactly-once "
                       "support is enabled: %.249s",
                       topic);
    if (t->open)
        return 0;
    rc = producer_txn_begin(t->sender->producer, err);
    t->open = rc == 0;
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

/* --- offsets ---------------------------------------------------------------------------------- */

struct span {
    size_t at;
    size_t len;
};

static struct span render(struct buf *out, const json_t *value)
{
    size_t at = out->len;

    json_write(out, value);
    return (struct span){at, out->len - at};
}

/* As Connect writes it: ["connector",{partition}] and {offset}. */
static void render_offset(struct txn *t, const struct ack_offset *offset, struct span *key,
                          struct span *value, json_t *copies)
{
    json_t *entry = offset_writer_entry(offset);
    json_t *whole = json_pack("[sO]", t->task->connector, json_array_get(entry, 0));

    mr_assert(entry != NULL && whole != NULL);
    *key = render(&t->text, whole);
    *value = render(&t->text, json_array_get(entry, 1));
    json_decref(whole);
    if (copies != NULL)
        json_array_append(copies, entry);
    json_decref(entry);
}

static int send_portion(struct txn *t, size_t count, struct mr_error *err)
{
    struct span(*spans)[2] = calloc(count, sizeof(*spans));
    json_t *copies = t->copies != NULL ? json_array() : NULL;
    int rc = 0;

    mr_assert(spans != NULL);
    buf_reset(&t->text);
    for (size_t i = 0; i < count; i++)
        render_offset(t, &t->portion[i], &spans[i][0], &spans[i][1], copies);
    if (copies != NULL)
        json_array_append_new(t->copies, copies);
    if (t->text.failed)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "source offsets are too large to be stored");
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct producer_record rec = {.topic = t->offsets,
                                      .partition = -1,
                                      .timestamp_ms = -1,
                                      .key = t->text.data + spans[i][0].at,
                                      .key_len = spans[i][0].len,
                                      .value = t->text.data + spans[i][1].at,
                                      .value_len = spans[i][1].len};

        rc = producer_send(t->sender->producer, &rec, err);
    }
    if (rc == MR_ERR_NOT_FOUND) /* its topic is away: begun anew, as with records */
        err->code = rc = MR_ERR_STATE;
    free(spans);
    return rc;
}

static void on_offset(void *arg, void *opaque, int code, const char *text)
{
    struct txn *t = arg;

    (void)opaque;
    if (code != 0 && t->refused.code == 0)
        mr_fail(&t->refused,
                code == MR_ERR_CLOSED || code == MR_ERR_NOT_FOUND ? MR_ERR_STATE : MR_ERR_FATAL,
                "source offsets could not be written: %s", text);
}

static int drain_offsets(struct txn *t, struct mr_error *err)
{
    int rc = 0;

    while (rc == 0 && producer_in_flight(t->sender->producer) > 0) {
        rc = out_of_time(t, err);
        if (rc == 0)
            wait_for_reports(t);
        producer_reports(t->sender->producer, 0, on_offset, t);
    }
    if (rc == 0 && t->refused.code != 0)
        rc = mr_fail(err, t->refused.code, "%s", t->refused.text);
    return rc;
}

static int send_offsets(struct txn *t, struct mr_error *err)
{
    size_t count;
    int rc = 0;

    json_array_clear(t->copies);
    if (t->offsets == NULL)
        t->offsets = producer_topic(t->sender->producer, t->topic, err);
    if (t->offsets == NULL)
        return err->code;
    while (rc == 0 &&
           (count = ack_window_take(t->sender->window, t->portion, OFFSET_WRITER_PORTION)) > 0) {
        rc = txn_begin(t, t->topic, err);
        if (rc == 0)
            rc = send_portion(t, count, err);
        if (rc == 0)
            rc = drain_offsets(t, err);
    }
    return rc;
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

static int end_transaction(struct txn *t, struct mr_error *err)
{
    int rc;

    while ((rc = producer_txn_commit(t->sender->producer, END_MS, err)) == MR_AGAIN) {
        rc = out_of_time(t, err);
        if (rc != 0)
            return rc;
    }
    t->open = rc == MR_ERR_STATE;
    return rc;
}

int txn_commit(struct txn *t, struct mr_error *err)
{
    int rc = drain_records(t, err);

    if (rc == 0)
        rc = send_offsets(t, err);
    if (rc == 0 && t->open)
        rc = end_transaction(t, err);
    if (rc != 0 && producer_txn_over(t->sender->producer))
        err->code = rc = MR_ERR_CLOSED;
    if (rc == 0)
        t->due_ms = clock_ms() + t->interval_ms;
    return rc;
}

json_t *txn_next_copy(struct txn *t)
{
    json_t *portion = json_incref(json_array_get(t->copies, 0));

    json_array_remove(t->copies, 0);
    return portion;
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

void txn_abort(struct txn *t)
{
    int64_t until_ms = clock_ms() + ABORT_MS;
    struct mr_error err = {0};
    int rc = MR_AGAIN;

    if (!t->open)
        return;
    while (rc == MR_AGAIN && clock_ms() < until_ms && task_lease_held(t->task)) {
        rc = producer_txn_abort(t->sender->producer, SLICE_MS, &err);
        producer_reports(t->sender->producer, 0, ignore, NULL);
    }
    t->open = false;
    if (rc != 0 && rc != MR_ERR_CLOSED)
        log_warn(
            "the open transaction could not be aborted%s%s; it ends when its id is taken over, or "
            "after transaction.timeout.ms",
            err.text[0] != '\0' ? ": " : "", err.text);
}
