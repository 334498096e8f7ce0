/* SPDX-License-Identifier: Apache-2.0 */
/* router: targets, the route table, media types; each case as the Java worker's server takes it. */
#include "herder_fake.h"
#include "worker/rest/rest_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* --- targets ---------------------------------------------------------------------------------- */

/* Segments joined by |, or the error's text. */
static const char *parsed(const char *raw)
{
    static char out[1024];
    struct router_target target;
    struct mr_error err = {0};
    size_t len = 0;

    if (router_parse(&target, raw, &err) != 0) {
        snprintf(out, sizeof(out), "%s", err.text);
        return out;
    }
    out[0] = '\0';
    for (size_t i = 0; i < target.segment_count && i < ROUTER_SEGMENTS; i++)
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s", i > 0 ? "|" : "",
                                target.segment[i]);
    router_deinit(&target);
    return out;
}

static void paths_are_split_then_decoded(void **state)
{
    assert_string_equal(parsed("/"), "");
    assert_string_equal(parsed("/connectors"), "connectors");
    assert_string_equal(parsed("/connectors/"), "connectors");
    assert_string_equal(parsed("/connectors/a%20b/pause/"), "connectors|a b|pause");
    assert_string_equal(parsed("/connectors/a+b"), "connectors|a+b");
    assert_string_equal(parsed("/connectors/%C5%BC%F0%9F%98%80"),
                        "connectors|\xC5\xBC\xF0\x9F\x98\x80");
    assert_string_equal(parsed("/connectors/\xC5\xBC"), "connectors|\xC5\xBC");
    assert_string_equal(parsed("/connectors/a%22%3B"), "connectors|a\";");
    assert_string_equal(parsed("/connectors/./x"), "connectors|.|x");
}

static void matrix_parameters_are_cut(void **state)
{
    assert_string_equal(parsed("/connectors;x=y"), "connectors");
    assert_string_equal(parsed("/connectors;x/a;b;c/status"), "connectors|a|status");
    assert_string_equal(parsed("/connectors/;x"), "connectors");
}

/* As another worker and REST filters get it. */
static const char *sent(const char *raw)
{
    static char out[1024];
    struct router_target target;

    assert_int_equal(router_parse(&target, raw, NULL), 0);
    snprintf(out, sizeof(out), "%s", target.sent);
    router_deinit(&target);
    return out;
}

static void absolute_targets_lose_their_authority(void **state)
{
    assert_string_equal(parsed("http://host:1/connectors/a"), "connectors|a");
    assert_string_equal(parsed("HTTPS://host"), "");
    assert_string_equal(parsed("http://host?x=y"), "");
    assert_string_equal(sent("http://host:1/connectors/a%20b?x=y"), "/connectors/a%20b?x=y");
    assert_string_equal(sent("/connectors/a%20b"), "/connectors/a%20b");
}

static void fragments_are_cut(void **state)
{
    assert_string_equal(parsed("/connectors/a#b/status"), "connectors|a");
    assert_string_equal(parsed("/connectors/a%23b"), "connectors|a#b");
    assert_string_equal(parsed("http://host#/connectors"), "");
    assert_string_equal(sent("/connectors/a?x=y#z"), "/connectors/a?x=y");
}

/* By a route that anybody may use. */
static bool taken(const char *raw, struct mr_error *err)
{
    static const struct route any = {"GET", "/x", 0, ROUTE_NO_BODY, 1, NULL};
    struct router_target target;
    bool is_taken = router_parse(&target, raw, err) == 0;

    if (is_taken) {
        is_taken = router_check_path(&target, &(struct router_match){.route = &any}, err) == 0;
        router_deinit(&target);
    }
    return is_taken && err->code == 0;
}

static void hard_paths_are_refused(void **state)
{
    static const char *const bad[] = {
        "//connectors",
        "/connectors//x",
        "/connectors//",
        "/connectors/a%2Fb",
        "/connectors/a%252Fb",
        "/connectors/a%25b",
        "/connectors/a%0Ab",
        "/connectors/a%00b",
        "/connectors/%2e%2e",
        "/connectors/%2e",
        "/connectors/.%2e",
        "/connectors/..;x",
        "/connectors/a%5Cb",
        "/connectors/a\\b",
        "/connectors/a%zz",
        "/connectors/a%",
        "/connectors/a%4",
        "/connectors/a%7F",
        "/connectors/%FF",
        "/connectors/%C0%AF",
        "/connectors/%ED%A0%80",
        "/connectors/a b",
        "",
        "connectors",
        "*",
        "/;a/b",
        "/a%;20/b",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct mr_error err = {0};

        if (taken(bad[i], &err))
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(strncmp(err.text, "Bad request path: it", 20) == 0 ||
                             strstr(err.text, "% is not") != NULL,
                         1);
    }
}

static void query_flags_are_true_only_for_true(void **state)
{
    struct router_target target;

    assert_int_equal(
        router_parse(&target, "/x?a=TRUE&b=1&c=&d&e=true&e=false&%66=tr%75e&g=yes+no&=&&", NULL),
        0);
    assert_true(router_flag(&target, "a", false));
    assert_false(router_flag(&target, "b", true));
    assert_true(router_flag(&target, "c", true));
    assert_true(router_flag(&target, "d", true));
    assert_false(router_flag(&target, "d", false));
    assert_true(router_flag(&target, "e", false));
    assert_true(router_flag(&target, "f", false));
    assert_false(router_flag(&target, "absent", false));
    assert_int_equal(target.query_count, 8);
    assert_string_equal(target.query[7].value, "yes no");
    router_deinit(&target);
}

static void broken_escapes_in_queries_stay_as_they_are(void **state)
{
    struct router_target target;

    assert_int_equal(router_parse(&target, "/x?a=%zz%&b=%00c", NULL), 0);
    assert_string_equal(target.query[0].value, "%zz%");
    assert_string_equal(target.query[1].value, "%00c");
    router_deinit(&target);
}

static void many_query_parameters_are_cut_off(void **state)
{
    char raw[4096] = "/x?";
    struct router_target target;

    for (int i = 0; i < 500; i++)
        strcat(raw, "k=v&");
    assert_int_equal(router_parse(&target, raw, NULL), 0);
    assert_int_equal(target.query_count, ROUTER_QUERY);
    router_deinit(&target);
}

/* --- routes ----------------------------------------------------------------------------------- */

static struct router_target last_target;

static struct router_match match(const char *method, const char *path)
{
    struct router_match out;

    router_deinit(&last_target);
    assert_int_equal(router_parse(&last_target, path, NULL), 0);
    router_match(routes, routes_count, method, &last_target, &out);
    return out;
}

static void known_paths_find_their_row(void **state)
{
    assert_ptr_equal(match("GET", "/").route->run, res_root_info);
    assert_ptr_equal(match("GET", "/health/").route->run, res_root_health);
    assert_ptr_equal(match("GET", "/connectors").route->run, res_connectors_list);
    assert_ptr_equal(match("POST", "/connectors").route->run, res_connectors_create);
    assert_ptr_equal(match("HEAD", "/connectors/x/status").route->run, res_connectors_status);
    assert_ptr_equal(match("PUT", "/connectors/config/config").route->run,
                     res_connectors_put_config);
    assert_ptr_equal(match("POST", "/connectors/x/tasks/3/restart").route->run, res_tasks_restart);
    assert_string_equal(match("POST", "/connectors/x/tasks/3/restart").var[0], "x");
    assert_string_equal(match("POST", "/connectors/x/tasks/3/restart").var[1], "3");
    assert_ptr_equal(match("GET", "/connector-plugins").route->run, res_plugins_list);
}

static void unknown_paths_are_404_whatever_the_method(void **state)
{
    static const char *const paths[] = {
        "/nope",
        "/connector",
        "/connectorsx",
        "/connectors/x/nope",
        "/connectors/x/tasks/0",
        "/connectors/x/tasks/0/nope",
        "/connectors/./x",
        "/connectors/x/tasks/0/restart/y",
        "/a/b/c/d/e/f/g/h/i",
        "/connectors/x/status/y",
        "/Connectors",
    };

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        assert_int_equal(match("GET", paths[i]).status, 404);
        assert_int_equal(match("OPTIONS", paths[i]).status, 404);
        assert_int_equal(match("BREW", paths[i]).status, 404);
    }
}

static void wrong_methods_are_405(void **state)
{
    assert_int_equal(match("DELETE", "/connectors").status, 405);
    assert_int_equal(match("get", "/connectors").status, 405);
    assert_int_equal(match("POST", "/connectors/x").status, 405);
    assert_int_equal(match("HEAD", "/connectors/x/pause").status, 405);
    assert_int_equal(match("TRACE", "/").status, 405);
    assert_null(match("PUT", "/connectors").route);
}

static void options_name_the_methods(void **state)
{
    assert_int_equal(match("OPTIONS", "/").status, 200);
    assert_string_equal(match("OPTIONS", "/").allow, "HEAD, GET, OPTIONS");
    assert_string_equal(match("OPTIONS", "/connectors").allow, "HEAD, POST, GET, OPTIONS");
    assert_string_equal(match("OPTIONS", "/connectors/x").allow, "HEAD, DELETE, GET, OPTIONS");
    assert_string_equal(match("OPTIONS", "/connectors/x/config").allow,
                        "HEAD, GET, OPTIONS, PUT, PATCH");
    assert_string_equal(match("OPTIONS", "/connectors/x/pause").allow, "OPTIONS, PUT");
}

/* --- media types ------------------------------------------------------------------------------ */

static void content_types_are_told_apart(void **state)
{
    assert_int_equal(router_type(NULL), ROUTER_TYPE_NONE);
    assert_int_equal(router_type(" "), ROUTER_TYPE_NONE);
    assert_int_equal(router_type("application/json"), ROUTER_TYPE_JSON);
    assert_int_equal(router_type("APPLICATION/JSON ; charset=utf-8"), ROUTER_TYPE_JSON);
    assert_int_equal(router_type("application/*"), ROUTER_TYPE_WILD);
    assert_int_equal(router_type("*/*"), ROUTER_TYPE_WILD);
    assert_int_equal(router_type("application/jsonp"), ROUTER_TYPE_OTHER);
    assert_int_equal(router_type("text/plain"), ROUTER_TYPE_OTHER);
    assert_int_equal(router_type("text/*"), ROUTER_TYPE_OTHER);
    assert_int_equal(router_type("nonsense"), ROUTER_TYPE_BAD);
    assert_int_equal(router_type("application/"), ROUTER_TYPE_BAD);
    assert_int_equal(router_type("/json"), ROUTER_TYPE_BAD);
    assert_int_equal(router_type("application/json text"), ROUTER_TYPE_BAD);
}

static void accept_headers_are_lists_of_ranges(void **state)
{
    assert_true(router_accepts("", "application", "json"));
    assert_true(router_accepts("*/*", "application", "json"));
    assert_true(router_accepts("text/html, application/*;q=0.5", "application", "json"));
    assert_true(router_accepts("Application/JSON;charset=utf-8", "application", "json"));
    assert_true(router_accepts(" , application/json", "application", "json"));
    assert_false(router_accepts("text/html", "application", "json"));
    assert_false(router_accepts("application/json;q=0", "application", "json"));
    assert_false(router_accepts("application/json;q=0.000, text/*", "application", "json"));
    assert_true(router_accepts("application/json;q=0.001", "application", "json"));
    assert_false(router_accepts("json", "application", "json"));
}

static void headers_are_checked_as_jersey_orders_them(void **state)
{
    struct router_match pause = match("PUT", "/connectors/x/pause");
    struct router_match root = match("GET", "/");
    struct router_match task;

    assert_int_equal(router_check(&pause, true, ROUTER_TYPE_NONE), 0);
    assert_int_equal(router_check(&pause, true, ROUTER_TYPE_JSON), 0);
    assert_int_equal(router_check(&pause, true, ROUTER_TYPE_WILD), 0);
    assert_int_equal(router_check(&pause, true, ROUTER_TYPE_OTHER), 415);
    assert_int_equal(router_check(&pause, false, ROUTER_TYPE_OTHER), 415);
    assert_int_equal(router_check(&pause, false, ROUTER_TYPE_JSON), 406);
    assert_int_equal(router_check(&pause, true, ROUTER_TYPE_BAD), 400);
    assert_int_equal(router_check(&root, true, ROUTER_TYPE_OTHER), 0);
    task = match("GET", "/connectors/x/tasks/a/status");
    assert_int_equal(router_check(&task, true, ROUTER_TYPE_NONE), 404);
    task = match("GET", "/connectors/x/tasks/-1/status");
    assert_int_equal(router_check(&task, true, ROUTER_TYPE_NONE), 0);
}

static void task_ids_are_32_bit_integers(void **state)
{
    int task = 77;

    assert_true(router_task("0", &task) && task == 0);
    assert_true(router_task("+1", &task) && task == 1);
    assert_true(router_task("-1", &task) && task == -1);
    assert_true(router_task("007", &task) && task == 7);
    assert_true(router_task("2147483647", &task) && task == INT32_MAX);
    assert_true(router_task("-2147483648", &task) && task == INT32_MIN);
    assert_false(router_task("2147483648", &task));
    assert_false(router_task("99999999999999999999", &task));
    assert_false(router_task("1.0", &task));
    assert_false(router_task("", &task));
    assert_false(router_task("-", &task));
    assert_false(router_task("0x1", &task));
    assert_false(router_task(" 1", &task));
}

static int drop_target(void **state)
{
    router_deinit(&last_target);
    return 0;
}

static void names_that_no_path_can_hold_are_known(void **state)
{
    (void)state;
    assert_null(router_unreachable("my connector; ä {x} ?#[]"));
    assert_null(router_unreachable("..."));
    assert_non_null(strstr(router_unreachable("a/b"), "%2F"));
    assert_non_null(strstr(router_unreachable("100%"), "%25"));
    assert_non_null(strstr(router_unreachable("a\\b"), "backslash"));
    assert_non_null(router_unreachable("."));
    assert_non_null(router_unreachable(".."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_split_then_decoded),
        cmocka_unit_test(matrix_parameters_are_cut),
        cmocka_unit_test(absolute_targets_lose_their_authority),
        cmocka_unit_test(fragments_are_cut),
        cmocka_unit_test(hard_paths_are_refused),
        cmocka_unit_test(query_flags_are_true_only_for_true),
        cmocka_unit_test(broken_escapes_in_queries_stay_as_they_are),
        cmocka_unit_test(many_query_parameters_are_cut_off),
        cmocka_unit_test(known_paths_find_their_row),
        cmocka_unit_test(unknown_paths_are_404_whatever_the_method),
        cmocka_unit_test(wrong_methods_are_405),
        cmocka_unit_test(options_name_the_methods),
        cmocka_unit_test(content_types_are_told_apart),
        cmocka_unit_test(accept_headers_are_lists_of_ranges),
        cmocka_unit_test(headers_are_checked_as_jersey_orders_them),
        cmocka_unit_test(task_ids_are_32_bit_integers),
        cmocka_unit_test(names_that_no_path_can_hold_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, drop_target);
}
