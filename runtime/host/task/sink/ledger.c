/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a sink task.
 *
 * sink_task stages each message before it is handed to put, and accepts the stage when put returned
 * MR_OK; what is committed is read from here and never from librdkafka's stored positions, which
 * its batch call may move wrongly next to pause, seek and rebalance. Entries stand per topic in an
 * array by partition number: messages come in runs of one partition, so an entry is looked up once
 * a run. Thread: the task's. */
#include "host/task/sink/ledger.h"

#include <stdlib.h>
#include <string.h>

#define PARTITION_MAX 1000000 /* numbers of one topic */

struct entry {
    bool assigned;
    int64_t next;
    int64_t start; /* where reading began, while next is unknown: the first message that was seen */
    int64_t staged; /* LEDGER_UNKNOWN: nothing */
    int64_t committed;
    bool sought;    /* to next, which is to be committed wherever it lies */
    int64_t stored; /* by the plugin; LEDGER_UNKNOWN: nothing */
};

struct topic {
    char *name;
    /* The consumer's pointer for this name, once it is known. It ends with a revocation: the next
     * consumer may have another name there. */
    const char *seen;
    struct entry *entries;
    size_t entry_count;
};

struct ledger {
    struct topic *topics;
    size_t topic_count;
    size_t topic_cap;
    size_t assigned;
};

struct ledger *ledger_new(void)
{
    struct ledger *l = calloc(1, sizeof(*l));

    mr_assert(l != NULL);
    return l;
}

void ledger_free(struct ledger **l)
{
    if (*l == NULL)
        return;
    for (size_t i = 0; i < (*l)->topic_count; i++) {
        free((*l)->topics[i].name);
        free((*l)->topics[i].entries);
    }
    free((*l)->topics);
    free(*l);
    *l = NULL;
}

static struct topic *topic_find(const struct ledger *l, const char *name)
{
    for (size_t i = 0; i < l->topic_count; i++)
        if (l->topics[i].seen == name)
            return &l->topics[i];
    for (size_t i = 0; i < l->topic_count; i++)
        if (strcmp(l->topics[i].name, name) == 0)
            return &l->topics[i];
    return NULL;
}

static struct topic *topic_add(struct ledger *l, const char *name)
{
    struct topic *topic;

    if (l->topic_count == l->topic_cap) {
        size_t cap = l->topic_cap == 0 ? 8 : l->topic_cap * 2;
        struct topic *topics = realloc(l->topics, cap * sizeof(*topics));

        if (topics == NULL)
            return NULL;
        l->topics = topics;
        l->topic_cap = cap;
    }
    topic = &l->topics[l->topic_count];
    memset(topic, 0, sizeof(*topic));
    topic->name = strdup(name);
    if (topic->name == NULL)
        return NULL;
    l->topic_count++;
    return topic;
}

static struct entry *entry_make(struct topic *topic, int32_t partition)
{
    size_t want = (size_t)partition + 1;
    struct entry *entries;

    if (want <= topic->entry_count)
        return &topic->entries[partition];
    entries = realloc(topic->entries, want * sizeof(*entries));
    if (entries == NULL)
        return NULL;
    memset(entries + topic->entry_count, 0, (want - topic->entry_count) * sizeof(*entries));
    topic->entries = entries;
    topic->entry_count = want;
    return &entries[partition];
}

/* The entry of an assigned partition, or NULL. */
static struct entry *entry_find(const struct ledger *l, const char *name, int32_t partition)
{
    struct topic *topic = topic_find(l, name);

    if (topic == NULL || partition < 0 || (size_t)partition >= topic->entry_count)
        return NULL;
    return topic->entries[partition].assigned ? &topic->entries[partition] : NULL;
}

static int assign_one(struct ledger *l, const struct consumer_partition *part, struct mr_error *err)
{
    struct topic *topic = topic_find(l, part->topic);
    struct entry *entry = NULL;

    if (part->partition < 0 || part->partition >= PARTITION_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "partition %d of topic %s is out of range",
                       part->partition, part->topic);
    if (topic == NULL)
        topic = topic_add(l, part->topic);
    if (topic != NULL)
        entry = entry_make(topic, part->partition);
    if (entry == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for assigned partitions");
    l->assigned += entry->assigned ? 0 : 1;
    *entry = (struct entry){.assigned = true,
                            .next = part->offset,
                            .start = LEDGER_UNKNOWN,
                            .staged = LEDGER_UNKNOWN,
                            .committed = part->offset,
                            .stored = LEDGER_UNKNOWN};
    return MR_OK;
}

int ledger_assign(struct ledger *l, const struct consumer_partition *parts, size_t count,
                  struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; i < count && rc == MR_OK; i++)
        rc = assign_one(l, &parts[i], err);
    return rc;
}

void ledger_revoke(struct ledger *l, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = entry_find(l, parts[i].topic, parts[i].partition);

        if (entry != NULL) {
            entry->assigned = false;
            l->assigned--;
            topic_find(l, parts[i].topic)->seen = NULL;
        }
    }
}

bool ledger_has(const struct ledger *l, const char *topic, int32_t partition)
{
    return entry_find(l, topic, partition) != NULL;
}

const char *ledger_topic(const struct ledger *l, const char *topic)
{
    const struct topic *found = topic_find(l, topic);

    return found == NULL ? NULL : found->name;
}

int64_t ledger_position(const struct ledger *l, const char *topic, int32_t partition)
{
    const struct entry *entry = entry_find(l, topic, partition);

    return entry->next != LEDGER_UNKNOWN ? entry->next : entry->start;
}

size_t ledger_count(const struct ledger *l)
{
    return l->assigned;
}

/* The consumer's topic pointers are stable, so the second lookup of a name compares pointers
 * only. */
static struct entry *entry_of_messages(struct ledger *l, const char *name, int32_t partition)
{
    struct entry *entry = entry_find(l, name, partition);

    if (entry != NULL)
        topic_find(l, name)->seen = name;
    return entry;
}

static bool stage_one(struct entry *entry, int64_t offset)
{
    int64_t from = entry->staged != LEDGER_UNKNOWN ? entry->staged : entry->next;

    if (offset < from)
        return false;
    if (entry->next == LEDGER_UNKNOWN && entry->start == LEDGER_UNKNOWN)
        entry->start = offset;
    entry->staged = offset + 1;
    return true;
}

size_t ledger_stage(struct ledger *l, struct consumer_msg *msgs, size_t count)
{
    const char *topic = NULL;
    struct entry *entry = NULL;
    int32_t partition = 0;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (msgs[i].topic != topic || msgs[i].partition != partition) {
            topic = msgs[i].topic;
            partition = msgs[i].partition;
            entry = entry_of_messages(l, topic, partition);
        }
        if (entry == NULL || !stage_one(entry, msgs[i].offset))
            continue;
        if (kept != i)
            msgs[kept] = msgs[i];
        kept++;
    }
    return kept;
}

void ledger_move(struct ledger *l, const char *topic, int32_t partition, int64_t next)
{
    struct entry *entry = entry_find(l, topic, partition);

    if (entry == NULL)
        return;
    entry->next = next;
    entry->committed = next;
    entry->sought = false;
    entry->staged = LEDGER_UNKNOWN;
}

void ledger_seek(struct ledger *l, const char *topic, int32_t partition, int64_t next)
{
    struct entry *entry = entry_find(l, topic, partition);

    if (entry == NULL)
        return;
    if (entry->next == entry->committed) {
        ledger_move(l, topic, partition, next);
        return;
    }
    entry->next = next;
    entry->sought = next != entry->committed;
    entry->staged = LEDGER_UNKNOWN;
}

void ledger_place(struct ledger *l, const struct consumer_partition *part, int64_t next,
                  int64_t stored)
{
    struct entry *entry = entry_find(l, part->topic, part->partition);

    if (entry == NULL)
        return;
    entry->stored = stored;
    entry->staged = LEDGER_UNKNOWN;
    if (entry->next == next)
        return;
    entry->next = next;
    if (entry->committed != next)
        entry->committed = LEDGER_UNKNOWN;
}

int64_t ledger_stored(const struct ledger *l, const char *topic, int32_t partition)
{
    return entry_find(l, topic, partition)->stored;
}

void ledger_store(struct ledger *l, const struct mr_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = entry_find(l, parts[i].topic, parts[i].partition);

        if (entry == NULL)
            continue;
        entry->stored = parts[i].offset;
        if (entry->next < entry->stored)
            entry->next = entry->stored;
    }
}

typedef void (*entry_fn)(void *arg, const struct topic *topic, int32_t partition,
                         struct entry *entry);

static void each(const struct ledger *l, entry_fn fn, void *arg)
{
    for (size_t t = 0; t < l->topic_count; t++)
        for (size_t p = 0; p < l->topics[t].entry_count; p++)
            if (l->topics[t].entries[p].assigned)
                fn(arg, &l->topics[t], (int32_t)p, &l->topics[t].entries[p]);
}

static void accept_one(void *arg, const struct topic *topic, int32_t partition, struct entry *entry)
{
    (void)arg, (void)topic, (void)partition;
    if (entry->staged != LEDGER_UNKNOWN)
        entry->next = entry->staged;
    entry->staged = LEDGER_UNKNOWN;
}

void ledger_accept(struct ledger *l)
{
    each(l, accept_one, NULL);
}

static void reject_one(void *arg, const struct topic *topic, int32_t partition, struct entry *entry)
{
    (void)arg, (void)topic, (void)partition;
    entry->staged = LEDGER_UNKNOWN;
}

void ledger_reject(struct ledger *l)
{
    each(l, reject_one, NULL);
}

static void rewind_one(void *arg, const struct topic *topic, int32_t partition, struct entry *entry)
{
    (void)arg, (void)topic, (void)partition;
    entry->next = entry->committed;
    entry->sought = false;
    entry->staged = LEDGER_UNKNOWN;
}

void ledger_rewind(struct ledger *l)
{
    each(l, rewind_one, NULL);
}

struct listing {
    struct consumer_partition *out;
    size_t count;
};

static void list_one(void *arg, const struct topic *topic, int32_t partition, struct entry *entry)
{
    struct listing *list = arg;

    list->out[list->count++] = (struct consumer_partition){
        .topic = topic->name,
        .partition = partition,
        .offset = entry->next != LEDGER_UNKNOWN ? entry->next : entry->start};
}

size_t ledger_positions(const struct ledger *l, struct consumer_partition *out)
{
    struct listing list = {out, 0};

    each(l, list_one, &list);
    return list.count;
}

struct store_listing {
    struct mr_partition *out;
    size_t count;
};

static void list_unstored(void *arg, const struct topic *topic, int32_t partition,
                          struct entry *entry)
{
    struct store_listing *list = arg;
    int64_t offset = entry->staged != LEDGER_UNKNOWN ? entry->staged : entry->next;

    if (offset != LEDGER_UNKNOWN && offset != entry->stored)
        list->out[list->count++] = (struct mr_partition){.topic = topic->name,
                                                         .partition = partition,
                                                         .offset = offset,
                                                         .stored = entry->stored};
}

size_t ledger_unstored(const struct ledger *l, struct mr_partition *out)
{
    struct store_listing list = {out, 0};

    each(l, list_unstored, &list);
    return list.count;
}

static void list_uncommitted(void *arg, const struct topic *topic, int32_t partition,
                             struct entry *entry)
{
    if (entry->next != LEDGER_UNKNOWN && (entry->next > entry->committed || entry->sought))
        list_one(arg, topic, partition, entry);
}

size_t ledger_uncommitted(const struct ledger *l, const struct consumer_partition *only,
                          size_t only_count, struct consumer_partition *out)
{
    struct listing list = {out, 0};

    if (only == NULL) {
        each(l, list_uncommitted, &list);
        return list.count;
    }
    for (size_t i = 0; i < only_count; i++) {
        struct topic *topic = topic_find(l, only[i].topic);
        struct entry *entry = entry_find(l, only[i].topic, only[i].partition);

        if (entry != NULL)
            list_uncommitted(&list, topic, only[i].partition, entry);
    }
    return list.count;
}

void ledger_committed(struct ledger *l, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = entry_find(l, parts[i].topic, parts[i].partition);

        if (entry == NULL || (parts[i].offset <= entry->committed && !entry->sought))
            continue;
        entry->committed = parts[i].offset;
        entry->sought = false;
    }
}
