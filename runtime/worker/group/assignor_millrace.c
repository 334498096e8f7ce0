/* SPDX-License-Identifier: Apache-2.0 */
/* Millrace's own cooperative policy; assignor.h says what it promises and where it differs from
 * Java's on purpose.
 *
 * A round: recall who was given what · take away what is not configured, and what is held twice ·
 * see who is gone, and whose work still waits · give each worker a quota of connectors and of tasks
 * · take away what is above it, unless work waits · place what nobody holds below it. What is taken
 * away is placed in the next round, once it was stopped.
 *
 * Quotas: tasks first. A worker's quota is the even share, and one more for as many as it takes;
 * those who hold most get the one more, so that the fewest stop. Connectors the same, but their one
 * more goes first to those without one of a task: both together are then even too. Quotas add up to
 * all there is, so whatever is free finds a place below one. */
#include "worker/group/assignor_private.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE 4 /* revoking rounds on end before one waits */

/* One worker in this round. kinds: [0] tasks, [1] connectors. */
struct seat {
    struct worker_share *worker;
    size_t count[2]; /* in next */
    size_t quota[2];
    bool extra_task;
    bool leaves;
};

struct hall {
    struct round_table *table;
    struct seat *seats;  /* those that take part first, then leavers */
    size_t count;        /* of those that take part */
    struct keys waiting; /* sorted: work of the silent */
    uint32_t *tasks;     /* [connector name]: configured tasks */
    uint32_t *here;      /* [connector name × seat]: tasks of it there */
    bool *object;        /* the same: its connector is there */
};

/* --- who was given what ----------------------------------------------------------------------- */

void assignor_millrace_forget(struct assignor *a)
{
    for (size_t i = 0; i < a->owner_count; i++) {
        free(a->owners[i].member);
        work_list_deinit(&a->owners[i].held);
    }
    free(a->owners);
    a->owners = NULL;
    a->owner_count = 0;
}

static const struct owner *owner_named(const struct assignor *a, const char *member)
{
    for (size_t i = 0; i < a->owner_count; i++)
        if (strcmp(a->owners[i].member, member) == 0)
            return &a->owners[i];
    return NULL;
}

static bool says_goodbye(const struct assignor_round *round, const char *member)
{
    for (size_t i = 0; i < round->leaver_count; i++)
        if (strcmp(round->leavers[i], member) == 0)
            return true;
    return false;
}

static bool is_here(const struct round_table *table, const char *member)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->workers[i].id, member) == 0)
            return true;
    return false;
}

static size_t count_newcomers(const struct assignor *a, const struct round_table *table)
{
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++)
        count += owner_named(a, table->workers[i].id) == NULL;
    return count;
}

/* Until when the work of one who is gone waits; now or earlier: no longer. Each newcomer stands in
 * for one of them. */
static void see_who_is_gone(struct assignor *a, struct round_table *table)
{
    const struct assignor_round *round = table->round;
    size_t newcomers = count_newcomers(a, table);

    for (size_t i = 0; i < a->owner_count; i++) {
        struct owner *owner = &a->owners[i];

        if (is_here(table, owner->member)) {
            owner->until_ms = 0;
            continue;
        }
        if (owner->until_ms == 0)
            owner->until_ms = round->now_ms + round->max_delay_ms;
        if (says_goodbye(round, owner->member))
            owner->until_ms = round->now_ms;
        if (owner->until_ms > round->now_ms && owner->held.items > 0 && newcomers > 0) {
            newcomers--;
            owner->until_ms = round->now_ms;
        }
    }
}

static bool waits(const struct owner *owner, int64_t now_ms)
{
    return owner->until_ms > now_ms;
}

/* What waits, and when the first of it stops to. */
static void gather_waiting(const struct assignor *a, struct hall *hall, const struct keys *active)
{
    struct round_table *table = hall->table;
    int64_t now_ms = table->round->now_ms;

    for (size_t i = 0; i < a->owner_count; i++) {
        const struct owner *owner = &a->owners[i];
        struct keys held = {0};

        if (!waits(owner, now_ms))
            continue;
        keys_read(table, &held, &owner->held);
        keys_keep(&held, &table->configured);
        keys_drop(&held, active);
        if (held.count > 0 && (table->delay_ms == 0 || owner->until_ms - now_ms < table->delay_ms))
            table->delay_ms = owner->until_ms - now_ms;
        keys_add_all(table, &hall->waiting, &held);
        keys_deinit(&held);
    }
    keys_sort(&hall->waiting);
}

/* --- what goes on where it is ----------------------------------------------------------------- */

/* Items that more than one holds go on with the one that they were assigned to, if that is
 * known. */
static bool may_keep(const struct assignor *a, const struct round_table *table,
                     const struct worker_share *worker, uint64_t key)
{
    const struct owner *owner = owner_named(a, worker->id);

    return owner != NULL && work_list_has(&owner->held, table->names[key_conn(key)], key_task(key));
}

static void keep_what_is_good(const struct assignor *a, struct hall *hall)
{
    struct round_table *table = hall->table;
    struct keys duplicated = {0};

    round_table_duplicated(table, &duplicated);
    for (size_t i = 0; i < table->count; i++) {
        struct worker_share *worker = &table->workers[i];
        bool leaves = says_goodbye(table->round, worker->id);

        for (size_t k = 0; k < worker->held.count; k++) {
            uint64_t key = worker->held.at[k];
            bool keep = !leaves && keys_has(&table->configured, key) &&
                        (!keys_has(&duplicated, key) || may_keep(a, table, worker, key));

            keys_add(table, keep ? &worker->next : &worker->revoke, key);
        }
    }
    keys_deinit(&duplicated);
}

/* --- quotas ----------------------------------------------------------------------------------- */

/* Who gets one more task: who holds most; then who has fewer connectors; then by id. */
static int by_tasks(const void *pa, const void *pb)
{
    const struct seat *a = pa;
    const struct seat *b = pb;

    if (a->leaves != b->leaves)
        return a->leaves ? 1 : -1;
    if (a->count[0] != b->count[0])
        return a->count[0] > b->count[0] ? -1 : 1;
    if (a->count[1] != b->count[1])
        return a->count[1] < b->count[1] ? -1 : 1;
    return a->worker < b->worker ? -1 : 1;
}

/* Who gets one more connector: who has no extra task; then who holds most; then by id. */
static int by_connectors(const void *pa, const void *pb)
{
    const struct seat *a = pa;
    const struct seat *b = pb;

    if (a->leaves != b->leaves)
        return a->leaves ? 1 : -1;
    if (a->extra_task != b->extra_task)
        return a->extra_task ? 1 : -1;
    if (a->count[1] != b->count[1])
        return a->count[1] > b->count[1] ? -1 : 1;
    return a->worker < b->worker ? -1 : 1;
}

static void set_quotas(struct hall *hall, bool connectors)
{
    size_t total =
        keys_count(&hall->table->configured, connectors) - keys_count(&hall->waiting, connectors);
    size_t extra = total % hall->count;

    qsort(hall->seats, hall->table->count, sizeof(*hall->seats),
          connectors ? by_connectors : by_tasks);
    for (size_t i = 0; i < hall->count; i++) {
        hall->seats[i].quota[connectors] = total / hall->count + (i < extra);
        if (!connectors)
            hall->seats[i].extra_task = i < extra;
    }
}

/* --- taking away ------------------------------------------------------------------------------ */

static size_t cell(const struct hall *hall, uint64_t key, size_t seat)
{
    return (size_t)key_conn(key) * hall->table->count + seat;
}

/* How many tasks of a connector a worker has when they are spread evenly. */
static size_t crowd(const struct hall *hall, uint64_t key)
{
    return (hall->tasks[key_conn(key)] + hall->count - 1) / hall->count;
}

/* The more, the sooner this item goes: a task where there is a crowd of its connector, then one
 * that is alone here, whose host ends with it. */
static int departure(const struct hall *hall, size_t seat, uint64_t key)
{
    size_t at = cell(hall, key, seat);
    uint32_t tasks = hall->here[at];

    if (key_is_connector(key))
        return tasks == 0 ? 1 : 0;
    if (tasks > crowd(hall, key))
        return 2;
    return tasks == 1 && !hall->object[at] ? 1 : 0;
}

static void note(struct hall *hall, size_t seat, uint64_t key, int change)
{
    struct seat *s = &hall->seats[seat];
    size_t at = cell(hall, key, seat);
    bool connector = key_is_connector(key);

    s->count[connector] += (size_t)(int64_t)change;
    if (connector)
        hall->object[at] = change > 0;
    else
        hall->here[at] += (uint32_t)change;
}

/* The last first, since what came last is least settled. */
static void take_away_such(struct hall *hall, size_t seat, bool connectors, int wanted,
                           struct keys *gone)
{
    struct seat *s = &hall->seats[seat];
    const struct keys *next = &s->worker->next;

    for (size_t i = next->count; i > 0 && s->count[connectors] > s->quota[connectors]; i--) {
        uint64_t key = next->at[i - 1];

        if (key_is_connector(key) != connectors || keys_has(gone, key) ||
            departure(hall, seat, key) < wanted)
            continue;
        keys_add(hall->table, &s->worker->revoke, key);
        note(hall, seat, key, -1);
    }
    gone->count = 0;
    keys_add_all(hall->table, gone, &s->worker->revoke);
    keys_sort(gone);
}

static void take_away(struct hall *hall, size_t seat, bool connectors)
{
    struct keys gone = {0};

    for (int wanted = 2; wanted >= 0; wanted--)
        take_away_such(hall, seat, connectors, wanted, &gone);
    keys_drop(&hall->seats[seat].worker->next, &gone);
    keys_deinit(&gone);
}

/* Revoking that does not help (a member that never stops what it should) must not become a storm of
 * rounds. */
static bool out_of_patience(struct assignor *a, struct round_table *table)
{
    static const int64_t pause_ms[] = {1000, 5000, 30000};
    int beyond = a->successive_revoking - PATIENCE;

    if (beyond < 0)
        return false;
    table->delay_ms = pause_ms[beyond > 2 ? 2 : beyond];
    return true;
}

static void balance(struct assignor *a, struct hall *hall)
{
    bool above = false;

    for (size_t i = 0; i < hall->count; i++)
        for (int kind = 0; kind < 2; kind++)
            above |= hall->seats[i].count[kind] > hall->seats[i].quota[kind];
    if (!above || hall->waiting.count > 0) {
        a->successive_revoking = 0;
        return;
    }
    if (!out_of_patience(a, hall->table))
        for (size_t i = 0; i < hall->count; i++)
            for (int kind = 0; kind < 2; kind++)
                take_away(hall, i, kind);
    a->successive_revoking++;
}

/* --- placing ---------------------------------------------------------------------------------- */

/* Better is greater: spread the tasks of one connector; share its host where it runs; fill who has
 * least. */
static int64_t fitness(const struct hall *hall, size_t seat, uint64_t key, size_t limit)
{
    const struct seat *s = &hall->seats[seat];
    bool connector = key_is_connector(key);
    size_t at = cell(hall, key, seat);
    int64_t room = (int64_t)(s->quota[connector] - s->count[connector]);
    bool fits = connector || hall->here[at] < limit;
    bool shares = connector ? hall->here[at] > 0 : hall->object[at];

    return ((int64_t)fits << 50) + ((int64_t)shares << 40) + room;
}

static void place(struct hall *hall, uint64_t key)
{
    bool connector = key_is_connector(key);
    size_t limit = connector ? 0 : crowd(hall, key);
    size_t best = SIZE_MAX;
    int64_t fit = 0;

    for (size_t i = 0; i < hall->count; i++) {
        const struct seat *s = &hall->seats[i];
        int64_t mine = s->count[connector] < s->quota[connector] ? fitness(hall, i, key, limit) : 0;

        if (mine > fit) {
            fit = mine;
            best = i;
        }
    }
    if (best == SIZE_MAX)
        return;
    keys_add(hall->table, &hall->seats[best].worker->next, key);
    note(hall, best, key, 1);
}

static void place_what_is_free(struct hall *hall, const struct keys *active)
{
    const struct keys *configured = &hall->table->configured;

    for (int connectors = 1; connectors >= 0; connectors--)
        for (size_t i = 0; i < configured->count; i++) {
            uint64_t key = configured->at[i];

            if (key_is_connector(key) == connectors && !keys_has(active, key) &&
                !keys_has(&hall->waiting, key))
                place(hall, key);
        }
}

/* --- the round -------------------------------------------------------------------------------- */

static void take_seats(struct hall *hall)
{
    struct round_table *table = hall->table;

    hall->seats = calloc(table->count + 1, sizeof(*hall->seats));
    hall->tasks = calloc(table->name_count + 1, sizeof(*hall->tasks));
    hall->here = calloc(table->name_count + 1, (table->count + 1) * sizeof(*hall->here));
    hall->object = calloc(table->name_count + 1, (table->count + 1) * sizeof(*hall->object));
    if (hall->seats == NULL || hall->tasks == NULL || hall->here == NULL || hall->object == NULL) {
        table->failed = true;
        return;
    }
    for (size_t i = 0; i < table->configured.count; i++)
        hall->tasks[key_conn(table->configured.at[i])] +=
            !key_is_connector(table->configured.at[i]);
    for (size_t i = 0; i < table->count; i++) {
        struct seat *s = &hall->seats[i];

        s->worker = &table->workers[i];
        s->leaves = says_goodbye(table->round, s->worker->id);
        s->count[0] = keys_count(&s->worker->next, false);
        s->count[1] = keys_count(&s->worker->next, true);
        hall->count += !s->leaves;
    }
}

static void count_what_is_here(struct hall *hall)
{
    for (size_t i = 0; i < hall->count; i++) {
        const struct keys *next = &hall->seats[i].worker->next;

        hall->seats[i].count[0] = hall->seats[i].count[1] = 0;
        for (size_t k = 0; k < next->count; k++)
            note(hall, i, next->at[k], 1);
    }
}

static void remember_owner(struct round_table *table, struct owner *to, const char *member)
{
    to->member = strdup(member);
    table->failed |= to->member == NULL;
}

/* Members with what they shall hold; the gone as long as their work waits. */
static void remember(struct assignor *a, struct round_table *table)
{
    struct owner *owners = calloc(a->owner_count + table->count + 1, sizeof(*owners));
    size_t count = 0;

    table->failed |= owners == NULL;
    for (size_t i = 0; owners != NULL && i < a->owner_count; i++)
        if (waits(&a->owners[i], table->round->now_ms)) {
            remember_owner(table, &owners[count], a->owners[i].member);
            owners[count].until_ms = a->owners[i].until_ms;
            owners[count].held = a->owners[i].held;
            a->owners[i].held = (struct work_list){0};
            count++;
        }
    for (size_t i = 0; owners != NULL && i < table->count; i++) {
        remember_owner(table, &owners[count], table->workers[i].id);
        keys_write(table, &table->workers[i].next, &owners[count++].held);
    }
    assignor_millrace_forget(a);
    a->owners = owners;
    a->owner_count = count;
    for (size_t i = 0; i < count; i++)
        if (owners[i].member == NULL) { /* failed is set: nothing of this is used */
            a->owner_count = i;
            break;
        }
}

static void run_round(struct assignor *a, struct hall *hall, const struct keys *active)
{
    gather_waiting(a, hall, active);
    keep_what_is_good(a, hall);
    take_seats(hall);
    if (hall->table->failed || hall->count == 0)
        return;
    set_quotas(hall, false);
    set_quotas(hall, true);
    count_what_is_here(hall);
    balance(a, hall);
    place_what_is_free(hall, active);
}

void assignor_millrace(struct assignor *a, struct round_table *table)
{
    struct hall hall = {.table = table};
    struct keys active = {0};

    if (a->generation != table->round->last_completed)
        assignor_millrace_forget(a);
    see_who_is_gone(a, table);
    round_table_active(table, &active);
    run_round(a, &hall, &active);
    remember(a, table);
    keys_deinit(&active);
    keys_deinit(&hall.waiting);
    free(hall.seats);
    free(hall.tasks);
    free(hall.here);
    free(hall.object);
}
