/* SPDX-License-Identifier: Apache-2.0 */
/* json: limits on the way in, Jackson's spelling on the way out. */
#include "base/json.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
    struct mr_error err = {0};
    json_t *value = json_parse(text, strlen(text), &err);

    if (value == NULL)
        fail_msg("%s: %s", text, err.text);
    return value;
}

static void refused(const char *text, size_t len, const char *words)
{
    struct mr_error err = {0};

    assert_null(json_parse(text, len, &err));
    assert_int_equal(err.code, MR_ERR_PROTOCOL);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.text);
}

static void writes_as_jackson_does(void **state)
{
    json_t *value = parse("\xef\xbb\xbf{\"b\":[1,-2,1.5,1e300,true,false,null],\"a\":"
                          "\"\\u0001\\u001f\\b\\t\\n\\f\\r\\\"\\\\/\\u00e9<\"}");
    char *text = json_text(value);

    (void)state;
    assert_string_equal(text, "{\"b\":[1,-2,1.5,1e+300,true,false,null],"
                              "\"a\":\"\\u0001\\u001F\\b\\t\\n\\f\\r\\\"\\\\/\xc3\xa9<\"}");
    free(text);
    json_decref(value);
}

static void refuses_what_is_not_one_document(void **state)
{
    char deep[2048];

    (void)state;
    refused("", 0, "line 1");
    refused("{\"a\":1} x", 9, "nothing more is expected, not 'x'");
    refused("{\"a\":\n}", 7, "line 2");
    refused("\"\xff\"", 3, "0xff");
    refused("{\"a\":99999999999999999999}", 26, "integer");
    memset(deep, '[', sizeof(deep));
    refused(deep, sizeof(deep), "deeper than 512");
}

static void says_what_belongs_where(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "line 1, column 1: a value (text in double quotes, a number, true, false or null) is "
             "expected, but the text ends"},
        {"{\"a\":\n tru}",
         "line 2, column 2: a value (text in double quotes, a number, true, false "
         "or null) is expected, not 'tru'"},
        {"{\"a\":\"b\",}", "line 1, column 10: a key in double quotes, or }, is expected, not '}'"},
        {"{name:1}", "line 1, column 2: a key in double quotes, or }, is expected, not 'name'"},
        {"{\"a\":1", "line 1, column 7: a comma or } is expected, but the text ends"},
        {"[\"\xc3\xa4\" \"hunter2\"]", "line 1, column 6: a comma or ] is expected, not a string"},
        {"{\"a\" 1}", "line 1, column 6: a : after a key is expected, not '1'"},
        {"{\"a\":\"b\n\"}",
         "line 1, column 7: a line break in a string: its closing \" is missing, or write \\n"},
        {"{\"a\":\"hunter2\t\"}", "line 1, column 13: control character 0x9"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mr_error err = {0};

        assert_null(json_parse(cases[i].text, strlen(cases[i].text), &err));
        assert_string_equal(err.text, cases[i].says);
    }
}

static void brackets_in_strings_are_not_depth(void **state)
{
    char text[2100];
    json_t *value;

    (void)state;
    memset(text, '[', sizeof(text));
    text[0] = '"';
    text[1] = '\\';
    text[2] = '"';
    text[2098] = '"';
    text[2099] = '\0';
    value = parse(text);
    json_decref(value);
}

static void last_of_duplicate_keys_wins(void **state)
{
    json_t *value = parse("{\"a\":1,\"a\":2}");

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(value, "a")), 2);
    json_decref(value);
}

static void converts_to_and_from_text_maps(void **state)
{
    json_t *value = parse("{\"s\":\"x\",\"n\":1,\"b\":true,\"z\":null}");
    json_t *bad = parse("{\"o\":{}}");
    json_t *back;
    struct props p;
    struct mr_error err = {0};

    (void)state;
    props_init(&p);
    assert_int_equal(json_to_props(value, &p, &err), 0);
    assert_string_equal(props_get(&p, "n"), "1");
    assert_string_equal(props_get(&p, "b"), "true");
    assert_null(props_get(&p, "z"));
    back = json_from_props(&p);
    assert_int_equal(json_object_size(back), 4);
    assert_true(json_is_null(json_object_get(back, "z")));
    assert_int_equal(json_to_props(bad, &p, &err), MR_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "\"o\""));
    json_decref(back);
    json_decref(bad);
    json_decref(value);
    props_deinit(&p);
}

static void readers_look_at_type_and_range(void **state)
{
    json_t *value = parse("{\"i\":5,\"s\":\"x\",\"nul\":\"a\\u0000b\",\"b\":false}");
    int64_t i = 77;
    const char *s = NULL;
    bool b = true;

    (void)state;
    assert_false(json_get_int(value, "i", 6, 9, &i));
    assert_int_equal(i, 77);
    assert_true(json_get_int(value, "i", 0, 9, &i));
    assert_int_equal(i, 5);
    assert_false(json_get_int(value, "s", 0, 9, &i));
    assert_false(json_get_text(value, "nul", &s));
    assert_true(json_get_text(value, "s", &s));
    assert_true(json_get_bool(value, "b", &b));
    assert_false(b);
    assert_false(json_get_bool(NULL, "b", &b));
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_as_jackson_does),
        cmocka_unit_test(refuses_what_is_not_one_document),
        cmocka_unit_test(says_what_belongs_where),
        cmocka_unit_test(brackets_in_strings_are_not_depth),
        cmocka_unit_test(last_of_duplicate_keys_wins),
        cmocka_unit_test(converts_to_and_from_text_maps),
        cmocka_unit_test(readers_look_at_type_and_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
