/* SPDX-License-Identifier: Apache-2.0 */
/* Where no ghosts can be found, or must not be looked for. That they are found and made to leave: tests/integration/test_hostile.c,
 * since it takes a real group. */
#include "host/task/sink_ghosts.h"

#include "base/clock.h"
#include "task_rig.h"

#include <setjmp.h>
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
    sink_ghosts_find(&ghosts, &java, OWN);
    assert_false(sink_ghosts_pending(&ghosts));
    assert_int_equal(ghosts.count, 0);
    sink_ghosts_deinit(&ghosts);
    props_deinit(&java);
    return clock_ms() - began;
}

/* Several tasks may bear an id that the user has set: none of them is made to leave. No broker is asked. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_that_is_not_this_tasks_own_is_not_looked_for),
        cmocka_unit_test(brokers_that_do_not_answer_hold_nothing_up),
        cmocka_unit_test(brokers_without_the_request_have_no_ghosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
