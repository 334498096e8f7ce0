/* SPDX-License-Identifier: Apache-2.0 */
/* What a source task still does when it is to end: deliveries under way are waited for, then their
 * offsets are stored, or the open transaction is committed. Each has its part of the graceful time;
 * a task that failed has Java's. Thread: the task's.
 *
 *   loop ends ─► deliveries ─┬─► offsets, once more for what was delivered meanwhile ─► stop()
 *                            └─► with transactions: commit, or it vanishes
 *
 * Invariant (promise 1): without the lease nothing is sent and nothing stored. */
#include "base/clock.h"
#include "host/task/source/source_task_private.h"

#define LOGGER "host.task.source"
#include "base/log.h"

/* At least this long for deliveries after a poll that came back late, ... */
#define LATE_SEND_MS 400
#define LATE_STORE_MS 200    /* ... and this for their offsets; ... */
#define OVER_SEND_MS 300     /* ... over the graceful time at most this, and */
#define OVER_STORE_MS 500    /* this: the worker waits a second */
#define FAILED_SEND_MS 30000 /* for deliveries under way when the task fails, as Java's close */

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
        int64_t due_ms;

        s->sender.send_until_ms = bounded(s, deadline_ms, 6);
        if (sender_may_go_on(&s->sender))
            sender_go_on(&s->sender);
        if ((!sender_may_go_on(&s->sender) && producer_in_flight(s->sender.producer) == 0) ||
            clock_ms() >= s->sender.send_until_ms || !task_lease_held(s->task))
            break;
        due_ms = sender_due_ms(&s->sender);
        source_task_wait(s, false,
                         due_ms < s->sender.send_until_ms ? due_ms : s->sender.send_until_ms);
        sender_walk_reports(&s->sender);
        source_commit_take_answers(s);
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
    source_task_wait(s, false, deadline_ms);
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
            again = source_commit_take_answers(s) || again;
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
    } while (may_commit(s) && source_commit_as_told(s));
    if (may_commit(s) && s->sender.sending == NULL && s->txn.boundary != TXN_CONNECTOR)
        source_commit_end(s, false);
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

/* No lease comes back for a task that is being stopped (hosted_task.c): what is not stored by now is
 * sent again by its successor. */
static void finish_deliveries(struct source_task *s)
{
    if (s->sender.producer != NULL)
        finish_sending(s, send_until(s));
    if (!task_lease_held(s->task)) {
        source_task_take_back(s); /* the plugin's stop may take its time */
        return;
    }
    pipeline_send_letters_again(s->pipeline);
    finish_offsets(s, store_until(s));
}

void source_end(struct source_task *s)
{
    s->fell = !task_stopping(s->task);
    if (source_task_exactly_once(s))
        finish_transaction(s, task_stop_since(s->task) + s->graceful_ms * 6 / 10);
    else
        finish_deliveries(s);
    offset_copies_end(&s->copies);
}
