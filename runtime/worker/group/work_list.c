/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of connectors and tasks. Names are stored once an entry, so that a list read from the wire
 * takes memory in proportion to the bytes that came. Pure; used by the codec, the assignor, the
 * member and, through events, by the herder. */
#include "worker/group/work_list.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

void work_list_deinit(struct work_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].conn);
        free(list->entries[i].tasks);
    }
    free(list->entries);
    *list = (struct work_list){0};
}

/* Room for one more element of `size` bytes. */
static int grow(void **array, size_t count, size_t *cap, size_t size)
{
    size_t wanted = *cap == 0 ? 4 : *cap * 2;
    void *grown;

    if (count < *cap)
        return 0;
    grown = realloc(*array, wanted * size);
    if (grown == NULL)
        return MR_ERR_NOMEM;
    *array = grown;
    *cap = wanted;
    return 0;
}

struct work_entry *work_list_open(struct work_list *list, const char *conn, size_t conn_len)
{
    struct work_entry *entry;
    char *name;

    if (list->count >= WORK_LIST_ITEMS_MAX)
        return NULL;
    if (grow((void **)&list->entries, list->count, &list->cap, sizeof(*list->entries)) != 0)
        return NULL;
    name = strndup(conn, conn_len);
    if (name == NULL)
        return NULL;
    entry = &list->entries[list->count++];
    *entry = (struct work_entry){.conn = name};
    return entry;
}

int work_list_push(struct work_list *list, struct work_entry *entry, int32_t task)
{
    if (list->items >= WORK_LIST_ITEMS_MAX)
        return MR_ERR_FULL;
    if (grow((void **)&entry->tasks, entry->count, &entry->cap, sizeof(*entry->tasks)) != 0)
        return MR_ERR_NOMEM;
    entry->tasks[entry->count++] = task;
    list->items++;
    return 0;
}

/* Sorted input finds its entry at the end. */
static struct work_entry *find(const struct work_list *list, const char *conn)
{
    for (size_t i = list->count; i > 0; i--)
        if (strcmp(list->entries[i - 1].conn, conn) == 0)
            return &list->entries[i - 1];
    return NULL;
}

int work_list_add(struct work_list *list, const char *conn, int32_t task)
{
    struct work_entry *entry = find(list, conn);
    bool opened = entry == NULL;
    int rc;

    if (list->items >= WORK_LIST_ITEMS_MAX)
        return MR_ERR_FULL;
    if (opened)
        entry = work_list_open(list, conn, strlen(conn));
    if (entry == NULL)
        return MR_ERR_NOMEM;
    rc = work_list_push(list, entry, task);
    if (rc != 0 && opened)
        free(list->entries[--list->count].conn);
    return rc;
}

static bool entry_has(const struct work_entry *entry, int32_t task)
{
    for (size_t i = 0; i < entry->count; i++)
        if (entry->tasks[i] == task)
            return true;
    return false;
}

bool work_list_has(const struct work_list *list, const char *conn, int32_t task)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].conn, conn) == 0 && entry_has(&list->entries[i], task))
            return true;
    return false;
}

static size_t entry_remove(struct work_entry *entry, int32_t task)
{
    size_t kept = 0;
    size_t before = entry->count;

    for (size_t i = 0; i < before; i++)
        if (entry->tasks[i] != task)
            entry->tasks[kept++] = entry->tasks[i];
    entry->count = kept;
    return before - kept;
}

bool work_list_remove(struct work_list *list, const char *conn, int32_t task)
{
    size_t before = list->items;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct work_entry entry = list->entries[i];

        if (strcmp(entry.conn, conn) == 0)
            list->items -= entry_remove(&entry, task);
        if (entry.count > 0) {
            list->entries[kept++] = entry;
        } else {
            free(entry.conn);
            free(entry.tasks);
        }
    }
    list->count = kept;
    return list->items < before;
}

/* Lists may be as long as foreign bytes make them, so names are looked up. Of a name that stands in
 * several entries: the first. */
static struct map *index_of(const struct work_list *list)
{
    struct map *places = map_new(); /* name → index + 1 */

    for (size_t i = 0; i < list->count; i++)
        if (map_get(places, list->entries[i].conn) == NULL)
            map_set(places, list->entries[i].conn, (void *)(uintptr_t)(i + 1));
    return places;
}

static int merge_entry(struct work_list *to, struct map *places, const struct work_entry *from)
{
    size_t place = (size_t)(uintptr_t)map_get(places, from->conn);
    int rc = 0;

    if (place == 0 && from->count > 0) {
        if (work_list_open(to, from->conn, strlen(from->conn)) == NULL)
            return MR_ERR_NOMEM;
        place = to->count;
        map_set(places, from->conn, (void *)(uintptr_t)place);
    }
    for (size_t t = 0; rc == 0 && t < from->count; t++)
        if (!entry_has(&to->entries[place - 1], from->tasks[t]))
            rc = work_list_push(to, &to->entries[place - 1], from->tasks[t]);
    return rc;
}

int work_list_merge(struct work_list *to, const struct work_list *from)
{
    struct map *places = index_of(to);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < from->count; i++)
        rc = merge_entry(to, places, &from->entries[i]);
    map_free(&places, NULL);
    return rc;
}

int work_list_subtract(struct work_list *list, const struct work_list *other)
{
    struct work_list once = {0}, kept = {0}; /* other, each name in one entry; what is left */
    int rc = work_list_merge(&once, other);
    struct map *places = index_of(&once);

    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        const struct work_entry *entry = &list->entries[i];
        size_t place = (size_t)(uintptr_t)map_get(places, entry->conn);
        struct work_entry *left = NULL;

        for (size_t t = 0; rc == 0 && t < entry->count; t++) {
            if (place > 0 && entry_has(&once.entries[place - 1], entry->tasks[t]))
                continue;
            if (left == NULL)
                left = work_list_open(&kept, entry->conn, strlen(entry->conn));
            rc = left == NULL ? MR_ERR_NOMEM : work_list_push(&kept, left, entry->tasks[t]);
        }
    }
    map_free(&places, NULL);
    work_list_deinit(&once);
    if (rc != 0) {
        work_list_deinit(&kept);
        return rc;
    }
    work_list_deinit(list);
    *list = kept;
    return 0;
}

static int copy_entry(struct work_list *to, const struct work_entry *from)
{
    struct work_entry *entry = work_list_open(to, from->conn, strlen(from->conn));
    int rc = entry == NULL ? MR_ERR_NOMEM : 0;

    for (size_t t = 0; rc == 0 && t < from->count; t++)
        rc = work_list_push(to, entry, from->tasks[t]);
    return rc;
}

int work_list_copy(struct work_list *to, const struct work_list *from)
{
    int rc = 0;

    work_list_deinit(to);
    for (size_t i = 0; rc == 0 && i < from->count; i++)
        rc = copy_entry(to, &from->entries[i]);
    return rc;
}

static bool contains(const struct work_list *all, const struct work_list *part)
{
    for (size_t i = 0; i < part->count; i++)
        for (size_t t = 0; t < part->entries[i].count; t++)
            if (!work_list_has(all, part->entries[i].conn, part->entries[i].tasks[t]))
                return false;
    return true;
}

bool work_list_same(const struct work_list *a, const struct work_list *b)
{
    return contains(a, b) && contains(b, a);
}
