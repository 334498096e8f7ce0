/* SPDX-License-Identifier: Apache-2.0 */
/* What the policies share: a round in which names have become numbers, so that a connector or task
 * is one key and sets are sorted runs of keys. */
#ifndef WORKER_GROUP_ASSIGNOR_PRIVATE_H
#define WORKER_GROUP_ASSIGNOR_PRIVATE_H

#include "worker/group/assignor.h"

/* Keys in an order that the owner knows; "sorted" means ascending and each once. Ascending is
 * Java's order of connector and task. */
struct keys {
    uint64_t *at;
    size_t count;
    size_t cap;
};

struct worker_share {
    const char *id;
    struct keys held;   /* what it reported, each once, in the order of its bytes */
    struct keys next;   /* what it shall hold */
    struct keys revoke; /* what it must stop */
};

/* `failed`: memory was short somewhere; checked once at the end. */
struct round_table {
    const struct assignor_round *round;
    const char **names; /* sorted as Java sorts */
    size_t name_count;
    struct keys configured;       /* sorted */
    struct worker_share *workers; /* by id */
    size_t count;
    int64_t delay_ms;
    bool failed;
};

static inline uint32_t key_conn(uint64_t key)
{
    return (uint32_t)(key >> 32);
}

static inline int32_t key_task(uint64_t key)
{
    return (int32_t)((uint32_t)key ^ 0x80000000u);
}

static inline uint64_t key_make(size_t conn, int32_t task)
{
    return ((uint64_t)conn << 32) | ((uint32_t)task ^ 0x80000000u);
}

static inline bool key_is_connector(uint64_t key)
{
    return key_task(key) == WORK_LIST_CONNECTOR;
}

void keys_add(struct round_table *table, struct keys *keys, uint64_t key);
void keys_add_all(struct round_table *table, struct keys *keys, const struct keys *more);
void keys_sort(struct keys *keys);
bool keys_has(const struct keys *sorted, uint64_t key);
void keys_drop(struct keys *keys, const struct keys *sorted); /* the order of the rest stays */
void keys_keep(struct keys *keys, const struct keys *sorted);
size_t keys_count(const struct keys *keys, bool connectors); /* of one kind */
void keys_deinit(struct keys *keys);

/* Append the list's items, each once; names that the table does not know are left out (there are
 * none among those that it was made with). */
void keys_read(struct round_table *table, struct keys *keys, const struct work_list *list);
void keys_write(struct round_table *table, const struct keys *keys, struct work_list *list);

/* What any worker holds, and what more than one holds; sorted. */
void round_table_active(struct round_table *table, struct keys *active);
void round_table_duplicated(struct round_table *table, struct keys *duplicated);

/* One member as the millrace policy remembers it. */
struct owner {
    char *member;
    struct work_list held;
    int64_t until_ms; /* gone, and its work waits till then; 0: a member */
};

struct text_list {
    char **at;
    size_t count;
};

bool text_list_has(const struct text_list *list, const char *text);
void text_list_add(struct round_table *table, struct text_list *list, const char *text);
void text_list_deinit(struct text_list *list);

struct assignor {
    int64_t generation; /* of the last plan, -1 none */
    /* ASSIGNOR_JAVA, in Java's words: */
    struct work_list previous_assignment;
    struct work_list previous_revocation;
    struct text_list previous_members;
    struct text_list candidates;
    int64_t scheduled_rebalance_ms;
    int64_t delay_ms;
    bool revoked_in_previous;
    /* both: revoking rounds on end */
    int successive_revoking;
    /* ASSIGNOR_MILLRACE */
    struct owner *owners;
    size_t owner_count;
};

/* The policies: from workers' held to next and revoke, and delay_ms. */
void assignor_eager(struct round_table *table);
void assignor_java(struct assignor *assignor, struct round_table *table);
void assignor_millrace(struct assignor *assignor, struct round_table *table);
void assignor_millrace_forget(struct assignor *assignor);

#endif
