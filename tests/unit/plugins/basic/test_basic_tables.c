/* SPDX-License-Identifier: Apache-2.0 */
/* The converters of plugins/basic against tables of what Java's do, as keys, values and headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/schema_tree.h"
#include "support/unit/converter_rows.h"
#include "support/unit/plugin_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void numbers_are_written_as_java_writes_them(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("primitive-from.jsonl", NULL, converter_row, NULL), 0);
}

static void numbers_are_read_as_java_reads_them(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("primitive-to.jsonl", NULL, converter_row, NULL), 0);
}

/* JsonConverter's rows run where it is linked: test_json_converter.c. */
static bool basic_row(const json_t *row, void *arg)
{
    const char *name = json_string_value(json_object_get(row, "class"));

    return strstr(name, "JsonConverter") != NULL || converter_row(row, arg);
}

static void headers_are_written_as_java_writes_them(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("header-from.jsonl", NULL, basic_row, NULL), 0);
}

static void headers_are_read_as_java_reads_them(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("header-to.jsonl", NULL, basic_row, NULL), 0);
}

/* --- what no table says ----------------------------------------------------------------------- */

static void open_headers(struct plugin_host *h)
{
    h->stored = -1;
    assert_int_equal(plugin_host_open(h, "SimpleHeaderConverter", NULL), 0);
}

static void header_text_is_borrowed(void **state)
{
    static const char text[] = "caf\xc3\xa9 at noon";
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    const void *data;
    size_t len;

    (void)state;
    open_headers(&h);
    assert_int_equal(plugin_host_to_connect(&h, text, strlen(text), &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_STRING);
    assert_ptr_equal(v.u.p, text);
    assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    assert_ptr_equal(data, text);
    assert_int_equal(len, strlen(text));
    plugin_host_close(&h);
}

/* Where Java runs out of stack it gives the bytes. */
static void headers_too_deep_come_as_bytes(void **state)
{
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    size_t size = 200000;
    char *text = malloc(size);

    (void)state;
    open_headers(&h);
    memset(text, '[', size);
    assert_int_equal(plugin_host_to_connect(&h, text, size, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_BYTES);
    assert_int_equal(schema->kind, MR_KIND_BYTES);
    assert_int_equal(v.len, size);
    for (size_t i = 0; i + 5 <= size; i += 5)
        memcpy(text + i, "{\"a\":", 5);
    assert_int_equal(plugin_host_to_connect(&h, text, size, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_BYTES);
    memset(text, '[', 1000);
    memset(text + 1000, ']', 1000);
    assert_int_equal(plugin_host_to_connect(&h, text, 2000, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_LIST);
    memset(text, '[', 1001);
    memset(text + 1001, ']', 1001);
    assert_int_equal(plugin_host_to_connect(&h, text, 2002, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_BYTES);
    assert_int_equal(plugin_host_to_connect(&h, text, 999, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_STRING);
    free(text);
    plugin_host_close(&h);
}

/* A number as long as a record may be takes no square of time. */
static void header_numbers_are_bounded(void **state)
{
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    size_t size = 4000000;
    char *text = malloc(size);

    (void)state;
    open_headers(&h);
    memset(text, '7', size);
    assert_int_equal(plugin_host_to_connect(&h, text, size, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_BYTES);
    assert_int_equal(plugin_host_to_connect(&h, text, 30000, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_DECIMAL);
    memset(text, '0', size);
    assert_int_equal(plugin_host_to_connect(&h, text, size, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_INT8);
    free(text);
    plugin_host_close(&h);
}

static void no_memory_is_taken_for_a_record(void **state)
{
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    const void *data;
    size_t len, held;

    (void)state;
    open_headers(&h);
    assert_int_equal(plugin_host_to_connect(&h, "{\"a\":[1,2.5,\"x\"]}", 17, &schema, &v), 0);
    plugin_host_next(&h);
    held = h.batch->bytes;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(plugin_host_to_connect(&h, "{\"a\":[1,2.5,\"x\"]}", 17, &schema, &v), 0);
        assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    }
    assert_int_equal(len, 17);
    assert_int_equal(h.batch->bytes, held);
    plugin_host_close(&h);
}

static void lone_halves_of_pairs_become_question_marks(void **state)
{
    struct plugin_host h;
    const void *data;
    size_t len;

    (void)state;
    open_headers(&h);
    assert_int_equal(
        plugin_host_from_connect(&h, NULL, mr_text("a\xed\xa0\x80z\xed\xb0\x80", 8), &data, &len),
        0);
    assert_int_equal(len, 4);
    assert_memory_equal(data, "a?z?", 4);
    plugin_host_close(&h);
}

/* The kind of value that a header's text becomes. */
static uint8_t header_kind(struct plugin_host *h, const char *text)
{
    const struct mr_schema *schema;
    struct mr_value v = {0};

    assert_int_equal(plugin_host_to_connect(h, text, strlen(text), &schema, &v), 0);
    if (v.kind == MR_KIND_BYTES)
        assert_memory_equal(v.u.p, text, strlen(text));
    return v.kind;
}

/* A Decimal of a scale of its own, or lists and maps in each other as the bits of i say. */
static const char *new_schema(char text[100], int i, bool nested)
{
    char *to = text;

    if (!nested) {
        snprintf(text, 100, "1e%d", i + 400);
        return text;
    }
    for (int bit = 0; bit < 13; bit++)
        to = stpcpy(to, (i >> bit & 1) != 0 ? "{1:" : "[");
    to = stpcpy(to, "1");
    for (int bit = 12; bit >= 0; bit--)
        to = stpcpy(to, (i >> bit & 1) != 0 ? "}" : "]");
    return text;
}

/* A schema for each header is refused at a small cap: then the header comes as bytes, and others
 * have the table. Plain lists and maps come as what they are, and what needs no schema is
 * converted. */
static void headers_fill_no_table_of_schemas(void **state)
{
    const struct mr_schema_spec spec = {.kind = MR_KIND_INT32, .name = "after the flood"};
    struct mr_value nested = mr_str("[[[[1]]],[]]"), made;
    struct mr_schema list = {.kind = MR_KIND_LIST, .logical = MR_KIND_LIST};
    struct plugin_host h;
    size_t before = schema_tree_count();
    char text[100];

    (void)state;
    open_headers(&h);
    assert_int_equal(header_kind(&h, new_schema(text, 0, false)), MR_KIND_DECIMAL);
    assert_int_equal(header_kind(&h, new_schema(text, 1, true)), MR_KIND_MAP);
    for (int i = 0; i < 8192; i++) {
        header_kind(&h, new_schema(text, i, false));
        header_kind(&h, new_schema(text, i, true));
        plugin_host_next(&h);
    }
    assert_true(schema_tree_count() - before < SCHEMA_TREE_TEXTS + 10);
    assert_int_equal(header_kind(&h, new_schema(text, 8192, false)), MR_KIND_BYTES);
    assert_int_equal(header_kind(&h, new_schema(text, 8191, true)), MR_KIND_BYTES);
    assert_int_equal(header_kind(&h, "[true, false]"), MR_KIND_LIST);
    assert_int_equal(header_kind(&h, "{\"a\": 2000-01-01}"), MR_KIND_MAP);
    assert_non_null(mr_schema_make(&h.inst.pub, &spec, NULL));
    assert_int_equal(mr_value_convert(plugin_host_arena(&h), &list, NULL, nested, &made, NULL), 0);
    assert_int_equal(made.len, 2);
    assert_int_equal(mr_items(mr_items(made)[0])->len, 1);
    plugin_host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_as_java_writes_them),
        cmocka_unit_test(numbers_are_read_as_java_reads_them),
        cmocka_unit_test(headers_are_written_as_java_writes_them),
        cmocka_unit_test(headers_are_read_as_java_reads_them),
        cmocka_unit_test(header_text_is_borrowed),
        cmocka_unit_test(headers_too_deep_come_as_bytes),
        cmocka_unit_test(header_numbers_are_bounded),
        cmocka_unit_test(no_memory_is_taken_for_a_record),
        cmocka_unit_test(lone_halves_of_pairs_become_question_marks),
        cmocka_unit_test(headers_fill_no_table_of_schemas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
