/* SPDX-License-Identifier: Apache-2.0 */
/* request_json: numbers keep their text, null stays null, and everything that is no JSON or of a
 * wrong shape says where. */
#include "base/buf.h"
#include "model/conn_config.h"
#include "worker/rest/request_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "key=value|…", (null) for null, or the error's text. */
static const char *config_of(const char *body)
{
    static char out[2048];
    struct props config;
    struct mr_error err = {0};
    bool absent = true;
    size_t len = 0;
    int rc = request_json_config(body, strlen(body), &config, &absent, &err);

    if (rc != 0) {
        assert_int_equal(rc, MR_ERR_PROTOCOL);
        snprintf(out, sizeof(out), "%s", err.text);
        return out;
    }
    snprintf(out, sizeof(out), "%s", absent ? "absent" : "");
    for (size_t i = 0; i < config.count; i++)
        len += (size_t)snprintf(
            out + len, sizeof(out) - len, "%s%s=%s", i > 0 ? "|" : "", config.entries[i].key,
            config.entries[i].value != NULL ? config.entries[i].value : "(null)");
    props_deinit(&config);
    return out;
}

static void scalars_keep_the_text_that_was_written(void **state)
{
    assert_string_equal(config_of("{\"a\":1.50,\"b\":1e3,\"c\":-0,\"d\":1E+2,\"e\":0.10,\"f\":"
                                  "false,\"g\":true,\"h\":\"\"}"),
                        "a=1.50|b=1e3|c=-0|d=1E+2|e=0.10|f=false|g=true|h=");
    assert_string_equal(config_of("{\"big\":12345678901234567890123,\"far\":1e999,\"no\":null}"),
                        "big=12345678901234567890123|far=1e999|no=(null)");
    assert_string_equal(config_of(" \t\r\n{ \" k \" : \" v \" , \"k2\":\"w\" } \n"),
                        " k = v |k2=w");
}

static void strings_are_unescaped(void **state)
{
    assert_string_equal(
        config_of("{\"\\u0061\\n\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\\u20ac\"}"),
        "a\n=\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80\xE2\x82\xAC");
    assert_string_equal(config_of("{\"k\":\"\xC5\xBC/<\xE2\x80\xA8\x7F\"}"),
                        "k=\xC5\xBC/<\xE2\x80\xA8\x7F");
}

static void the_last_of_duplicate_keys_wins_in_the_place_of_the_first(void **state)
{
    assert_string_equal(config_of("{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\"}"), "a=3|b=2");
}

static void empty_bodies_and_null_are_absent(void **state)
{
    assert_string_equal(config_of(""), "absent");
    assert_string_equal(config_of(" \n"), "absent");
    assert_string_equal(config_of("null"), "absent");
    assert_string_equal(config_of("\xEF\xBB\xBF"), "absent");
    assert_string_equal(config_of("{}"), "");
    assert_string_equal(config_of("\xEF\xBB\xBF{\"a\":1}"), "a=1");
}

static void malformed_documents_say_where(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } cases[] = {
        {"{", "line 1, column 2: a key in double quotes is expected, but the text ends"},
        {"{name:\"a\"}", "line 1, column 2: a key in double quotes is expected, not 'n'"},
        {"{'name':'a'}", "line 1, column 2: a key in double quotes is expected, not '''"},
        {"{\"a\"}", "line 1, column 5: a : after a key is expected, not '}'"},
        {"{\"a\":", "line 1, column 6: a value (text in double quotes, a number, true, false or "
                    "null) is expected, but the text ends"},
        {"{\"a\":\"b", "column 8: a string has no closing \""},
        {"{\"a\":\"b\\", "a string has no closing \""},
        {"{\"a\":\"b\"", "a comma or } after a value is expected, but the text ends"},
        {"{\"a\":\"b\",}", "a key in double quotes is expected, not '}'"},
        {"{\"a\":\"b\" \"c\":1}", "a comma or } after a value is expected, not '\"'"},
        {"{\n\"a\":1,\n \"b\":x}", "line 3, column 6: a value (text"},
        {"{\"a\":\"\\x\"}", "one of \" \\ / b f n r t u behind \\ is expected, not 'x'"},
        {"{\"a\":\"\\u12g4\"}", "a hexadecimal digit (\\u has four) is expected"},
        {"{\"a\":\"\\u12\"}", "a hexadecimal digit (\\u has four) is expected"},
        {"{\"a\":\"\\ud800\"}", "half of a surrogate pair"},
        {"{\"a\":\"\\ud800\\u0041\"}", "half of a surrogate pair"},
        {"{\"a\":\"\\udc00\"}", "half of a surrogate pair"},
        {"{\"a\":\"\xFF\"}", "not UTF-8"},
        {"{\"a\":\"\xED\xA0\x80\"}", "not UTF-8"},
        {"{\"a\":\"tab\there\"}", "a control character in a string: write \\u0009"},
        {"{\"a\":\"b\n\"}", "a line break in a string: its closing \" is missing, or write \\n"},
        {"{\"a\":01}", "a number may not begin with 0"},
        {"{\"a\":1.}", "a digit after the decimal point is expected, not '}'"},
        {"{\"a\":1e}", "a digit of the exponent is expected, not '}'"},
        {"{\"a\":-}", "a value (text"},
        {"{\"a\":+1}", "a value (text"},
        {"{\"a\":NaN}", "a value (text"},
        {"{\"a\":nul}", "a value (text"},
        {"{\"a\":tru}", "a value (text"},
        {"{} {}", "column 4: nothing more is expected, not '{'"},
        {"null 1", "nothing more is expected"},
        {"nulll", "nothing more is expected"},
        {"{}\\", "nothing more is expected"},
        {"\\", "{ is expected"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (strstr(config_of(cases[i].body), cases[i].says) == NULL ||
            strncmp(config_of(cases[i].body), "Malformed JSON at line", 22) != 0)
            fail_msg("%s: %s", cases[i].body, config_of(cases[i].body));
}

static void wrong_types_are_named_without_their_value(void **state)
{
    assert_string_equal(config_of("[]"), "The request body must be a JSON object");
    assert_string_equal(config_of("42"), "The request body must be a JSON object");
    assert_string_equal(config_of("\"secret\""), "The request body must be a JSON object");
    assert_string_equal(config_of("true"), "The request body must be a JSON object");
    assert_string_equal(config_of("{\"x\":{\"a\":\"b\"}}"),
                        "The value of the configuration 'x' must be text, a number, a boolean or "
                        "null, not an object");
    assert_string_equal(config_of("{\"x\":[\"a\"]}"),
                        "The value of the configuration 'x' must be text, a number, a boolean or "
                        "null, not an array");
    assert_string_equal(config_of("{\"name\":\"c\",\"config\":{\"a\":\"b\"}}"),
                        "The body must be the configuration alone, without \"name\" and \"config\" "
                        "around it, which only POST takes");
    assert_string_equal(config_of("{\"config\":[\"a\"]}"),
                        "The value of the configuration 'config' must be text, a number, a boolean "
                        "or null, not an array");
    assert_string_equal(config_of("{\"x\":\"a\\u0000b\"}"),
                        "The value of the configuration 'x' may not hold the character U+0000");
    assert_string_equal(config_of("{\"a\\u0000b\":1}"),
                        "A key of the request may not hold the character U+0000");
}

static void a_hundred_thousand_brackets_are_refused_at_the_first(void **state)
{
    struct buf deep;

    buf_init(&deep, 1 << 20);
    for (int i = 0; i < 100000; i++)
        buf_puts(&deep, "{\"a\":");
    assert_non_null(strstr(config_of(deep.data), "not an object"));
    buf_deinit(&deep);
}

static void a_configuration_has_a_bounded_number_of_keys(void **state)
{
    struct buf many;

    buf_init(&many, 1 << 20);
    for (int i = 0; i <= CONN_CONFIG_KEYS_MAX; i++)
        buf_printf(&many, "%s\"k%d\":%d", i == 0 ? "{" : ",", i, i);
    buf_putc(&many, '}');
    assert_string_equal(config_of(many.data),
                        "A connector's configuration may have at most 4096 keys");
    buf_deinit(&many);
}

static void a_nul_byte_in_the_body_is_no_end(void **state)
{
    struct props config;
    struct mr_error err = {0};
    bool absent;

    assert_int_equal(request_json_config("{}\0", 3, &config, &absent, &err), MR_ERR_PROTOCOL);
    assert_string_equal(
        err.text,
        "Malformed JSON at line 1, column 3: nothing more is expected, not the byte 0x00");
    memset(&err, 0, sizeof(err));
    assert_int_equal(request_json_config("\0{}", 3, &config, &absent, &err), MR_ERR_PROTOCOL);
}

/* "name/config/initial", or the error's text. */
static const char *create_of(const char *body)
{
    static char out[2048];
    struct request_create create;
    struct mr_error err = {0};
    bool absent = false;
    const char *value;

    if (request_json_create(body, strlen(body), &create, &absent, &err) != 0) {
        snprintf(out, sizeof(out), "%s", err.text);
        return out;
    }
    value = props_get(&create.config, "k");
    snprintf(out, sizeof(out), "%s/%s/%s%s", create.name,
             !create.has_config ? "none"
             : value != NULL    ? value
                                : "empty",
             target_state_name(create.initial), absent ? " absent" : "");
    request_json_create_deinit(&create);
    return out;
}

static void create_requests_are_read(void **state)
{
    assert_string_equal(create_of("{\"name\":\"a\",\"config\":{\"k\":7}}"), "a/7/STARTED");
    assert_string_equal(
        create_of("{\"config\":{\"k\":7},\"initial_state\":\"stopped\",\"name\":\" a\\t\\u0000\"}"),
        "a/7/STOPPED");
    assert_string_equal(create_of("{\"name\":7,\"config\":{},\"initial_state\":\"Paused\"}"),
                        "7/empty/PAUSED");
    assert_string_equal(create_of("{\"name\":null,\"config\":null,\"initial_state\":null}"),
                        "/none/STARTED");
    assert_string_equal(create_of("{\"name\":true,\"initial_state\":\"\"}"), "true/none/STARTED");
    assert_string_equal(create_of("{}"), "/none/STARTED");
    assert_string_equal(create_of("null"), "/none/STARTED absent");
    assert_string_equal(create_of(""), "/none/STARTED absent");
    assert_string_equal(
        create_of(
            "{\"name\":\"a\",\"name\":\"b\",\"config\":{\"k\":\"1\"},\"config\":{\"j\":\"2\"}}"),
        "b/empty/STARTED");
}

static void create_requests_of_wrong_shape_are_refused(void **state)
{
    assert_string_equal(create_of("{\"name\":\"a\",\"config\":{},\"extra\":1}"),
                        "Unrecognized member 'extra' (known are name, config and initial_state)");
    assert_string_equal(
        create_of("{\"name\":{}}"),
        "The member 'name' must be text, a number, a boolean or null, not an object");
    assert_string_equal(create_of("{\"config\":[]}"), "The member 'config' must be a JSON object");
    assert_string_equal(create_of("{\"config\":\"x\"}"),
                        "The member 'config' must be a JSON object");
    assert_string_equal(create_of("{\"initial_state\":\"ASLEEP\"}"),
                        "Invalid initial_state 'ASLEEP': it must be RUNNING, PAUSED or STOPPED");
    assert_string_equal(create_of("{\"name\":\"a\\u0000b\"}"),
                        "The connector's name may not hold the character U+0000");
    assert_string_equal(create_of("[{}]"), "The request body must be a JSON object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_keep_the_text_that_was_written),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(the_last_of_duplicate_keys_wins_in_the_place_of_the_first),
        cmocka_unit_test(empty_bodies_and_null_are_absent),
        cmocka_unit_test(malformed_documents_say_where),
        cmocka_unit_test(wrong_types_are_named_without_their_value),
        cmocka_unit_test(a_hundred_thousand_brackets_are_refused_at_the_first),
        cmocka_unit_test(a_configuration_has_a_bounded_number_of_keys),
        cmocka_unit_test(a_nul_byte_in_the_body_is_no_end),
        cmocka_unit_test(create_requests_are_read),
        cmocka_unit_test(create_requests_of_wrong_shape_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
