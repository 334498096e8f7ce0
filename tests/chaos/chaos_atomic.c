/* SPDX-License-Identifier: Apache-2.0 */
/* The raw log's oracle (O4): a source's records and their offset stand in one transaction. Read
 * from the brokers' files, transaction by transaction of each producer: where the k-th commit in
 * the topic has brought it to number n, the k-th commit in the offsets topic must say n. A late
 * EndTxn that ends another transaction, an offset that is committed apart from its records, an
 * abort that was forgotten: each breaks that, whether or not a reader is ever shown a loss.
 *
 * And the fence: nothing of an older epoch of a producer stands behind what a newer one wrote. */
#include "chaos/chaos_flows.h"
#include "chaos/chaos_segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCERS_MAX 256

struct producer {
    int64_t id;
    int16_t epoch;
    int64_t pending; /* records of its open transaction; of offsets: the last of these */
    long long *commits;
    int count, room;
};

struct log {
    const char *topic;
    struct producer producer[PRODUCERS_MAX];
    int producers;
    int64_t committed; /* records */
    bool of_offsets;
    const long long *next; /* by offset, -1: not of this task */
    int64_t offsets;
    int aborts;
    char wrong[200];
};

static struct producer *find(struct log *log, int64_t id)
{
    for (int i = 0; i < log->producers; i++)
        if (log->producer[i].id == id)
            return &log->producer[i];
    assert_true(log->producers < PRODUCERS_MAX);
    log->producer[log->producers] =
        (struct producer){.id = id, .pending = log->of_offsets ? -1 : 0};
    return &log->producer[log->producers++];
}

static void add_commit(struct producer *p, long long next)
{
    if (p->count == p->room) {
        p->room = p->room == 0 ? 1024 : p->room * 2;
        p->commits = realloc(p->commits, (size_t)p->room * sizeof(*p->commits));
        assert_non_null(p->commits);
    }
    p->commits[p->count++] = next;
}

static void look_at_epoch(struct log *log, struct producer *p, const struct chaos_batch *batch)
{
    if (batch->epoch < p->epoch && log->wrong[0] == '\0')
        snprintf(log->wrong, sizeof(log->wrong),
                 "offset %lld is of producer %lld's epoch %d, behind its epoch %d",
                 (long long)batch->first, (long long)p->id, batch->epoch, p->epoch);
    p->epoch = batch->epoch;
}

static void take_data(struct log *log, struct producer *p, const struct chaos_batch *batch)
{
    if (!log->of_offsets) {
        p->pending += batch->last - batch->first + 1;
        return;
    }
    for (int64_t at = batch->first; at <= batch->last && at < log->offsets; at++)
        if (log->next[at] >= 0)
            p->pending = log->next[at];
}

static void end(struct log *log, struct producer *p, bool commits)
{
    int64_t none = log->of_offsets ? -1 : 0;

    log->aborts += !commits;
    if (commits && p->pending != none) {
        log->committed = log->of_offsets ? log->committed : log->committed + p->pending;
        add_commit(p, log->of_offsets ? p->pending : log->committed);
    }
    p->pending = none;
}

static void take_batch(void *arg, const struct chaos_batch *batch)
{
    struct log *log = arg;
    struct producer *p;

    if (batch->kind == CHAOS_PLAIN) {
        snprintf(log->wrong, sizeof(log->wrong), "offset %lld is in no transaction",
                 (long long)batch->first);
        return;
    }
    p = find(log, batch->producer);
    look_at_epoch(log, p, batch);
    if (batch->kind == CHAOS_IN_TRANSACTION)
        take_data(log, p, batch);
    else
        end(log, p, batch->kind == CHAOS_COMMIT);
}

/* --- offsets of one task ---------------------------------------------------------------------- */

struct offsets {
    const char *key;
    int partition; /* where this task's are, -1: not seen */
    long long *next;
    int64_t count;
};

static void take_offset(void *arg, const struct topic_record *rec)
{
    struct offsets *o = arg;
    long long next;

    if (rec->key == NULL || rec->value == NULL || strcmp(rec->key, o->key) != 0)
        return;
    assert_int_equal(sscanf(rec->value, "{\"next\":%lld}", &next), 1);
    o->partition = rec->partition;
    if (rec->offset >= o->count) {
        int64_t count = (rec->offset + 1) * 2;

        o->next = realloc(o->next, (size_t)count * sizeof(*o->next));
        assert_non_null(o->next);
        for (int64_t i = o->count; i < count; i++)
            o->next[i] = -1;
        o->count = count;
    }
    o->next[rec->offset] = next;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static bool compare(struct log *data, struct log *offsets)
{
    int transactions = 0;

    for (int i = 0; i < data->producers; i++) {
        const struct producer *made = &data->producer[i], *stored = find(offsets, made->id);

        for (int k = 0; k < made->count || k < stored->count; k++)
            if (k >= made->count || k >= stored->count || made->commits[k] != stored->commits[k]) {
                printf("             %s: transaction %d of producer %lld brings it to %lld, and "
                       "the offset stored with that is %lld\n",
                       data->topic, k, (long long)made->id, k < made->count ? made->commits[k] : -1,
                       k < stored->count ? stored->commits[k] : -1);
                return false;
            }
        transactions += made->count;
    }
    printf("             %s: %d transactions, each with its offset; %d aborted\n", data->topic,
           transactions, data->aborts);
    return true;
}

static bool right(const struct log *log)
{
    if (log->wrong[0] != '\0')
        printf("             %s: %s\n", log->topic, log->wrong);
    return log->wrong[0] == '\0';
}

static void forget(struct log *log)
{
    for (int i = 0; i < log->producers; i++)
        free(log->producer[i].commits);
}

static const struct kafka_run *brokers_of(const struct chaos_cluster *c)
{
    return c->kafka != NULL ? c->kafka : kafka_run_shared();
}

static bool judge_task(const struct chaos_source *s, int task)
{
    const struct kafka_run *kafka = brokers_of(s->cluster);
    struct offsets o = {.key =
                            scratch_text("[\"%s\",{\"name\":\"%s-%d\"}]", s->name, s->name, task),
                        .partition = -1};
    struct log data = {.topic = scratch_text("%s-%d", s->topic, task)};
    struct log stored = {.topic = scratch_text("%s-offsets", s->cluster->group),
                         .of_offsets = true};
    bool all_right;

    topic_walk(s->cluster->servers, stored.topic, take_offset, &o);
    assert_true(o.partition >= 0);
    stored.next = o.next;
    stored.offsets = o.count;
    chaos_segments_walk(kafka, data.topic, 0, take_batch, &data);
    chaos_segments_walk(kafka, stored.topic, o.partition, take_batch, &stored);
    all_right = compare(&data, &stored);
    all_right = right(&data) && right(&stored) && all_right;
    forget(&data);
    forget(&stored);
    free(o.next);
    return all_right;
}

void chaos_atomic_judge(const struct chaos_flows *flows)
{
    bool all_right = true;

    if (brokers_of(flows->source->cluster) == NULL) {
        printf("             the broker's files are not at hand\n");
        return;
    }
    for (int i = 0; i < flows->source->tasks; i++)
        all_right = judge_task(flows->source, i) && all_right;
    fflush(stdout);
    if (!all_right)
        fail_msg("torn transactions: see above");
}
