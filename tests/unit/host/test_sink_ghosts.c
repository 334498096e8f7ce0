/* SPDX-License-Identifier: Apache-2.0 */
/* Where no ghosts can be found, or must not be looked for. That they are found and made to leave:
 * tests/integration/test_hostile.c, since it takes a real group. */
#include "host/task/sink/sink_ghosts.h"

#include "base/clock.h"
#include "task_rig.h"
#include "wire/wire_call.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#define OWN "connector-consumer-conn-0"

static int64_t find(const char *bootstrap, const char *client_id, const char *group)
{
    struct sink_ghosts ghosts = {0};
    int64_t began = clock_ms();
    struct props java;

    props_init(&java);
    props_set(&java, "bootstrap.servers", bootstrap);
    if (client_id != NULL)
        props_set(&java, "client.id", client_id);
    if (group != NULL)
        props_set(&java, "group.id", group);
    sink_ghosts_find(&ghosts, &java, OWN, NULL);
    assert_false(sink_ghosts_pending(&ghosts));
    assert_int_equal(ghosts.count, 0);
    sink_ghosts_deinit(&ghosts);
    props_deinit(&java);
    return clock_ms() - began;
}

/* Several tasks may bear an id that the user has set: none of them is made to leave. No broker is
 * asked. */
static void an_id_that_is_not_this_tasks_own_is_not_looked_for(void **state)
{
    assert_true(find("127.0.0.1:1", "mine", "connect-conn") < 500);
    assert_true(find("127.0.0.1:1", NULL, "connect-conn") < 500);
    assert_true(find("127.0.0.1:1", OWN, NULL) < 500);
}

static void brokers_that_do_not_answer_hold_nothing_up(void **state)
{
    assert_true(find("127.0.0.1:1", OWN, "connect-conn") < 3000);
}

/* The mock cluster is one. */
static void brokers_without_the_request_have_no_ghosts(void **state)
{
    struct rig rig;

    rig_init(&rig, 1, NULL);
    assert_true(find(rig.bootstrap, OWN, "connect-conn") < 3000);
    rig_deinit(&rig);
}

/* The task looks between two of them whether it is to stop, and whether it has its lease. */
static void ghosts_are_made_to_leave_one_at_a_time(void **state)
{
    struct sink_ghosts ghosts = {.count = 2, .joined = true, .give_up_ms = INT64_MAX};
    struct props java;

    props_init(&java);
    props_set(&java, "bootstrap.servers", "127.0.0.1:1");
    ghosts.call = wire_call_new(&java, NULL);
    ghosts.group = strdup("connect-conn");
    ghosts.client_id = strdup(OWN);
    ghosts.members[0] = strdup("ghost-0");
    ghosts.members[1] = strdup("ghost-1");
    sink_ghosts_evict(&ghosts, "ours");
    assert_true(sink_ghosts_pending(&ghosts));
    assert_int_equal(ghosts.next, 1);
    sink_ghosts_evict(&ghosts, "ours");
    assert_false(sink_ghosts_pending(&ghosts));
    props_deinit(&java);
}

/* Brokers that never answer would be asked for each of them. */
static void ghosts_are_given_up_when_their_time_is_over(void **state)
{
    struct sink_ghosts ghosts = {.count = SINK_GHOSTS_MAX, .joined = true, .give_up_ms = 1};
    struct props java;

    props_init(&java);
    props_set(&java, "bootstrap.servers", "127.0.0.1:1");
    ghosts.call = wire_call_new(&java, NULL);
    for (size_t i = 0; i < SINK_GHOSTS_MAX; i++)
        ghosts.members[i] = strdup("ghost");
    ghosts.group = strdup("connect-conn");
    sink_ghosts_evict(&ghosts, "ours");
    assert_false(sink_ghosts_pending(&ghosts));
    props_deinit(&java);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_that_is_not_this_tasks_own_is_not_looked_for),
        cmocka_unit_test(brokers_that_do_not_answer_hold_nothing_up),
        cmocka_unit_test(brokers_without_the_request_have_no_ghosts),
        cmocka_unit_test(ghosts_are_made_to_leave_one_at_a_time),
        cmocka_unit_test(ghosts_are_given_up_when_their_time_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
