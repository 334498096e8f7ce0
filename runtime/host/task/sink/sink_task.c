/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a sink task: consume → convert → put → ledger → flush → commit. Thread: the task's.
 *
 *   Kafka ─poll─► messages ─pipeline─► batch ─put─► plugin
 *                     │ stage                │ MR_OK: ledger accepts
 *                     ▼                      ▼
 *                  ledger ──── flush MR_OK ────► commit of the ledger's offsets
 *
 * A put that asks for a retry keeps its batch: values are copied out of the fetch buffers, all
 * partitions are paused, and the loop goes on polling (which gives nothing) to keep its place in
 * the group until the batch is put again.
 *
 * What is committed and when is sink_commit.c; plugins that store offsets sink_places.c; the group,
 * and who serves the consumer during a call that takes long, sink_consumer.c.
 *
 * Invariants (promise 1): records of partitions that went are dropped from a batch in hand; between
 * two turns, and so in every rest, no dead letter is under way.
 *
 * Spec: org.apache.kafka.connect.runtime.WorkerSinkTask. */
#include "base/clock.h"
#include "host/task/sink/sink_state.h"
#include "host/task/sink/sink_task_private.h"

#include <stdlib.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

#define TROUBLE_AGAIN_MS 600000 /* trouble that lasts is told again */
#define GHOSTS_MS 20 /* between two looks whether our member is in the group, or has its id */
#define QUIET_POLL_MS 60000
#define BATCH_BUDGET ((size_t)64 * 1024 * 1024)

void sink_task_fail(struct sink_task *s, const struct mr_error *err, const char *where)
{
    task_fail(s->task, err, where);
    if (s->consumer != NULL)
        consumer_wake(s->consumer); /* it may be inside consumer_poll, in a callback */
}

static bool ending(struct sink_task *s)
{
    return s->task->failed || s->restart || task_stopping(s->task);
}

/* --- from messages to a batch ----------------------------------------------------------------- */

/* Convert staged messages until the batch is full; those behind it are not staged any more. Gives
 * how many, 0 on failure. */
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
        return ledger_stage(s->ledger, msgs, done);
    if (s->emit != NULL)
        sink_txn_reject(s->emit, 0);
    if (rc != MR_ERR_CLOSED)
        sink_task_fail(s, &err, NULL);
    else /* the task ends, or its lease is lost */
        pipeline_drop_letters(s->pipeline);
    return 0;
}

/* A plugin that emits gets records of one partition at a time. */
static size_t run_of(const struct sink_task *s, const struct consumer_msg *msgs, size_t count)
{
    size_t n = 1;

    if (s->emit == NULL || count == 0)
        return count;
    if (s->emit->limit > 0 && s->emit->limit < count)
        count = s->emit->limit;
    while (n < count && msgs[n].topic == msgs[0].topic && msgs[n].partition == msgs[0].partition)
        n++;
    return n;
}

/* One batch to the plugin, or several when it is full before the messages end. What does not go now
 * (the plugin is busy, the consumer was lent, the task ends) is read again from the ledger's
 * positions. */
static void deliver(struct sink_task *s, size_t count)
{
    struct consumer_msg *msgs = s->msgs;
    bool more = true;

    while (more && count > 0) {
        struct mr_error err = {0};
        size_t run = run_of(s, msgs, count);
        size_t kept = ledger_stage(s->ledger, msgs, run);
        struct batch *batch;
        size_t done;

        if (kept < run) {
            memmove(msgs + kept, msgs + run, (count - run) * sizeof(*msgs));
            count -= run - kept;
        }
        if (kept == 0)
            continue;
        batch = batch_pool_take(s->pool);
        if (batch == NULL) {
            ledger_reject(s->ledger);
            mr_fail(&err, MR_ERR_NOMEM, "out of memory for records");
            sink_task_fail(s, &err, NULL);
            return;
        }
        done = convert(s, msgs, kept, batch);
        if (done == 0) {
            s->read_again = true;
            sink_task_batch_done(s, batch);
            return;
        }
        more = sink_task_put(s, batch) && !ending(s) && task_lease_held(s->task);
        msgs += done;
        count -= done;
    }
    s->read_again = s->read_again || count > 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void poll_failed(struct sink_task *s, int rc, const struct mr_error *err)
{
    int64_t now_ms = clock_ms();

    if (rc != MR_ERR_RETRY)
        sink_task_fail(s, err, NULL);
    else if (s->trouble_ms == 0 || now_ms - s->trouble_ms >= TROUBLE_AGAIN_MS) {
        log_warn("consumer: %s (it goes on trying)", err->text);
        s->trouble_ms = now_ms;
    }
}

static void trouble_is_over(struct sink_task *s)
{
    if (s->trouble_ms != 0)
        log_info("consumer: records come again");
    s->trouble_ms = 0;
}

static int64_t poll_timeout(const struct sink_task *s, int64_t now_ms)
{
    /* the answer to a commit is asked for, it wakes nobody; the next one waits for it */
    int64_t until = s->sent_count > 0 ? now_ms + 100 : s->commit_due_ms;

    if (s->emit != NULL && !sink_txn_pending(s->emit))
        until = now_ms + QUIET_POLL_MS;
    if (s->emit != NULL && s->emit->again_ms > now_ms && s->emit->again_ms < until)
        until = s->emit->again_ms;
    if (s->held != NULL && s->put_again_ms < until)
        until = s->put_again_ms;
    if (s->held == NULL && !task_paused(s->task) && s->put_due_ms < until)
        until = s->put_due_ms;
    if (s->places.ask_ms < until)
        until = s->places.ask_ms;
    if ((sink_ghosts_pending(&s->ghosts) || s->member[0] == '\0') && now_ms + GHOSTS_MS < until)
        until = now_ms + GHOSTS_MS;
    return until > now_ms ? until - now_ms : 0;
}

/* Read them again from the ledger's positions, when delivery goes on. */
static void pass_over(struct sink_task *s, size_t count)
{
    ledger_stage(s->ledger, s->msgs, count);
    ledger_reject(s->ledger);
    s->read_again = true;
}

/* A poll by itself does nothing that others see but keep the place in the group, so the task rests
 * in it. What the lease does not allow is not taken up after it, nor in the callbacks. */
static void poll_consumer(struct sink_task *s, int64_t timeout_ms)
{
    struct mr_error err = {0};
    int n;

    task_lease_rest(s->task);
    n = consumer_poll(s->consumer, s->msgs, s->max_poll, timeout_ms, &err);
    s->polled_ms = clock_ms();
    if (n < 0)
        poll_failed(s, n, &err);
    else if (n == 0)
        batch_pool_trim(s->pool); /* a quiet topic: cached memory goes back */
    else
        trouble_is_over(s);
    if (n > 0 && (!task_lease_act(s->task) || s->unopened.count > 0 || sink_places_unsaid(s) ||
                  (s->emit != NULL && sink_txn_unready(s->emit))))
        pass_over(s, (size_t)n);
    else if (n > 0 && !ending(s))
        deliver(s, (size_t)n);
    consumer_release(s->consumer);
}

/* The lease is lost: no put, no flush, no commit. The group is left when the lease's hard end
 * comes: another worker may then start this task, and must get its partitions. */
static void turn_quiet(struct sink_task *s)
{
    int64_t left_ms = task_lease_hard_boot_ms(s->task) - clock_boot_ms();

    if (s->consumer != NULL && left_ms <= 0)
        sink_consumer_close(s);
    if (s->consumer != NULL)
        sink_consumer_settle(s);
    task_lease_rest(s->task);
    if (s->task->failed)
        return;
    if (s->consumer != NULL)
        poll_consumer(s, left_ms < QUIET_POLL_MS ? left_ms : QUIET_POLL_MS);
    else
        task_wait(s->task, NULL, 0, INT64_MAX);
}

static bool join_again(struct sink_task *s)
{
    struct mr_error err = {0};

    if (sink_consumer_open(s, &err) == MR_OK && sink_consumer_subscribe(s, &err) == MR_OK)
        return true;
    sink_task_fail(s, &err, NULL);
    return false;
}

void sink_task_put_nothing(struct sink_task *s)
{
    struct batch *batch = batch_pool_take(s->pool);

    s->put_due_ms = INT64_MAX;
    s->empty_put = true;
    if (batch != NULL)
        sink_task_put(s, batch);
    s->empty_put = false;
}

static void turn(struct sink_task *s)
{
    int64_t now_ms = clock_ms();

    if (!task_lease_act(s->task)) {
        if (s->emit != NULL)
            sink_txn_lapse(s->emit);
        turn_quiet(s);
        return;
    }
    if (s->emit != NULL && !sink_txn_serve(s->emit))
        return;
    if (s->consumer == NULL && !join_again(s))
        return;
    sink_control_catch_up(s);
    if (now_ms >= s->places.ask_ms)
        sink_places_ask(s);
    if (s->member[0] == '\0')
        sink_consumer_note_member(s);
    if (sink_ghosts_pending(&s->ghosts))
        sink_ghosts_evict(&s->ghosts, consumer_member_id(s->consumer));
    sink_commit_take_result(s);
    if (now_ms >= s->commit_due_ms && s->sent_count == 0) {
        s->commit_due_ms = now_ms + s->times.flush_interval_ms;
        sink_commit_begin(s);
    }
    if (s->held != NULL && now_ms >= s->put_again_ms && !task_paused(s->task))
        sink_task_put(s, s->held);
    else if (now_ms >= s->put_due_ms && s->held == NULL && !task_paused(s->task) &&
             !sink_places_unsaid(s))
        sink_task_put_nothing(s);
    sink_consumer_settle(s);
    if (s->task->failed)
        return;
    task_report(s->task, task_paused(s->task) ? STATE_PAUSED : STATE_RUNNING);
    poll_consumer(s, poll_timeout(s, clock_ms()));
}

/* --- start and end ---------------------------------------------------------------------------- */

/* While the dead-letter topic is looked for: nothing is under way, so a lapse is waited for. But a
 * claim does not outlive it: then the task begins anew. */
static bool wait_to_open(struct sink_task *s, int64_t ms)
{
    bool held = s->emit != NULL ? task_lease_wait(s->task, ms) : task_lease_sleep(s->task, ms);

    s->restart = !held && !task_stopping(s->task);
    return held;
}

/* Between two tries of a stage, and while dead letters are under way: that is no rest. A lease that
 * is lost ends it: the group may have to be left. */
static bool wait_between(void *arg, int64_t ms)
{
    struct sink_task *s = arg;

    return s->pipeline == NULL ? wait_to_open(s, ms) : task_lease_wait(s->task, ms);
}

static void on_seen(void *arg, const char *topic)
{
    task_topics_use(((struct sink_task *)arg)->task, topic);
}

static int open_pipeline(struct sink_task *s, struct mr_error *err)
{
    struct task *task = s->task;
    const struct pipeline_spec spec = {
        .connector = &task->connector_config,
        .worker = task->worker,
        .plugins = task->plugins,
        .owner = {task->connector, task->number, task->stop_fd},
        .wait = wait_between,
        .seen = task->topics != NULL ? on_seen : NULL,
        .arg = s,
        .carry = s->emit != NULL ? sink_emit_letter : NULL,
        .carrier = s->emit,
    };

    task_enter(task, "converter start", false);
    s->pipeline = pipeline_new(&spec, err);
    task_left(task);
    if (s->pipeline == NULL)
        return err->code;
    s->bisects = (task->plugin->sink.put_atomic || s->places.stores || s->emit != NULL) &&
                 pipeline_tolerance(s->pipeline)->all && pipeline_writes_dead_letters(s->pipeline);
    return MR_OK;
}

static bool open_all(struct sink_task *s)
{
    struct mr_error err = {0};
    int rc = sink_places_init(s, &err);

    if (rc == MR_OK)
        rc = open_pipeline(s, &err);
    if (rc == MR_OK)
        rc = sink_consumer_open(s, &err);
    if (rc == MR_OK && s->emit != NULL)
        rc = sink_txn_open(s->emit, &err);
    if (rc == MR_OK) {
        s->ledger = ledger_new();
        s->pool = batch_pool_new(&host_api_table, BATCH_BUDGET, s->max_poll);
        s->msgs = calloc(s->max_poll, sizeof(*s->msgs));
        if (s->msgs == NULL)
            rc = mr_fail(&err, MR_ERR_NOMEM, "out of memory for %zu messages", s->max_poll);
    }
    if (rc != MR_OK && !s->restart)
        sink_task_fail(s, &err, NULL);
    return rc == MR_OK;
}

static void close_all(struct sink_task *s)
{
    sink_txn_free(&s->emit);
    batch_pool_free(&s->pool);
    ledger_free(&s->ledger);
    pipeline_free(&s->pipeline);
    sink_control_deinit(s);
    sink_places_deinit(s);
    free(s->msgs);
    free(s->parts);
    free(s->sent);
}

static void run(struct sink_task *s)
{
    struct mr_error err = {0};

    /* The plugin is started before the group is joined: a start that fails or takes long disturbs
     * no other member. */
    if (!open_all(s) || !task_start_plugin(s->task))
        return;
    if (sink_consumer_subscribe(s, &err) != MR_OK) {
        sink_task_fail(s, &err, NULL);
        return;
    }
    s->commit_due_ms = s->polled_ms + s->times.flush_interval_ms;
    while (!ending(s))
        turn(s);
}

/* A plugin ended the thread: its group must not wait for a member that never polls again. Nothing
 * is flushed, so nothing is committed. Batches stay, one of them may be the plugin's still. */
static void drop_clients(void *arg)
{
    struct sink_task *s = arg;

    task_broken_off(s->task);
    s->broken = true;
    if (s->emit != NULL)
        sink_txn_lapse(s->emit);
    if (s->consumer == NULL)
        return;
    if (sink_consumer_end_offer(s))
        sink_consumer_take_back(s);
    sink_consumer_close(s);
}

/* From start to stop. true: once more, in place; why->code: since its transactions broke. */
static bool live(struct task *task, struct mr_error *why)
{
    struct sink_task s = {.task = task, .put_due_ms = INT64_MAX};

    if (task->plugin->sink.emits != NULL)
        s.emit = sink_txn_new(&s);
    if (!task_begin(task, s.emit != NULL ? sink_txn_claim : NULL, &s)) {
        sink_txn_free(&s.emit);
        return false;
    }
    task->inst.sink = &sink_control_table;
    task->inst.sink_arg = &s;
    pthread_cleanup_push(drop_clients, &s);
    run(&s);
    sink_consumer_close(&s);
    if (s.emit != NULL)
        sink_txn_drop(s.emit, why);
    task_stop_plugin(task);
    close_all(&s);
    pthread_cleanup_pop(0);
    return s.restart && !task->failed && !task_stopping(task);
}

void sink_task_run(struct task *task)
{
    txn_lives(task, live);
}
