/* SPDX-License-Identifier: Apache-2.0 */
/* Where a key goes: librdkafka's murmur2 partitioners, which every producer here has unless a
 * connector says otherwise (test_client_conf.c), against a table of what Java's default partitioner
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/base64.h"

#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_row(const json_t *row)
{
    static const int counts[] = {1, 3, 7, 12};
    const json_t *expected = json_object_get(json_object_get(row, "output"), "partition");
    const char *text = json_string_value(json_object_get(json_object_get(row, "input"), "base64"));
    unsigned char key[4096];
    size_t len = 0;

    assert_non_null(text);
    assert_true(base64_decode(text, strlen(text), key, sizeof(key), &len));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char count[8];
        int32_t wanted;

        snprintf(count, sizeof(count), "%d", counts[i]);
        wanted = (int32_t)json_integer_value(json_object_get(expected, count));
        assert_int_equal(rd_kafka_msg_partitioner_murmur2(NULL, key, len, counts[i], NULL, NULL),
                         wanted);
        if (len > 0) /* without a key, any */
            assert_int_equal(
                rd_kafka_msg_partitioner_murmur2_random(NULL, key, len, counts[i], NULL, NULL),
                wanted);
    }
}

static void keys_go_where_javas_go(void **state)
{
    FILE *file = fopen(TEST_SOURCE "/tests/data/oracle/partitioner.jsonl", "re");
    char *line = NULL;
    size_t cap = 0;
    int rows = 0;

    (void)state;
    assert_non_null(file);
    while (getline(&line, &cap, file) > 0) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);

        assert_non_null(row);
        if (!json_is_null(json_object_get(row, "input")))
            check_row(row);
        json_decref(row);
        rows++;
    }
    assert_true(rows > 40);
    free(line);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_go_where_javas_go)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
