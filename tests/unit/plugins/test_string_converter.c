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

static void utf8_passes_uncopied(void **state)
{
    static const char text[] = "caf\xc3\xa9";
    const char *keys[] = {"converter.type", "value", NULL};
    struct plugin_host h = {.stored = -1};
    const struct mr_schema *schema = NULL;
    struct mr_value v;
    const void *data;
    size_t len;

    (void)state;
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    assert_int_equal(plugin_host_to_connect(&h, text, 5, &schema, &v), 0);
    assert_ptr_equal(v.u.p, text);
    assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    assert_ptr_equal(data, text);
    assert_int_equal(len, 5);
    plugin_host_close(&h);
}

/* Wherever in a text of whatever length: what looks at several bytes at a time misses none. */
static void each_byte_is_looked_at(void **state)
{
    const char *keys[] = {"converter.type", "value", NULL};
    struct plugin_host h = {.stored = -1};
    const struct mr_schema *schema;
    struct mr_value v;
    char text[100];

    (void)state;
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    memset(text, 'a', sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++) {
        assert_int_equal(plugin_host_to_connect(&h, text, len, &schema, &v), 0);
        assert_ptr_equal(v.u.p, text);
        for (size_t i = 0; i < len; i++) {
            text[i] = '\x80';
            assert_int_equal(plugin_host_to_connect(&h, text, len, &schema, &v), 0);
            assert_int_equal(v.len, len + 2);
            assert_memory_equal((const char *)v.u.p + i, "\xef\xbf\xbd", 3);
            text[i] = 'a';
        }
    }
    plugin_host_close(&h);
}

/* Each direction has its own encoding, and only names of the own side count. */
static void serializer_names_win_for_their_side(void **state)
{
    const char *keys[] = {"converter.type",
                          "key",
                          "key.serializer.encoding",
                          "ISO-8859-1",
                          "key.deserializer.encoding",
                          "UTF-16BE",
                          "value.serializer.encoding",
                          "nope",
                          NULL};
    struct plugin_host h = {.stored = -1};
    const struct mr_schema *schema;
    struct mr_value v;
    const void *data;
    size_t len;

    (void)state;
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    assert_int_equal(plugin_host_to_connect(&h, "\0\xe9", 2, &schema, &v), 0);
    assert_int_equal(v.len, 2);
    assert_memory_equal(v.u.p, "\xc3\xa9", 2);
    assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    assert_int_equal(len, 1);
    assert_memory_equal(data, "\xe9", 1);
    plugin_host_close(&h);
}

/* A stateful charset goes back to its first state after each record; long text outgrows the first
 * guess of its size. */
static void every_record_stands_alone(void **state)
{
    const char *keys[] = {"converter.type", "value", "converter.encoding", "ISO-2022-JP", NULL};
    struct plugin_host h = {.stored = -1};
    const struct mr_schema *schema;
    struct mr_value v;
    const void *data;
    size_t len;
    char text[3001];

    (void)state;
    for (int i = 0; i < 1000; i++)
        memcpy(text + 3 * i, i % 2 ? "abc" : "\xe3\x81\x82", 3);
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plugin_host_from_connect(&h, NULL, mr_text(text, 3000), &data, &len), 0);
        assert_memory_equal((const char *)data, "\x1b$B", 3);
        assert_int_equal(plugin_host_to_connect(&h, data, len, &schema, &v), 0);
        assert_int_equal(v.len, 3000);
        assert_memory_equal(v.u.p, text, 3000);
    }
    plugin_host_close(&h);
}

static void nothing_is_written_without_a_mark(void **state)
{
    const char *keys[] = {"converter.type", "value", "converter.encoding", "UTF-16", NULL};
    struct plugin_host h = {.stored = -1};
    const void *data = NULL;
    size_t len;

    (void)state;
    assert_int_equal(plugin_host_open(&h, converter_name, keys), 0);
    assert_int_equal(plugin_host_from_connect(&h, NULL, mr_text("", 0), &data, &len), 0);
    assert_int_equal(len, 0);
    assert_non_null(data);
    assert_int_equal(plugin_host_from_connect(&h, NULL, mr_text("a", 1), &data, &len), 0);
    assert_memory_equal(data, "\xfe\xff\0a", 4);
    plugin_host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_written_as_java_writes_it),
        cmocka_unit_test(text_is_read_as_java_reads_it),
        cmocka_unit_test(utf8_passes_uncopied),
        cmocka_unit_test(each_byte_is_looked_at),
        cmocka_unit_test(nothing_is_written_without_a_mark),
        cmocka_unit_test(serializer_names_win_for_their_side),
        cmocka_unit_test(every_record_stands_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
