/* SPDX-License-Identifier: Apache-2.0 */
/* The transactions of a sink that emits. Thread: the task's.
 *
 *   claim ─► GOOD ──sink_txn_tear──► TORN ──abort_torn──► ABORTED ──turn_back──► GOOD
 *            │  ▲                     ▲                      │
 *            └──┘ sink_txn_commit     └────sink_txn_tear─────┘
 *   each of these ──sink_txn_lapse──► LAPSED, until the task begins anew
 *
 * GOOD has a transaction open from the first record or offset (txn.h), and ends it at each interval,
 * before partitions go, and when the task stops. What tears it: a call that failed when some of it
 * was sent, a record that can't be delivered, an end that fails or that the group refuses. Turned
 * back are the positions, to those that were committed last. The task begins anew, from the claim,
 * where the lease was lost or the id taken over, or nobody knows what became of an end or an abort.
 *
 * Invariants (exactly once): what is committed is whole batches that were accepted, with exactly
 * their offsets; after an abort nothing of what was aborted is in memory, and reading goes on at
 * the offsets that were committed last. Nothing is committed for partitions that went: the group's
 * coordinator refuses offsets of another generation, and kafka/producer_txn.c those of none. */
#include "host/task/sink/sink_state.h"

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "host/task/task_client.h"
#include "kafka/consumer.h"
#include "model/conn_extras.h"
#include "model/offsets_topic.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOGGER "host.task.emit"
#include "base/log.h"

#define INTERVAL CONN_EXTRAS_COMMIT_INTERVAL
#define INTERVAL_MS 100 /* as Kafka Streams has it under exactly-once */
#define SLICE_MS 100    /* between two looks at stop and lease */
#define BATCH_RECORDS 4096
#define AWAY_MS 20000 /* for a topic that the brokers do not know */
#define BACKOFF_MAX_MS 5000

/* --- life ------------------------------------------------------------------------------------- */

struct sink_emit *sink_txn_new(struct sink_task *s)
{
    struct sink_emit *e = calloc(1, sizeof(*e));

    mr_assert(e != NULL);
    e->base.pub.host = &host_api_table;
    e->base.add = sink_emit_add;
    e->base.get = sink_emit_get;
    e->base.set = sink_emit_set;
    e->s = s;
    e->state = sink_state_new(e);
    e->sender.txn = &e->txn;
    return e;
}

/* The producer goes before the batches that it reads from. */
void sink_txn_free(struct sink_emit **ep)
{
    struct sink_emit *e = *ep;

    *ep = NULL;
    if (e == NULL)
        return;
    sender_close(&e->sender);
    txn_close(&e->txn);
    sink_emit_forget(e);
    sink_state_free(&e->state);
    free(e->group);
    if (e->scratch != NULL)
        batch_pool_give(e->scratches, e->scratch);
    batch_pool_free(&e->pool);
    batch_pool_free(&e->scratches);
    free(e);
}

/* Offsets can be committed with the records only where both are of one Kafka. */
static int compare_kafkas(const struct props *in, const struct props *out, struct mr_error *err)
{
    const char *read = props_get(in, "bootstrap.servers");
    const char *written = props_get(out, "bootstrap.servers");

    if (read == NULL || written == NULL || strcmp(read, written) == 0)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "this connector reads and writes in one transaction, which has to be of one "
                   "Kafka: its consumer's bootstrap.servers are %.200s, its producer's %.200s; set "
                   "both alike",
                   read, written);
}

/* What is aborted where it comes from must not go on from here. */
int sink_txn_isolate(struct props *consumer, struct mr_error *err)
{
    const char *given = props_get(consumer, "isolation.level");

    if (given != NULL && strcasecmp(given, "read_committed") != 0)
        log_warn("the consumer's isolation.level=%s gives way to read_committed: a connector that "
                 "emits reads so",
                 given);
    return props_set(consumer, "isolation.level", "read_committed") == 0
               ? MR_OK
               : mr_fail(err, MR_ERR_NOMEM, "out of memory for the consumer's settings");
}

static int connect_producer(struct sink_emit *e, struct mr_error *err)
{
    struct task *task = e->s->task;
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    struct props consumer;
    int rc = task_client_consumer(&client, &consumer, err);

    sender_drop(&e->sender);
    props_deinit(&e->sender.java);
    if (rc == MR_OK)
        rc = task_client_producer(&client, &e->sender.java, err);
    if (rc == MR_OK)
        rc = compare_kafkas(&consumer, &e->sender.java, err);
    free(e->group);
    e->group = text_dup(props_get(&consumer, "group.id"));
    props_deinit(&consumer);
    if (rc == MR_OK)
        rc = txn_settings(task, &e->sender.java, err);
    return rc == MR_OK ? sender_connect(&e->sender, task, err) : rc;
}

/* The newest accepted offsets, in s->parts. As long as stop and lease allow: the coordinators may be
 * away. */
static int add_offsets(struct txn *t, void *arg, struct mr_error *err)
{
    struct sink_emit *e = arg;
    struct sink_task *s = e->s;
    struct producer *producer = e->sender.producer;
    size_t count;
    int rc;

    if (!sink_commit_room(s))
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for offsets");
    count = ledger_uncommitted(s->ledger, NULL, 0, s->parts);
    if (count == 0)
        return 0;
    rc = txn_begin(t, NULL, err);
    CRASH_POINT(TXN_GROUP);
    while (rc == 0 && (rc = producer_txn_offsets(producer, s->consumer, s->parts, count, SLICE_MS,
                                                 err)) == MR_AGAIN)
        rc = txn_wait(t, err);
    CRASH_POINT(TXN_GROUP_ADDED);
    return rc;
}

int sink_txn_number(const struct sink_task *s, const char *key, int64_t fallback, int64_t *out,
                    struct mr_error *err)
{
    const struct props *config = &s->task->connector_config;
    int64_t n = task_client_number(config, key, -1, 1, INT64_C(1) << 40);

    *out = props_get(config, key) == NULL ? fallback : n;
    return *out > 0 ? MR_OK
                    : mr_fail(err, MR_ERR_CONFIG,
                              "Invalid value %.100s for configuration %s: it must be a whole "
                              "number, at least 1",
                              props_get(config, key), key);
}

static int open_transactions(void *arg, struct mr_error *err)
{
    struct sink_emit *e = arg;
    struct task *task = e->s->task;
    int64_t interval_ms = 0;
    int64_t timeout_ms;
    int rc = sink_txn_number(e->s, INTERVAL, INTERVAL_MS, &interval_ms, err);

    if (rc == MR_OK)
        rc = connect_producer(e, err);
    if (rc != MR_OK)
        return rc;
    timeout_ms =
        task_client_number(&e->sender.java, "transaction.timeout.ms", TXN_TIMEOUT_MS, 1, INT32_MAX);
    if (interval_ms >= timeout_ms)
        return mr_fail(err, MR_ERR_CONFIG,
                       INTERVAL "=%lld must be below the producer's transaction.timeout.ms, "
                                "which is %lld",
                       (long long)interval_ms, (long long)timeout_ms);
    return txn_open_sink(&e->txn, task, &e->sender, interval_ms, add_offsets, e, err);
}

bool sink_txn_claim(void *sink_task)
{
    struct sink_emit *e = ((struct sink_task *)sink_task)->emit;
    struct task *task = e->s->task;

    return txn_claim(&(struct txn_claim){task, &e->txn, offsets_topic_transactions(task->worker),
                                         open_transactions, e});
}

int sink_txn_open(struct sink_emit *e, struct mr_error *err)
{
    sender_open(&e->sender, pipeline_tolerance(e->s->pipeline));
    if (e->sender.timeout_ms > AWAY_MS) /* a transaction does not last longer */
        e->sender.timeout_ms = AWAY_MS;
    e->pool = batch_pool_new(&host_api_table, task_client_budget(&e->sender.java), BATCH_RECORDS);
    e->scratches = batch_pool_new(&host_api_table, BATCH_MAX_BYTES, BATCH_RECORDS);
    e->s->times.flush_interval_ms = e->txn.interval_ms;
    return sink_state_open(e->state, err);
}

/* --- states ----------------------------------------------------------------------------------- */

void sink_txn_tear(struct sink_emit *e)
{
    if (e->stage != SINK_TXN_LAPSED)
        e->stage = SINK_TXN_TORN;
}

void sink_txn_lapse(struct sink_emit *e)
{
    if (e->stage == SINK_TXN_LAPSED)
        return;
    e->stage = SINK_TXN_LAPSED;
    sender_drop(&e->sender);
}

bool sink_txn_unready(const struct sink_emit *e)
{
    return e->stage != SINK_TXN_GOOD || sink_state_due(e->state);
}

/* --- ends of transactions --------------------------------------------------------------------- */

static void begin_anew(struct sink_emit *e, const struct mr_error *why)
{
    e->s->restart = true;
    if (e->why.code == 0)
        e->why = *why;
}

/* What failed decides whether the transaction alone is given up, or the producer, or the task. */
static void failed(struct sink_emit *e, const struct mr_error *err)
{
    struct sink_task *s = e->s;

    sink_txn_tear(e);
    if (!task_lease_held(s->task) || task_stopping(s->task) || s->task->failed)
        return;
    if (e->why.code == 0)
        e->why = *err;
    if (err->code == MR_ERR_CLOSED || producer_txn_over(e->sender.producer))
        begin_anew(e, err);
    else if (err->code != MR_ERR_STATE)
        sink_task_fail(s, err, NULL);
    else
        log_warn("a transaction is turned back: %s", err->text);
}

bool sink_txn_pending(const struct sink_emit *e)
{
    return e->txn.open || e->filling != NULL || e->sender.sending != NULL || e->accepted;
}

static int commit(struct sink_emit *e, struct mr_error *err)
{
    int rc = sink_state_send(e->state, err);

    CRASH_POINT(STATE_SENT);
    if (rc == 0)
        rc = sink_emit_hand_over(e, true, err);
    if (rc == 0)
        rc = txn_commit(&e->txn, err);
    if (rc == 0 && sink_commit_room(e->s))
        ledger_committed(e->s->ledger, e->s->parts,
                         ledger_uncommitted(e->s->ledger, NULL, 0, e->s->parts));
    return rc;
}

bool sink_txn_commit(struct sink_emit *e)
{
    struct sink_task *s = e->s;
    struct mr_error err = {0};

    if (e->stage != SINK_TXN_GOOD || s->restart || s->task->failed || s->broken)
        return false;
    if (!sink_txn_pending(e))
        return true;
    if (commit(e, &err) != 0) {
        failed(e, &err);
        return false;
    }
    sink_state_committed(e->state);
    e->accepted = false;
    e->uncommitted = 0;
    e->fruitless = 0;
    e->why.code = 0;
    if (producer_txn_tainted(e->sender.producer)) {
        log_info("the end of a transaction was sent twice: the producer sends no more");
        s->restart = true;
    }
    return true;
}

/* Nothing of it is in memory any more, and its records count as never sent. false: whether it is
 * gone is not known. */
static bool abort_open(struct sink_emit *e)
{
    bool clean;

    sink_emit_forget(e);
    e->dirty = false;
    e->sender.sending = NULL;
    clean = txn_settle(&e->txn) == 0 && txn_abort(&e->txn);
    if (!clean || producer_txn_tainted(e->sender.producer) ||
        producer_in_flight(e->sender.producer) > 0)
        return false;
    sender_settle_sent(&e->sender); /* what was not, too */
    e->sender.broken = (struct mr_error){0};
    e->sender.lost = false;
    return true;
}

static int64_t backoff_ms(const struct sink_emit *e)
{
    int64_t ms = e->fruitless < 2 ? 0 : INT64_C(100) << (e->fruitless < 8 ? e->fruitless : 8);

    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

/* A producer that could not abort is gone, and what it had open with it: nothing is left to abort
 * when its partitions go. */
static void abort_torn(struct sink_emit *e)
{
    struct mr_error why = e->why;

    if (e->stage != SINK_TXN_TORN || e->sender.producer == NULL)
        return;
    e->stage = SINK_TXN_ABORTED;
    if (abort_open(e))
        return;
    sender_drop(&e->sender);
    mr_fail(&why, MR_ERR_CLOSED, "a transaction could not be aborted");
    begin_anew(e, &why);
}

/* Back to where the last transaction ended, and not for ever. */
static void turn_back(struct sink_emit *e)
{
    struct sink_task *s = e->s;
    struct mr_error why = e->why;
    int64_t most = task_client_number(s->task->worker, "millrace.restart.max", 5, 0, INT32_MAX);

    e->why.code = 0;
    e->accepted = false;
    e->uncommitted = 0;
    e->stage = SINK_TXN_GOOD;
    ledger_rewind(s->ledger);
    sink_state_turn_back(e->state);
    s->read_again = true;
    if (e->again_ms > clock_ms() || why.code == 0) /* the plugin, or the group, wants it so */
        return;
    if (++e->fruitless > most) {
        err_prefix(&why, "%lld transactions in a row could not be committed; of the last one",
                   (long long)e->fruitless);
        sink_task_fail(s, &why, NULL);
        return;
    }
    e->again_ms = clock_ms() + backoff_ms(e);
}

void sink_txn_drop(struct sink_emit *e, struct mr_error *why)
{
    *why = e->s->restart ? e->why : (struct mr_error){0};
    if (e->sender.producer != NULL)
        txn_abort(&e->txn);
    sender_drop(&e->sender);
    sink_emit_forget(e);
}

/* Without a lease not even an abort may leave: the producer goes instead. */
void sink_txn_lose(struct sink_emit *e)
{
    if (sink_txn_pending(e))
        sink_txn_tear(e);
    if (e->stage == SINK_TXN_TORN && !task_lease_held(e->s->task))
        sink_txn_lapse(e);
    abort_torn(e);
}

/* --- with the loop ---------------------------------------------------------------------------- */

bool sink_txn_serve(struct sink_emit *e)
{
    struct sink_task *s = e->s;

    if (e->stage == SINK_TXN_LAPSED)
        s->restart = true;
    if (s->restart)
        return false;
    sender_walk_reports(&e->sender);
    sender_look_for_trouble(&e->sender, clock_ms());
    if (e->sender.broken.code == 0 && e->filling != NULL && e->stage != SINK_TXN_TORN)
        (void)sink_emit_hand_over(e, false, NULL);
    if (e->sender.broken.code != 0)
        failed(e, &e->sender.broken);
    if (!s->task->failed)
        abort_torn(e);
    if (e->stage == SINK_TXN_ABORTED && !s->restart && !s->task->failed)
        turn_back(e);
    if (sink_state_due(e->state) && !s->restart && !s->task->failed)
        sink_state_restore(e->state);
    return !s->restart && !s->task->failed;
}

void sink_txn_accept(struct sink_emit *e, size_t count)
{
    e->uncommitted += count;
    e->limit_left -= count < e->limit_left ? count : e->limit_left;
    if (e->limit_left == 0)
        e->limit = 0;
    e->accepted = true;
    e->dirty = false;
}

void sink_txn_reject(struct sink_emit *e, int64_t retry_ms)
{
    e->s->read_again = true;
    if (e->dirty)
        sink_txn_tear(e);
    if (retry_ms > 0)
        e->again_ms = clock_in_ms(retry_ms);
}
