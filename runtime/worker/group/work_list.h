/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is given, holds or loses: connectors and tasks, grouped by connector, in the order
 * in which they came. A plain value: whoever declared it owns it; zeroed = empty. One thread at a
 * time. */
#ifndef WORKER_GROUP_WORK_LIST_H
#define WORKER_GROUP_WORK_LIST_H

#include "base/err.h"

#define WORK_LIST_CONNECTOR (-1)     /* the task number that means the connector itself */
#define WORK_LIST_ITEMS_MAX 1000000u /* hard cap on items in a list */

struct work_entry {
    char *conn;
    int32_t *tasks; /* WORK_LIST_CONNECTOR or task ids */
    size_t count;
    size_t cap;
};

struct work_list {
    struct work_entry *entries; /* from foreign bytes a connector may stand in several */
    size_t count;
    size_t cap;
    size_t items; /* connectors and tasks in all entries */
};

void work_list_deinit(struct work_list *list); /* empty again, and reusable */

/* Append; conn is copied. 0, MR_ERR_FULL (WORK_LIST_ITEMS_MAX) or MR_ERR_NOMEM: then list is as it
 * was. */
int work_list_add(struct work_list *list, const char *conn, int32_t task);
/* Append an entry without items, even if conn has one already: the codec's way. */
struct work_entry *work_list_open(struct work_list *list, const char *conn, size_t conn_len);
int work_list_push(struct work_list *list, struct work_entry *entry, int32_t task);

bool work_list_has(const struct work_list *list, const char *conn, int32_t task);
/* Take every such item out, entries that become empty too. False: there was none. */
bool work_list_remove(struct work_list *list, const char *conn, int32_t task);

/* 0 or an error of work_list_add; to is emptied first by copy, grown by merge with what it has
 * not. */
int work_list_copy(struct work_list *to, const struct work_list *from);
int work_list_merge(struct work_list *to, const struct work_list *from);

/* Take every item of the other list out. 0 or MR_ERR_NOMEM: then list is as it was. */
int work_list_subtract(struct work_list *list, const struct work_list *other);

/* The same items, in whatever order and however often. */
bool work_list_same(const struct work_list *a, const struct work_list *b);

#endif
