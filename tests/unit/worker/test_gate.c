/* SPDX-License-Identifier: Apache-2.0 */
/* gate: many requests that wait are taken a few at a turn of the loop, in order, and others have
 * their turn in between. */
#include "worker/rest/gate.h"
#include "worker/rest/rest_private.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define REQUESTS 20
#define TURN 8

struct fixture {
    struct loop *loop;
    struct gate *gate;
    struct exchange exchanges[REQUESTS];
    size_t taken;
    size_t seen; /* were taken when the other function ran */
};

static void take(void *arg)
{
    struct fixture *f = arg;
    struct exchange *exchange = gate_take(f->gate, TURN);
    size_t before = f->taken;

    for (; exchange != NULL; exchange = exchange->next) {
        assert_ptr_equal(exchange, &f->exchanges[f->taken++]);
        gate_leave(f->gate);
    }
    assert_in_range(f->taken - before, 1, TURN);
    if (f->taken == REQUESTS)
        loop_stop(f->loop);
}

static void look(void *arg)
{
    struct fixture *f = arg;

    f->seen = f->taken;
}

static void fail_late(void *arg, struct exchange *exchange)
{
    fail_msg("nothing is late here");
}

static void a_crowd_of_requests_lets_others_have_their_turn(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    (void)state;
    f->loop = loop_new(NULL);
    f->gate = gate_new(f->loop, take, fail_late, f);
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_true(gate_enter(f->gate));
        f->exchanges[i].deadline_ms = INT64_MAX;
        gate_pass(f->gate, &f->exchanges[i]);
    }
    assert_int_equal(loop_post(f->loop, look, f), 0);
    loop_run(f->loop);
    assert_int_equal(f->taken, REQUESTS);
    assert_int_equal(f->seen, TURN);
    gate_free(&f->gate);
    loop_free(&f->loop);
    free(f);
}

static void what_comes_while_a_rest_waits_is_taken_behind_it(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct exchange *exchange;

    (void)state;
    f->loop = loop_new(NULL);
    f->gate = gate_new(f->loop, take, fail_late, f);
    for (size_t i = 0; i < TURN + 1; i++) {
        assert_true(gate_enter(f->gate));
        f->exchanges[i].deadline_ms = INT64_MAX;
        gate_pass(f->gate, &f->exchanges[i]);
    }
    for (exchange = gate_take(f->gate, TURN); exchange != NULL; exchange = exchange->next) {
        f->taken++;
        gate_leave(f->gate);
    }
    for (size_t i = TURN + 1; i < REQUESTS; i++) {
        assert_true(gate_enter(f->gate));
        f->exchanges[i].deadline_ms = INT64_MAX;
        gate_pass(f->gate, &f->exchanges[i]);
    }
    loop_run(f->loop);
    assert_int_equal(f->taken, REQUESTS);
    gate_free(&f->gate);
    loop_free(&f->loop);
    free(f);
}

struct late_fixture {
    struct gate *gate;
    struct exchange *got[REQUESTS];
    sem_t count;
    size_t late;
};

static void note_late(void *arg, struct exchange *exchange)
{
    struct late_fixture *f = arg;

    f->got[f->late++] = exchange;
    gate_leave(f->gate);
    sem_post(&f->count);
}

static void never(void *arg)
{
    fail_msg("the loop does not run");
}

/* The loop never runs: it is stuck. */
static void what_a_stuck_loop_does_not_take_is_given_up_in_time(void **state)
{
    struct late_fixture *f = calloc(1, sizeof(*f));
    struct exchange exchanges[4] = {
        {.deadline_ms = 1}, {.deadline_ms = INT64_MAX}, {.deadline_ms = 2}, {.deadline_ms = 3}};
    struct loop *loop = loop_new(NULL);

    (void)state;
    sem_init(&f->count, 0, 0);
    f->gate = gate_new(loop, never, note_late, f);
    for (int i = 0; i < 3; i++) {
        assert_true(gate_enter(f->gate));
        gate_pass(f->gate, &exchanges[i]);
    }
    sem_wait(&f->count);
    sem_wait(&f->count);
    assert_true(gate_enter(f->gate));
    gate_pass(f->gate, &exchanges[3]);
    sem_wait(&f->count);
    assert_int_equal(f->late, 3);
    assert_ptr_equal(f->got[2], &exchanges[3]);
    assert_ptr_equal(gate_take(f->gate, REQUESTS), &exchanges[1]);
    assert_null(exchanges[1].next);
    gate_leave(f->gate);
    gate_free(&f->gate);
    loop_free(&loop);
    sem_destroy(&f->count);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_of_requests_lets_others_have_their_turn),
        cmocka_unit_test(what_comes_while_a_rest_waits_is_taken_behind_it),
        cmocka_unit_test(what_a_stuck_loop_does_not_take_is_given_up_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
