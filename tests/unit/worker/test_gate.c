/* SPDX-License-Identifier: Apache-2.0 */
/* gate: many requests that wait are taken a few at a turn of the loop, in order, and others have their turn in between. */
#include "worker/rest/gate.h"
#include "worker/rest/rest_private.h"

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

static void a_crowd_of_requests_lets_others_have_their_turn(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    (void)state;
    f->loop = loop_new(NULL);
    f->gate = gate_new(f->loop, take, f);
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_true(gate_enter(f->gate));
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
    f->gate = gate_new(f->loop, take, f);
    for (size_t i = 0; i < TURN + 1; i++) {
        assert_true(gate_enter(f->gate));
        gate_pass(f->gate, &f->exchanges[i]);
    }
    for (exchange = gate_take(f->gate, TURN); exchange != NULL; exchange = exchange->next) {
        f->taken++;
        gate_leave(f->gate);
    }
    for (size_t i = TURN + 1; i < REQUESTS; i++) {
        assert_true(gate_enter(f->gate));
        gate_pass(f->gate, &f->exchanges[i]);
    }
    loop_run(f->loop);
    assert_int_equal(f->taken, REQUESTS);
    gate_free(&f->gate);
    loop_free(&f->loop);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_of_requests_lets_others_have_their_turn),
        cmocka_unit_test(what_comes_while_a_rest_waits_is_taken_behind_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
