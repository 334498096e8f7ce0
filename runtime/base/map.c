/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from text to pointer: an array of entries in insertion order, and a table of indices
 * into it with open addressing. Removed entries leave a hole that is closed when the table grows.
 * Keys come from configurations, so the hash is seeded per process against crafted collisions. One
 * thread. */
#include "base/map.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EMPTY UINT32_MAX

struct entry {
    char *key; /* NULL: removed */
    void *value;
    uint64_t hash;
};

struct map {
    struct entry *entries;
    size_t used; /* entries, holes included */
    size_t count;
    size_t cap;
    uint32_t *table;   /* index into entries, or EMPTY */
    size_t table_size; /* power of two, at least twice cap */
    uint64_t seed;
};

static void *must(void *p)
{
    mr_assert(p != NULL);
    return p;
}

static uint64_t hash_of(const struct map *m, const char *key)
{
    uint64_t h = m->seed ^ 0xcbf29ce484222325u;

    for (; *key != '\0'; key++)
        h = (h ^ (unsigned char)*key) * 0x100000001b3u;
    return h ^ (h >> 29);
}

struct map *map_new(void)
{
    struct map *m = must(calloc(1, sizeof(*m)));

    if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) != (ssize_t)sizeof(m->seed))
        m->seed = (uint64_t)(uintptr_t)m;
    return m;
}

void map_free(struct map **mp, void (*free_value)(void *))
{
    struct map *m = *mp;

    *mp = NULL;
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->used; i++) {
        if (m->entries[i].key != NULL && free_value != NULL)
            free_value(m->entries[i].value);
        free(m->entries[i].key);
    }
    free(m->entries);
    free(m->table);
    free(m);
}

/* The table slot that holds key, or the empty one where it would go. Needs table_size > 0. */
static size_t find_slot(const struct map *m, const char *key, uint64_t hash)
{
    size_t mask = m->table_size - 1;
    size_t slot = hash & mask;

    for (; m->table[slot] != EMPTY; slot = (slot + 1) & mask) {
        const struct entry *e = &m->entries[m->table[slot]];

        if (e->key != NULL && e->hash == hash && strcmp(e->key, key) == 0)
            break;
    }
    return slot;
}

static struct entry *find(const struct map *m, const char *key)
{
    size_t slot;

    if (m->table_size == 0)
        return NULL;
    slot = find_slot(m, key, hash_of(m, key));
    return m->table[slot] == EMPTY ? NULL : &m->entries[m->table[slot]];
}

/* Close the holes, make room for one more entry, and write the table anew. */
static void grow(struct map *m)
{
    size_t live = 0;

    for (size_t i = 0; i < m->used; i++)
        if (m->entries[i].key != NULL)
            m->entries[live++] = m->entries[i];
    m->used = live;
    if (live * 2 >= m->cap)
        m->cap = m->cap == 0 ? 8 : m->cap * 2;
    m->entries = must(realloc(m->entries, m->cap * sizeof(*m->entries)));
    m->table_size = m->cap * 2;
    free(m->table);
    m->table = must(malloc(m->table_size * sizeof(*m->table)));
    memset(m->table, 0xff, m->table_size * sizeof(*m->table));
    for (size_t i = 0; i < m->used; i++) {
        size_t slot = m->entries[i].hash & (m->table_size - 1);

        while (m->table[slot] != EMPTY)
            slot = (slot + 1) & (m->table_size - 1);
        m->table[slot] = (uint32_t)i;
    }
}

void *map_get(const struct map *m, const char *key)
{
    const struct entry *e = find(m, key);

    return e != NULL ? e->value : NULL;
}

void *map_set(struct map *m, const char *key, void *value)
{
    struct entry *e = find(m, key);
    uint64_t hash;

    if (e != NULL) {
        void *old = e->value;

        e->value = value;
        return old;
    }
    if (m->used == m->cap)
        grow(m);
    hash = hash_of(m, key);
    m->table[find_slot(m, key, hash)] = (uint32_t)m->used;
    e = &m->entries[m->used++];
    e->key = must(strdup(key));
    e->value = value;
    e->hash = hash;
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    struct entry *e = find(m, key);

    if (e == NULL)
        return NULL;
    free(e->key);
    e->key = NULL;
    m->count--;
    return e->value;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

bool map_next(const struct map *m, size_t *cursor, const char **key, void **value)
{
    for (; *cursor < m->used; (*cursor)++) {
        const struct entry *e = &m->entries[*cursor];

        if (e->key == NULL)
            continue;
        if (key != NULL)
            *key = e->key;
        if (value != NULL)
            *value = e->value;
        (*cursor)++;
        return true;
    }
    return false;
}
