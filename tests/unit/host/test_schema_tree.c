/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/schema_tree.h"
#include "support/unit/oracle.h"
#include "support/unit/plugin_host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct mr_schema *make(const struct mr_schema_spec *spec, struct mr_error *err)
{
    return schema_tree_make(spec, sizeof(*spec), err);
}

/* The kit makes lists of unknown items, as the string parser does; here they are SchemaBuilder's
 * mistake. */
static bool build(struct mr_arena *arena, const json_t *from, const struct mr_schema **schema,
                  struct mr_error *err)
{
    struct mr_schema_spec spec = {.kind = MR_KIND_LIST};
    const json_t *keys = json_object_get(from, "keys");

    if (!json_is_null(json_object_get(from, "items")) &&
        !json_is_null(json_object_get(from, "values")))
        return oracle_schema(arena, from, schema, err);
    if (keys != NULL) {
        spec.kind = MR_KIND_MAP;
        if (!oracle_schema(arena, keys, &spec.key, err))
            return false;
    }
    *schema = make(&spec, err);
    return *schema != NULL;
}

static bool build_row(const json_t *row, void *arg)
{
    struct mr_arena *arena = arg;
    const struct mr_schema *schema, *expected;
    struct mr_error err = {0};
    bool made = build(arena, json_object_get(row, "input"), &schema, &err);

    if (json_object_get(row, "error") != NULL)
        return oracle_error(row, &err);
    if (!made)
        return oracle_wrong("refused: %s", err.text);
    if (!oracle_schema(arena, json_object_get(json_object_get(row, "output"), "schema"), &expected,
                       &err))
        expected = schema;
    return schema == expected || oracle_wrong("another schema than Java's");
}

static void schemas_are_built_by_the_rules_of_java(void **state)
{
    struct plugin_host *h = *state;

    assert_int_equal(oracle_run("schema-build.jsonl", NULL, build_row, plugin_host_arena(h)), 0);
}

static bool equals_row(const json_t *row, void *arg)
{
    struct mr_arena *arena = arg;
    const json_t *input = json_object_get(row, "input");
    const struct mr_schema *a, *b;
    bool expected = json_is_true(json_object_get(json_object_get(row, "output"), "equals"));

    if (input == NULL)
        input = row;
    if (!oracle_schema(arena, json_object_get(input, "a"), &a, NULL) ||
        !oracle_schema(arena, json_object_get(input, "b"), &b, NULL) || a == NULL || b == NULL)
        return oracle_wrong("a schema was refused");
    return (a == b) == expected || oracle_wrong(expected ? "two pointers" : "one pointer");
}

static void equal_schemas_are_one_pointer(void **state)
{
    static const struct oracle_except except[] = {
        {"schema-equals-007", "byte[] and ByteBuffer are one kind here"},
        {0},
    };
    struct plugin_host *h = *state;

    assert_int_equal(oracle_run("schema-equals.jsonl", except, equals_row, plugin_host_arena(h)),
                     0);
}

static void nothing_is_borrowed_from_the_caller(void **state)
{
    char name[] = "a.b.C", param[] = "k", value[] = "v", doc[] = "text", field[] = "id";
    struct mr_schema_spec inner = {.kind = MR_KIND_INT32};
    struct mr_param params[] = {{param, value}};
    struct mr_schema_field fields[] = {{field, make(&inner, NULL)}};
    struct mr_schema_spec spec = {.kind = MR_KIND_STRUCT,
                                  .name = name,
                                  .doc = doc,
                                  .params = params,
                                  .param_count = 1,
                                  .fields = fields,
                                  .field_count = 1,
                                  .has_version = true,
                                  .version = 3};
    const struct mr_schema *schema = make(&spec, NULL);

    (void)state;
    name[0] = param[0] = value[0] = doc[0] = field[0] = '!';
    assert_string_equal(schema->name, "a.b.C");
    assert_string_equal(schema->doc, "text");
    assert_string_equal(schema->params[0].name, "k");
    assert_string_equal(schema->params[0].value, "v");
    assert_string_equal(schema->fields[0].name, "id");
    assert_int_equal(schema->version, 3);
    assert_int_equal(mr_schema_index(schema, "id"), 0);
    assert_int_equal(mr_schema_index(schema, "other"), -1);
}

static void a_default_lives_as_long_as_the_schema(void **state)
{
    char word[] = "word";
    struct mr_schema_spec spec = {.kind = MR_KIND_STRING, .has_default = true};
    const struct mr_schema *schema;

    (void)state;
    spec.default_value = mr_text(word, 4);
    schema = make(&spec, NULL);
    word[0] = '!';
    assert_memory_equal(schema->default_value.u.p, "word", 4);
}

static void logical_types_are_known_by_name(void **state)
{
    struct mr_schema_spec spec = {.kind = MR_KIND_STRING, .name = MR_LOGICAL_DATE};

    (void)state;
    assert_int_equal(make(&spec, NULL)->logical, MR_KIND_DATE);
    assert_int_equal(make(&spec, NULL)->kind, MR_KIND_STRING);
    spec.name = "org.apache.kafka.connect.data.Date2";
    assert_int_equal(make(&spec, NULL)->logical, MR_KIND_STRING);
}

static void a_plugin_compiled_against_a_shorter_spec_is_understood(void **state)
{
    struct mr_schema_spec spec = {.kind = MR_KIND_INT64, .optional = true, .has_default = true};
    size_t size = offsetof(struct mr_schema_spec, params);

    (void)state;
    spec.param_count = 7; /* beyond what the plugin knows */
    spec.has_default = false;
    assert_int_equal(schema_tree_make(&spec, size, NULL)->param_count, 0);
}

#define BUILDER "org.apache.kafka.connect.errors.SchemaBuilderException: "
#define BAD_DEFAULT \
    BUILDER \
    "Invalid default value\nCaused by: org.apache.kafka.connect.errors.DataException: "

static void expect(struct mr_schema_spec spec, const char *text)
{
    struct mr_error err = {0};

    assert_null(make(&spec, &err));
    assert_int_equal(err.code, MR_ERR_DATA);
    assert_string_equal(err.text, text);
}

static void broken_rules_are_named(void **state)
{
    struct mr_schema_spec plain = {.kind = MR_KIND_INT32};
    const struct mr_schema *i32 = make(&plain, NULL);
    struct mr_schema_field fields[] = {{"", i32}, {"x", NULL}, {"y", i32}, {"y", i32}};

    (void)state;
    expect((struct mr_schema_spec){0}, "a schema has the unknown kind 0");
    expect((struct mr_schema_spec){.kind = MR_KIND_DECIMAL}, "a schema has the unknown kind 13");
    expect((struct mr_schema_spec){.kind = MR_KIND_STRUCT, .fields = fields, .field_count = 1},
           BUILDER "fieldName cannot be null.");
    expect((struct mr_schema_spec){.kind = MR_KIND_STRUCT, .fields = fields + 1, .field_count = 1},
           BUILDER "fieldSchema for field x cannot be null.");
    expect((struct mr_schema_spec){.kind = MR_KIND_STRUCT, .fields = fields + 2, .field_count = 2},
           BUILDER "Cannot create field because of field name duplication y");
    expect((struct mr_schema_spec){.kind = MR_KIND_INT32, .fields = fields + 2, .field_count = 1},
           BUILDER "Cannot create fields on type INT32");
    expect((struct mr_schema_spec){.kind = MR_KIND_MAP, .value = i32},
           BUILDER "keySchema cannot be null.");
    expect((struct mr_schema_spec){.kind = MR_KIND_LIST}, BUILDER "valueSchema cannot be null.");
    expect((struct mr_schema_spec){.kind = MR_KIND_INT32, .has_default = true},
           BAD_DEFAULT "Invalid value: null used for required value, schema type: INT32");
    expect((struct mr_schema_spec){.kind = MR_KIND_INT8,
                                   .has_default = true,
                                   .default_value = mr_int_of(MR_KIND_INT8, 300)},
           BAD_DEFAULT "a value of class java.lang.Byte holds 300, which is outside its "
                       "range");
}

static void many_fields_are_checked_for_duplicates(void **state)
{
    enum { COUNT = 5000 };
    static struct mr_schema_field fields[COUNT];
    static char names[COUNT][8];
    struct mr_schema_spec plain = {.kind = MR_KIND_INT32},
                          spec = {.kind = MR_KIND_STRUCT, .fields = fields, .field_count = COUNT};
    struct mr_error err = {0};

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "f%d", i);
        fields[i] = (struct mr_schema_field){names[i], make(&plain, NULL)};
    }
    assert_non_null(make(&spec, &err));
    fields[COUNT - 1].name = "f7";
    assert_null(make(&spec, &err));
    assert_string_equal(err.text,
                        BUILDER "Cannot create field because of field name duplication f7");
}

static void many_parameters_are_compared_soon_in_any_order(void **state)
{
    enum { COUNT = 100000 };
    static struct mr_param params[COUNT];
    static char names[COUNT][8];
    struct mr_schema_spec spec = {.kind = MR_KIND_INT32, .params = params, .param_count = COUNT};
    const struct mr_schema *schema;
    clock_t began = clock();

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "p%d", i);
        params[i] = (struct mr_param){names[i], names[i]};
    }
    schema = make(&spec, NULL);
    for (int i = 0; i < COUNT; i++)
        params[COUNT - 1 - i] = (struct mr_param){names[i], names[i]};
    assert_ptr_equal(make(&spec, NULL), schema);
    params[0].value = "another";
    assert_ptr_not_equal(make(&spec, NULL), schema);
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC); /* of the processor */
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *make_many(void *arg)
{
    const struct mr_schema **made = arg;
    char name[32];

    for (int i = 0; i < ROUNDS; i++) {
        struct mr_schema_spec spec = {.kind = MR_KIND_INT32, .name = name};

        snprintf(name, sizeof(name), "thread.%d", i);
        made[i] = make(&spec, NULL);
    }
    return NULL;
}

static void threads_get_the_same_pointers(void **state)
{
    static const struct mr_schema *made[THREADS][ROUNDS];
    pthread_t threads[THREADS];
    size_t before = schema_tree_count();

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, made[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        assert_memory_equal(made[0], made[i], sizeof(made[0]));
    assert_int_equal(schema_tree_count() - before, ROUNDS);
}

/* Last: it fills the table. */
static void a_schema_for_each_record_is_stopped(void **state)
{
    struct mr_error err = {0};
    char name[32];
    int i;

    (void)state;
    assert_false(schema_tree_spent());
    for (i = 0; i <= SCHEMA_TREE_MAX; i++) {
        struct mr_schema_spec spec = {.kind = MR_KIND_INT32, .name = name};

        snprintf(name, sizeof(name), "flood.%d", i);
        if (make(&spec, &err) == NULL)
            break;
    }
    assert_true(i <= SCHEMA_TREE_MAX);
    assert_int_equal(err.code, MR_ERR_FULL);
    assert_true(schema_tree_spent());
    snprintf(name, sizeof(name), "flood.0");
    assert_non_null(make(&(struct mr_schema_spec){.kind = MR_KIND_INT32, .name = name}, NULL));
    for (uint8_t kind = MR_KIND_BOOL; kind <= MR_KIND_BYTES; kind++)
        assert_non_null(make(&(struct mr_schema_spec){.kind = kind, .optional = true}, NULL));
    for (uint8_t kind = MR_KIND_DATE; kind <= MR_KIND_TIMESTAMP; kind++)
        assert_int_equal(schema_tree_plain(kind)->logical, kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(schemas_are_built_by_the_rules_of_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(equal_schemas_are_one_pointer, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test(nothing_is_borrowed_from_the_caller),
        cmocka_unit_test(a_default_lives_as_long_as_the_schema),
        cmocka_unit_test(logical_types_are_known_by_name),
        cmocka_unit_test(a_plugin_compiled_against_a_shorter_spec_is_understood),
        cmocka_unit_test(broken_rules_are_named),
        cmocka_unit_test(many_fields_are_checked_for_duplicates),
        cmocka_unit_test(many_parameters_are_compared_soon_in_any_order),
        cmocka_unit_test(threads_get_the_same_pointers),
        cmocka_unit_test(a_schema_for_each_record_is_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
