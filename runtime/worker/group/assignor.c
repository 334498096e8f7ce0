/* SPDX-License-Identifier: Apache-2.0 */
/* The frame around the policies: names become numbers on the way in (round_table), lists again on
 * the way out, and what a leader remembers lives here. Called by lead.c on the group thread, once
 * a round that this worker leads. */
#include "worker/group/assignor.h"

#include "worker/group/assignor_private.h"
#include "base/java_order.h"

#include <stdlib.h>
#include <string.h>

/* --- keys ------------------------------------------------------------------------------------- */

void keys_add(struct round_table *table, struct keys *keys, uint64_t key)
{
    if (keys->count == keys->cap) {
        size_t cap = keys->cap == 0 ? 16 : keys->cap * 2;
        uint64_t *grown = realloc(keys->at, cap * sizeof(*grown));

        if (grown == NULL) {
            table->failed = true;
            return;
        }
        keys->at = grown;
        keys->cap = cap;
    }
    keys->at[keys->count++] = key;
}

void keys_add_all(struct round_table *table, struct keys *keys, const struct keys *more)
{
    for (size_t i = 0; i < more->count; i++)
        keys_add(table, keys, more->at[i]);
}

static int by_key(const void *pa, const void *pb)
{
    const uint64_t *a = pa;
    const uint64_t *b = pb;

    return (*a > *b) - (*a < *b);
}

void keys_sort(struct keys *keys)
{
    size_t kept = 0;

    if (keys->count == 0)
        return;
    qsort(keys->at, keys->count, sizeof(*keys->at), by_key);
    for (size_t i = 0; i < keys->count; i++)
        if (i == 0 || keys->at[i] != keys->at[i - 1])
            keys->at[kept++] = keys->at[i];
    keys->count = kept;
}

bool keys_has(const struct keys *sorted, uint64_t key)
{
    return sorted->count > 0 &&
           bsearch(&key, sorted->at, sorted->count, sizeof(*sorted->at), by_key) != NULL;
}

static void filter(struct keys *keys, const struct keys *sorted, bool keep)
{
    size_t kept = 0;

    for (size_t i = 0; i < keys->count; i++)
        if (keys_has(sorted, keys->at[i]) == keep)
            keys->at[kept++] = keys->at[i];
    keys->count = kept;
}

void keys_drop(struct keys *keys, const struct keys *sorted)
{
    filter(keys, sorted, false);
}

void keys_keep(struct keys *keys, const struct keys *sorted)
{
    filter(keys, sorted, true);
}

size_t keys_count(const struct keys *keys, bool connectors)
{
    size_t count = 0;

    for (size_t i = 0; i < keys->count; i++)
        count += key_is_connector(keys->at[i]) == connectors;
    return count;
}

void keys_deinit(struct keys *keys)
{
    free(keys->at);
    *keys = (struct keys){0};
}

/* --- names ------------------------------------------------------------------------------------ */

static int by_name(const void *pa, const void *pb)
{
    const char *const *a = pa;
    const char *const *b = pb;

    return java_order_compare(*a, *b);
}

static void read_entry(struct round_table *table, struct keys *keys, const struct work_entry *entry)
{
    const char *const *found = table->name_count == 0
                                   ? NULL
                                   : bsearch(&entry->conn, table->names, table->name_count,
                                             sizeof(*table->names), by_name);

    if (found == NULL)
        return;
    for (size_t i = 0; i < entry->count; i++)
        keys_add(table, keys, key_make((size_t)(found - table->names), entry->tasks[i]));
}

/* Remove what stands further on in the run again. */
static void each_once(struct round_table *table, struct keys *keys)
{
    struct keys sorted = {0};
    size_t kept = 0;
    bool *seen;

    keys_add_all(table, &sorted, keys);
    keys_sort(&sorted);
    seen = sorted.count < keys->count ? calloc(sorted.count + 1, sizeof(*seen)) : NULL;
    for (size_t i = 0; seen != NULL && i < keys->count; i++) {
        const uint64_t *place =
            bsearch(&keys->at[i], sorted.at, sorted.count, sizeof(*sorted.at), by_key);

        if (place != NULL && !seen[place - sorted.at]) {
            seen[place - sorted.at] = true;
            keys->at[kept++] = keys->at[i];
        }
    }
    if (seen != NULL)
        keys->count = kept;
    else if (sorted.count < keys->count)
        table->failed = true;
    free(seen);
    keys_deinit(&sorted);
}

void keys_read(struct round_table *table, struct keys *keys, const struct work_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        read_entry(table, keys, &list->entries[i]);
    each_once(table, keys);
}

/* One entry a connector, found by its number: lists may be long. */
void keys_write(struct round_table *table, const struct keys *keys, struct work_list *list)
{
    size_t *entries = calloc(table->name_count + 1, sizeof(*entries)); /* index + 1 */
    int rc = entries == NULL ? MR_ERR_NOMEM : 0;

    for (size_t i = 0; rc == 0 && i < keys->count; i++) {
        size_t conn = key_conn(keys->at[i]);
        const char *name = table->names[conn];

        if (entries[conn] == 0 && work_list_open(list, name, strlen(name)) == NULL)
            rc = MR_ERR_NOMEM;
        else if (entries[conn] == 0)
            entries[conn] = list->count;
        if (rc == 0)
            rc = work_list_push(list, &list->entries[entries[conn] - 1], key_task(keys->at[i]));
    }
    free(entries);
    table->failed |= rc != 0;
}

/* --- lists of texts --------------------------------------------------------------------------- */

bool text_list_has(const struct text_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i], text) == 0)
            return true;
    return false;
}

void text_list_add(struct round_table *table, struct text_list *list, const char *text)
{
    char **grown = realloc(list->at, (list->count + 1) * sizeof(*grown));

    if (grown != NULL)
        list->at = grown;
    if (grown == NULL || (grown[list->count] = strdup(text)) == NULL)
        table->failed = true;
    else
        list->count++;
}

void text_list_deinit(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct text_list){0};
}

/* --- the table of a round --------------------------------------------------------------------- */

static size_t add_names(const char **names, size_t count, const struct work_list *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        names[count++] = list->entries[i].conn;
    return count;
}

static size_t count_names(const struct assignor *a, const struct assignor_round *round)
{
    size_t count = round->conn_count + a->previous_assignment.count + a->previous_revocation.count;

    for (size_t i = 0; i < round->member_count; i++)
        count += round->members[i].allocation == NULL ? 0 : round->members[i].allocation->count;
    for (size_t i = 0; i < a->owner_count; i++)
        count += a->owners[i].held.count;
    return count;
}

/* Each once, and copied: what the assignor remembers is replaced before the plan is written. */
static void own_names(struct round_table *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *last = table->name_count > 0 ? table->names[table->name_count - 1] : NULL;
        char *copy;

        if (last != NULL && strcmp(table->names[i], last) == 0)
            continue;
        copy = strdup(table->names[i]);
        if (copy == NULL) {
            table->failed = true;
            return;
        }
        table->names[table->name_count++] = copy;
    }
}

static void gather_names(struct round_table *table, const struct assignor *a)
{
    const struct assignor_round *round = table->round;
    size_t count = 0;

    table->names = calloc(count_names(a, round) + 1, sizeof(*table->names));
    table->failed |= table->names == NULL;
    if (table->names == NULL)
        return;
    for (size_t i = 0; i < round->conn_count; i++)
        table->names[count++] = round->conns[i].name;
    for (size_t i = 0; i < round->member_count; i++)
        count = add_names(table->names, count, round->members[i].allocation);
    for (size_t i = 0; i < a->owner_count; i++)
        count = add_names(table->names, count, &a->owners[i].held);
    count = add_names(table->names, count, &a->previous_assignment);
    count = add_names(table->names, count, &a->previous_revocation);
    qsort(table->names, count, sizeof(*table->names), by_name);
    own_names(table, count);
}

static void add_configured(struct round_table *table, const struct assignor_conn *conn)
{
    const char *const *found =
        bsearch(&conn->name, table->names, table->name_count, sizeof(*table->names), by_name);

    for (int32_t task = WORK_LIST_CONNECTOR; found != NULL && task < conn->tasks; task++)
        keys_add(table, &table->configured, key_make((size_t)(found - table->names), task));
}

static int by_id(const void *pa, const void *pb)
{
    const struct assignor_member *const *a = pa;
    const struct assignor_member *const *b = pb;

    return java_order_compare((*a)->id, (*b)->id);
}

static void gather_workers(struct round_table *table)
{
    const struct assignor_round *round = table->round;
    const struct assignor_member **sorted = calloc(round->member_count + 1, sizeof(const void *));

    table->workers = calloc(round->member_count + 1, sizeof(*table->workers));
    if (sorted == NULL || table->workers == NULL) {
        table->failed = true;
        free(sorted);
        return;
    }
    for (size_t i = 0; i < round->member_count; i++)
        sorted[i] = &round->members[i];
    qsort(sorted, round->member_count, sizeof(const void *), by_id);
    for (size_t i = 0; i < round->member_count; i++) {
        table->workers[i].id = sorted[i]->id;
        if (sorted[i]->allocation != NULL)
            keys_read(table, &table->workers[i].held, sorted[i]->allocation);
    }
    table->count = round->member_count;
    free(sorted);
}

static void round_table_init(struct round_table *table, const struct assignor *assignor,
                             const struct assignor_round *round)
{
    *table = (struct round_table){.round = round};
    gather_names(table, assignor);
    for (size_t i = 0; !table->failed && i < round->conn_count; i++)
        add_configured(table, &round->conns[i]);
    keys_sort(&table->configured);
    if (!table->failed)
        gather_workers(table);
}

static void round_table_deinit(struct round_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        keys_deinit(&table->workers[i].held);
        keys_deinit(&table->workers[i].next);
        keys_deinit(&table->workers[i].revoke);
    }
    free(table->workers);
    for (size_t i = 0; i < table->name_count; i++)
        free((char *)(uintptr_t)table->names[i]);
    free(table->names);
    keys_deinit(&table->configured);
}

void round_table_active(struct round_table *table, struct keys *active)
{
    for (size_t i = 0; i < table->count; i++)
        keys_add_all(table, active, &table->workers[i].held);
    keys_sort(active);
}

void round_table_duplicated(struct round_table *table, struct keys *duplicated)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->count; i++)
        keys_add_all(table, duplicated, &table->workers[i].held);
    if (duplicated->count > 0)
        qsort(duplicated->at, duplicated->count, sizeof(*duplicated->at), by_key);
    for (size_t i = 1; i < duplicated->count; i++)
        if (duplicated->at[i] == duplicated->at[i - 1])
            duplicated->at[kept++] = duplicated->at[i];
    duplicated->count = kept;
    keys_sort(duplicated);
}

/* --- the plan --------------------------------------------------------------------------------- */

void assignor_plan_deinit(struct assignor_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->shares[i].member);
        work_list_deinit(&plan->shares[i].assigned);
        work_list_deinit(&plan->shares[i].revoked);
        work_list_deinit(&plan->shares[i].owned);
    }
    free(plan->shares);
    *plan = (struct assignor_plan){0};
}

/* assigned = next without what it holds and keeps. */
static void write_share(struct round_table *table, struct worker_share *worker, bool eager,
                        struct assignor_share *share)
{
    struct keys known = {0};
    struct keys fresh = {0};

    share->member = strdup(worker->id);
    table->failed |= share->member == NULL;
    if (!eager)
        keys_add_all(table, &known, &worker->held);
    keys_sort(&known);
    keys_add_all(table, &fresh, &worker->next);
    keys_drop(&fresh, &known);
    keys_write(table, &fresh, &share->assigned);
    keys_write(table, &worker->revoke, &share->revoked);
    keys_write(table, &worker->next, &share->owned);
    keys_deinit(&known);
    keys_deinit(&fresh);
}

static void write_plan(struct round_table *table, bool eager, struct assignor_plan *plan)
{
    plan->shares = calloc(table->count + 1, sizeof(*plan->shares));
    table->failed |= plan->shares == NULL;
    for (size_t i = 0; plan->shares != NULL && i < table->count; i++)
        write_share(table, &table->workers[i], eager, &plan->shares[plan->count++]);
    plan->delay_ms = table->delay_ms;
}

static void forget(struct assignor *a)
{
    work_list_deinit(&a->previous_assignment);
    work_list_deinit(&a->previous_revocation);
    text_list_deinit(&a->previous_members);
    text_list_deinit(&a->candidates);
    assignor_millrace_forget(a);
    *a = (struct assignor){.generation = -1};
}

struct assignor *assignor_new(void)
{
    struct assignor *a = calloc(1, sizeof(*a));

    if (a != NULL)
        a->generation = -1;
    return a;
}

void assignor_free(struct assignor **assignor)
{
    if (*assignor != NULL)
        forget(*assignor);
    free(*assignor);
    *assignor = NULL;
}

int assignor_make(struct assignor *assignor, enum assignor_policy policy,
                  const struct assignor_round *round, struct assignor_plan *plan)
{
    struct assignor_plan made = {0};
    struct round_table table;
    int rc;

    round_table_init(&table, assignor, round);
    if (table.failed)
        ; /* said below */
    else if (policy == ASSIGNOR_EAGER)
        assignor_eager(&table);
    else if (policy == ASSIGNOR_JAVA)
        assignor_java(assignor, &table);
    else
        assignor_millrace(assignor, &table);
    if (!table.failed)
        write_plan(&table, policy == ASSIGNOR_EAGER, &made);
    if (policy != ASSIGNOR_EAGER)
        assignor->generation = round->generation;
    rc = table.failed ? MR_ERR_NOMEM : 0;
    round_table_deinit(&table);
    if (rc != 0) {
        assignor_plan_deinit(&made);
        forget(assignor);
    } else {
        *plan = made;
    }
    return rc;
}
