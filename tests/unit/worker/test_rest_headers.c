/* SPDX-License-Identifier: Apache-2.0 */
/* rest_headers: rules and refusals as the Java worker has them (each row of the tables was asked
 * of 4.3.1), CORS as its answers show it. */
#include "base/buf.h"
#include "worker/rest/rest_headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS 1796000901000 /* Mon, 30 Nov 2026 01:08:21 GMT */

/* What the headers of a worker with these settings are for a request, one a line; "=" before
 * those that replace. */
static char told[4096];

static void note(void *arg, const char *name, const char *value, bool replaces)
{
    size_t len = strlen(told);

    snprintf(told + len, sizeof(told) - len, "%s%s: %s\n", replaces ? "=" : "", name, value);
}

static const char *headers_of(const char *const *settings, const struct rest_headers_asked *asked)
{
    struct worker_config config = {.path = "w.properties"};
    struct mr_error err = {0};
    struct rest_headers *headers;

    props_init(&config.props);
    for (; *settings != NULL; settings += 2)
        assert_int_equal(props_set(&config.props, settings[0], settings[1]), 0);
    told[0] = '\0';
    headers = rest_headers_new(&config, &err);
    if (headers == NULL)
        snprintf(told, sizeof(told), "%s", err.text);
    else
        rest_headers_tell(headers, asked, NOW_MS, note, NULL);
    rest_headers_free(&headers);
    props_deinit(&config.props);
    return told;
}

static const char *rules(const char *text)
{
    const char *const settings[] = {"response.http.headers.config", text, NULL};

    return headers_of(settings, &(struct rest_headers_asked){.method = "GET"});
}

static void rules_are_read_as_java_reads_them(void **state)
{
    static const struct {
        const char *rules;
        const char *headers;
    } rows[] = {
        {"set X: 1", "=X: 1\n"},
        {"SET X:1", "=X: 1\n"},
        {"set  X : 1", "=X: 1\n"},
        {"  set\tX:1  ", "=X: 1\n"},
        {"", ""},
        {"  ", ""},
        {"\"set X: a, b\", add Y:2", "=X: a, b\nY: 2\n"},
        {"set X:\"a", "=X: \"a\n"},
        {"\"set X:a\"\"b\"", "=X: a\n"},
        {"\"set X:a\\\"b\"", "=X: a\"b\n"},
        {"add X:1,", "X: 1\n"},
        {"setDate Expires: 31540000000", "=Expires: Tue, 30 Nov 2027 02:15:01 GMT\n"},
        {"addDate Last-Modified:0", "Last-Modified: Mon, 30 Nov 2026 01:08:21 GMT\n"},
        {"setdate X:5", "=X: Mon, 30 Nov 2026 01:08:21 GMT\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(rules(rows[i].rules), rows[i].headers);
}

static void rules_are_refused_in_javas_words(void **state)
{
    static const struct {
        const char *rules;
        const char *text;
    } rows[] = {
        {"foo X:1", "Invalid header config action: 'foo'. Expected one of [set, add, setDate, "
                    "addDate]"},
        {"set", "Invalid format of header config 'set'. Expected: '[action] [header name]:[header "
                "value]'"},
        {"set X:1,,add Y:2", "Invalid format of header config ''. Expected: '[action] [header "
                             "name]:[header value]'"},
        {"set X", "Invalid format of header name and header value pair 'X'. Expected: '[header "
                  "name]:[header value]'"},
        {"set X:", "Invalid format of header name and header value pair 'X:'. Expected: '[header "
                   "name]:[header value]'"},
        {"set X:a:b", "Invalid format of header name and header value pair 'X:a:b'. Expected: "
                      "'[header name]:[header value]'"},
        {"set X Y:1", "Invalid header name 'X Y'. The '[header name]' cannot contain whitespace"},
        {"set :1", "Invalid header name ''. The '[header name]' cannot contain whitespace"},
        {"setDate X:abc", "Invalid value 'abc' of header 'X'"},
        {"set X(:1", "Invalid header name 'X(': it holds a character"},
        {"set X:a\x01", "Invalid value of header 'X': it holds a control character"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char whole[256];

        snprintf(whole, sizeof(whole), "w.properties: %s", rows[i].text);
        if (strncmp(rules(rows[i].rules), whole, strlen(whole)) != 0)
            fail_msg("%s: %s", rows[i].rules, told);
    }
}

static void a_list_of_rules_has_an_end(void **state)
{
    struct buf list;

    (void)state;
    buf_init(&list, 1 << 20);
    for (int i = 0; i < 101; i++)
        buf_puts(&list, "add X:1,");
    assert_non_null(strstr(rules(list.data), "more than 100 headers"));
    buf_deinit(&list);
}

static const char *cors(const char *origins, const char *method, const char *origin,
                        const char *wanted)
{
    const char *const settings[] = {"access.control.allow.origin", origins,
                                    "access.control.allow.methods", "GET, PUT", NULL};

    return headers_of(settings, &(struct rest_headers_asked){
                                    .method = method, .origin = origin, .wanted_method = wanted});
}

static void origins_on_the_list_are_let_in(void **state)
{
    static const char list[] = "http://a\\.example, http://b.example";

    (void)state;
    assert_string_equal(cors(list, "GET", NULL, NULL), "Vary: Origin\n");
    assert_string_equal(cors(list, "GET", "http://a.example", NULL),
                        "Vary: Origin\n=Access-Control-Allow-Origin: http://a.example\n");
    assert_string_equal(cors(list, "GET", "HTTP://A.example", NULL),
                        "Vary: Origin\n=Access-Control-Allow-Origin: HTTP://A.example\n");
    assert_string_equal(cors(list, "GET", "http://aXexample", NULL), "Vary: Origin\n");
    assert_string_equal(cors(list, "GET", "http://bXexample", NULL),
                        "Vary: Origin\n=Access-Control-Allow-Origin: http://bXexample\n");
    assert_string_equal(cors(list, "GET", "http://a.example.org", NULL), "Vary: Origin\n");
    assert_string_equal(cors("*", "GET", "null", NULL),
                        "Vary: Origin\n=Access-Control-Allow-Origin: null\n");
    assert_string_equal(cors(" ", "GET", "http://a.example", NULL), "");
    assert_non_null(strstr(cors("http://[", "GET", NULL, NULL),
                           "w.properties: Invalid value http://[ for configuration "
                           "access.control.allow.origin"));
}

static void a_preflight_tells_methods_and_headers(void **state)
{
    (void)state;
    assert_string_equal(cors("http://a", "OPTIONS", "http://a", "DELETE"),
                        "Vary: Origin\n"
                        "=Access-Control-Allow-Origin: http://a\n"
                        "=Access-Control-Allow-Methods: GET, PUT\n"
                        "=Access-Control-Allow-Headers: Content-Type\n"
                        "=Access-Control-Max-Age: 60\n");
    assert_string_equal(cors("http://a", "OPTIONS", "http://b", "PUT"), "Vary: Origin\n");
    assert_string_equal(cors("http://a", "OPTIONS", "http://a", NULL),
                        "Vary: Origin\n=Access-Control-Allow-Origin: http://a\n");
    assert_string_equal(cors("http://a", "GET", "http://a", "PUT"),
                        "Vary: Origin\n=Access-Control-Allow-Origin: http://a\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_as_java_reads_them),
        cmocka_unit_test(rules_are_refused_in_javas_words),
        cmocka_unit_test(a_list_of_rules_has_an_end),
        cmocka_unit_test(origins_on_the_list_are_let_in),
        cmocka_unit_test(a_preflight_tells_methods_and_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
