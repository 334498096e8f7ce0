/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/values.h"
#include "support/unit/converter_rows.h"
#include "support/unit/plugin_host.h"

#include <stdlib.h>
#include <string.h>

static char converter_name[] = "org.apache.kafka.connect.json.JsonConverter";

static void json_is_written_as_java_writes_it(void **state)
{
    static const char shorter[] =
        "JDK 17 prints a digit more than is needed, JDK 19 and later and this don't";
    static const char bigint[] = "a BigInteger has no kind here";
    static const struct oracle_except except[] = {
        {"json-from-011", shorter},
        {"json-from-020", shorter},
        {"json-from-076", bigint},
        {0},
    };

    (void)state;
    assert_int_equal(oracle_run("json-from.jsonl", except, converter_row, converter_name), 0);
}

static void json_is_read_as_java_reads_it(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("json-to.jsonl", NULL, converter_row, converter_name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_written_as_java_writes_it),
        cmocka_unit_test(json_is_read_as_java_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
