/* SPDX-License-Identifier: Apache-2.0 */
/* round_pace: when the next round is asked for. */
#include "worker/herder/cluster/round_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Changes come all the time, for so long; a round takes so long. How many rounds do they make? */
static int rounds_of_a_storm(int64_t storm_ms, int64_t round_ms)
{
    struct round_pace pace = {.offset = -1};
    int64_t now = 100000, end = now + storm_ms;
    int rounds = 0;

    round_pace_ended(&pace, now - 60000, 5, 5);
    while (now < end) {
        now += round_pace_wait_ms(&pace, now);
        round_pace_asked(&pace, now);
        now += round_ms;
        round_pace_ended(&pace, now, now, now);
        rounds++;
    }
    return rounds;
}

static void the_first_change_after_a_calm_is_acted_upon_at_once(void **state)
{
    struct round_pace pace = {.offset = -1};

    (void)state;
    assert_int_equal(round_pace_wait_ms(&pace, 1), 0);
    round_pace_ended(&pace, 1000, 5, 5);
    assert_int_equal(round_pace_wait_ms(&pace, 1000), 0);
    assert_int_equal(round_pace_wait_ms(&pace, 50000), 0);
}

/* A create makes two rounds, one for the connector and one for its tasks. */
static void so_is_what_a_lone_change_brings_about(void **state)
{
    struct round_pace pace = {.offset = -1};

    (void)state;
    round_pace_ended(&pace, 1000, 5, 5);
    round_pace_asked(&pace, 5000);
    round_pace_ended(&pace, 5020, 6, 6);
    assert_int_equal(round_pace_wait_ms(&pace, 5030), 40);
    assert_int_equal(round_pace_wait_ms(&pace, 5070), 0);
}

static void a_storm_makes_few_rounds_and_none_waits_long(void **state)
{
    int rounds = rounds_of_a_storm(10000, 20);

    (void)state;
    assert_true(rounds > 10000 / (ROUND_PACE_MOST_MS + 20));
    assert_true(rounds < 30);
    assert_true(rounds_of_a_storm(1000, 20) <= 6);
}

static void after_a_calm_it_begins_anew(void **state)
{
    struct round_pace pace = {.offset = -1};

    (void)state;
    for (int i = 0; i < 10; i++) {
        round_pace_asked(&pace, 1000 + i);
        round_pace_ended(&pace, 1000 + i, i, i);
    }
    assert_int_equal(round_pace_wait_ms(&pace, 1009), ROUND_PACE_MOST_MS);
    round_pace_asked(&pace, 1009 + ROUND_PACE_CALM_MS);
    round_pace_ended(&pace, 5000, 20, 20);
    assert_int_equal(round_pace_wait_ms(&pace, 5000), ROUND_PACE_FIRST_MS);
}

/* 120 a second in Java. */
static void an_offset_that_stays_away_from_the_rounds_makes_them_rare(void **state)
{
    struct round_pace pace = {.offset = -1};
    int64_t now = 1000;
    int rounds = 0;

    (void)state;
    for (; now < 61000; rounds++) {
        now += round_pace_wait_ms(&pace, now) + 5;
        round_pace_asked(&pace, now);
        round_pace_ended(&pace, now, 7, rounds % 2 == 0 ? 5000 : 2);
    }
    assert_true(rounds < 14);
    assert_int_equal(round_pace_wait_ms(&pace, now), ROUND_PACE_STUCK_MOST_MS);
}

static void who_reads_on_is_not_held_back(void **state)
{
    struct round_pace pace = {.offset = -1};

    (void)state;
    for (int i = 0; i < 10; i++)
        round_pace_ended(&pace, 1000, 7, 8);
    assert_int_equal(round_pace_wait_ms(&pace, 1000), ROUND_PACE_STUCK_MOST_MS);
    round_pace_ended(&pace, 2000, 8, 9);
    assert_int_equal(round_pace_wait_ms(&pace, 2000), 0);
    round_pace_ended(&pace, 2000, 8, 9);
    assert_int_equal(round_pace_wait_ms(&pace, 2000), ROUND_PACE_STUCK_FIRST_MS);
    round_pace_ended(&pace, 2000, 8, 8);
    assert_int_equal(round_pace_wait_ms(&pace, 2000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_change_after_a_calm_is_acted_upon_at_once),
        cmocka_unit_test(so_is_what_a_lone_change_brings_about),
        cmocka_unit_test(a_storm_makes_few_rounds_and_none_waits_long),
        cmocka_unit_test(after_a_calm_it_begins_anew),
        cmocka_unit_test(an_offset_that_stays_away_from_the_rounds_makes_them_rare),
        cmocka_unit_test(who_reads_on_is_not_held_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
