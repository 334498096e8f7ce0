/* SPDX-License-Identifier: Apache-2.0 */
/* assignor: what its own policy promises, in random groups that grow, shrink, crash and change; and
 * in the cases that Java decides otherwise. Java's results are in test_lead.c. */
#include "worker/group/assignor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEMBERS 8
#define CONNS 12
#define ROUNDS_MAX 4 /* to settle */

/* --- a group, simulated ----------------------------------------------------------------------- */

struct member {
    bool here;
    char id[16];
    struct work_list held;
    struct assignor *assignor;
    int64_t completed;
};

struct group {
    unsigned seed;
    struct member members[MEMBERS];
    int32_t tasks[CONNS]; /* -1: not configured */
    char names[CONNS][8];
    int64_t now_ms;
    int64_t generation;
    int64_t max_delay_ms;
    const char *leavers[MEMBERS];
    size_t leaver_count;
    int born;
    /* of the last round */
    size_t stopped;
    size_t tasks_stopped;
    size_t started;
    bool revoked;
    int64_t delay_ms;
};

static int chance(struct group *g, int n)
{
    return rand_r(&g->seed) % n;
}

static void group_init(struct group *g, unsigned seed)
{
    *g = (struct group){.seed = seed, .now_ms = 1000};
    for (int i = 0; i < CONNS; i++) {
        g->tasks[i] = -1;
        snprintf(g->names[i], sizeof(g->names[i]), "c%d", i);
    }
}

static void join(struct group *g, int i)
{
    struct member *m = &g->members[i];

    m->here = true;
    m->completed = -1;
    m->assignor = assignor_new();
    snprintf(m->id, sizeof(m->id), "m%d-%d", i, g->born++);
}

static void vanish(struct group *g, int i)
{
    g->members[i].here = false;
    work_list_deinit(&g->members[i].held);
    assignor_free(&g->members[i].assignor);
}

static void group_deinit(struct group *g)
{
    for (int i = 0; i < MEMBERS; i++)
        vanish(g, i);
}

static size_t gather(struct group *g, struct assignor_member *members, struct assignor_conn *conns,
                     size_t *conn_count)
{
    size_t count = 0;

    *conn_count = 0;
    for (int i = 0; i < MEMBERS; i++)
        if (g->members[i].here)
            members[count++] = (struct assignor_member){
                g->members[i].id, g->members[i].held.items == 0 ? NULL : &g->members[i].held};
    for (int i = 0; i < CONNS; i++)
        if (g->tasks[i] >= 0)
            conns[(*conn_count)++] = (struct assignor_conn){g->names[i], g->tasks[i]};
    return count;
}

static struct member *member_named(struct group *g, const char *id)
{
    for (int i = 0; i < MEMBERS; i++)
        if (g->members[i].here && strcmp(g->members[i].id, id) == 0)
            return &g->members[i];
    return NULL;
}

static void remove_all(struct work_list *from, const struct work_list *what)
{
    for (size_t e = 0; e < what->count; e++)
        for (size_t t = 0; t < what->entries[e].count; t++)
            assert_true(work_list_remove(from, what->entries[e].conn, what->entries[e].tasks[t]));
}

static void count_kinds(const struct work_list *list, size_t *connectors, size_t *tasks)
{
    *connectors = 0;
    for (size_t e = 0; e < list->count; e++)
        for (size_t t = 0; t < list->entries[e].count; t++)
            *connectors += list->entries[e].tasks[t] == WORK_LIST_CONNECTOR;
    *tasks = list->items - *connectors;
}

/* A member does what its share says: Java's merge of snapshot and assignment. */
static void act(struct group *g, const struct assignor_share *share)
{
    struct member *m = member_named(g, share->member);
    size_t connectors;
    size_t tasks;

    assert_non_null(m);
    remove_all(&m->held, &share->revoked);
    for (size_t e = 0; e < share->assigned.count; e++)
        for (size_t t = 0; t < share->assigned.entries[e].count; t++)
            assert_false(work_list_has(&m->held, share->assigned.entries[e].conn,
                                       share->assigned.entries[e].tasks[t]));
    assert_int_equal(work_list_merge(&m->held, &share->assigned), 0);
    assert_true(work_list_same(&m->held, &share->owned));
    m->completed = g->generation;
    count_kinds(&share->revoked, &connectors, &tasks);
    g->stopped += share->revoked.items;
    g->tasks_stopped += tasks;
    g->started += share->assigned.items;
    g->revoked |= share->revoked.items > 0;
}

static void round_led_by_first(struct group *g)
{
    struct assignor_member members[MEMBERS];
    struct assignor_conn conns[CONNS];
    struct assignor_plan plan = {0};
    struct member *leader = NULL;
    struct assignor_round round = {.now_ms = g->now_ms,
                                   .generation = ++g->generation,
                                   .max_delay_ms = g->max_delay_ms,
                                   .members = members,
                                   .conns = conns,
                                   .leavers = g->leavers,
                                   .leaver_count = g->leaver_count};

    round.member_count = gather(g, members, conns, &round.conn_count);
    for (int i = MEMBERS - 1; i >= 0; i--)
        leader = g->members[i].here ? &g->members[i] : leader;
    assert_non_null(leader);
    round.last_completed = leader->completed;
    assert_int_equal(assignor_make(leader->assignor, ASSIGNOR_MILLRACE, &round, &plan), 0);
    assert_int_equal(plan.count, round.member_count);
    g->stopped = g->tasks_stopped = g->started = 0;
    g->revoked = false;
    g->delay_ms = plan.delay_ms;
    for (size_t i = 0; i < plan.count; i++)
        act(g, &plan.shares[i]);
    assignor_plan_deinit(&plan);
    g->now_ms += 10;
}

/* --- what must hold --------------------------------------------------------------------------- */

static size_t holders(struct group *g, const char *conn, int32_t task)
{
    size_t count = 0;

    for (int i = 0; i < MEMBERS; i++)
        count += g->members[i].here && work_list_has(&g->members[i].held, conn, task);
    return count;
}

static void assert_never_twice(struct group *g)
{
    for (int c = 0; c < CONNS; c++)
        for (int32_t t = -1; t < 40; t++)
            assert_true(holders(g, g->names[c], t) <= 1);
}

static void assert_all_assigned(struct group *g)
{
    size_t configured = 0;
    size_t held = 0;

    for (int c = 0; c < CONNS; c++)
        for (int32_t t = -1; t < g->tasks[c]; t++, configured++)
            if (holders(g, g->names[c], t) != 1)
                fail_msg("seed state: %s/%d has %zu holders", g->names[c], t,
                         holders(g, g->names[c], t));
    for (int i = 0; i < MEMBERS; i++)
        held += g->members[i].here ? g->members[i].held.items : 0;
    assert_int_equal(held, configured);
}

static void spread(const size_t *counts, size_t n)
{
    size_t low = SIZE_MAX;
    size_t high = 0;

    for (size_t i = 0; i < n; i++) {
        low = counts[i] < low ? counts[i] : low;
        high = counts[i] > high ? counts[i] : high;
    }
    assert_true(n == 0 || high - low <= 1);
}

static void assert_even(struct group *g)
{
    size_t connectors[MEMBERS];
    size_t tasks[MEMBERS];
    size_t both[MEMBERS];
    size_t n = 0;

    for (int i = 0; i < MEMBERS; i++)
        if (g->members[i].here) {
            count_kinds(&g->members[i].held, &connectors[n], &tasks[n]);
            both[n] = connectors[n] + tasks[n];
            n++;
        }
    spread(connectors, n);
    spread(tasks, n);
    spread(both, n);
}

static size_t configured_tasks(struct group *g, const struct work_list *held)
{
    size_t count = 0;

    for (int c = 0; c < CONNS; c++)
        for (int32_t t = 0; t < g->tasks[c]; t++)
            count += work_list_has(held, g->names[c], t);
    return count;
}

/* The fewest tasks that must stop so that tasks are even, and those that are not configured any
 * longer. */
static size_t fewest_stops(struct group *g)
{
    size_t total = 0;
    size_t members = 0;
    size_t above = 0;
    size_t stops = 0;

    for (int i = 0; i < MEMBERS; i++)
        members += g->members[i].here;
    for (int c = 0; c < CONNS; c++)
        total += g->tasks[c] > 0 ? (size_t)g->tasks[c] : 0;
    for (int i = 0; i < MEMBERS; i++) {
        size_t connectors;
        size_t tasks;
        size_t wanted = configured_tasks(g, &g->members[i].held);

        count_kinds(&g->members[i].held, &connectors, &tasks);
        stops += tasks - wanted;
        if (wanted <= total / members)
            continue;
        stops += wanted - total / members;
        above++;
    }
    return stops - (above < total % members ? above : total % members);
}

/* Rounds until nothing is revoked and nothing waits. */
static void settle(struct group *g, int limit)
{
    size_t fewest = fewest_stops(g);

    for (int rounds = 1;; rounds++) {
        if (rounds > limit)
            fail_msg("not settled after %d rounds", limit);
        round_led_by_first(g);
        assert_never_twice(g);
        assert_true(g->tasks_stopped <= fewest);
        fewest -= g->tasks_stopped;
        if (g->delay_ms > 0)
            g->now_ms += g->delay_ms;
        else if (!g->revoked)
            break;
    }
    assert_all_assigned(g);
    assert_even(g);
    round_led_by_first(g); /* and then it stays */
    assert_int_equal(g->stopped + g->started, 0);
}

static void change(struct group *g)
{
    int i = chance(g, MEMBERS);
    int c = chance(g, CONNS);

    switch (chance(g, 3)) {
    case 0:
        if (g->members[i].here)
            vanish(g, i);
        else
            join(g, i);
        break;
    case 1:
        g->tasks[c] = chance(g, 4) == 0 ? -1 : chance(g, 9);
        break;
    default:
        if (!g->members[i].here)
            join(g, i);
        break;
    }
    for (i = 0; i < MEMBERS && !g->members[i].here; i++)
        ;
    if (i == MEMBERS)
        join(g, 0);
}

static void everything_is_assigned_once_and_evenly_in_few_rounds(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct group g;

        group_init(&g, seed);
        g.max_delay_ms = seed % 3 == 0 ? 60000 : 0;
        join(&g, 0);
        for (int step = 0; step < 12; step++) {
            for (int changes = 1 + chance(&g, 3); changes > 0; changes--)
                change(&g);
            settle(&g, ROUNDS_MAX);
        }
        group_deinit(&g);
    }
}

/* --- single cases ----------------------------------------------------------------------------- */

static void three_workers(struct group *g)
{
    group_init(g, 1);
    g->max_delay_ms = 60000;
    g->tasks[0] = 7;
    g->tasks[1] = 4;
    for (int i = 0; i < 3; i++)
        join(g, i);
    settle(g, ROUNDS_MAX);
}

/* One connector, one task, two workers: Java leaves the second idle. */
static void a_newcomer_is_not_left_idle_by_kinds_that_are_even_alone(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 1);
    g.tasks[0] = 1;
    join(&g, 0);
    settle(&g, ROUNDS_MAX);
    join(&g, 1);
    round_led_by_first(&g);
    assert_int_equal(g.stopped, 1);
    assert_true(work_list_has(&g.members[0].held, "c0", 0)); /* the connector moves, not the task */
    settle(&g, ROUNDS_MAX);
    assert_int_equal(g.members[1].held.items, 1);
    group_deinit(&g);
}

/* 13 items on 3 workers; a fourth one gets its 2 or 3 tasks, and no other is stopped. */
static void growth_stops_no_more_than_the_newcomer_takes(void **state)
{
    struct group g;

    (void)state;
    three_workers(&g);
    join(&g, 3);
    round_led_by_first(&g);
    assert_in_range(g.stopped, 2, 3);
    assert_int_equal(g.started, 0);
    settle(&g, ROUNDS_MAX);
    assert_in_range(g.members[3].held.items, 3, 4);
    group_deinit(&g);
}

static void silence_waits_and_nothing_else_stops(void **state)
{
    struct group g;

    (void)state;
    three_workers(&g);
    vanish(&g, 2);
    round_led_by_first(&g);
    assert_int_equal(g.stopped + g.started, 0);
    assert_int_equal(g.delay_ms, 60000);
    g.now_ms += 20000;
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 60000 - 20010); /* counted from the loss */
    g.tasks[2] = 1;                              /* new work does not wait */
    round_led_by_first(&g);
    assert_int_equal(g.started, 2);
    assert_int_equal(holders(&g, "c2", -1) + holders(&g, "c2", 0), 2);
    g.now_ms += g.delay_ms;
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 0);
    settle(&g, ROUNDS_MAX);
    group_deinit(&g);
}

static void goodbye_moves_work_at_once_and_stops_nothing_else(void **state)
{
    struct group g;
    char id[16];
    size_t had;

    (void)state;
    three_workers(&g);
    had = g.members[2].held.items;
    memcpy(id, g.members[2].id, sizeof(id));
    g.leavers[g.leaver_count++] = id;
    vanish(&g, 2);
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 0);
    assert_int_equal(g.started, had);
    assert_all_assigned(&g);
    group_deinit(&g);
}

/* Whoever says goodbye and is still in the round gets nothing more, and what it holds is taken from
 * it. */
static void a_leaver_that_is_still_here_is_emptied(void **state)
{
    struct group g;

    (void)state;
    three_workers(&g);
    g.leavers[g.leaver_count++] = g.members[2].id;
    round_led_by_first(&g);
    assert_int_equal(g.members[2].held.items, 0);
    round_led_by_first(&g);
    assert_all_assigned(&g);
    assert_int_equal(g.members[2].held.items, 0);
    group_deinit(&g);
}

static void a_stand_in_gets_the_work_of_the_silent_at_once(void **state)
{
    struct group g;
    size_t had;

    (void)state;
    three_workers(&g);
    had = g.members[2].held.items;
    vanish(&g, 2);
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 60000);
    join(&g, 4);
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 0);
    assert_int_equal(g.stopped, 0);
    assert_int_equal(g.members[4].held.items, had);
    group_deinit(&g);
}

static void who_comes_back_with_its_work_keeps_it(void **state)
{
    struct group g;
    struct member away;

    (void)state;
    three_workers(&g);
    away = g.members[2];
    g.members[2].here = false;
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 60000);
    g.members[2] = away;
    round_led_by_first(&g);
    assert_int_equal(g.delay_ms, 0);
    assert_int_equal(g.stopped + g.started, 0);
    group_deinit(&g);
}

static void work_held_twice_goes_on_where_it_was_assigned(void **state)
{
    struct group g;
    struct member *owner;
    struct member *other;

    (void)state;
    three_workers(&g);
    owner = work_list_has(&g.members[0].held, "c0", 0) ? &g.members[0] : &g.members[1];
    owner = work_list_has(&g.members[2].held, "c0", 0) ? &g.members[2] : owner;
    other = owner == &g.members[0] ? &g.members[1] : &g.members[0];
    assert_int_equal(work_list_add(&other->held, "c0", 0), 0);
    round_led_by_first(&g);
    assert_int_equal(g.stopped, 1);
    assert_true(work_list_has(&owner->held, "c0", 0));
    assert_all_assigned(&g);
    group_deinit(&g);
}

static void a_new_leader_takes_away_what_is_not_configured(void **state)
{
    struct group g;

    (void)state;
    three_workers(&g);
    assert_int_equal(work_list_add(&g.members[1].held, "deleted", 0), 0);
    vanish(&g, 0);
    round_led_by_first(&g);
    assert_false(work_list_has(&g.members[1].held, "deleted", 0));
    settle(&g, ROUNDS_MAX);
    group_deinit(&g);
}

/* A member that goes on reporting what it should have stopped. */
static void revoking_without_effect_does_not_go_on_for_ever(void **state)
{
    struct work_list held = {0};
    struct assignor_member members[] = {{"a", &held}, {"b", NULL}};
    struct assignor_conn conn = {"c", 10};
    struct assignor *assignor = assignor_new();
    struct assignor_round round = {.conns = &conn,
                                   .conn_count = 1,
                                   .members = members,
                                   .member_count = 2,
                                   .last_completed = -1};
    int pauses = 0;

    (void)state;
    for (int t = -1; t < 10; t++)
        assert_int_equal(work_list_add(&held, "c", t), 0);
    for (int i = 0; i < 10; i++) {
        struct assignor_plan plan = {0};

        round.generation = round.last_completed + 1;
        assert_int_equal(assignor_make(assignor, ASSIGNOR_MILLRACE, &round, &plan), 0);
        round.last_completed = round.generation;
        pauses += plan.delay_ms > 0;
        assert_true((plan.delay_ms > 0) != (plan.shares[0].revoked.items > 0));
        assignor_plan_deinit(&plan);
    }
    assert_int_equal(pauses, 6);
    work_list_deinit(&held);
    assignor_free(&assignor);
}

/* Three heavy tasks of one connector do not land on one worker. */
static void tasks_of_one_connector_are_spread(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 1);
    for (int c = 0; c < 4; c++)
        g.tasks[c] = 3;
    for (int i = 0; i < 3; i++)
        join(&g, i);
    settle(&g, ROUNDS_MAX);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 4; c++) {
            int here = 0;

            for (int32_t t = 0; t < 3; t++)
                here += work_list_has(&g.members[i].held, g.names[c], t);
            assert_int_equal(here, 1);
        }
    group_deinit(&g);
}

/* From 1 to 5 to 2 workers, those that go say so. */
static void one_to_five_to_two_workers_stays_even(void **state)
{
    struct group g;
    char ids[3][16];

    (void)state;
    group_init(&g, 1);
    g.max_delay_ms = 300000;
    for (int c = 0; c < 5; c++)
        g.tasks[c] = 4;
    join(&g, 0);
    settle(&g, ROUNDS_MAX);
    for (int i = 1; i < 5; i++)
        join(&g, i);
    settle(&g, 2);
    for (int i = 2; i < 5; i++) {
        memcpy(ids[i - 2], g.members[i].id, sizeof(ids[0]));
        g.leavers[g.leaver_count++] = ids[i - 2];
        vanish(&g, i);
        round_led_by_first(&g);
        assert_int_equal(g.delay_ms, 0);
        assert_int_equal(g.stopped, 0);
        assert_even(&g);
    }
    group_deinit(&g);
}

static void big_groups_are_planned_quickly(void **state)
{
    enum { MANY = 1000, WORKERS = 20 };
    static char names[MANY][16];
    static struct assignor_conn conns[MANY];
    struct assignor_member members[WORKERS];
    char ids[WORKERS][16];
    struct assignor *assignor = assignor_new();
    struct assignor_plan plan = {0};
    struct assignor_round round = {.conns = conns,
                                   .conn_count = MANY,
                                   .members = members,
                                   .member_count = WORKERS,
                                   .last_completed = -1,
                                   .generation = 1};

    (void)state;
    for (int c = 0; c < MANY; c++) {
        snprintf(names[c], sizeof(names[c]), "conn-%d", c);
        conns[c] = (struct assignor_conn){names[c], 10};
    }
    for (int i = 0; i < WORKERS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "w%d", i);
        members[i] = (struct assignor_member){ids[i], NULL};
    }
    assert_int_equal(assignor_make(assignor, ASSIGNOR_MILLRACE, &round, &plan), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(plan.shares[i].owned.items, 11 * MANY / WORKERS);
    assignor_plan_deinit(&plan);
    assignor_free(&assignor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_assigned_once_and_evenly_in_few_rounds),
        cmocka_unit_test(a_newcomer_is_not_left_idle_by_kinds_that_are_even_alone),
        cmocka_unit_test(growth_stops_no_more_than_the_newcomer_takes),
        cmocka_unit_test(silence_waits_and_nothing_else_stops),
        cmocka_unit_test(goodbye_moves_work_at_once_and_stops_nothing_else),
        cmocka_unit_test(a_leaver_that_is_still_here_is_emptied),
        cmocka_unit_test(a_stand_in_gets_the_work_of_the_silent_at_once),
        cmocka_unit_test(who_comes_back_with_its_work_keeps_it),
        cmocka_unit_test(work_held_twice_goes_on_where_it_was_assigned),
        cmocka_unit_test(a_new_leader_takes_away_what_is_not_configured),
        cmocka_unit_test(revoking_without_effect_does_not_go_on_for_ever),
        cmocka_unit_test(tasks_of_one_connector_are_spread),
        cmocka_unit_test(one_to_five_to_two_workers_stays_even),
        cmocka_unit_test(big_groups_are_planned_quickly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
