/* SPDX-License-Identifier: Apache-2.0 */
/* offset_entries: what a sink's and a source's offsets may be, with the Java worker's texts, and
 * the body of GET. */
#include "worker/herder/offsets/offset_entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *json_of(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(json);
    return json;
}

/* "t-0=5 u-1=-1", or the error's text. */
static const char *group_of(const char *text, int code)
{
    static char out[1100];
    json_t *entries = json_of(text);
    struct group_offset *list = NULL;
    struct mr_error err = {0};
    size_t count = 0, len = 0;

    assert_int_equal(offset_entries_to_group(entries, &list, &count, &err), code);
    snprintf(out, sizeof(out), "%s", err.text);
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s-%d=%lld", i > 0 ? " " : "",
                                list[i].topic, (int)list[i].partition, (long long)list[i].offset);
    group_offsets_free(list, count);
    json_decref(entries);
    return out;
}

#define T0 "{\"kafka_topic\":\"t\",\"kafka_partition\":0}"
#define PARTITION_IS(shown) \
    "Failed to parse the following Kafka partition value in the provided offsets: '" shown \
    "'. Partition values for sink connectors need to be integers."
#define OFFSET_IS(shown) \
    "Failed to parse the following Kafka offset value in the provided offsets: '" shown \
    "'. Offset values for sink connectors need to be integers."

static void numbers_may_be_texts_and_of_a_partition_the_last_counts(void **state)
{
    (void)state;
    assert_string_equal(group_of("[[" T0 ",{\"kafka_offset\":5}]]", 0), "t-0=5");
    assert_string_equal(group_of("[[" T0 ",null],[{\"kafka_topic\":7,\"kafka_partition\":\"+1\"},"
                                 "{\"kafka_offset\":\"9223372036854775807\",\"more\":[]}]]",
                                 0),
                        "t-0=-1 7-1=9223372036854775807");
    assert_string_equal(
        group_of("[[" T0 ",{\"kafka_offset\":5}],[{\"kafka_topic\":\"t\",\"kafka_partition\":1},"
                 "null],[{\"kafka_topic\":\"t\",\"kafka_partition\":\"0\"},null]]",
                 0),
        "t-0=-1 t-1=-1");
    assert_string_equal(
        group_of("[[{\"kafka_topic\":\"t\",\"kafka_partition\":-1},{\"kafka_offset\":0}]]", 0),
        "t--1=0");
}

static void what_a_sink_can_not_have_is_told_as_java_tells_it(void **state)
{
    static const struct {
        const char *entry;
        const char *text;
    } rows[] = {
        {"[null,null]", "The partition for a sink connector offset cannot be null or missing"},
        {"[{},null]", "The partition for a sink connector offset must contain the keys "
                      "'kafka_topic' and 'kafka_partition'"},
        {"[{\"kafka_topic\":null,\"kafka_partition\":null},null]",
         "Kafka topic names must be valid strings and may not be null"},
        {"[{\"kafka_topic\":\"t\",\"kafka_partition\":null},null]",
         "Kafka partitions must be valid numbers and may not be null"},
        {"[{\"kafka_topic\":\"t\",\"kafka_partition\":\"\"},null]", PARTITION_IS("")},
        {"[{\"kafka_topic\":\"t\",\"kafka_partition\":2147483648},null]",
         PARTITION_IS("2147483648")},
        {"[{\"kafka_topic\":\"t\",\"kafka_partition\":1.0},null]", PARTITION_IS("1.0")},
        {"[{\"kafka_topic\":\"t\",\"kafka_partition\":{\"a\":[1,null,\"x\"]}},null]",
         PARTITION_IS("{a=[1, null, x]}")},
        {"[" T0 ",{}]", "The offset for a sink connector should either be null or contain the key "
                        "'kafka_offset'"},
        {"[" T0 ",{\"kafka_offset\":null}]", OFFSET_IS("null")},
        {"[" T0 ",{\"kafka_offset\":true}]", OFFSET_IS("true")},
        {"[" T0 ",{\"kafka_offset\":\" 1\"}]", OFFSET_IS(" 1")},
        {"[" T0 ",{\"kafka_offset\":{\"java.math.BigInteger\":\"9223372036854775808\"}}]",
         OFFSET_IS("9223372036854775808")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char entries[512];

        snprintf(entries, sizeof(entries), "[[" T0 ",null],%s]", rows[i].entry);
        assert_string_equal(group_of(entries, MR_ERR_CONFIG), rows[i].text);
    }
    group_of("[[" T0 ",{\"kafka_offset\":-1}]]", MR_ERR_DATA);
}

static const char *checked(const char *text)
{
    static char out[1008];
    json_t *entries = json_of(text);
    struct mr_error err = {0};

    offset_entries_check(entries, &err);
    json_decref(entries);
    snprintf(out, sizeof(out), "%s", err.text);
    return out;
}

static void a_source_has_nothing_but_simple_values(void **state)
{
    (void)state;
    assert_string_equal(checked("[[{\"a\":1,\"b\":null,\"c\":\"x\",\"d\":1.5,\"e\":true},null],"
                                "[null,{}]]"),
                        "");
    assert_string_equal(checked("[[{},{}],[{\"p\":[]},null]]"),
                        "Offsets may only contain primitive types as values, but field p contains "
                        "ARRAY");
    assert_string_equal(checked("[[{},{\"o\":{\"a\":1}}]]"),
                        "Offsets may only contain primitive types as values, but field o contains "
                        "MAP");
    assert_string_equal(checked("[[{},{\"o\":{\"java.math.BigInteger\":\"1\"}}]]"),
                        "Offsets may only contain primitive types as values, but field o contains "
                        "class java.math.BigInteger");
}

static void offsets_are_shown_with_their_partitions(void **state)
{
    const struct group_offset list[] = {{(char *)(uintptr_t) "t", 3, 7}};
    json_t *entries = json_loads("[[{\"a\":\"\\u0001é\"},{\"p\":1}],[{},{}]]", 0, NULL);
    struct buf text;

    (void)state;
    buf_init(&text, 1000);
    assert_int_equal(offset_entries_write_group(&text, list, 1), 0);
    assert_string_equal(text.data, "{\"offsets\":[{\"partition\":{\"kafka_partition\":3,"
                                   "\"kafka_topic\":\"t\"},\"offset\":{\"kafka_offset\":7}}]}");
    buf_reset(&text);
    assert_int_equal(offset_entries_write(&text, entries), 0);
    assert_string_equal(text.data,
                        "{\"offsets\":[{\"partition\":{\"a\":\"\\u0001é\"},\"offset\":{\"p\":1}},"
                        "{\"partition\":{},\"offset\":{}}]}");
    buf_reset(&text);
    assert_int_equal(offset_entries_write_group(&text, list, 0), 0);
    assert_string_equal(text.data, "{\"offsets\":[]}");
    buf_deinit(&text);
    buf_init(&text, 10);
    assert_int_equal(offset_entries_write(&text, entries), MR_ERR_FULL);
    buf_deinit(&text);
    json_decref(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_may_be_texts_and_of_a_partition_the_last_counts),
        cmocka_unit_test(what_a_sink_can_not_have_is_told_as_java_tells_it),
        cmocka_unit_test(a_source_has_nothing_but_simple_values),
        cmocka_unit_test(offsets_are_shown_with_their_partitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
