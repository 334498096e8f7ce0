/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink task commits, and when: flush, then the ledger's offsets. At each interval without
 * waiting for the answer, before partitions go with waiting for it. Thread: the task's.
 *
 * Invariant (promise 1): a committed offset never exceeds what put accepted and a flush after it
 * made durable. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/sink/sink_emit.h"
#include "host/task/sink/sink_task_private.h"

#include <stdlib.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

/* Of the graceful time, when the last commit must be over, and what it gets at least. With brokers
 * away it lasts as long as it may. */
#define COMMIT_TENTHS 7
#define LATE_COMMIT_MS 200

/* --- lists of partitions ---------------------------------------------------------------------- */

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

bool sink_commit_room(struct sink_task *s)
{
    struct mr_error err = {0};

    if (grow(&s->parts, &s->parts_cap, ledger_count(s->ledger)))
        return true;
    mr_fail(&err, MR_ERR_NOMEM, "out of memory for the offsets of %zu partitions",
            ledger_count(s->ledger));
    sink_task_fail(s, &err, NULL);
    return false;
}

/* --- flush and commit ------------------------------------------------------------------------- */

/* The plugin makes durable what put accepted, or says what of it is. parts, *count: on MR_OK what
 * may be committed. */
static int ask_plugin(struct sink_task *s, struct consumer_partition *parts, size_t *count,
                      struct mr_error *err)
{
    const struct mr_sink *sink = &s->task->plugin->sink;
    const char *slot = sink->pre_commit != NULL ? "pre_commit" : "flush";
    int rc;

    task_enter(s->task, slot, false);
    rc = sink->pre_commit != NULL ? sink_control_pre_commit(s, parts, count, err)
                                  : sink->flush(s->task->inst.self, err);
    return task_leave(s->task, slot, rc, err);
}

/* The plugin may have sought back in that call. */
static size_t up_to_here(const struct sink_task *s, struct consumer_partition *parts, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (ledger_has(s->ledger, parts[i].topic, parts[i].partition) &&
            parts[i].offset <= ledger_position(s->ledger, parts[i].topic, parts[i].partition))
            parts[kept++] = parts[i];
    return kept;
}

/* offer: lend the consumer meanwhile; not inside the consumer's own callbacks. Gives how many of
 * parts may be committed, from the front. A flush that fails for good ends the task also inside a
 * revocation: it could never commit again. */
static size_t flush(struct sink_task *s, struct consumer_partition *parts, size_t count, bool offer)
{
    const struct mr_sink *sink = &s->task->plugin->sink;
    struct mr_error err = {0};
    bool lent;
    int rc = MR_OK;

    if (s->broken)
        return 0;
    if (s->places.stores)
        return count;
    if (sink->pre_commit == NULL && (!s->unflushed || sink->flush == NULL))
        return count;
    if (offer)
        sink_consumer_offer(s);
    rc = ask_plugin(s, parts, &count, &err);
    lent = offer && sink_consumer_end_offer(s);
    if (lent)
        sink_consumer_take_back(s);
    if (offer)
        sink_control_apply(s);
    else
        sink_control_move(s);
    s->unflushed = rc < 0;
    if (rc >= 0)
        return up_to_here(s, parts, count);
    s->broken = rc != MR_ERR_RETRY;
    if (rc == MR_ERR_RETRY && err.retry_after_ms > 0)
        s->commit_due_ms = clock_in_ms(err.retry_after_ms);
    log_warn("offsets are not committed: %s: %s", s->task->where, err.text);
    if (s->broken)
        sink_task_fail(s, &err, s->task->where);
    return 0;
}

/* Before a transaction is committed. */
static bool flushed(struct sink_task *s, bool offer)
{
    size_t count;

    if (s->task->plugin->sink.flush == NULL || !s->unflushed || !sink_commit_room(s))
        return !s->broken;
    count = ledger_uncommitted(s->ledger, NULL, 0, s->parts);
    return count == 0 || flush(s, s->parts, count, offer) > 0;
}

static void commit_failed(const struct mr_error *err)
{
    log_warn("offsets were not committed: %s; they go with the next commit", err->text);
}

/* Take the answer to an asynchronous commit. */
void sink_commit_take_result(struct sink_task *s)
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
    CRASH_POINT(COMMITTED);
    if (rc > 0)
        ledger_committed(s->ledger, s->sent, s->sent_count);
    else
        commit_failed(&err);
    s->sent_count = 0;
}

void sink_commit_begin(struct sink_task *s)
{
    struct mr_error err = {0};
    size_t count;

    if (s->emit != NULL) {
        if (flushed(s, true))
            sink_txn_commit(s->emit);
        return;
    }
    if (s->places.stores)
        sink_places_follow(s);
    if (s->sent_count > 0 || ledger_count(s->ledger) == 0)
        return;
    if (!grow(&s->sent, &s->sent_cap, ledger_count(s->ledger)))
        return;
    count = ledger_uncommitted(s->ledger, NULL, 0, s->sent);
    if (count > 0)
        count = flush(s, s->sent, count, true);
    if (count == 0 || !task_lease_held(s->task))
        return;
    CRASH_POINT(COMMIT);
    if (consumer_commit(s->consumer, s->sent, count, false, 0, &err) != MR_OK)
        commit_failed(&err);
    else
        s->sent_count = count;
    s->sent_ms = clock_ms();
}

int64_t sink_commit_due_by(struct sink_task *s, int tenths, int64_t least_ms, int64_t timeout_ms)
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

void sink_commit_before_leaving(struct sink_task *s, const struct consumer_partition *going,
                                size_t count)
{
    struct mr_error err = {0};
    int64_t commit_ms;
    size_t n = 0;

    if (s->emit != NULL) {
        if (!flushed(s, false) || !sink_txn_commit(s->emit))
            sink_txn_lose(s->emit);
        sink_control_close(s, going, count, false);
        return;
    }
    if (sink_commit_room(s))
        n = ledger_uncommitted(s->ledger, going, count, s->parts);
    if (n > 0)
        n = flush(s, s->parts, n, false);
    sink_control_close(s, going, count, false);
    if (n == 0 || s->broken)
        return;
    commit_ms = sink_commit_due_by(s, COMMIT_TENTHS, LATE_COMMIT_MS, s->times.flush_timeout_ms) -
                clock_ms();
    s->sent_count = 0; /* an answer that is still out can't be told from this one's */
    if (consumer_commit(s->consumer, s->parts, n, true, commit_ms, &err) == MR_OK)
        ledger_committed(s->ledger, s->parts, n);
    else
        log_warn("the last offsets of %zu partitions were not committed: %s; their records are "
                 "read again",
                 n, err.text);
}
