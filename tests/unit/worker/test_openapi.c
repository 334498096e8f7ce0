/* SPDX-License-Identifier: Apache-2.0 */
/* openapi: a document of a table of operations; each path, method and body once, calls between
 * workers not at all. */
#include "worker/rest/openapi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct route table[] = {
    {"GET", "/", 0, ROUTE_NO_BODY, 0, NULL},
    {"POST", "/connectors", 0, ROUTE_CREATE, 0, NULL},
    {"GET", "/connectors/{c}/tasks/{t}/status", 0, ROUTE_NO_BODY, 0, NULL},
    {"PUT", "/connectors/{c}/fence", ROUTE_SIGNED, ROUTE_RAW, 0, NULL},
    {"POST", "/connectors/{c}/restart", 0, ROUTE_NO_BODY, 0, NULL},
    {"PUT", "/admin/loggers/{c}", 0, ROUTE_CONFIG, 0, NULL},
    {"PATCH", "/connectors/{c}/x", 0, ROUTE_RAW, 0, NULL},
};

static const json_t *at(const json_t *doc, const char *path, const char *method)
{
    return json_object_get(json_object_get(json_object_get(doc, "paths"), path), method);
}

static const char *names(const json_t *operation)
{
    static char out[256];
    json_t *list = json_object_get(operation, "parameters");

    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        size_t len = strlen(out);

        snprintf(out + len, sizeof(out) - len, "%s:%s ",
                 json_string_value(json_object_get(one, "in")),
                 json_string_value(json_object_get(one, "name")));
    }
    return out;
}

static const char *body(const json_t *operation)
{
    const json_t *schema = json_object_get(
        json_object_get(json_object_get(json_object_get(operation, "requestBody"), "content"),
                        "application/json"),
        "schema");
    const char *reference = json_string_value(json_object_get(schema, "$ref"));

    return reference != NULL ? reference : schema != NULL ? "any" : "none";
}

static void rows_become_operations(void **state)
{
    json_t *doc = openapi_document(table, sizeof(table) / sizeof(*table), "1.2.3");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(doc, "openapi")), "3.0.3");
    assert_int_equal(json_object_size(json_object_get(doc, "paths")), 6);
    assert_null(at(doc, "/connectors/{connector}/fence", "put"));
    assert_string_equal(body(at(doc, "/", "get")), "none");
    assert_string_equal(body(at(doc, "/connectors", "post")),
                        "#/components/schemas/CreateConnectorRequest");
    assert_string_equal(body(at(doc, "/admin/loggers/{logger}", "put")),
                        "#/components/schemas/Config");
    assert_string_equal(body(at(doc, "/connectors/{connector}/x", "patch")), "any");
    assert_string_equal(names(at(doc, "/connectors/{connector}/tasks/{task}/status", "get")),
                        "path:connector path:task ");
    assert_string_equal(names(at(doc, "/connectors/{connector}/restart", "post")),
                        "path:connector query:includeTasks query:onlyFailed ");
    assert_string_equal(names(at(doc, "/admin/loggers/{logger}", "put")),
                        "path:logger query:scope ");
    assert_string_equal(
        json_string_value(json_object_get(
            at(doc, "/connectors/{connector}/tasks/{task}/status", "get"), "operationId")),
        "getConnectorsConnectorTasksTaskStatus");
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_become_operations)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
