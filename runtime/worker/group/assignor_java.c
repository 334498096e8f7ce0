/* SPDX-License-Identifier: Apache-2.0 */
/* The incremental cooperative policy of the Java worker (IncrementalCooperativeAssignor, KIP-415),
 * in its words, so that the two can be held side by side. The steps are those of reference
 * group-protocol 10; results equal the recordings in tests/data/group/assignor.jsonl. Java walks
 * workers in the arbitrary order of a hash map; here they go by member id. */
#include "worker/group/assignor_private.h"

#include <stdlib.h>
#include <string.h>

/* The sets of one round, each sorted. */
struct sets {
    struct keys previous;
    struct keys active;
    struct keys deleted;
    struct keys duplicated;
    struct keys lost;
    struct keys created;
    struct keys reassign;
};

static void minus(struct round_table *table, struct keys *out, const struct keys *base,
                  const struct keys *subtract)
{
    keys_add_all(table, out, base);
    keys_drop(out, subtract);
}

/* Steps 1 to 3: what was assigned before, as far as it can still be relied upon. */
static void recall(struct assignor *a, struct round_table *table, struct sets *sets)
{
    struct keys revoked = {0};

    round_table_active(table, &sets->active);
    if (a->generation == table->round->last_completed)
        keys_read(table, &sets->previous, &a->previous_assignment);
    keys_read(table, &revoked, &a->previous_revocation);
    keys_keep(&revoked, &sets->active);
    if (revoked.count > 0) { /* the last revocation did not take effect */
        sets->previous.count = 0;
        keys_add_all(table, &sets->previous, &sets->active);
    }
    keys_sort(&sets->previous);
    keys_deinit(&revoked);
}

/* Steps 4 to 7. */
static void compare(struct round_table *table, struct sets *sets)
{
    minus(table, &sets->deleted, &sets->previous, &table->configured);
    round_table_duplicated(table, &sets->duplicated);
    minus(table, &sets->lost, &sets->previous, &sets->active);
    keys_drop(&sets->lost, &sets->deleted);
    minus(table, &sets->created, &table->configured, &sets->previous);
    keys_drop(&sets->created, &sets->active);
}

/* Steps 8 and 9. */
static void keep_what_is_good(struct round_table *table, const struct sets *sets)
{
    struct keys bad = {0};

    keys_add_all(table, &bad, &sets->deleted);
    keys_add_all(table, &bad, &sets->duplicated);
    keys_sort(&bad);
    for (size_t i = 0; i < table->count; i++) {
        struct worker_share *worker = &table->workers[i];

        keys_add_all(table, &worker->revoke, &worker->held);
        keys_keep(&worker->revoke, &bad);
        keys_add_all(table, &worker->next, &worker->held);
        keys_drop(&worker->next, &bad);
    }
    keys_deinit(&bad);
}

/* --- step 10: work that was lost -------------------------------------------------------------- */

static bool is_member(const struct round_table *table, const char *id)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->workers[i].id, id) == 0)
            return true;
    return false;
}

static bool nobody_left(const struct assignor *a, const struct round_table *table)
{
    for (size_t i = 0; i < a->previous_members.count; i++)
        if (!is_member(table, a->previous_members.at[i]))
            return false;
    return true;
}

static void reset_delay(struct assignor *a)
{
    text_list_deinit(&a->candidates);
    a->scheduled_rebalance_ms = 0;
    a->delay_ms = 0;
}

static struct worker_share *worker_named(struct round_table *table, const char *id)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->workers[i].id, id) == 0)
            return &table->workers[i];
    return NULL;
}

/* The delay is over: candidates that are still here take the lost work in turn. False: there is
 * none. */
static bool deal_to_candidates(struct assignor *a, struct round_table *table,
                               const struct keys *lost)
{
    struct worker_share **here = calloc(a->candidates.count + 1, sizeof(*here));
    size_t count = 0;

    table->failed |= here == NULL;
    for (size_t i = 0; here != NULL && i < a->candidates.count; i++) {
        here[count] = worker_named(table, a->candidates.at[i]);
        count += here[count] != NULL;
    }
    for (int connectors = 1; count > 0 && connectors >= 0; connectors--) {
        size_t turn = 0;

        for (size_t i = 0; i < lost->count; i++)
            if (key_is_connector(lost->at[i]) == connectors)
                keys_add(table, &here[turn++ % count]->next, lost->at[i]);
    }
    free(here);
    return count > 0;
}

static void add_candidates(struct assignor *a, struct round_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->workers[i].next.count == 0 &&
            !text_list_has(&a->candidates, table->workers[i].id))
            text_list_add(table, &a->candidates, table->workers[i].id);
}

static void schedule(struct assignor *a, int64_t now_ms, int64_t max_delay_ms)
{
    int64_t left = a->scheduled_rebalance_ms - now_ms;

    a->delay_ms = left > 0 && left < max_delay_ms ? left : max_delay_ms;
    a->scheduled_rebalance_ms = now_ms + a->delay_ms;
}

static void handle_lost(struct assignor *a, struct round_table *table, struct sets *sets)
{
    int64_t now_ms = table->round->now_ms;
    bool scheduled = a->scheduled_rebalance_ms > 0;

    if (sets->lost.count == 0 && !a->revoked_in_previous) {
        reset_delay(a);
    } else if ((!scheduled && nobody_left(a, table)) || table->round->max_delay_ms == 0) {
        keys_add_all(table, &sets->reassign, &sets->lost);
    } else if (scheduled && now_ms >= a->scheduled_rebalance_ms) {
        if (!deal_to_candidates(a, table, &sets->lost))
            keys_add_all(table, &sets->reassign, &sets->lost);
        reset_delay(a);
        a->revoked_in_previous = false;
    } else {
        add_candidates(a, table);
        schedule(a, now_ms, table->round->max_delay_ms);
    }
}

/* --- step 11: balance ------------------------------------------------------------------------- */

static bool is_balanced(const struct round_table *table, bool connectors, size_t min, size_t extra)
{
    size_t above = 0;

    for (size_t i = 0; i < table->count; i++) {
        size_t count = keys_count(&table->workers[i].next, connectors);

        if (count != min && count != min + 1)
            return false;
        above += count == min + 1;
    }
    return above == extra;
}

/* The first `count` of one kind. */
static void take_first(struct round_table *table, const struct keys *from, bool connectors,
                       size_t count, struct keys *out)
{
    for (size_t i = 0; count > 0 && i < from->count; i++)
        if (key_is_connector(from->at[i]) == connectors) {
            keys_add(table, out, from->at[i]);
            count--;
        }
}

/* What each worker has too much of goes into excess[worker]. */
static void balance_kind(struct round_table *table, bool connectors, struct keys *excess)
{
    size_t total = keys_count(&table->configured, connectors);
    size_t min = total / table->count;
    size_t extra = total % table->count;

    if (is_balanced(table, connectors, min, extra))
        return;
    for (size_t i = 0; i < table->count; i++) {
        size_t count = keys_count(&table->workers[i].next, connectors);
        size_t keep = min;

        if (count <= min)
            continue;
        if (extra > 0) {
            extra--;
            keep = min + 1;
        }
        take_first(table, &table->workers[i].next, connectors, count - keep, &excess[i]);
    }
}

static bool load_balance(struct round_table *table, struct keys *excess)
{
    size_t held = 0;
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++)
        held += table->workers[i].next.count;
    if (held == 0 || table->configured.count == 0)
        return false;
    balance_kind(table, true, excess);
    balance_kind(table, false, excess);
    for (size_t i = 0; i < table->count; i++)
        count += excess[i].count;
    return count > 0;
}

static void revoke_excess(struct round_table *table, struct keys *excess)
{
    for (size_t i = 0; i < table->count; i++) {
        keys_add_all(table, &table->workers[i].revoke, &excess[i]);
        keys_sort(&excess[i]);
        keys_drop(&table->workers[i].next, &excess[i]);
    }
}

/* min(40^n, max) ms. */
static int64_t backoff_ms(int n, int64_t max_ms)
{
    int64_t ms = 1;

    while (n-- > 0 && ms < max_ms)
        ms *= 40;
    return ms < max_ms ? ms : max_ms;
}

static void balance_once_more(struct assignor *a, struct round_table *table, struct keys *excess)
{
    a->delay_ms = backoff_ms(++a->successive_revoking, table->round->max_delay_ms);
    if (a->delay_ms != 0)
        a->scheduled_rebalance_ms = table->round->now_ms + a->delay_ms;
    else
        revoke_excess(table, excess);
}

static void balance(struct assignor *a, struct round_table *table)
{
    struct keys *excess;

    if (a->delay_ms != 0) {
        a->revoked_in_previous = false;
        return;
    }
    excess = calloc(table->count + 1, sizeof(*excess));
    table->failed |= excess == NULL;
    if (excess == NULL)
        return;
    if (load_balance(table, excess)) {
        if (a->revoked_in_previous)
            balance_once_more(a, table, excess);
        else
            revoke_excess(table, excess);
        a->revoked_in_previous = true;
    } else if (a->revoked_in_previous) {
        a->revoked_in_previous = false;
        a->successive_revoking = 0;
    }
    for (size_t i = 0; i < table->count; i++)
        keys_deinit(&excess[i]);
    free(excess);
}

/* --- steps 12 to 14 --------------------------------------------------------------------------- */

struct loaded {
    struct worker_share *worker;
    size_t load; /* of the kind that is dealt out */
};

static int by_load(const void *pa, const void *pb)
{
    const struct loaded *a = pa;
    const struct loaded *b = pb;

    if (a->load != b->load)
        return a->load < b->load ? -1 : 1;
    return a->worker < b->worker ? -1 : 1; /* workers stand by id */
}

/* One to each of the least loaded, and again, until all are dealt out. */
static void deal(struct round_table *table, struct loaded *loaded, const struct keys *items)
{
    size_t i = 0;

    qsort(loaded, table->count, sizeof(*loaded), by_load);
    while (i < items->count) {
        size_t level = loaded[0].load;

        for (size_t w = 0; w < table->count && loaded[w].load <= level && i < items->count; w++) {
            keys_add(table, &loaded[w].worker->next, items->at[i++]);
            loaded[w].load++;
        }
    }
}

static void distribute_kind(struct round_table *table, const struct sets *sets, bool connectors)
{
    struct loaded *loaded = calloc(table->count + 1, sizeof(*loaded));
    struct keys items = {0};

    take_first(table, &sets->created, connectors, SIZE_MAX, &items);
    take_first(table, &sets->reassign, connectors, SIZE_MAX, &items);
    table->failed |= loaded == NULL;
    for (size_t i = 0; loaded != NULL && i < table->count; i++)
        loaded[i] =
            (struct loaded){&table->workers[i], keys_count(&table->workers[i].next, connectors)};
    if (loaded != NULL)
        deal(table, loaded, &items);
    keys_deinit(&items);
    free(loaded);
}

static void remember(struct assignor *a, struct round_table *table, const struct sets *sets)
{
    struct keys revoked = {0};
    struct keys assigned = {0};

    for (size_t i = 0; i < table->count; i++) {
        keys_add_all(table, &revoked, &table->workers[i].revoke);
        keys_add_all(table, &assigned, &table->workers[i].next);
    }
    keys_sort(&revoked);
    keys_drop(&assigned, &revoked);
    keys_add_all(table, &assigned, &sets->lost);
    keys_sort(&assigned);
    work_list_deinit(&a->previous_assignment);
    keys_write(table, &assigned, &a->previous_assignment);
    work_list_deinit(&a->previous_revocation);
    keys_write(table, &revoked, &a->previous_revocation);
    text_list_deinit(&a->previous_members);
    for (size_t i = 0; i < table->count; i++)
        text_list_add(table, &a->previous_members, table->workers[i].id);
    keys_deinit(&revoked);
    keys_deinit(&assigned);
}

void assignor_java(struct assignor *a, struct round_table *table)
{
    struct sets sets = {0};
    struct keys *const all[] = {&sets.previous, &sets.active,  &sets.deleted, &sets.duplicated,
                                &sets.lost,     &sets.created, &sets.reassign};

    if (table->count == 0)
        return;
    recall(a, table, &sets);
    compare(table, &sets);
    keep_what_is_good(table, &sets);
    handle_lost(a, table, &sets);
    balance(a, table);
    distribute_kind(table, &sets, true);
    distribute_kind(table, &sets, false);
    remember(a, table, &sets);
    table->delay_ms = a->delay_ms;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        keys_deinit(all[i]);
}
