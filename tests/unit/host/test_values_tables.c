/* SPDX-License-Identifier: Apache-2.0 */
/* Connect's conversions of values against tables of what Java does: the string form, convertTo…,
 * logical types, headers, projection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/schema_tree.h"
#include "host/data/values.h"
#include "support/unit/oracle.h"
#include "support/unit/plugin_host.h"

#include <stdlib.h>
#include <string.h>

static const char *show(struct mr_arena *arena, struct mr_value v)
{
    size_t len;
    const char *p = mr_value_string(arena, v, &len);
    char *copy = mr_alloc(arena, len + 1);

    memcpy(copy, p == NULL ? "" : p, len);
    copy[len] = '\0';
    return p == NULL ? "null" : copy;
}

/* Java has one class for all kinds of time: each as its moment, in place. */
static struct mr_value moments(struct mr_value v)
{
    if (v.kind >= MR_KIND_DATE)
        return mr_timestamp(v.u.i * (v.kind == MR_KIND_DATE ? INT64_C(86400000) : 1));
    for (uint32_t i = 0; v.kind == MR_KIND_LIST && i < v.len; i++)
        mr_items(v)[i] = moments(mr_items(v)[i]);
    for (uint32_t i = 0; v.kind == MR_KIND_MAP && i < v.len; i++) {
        mr_pairs(v)[i].key = moments(mr_pairs(v)[i].key);
        mr_pairs(v)[i].value = moments(mr_pairs(v)[i].value);
    }
    return v;
}

static bool is_value(struct mr_arena *arena, struct mr_value v, const struct mr_schema *schema,
                     const json_t *from)
{
    struct mr_value expected;

    if (!oracle_value(arena, from, schema, &expected))
        return oracle_wrong("the row's value can't be made");
    return values_equal(moments(v), moments(expected)) ||
           oracle_wrong("%s (kind %u) where Java has %s (kind %u)", show(arena, v), v.kind,
                        show(arena, expected), expected.kind);
}

static bool is_schema(struct mr_arena *arena, const struct mr_schema *schema, const json_t *from,
                      const struct mr_schema **expected)
{
    struct mr_error err = {0};
    char a[VALUES_SCHEMA_TEXT], b[VALUES_SCHEMA_TEXT];

    if (!oracle_schema(arena, from, expected, &err))
        return oracle_wrong("the row's schema can't be made: %s", err.text);
    return schema == *expected ||
           oracle_wrong("%s where Java has %s", values_schema_text(schema, a),
                        values_schema_text(*expected, b));
}

/* The row's error, or else rc is that there was none. */
static bool is_good(const json_t *row, int rc, const struct mr_error *err, bool *over)
{
    *over = rc != MR_OK || json_object_get(row, "error") != NULL;
    if (json_object_get(row, "error") != NULL)
        return oracle_error(row, err);
    return rc == MR_OK || oracle_wrong("refused: %s", err->text);
}

static int run(void **state, const char *table, const struct oracle_except *except, oracle_fn fn)
{
    struct plugin_host *h = *state;
    int failed = oracle_run(table, except, fn, plugin_host_arena(h));

    assert_false(h->batch->over);
    return failed;
}

/* --- the string form -------------------------------------------------------------------------- */

static int parse_input(struct mr_arena *arena, const json_t *row, const struct mr_schema **schema,
                       struct mr_value *v, struct mr_error *err)
{
    const json_t *input = json_object_get(row, "input");
    struct mr_value text = json_is_string(input) ? oracle_text(arena, input) : mr_null();

    return mr_value_parse(arena, mr_is_null(text) ? NULL : (const char *)text.u.p, text.len, schema,
                          v, err);
}

static bool parse_row(const json_t *row, void *arg)
{
    const json_t *output = json_object_get(row, "output");
    const struct mr_schema *schema = NULL, *expected;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;

    if (!is_good(row, parse_input(arg, row, &schema, &v, &err), &err, &over))
        return false;
    if (over)
        return true;
    return is_schema(arg, schema, json_object_get(output, "schema"), &expected) &&
           is_value(arg, v, schema, json_object_get(output, "value"));
}

static void texts_are_parsed_as_in_java(void **state)
{
    assert_int_equal(run(state, "parse-string.jsonl", NULL, parse_row), 0);
    assert_int_equal(run(state, "parse-random.jsonl", NULL, parse_row), 0);
}

static bool print_row(const json_t *row, void *arg)
{
    const json_t *output = json_object_get(row, "output");
    const struct mr_schema *schema;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;

    if (!is_good(row, parse_input(arg, row, &schema, &v, &err), &err, &over))
        return false;
    if (over)
        return true;
    return strcmp(show(arg, v), json_string_value(output)) == 0 ||
           oracle_wrong("%s where Java has %s", show(arg, v), json_string_value(output));
}

static void parsed_texts_print_as_in_java(void **state)
{
    assert_int_equal(run(state, "parse-and-print.jsonl", NULL, print_row), 0);
}

static bool read_input(struct mr_arena *arena, const json_t *row, const struct mr_schema **schema,
                       struct mr_value *v)
{
    const json_t *input = json_object_get(row, "input");

    return oracle_schema(arena, json_object_get(input, "schema"), schema, NULL) &&
           oracle_value(arena, json_object_get(input, "value"), *schema, v);
}

static bool string_row(const json_t *row, void *arg)
{
    const json_t *output = json_object_get(row, "output");
    const char *expected = json_is_string(output) ? json_string_value(output) : "null";
    const struct mr_schema *schema;
    struct mr_value v;

    if (!read_input(arg, row, &schema, &v))
        return false;
    return strcmp(show(arg, v), expected) == 0 ||
           oracle_wrong("%s where Java has %s", show(arg, v), expected);
}

static void values_print_as_in_java(void **state)
{
    static const struct oracle_except except[] = {
        {"convert-to-string-029",
         "JDK 17 prints a digit more than is needed, JDK 19 and later and this don't"},
        {0},
    };

    assert_int_equal(run(state, "convert-to-string.jsonl", except, string_row), 0);
}

/* --- conversions ------------------------------------------------------------------------------ */

static const struct mr_schema *target(const char *op, int32_t scale)
{
    static const struct {
        const char *op;
        uint8_t kind;
    } ops[] = {
        {"convertToBoolean", MR_KIND_BOOL},   {"convertToByte", MR_KIND_INT8},
        {"convertToShort", MR_KIND_INT16},    {"convertToInteger", MR_KIND_INT32},
        {"convertToLong", MR_KIND_INT64},     {"convertToFloat", MR_KIND_FLOAT32},
        {"convertToDouble", MR_KIND_FLOAT64}, {"convertToString", MR_KIND_STRING},
        {"convertToDate", MR_KIND_DATE},      {"convertToTime", MR_KIND_TIME},
        {"convertToList", MR_KIND_LIST},      {"convertToTimestamp", MR_KIND_TIMESTAMP},
        {"convertToMap", MR_KIND_MAP},        {"convertToStruct", MR_KIND_STRUCT},
    };

    if (strcmp(op, "convertToDecimal") == 0)
        return schema_tree_decimal(scale, NULL);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (strcmp(op, ops[i].op) != 0)
            continue;
        if (ops[i].kind >= MR_KIND_LIST && ops[i].kind <= MR_KIND_STRUCT)
            return schema_tree_bare(&(struct mr_schema_spec){.kind = ops[i].kind}, NULL);
        return schema_tree_plain(ops[i].kind);
    }
    return NULL;
}

static bool convert_row(const json_t *row, void *arg)
{
    const json_t *input = json_object_get(row, "input");
    const struct mr_schema *to =
        target(json_string_value(json_object_get(row, "op")),
               (int32_t)json_integer_value(json_object_get(input, "scale")));
    const struct mr_schema *from;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;
    int rc;

    if (to == NULL)
        return oracle_wrong("an op that isn't known");
    if (!read_input(arg, row, &from, &v))
        return false;
    rc = mr_value_convert(arg, to, from, v, &v, &err);
    if (!is_good(row, rc, &err, &over))
        return false;
    if (over)
        return true;
    return is_value(arg, v, to, json_object_get(row, "output"));
}

static void values_are_converted_as_in_java(void **state)
{
    static const char bigint[] = "a BigInteger is a value of Java's that no Connect type has";
    static const struct oracle_except except[] = {
        {"convert-to-078", bigint}, {"convert-to-142", bigint}, {"convert-to-243", bigint}, {0}};

    assert_int_equal(run(state, "convert-to.jsonl", except, convert_row), 0);
}

static bool infer_row(const json_t *row, void *arg)
{
    const struct mr_schema *schema = NULL, *expected;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;

    if (!read_input(arg, row, &schema, &v))
        return false;
    schema = NULL;
    if (!is_good(row, mr_schema_infer(arg, v, &schema, &err), &err, &over))
        return false;
    if (over)
        return true;
    return is_schema(arg, schema, json_object_get(row, "output"), &expected);
}

static void schemas_are_inferred_as_in_java(void **state)
{
    assert_int_equal(run(state, "infer-schema.jsonl", NULL, infer_row), 0);
}

static bool logical_row(const json_t *row, void *arg)
{
    bool encode = strcmp(json_string_value(json_object_get(row, "op")), "encodeLogical") == 0;
    const struct mr_schema *schema;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;
    int rc;

    if (!read_input(arg, row, &schema, &v))
        return false;
    rc = encode ? mr_value_encode(arg, schema, v, &v, &err)
                : mr_value_decode(arg, schema, v, &v, &err);
    if (!is_good(row, rc, &err, &over))
        return false;
    if (over)
        return true;
    return is_value(arg, v, schema, json_object_get(row, "output"));
}

static void logical_values_are_encoded_as_in_java(void **state)
{
    assert_int_equal(run(state, "logical.jsonl", NULL, logical_row), 0);
}

static bool project_row(const json_t *row, void *arg)
{
    const json_t *input = json_object_get(row, "input");
    const struct mr_schema *from, *to;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;

    if (!oracle_schema(arg, json_object_get(input, "source"), &from, &err) ||
        !oracle_schema(arg, json_object_get(input, "target"), &to, &err) ||
        !oracle_value(arg, json_object_get(input, "value"), from, &v))
        return oracle_wrong("the row can't be made: %s", err.text);
    if (!is_good(row, mr_schema_project(arg, from, v, to, &v, &err), &err, &over))
        return false;
    if (over)
        return true;
    return is_value(arg, v, to, json_object_get(row, "output"));
}

static void values_are_projected_as_in_java(void **state)
{
    assert_int_equal(run(state, "projector.jsonl", NULL, project_row), 0);
}

/* --- structs and headers ---------------------------------------------------------------------- */

static bool struct_row(const json_t *row, void *arg)
{
    const json_t *output = json_object_get(row, "output"), *input = json_object_get(row, "input");
    const char *name = json_string_value(json_object_get(input, "field"));
    const struct mr_schema *schema;
    struct mr_error err = {0};
    struct mr_value v;
    bool over;
    int rc, at;

    if (!read_input(arg, row, &schema, &v))
        return false;
    at = mr_schema_index(schema, name);
    rc = at < 0 ? mr_fail(&err, MR_ERR_DATA, "%s is not a valid field name", name)
                : values_validate(schema, v, &err);
    if (!is_good(row, rc, &err, &over))
        return false;
    if (over)
        return true;
    schema = schema->fields[at].schema;
    return is_value(arg, mr_slot(v, (uint32_t)at), schema, json_object_get(output, "get")) &&
           is_value(arg, mr_field(v, name), schema, json_object_get(output, "getWithoutDefault"));
}

static void slots_have_defaults_as_in_java(void **state)
{
    assert_int_equal(run(state, "struct.jsonl", NULL, struct_row), 0);
}

/* addX of Java's: the kind's own schema, optional for a null text or bytes. */
static bool step_schema(struct mr_arena *arena, const json_t *step, const char *what,
                        const struct mr_schema **schema)
{
    if (strcmp(what, "addString") == 0) {
        struct mr_schema_spec spec = {.kind = MR_KIND_STRING,
                                      .optional = json_is_null(json_object_get(step, "value"))};

        *schema = schema_tree_bare(&spec, NULL);
        return true;
    }
    return strcmp(what, "add") == 0 &&
           oracle_schema(arena, json_object_get(step, "schema"), schema, NULL);
}

/* Keeps the last header of the name. */
static void retain_latest(struct record *rec, const char *name)
{
    struct mr_header last = {0}, *headers = (struct mr_header *)(uintptr_t)rec->pub.headers;
    uint32_t kept = 0, at = 0;

    for (uint32_t i = 0; i < rec->pub.header_count; i++)
        if (strcmp(headers[i].name, name) == 0)
            at = i;
    last = headers[at];
    for (uint32_t i = 0; i < rec->pub.header_count; i++)
        if (i == at || strcmp(headers[i].name, name) != 0)
            headers[kept++] = i == at ? last : headers[i];
    rec->pub.header_count = kept;
}

static bool take_step(struct mr_arena *arena, struct record *rec, const json_t *step,
                      struct mr_error *err)
{
    const char *what = json_string_value(json_object_get(step, "do"));
    const char *name = json_string_value(json_object_get(step, "name"));
    const struct mr_schema *schema;
    struct mr_value v;

    if (strcmp(what, "remove") == 0)
        mr_record_header_drop(&rec->pub, name);
    else if (strcmp(what, "retainLatest") == 0)
        retain_latest(rec, name);
    else if (strcmp(what, "lastWithName") != 0) {
        const json_t *value = json_object_get(step, "value");

        if (!step_schema(arena, step, what, &schema) || !oracle_value(arena, value, schema, &v))
            return oracle_wrong("a step that isn't known: %s", what);
        if (json_is_string(value)) /* as addString has it */
            v = oracle_text(arena, value);
        if (mr_header_check(arena, schema, v, err) == MR_OK)
            mr_record_header(&rec->pub, name, schema, v);
    }
    return true;
}

static bool headers_row(const json_t *row, void *arg)
{
    const json_t *steps = json_object_get(row, "input"), *output = json_object_get(row, "output");
    struct plugin_host h = {0};
    struct record *rec;
    struct mr_error err = {0};
    bool good = true, over;

    (void)arg;
    plugin_host_bare(&h);
    rec = batch_add(h.batch, "t");
    for (size_t i = 0; i < json_array_size(steps) && good; i++)
        good = take_step(plugin_host_arena(&h), rec, json_array_get(steps, i), &err);
    good = good && is_good(row, err.code, &err, &over);
    for (size_t i = 0; good && i < json_array_size(output); i++) {
        const struct mr_header *header = mr_header_at(&rec->pub, i);
        const json_t *expected = json_array_get(output, i);
        const struct mr_schema *schema;

        good = rec->pub.header_count == json_array_size(output) &&
               strcmp(header->name, json_string_value(json_object_get(expected, "name"))) == 0 &&
               is_schema(plugin_host_arena(&h), header->schema, json_object_get(expected, "schema"),
                         &schema) &&
               is_value(plugin_host_arena(&h), header->value, schema,
                        json_object_get(expected, "value"));
    }
    plugin_host_close(&h);
    return good;
}

static void headers_are_checked_as_in_java(void **state)
{
    assert_int_equal(run(state, "headers.jsonl", NULL, headers_row), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_parsed_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(parsed_texts_print_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(values_print_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(values_are_converted_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(schemas_are_inferred_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(logical_values_are_encoded_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(values_are_projected_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(slots_have_defaults_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(headers_are_checked_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
