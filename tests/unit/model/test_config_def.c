/* SPDX-License-Identifier: Apache-2.0 */
/* config_def against recordings of Kafka's ConfigDef (tests/data/configdef.jsonl), and what the
 * recordings don't show.
 *
 * Rows left out, and why:
 *  - values that are JSON numbers, booleans or arrays: here every value is text (REST turns them
 *    into text first)
 *  - class names: which classes exist is the catalog's knowledge, so validation asks it and not
 *    this table
 *  - 008: a number in Arabic-Indic digits
 *  - 090 to 092: the connector's name, tested in test_conn_config
 *  - 093: an error of the table itself (a null default that its own validator refuses) */
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "model/config_def.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const left_out[] = {"configdef-008", "configdef-090", "configdef-091",
                                       "configdef-092", "configdef-093", NULL};

static uint32_t type_from(const char *name)
{
    for (uint32_t t = MR_CFG_STRING; t <= MR_CFG_PASSWORD; t++)
        if (strcmp(config_def_type_name(t), name) == 0)
            return t;
    fail_msg("unknown type %s", name);
    return 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void assert_value(const char *id, const struct mr_config_key *key,
                         const struct config_value *v, const json_t *want)
{
    const json_t *x;

    if (json_is_null(want)) {
        if (v->present)
            fail_msg("%s: a value where null belongs", id);
        return;
    }
    if (!v->present)
        fail_msg("%s: no value", id);
    if ((x = json_object_get(want, "int16")) != NULL ||
        (x = json_object_get(want, "int32")) != NULL ||
        (x = json_object_get(want, "int64")) != NULL) {
        assert_int_equal(v->i, json_integer_value(x));
    } else if ((x = json_object_get(want, "boolean")) != NULL) {
        assert_int_equal(v->i, json_is_true(x));
    } else if ((x = json_object_get(want, "float64")) != NULL) {
        double d =
            strcmp(json_string_value(x), "NaN") == 0 ? NAN : strtod(json_string_value(x), NULL);

        assert_true(isnan(d) ? isnan(v->d) : v->d == d);
    } else if ((x = json_object_get(want, "list")) != NULL) {
        if (v->item_count != json_array_size(x))
            fail_msg("%s: %zu items", id, v->item_count);
        for (size_t i = 0; i < v->item_count; i++)
            assert_string_equal(v->items[i], json_string_value(json_array_get(x, i)));
    } else {
        x = json_object_get(want, key->type == MR_CFG_PASSWORD ? "password"
                                  : key->type == MR_CFG_CLASS  ? "class"
                                                               : "string");
        if (x == NULL || strcmp(v->text, json_string_value(x)) != 0)
            fail_msg("%s: '%s'", id, v->text);
    }
}

static void parse_row(const char *id, const json_t *row)
{
    const json_t *input = json_object_get(row, "input"), *raw = json_object_get(input, "value");
    struct mr_config_key key = {"my.key", type_from(text_of(input, "type")), .flags = 0};
    struct config_value v = {0};
    struct mr_error err = {0};
    int rc;

    if ((!json_is_string(raw) && !json_is_null(raw)) || key.type == MR_CFG_CLASS)
        return;
    rc = config_def_parse(&key, json_string_value(raw), &v, &err);
    if (json_object_get(row, "error") != NULL) {
        if (rc != MR_ERR_CONFIG)
            fail_msg("%s: not refused", id);
        assert_string_equal(err.text, text_of(json_object_get(row, "error"), "message"));
        return;
    }
    if (rc != 0)
        fail_msg("%s: refused: %s", id, err.text);
    assert_value(id, &key, &v, json_object_get(row, "output"));
    config_value_deinit(&v);
}

struct bads {
    char *text[8];
    size_t count;
};

static void note(void *arg, const char *key, const char *text)
{
    struct bads *bads = arg;

    assert_non_null(key);
    assert_true(bads->count < 8);
    bads->text[bads->count++] = strdup(text);
}

static void forget(struct bads *bads)
{
    while (bads->count > 0)
        free(bads->text[--bads->count]);
}

static char *joined(const json_t *list, const char *before)
{
    struct buf out;

    buf_init(&out, 256);
    buf_puts(&out, before);
    for (size_t i = 0; i < json_array_size(list); i++)
        buf_printf(&out, "%s%s", i > 0 ? "|" : "", json_string_value(json_array_get(list, i)));
    return buf_take(&out);
}

/* One "define" entry as a key of ours; names and lists are freed by key_free. */
static struct mr_config_key key_from(const json_t *define)
{
    const json_t *fallback = json_object_get(define, "default"),
                 *rule = json_object_get(define, "validator");
    const char *kind = rule != NULL ? text_of(rule, "kind") : "";
    struct mr_config_key key = {text_of(define, "name"), type_from(text_of(define, "type")),
                                .flags = 0};

    if (fallback == NULL)
        key.flags |= MR_CFG_REQUIRED;
    else if (!json_is_null(fallback))
        key.fallback = json_is_string(fallback) ? strdup(json_string_value(fallback))
                                                : json_dumps(fallback, JSON_ENCODE_ANY);
    if (strcmp(kind, "between") == 0) {
        key.has_range = true;
        key.min = json_integer_value(json_object_get(rule, "min"));
        key.max = json_integer_value(json_object_get(rule, "max"));
    } else if (strcmp(kind, "oneOf") == 0 || strcmp(kind, "listOf") == 0) {
        key.choices = joined(json_object_get(rule, "values"), "");
    } else if (strcmp(kind, "oneOfIgnoringCase") == 0) {
        key.choices = joined(json_object_get(rule, "values"), "~");
    } else if (strcmp(kind, "nonEmpty") == 0 || strcmp(kind, "nonDuplicate") == 0) {
        key.flags |= MR_CFG_NON_EMPTY;
    }
    return key;
}

static void key_free(struct mr_config_key *key)
{
    free((char *)(uintptr_t)key->fallback);
    free((char *)(uintptr_t)key->choices);
}

static void assert_bads(const char *id, const struct bads *bads, const json_t *row,
                        const json_t *want)
{
    if (json_object_get(row, "error") != NULL) {
        if (bads->count == 0)
            fail_msg("%s: not refused", id);
        assert_string_equal(bads->text[0], text_of(json_object_get(row, "error"), "message"));
        return;
    }
    if (bads->count != json_array_size(json_object_get(want, "errors")))
        fail_msg("%s: %zu problems: %s", id, bads->count, bads->count > 0 ? bads->text[0] : "");
    for (size_t i = 0; i < bads->count; i++)
        assert_string_equal(bads->text[i],
                            json_string_value(json_array_get(json_object_get(want, "errors"), i)));
}

static void check_row(const char *id, const json_t *row)
{
    const json_t *define = json_object_get(json_object_get(row, "input"), "define");
    bool parse = strcmp(text_of(row, "op"), "parseConfig") == 0;
    struct props props;

    props_init(&props);
    assert_int_equal(
        json_to_props(json_object_get(json_object_get(row, "input"), "properties"), &props, NULL),
        0);
    for (size_t i = 0; i < json_array_size(define); i++) {
        struct mr_config_key key = key_from(json_array_get(define, i));
        const json_t *want = json_object_get(json_object_get(row, "output"), key.name);
        struct config_value v = {0};
        struct bads bads = {0};
        int n = key.type == MR_CFG_CLASS ? -1
                : parse                  ? config_def_start(&key, &props, &v, note, &bads)
                                         : config_def_check(&key, &props, &v, note, &bads);

        if (n >= 0)
            assert_int_equal(n, bads.count);
        if (n >= 0 && !(parse && json_object_get(row, "error") != NULL && n == 0))
            assert_bads(id, &bads, row, parse ? NULL : want);
        if (n == 0 && json_object_get(row, "error") == NULL)
            assert_value(id, &key, &v, parse ? want : json_object_get(want, "value"));
        config_value_deinit(&v);
        forget(&bads);
        key_free(&key);
        if (parse && json_object_get(row, "error") != NULL)
            break; /* Java ends at the first bad key */
    }
    props_deinit(&props);
}

static void values_and_sentences_are_those_of_kafka(void **state)
{
    struct buf data;
    char *line, *save = NULL;
    size_t rows = 0;

    buf_init(&data, 1 << 20);
    assert_int_equal(file_read(TEST_SOURCE "/tests/data/configdef.jsonl", &data, NULL), 0);
    for (line = strtok_r(data.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *row = json_parse(line, strlen(line), NULL);
        const char *id = text_of(row, "id");
        bool skip = false;

        for (size_t i = 0; left_out[i] != NULL; i++)
            skip = skip || strcmp(left_out[i], id) == 0;
        if (!skip && strcmp(text_of(row, "op"), "parseType") == 0)
            parse_row(id, row);
        else if (!skip)
            check_row(id, row);
        rows++;
        json_decref(row);
    }
    assert_int_equal(rows, 98);
    buf_deinit(&data);
}

static void check_one(struct mr_config_key key, const char *raw, const char *first,
                      const char *second)
{
    struct props props;
    struct bads bads = {0};
    struct config_value v = {0};

    props_init(&props);
    if (raw != NULL)
        assert_int_equal(props_set(&props, key.name, strcmp(raw, "(null)") == 0 ? NULL : raw), 0);
    config_def_check(&key, &props, &v, note, &bads);
    assert_int_equal(bads.count, (first != NULL) + (second != NULL));
    if (first != NULL)
        assert_string_equal(bads.text[0], first);
    if (second != NULL)
        assert_string_equal(bads.text[1], second);
    config_value_deinit(&v);
    forget(&bads);
    props_deinit(&props);
}

static void a_word_in_a_ranged_number_gives_two_sentences(void **state)
{
    struct mr_config_key key = {"tasks.max",       MR_CFG_INT, .fallback = "1",
                                .has_range = true, .min = 1,   .max = INT32_MAX};

    check_one(key, "many",
              "Invalid value many for configuration tasks.max: Not a number of type INT",
              "Invalid value null for configuration tasks.max: Value must be non-null");
    check_one(key, "0", "Invalid value 0 for configuration tasks.max: Value must be at least 1",
              NULL);
    check_one(key, "(null)",
              "Invalid value null for configuration tasks.max: Value must be non-null", NULL);
    check_one(key, NULL, NULL, NULL);
}

static void choices_refuse_null_but_not_absence(void **state)
{
    struct mr_config_key key = {"c", MR_CFG_STRING, .choices = "a|b"};

    check_one(key, NULL, NULL, NULL);
    check_one(key, "(null)", "Invalid value null for configuration c: String must be one of: a, b",
              NULL);
    check_one(key, "a|b", "Invalid value a|b for configuration c: String must be one of: a, b",
              NULL);
    check_one(key, "", "Invalid value  for configuration c: String must be one of: a, b", NULL);
}

static void a_password_never_stands_in_a_sentence(void **state)
{
    struct mr_config_key key = {"p", MR_CFG_PASSWORD, .choices = "a|b"};

    check_one(key, "hunter2",
              "Invalid value [hidden] for configuration p: String must be one of: a, b", NULL);
}

static void long_values_come_back_whole(void **state)
{
    struct mr_config_key key = {"n", MR_CFG_INT, .flags = 0};
    char *raw = malloc(100001);
    struct props props;
    struct bads bads = {0};

    memset(raw, 'x', 100000);
    raw[100000] = '\0';
    props_init(&props);
    assert_int_equal(props_set(&props, "n", raw), 0);
    assert_int_equal(config_def_check(&key, &props, NULL, note, &bads), 1);
    assert_int_equal(strlen(bads.text[0]),
                     100000 +
                         strlen("Invalid value  for configuration n: Not a number of type INT"));
    forget(&bads);
    props_deinit(&props);
    free(raw);
}

static void nearest_name_is_found_for_slips_and_not_for_strangers(void **state)
{
    static const char *const known[] = {"bootstrap.servers",        "key.converter",
                                        "value.converter",          "plugin.path",
                                        "offset.flush.interval.ms", NULL};

    assert_string_equal(nearest_name("bootsrtap.servers", known), "bootstrap.servers");
    assert_string_equal(nearest_name("plugin.paths", known), "plugin.path");
    assert_string_equal(nearest_name("offset.flush.intervall.ms", known),
                        "offset.flush.interval.ms");
    assert_null(nearest_name("my.own.setting", known));
    assert_null(nearest_name("", known));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_sentences_are_those_of_kafka),
        cmocka_unit_test(a_word_in_a_ranged_number_gives_two_sentences),
        cmocka_unit_test(choices_refuse_null_but_not_absence),
        cmocka_unit_test(a_password_never_stands_in_a_sentence),
        cmocka_unit_test(long_values_come_back_whole),
        cmocka_unit_test(nearest_name_is_found_for_slips_and_not_for_strangers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
