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
 * What is between the window and Kafka is sender.c.
 *
 * Spec: AbstractWorkerSourceTask, WorkerSourceTask, SubmittedRecords, SourceTaskOffsetCommitter. */
#include "base/clock.h"
#include "host/task/offset_writer.h"
#include "host/task/own_offsets.h"
#include "host/task/pipeline.h"
#include "host/task/sender.h"
#include "host/task/task_client.h"
#include "host/task/txn.h"
#include "model/offsets_topic.h"
#include "model/task_times.h"

#include <stdlib.h>

#define LOGGER "host.task.source"
#include "base/log.h"

#define BATCH_RECORDS 4096 /* what mr_batch_full calls full */
#define RETRY_MIN_MS 100   /* back-off after MR_ERR_RETRY from poll: doubled up to the maximum */
#define RETRY_MAX_MS 5000
#define EMPTY_FREE 16 /* polls in a row that gave nothing, asked for no wait and took no time */
#define EMPTY_MAX_MS 100
/* At least this long for deliveries after a poll that came back late, ... */
#define LATE_SEND_MS 400
#define LATE_STORE_MS 200 /* ... and this for their offsets; ... */
#define OVER_SEND_MS 300  /* ... over the graceful time at most this, and */
#define LEASE_BACK_MS 500 /* ... where a lease that is lost may come back for so long; ... */
#define OVER_STORE_MS 500 /* this: the worker waits a second */
#define TRIM_MS 2000      /* idle for so long: cached memory goes back */
#define DEATHS_MS 600000
#define FAILED_SEND_MS 30000 /* for deliveries under way when the task fails, as Java's close */
#define OWN_ID INT64_MAX     /* of a write to own_offsets, among ids of questions to the worker */

/* How often its transaction broke. */
struct deaths {
    int64_t since_ms;
    int64_t count;
};

struct source_task {
    struct task *task;
    struct pipeline *pipeline;
    struct batch_pool *pool;
    struct sender sender;
    struct offset_writer writer; /* without transactions */
    struct own_offsets *own;     /* the connector's own topic; NULL: it has none */
    json_t *own_entries;         /* under way there; then the worker's store gets a copy */
    struct txn txn;              /* with them: sender.txn leads here */
    bool restart;                /* in place: through the whole start sequence */
    bool torn;                   /* a transaction did not end as it was to: none is committed */
    int64_t graceful_ms;
    bool fell; /* it ends because it failed, and not because it was asked to */

    int64_t next_poll_ms;
    int again_fd; /* poll again when it is readable; -1 none */
    int64_t backoff_ms;
    uint32_t empty_polls;
    bool unsettled;        /* a dead letter was not delivered: no offset is stored any more */
    int64_t idle_since_ms; /* 0: busy, or trimmed */
};

static bool ending(struct source_task *s)
{
    return s->task->failed || s->restart || s->sender.broken.code != 0 || task_stopping(s->task);
}

static bool exactly_once(const struct source_task *s)
{
    return s->sender.txn != NULL;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void no_such_descriptor(struct source_task *s)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL, "mr_again_on_fd was given descriptor %d, which is not open",
            s->again_fd);
    task_fail(s->task, &err, NULL);
}

/* Wait for reports, stop, commands; with polling also for what ends the wait before the next
 * poll. */
static void wait_for(struct source_task *s, bool polling, int64_t deadline_ms)
{
    struct pollfd fds[4] = {
        {.fd = producer_fd(s->sender.producer), .events = POLLIN},
        {.fd = polling ? s->task->wake_fd : -1, .events = POLLIN},
        {.fd = polling ? s->again_fd : -1, .events = POLLIN},
        {.fd = s->own != NULL ? own_offsets_fd(s->own) : -1, .events = POLLIN},
    };
    int64_t due = exactly_once(s) ? txn_due_ms(&s->txn) : offset_writer_due_ms(&s->writer);

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
    wait_for(s, true, deadline_ms);
}

/* --- answers of the worker -------------------------------------------------------------------- */

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
static bool take_answer(struct source_task *s, int64_t id, const char *error)
{
    if (!offset_writer_answer(&s->writer, id, error, clock_ms()))
        return false;
    tell_committed(s);
    return true;
}

/* What stands in the connector's own topic is written to the worker's too. Nothing waits for that,
 * and it may fail: the first one counts. entries: taken. */
static void copy_to_worker(struct source_task *s, json_t *entries)
{
    (void)s->task->events->put_offsets(s->task->arg, s->task, entries);
}

static bool take_own(struct source_task *s)
{
    struct mr_error err = {0};
    json_t *entries = s->own_entries;

    own_offsets_serve(s->own);
    if (!own_offsets_ended(s->own, &err))
        return false;
    s->own_entries = NULL;
    if (err.code == 0)
        copy_to_worker(s, entries);
    else
        json_decref(entries);
    return take_answer(s, OWN_ID, err.text);
}

static bool take_answers(struct source_task *s)
{
    struct task_answer *answer;
    bool done = s->own != NULL && take_own(s);

    while ((answer = task_answer_next(s->task)) != NULL) {
        if (s->own == NULL)
            done = take_answer(s, answer->id, answer->error) || done;
        else if (answer->error[0] != '\0')
            log_warn("source offsets stand in topic %s, but not in the worker's as well: %s",
                     own_offsets_topic(s->own), answer->error);
        task_answer_free(answer);
    }
    return done;
}

/* A record that became a dead letter counts as done; its offset may be stored when the letter is
 * delivered, and not before. */
static bool letters_delivered(struct source_task *s)
{
    struct mr_error err = {0};

    if (s->unsettled || pipeline_settle(s->pipeline, &err) == MR_OK)
        return !s->unsettled;
    s->unsettled = true;
    if (err.code != MR_ERR_CLOSED)
        task_fail(s->task, &err, NULL);
    return false;
}

static int64_t put_offsets(void *arg, json_t *entries)
{
    struct source_task *s = arg;

    if (!letters_delivered(s)) {
        json_decref(entries);
        return -1;
    }
    if (s->own == NULL)
        return s->task->events->put_offsets(s->task->arg, s->task, entries);
    s->own_entries = entries;
    own_offsets_put(s->own, entries);
    return OWN_ID;
}

/* offset: NULL none. */
static int find_member(const json_t *offset, const char *key, bool *found, int64_t *out,
                       struct mr_error *err)
{
    const json_t *member = json_object_get(offset, key);

    if (member != NULL && !json_is_null(member) && !json_is_integer(member))
        return mr_fail(err, MR_ERR_DATA, "the stored offset has no integer as %.200s", key);
    *found = json_is_integer(member);
    if (*found)
        *out = json_integer_value(member);
    return MR_OK;
}

static int ask_worker(struct source_task *s, json_t *partition, const char *key, bool *found,
                      int64_t *out, struct mr_error *err)
{
    struct task_answer *answer = task_answer_wait(
        s->task, s->task->events->ask_offsets(s->task->arg, s->task, json_pack("[O]", partition)));
    int rc;

    if (answer == NULL)
        return mr_fail(err, MR_ERR_CLOSED, "the task is stopping");
    if (answer->error[0] != '\0')
        rc = mr_fail(err, MR_ERR_FATAL, "source offsets could not be read: %s", answer->error);
    else
        rc = find_member(json_array_get(json_array_get(answer->entries, 0), 1), key, found, out,
                         err);
    task_answer_free(answer);
    return rc;
}

/* What mr_offset_long does. The connector's own topic has the first word; what it does not know,
 * the worker may: it did before the connector had a topic of its own. */
static int read_offset(void *arg, const struct mr_source_partition *part, const char *key,
                       bool *found, int64_t *out, struct mr_error *err)
{
    struct source_task *s = arg;
    const json_t *offset = NULL;
    json_t *partition;
    int rc = MR_OK;

    if (!pthread_equal(pthread_self(), s->task->thread))
        return mr_fail(err, MR_ERR_STATE,
                       "offsets are read on the task's thread only, in start or poll");
    partition = json_pack("{s:s?}", part->key, part->value);
    if (partition == NULL)
        return mr_fail(err, MR_ERR_DATA, "the name of source partition %.200s is not UTF-8",
                       part->key);
    if (s->own != NULL)
        rc = own_offsets_read(s->own, err);
    if (s->own != NULL && rc == MR_OK)
        offset = own_offsets_get(s->own, partition);
    if (rc == MR_OK)
        rc = offset != NULL ? find_member(offset, key, found, out, err)
                            : ask_worker(s, partition, key, found, out, err);
    json_decref(partition);
    return rc;
}

/* --- polling ---------------------------------------------------------------------------------- */

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
    sender_begin(&s->sender, batch);
    if (rc != MR_OK && (rc != MR_ERR_CLOSED || !task_stopping(s->task)))
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
    if (rc >= 0 && exactly_once(s) && s->txn.boundary == TXN_CONNECTOR)
        s->sender.end = batch->end;
    batch_pool_give(s->pool, batch);
    if (rc == MR_ERR_RETRY)
        poll_retry(s, &err, now_ms);
    else if (rc < 0)
        task_fail(s->task, &err, s->task->where);
}

/* --- transactions ----------------------------------------------------------------------------- */

static void committed(struct source_task *s)
{
    json_t *entries;

    while ((entries = txn_next_copy(&s->txn)) != NULL)
        copy_to_worker(s, entries);
    tell_committed(s);
}

/* With what was sent since the last end, or without it. */
static void end_transaction(struct source_task *s, bool aborts)
{
    struct mr_error err = {0};
    int rc;

    s->torn = true;
    if (!letters_delivered(s))
        return;
    rc = aborts ? txn_discard(&s->txn, &err) : txn_commit(&s->txn, &err);
    s->torn = rc != 0;
    if (rc == 0)
        committed(s);
    else if (!task_stopping(s->task) && task_lease_held(s->task)) /* else `rest` begins anew */
        sender_fail(&s->sender, &err);
    if (rc != 0 && !s->task->failed && s->sender.broken.code == 0)
        log_warn("%s", err.text);
    if (rc == 0 && !task_stopping(s->task) && producer_txn_tainted(s->sender.producer)) {
        log_info("the end of a transaction was sent twice: the producer is made anew");
        s->restart = true;
    }
}

/* Where the plugin says so, also within a batch. true: it did. */
static bool end_as_told(struct source_task *s)
{
    enum batch_end end = s->sender.end;

    if (end == BATCH_GOES_ON)
        return false;
    s->sender.end = BATCH_GOES_ON;
    end_transaction(s, end == BATCH_ABORTS);
    return true;
}

/* true: a transaction was ended, or is to be. */
static bool commit_when_due(struct source_task *s, int64_t now_ms)
{
    if (!exactly_once(s) || !txn_due(&s->txn, now_ms) ||
        (!s->txn.open && ack_window_committable(s->sender.window) == 0))
        return false;
    end_transaction(s, false);
    return true;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void turn_paused(struct source_task *s)
{
    if (s->task->reported != STATE_PAUSED) {
        if (!exactly_once(s))
            offset_writer_flush(&s->writer, clock_ms());
        else if (s->txn.boundary != TXN_CONNECTOR)
            end_transaction(s, false);
        task_report(s->task, STATE_PAUSED);
    }
    wait_for(s, false, INT64_MAX);
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

    if (end_as_told(s))
        return;
    if (s->sender.sending != NULL) {
        if (sender_go_on(&s->sender) == MR_ERR_FULL && task_lease_held(s->task))
            wait_for(s, false, INT64_MAX);
        return;
    }
    if (commit_when_due(s, now_ms))
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
        wait_for(s, false, INT64_MAX); /* reports give batches back */
    else
        no_memory(s);
}

static void serve(struct source_task *s)
{
    sender_walk_reports(&s->sender);
    take_answers(s);
    if (!exactly_once(s))
        offset_writer_tick(&s->writer, clock_ms());
    sender_look_for_trouble(&s->sender, clock_ms());
}

/* The lease is lost. What poll has handed over waits in the window; offsets, and answers about
 * them, wait too. Of a transaction nothing stays: its producer is gone, and with a new lease the
 * task begins anew, where the last one ended. */
static void rest(struct source_task *s)
{
    bool renewed;

    s->restart = exactly_once(s);
    sender_take_back(&s->sender);
    if (s->own != NULL)
        own_offsets_purge(s->own);
    pipeline_take_letters_back(s->pipeline);
    task_lease_rest(s->task);
    while (!(renewed = task_lease_act(s->task)) && !s->task->failed && !task_stopping(s->task))
        task_wait(s->task, NULL, 0, INT64_MAX);
    if (!renewed || ending(s))
        return;
    pipeline_send_letters_again(s->pipeline);
    sender_send_again(&s->sender);
}

static void loop(struct source_task *s)
{
    while (!ending(s)) {
        if (!task_lease_held(s->task)) {
            rest(s);
            continue;
        }
        serve(s);
        if (ending(s))
            break;
        if (s->sender.too_large > 0)
            sender_isolate(&s->sender);
        else if (!s->task->failed)
            turn(s);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

/* A task that failed may be asked to stop while it waits: then it has no longer than others, so
 * many tenths of their time. */
static int64_t bounded(struct source_task *s, int64_t deadline_ms, int64_t tenths)
{
    int64_t most_ms;

    if (!s->fell || !task_stopping(s->task))
        return deadline_ms;
    most_ms = task_stop_since(s->task) + s->graceful_ms * tenths / 10;
    return most_ms < deadline_ms ? most_ms : deadline_ms;
}

static void finish_sending(struct source_task *s, int64_t deadline_ms)
{
    for (;;) {
        s->sender.send_until_ms = bounded(s, deadline_ms, 6);
        if (sender_may_go_on(&s->sender))
            sender_go_on(&s->sender);
        if ((!sender_may_go_on(&s->sender) && producer_in_flight(s->sender.producer) == 0) ||
            clock_ms() >= s->sender.send_until_ms || !task_lease_held(s->task))
            break;
        wait_for(s, false, s->sender.send_until_ms);
        sender_walk_reports(&s->sender);
        take_answers(s);
    }
    sender_walk_reports(&s->sender);
    if (ack_window_unsettled(s->sender.window) > 0)
        log_warn("%zu records are not acknowledged at the end; the next start sends them again",
                 ack_window_unsettled(s->sender.window));
}

/* What was delivered is told by reports as long as there is a producer: a lost lease has ended
 * it. */
static void wait_for_answers(struct source_task *s, int64_t deadline_ms)
{
    struct pollfd own = {.fd = s->own != NULL ? own_offsets_fd(s->own) : -1, .events = POLLIN};

    if (s->sender.producer == NULL) {
        task_wait(s->task, &own, 1, deadline_ms);
        return;
    }
    wait_for(s, false, deadline_ms);
    sender_walk_reports(&s->sender);
}

/* Reports that arrive meanwhile count: their offsets go with one more flush. */
static void finish_offsets(struct source_task *s, int64_t deadline_ms)
{
    bool again = true;

    while (again && clock_ms() < bounded(s, deadline_ms, 9) && task_lease_held(s->task)) {
        again = false;
        offset_writer_flush(&s->writer, clock_ms());
        while (offset_writer_busy(&s->writer) && clock_ms() < bounded(s, deadline_ms, 9)) {
            wait_for_answers(s, bounded(s, deadline_ms, 9));
            again = take_answers(s) || again;
        }
        again = again && ack_window_committable(s->sender.window) > 0;
    }
    if (offset_writer_busy(&s->writer))
        log_warn("the last offsets were not confirmed in time; records may be sent again");
}

static int64_t between(int64_t least, int64_t n, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* A new lease often comes right behind the stop: the round that gives it took the task away first.
 * Waited for only where something is left to store. */
static bool lease_is_back(struct source_task *s)
{
    int64_t until_ms = clock_ms() + LEASE_BACK_MS;
    bool back;

    task_lease_rest(s->task);
    while (!(back = task_lease_act(s->task)) && clock_ms() < until_ms &&
           (offset_writer_busy(&s->writer) || ack_window_committable(s->sender.window) > 0)) {
        task_wait(s->task, NULL, 0, until_ms);
        take_answers(s);
    }
    return back;
}

static bool may_commit(const struct source_task *s)
{
    return !s->task->failed && !s->restart && !s->torn && s->sender.broken.code == 0 &&
           task_lease_held(s->task);
}

/* With what the plugin has handed over complete, the open transaction is committed, or where the
 * plugin says so; else it vanishes, and is read again. */
static void finish_transaction(struct source_task *s, int64_t send_ms)
{
    if (s->sender.producer == NULL)
        return;
    do {
        if (may_commit(s))
            finish_sending(s, send_ms);
    } while (may_commit(s) && end_as_told(s));
    if (may_commit(s) && s->sender.sending == NULL && s->txn.boundary != TXN_CONNECTOR)
        end_transaction(s, false);
    txn_abort(&s->txn);
    sender_drop(&s->sender);
}

/* How long deliveries, then offsets, are waited for. Of the graceful time most is for the first,
 * and a rest for the plugin's stop; what a poll hands over that came back late still gets a moment
 * for both. A task that failed has the time that Java gives. */
static int64_t send_until(struct source_task *s)
{
    int64_t from_ms = task_stop_since(s->task);

    if (s->fell)
        return s->task->failed_ms + FAILED_SEND_MS;
    return between(from_ms + s->graceful_ms * 6 / 10, clock_ms() + LATE_SEND_MS,
                   from_ms + s->graceful_ms + OVER_SEND_MS);
}

static int64_t store_until(struct source_task *s)
{
    int64_t from_ms = task_stop_since(s->task);

    if (s->fell)
        return clock_ms() + s->writer.timeout_ms;
    return between(from_ms + s->graceful_ms * 9 / 10, clock_ms() + LATE_STORE_MS,
                   from_ms + s->graceful_ms + OVER_STORE_MS);
}

/* Without a lease nothing is sent and nothing stored. */
static void finish(struct source_task *s)
{
    s->fell = !task_stopping(s->task);
    if (exactly_once(s)) {
        finish_transaction(s, task_stop_since(s->task) + s->graceful_ms * 6 / 10);
        return;
    }
    if (s->sender.producer != NULL)
        finish_sending(s, send_until(s));
    if (!task_lease_held(s->task) && s->own != NULL)
        own_offsets_purge(s->own);
    if (s->sender.producer != NULL && !task_lease_held(s->task))
        sender_take_back(&s->sender);
    if (!lease_is_back(s))
        return;
    pipeline_send_letters_again(s->pipeline);
    finish_offsets(s, store_until(s));
}

/* Between two tries of a stage. What poll has handed over must not get lost with the lease: it
 * waits for a new one. */
static bool wait_between(void *arg, int64_t ms)
{
    struct source_task *s = arg;
    bool held = task_lease_sleep(s->task, ms, false);

    if (held || task_stopping(s->task))
        return held;
    if (s->pipeline != NULL)
        pipeline_take_letters_back(s->pipeline);
    held = task_lease_sleep(s->task, 0, true);
    if (held && s->pipeline != NULL)
        pipeline_send_letters_again(s->pipeline);
    return held;
}

/* Between two questions about a topic. Nothing gets lost when it ends: the records are in the
 * window. */
static bool wait_shortly(void *task, int64_t ms)
{
    task_wait(task, NULL, 0, clock_ms() + ms);
    return !task_stopping(task) && task_lease_held(task);
}

/* While the connector's own offsets topic is opened, or read from within the plugin's call. A claim
 * does not outlive the lease. */
static bool wait_for_own(void *arg, int64_t ms)
{
    struct source_task *s = arg;

    if (!s->task->started)
        return task_lease_sleep(s->task, ms, !exactly_once(s));
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
    if (rc == MR_OK && exactly_once(s))
        rc = txn_settings(task, &s->sender.java, err);
    return rc == MR_OK ? sender_connect(&s->sender, task, err) : rc;
}

/* Under exactly-once, before the worker is asked whether the task is still to run: the producers of
 * earlier sets of tasks are fenced, then the transactional id is this task's. A slow task that took
 * it from a newer one is told so by that answer. */
static bool claim(void *arg)
{
    struct source_task *s = arg;
    struct task *task = s->task;
    struct task_answer *answer = task_answer_wait(task, task->events->ask_fence(task->arg, task));
    struct mr_error err = {0};
    int rc = MR_ERR_CLOSED;

    if (answer != NULL && answer->error[0] != '\0')
        rc = mr_fail(&err, MR_ERR_FATAL, "%s", answer->error);
    else if (answer != NULL && task_lease_act(task))
        rc = connect_producer(s, &err);
    if (rc == MR_OK)
        rc = txn_open(&s->txn, task, &s->sender, &err);
    if (rc == MR_OK)
        rc = txn_init(&s->txn, &err);
    task_lease_rest(task);
    task_answer_free(answer);
    if (rc != MR_OK && rc != MR_ERR_CLOSED)
        task_fail(task, &err, NULL);
    return rc == MR_OK;
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

    s->restart = rc == MR_ERR_CLOSED && exactly_once(s);
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
        (!exactly_once(s) && connect_producer(s, &err) != MR_OK) ||
        topic_create_open(&creation, &s->sender.topics, &err) != MR_OK) {
        task_fail(task, &err, NULL);
        return false;
    }
    sender_open(&s->sender, pipeline_tolerance(s->pipeline));
    s->pool = batch_pool_new(&host_api_table, task_client_budget(&s->sender.java), BATCH_RECORDS);
    s->graceful_ms = times.graceful_ms;
    offset_writer_init(&s->writer, s->sender.window, put_offsets, s, times.flush_interval_ms,
                       times.flush_timeout_ms, clock_ms());
    return open_own_offsets(s);
}

static void close_all(struct source_task *s)
{
    offset_writer_deinit(&s->writer);
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
        finish(s);
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
    if (!task_begin(task, exactly_once(&s) ? claim : NULL, &s)) {
        close_all(&s);
        return false;
    }
    task->inst.offset_read = read_offset;
    task->inst.offset_arg = &s;
    pthread_cleanup_push(drop_producer, &s);
    run(&s);
    pthread_cleanup_pop(0);
    *why = s.sender.broken;
    return (s.restart || why->code != 0) && !task->failed && !task_stopping(task);
}

/* Whose transaction breaks without a word of the worker's has a twin, or was too slow, or its
 * brokers are in trouble: it begins anew as a host does that died, and not for ever. false: it is
 * to end. */
static bool may_live_again(struct task *task, struct deaths *deaths, const struct mr_error *why)
{
    static const int64_t delays_ms[] = {0, 1000, 5000, 30000};
    int64_t most = task_client_number(task->worker, "millrace.restart.max", 5, 0, INT32_MAX);
    int64_t now_ms = clock_ms();
    struct mr_error err = {0};
    size_t at;

    if (now_ms - deaths->since_ms > DEATHS_MS)
        *deaths = (struct deaths){.since_ms = now_ms};
    at = (size_t)deaths->count++;
    if (deaths->count > most) {
        mr_fail(&err, MR_ERR_FATAL,
                "A transaction could not be committed %lld times in ten minutes. The last time: "
                "%.600s. If it was open for longer than transaction.timeout.ms, a faster producer, "
                "a larger producer.override.transaction.timeout.ms, a shorter "
                "transaction.boundary.interval.ms or transaction.boundary=poll may help; if "
                "another producer has taken its id over, see that no other cluster has this "
                "group.id and a connector of this name",
                (long long)deaths->count, why->text);
        task_fail(task, &err, NULL);
        return false;
    }
    at = at < 4 ? at : 3;
    log_warn("its transaction is broken (%s): the task begins anew in %lld ms", why->text,
             (long long)delays_ms[at]);
    return task_lease_sleep(task, delays_ms[at], true);
}

void source_task_run(struct task *task)
{
    struct deaths deaths = {0};
    struct mr_error why = {0};

    while (live(task, &why)) {
        task_unmake(task);
        task_lease_rest(task);
        if (why.code != 0 && !may_live_again(task, &deaths, &why))
            return;
    }
}
