/* SPDX-License-Identifier: Apache-2.0 */
/* A sink whose plugin stores its offsets itself, with its data (stores_offsets). Thread: the
 * task's.
 *
 *   partitions came ─open─► it says what is stored ─► reading goes on there ─put─► stored moves on
 *         ▲                                                                   │
 *         └──────── asked anew, for all partitions ◄── MR_ERR_STALE ──────────┘
 *
 * Asked anew also when open gave MR_ERR_RETRY, or Kafka did not say what it has; until the plugin
 * has said, nothing is delivered. What it has stored is the truth; the group's offset only follows,
 * and counts where nothing is stored.
 *
 * Invariants: each put is told what is stored (ledger) and what then will be, so the plugin can
 * make the one the condition of the other: of two tasks that believe to own a partition the one
 * that was overtaken changes nothing. Dead letters of records in front of what a put stores are
 * delivered before it. */
#include "base/clock.h"
#include "host/task/sink/sink_task_private.h"
#include "model/conn_extras.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

#define OUT_OF_RANGE CONN_EXTRAS_OUT_OF_RANGE
#define ASK_AGAIN_MS 1000
#define BOUNDS_MS 2000
#define FOLLOW_MS 1000 /* behind the plugin's offsets, the group's */

/* --- settings --------------------------------------------------------------------------------- */

static bool stores(const struct task *task)
{
    const char *key = task->plugin->sink.stores_offsets;

    return key != NULL && (key[0] == '\0' || mr_config_bool(&task->inst.pub, key));
}

int sink_places_init(struct sink_task *s, struct mr_error *err)
{
    const char *said = props_get(&s->task->connector_config, OUT_OF_RANGE);

    s->places.ask_ms = INT64_MAX;
    s->places.stores = stores(s->task);
    s->places.out_of_range = said == NULL ? "fail" : said;
    if (said != NULL && strcmp(said, "fail") != 0 && strcmp(said, "earliest") != 0 &&
        strcmp(said, "latest") != 0)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.40s for configuration " OUT_OF_RANGE
                       ": it is fail, earliest or latest",
                       said);
    return MR_OK;
}

void sink_places_deinit(struct sink_task *s)
{
    free(s->places.items);
}

const char *sink_places_out_of_range(const struct sink_task *s)
{
    if (!s->places.stores)
        return NULL;
    return strcmp(s->places.out_of_range, "fail") != 0
               ? s->places.out_of_range
               : ": records are gone, by retention, or with a topic that was made anew. Set the "
                 "connector's offsets by REST while it is STOPPED, or set " OUT_OF_RANGE
                 " to earliest or latest";
}

/* --- where it stands -------------------------------------------------------------------------- */

static int no_memory(size_t count, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_NOMEM, "out of memory for the offsets of %zu partitions", count);
}

/* What is asked about some partitions: of the plugin, what it has stored; of Kafka, what there
 * is. */
struct asked {
    const struct consumer_partition *parts;
    size_t count;
    struct mr_partition *said;
    int64_t *begins, *ends;
};

static int asked_init(struct asked *a, const struct consumer_partition *parts, size_t count,
                      struct mr_error *err)
{
    *a = (struct asked){.parts = parts,
                        .count = count,
                        .said = calloc(count + 1, sizeof(*a->said)),
                        .begins = calloc(count + 1, sizeof(*a->begins)),
                        .ends = calloc(count + 1, sizeof(*a->ends))};
    if (a->said == NULL || a->begins == NULL || a->ends == NULL)
        return no_memory(count, err);
    for (size_t i = 0; i < count; i++)
        a->said[i] = (struct mr_partition){.topic = parts[i].topic,
                                           .partition = parts[i].partition,
                                           .offset = parts[i].offset,
                                           .stored = -1};
    return MR_OK;
}

static void asked_deinit(struct asked *a)
{
    free(a->said);
    free(a->begins);
    free(a->ends);
}

static struct mr_partition_list list_of(struct mr_partition *items, size_t count)
{
    return (struct mr_partition_list){.host = &host_api_table,
                                      .parts = (char *)items,
                                      .part_size = sizeof(*items),
                                      .count = count};
}

/* offer: lend the consumer meanwhile; not inside its own callbacks. */
static int ask_plugin(struct sink_task *s, const struct asked *a, bool offer, struct mr_error *err)
{
    struct mr_partition_list list = list_of(a->said, a->count);
    bool lent;
    int rc;

    if (offer)
        sink_consumer_offer(s);
    task_enter(s->task, "open", false);
    rc = s->task->plugin->sink.open(s->task->inst.self, &list, err);
    rc = task_leave(s->task, "open", rc, err);
    lent = offer && sink_consumer_end_offer(s);
    if (lent)
        sink_consumer_take_back(s);
    return rc;
}

static int out_of_range(const struct sink_task *s, const struct mr_partition *part, int64_t begin,
                        int64_t end, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL,
                   "%s has stored offset %lld of partition %s-%d, of which the topic has offsets "
                   "from %lld up to %lld%s",
                   s->task->plugin->name, (long long)part->stored, part->topic, part->partition,
                   (long long)begin, (long long)end, sink_places_out_of_range(s));
}

/* Where reading goes on, from what the plugin has stored and the log has. */
static int judge(const struct sink_task *s, const struct mr_partition *part, int64_t begin,
                 int64_t end, int64_t *next, struct mr_error *err)
{
    const char *policy = s->places.out_of_range;

    *next = part->stored;
    if (part->stored >= begin && part->stored <= end)
        return MR_OK;
    if (strcmp(policy, "fail") == 0)
        return out_of_range(s, part, begin, end, err);
    *next = strcmp(policy, "earliest") == 0 ? begin : end;
    log_warn("%s has stored offset %lld of partition %s-%d, which the topic does not have: going "
             "on at %lld by " OUT_OF_RANGE,
             s->task->plugin->name, (long long)part->stored, part->topic, part->partition,
             (long long)*next);
    return MR_OK;
}

/* What this very task had stored is gone: whoever lost that has lost the data behind it. */
static int judge_lost(const struct sink_task *s, const struct mr_partition *part, int64_t before,
                      int64_t begin, int64_t end, int64_t *next, struct mr_error *err)
{
    const char *policy = s->places.out_of_range;

    if (strcmp(policy, "fail") == 0)
        return mr_fail(err, MR_ERR_FATAL,
                       "%s has no offset any more of partition %s-%d, where it had stored %lld: "
                       "what it has written may be lost. Put both back and restart the task; or "
                       "stop the connector, say by PATCH of its offsets where to go on, and resume",
                       s->task->plugin->name, part->topic, part->partition, (long long)before);
    *next = strcmp(policy, "earliest") == 0 ? begin : end;
    log_warn("%s has no offset any more of partition %s-%d, where it had stored %lld: going on at "
             "%lld by " OUT_OF_RANGE,
             s->task->plugin->name, part->topic, part->partition, (long long)before,
             (long long)*next);
    return MR_OK;
}

/* Where nothing new was said the place is kept: what was left out behind it is not read again. */
static bool is_known(const struct sink_task *s, const struct mr_partition *part)
{
    return part->stored == ledger_stored(s->ledger, part->topic, part->partition) &&
           part->stored != LEDGER_UNKNOWN;
}

/* What begins and ends in Kafka. A partition that no broker leads must not hold up the rest for
 * long: then the consumer finds out by itself what is out of range. */
static int find_bounds(struct sink_task *s, struct asked *a, struct mr_error *err)
{
    if (consumer_bounds(s->consumer, a->parts, a->count, a->begins, a->ends, BOUNDS_MS, err) ==
        MR_OK) {
        s->places.blind = false;
        return MR_OK;
    }
    if (!s->places.blind) {
        s->places.blind = true;
        return err->code;
    }
    err_clear(err);
    for (size_t i = 0; i < a->count; i++) {
        a->begins[i] = 0;
        a->ends[i] = INT64_MAX;
    }
    return MR_OK;
}

static int place(struct sink_task *s, struct asked *a, struct mr_error *err)
{
    int rc = find_bounds(s, a, err);

    for (size_t i = 0; i < a->count && rc == MR_OK; i++) {
        const struct mr_partition *said = &a->said[i];
        const struct consumer_partition *part = &a->parts[i];
        int64_t next = part->offset, before;

        if (said->topic != part->topic || said->partition != part->partition || said->stored < -1)
            return mr_fail(err, MR_ERR_FATAL,
                           "open of %s said something of a partition that it was not asked for, or "
                           "an offset below -1",
                           s->task->plugin->name);
        if (is_known(s, said))
            continue;
        before = ledger_stored(s->ledger, part->topic, part->partition);
        if (said->stored >= 0)
            rc = judge(s, said, a->begins[i], a->ends[i], &next, err);
        else if (before >= 0)
            rc = judge_lost(s, said, before, a->begins[i], a->ends[i], &next, err);
        if (rc == MR_OK)
            ledger_place(s->ledger, part, next, said->stored);
    }
    return rc;
}

static void ask_later(struct sink_task *s, const struct mr_error *err)
{
    int64_t wait_ms = err->retry_after_ms > 0 ? err->retry_after_ms : ASK_AGAIN_MS;

    if (!s->places.told)
        log_warn("where %s stands is asked again in %lld ms: %s", s->task->plugin->name,
                 (long long)wait_ms, err->text);
    s->places.told = true;
    s->places.ask_ms = clock_in_ms(wait_ms);
}

static void follow_soon(struct sink_task *s)
{
    int64_t due_ms = clock_ms() + FOLLOW_MS;

    if (s->commit_due_ms > due_ms)
        s->commit_due_ms = due_ms;
}

static void open_at(struct sink_task *s, const struct consumer_partition *parts, size_t count,
                    bool offer)
{
    struct mr_error err = {0};
    bool told = false;
    struct asked a;
    int rc = asked_init(&a, parts, count, &err);

    if (rc == MR_OK) {
        rc = ask_plugin(s, &a, offer, &err);
        told = rc >= 0;
    }
    if (told)
        rc = place(s, &a, &err);
    asked_deinit(&a);
    if (rc == MR_ERR_RETRY) {
        ask_later(s, &err);
    } else if (rc < 0) {
        sink_task_fail(s, &err, told ? NULL : s->task->where);
    } else {
        s->sent_count = 0; /* an answer to a commit that is out would hide what is to follow */
        s->places.told = false;
        follow_soon(s);
    }
    if (!sink_control_apply(s))
        sink_control_seek_all(s);
}

void sink_places_open(struct sink_task *s, const struct consumer_partition *parts, size_t count)
{
    open_at(s, parts, count, false);
}

void sink_places_ask(struct sink_task *s)
{
    size_t count;

    s->places.ask_ms = INT64_MAX;
    if (ledger_count(s->ledger) == 0 || !sink_commit_room(s))
        return;
    if (s->held != NULL) { /* of another place, perhaps */
        ledger_reject(s->ledger);
        sink_task_batch_done(s, s->held);
        s->read_again = true;
    }
    count = ledger_positions(s->ledger, s->parts);
    open_at(s, s->parts, count, true);
}

bool sink_places_unsaid(const struct sink_task *s)
{
    return s->places.ask_ms != INT64_MAX;
}

void sink_places_stale(struct sink_task *s, const struct mr_error *err)
{
    log_warn("%s is asked where it stands: %s", s->task->plugin->name, err->text);
    s->places.ask_ms = clock_ms() + (s->places.stale ? ASK_AGAIN_MS : 0);
    s->places.stale = true;
}

/* --- what a put stores ------------------------------------------------------------------------ */

static int make_room(struct sink_places *p, size_t count, struct mr_error *err)
{
    if (count <= p->cap)
        return MR_OK;
    free(p->items);
    p->items = calloc(count, sizeof(*p->items));
    p->cap = p->items != NULL ? count : 0;
    return p->cap > 0 ? MR_OK : no_memory(count, err);
}

/* Behind the last of these records that is of this partition; -1: none is. */
static int64_t behind(const struct batch *batch, size_t from, size_t count,
                      const struct mr_partition *part)
{
    for (size_t i = from + count; i > from; i--) {
        const struct record *rec = batch_at(batch, i - 1);

        if (rec->from_partition == part->partition && strcmp(rec->from_topic, part->topic) == 0)
            return rec->pub.offset + 1;
    }
    return -1;
}

/* A part that others follow: no further than its own records. */
static size_t cut(struct mr_partition *items, size_t all, const struct batch *batch, size_t from,
                  size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < all; i++) {
        int64_t offset = behind(batch, from, count, &items[i]);

        if (offset < 0)
            continue;
        items[kept] = items[i];
        items[kept++].offset = offset;
    }
    return kept;
}

int sink_places_give(struct sink_task *s, struct batch *batch, size_t from, size_t count,
                     struct mr_error *err)
{
    size_t all;
    int rc = pipeline_settle(s->pipeline, err);

    s->cut = rc == MR_ERR_CLOSED;
    if (rc == MR_OK)
        rc = make_room(&s->places, ledger_count(s->ledger), err);
    if (rc != MR_OK)
        return rc;
    all = ledger_unstored(s->ledger, s->places.items);
    if (from + count < batch->pub.count)
        all = cut(s->places.items, all, batch, from, count);
    s->places.list = list_of(s->places.items, all);
    batch->pub.offsets = &s->places.list;
    return MR_OK;
}

void sink_places_took(struct sink_task *s)
{
    ledger_store(s->ledger, s->places.items, s->places.list.count);
    s->places.stale = false;
    follow_soon(s);
}

void sink_places_follow(struct sink_task *s)
{
    struct mr_error err = {0};

    if (s->held != NULL || sink_places_unsaid(s) || s->task->failed || task_paused(s->task))
        return;
    if (make_room(&s->places, ledger_count(s->ledger), &err) != MR_OK)
        sink_task_fail(s, &err, NULL);
    else if (ledger_unstored(s->ledger, s->places.items) > 0)
        sink_task_put_nothing(s);
}
