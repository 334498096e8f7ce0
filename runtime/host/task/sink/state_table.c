/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of bytes, chained, with an undo log.
 *
 *   set ─► entry, its old value to the log ─keep─► log emptied, the entry stays among the changes
 *                                          └─roll_back─► old values put back, newest first
 *   committed ─► changes emptied, entries without a value go
 *
 * A value that fits where the last one stood is written there: a counter allocates nothing. The log
 * has each entry once, as it was before the call; its room counts as the entries' does, and is given
 * back where a call needed much. What is forgotten keeps its entry, without a value, until that is
 * committed. Thread: the task's. */
#include "host/task/sink/state_table.h"

#include <millrace/hash.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64
#define FIRST_ROOM 64
#define KEPT_ROOM 4096 /* of each list, for the next call */

struct entry {
    struct entry *next;
    uint64_t hash;
    uint32_t key_len;
    uint32_t value_len;
    uint32_t value_cap;
    bool present;
    bool changed;
    bool noted; /* in the log */
    char *value;
    char key[];
};

/* An entry as it was; its value is in the log's bytes. */
struct undo {
    struct entry *entry;
    size_t at;
    uint32_t value_len;
    bool present;
    bool changed;
};

/* What a list has; cap is in bytes. */
struct room {
    void *p;
    size_t cap;
};

struct state_table {
    struct entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    size_t present;
    size_t *bytes;
    size_t most;
    size_t own_bytes; /* of *bytes */

    struct room changes; /* struct entry * */
    size_t change_count;
    struct room undo;
    size_t undo_count;
    struct room old; /* values of the log */
    size_t old_len;
};

struct state_table *state_table_new(size_t *bytes, size_t most)
{
    struct state_table *t = calloc(1, sizeof(*t));

    mr_assert(t != NULL);
    t->buckets = calloc(FIRST_BUCKETS, sizeof(struct entry *));
    mr_assert(t->buckets != NULL);
    t->bucket_count = FIRST_BUCKETS;
    t->bytes = bytes;
    t->most = most;
    return t;
}

static size_t size_of(const struct entry *entry)
{
    return sizeof(*entry) + entry->key_len + entry->value_cap;
}

static void charge(struct state_table *t, size_t bytes)
{
    *t->bytes += bytes;
    t->own_bytes += bytes;
}

static void release(struct state_table *t, size_t bytes)
{
    *t->bytes -= bytes;
    t->own_bytes -= bytes;
}

static void entry_free(struct entry *entry)
{
    free(entry->value);
    free(entry);
}

void state_table_free(struct state_table **tp)
{
    struct state_table *t = *tp;

    *tp = NULL;
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->bucket_count; i++)
        while (t->buckets[i] != NULL) {
            struct entry *entry = t->buckets[i];

            t->buckets[i] = entry->next;
            entry_free(entry);
        }
    release(t, t->own_bytes);
    free(t->buckets);
    free(t->changes.p);
    free(t->undo.p);
    free(t->old.p);
    free(t);
}

/* --- looking up ------------------------------------------------------------------------------- */

static struct entry *find(const struct state_table *t, struct state_span key, uint64_t hash)
{
    struct entry *entry = t->buckets[hash & (t->bucket_count - 1)];

    while (entry != NULL && (entry->hash != hash || entry->key_len != key.len ||
                             memcmp(entry->key, key.data, key.len) != 0))
        entry = entry->next;
    return entry;
}

struct state_span state_table_get(const struct state_table *t, struct state_span key)
{
    const struct entry *entry = find(t, key, mr_hash(mr_hash_seed(t), key.data, key.len));

    if (entry == NULL || !entry->present)
        return (struct state_span){NULL, 0};
    return (struct state_span){entry->value, entry->value_len};
}

/* Twice as many buckets; without memory it goes on with longer chains. */
static void spread(struct state_table *t)
{
    size_t count = t->bucket_count * 2;
    struct entry **buckets = calloc(count, sizeof(struct entry *));

    if (buckets == NULL)
        return;
    for (size_t i = 0; i < t->bucket_count; i++)
        while (t->buckets[i] != NULL) {
            struct entry *entry = t->buckets[i];
            struct entry **to = &buckets[entry->hash & (count - 1)];

            t->buckets[i] = entry->next;
            entry->next = *to;
            *to = entry;
        }
    free(t->buckets);
    t->buckets = buckets;
    t->bucket_count = count;
}

/* --- room ------------------------------------------------------------------------------------- */

static int no_memory(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_NOMEM, "out of memory for state");
}

static int check_room(const struct state_table *t, size_t bytes, struct mr_error *err)
{
    if (bytes <= t->most && *t->bytes <= t->most - bytes)
        return 0;
    return mr_fail(err, MR_ERR_FULL, "the state of this task would take more than %zu bytes",
                   t->most);
}

static struct entry *entry_add(struct state_table *t, struct state_span key, uint64_t hash,
                               struct mr_error *err)
{
    struct entry *entry;
    struct entry **at;

    if (check_room(t, sizeof(*entry) + key.len, err) != 0)
        return NULL;
    entry = calloc(1, sizeof(*entry) + key.len);
    if (entry == NULL) {
        no_memory(err);
        return NULL;
    }
    if (t->entries >= t->bucket_count)
        spread(t);
    entry->hash = hash;
    entry->key_len = (uint32_t)key.len;
    memcpy(entry->key, key.data, key.len);
    at = &t->buckets[hash & (t->bucket_count - 1)];
    entry->next = *at;
    *at = entry;
    t->entries++;
    charge(t, size_of(entry));
    return entry;
}

static int value_room(struct state_table *t, struct entry *entry, size_t len, struct mr_error *err)
{
    size_t more = len > entry->value_cap ? len - entry->value_cap : 0;
    char *value;

    if (more == 0)
        return 0;
    if (check_room(t, more, err) != 0)
        return err == NULL ? MR_ERR_FULL : err->code;
    value = realloc(entry->value, len);
    if (value == NULL)
        return no_memory(err);
    entry->value = value;
    entry->value_cap = (uint32_t)len;
    charge(t, more);
    return 0;
}

/* Room for `want` bytes, twice what there was where that may be. */
static int grow(struct state_table *t, struct room *room, size_t want, struct mr_error *err)
{
    size_t more = room->cap < FIRST_ROOM ? FIRST_ROOM : room->cap;
    void *p;

    if (want <= room->cap)
        return 0;
    while (more < want)
        more *= 2;
    if (check_room(t, more - room->cap, NULL) != 0)
        more = want;
    if (check_room(t, more - room->cap, err) != 0)
        return MR_ERR_FULL;
    p = realloc(room->p, more);
    if (p == NULL)
        return no_memory(err);
    charge(t, more - room->cap);
    *room = (struct room){p, more};
    return 0;
}

static void shrink(struct state_table *t, struct room *room)
{
    if (room->cap <= KEPT_ROOM)
        return;
    free(room->p);
    release(t, room->cap);
    *room = (struct room){NULL, 0};
}

static struct undo *undo_at(const struct state_table *t, size_t i)
{
    return (struct undo *)t->undo.p + i;
}

static struct entry **change_at(const struct state_table *t, size_t i)
{
    return (struct entry **)t->changes.p + i;
}

static void entry_remove(struct state_table *t, struct entry *entry)
{
    struct entry **at = &t->buckets[entry->hash & (t->bucket_count - 1)];

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    t->entries--;
    release(t, size_of(entry));
    entry_free(entry);
}

/* --- changes ---------------------------------------------------------------------------------- */

static void write_value(struct state_table *t, struct entry *entry, struct state_span value)
{
    if (value.len > 0)
        memcpy(entry->value, value.data, value.len);
    entry->value_len = (uint32_t)value.len;
    t->present += (value.data != NULL) - (size_t)entry->present;
    entry->present = value.data != NULL;
}

/* Before an entry's first change in a call: room for it in all lists, and what the entry was. */
static int note(struct state_table *t, struct entry *entry, struct mr_error *err)
{
    int rc = 0;

    if (entry->noted)
        return 0;
    if (!entry->changed)
        rc = grow(t, &t->changes, (t->change_count + 1) * sizeof(struct entry *), err);
    if (rc == 0)
        rc = grow(t, &t->undo, (t->undo_count + 1) * sizeof(struct undo), err);
    if (rc == 0)
        rc = grow(t, &t->old, t->old_len + entry->value_len + 1, err);
    if (rc != 0)
        return rc;
    *undo_at(t, t->undo_count++) = (struct undo){.entry = entry,
                                                 .at = t->old_len,
                                                 .value_len = entry->value_len,
                                                 .present = entry->present,
                                                 .changed = entry->changed};
    if (entry->value_len > 0)
        memcpy((char *)t->old.p + t->old_len, entry->value, entry->value_len);
    t->old_len += entry->value_len;
    entry->noted = true;
    return 0;
}

static void forget_log(struct state_table *t)
{
    t->undo_count = 0;
    t->old_len = 0;
    shrink(t, &t->undo);
    shrink(t, &t->old);
}

static int set(struct state_table *t, struct state_span key, struct state_span value, bool changes,
               struct mr_error *err)
{
    uint64_t hash = mr_hash(mr_hash_seed(t), key.data, key.len);
    struct entry *entry = find(t, key, hash);
    int rc;

    if (entry == NULL && value.data == NULL)
        return 0;
    if (entry == NULL)
        entry = entry_add(t, key, hash, err);
    if (entry == NULL)
        return err == NULL ? MR_ERR_FULL : err->code;
    rc = value_room(t, entry, value.len, err);
    if (rc == 0 && changes)
        rc = note(t, entry, err);
    if (rc != 0 && !entry->present && !entry->changed) /* made above */
        entry_remove(t, entry);
    if (rc != 0)
        return rc;
    write_value(t, entry, value);
    if (!changes && value.data == NULL) {
        entry_remove(t, entry);
    } else if (changes && !entry->changed) {
        entry->changed = true;
        *change_at(t, t->change_count++) = entry;
    }
    return 0;
}

int state_table_set(struct state_table *t, struct state_span key, struct state_span value,
                    struct mr_error *err)
{
    return set(t, key, value, true, err);
}

int state_table_load(struct state_table *t, struct state_span key, struct state_span value,
                     struct mr_error *err)
{
    return set(t, key, value, false, err);
}

void state_table_keep(struct state_table *t)
{
    for (size_t i = 0; i < t->undo_count; i++)
        undo_at(t, i)->entry->noted = false;
    forget_log(t);
}

/* What was not among the changes before the call stands behind all that was. */
void state_table_roll_back(struct state_table *t)
{
    while (t->undo_count > 0) {
        const struct undo *undo = undo_at(t, --t->undo_count);
        const char *value = (const char *)t->old.p + undo->at;
        struct state_span old = {undo->present ? value : NULL, undo->value_len};

        if (undo->entry->changed && !undo->changed)
            t->change_count--;
        undo->entry->changed = undo->changed;
        undo->entry->noted = false;
        write_value(t, undo->entry, old);
        if (!undo->present && !undo->changed) /* the call had made it */
            entry_remove(t, undo->entry);
    }
    forget_log(t);
}

size_t state_table_changes(const struct state_table *t)
{
    return t->change_count;
}

void state_table_change(const struct state_table *t, size_t i, struct state_span *key,
                        struct state_span *value)
{
    const struct entry *entry = *change_at(t, i);

    *key = (struct state_span){entry->key, entry->key_len};
    *value = entry->present ? (struct state_span){entry->value, entry->value_len}
                            : (struct state_span){NULL, 0};
}

void state_table_committed(struct state_table *t)
{
    for (size_t i = 0; i < t->change_count; i++) {
        struct entry *entry = *change_at(t, i);

        entry->changed = false;
        if (!entry->present)
            entry_remove(t, entry);
    }
    t->change_count = 0;
    shrink(t, &t->changes);
}

size_t state_table_count(const struct state_table *t)
{
    return t->present;
}
