/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/converter_rows.h"
#include "support/unit/plugin_host.h"

#include <string.h>

static char converter_name[] = "org.apache.kafka.connect.storage.StringConverter";

static void text_is_written_as_java_writes_it(void **state)
{
    static const struct oracle_except except[] = {
        {"string-from-007", "Java prints the object's identity, this prints base64"},
        {0},
    };

    (void)state;
    assert_int_equal(oracle_run("string-from.jsonl", except, converter_row, converter_name), 0);
}

static void text_is_read_as_java_reads_it(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("string-to.jsonl", NULL, converter_row, converter_name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_written_as_java_writes_it),
        cmocka_unit_test(text_is_read_as_java_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
