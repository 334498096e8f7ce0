/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink's plugin and the framework tell each other about partitions: open and close one way;
 * pause, resume, seek, an earlier put or commit the other. Thread: the task's.
 *
 *   open, put, flush, pre_commit ─ mr_sink_… ─► wishes ─slot has returned─► consumer and ledger
 *
 * While a slot runs the consumer may be control's (see sink_consumer.c), so wishes wait; of two for
 * one partition the newer holds. */
#include "base/clock.h"
#include "host/task/sink/sink_task_private.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

/* --- what the plugin wishes ------------------------------------------------------------------- */

static bool assigned(const struct sink_task *s, const char *topic, int32_t partition)
{
    return topic != NULL && ledger_has(s->ledger, topic, partition);
}

/* The wish of this kind for this partition: the one that waits, or a new one. NULL with err. */
static struct sink_wish *wish(struct sink_task *s, const char *topic, int32_t partition, bool seek,
                              struct mr_error *err)
{
    struct sink_wish *grown;

    if (!pthread_equal(pthread_self(), s->task->thread)) {
        mr_fail(err, MR_ERR_STATE, "partitions are told on the task's thread only");
        return NULL;
    }
    if (!assigned(s, topic, partition)) {
        mr_fail(err, MR_ERR_STATE, "partition %.249s-%d is not assigned to this task",
                topic == NULL ? "(none)" : topic, partition);
        return NULL;
    }
    for (size_t i = 0; i < s->wish_count; i++)
        if (s->wishes[i].seek == seek && s->wishes[i].partition == partition &&
            strcmp(s->wishes[i].topic, topic) == 0)
            return &s->wishes[i];
    grown = realloc(s->wishes, (s->wish_count + 1) * sizeof(*grown));
    mr_assert(grown != NULL);
    s->wishes = grown;
    grown[s->wish_count] = (struct sink_wish){
        .topic = ledger_topic(s->ledger, topic), .partition = partition, .seek = seek};
    return &grown[s->wish_count++];
}

static int on_hold(void *arg, const char *topic, int32_t partition, bool hold, struct mr_error *err)
{
    struct sink_wish *w = wish(arg, topic, partition, false, err);

    if (w == NULL)
        return MR_ERR_STATE;
    w->hold = hold;
    return MR_OK;
}

static int on_seek(void *arg, const char *topic, int32_t partition, int64_t offset,
                   struct mr_error *err)
{
    struct sink_wish *w;

    if (offset < 0)
        return mr_fail(err, MR_ERR_STATE, "%lld is no offset", (long long)offset);
    w = wish(arg, topic, partition, true, err);
    if (w == NULL)
        return MR_ERR_STATE;
    w->offset = offset;
    return MR_OK;
}

static void on_put_in(void *arg, int64_t ms)
{
    ((struct sink_task *)arg)->put_due_ms = clock_in_ms(ms);
}

static void on_commit(void *arg)
{
    ((struct sink_task *)arg)->commit_due_ms = 0;
}

const struct instance_sink sink_control_table = {
    .hold = on_hold, .seek = on_seek, .put_in = on_put_in, .commit = on_commit};

static void hold(struct sink_task *s, const struct sink_wish *w)
{
    const struct consumer_partition at = {w->topic, w->partition,
                                          ledger_position(s->ledger, w->topic, w->partition)};
    struct mr_error err = {0};

    if (consumer_hold(s->consumer, &at, w->hold, &err) != MR_OK && err.code != MR_ERR_NOT_FOUND)
        sink_task_fail(s, &err, NULL);
}

/* What lies behind a batch in hand is read again, too: of the partitions that were not meant. */
void sink_control_seek_all(struct sink_task *s)
{
    struct mr_error err = {0};
    size_t count;

    if (!sink_commit_room(s))
        return;
    count = ledger_positions(s->ledger, s->parts);
    if (consumer_seek(s->consumer, s->parts, count, &err) != MR_OK)
        sink_task_fail(s, &err, NULL);
}

void sink_control_move(struct sink_task *s)
{
    for (size_t i = 0; i < s->wish_count; i++) {
        const struct sink_wish *w = &s->wishes[i];

        if (!w->seek || !assigned(s, w->topic, w->partition))
            continue;
        if (s->emit != NULL)
            ledger_seek(s->ledger, w->topic, w->partition, w->offset);
        else
            ledger_move(s->ledger, w->topic, w->partition, w->offset);
        s->sent_count = 0; /* an answer to a commit that is out would hide the way back */
    }
}

bool sink_control_apply(struct sink_task *s)
{
    size_t kept = 0;

    sink_control_move(s);

    for (size_t i = 0; i < s->wish_count; i++) {
        const struct sink_wish *w = &s->wishes[i];

        if (!assigned(s, w->topic, w->partition))
            continue; /* it went meanwhile */
        s->wishes[kept++] = *w;
    }
    s->wish_count = 0;
    if (kept == 0)
        return false;
    sink_control_seek_all(s);
    for (size_t i = 0; i < kept; i++)
        if (!s->wishes[i].seek)
            hold(s, &s->wishes[i]);
    return true;
}

/* --- partitions come and go ------------------------------------------------------------------- */

/* As the plugin sees them. Caller frees parts; NULL out of memory is a bug's worth. */
static struct mr_partition_list list_of(const struct consumer_partition *parts, size_t count)
{
    struct mr_partition *own = calloc(count + 1, sizeof(*own));

    mr_assert(own != NULL);
    for (size_t i = 0; i < count; i++)
        own[i] = (struct mr_partition){.topic = parts[i].topic,
                                       .partition = parts[i].partition,
                                       .offset = parts[i].offset,
                                       .stored = -1};
    return (struct mr_partition_list){
        .host = &host_api_table, .parts = (char *)own, .part_size = sizeof(*own), .count = count};
}

/* Without a lease no code of the plugin's runs: it hears of these when there is one again. The
 * consumer, whose names they bear, may be gone by then. */
static void add_all(struct sink_task *s, struct sink_parts *list,
                    const struct consumer_partition *parts, size_t count)
{
    struct consumer_partition *grown;

    if (count == 0)
        return;
    grown = realloc(list->items, (list->count + count) * sizeof(*grown));
    mr_assert(grown != NULL);
    list->items = grown;
    for (size_t i = 0; i < count; i++) {
        grown[list->count] = parts[i];
        grown[list->count++].topic = ledger_topic(s->ledger, parts[i].topic);
    }
}

static void call_open(struct sink_task *s, const struct consumer_partition *parts, size_t count)
{
    const struct mr_sink *sink = &s->task->plugin->sink;
    struct mr_partition_list list;
    struct mr_error err = {0};
    int rc;

    if (s->places.stores) {
        sink_places_open(s, parts, count);
        return;
    }
    list = list_of(parts, count);
    task_enter(s->task, "open", false);
    rc = sink->open(s->task->inst.self, &list, &err);
    rc = task_leave(s->task, "open", rc, &err);
    free(list.parts);
    if (rc < 0)
        sink_task_fail(s, &err, s->task->where);
    sink_control_apply(s);
}

static void call_close(struct sink_task *s, const struct consumer_partition *parts, size_t count,
                       bool lost)
{
    const struct mr_sink *sink = &s->task->plugin->sink;
    struct mr_partition_list list = list_of(parts, count);
    struct mr_error err = {0};
    int rc;

    task_enter(s->task, "close", false);
    rc = sink->close(s->task->inst.self, &list, lost, &err);
    rc = task_leave(s->task, "close", rc, &err);
    free(list.parts);
    if (rc < 0)
        sink_task_fail(s, &err, s->task->where);
}

/* Without a word: it never heard of that one. */
static bool forget_unopened(struct sink_task *s, const struct consumer_partition *part)
{
    struct sink_parts *list = &s->unopened;

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].partition != part->partition ||
            strcmp(list->items[i].topic, part->topic) != 0)
            continue;
        list->items[i] = list->items[--list->count];
        return true;
    }
    return false;
}

/* Before anything else that it hears: a partition may have come back since. */
static void tell_unclosed(struct sink_task *s)
{
    if (s->unclosed.count > 0)
        call_close(s, s->unclosed.items, s->unclosed.count, true);
    s->unclosed.count = 0;
}

void sink_control_open(struct sink_task *s, const struct consumer_partition *parts, size_t count)
{
    if (s->task->plugin->sink.open == NULL || s->task->failed || !s->task->started)
        return;
    if (!task_lease_act(s->task)) {
        add_all(s, &s->unopened, parts, count);
        return;
    }
    tell_unclosed(s);
    if (!s->task->failed)
        call_open(s, parts, count);
}

static void close_opened(struct sink_task *s, const struct consumer_partition *parts, size_t count,
                         bool lost)
{
    if (s->task->plugin->sink.close == NULL || !s->task->started || count == 0)
        return;
    if (!task_lease_act(s->task)) {
        add_all(s, &s->unclosed, parts, count);
        return;
    }
    tell_unclosed(s);
    call_close(s, parts, count, lost);
}

void sink_control_close(struct sink_task *s, const struct consumer_partition *parts, size_t count,
                        bool lost)
{
    struct consumer_partition *opened = calloc(count + 1, sizeof(*opened));
    size_t n = 0;

    mr_assert(opened != NULL);
    for (size_t i = 0; i < count; i++)
        if (!forget_unopened(s, &parts[i]))
            opened[n++] = parts[i];
    close_opened(s, opened, n, lost);
    free(opened);
}

void sink_control_catch_up(struct sink_task *s)
{
    tell_unclosed(s);
    if (s->unopened.count > 0 && !s->task->failed)
        call_open(s, s->unopened.items, s->unopened.count);
    s->unopened.count = 0;
}

void sink_control_deinit(struct sink_task *s)
{
    free(s->wishes);
    free(s->unclosed.items);
    free(s->unopened.items);
}

/* --- what may be committed -------------------------------------------------------------------- */

static bool same(const struct mr_partition *said, const struct consumer_partition *asked)
{
    return said->topic == asked->topic && said->partition == asked->partition;
}

/* Of what was asked the plugin may lower offsets; whatever else it says is not committed. Gives how
 * many are left in parts. */
static size_t judge(struct sink_task *s, const struct mr_partition_list *said,
                    struct consumer_partition *parts, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        const struct mr_partition *part = mr_partition_at(said, i);

        if (said->count != count || !same(part, &parts[i]))
            log_warn("pre_commit of %s gave offsets for partitions that it was not asked for; they "
                     "are not committed",
                     s->task->plugin->name);
        else if (part->offset > parts[i].offset)
            log_warn("pre_commit of %s gave offset %lld for %s-%d, of which put took %lld at most; "
                     "it is not committed",
                     s->task->plugin->name, (long long)part->offset, part->topic, part->partition,
                     (long long)parts[i].offset);
        else if (part->offset >= 0)
            parts[kept++] =
                (struct consumer_partition){parts[i].topic, parts[i].partition, part->offset};
    }
    return kept;
}

int sink_control_pre_commit(struct sink_task *s, struct consumer_partition *parts, size_t *count,
                            struct mr_error *err)
{
    struct mr_partition_list list = list_of(parts, *count);
    int rc = s->task->plugin->sink.pre_commit(s->task->inst.self, &list, err);

    if (rc >= 0)
        *count = judge(s, &list, parts, *count);
    free(list.parts);
    return rc;
}
