/* SPDX-License-Identifier: Apache-2.0 */
/* What a host resolves comes back as references in the configurations of tasks, and nothing else is
 * touched. */
#include "host/host_references.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct providers *providers;

static int set_up(void **state)
{
    struct props worker;

    (void)state;
    setenv("TEST_REF_PASSWORD", "s3cr3t-word", 1);
    setenv("TEST_REF_SHORT", "1", 1);
    props_init(&worker);
    props_set(&worker, "config.providers", "env");
    props_set(&worker, "config.providers.env.class", "EnvVarConfigProvider");
    providers = providers_new(&worker, false, NULL, NULL);
    props_deinit(&worker);
    return providers != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    providers_free(&providers);
    return 0;
}

static int resolve(const struct providers *with, const struct props *raw, struct props *out)
{
    return host_references_resolve(
        &(struct host_references){.providers = with, .config = raw, .tell = true}, out, NULL);
}

static void expect(const struct props *task, const char *key, const char *value)
{
    assert_string_equal(props_get(task, key), value);
}

static void a_task_s_configuration_has_references_where_values_were(void **state)
{
    struct props raw, task;

    (void)state;
    props_init(&raw);
    props_set(&raw, "password", "${env:TEST_REF_PASSWORD}");
    props_set(&raw, "count", "${env:TEST_REF_SHORT}");
    props_set(&raw, "literal", "s3cr3t-word written out");
    props_set(&raw, "changed", "something");
    props_set(&raw, "odd", "${none:x}");
    assert_int_equal(resolve(providers, &raw, &task), 0);
    expect(&task, "password", "s3cr3t-word");
    expect(&task, "count", "1");
    expect(&task, "odd", "${none:x}");
    /* What a connector may do. */
    props_set(&task, "copy", "s3cr3t-word");
    props_set(&task, "url", "db:x?password=s3cr3t-word;n=1");
    props_set(&task, "changed", "now s3cr3t-word");
    props_set(&task, "odd", "its own");
    props_set(&task, "nothing", NULL);
    props_set(&task, "plain", "1");
    host_references_restore(&raw, &task);
    expect(&task, "password", "${env:TEST_REF_PASSWORD}");
    expect(&task, "count", "${env:TEST_REF_SHORT}");
    expect(&task, "literal", "s3cr3t-word written out");
    expect(&task, "copy", "${env:TEST_REF_PASSWORD}");
    expect(&task, "url", "db:x?password=${env:TEST_REF_PASSWORD};n=1");
    expect(&task, "changed", "now ${env:TEST_REF_PASSWORD}");
    expect(&task, "odd", "${none:x}"); /* as in Java */
    expect(&task, "plain", "1");
    assert_null(props_get(&task, "nothing"));
    props_deinit(&raw);
    props_deinit(&task);
}

static void without_providers_everything_stays(void **state)
{
    struct props raw, task;

    (void)state;
    props_init(&raw);
    props_set(&raw, "a", "${env:TEST_REF_PASSWORD}");
    assert_int_equal(resolve(NULL, &raw, &task), 0);
    assert_true(props_equal(&raw, &task));
    props_deinit(&raw);
    props_deinit(&task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_s_configuration_has_references_where_values_were),
        cmocka_unit_test(without_providers_everything_stays),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
