/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Connect as PostgreSQL reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "postgres/pg_text.h"
#include "support/unit/plugin_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct plugin_host *h, const struct mr_schema *schema, struct mr_value v,
                   const char *want)
{
    struct pg_text t = {0};
    struct mr_error err = {0};

    assert_int_equal(pg_text_value(&t, plugin_host_arena(h), schema, v, &err), MR_OK);
    assert_string_equal(t.p == NULL ? "" : t.p, want);
    pg_text_deinit(&t);
}

static const struct mr_schema *schema(const struct mr_schema_spec *spec)
{
    const struct mr_schema *made = host_api_table.schema_make(spec, sizeof(*spec), NULL);

    assert_non_null(made);
    return made;
}

static const struct mr_schema *kind(uint8_t of)
{
    return schema(&(struct mr_schema_spec){.kind = of, .optional = true});
}

static void scalars_are_written_as_postgresql_reads_them(void **state)
{
    struct plugin_host *h = *state;

    expect(h, NULL, mr_bool(true), "true");
    expect(h, NULL, mr_int8(-128), "-128");
    expect(h, NULL, mr_long(INT64_MIN), "-9223372036854775808");
    expect(h, NULL, mr_float(0.1f), "0.100000001");
    expect(h, NULL, mr_double(0.1), "0.10000000000000001");
    expect(h, NULL, mr_double(NAN), "NaN");
    expect(h, NULL, mr_double(-INFINITY), "-Infinity");
    expect(h, NULL, mr_str(""), "");
    expect(h, NULL, mr_str("a\tb\\"), "a\tb\\");
    expect(h, NULL, mr_bytes("\x00\xff", 2), "\\x00ff");
    expect(h, NULL, mr_bytes("", 0), "\\x");
}

static void times_are_utc_and_of_any_year(void **state)
{
    static const int64_t day_ms = 86400000;
    struct plugin_host *h = *state;

    expect(h, NULL, mr_date(0), "1970-01-01");
    expect(h, NULL, mr_date(-1), "1969-12-31");
    expect(h, NULL, mr_date(11016), "2000-02-29");
    expect(h, NULL, mr_date(47540), "2100-02-28");
    expect(h, NULL, mr_date(47541), "2100-03-01");
    expect(h, NULL, mr_date(-719162), "0001-01-01");
    expect(h, NULL, mr_date(-719163), "0001-12-31 BC");
    expect(h, NULL, mr_date(2932897), "10000-01-01");
    expect(h, NULL, mr_time(86399999), "23:59:59.999");
    expect(h, NULL, mr_timestamp(-1), "1969-12-31 23:59:59.999");
    expect(h, NULL, mr_timestamp(-719163 * day_ms), "0001-12-31 00:00:00.000 BC");
    expect(h, NULL, mr_timestamp(1234567890123), "2009-02-13 23:31:30.123");
}

static void lists_are_arrays_where_there_is_such_a_type(void **state)
{
    struct plugin_host *h = *state;
    const struct mr_schema *texts =
        schema(&(struct mr_schema_spec){.kind = MR_KIND_LIST, .value = kind(MR_KIND_STRING)});
    const struct mr_schema *lists =
        schema(&(struct mr_schema_spec){.kind = MR_KIND_LIST, .value = texts});
    struct mr_value v = mr_list(plugin_host_arena(h), 3), outer;

    mr_items(v)[0] = mr_str("a\"b\\");
    mr_items(v)[2] = mr_str("");
    expect(h, texts, v, "{\"a\\\"b\\\\\",NULL,\"\"}");
    expect(h, texts, mr_list(plugin_host_arena(h), 0), "{}");
    outer = mr_list(plugin_host_arena(h), 1);
    mr_items(outer)[0] = v;
    expect(h, lists, outer, "[[\"a\\\"b\\\\\",null,\"\"]]");
    assert_string_equal(pg_text_type(texts), "text[]");
    assert_string_equal(pg_text_type(lists), "jsonb");
}

static void the_rest_is_json(void **state)
{
    struct plugin_host *h = *state;
    const struct mr_schema_field fields[] = {{"n", kind(MR_KIND_FLOAT64)},
                                             {"t\"", kind(MR_KIND_STRING)}};
    const struct mr_schema *of = schema(
        &(struct mr_schema_spec){.kind = MR_KIND_STRUCT, .fields = fields, .field_count = 2});
    struct mr_value s = mr_struct_new(plugin_host_arena(h), of);
    struct mr_value m = mr_map(plugin_host_arena(h), 2);

    mr_slots(s)[0] = mr_double(INFINITY);
    mr_slots(s)[1] = mr_str("x\n\x01");
    expect(h, of, s, "{\"n\":\"Infinity\",\"t\\\"\":\"x\\u000a\\u0001\"}");
    mr_pairs(m)[0] = (struct mr_pair){mr_int(7), mr_bool(false)};
    mr_pairs(m)[1] = (struct mr_pair){mr_str("d"), mr_date(0)};
    expect(h, NULL, m, "{\"7\":false,\"d\":\"1970-01-01\"}");
    assert_string_equal(pg_text_type(of), "jsonb");
    assert_string_equal(pg_text_type(NULL), "jsonb");
}

static void every_logical_type_has_a_column_type(void **state)
{
    static const struct {
        uint8_t kind;
        const char *name, *type;
    } cases[] = {
        {MR_KIND_BYTES, MR_LOGICAL_DECIMAL, "numeric"},
        {MR_KIND_INT32, MR_LOGICAL_DATE, "date"},
        {MR_KIND_INT32, MR_LOGICAL_TIME, "time"},
        {MR_KIND_INT64, MR_LOGICAL_TIMESTAMP, "timestamp"},
        {MR_KIND_INT64, "of.our.own", "bigint"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(pg_text_type(schema(&(struct mr_schema_spec){.kind = cases[i].kind,
                                                                         .name = cases[i].name})),
                            cases[i].type);
}

static void what_postgresql_can_not_hold_is_refused(void **state)
{
    struct plugin_host *h = *state;
    struct pg_text t = {0};
    struct mr_error err = {0};
    struct mr_value v = mr_null();

    assert_int_equal(pg_text_value(&t, plugin_host_arena(h), NULL, mr_text("a\0b", 3), &err),
                     MR_ERR_DATA);
    assert_non_null(strstr(err.text, "NUL character"));
    for (int i = 0; i < 200; i++) {
        struct mr_value outer = mr_list(plugin_host_arena(h), 1);

        mr_items(outer)[0] = v;
        v = outer;
    }
    err = (struct mr_error){0};
    assert_int_equal(pg_text_value(&t, plugin_host_arena(h), NULL, v, &err), MR_ERR_DATA);
    assert_non_null(strstr(err.text, "nested deeper than 100 levels"));
    pg_text_deinit(&t);
}

static void names_literals_and_cells_are_escaped(void **state)
{
    struct pg_text t = {0};

    (void)state;
    pg_text_name(&t, "a\"b");
    pg_text_literal(&t, "c'd\\", 4);
    pg_text_copy_cell(&t, "\te\\\r\nf", 6);
    assert_string_equal(t.p, "\"a\"\"b\"'c''d\\'\\te\\\\\\r\\nf");
    pg_text_deinit(&t);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, plugin_host_set_up, plugin_host_tear_down)
    const struct CMUnitTest tests[] = {
        T(scalars_are_written_as_postgresql_reads_them), T(times_are_utc_and_of_any_year),
        T(lists_are_arrays_where_there_is_such_a_type),  T(the_rest_is_json),
        T(every_logical_type_has_a_column_type),         T(what_postgresql_can_not_hold_is_refused),
        T(names_literals_and_cells_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
