/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas out of JSON at their limit. A file of its own: once full, the process's table of schemas
 * stays full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/plugin_host.h"

#include <stdio.h>

static char converter_name[] = "org.apache.kafka.connect.json.JsonConverter";

/* Each record with a schema of its own: when the process takes no more, that is no bad record to be
 * skipped. */
static void a_full_table_of_schemas_is_told_as_such(void **state)
{
    static const char *const keys[] = {"converter.type", "value", NULL};
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value value;
    char text[100];
    int rc = 0;

    (void)state;
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    for (int i = 0; rc == 0 && i < 200000; i++) {
        int len = snprintf(text, sizeof(text),
                           "{\"schema\":{\"type\":\"int32\",\"version\":%d},\"payload\":1}", i);

        rc = plugin_host_to_connect(&h, text, (size_t)len, &schema, &value);
        if (i % 1000 == 0)
            plugin_host_next(&h);
    }
    assert_int_equal(rc, MR_ERR_FULL);
    plugin_host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_table_of_schemas_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
