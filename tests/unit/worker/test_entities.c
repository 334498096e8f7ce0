/* SPDX-License-Identifier: Apache-2.0 */
/* entities: error bodies are JSON whatever a message holds; codes map to statuses; Location is a
 * URL. */
#include "worker/rest/entities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void errors_have_two_members_in_order(void **state)
{
    struct answer answer = {0};

    entities_error(&answer, 404, "Connector a\"b not found");
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.body,
                        "{\"error_code\":404,\"message\":\"Connector a\\\"b not found\"}");
    assert_int_equal(answer.len, strlen(answer.body));
    assert_string_equal(answer.type, "application/json");
    entities_deinit(&answer);
    assert_int_equal(answer.status, 0);
}

static void messages_that_are_cut_inside_a_character_stay_json(void **state)
{
    struct answer answer = {0};

    entities_error(&answer, 400, "a\xE2\x82");
    assert_string_equal(answer.body, "{\"error_code\":400,\"message\":\"a??\"}");
    entities_deinit(&answer);
    entities_error(&answer, 400, "\xFF\xC5\xBC");
    assert_string_equal(answer.body, "{\"error_code\":400,\"message\":\"?\xC5\xBC\"}");
    entities_deinit(&answer);
}

static void codes_map_to_statuses(void **state)
{
    assert_int_equal(entities_status(MR_ERR_CONFIG), 400);
    assert_int_equal(entities_status(MR_ERR_PROTOCOL), 400);
    assert_int_equal(entities_status(MR_ERR_NOT_FOUND), 404);
    assert_int_equal(entities_status(MR_ERR_EXISTS), 409);
    assert_int_equal(entities_status(MR_ERR_STATE), 409);
    assert_int_equal(entities_status(MR_ERR_TOO_LARGE), 413);
    assert_int_equal(entities_status(MR_ERR_CLOSED), 503);
    assert_int_equal(entities_status(MR_ERR_FULL), 503);
    assert_int_equal(entities_status(MR_ERR_FATAL), 500);
    assert_int_equal(entities_status(MR_ERR_TIMEOUT), 500);
    assert_int_equal(entities_status(-999), 500);
}

static void http_errors_are_worded_as_jersey_does(void **state)
{
    static const struct {
        int status;
        const char *body;
    } cases[] = {
        {404, "{\"error_code\":404,\"message\":\"HTTP 404 Not Found\"}"},
        {405, "{\"error_code\":405,\"message\":\"HTTP 405 Method Not Allowed\"}"},
        {406, "{\"error_code\":406,\"message\":\"HTTP 406 Not Acceptable\"}"},
        {415, "{\"error_code\":415,\"message\":\"HTTP 415 Unsupported Media Type\"}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct answer answer = {0};

        entities_http_error(&answer, cases[i].status);
        assert_string_equal(answer.body, cases[i].body);
        entities_deinit(&answer);
    }
}

static void options_answer_text_only_when_it_is_accepted(void **state)
{
    struct answer answer = {0};

    entities_options(&answer, "HEAD, GET, OPTIONS", true);
    assert_string_equal(answer.body, "HEAD, GET, OPTIONS");
    assert_string_equal(answer.type, "text/plain");
    assert_true(answer.allow);
    entities_deinit(&answer);
    entities_options(&answer, "HEAD, GET, OPTIONS", false);
    assert_null(answer.body);
    assert_null(answer.type);
    assert_true(answer.allow);
}

static void bodies_without_memory_become_a_bare_500(void **state)
{
    struct answer answer = {0};

    entities_json(&answer, 200, NULL);
    assert_int_equal(answer.status, 500);
    assert_null(answer.body);
}

static void location_encodes_the_name_as_one_piece(void **state)
{
    static const struct {
        const char *name;
        const char *url;
    } cases[] = {
        {"plain-1_.~", "http://h:1/connectors/plain-1_.~"},
        {"a  b", "http://h:1/connectors/a%20%20b"},
        {"\xC5\xBC\xF0\x9F\x98\x80", "http://h:1/connectors/%C5%BC%F0%9F%98%80"},
        {"a/b", "http://h:1/connectors/a/b"},
        {"a%41b%4", "http://h:1/connectors/a%41b%254"},
        {"a?b#c;d\"", "http://h:1/connectors/a%3Fb%23c%3Bd%22"},
        {"a\r\nX: y", "http://h:1/connectors/a%0D%0AX:%20y"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *url = entities_location("http://h:1", cases[i].name);

        assert_string_equal(url, cases[i].url);
        free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_two_members_in_order),
        cmocka_unit_test(messages_that_are_cut_inside_a_character_stay_json),
        cmocka_unit_test(codes_map_to_statuses),
        cmocka_unit_test(http_errors_are_worded_as_jersey_does),
        cmocka_unit_test(options_answer_text_only_when_it_is_accepted),
        cmocka_unit_test(bodies_without_memory_become_a_bare_500),
        cmocka_unit_test(location_encodes_the_name_as_one_piece),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
