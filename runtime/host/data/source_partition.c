/* SPDX-License-Identifier: Apache-2.0 */
/* Interning of source partitions and offset keys: pairs of text that come with every record of a
 * source.
 *
 * Sources name their partition in each record, on any task thread. So a pair that is known must be
 * found without a lock and without an allocation: an open-addressed table of pointers to immortal
 * entries, published by one atomic pointer. Writers hold the mutex, fill a free slot or build a
 * table of twice the size; old tables stay, since a reader may be inside one (all of them together
 * are smaller than the newest).
 *
 * This is one of the few mutable globals of the runtime: what it hands out must be the same pointer
 * for every task and live until the process ends, so it has no owner to be freed by. */
#include "host/data/source_partition.h"

#include "base/utf8.h"

#include <millrace/hash.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

struct table {
    size_t mask; /* slots - 1 */
    struct table *older;
    _Atomic(const struct mr_source_partition *) slots[];
};

struct intern {
    _Atomic(struct table *) table;
    pthread_mutex_t lock; /* for writers */
    size_t count;
};

static struct intern partitions = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct intern offset_keys = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_pair(const char *key, const char *value)
{
    uint64_t hash = mr_hash(mr_hash_seed(&partitions), key, strlen(key));

    return value == NULL ? hash : mr_hash(hash, value, strlen(value));
}

static bool pair_is(const struct mr_source_partition *part, const char *key, const char *value)
{
    if (strcmp(part->key, key) != 0)
        return false;
    if (part->value == NULL || value == NULL)
        return part->value == value;
    return strcmp(part->value, value) == 0;
}

/* The entry, or NULL and the free slot where it belongs. */
static const struct mr_source_partition *table_find(struct table *table, const char *key,
                                                    const char *value, size_t *slot)
{
    size_t i = (size_t)hash_pair(key, value) & table->mask;

    for (;; i = (i + 1) & table->mask) {
        const struct mr_source_partition *part =
            atomic_load_explicit(&table->slots[i], memory_order_acquire);

        if (part == NULL || pair_is(part, key, value)) {
            *slot = i;
            return part;
        }
    }
}

static struct table *table_grow(struct intern *set)
{
    struct table *old = atomic_load_explicit(&set->table, memory_order_relaxed);
    size_t slots = old == NULL ? FIRST_SLOTS : (old->mask + 1) * 2;
    struct table *table = calloc(1, sizeof(*table) + slots * sizeof(table->slots[0]));

    if (table == NULL)
        return NULL;
    table->mask = slots - 1;
    table->older = old;
    for (size_t i = 0; old != NULL && i <= old->mask; i++) {
        const struct mr_source_partition *part =
            atomic_load_explicit(&old->slots[i], memory_order_relaxed);
        size_t slot;

        if (part == NULL)
            continue;
        table_find(table, part->key, part->value, &slot);
        atomic_store_explicit(&table->slots[slot], part, memory_order_relaxed);
    }
    atomic_store_explicit(&set->table, table, memory_order_release);
    return table;
}

static struct mr_source_partition *pair_new(const char *key, const char *value, size_t index)
{
    size_t key_size = strlen(key) + 1;
    size_t value_size = value == NULL ? 0 : strlen(value) + 1;
    struct mr_source_partition *part;
    char *text;

    if (key_size + value_size > SOURCE_PARTITION_MAX_TEXT)
        return NULL;
    part = malloc(sizeof(*part) + key_size + value_size);
    if (part == NULL)
        return NULL;
    text = (char *)(part + 1);
    part->key = memcpy(text, key, key_size);
    part->value = value == NULL ? NULL : memcpy(text + key_size, value, value_size);
    part->index = index;
    part->storable =
        utf8_valid(key, key_size - 1) && (value == NULL || utf8_valid(value, value_size - 1));
    return part;
}

/* With the lock held; another thread may have been first. */
static const struct mr_source_partition *intern_add(struct intern *set, const char *key,
                                                    const char *value)
{
    struct table *table = atomic_load_explicit(&set->table, memory_order_relaxed);
    const struct mr_source_partition *found;
    struct mr_source_partition *part;
    size_t slot;

    if (table == NULL || (set->count + 1) * 4 > (table->mask + 1) * 3) {
        table = table_grow(set);
        if (table == NULL)
            return NULL;
    }
    found = table_find(table, key, value, &slot);
    if (found != NULL)
        return found;
    if (set->count >= SOURCE_PARTITION_MAX)
        return NULL;
    part = pair_new(key, value, set->count);
    if (part == NULL)
        return NULL;
    set->count++;
    atomic_store_explicit(&table->slots[slot], part, memory_order_release);
    return part;
}

static const struct mr_source_partition *intern(struct intern *set, const char *key,
                                                const char *value)
{
    struct table *table = atomic_load_explicit(&set->table, memory_order_acquire);
    const struct mr_source_partition *part = NULL;
    size_t slot;

    if (key == NULL)
        return NULL;
    if (table != NULL)
        part = table_find(table, key, value, &slot);
    if (part != NULL)
        return part;
    pthread_mutex_lock(&set->lock);
    part = intern_add(set, key, value);
    pthread_mutex_unlock(&set->lock);
    return part;
}

const struct mr_source_partition *source_partition_intern(const char *key, const char *value)
{
    return intern(&partitions, key, value);
}

const char *source_partition_key(const char *key)
{
    const struct mr_source_partition *pair = intern(&offset_keys, key, NULL);

    return pair == NULL || !pair->storable ? NULL : pair->key;
}

static size_t show(const char *text, char *out, size_t size, size_t used)
{
    for (; *text != '\0' && used + sizeof("\\xff") <= size; text++) {
        if (*text >= ' ' && *text <= '~')
            out[used++] = *text;
        else
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", (unsigned char)*text);
    }
    return used;
}

const char *source_partition_show(const struct mr_source_partition *part, char *out, size_t size)
{
    const char *const pieces[] = {"{", part->key, ": ", part->value == NULL ? "null" : part->value,
                                  "}"};
    size_t used = 0;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        used = show(pieces[i], out, size, used);
    out[used] = '\0';
    return out;
}
