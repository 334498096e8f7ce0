/* SPDX-License-Identifier: Apache-2.0 */
/* What a source task sends a second time. Thread: the task's.
 *
 *   lease lost ─► producer gone (take_back) ─► lease renewed ─┐
 *          └─ in a stage: purged, silent first ┘              │
 *   a topic was away, records came back ── when it is due ────┼─► all from the first undelivered one
 *   a request too large for its topic ─► in ever smaller groups (isolate)
 *
 * Order (promise): what goes again takes with it everything behind it in its topic, also what was
 * delivered. So a record may stand there once before and once in its place.
 *
 * A record that the topic can't take (MR_ERR_TOO_LARGE by report): the broker refuses whole
 * requests, so innocent records fail with it, and what was queued behind may have been written
 * before we hear of it. The groups get smaller until the guilty record stands alone. */
#include "base/clock.h"
#include "host/task/send/sender_private.h"
#include "host/task/task_client.h"

#define LOGGER "host.task.send"
#include "base/log.h"

#define SMALL_BATCH 16384 /* Java's default batch.size */
#define GROUP_MAX 1024

static void sender_wait(struct sender *s, int64_t deadline_ms)
{
    struct pollfd fd = {.fd = producer_fd(s->producer), .events = POLLIN};

    task_wait(s->task, &fd, 1, deadline_ms);
}

static bool drain_producer(struct sender *s)
{
    while (producer_in_flight(s->producer) > 0) {
        if (sender_halted(s))
            return false;
        sender_wait(s, INT64_MAX);
        producer_reports(s->producer, 0, sender_on_report, s);
    }
    return !sender_halted(s);
}

/* Nothing more may be sent again in this pass. */
static bool stuck(struct sender *s)
{
    return sender_halted(s) || s->came_back;
}

/* Also a settled one, behind one of its topic: so that the order there stays. */
static bool goes_again(struct sender *s, struct record *rec)
{
    if (rec->dropped)
        return false;
    if (s->behind == NULL)
        s->behind = map_new();
    if (rec->settled && map_get(s->behind, rec->pub.topic) == NULL)
        return false;
    map_set(s->behind, rec->pub.topic, s);
    if (rec->settled) {
        rec->settled = false;
        rec->batch->unsettled++;
    }
    return true;
}

/* Behind which record that was sent does it go on? A pass that was cut short leaves a gap, and the
 * next one must know where this one was. */
static void end_pass(struct sender *s, const struct ack_cursor *at)
{
    s->gap = sender_was_sent(s, at);
    s->topic_name = NULL;
    if (!s->gap && !s->came_back)
        map_free(&s->behind, NULL);
}

/* Send up to max records from *from on that go again. Gives how many, *next is behind them; when
 * one can't be sent, and tolerance does not help, the task fails. */
static size_t send_group(struct sender *s, const struct ack_cursor *from, size_t max,
                         struct ack_cursor *next)
{
    size_t sent = 0;
    struct mr_error err = {0};

    for (*next = *from; sent < max && sender_was_sent(s, next) && !stuck(s);
         ack_cursor_next(next)) {
        struct record *rec = ack_cursor_record(next);
        int rc;

        if (!goes_again(s, rec))
            continue;
        s->topic_name = NULL; /* names of another batch may stand at the same address */
        while ((rc = sender_send_record(s, rec, &err)) == MR_ERR_FULL && drain_producer(s))
            err_clear(&err);
        if (rc == MR_OK)
            sent++;
        else if (rc == MR_AGAIN)
            sender_come_back(s, rec, err.text);
        else if (sender_is_record_s(rc))
            sender_record_lost(s, rec, err.code, err.text);
        else if (rc != MR_ERR_FULL) /* full: halted */
            sender_lose(s, &err);
        if (s->lost || s->came_back || rc == MR_ERR_FULL)
            break;
        err_clear(&err);
    }
    return sent;
}

static struct ack_cursor first_unsettled(const struct sender *s, const struct ack_cursor *from)
{
    struct ack_cursor at = *from;

    while (sender_was_sent(s, &at) && ack_cursor_record(&at)->settled)
        ack_cursor_next(&at);
    return at;
}

/* Everything from the first record on that is not delivered. */
static void send_all_again(struct sender *s)
{
    struct ack_cursor at = ack_window_first(s->window);

    s->came_back = false;
    at = first_unsettled(s, &at);
    while (sender_was_sent(s, &at) && !stuck(s)) {
        struct ack_cursor next;

        send_group(s, &at, GROUP_MAX, &next);
        at = next;
    }
    end_pass(s, &at);
}

bool sender_again_return(struct sender *s)
{
    if (sender_held_up(s) || producer_in_flight(s->producer) > 0)
        return false;
    send_all_again(s);
    return true;
}

/* --- a record too large for its topic --------------------------------------------------------- */

/* Smaller requests from now on: the topic takes the records, but not as many in one request. */
static void shrink_requests(struct sender *s)
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
        task_fail(s->task, &err, NULL);
        return;
    }
    producer_free(&s->producer);
    s->producer = smaller;
    log_warn("the topic's max.message.bytes is below the producer's batch.size; going on with "
             "batch.size=%d",
             SMALL_BATCH);
}

/* One guilty record, alone in its request. */
static void judge(struct sender *s, struct record *rec)
{
    char text[400];

    snprintf(
        text, sizeof(text),
        "A record for topic %.249s with a key of %zu and a value of %zu bytes is larger than the "
        "topic's max.message.bytes",
        rec->pub.topic, rec->key_len, rec->value_len);
    sender_record_lost(s, rec, MR_ERR_TOO_LARGE, text);
}

void sender_again_isolate(struct sender *s)
{
    struct ack_cursor at;
    size_t group = 64;
    bool guilty = false;

    log_warn("the broker refuses a request as too large; looking for the record");
    s->gap = true;
    producer_purge(s->producer);
    if (!drain_producer(s))
        return;
    s->came_back = false;
    at = ack_window_first(s->window);
    at = first_unsettled(s, &at);
    while (sender_was_sent(s, &at) && !stuck(s)) {
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
    end_pass(s, &at);
    if (!guilty && !stuck(s))
        shrink_requests(s);
}

/* --- without a lease -------------------------------------------------------------------------- */

/* A producer that is gone can send nothing, whatever its state was; the next one is another to the
 * brokers. */
void sender_again_take_back(struct sender *s)
{
    sender_walk_reports(s);
    producer_free(&s->producer);
    s->topic = NULL;
    s->topic_name = NULL;
    s->too_large = 0;
    s->came_back = s->silenced = false;
}

/* Purged, it holds nothing that could leave; a record sent behind the gap would be out of order. */
void sender_again_silence(struct sender *s)
{
    if (s->producer == NULL)
        return;
    producer_purge(s->producer);
    s->silenced = true;
}

void sender_again_all(struct sender *s)
{
    struct mr_error err = {0};

    s->producer = producer_new(&s->java, NULL, NULL, &err);
    if (s->producer != NULL)
        send_all_again(s);
    else
        task_fail(s->task, &err, NULL);
}
