/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a source task: poll → convert → produce → delivery reports → ack window → offsets.
 * Thread: the task's.
 *
 *                      ┌─────────────── reports ◄──────────────┐
 *                      ▼                                       │
 *   plugin ─poll─► batch ─pipeline─► (window takes it) ─send─► producer ─► Kafka
 *                      ▲                   │ frontier
 *                      └── given back ◄────┴──► offset_writer ─► worker's store ─► committed
 *                                                     └─► own_offsets, if any: then the
 *                                                         worker's store gets a copy
 *
 * Every turn of the loop walks the reports that have arrived and then does one thing: send on,
 * poll, or wait. All waits are one poll(2) on stop, commands, reports, the plugin's wake-up and its
 * own descriptor. Nothing spins, nothing is dropped: a full producer or a batch budget that is used
 * up waits for reports.
 *
 * Invariant (promise 1): an offset is stored only when its record and all before it are settled.
 * What is between the window and Kafka is sender.c; what happens to offsets, and when a transaction
 * ends, source_commit.c; what is still done when the task ends, source_end.c.
 *
 * Spec: AbstractWorkerSourceTask, WorkerSourceTask, SubmittedRecords, SourceTaskOffsetCommitter. */
#include "base/clock.h"
#include "host/task/source/source_task_private.h"
#include "host/task/task_client.h"
#include "model/offsets_topic.h"
#include "model/task_times.h"

#define LOGGER "host.task.source"
#include "base/log.h"

#define BATCH_RECORDS 4096 /* what mr_batch_full calls full */
#define RETRY_MIN_MS 100   /* back-off after MR_ERR_RETRY from poll: doubled up to the maximum */
#define RETRY_MAX_MS 5000
#define EMPTY_FREE 16 /* polls in a row that gave nothing, asked for no wait and took no time */
#define EMPTY_MAX_MS 100
#define TRIM_MS 2000 /* idle for so long: cached memory goes back */

static bool ending(struct source_task *s)
{
    return s->task->failed || s->restart || s->sender.broken.code != 0 || task_stopping(s->task);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void no_such_descriptor(struct source_task *s)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL, "mr_again_on_fd was given descriptor %d, which is not open",
            s->again_fd);
    task_fail(s->task, &err, NULL);
}

void source_task_wait(struct source_task *s, bool polling, int64_t deadline_ms)
{
    struct pollfd fds[4] = {
        {.fd = producer_fd(s->sender.producer), .events = POLLIN},
        {.fd = polling ? s->task->wake_fd : -1, .events = POLLIN},
        {.fd = polling ? s->again_fd : -1, .events = POLLIN},
        {.fd = s->own != NULL ? own_offsets_fd(s->own) : -1, .events = POLLIN},
    };
    int64_t due =
        source_task_exactly_once(s) ? txn_due_ms(&s->txn) : offset_writer_due_ms(&s->writer);

    task_wait(s->task, fds, 4, due < deadline_ms ? due : deadline_ms);
    if (fds[1].revents != 0) {
        task_drain_fd(s->task->wake_fd);
        s->next_poll_ms = 0;
    }
    if (fds[2].revents & POLLNVAL)
        no_such_descriptor(s);
    else if (fds[2].revents != 0)
        s->next_poll_ms = 0;
}

/* Nothing to do before the next poll: give memory back after a while. */
static void wait_idle(struct source_task *s, int64_t now_ms)
{
    int64_t deadline_ms = s->next_poll_ms;

    if (ack_window_empty(s->sender.window) && s->idle_since_ms != 0) {
        if (now_ms - s->idle_since_ms >= TRIM_MS) {
            batch_pool_trim(s->pool);
            s->idle_since_ms = 0;
        } else if (s->idle_since_ms + TRIM_MS < deadline_ms) {
            deadline_ms = s->idle_since_ms + TRIM_MS;
        }
    }
    source_task_wait(s, true, deadline_ms);
}

/* --- polling ---------------------------------------------------------------------------------- */

/* When to poll next, after a call that gave no reason to hurry. */
static void schedule(struct source_task *s, const struct batch *batch, int rc, int64_t began_ms,
                     int64_t now_ms)
{
    s->again_fd = -1;
    s->next_poll_ms = 0;
    if (batch->again && rc == MR_AGAIN) {
        s->next_poll_ms = batch->again_ms < 0 ? INT64_MAX : clock_in_ms(batch->again_ms);
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

static void poll_retry(struct source_task *s, const struct mr_error *err)
{
    int64_t wait = err->retry_after_ms > 0 ? err->retry_after_ms : s->backoff_ms;

    if (s->backoff_ms == RETRY_MIN_MS || s->backoff_ms == RETRY_MAX_MS)
        log_warn("poll is tried again in %lld ms: %s", (long long)wait, err->text);
    s->backoff_ms = s->backoff_ms * 2 < RETRY_MAX_MS ? s->backoff_ms * 2 : RETRY_MAX_MS;
    s->again_fd = -1;
    s->next_poll_ms = clock_in_ms(wait);
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
    sender_begin(&s->sender, batch);
    if (rc != MR_OK && (rc != MR_ERR_CLOSED || !ending(s)))
        task_fail(s->task, &err, NULL);
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
    if (rc >= 0 && source_task_exactly_once(s) && s->txn.boundary == TXN_CONNECTOR)
        s->sender.end = batch->end;
    batch_pool_give(s->pool, batch);
    if (rc == MR_ERR_RETRY)
        poll_retry(s, &err);
    else if (rc < 0)
        task_fail(s->task, &err, s->task->where);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void turn_paused(struct source_task *s)
{
    if (s->task->reported != STATE_PAUSED) {
        if (!source_task_exactly_once(s))
            offset_writer_flush(&s->writer, clock_ms());
        else if (s->txn.boundary != TXN_CONNECTOR)
            source_commit_end(s, false);
        task_report(s->task, STATE_PAUSED);
    }
    source_task_wait(s, false, INT64_MAX);
}

static void no_memory(struct source_task *s)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_NOMEM, "out of memory for records");
    task_fail(s->task, &err, NULL);
}

static void turn(struct source_task *s)
{
    int64_t now_ms = clock_ms();
    struct batch *batch;

    if (source_commit_as_told(s))
        return;
    if (s->sender.sending != NULL) {
        if (sender_go_on(&s->sender) == MR_ERR_FULL && task_lease_held(s->task))
            source_task_wait(s, false, sender_due_ms(&s->sender));
        return;
    }
    if (source_commit_when_due(s, now_ms))
        return;
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
    else if (!ack_window_empty(s->sender.window))
        source_task_wait(s, false, INT64_MAX); /* reports give batches back */
    else
        no_memory(s);
}

/* Records came back, since their topic is away. */
static void turn_back(struct source_task *s)
{
    if (!sender_again_return(&s->sender) && task_lease_held(s->task))
        source_task_wait(s, false, sender_due_ms(&s->sender));
}

static void serve(struct source_task *s)
{
    sender_walk_reports(&s->sender);
    source_commit_take_answers(s);
    if (!source_task_exactly_once(s))
        offset_writer_tick(&s->writer, clock_ms());
    sender_look_for_trouble(&s->sender, clock_ms());
}

void source_task_take_back(struct source_task *s)
{
    if (s->sender.producer != NULL)
        sender_again_take_back(&s->sender);
    if (s->own != NULL)
        own_offsets_purge(s->own);
    pipeline_take_letters_back(s->pipeline);
}

/* The lease is lost, or was, and a transaction did not end for that. What poll has handed over
 * waits in the window; offsets, and answers about them, wait too. Of a transaction nothing stays:
 * its producer is gone, and with a new lease the task begins anew, where the last one ended. */
static void rest(struct source_task *s)
{
    bool renewed;

    s->restart = source_task_exactly_once(s);
    source_task_take_back(s);
    task_lease_rest(s->task);
    while (!(renewed = task_lease_act(s->task)) && !s->task->failed && !task_stopping(s->task))
        task_wait(s->task, NULL, 0, INT64_MAX);
    if (!renewed || ending(s))
        return;
    pipeline_send_letters_again(s->pipeline);
    sender_again_all(&s->sender);
}

static void loop(struct source_task *s)
{
    while (!ending(s)) {
        if (!task_lease_held(s->task) || s->sender.silenced || s->torn) {
            rest(s);
            continue;
        }
        serve(s);
        if (ending(s))
            break;
        if (s->sender.too_large > 0)
            sender_again_isolate(&s->sender);
        else if (s->sender.came_back)
            turn_back(s);
        else if (!s->task->failed)
            turn(s);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

/* Somewhere within a stage. */
static bool outlast_lapse(struct source_task *s)
{
    bool renewed;

    sender_again_silence(&s->sender);
    if (s->own != NULL)
        own_offsets_purge(s->own);
    if (s->pipeline != NULL)
        pipeline_take_letters_back(s->pipeline);
    renewed = task_lease_sleep(s->task, 0);
    if (renewed && s->pipeline != NULL)
        pipeline_send_letters_again(s->pipeline);
    return renewed;
}

/* Between two tries of a stage. What poll has handed over must not get lost with the lease: it
 * waits for a new one, and what was sent before is taken back first. With transactions it is polled
 * once more: the task begins anew. */
static bool wait_between(void *arg, int64_t ms)
{
    struct source_task *s = arg;
    bool held = !s->restart && task_lease_wait(s->task, ms);

    if (held || s->restart || task_stopping(s->task))
        return held;
    s->restart = source_task_exactly_once(s);
    return !s->restart && outlast_lapse(s);
}

/* Between two questions about a topic. Nothing gets lost when it ends: the records are in the
 * window. */
static bool wait_shortly(void *task, int64_t ms)
{
    return task_lease_wait(task, ms);
}

/* While the connector's own offsets topic is opened, or read from within the plugin's call. A claim
 * does not outlive the lease. */
static bool wait_for_own(void *arg, int64_t ms)
{
    struct source_task *s = arg;

    if (!s->task->started)
        return source_task_exactly_once(s) ? task_lease_wait(s->task, ms)
                                           : task_lease_sleep(s->task, ms);
    task_wait(s->task, NULL, 0, clock_ms() + ms);
    return !task_stopping(s->task);
}

static int connect_producer(struct source_task *s, struct mr_error *err)
{
    struct task *task = s->task;
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    int rc;

    sender_drop(&s->sender);
    props_deinit(&s->sender.java);
    rc = task_client_producer(&client, &s->sender.java, err);
    if (rc == MR_OK && source_task_exactly_once(s))
        rc = txn_settings(task, &s->sender.java, err);
    return rc == MR_OK ? sender_connect(&s->sender, task, err) : rc;
}

static int open_transactions(void *arg, struct mr_error *err)
{
    struct source_task *s = arg;
    int rc = connect_producer(s, err);

    return rc == MR_OK ? txn_open(&s->txn, s->task, &s->sender, err) : rc;
}

/* Under exactly-once. */
static bool claim(void *arg)
{
    struct source_task *s = arg;

    return txn_claim(&(struct txn_claim){s->task, &s->txn, true, open_transactions, s});
}

/* false: failed, or called off. */
static bool open_own_offsets(struct source_task *s)
{
    struct task *task = s->task;
    const struct own_offsets_spec spec = {
        {task->connector, task->number, task->worker, &task->connector_config},
        &s->sender.java,
        wait_for_own,
        s};
    struct mr_error err = {0};
    int rc = own_offsets_open(&spec, &s->own, &err);

    s->restart = rc == MR_ERR_CLOSED && source_task_exactly_once(s);
    if (rc != MR_OK && rc != MR_ERR_CLOSED)
        task_fail(task, &err, NULL);
    return rc == MR_OK;
}

static bool open_all(struct source_task *s)
{
    struct task *task = s->task;
    const struct pipeline_spec spec = {
        .connector = &task->connector_config,
        .worker = task->worker,
        .plugins = task->plugins,
        .owner = {task->connector, task->number, task->stop_fd},
        .source = true,
        .wait = wait_between,
        .arg = s,
    };
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    const struct topic_create_spec creation = {client, wait_shortly, task};
    struct task_times times = {0};
    struct mr_error err = {0};

    task_enter(task, "converter start", false);
    s->pipeline = pipeline_new(&spec, &err);
    task_left(task);
    if (s->pipeline == NULL || task_times_read(task->worker, &times, &err) != MR_OK ||
        (!source_task_exactly_once(s) && connect_producer(s, &err) != MR_OK) ||
        topic_create_open(&creation, &s->sender.topics, &err) != MR_OK) {
        if (!s->restart)
            task_fail(task, &err, NULL);
        return false;
    }
    sender_open(&s->sender, pipeline_tolerance(s->pipeline));
    s->pool = batch_pool_new(&host_api_table, task_client_budget(&s->sender.java), BATCH_RECORDS);
    s->graceful_ms = times.graceful_ms;
    offset_writer_init(&s->writer, s->sender.window, source_commit_put_offsets, s,
                       times.flush_interval_ms, times.flush_timeout_ms, clock_ms());
    offset_copies_init(&s->copies, source_commit_put_copies, s);
    return open_own_offsets(s);
}

static void close_all(struct source_task *s)
{
    offset_writer_deinit(&s->writer);
    offset_copies_deinit(&s->copies);
    own_offsets_close(&s->own);
    json_decref(s->own_entries);
    s->own_entries = NULL;
    sender_close(&s->sender);
    txn_close(&s->txn);
    batch_pool_free(&s->pool);
    pipeline_free(&s->pipeline);
}

static void run(struct source_task *s)
{
    if (open_all(s) && task_start_plugin(s->task)) {
        loop(s);
        source_end(s);
    }
    task_stop_plugin(s->task);
    close_all(s);
}

/* A plugin ended the thread: what was handed over and not sent must not reach the topic behind a
 * successor's back. Batches stay, one of them may be the plugin's still. */
static void drop_producer(void *arg)
{
    struct source_task *s = arg;

    sender_drop(&s->sender);
}

/* From start to stop. true: once more, in place; why->code: since its transaction broke. */
static bool live(struct task *task, struct mr_error *why)
{
    struct source_task s = {.task = task, .again_fd = -1, .backoff_ms = RETRY_MIN_MS};

    if (offsets_topic_transactions(task->worker))
        s.sender.txn = &s.txn;
    if (!task_begin(task, source_task_exactly_once(&s) ? claim : NULL, &s)) {
        close_all(&s);
        return false;
    }
    task->inst.offset_read = source_commit_read_offset;
    task->inst.offset_arg = &s;
    pthread_cleanup_push(drop_producer, &s);
    run(&s);
    pthread_cleanup_pop(0);
    *why = s.sender.broken;
    return (s.restart || why->code != 0) && !task->failed && !task_stopping(task);
}

void source_task_run(struct task *task)
{
    txn_lives(task, live);
}
