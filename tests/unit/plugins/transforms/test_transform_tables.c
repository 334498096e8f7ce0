/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/transform_rows.h"

#define TABLE(name, ...) \
    static void name##_does_what_java_does(void **state) \
    { \
        static const struct oracle_except except[] = {__VA_ARGS__{0}}; \
        (void)state; \
        assert_int_equal(oracle_run(table_of(#name), except, transform_row, NULL), 0); \
    }

/* transform_cast: transform-cast.jsonl */
static const char *table_of(const char *name)
{
    static char table[100];
    size_t i = 0;

    for (; name[i] != '\0' && i < 80; i++)
        table[i] = name[i] == '_' ? '-' : name[i];
    snprintf(table + i, sizeof(table) - i, ".jsonl");
    return table;
}

#define NO_TOPIC "a record without a topic, which none is here"
#define BIG_INTEGER "a record with a BigInteger, which no converter gives"

TABLE(transform_cast, {"Cast-143", "a BigInteger, which no converter gives"},
      {"Cast-144", "a BigInteger, which no converter gives"},
      {"Cast-145", "byte[] and ByteBuffer are one kind here: the text says class [B"}, )
TABLE(transform_drop_headers)
TABLE(transform_extract_field)
TABLE(transform_filter)
TABLE(transform_flatten)
TABLE(transform_header_from)
TABLE(transform_hoist_field)
TABLE(transform_insert_field)
TABLE(transform_insert_header)
TABLE(transform_mask_field, {"MaskField-021", BIG_INTEGER}, {"MaskField-022", BIG_INTEGER},
      {"MaskField-023", BIG_INTEGER}, {"MaskField-024", BIG_INTEGER},
      {"MaskField-025", BIG_INTEGER}, {"MaskField-026", BIG_INTEGER},
      {"MaskField-027", BIG_INTEGER}, {"MaskField-028", BIG_INTEGER},
      {"MaskField-029", BIG_INTEGER}, )
TABLE(transform_random)
TABLE(transform_regex_router, {"RegexRouter-029", NO_TOPIC}, )
TABLE(transform_replace_field)
TABLE(transform_set_schema_metadata)
TABLE(transform_timestamp_converter)
TABLE(transform_timestamp_router,
      {"TimestampRouter-003", "after the same words the text names topic, partition and offset"},
      {"TimestampRouter-012", NO_TOPIC}, )
TABLE(transform_value_to_key)
TABLE(predicate_has_header_key)
TABLE(predicate_record_is_tombstone)
TABLE(predicate_topic_name_matches, {"TopicNameMatches-003", NO_TOPIC}, )

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transform_cast_does_what_java_does),
        cmocka_unit_test(transform_drop_headers_does_what_java_does),
        cmocka_unit_test(transform_extract_field_does_what_java_does),
        cmocka_unit_test(transform_filter_does_what_java_does),
        cmocka_unit_test(transform_flatten_does_what_java_does),
        cmocka_unit_test(transform_header_from_does_what_java_does),
        cmocka_unit_test(transform_hoist_field_does_what_java_does),
        cmocka_unit_test(transform_insert_field_does_what_java_does),
        cmocka_unit_test(transform_insert_header_does_what_java_does),
        cmocka_unit_test(transform_mask_field_does_what_java_does),
        cmocka_unit_test(transform_random_does_what_java_does),
        cmocka_unit_test(transform_regex_router_does_what_java_does),
        cmocka_unit_test(transform_replace_field_does_what_java_does),
        cmocka_unit_test(transform_set_schema_metadata_does_what_java_does),
        cmocka_unit_test(transform_timestamp_converter_does_what_java_does),
        cmocka_unit_test(transform_timestamp_router_does_what_java_does),
        cmocka_unit_test(transform_value_to_key_does_what_java_does),
        cmocka_unit_test(predicate_has_header_key_does_what_java_does),
        cmocka_unit_test(predicate_record_is_tombstone_does_what_java_does),
        cmocka_unit_test(predicate_topic_name_matches_does_what_java_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
