/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations as an OpenAPI document, for people and for tools that make clients or
 * requests of it. Paths, methods and bodies come from the rows; what a query may say stands in a
 * small table here. Called by res_root.c on the loop, for GET /millrace/openapi.json. */
#include "worker/rest/openapi.h"

#include <stdio.h>
#include <string.h>

/* What a query may say. type: of JSON schema; choices: NULL any, else one of these, separated by
 * '|'. */
static const struct {
    const char *method, *pattern, *name, *type, *choices;
} queries[] = {
    {"GET", "/connectors", "expand", "string", "status|info"},
    {"POST", "/connectors/{c}/restart", "includeTasks", "boolean", NULL},
    {"POST", "/connectors/{c}/restart", "onlyFailed", "boolean", NULL},
    {"GET", "/connector-plugins", "connectorsOnly", "boolean", NULL},
    {"GET", "/connector-plugins/{c}/config", "version", "string", NULL},
    {"PUT", "/admin/loggers/{c}", "scope", "string", "worker|cluster"},
};

/* What `{c}` stands for, by the path's first segment. */
static const char *variable(const char *pattern)
{
    if (strncmp(pattern, "/connectors", 11) == 0)
        return "connector";
    return strncmp(pattern, "/admin", 6) == 0 ? "logger" : "pluginName";
}

static json_t *parameter(const char *name, const char *in, json_t *schema)
{
    return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", in, "required",
                     strcmp(in, "path") == 0, "schema", schema);
}

static json_t *choices_of(const char *type, const char *choices)
{
    json_t *schema = json_pack("{s:s}", "type", type);
    json_t *all = json_array();

    while (choices != NULL && *choices != '\0') {
        size_t len = strcspn(choices, "|");

        json_array_append_new(all, json_stringn(choices, len));
        choices += len + (choices[len] == '|');
    }
    if (json_array_size(all) > 0)
        json_object_set(schema, "enum", all);
    json_decref(all);
    return schema;
}

static json_t *parameters_of(const struct route *route)
{
    json_t *all = json_array();

    if (strstr(route->pattern, "{c}") != NULL)
        json_array_append_new(
            all, parameter(variable(route->pattern), "path", json_pack("{s:s}", "type", "string")));
    if (strstr(route->pattern, "{t}") != NULL)
        json_array_append_new(
            all, parameter("task", "path",
                           json_pack("{s:s, s:s}", "type", "integer", "format", "int32")));
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
        if (strcmp(queries[i].method, route->method) == 0 &&
            strcmp(queries[i].pattern, route->pattern) == 0)
            json_array_append_new(all, parameter(queries[i].name, "query",
                                                 choices_of(queries[i].type, queries[i].choices)));
    return all;
}

static json_t *reference(const char *schema)
{
    char path[64];

    snprintf(path, sizeof(path), "#/components/schemas/%s", schema);
    return json_pack("{s:s}", "$ref", path);
}

static json_t *content_of(json_t *schema)
{
    return json_pack("{s:{s:o}}", "application/json", "schema", schema);
}

static void set_body(json_t *operation, enum route_body body)
{
    static const char *const schemas[] = {[ROUTE_CREATE] = "CreateConnectorRequest",
                                          [ROUTE_CONFIG] = "Config",
                                          [ROUTE_OFFSETS] = "ConnectorOffsets"};
    json_t *schema;

    if (body == ROUTE_NO_BODY)
        return;
    schema = (size_t)body < sizeof(schemas) / sizeof(*schemas) && schemas[body] != NULL
                 ? reference(schemas[body])
                 : json_pack("{s:s}", "type", "object");
    json_object_set_new(operation, "requestBody",
                        json_pack("{s:b, s:o}", "required", 1, "content", content_of(schema)));
}

/* GET /connectors/{connector}/status: getConnectorsConnectorStatus. */
static void name_operation(char *out, size_t size, const char *method, const char *path)
{
    size_t len = 0;
    bool upper = false;

    for (; *method != '\0' && len + 1 < size; method++)
        out[len++] = (char)(*method | 0x20);
    for (; *path != '\0' && len + 1 < size; path++) {
        bool letter = (*path | 0x20) >= 'a' && (*path | 0x20) <= 'z';

        if (letter)
            out[len++] = (char)(upper ? *path & ~0x20 : *path);
        upper = !letter;
    }
    out[len] = '\0';
}

static json_t *operation_of(const struct route *route, const char *path)
{
    json_t *operation = json_object();
    char name[128];

    name_operation(name, sizeof(name), route->method, path);
    json_object_set_new(operation, "operationId", json_string(name));
    json_object_set_new(operation, "parameters", parameters_of(route));
    set_body(operation, route->body);
    json_object_set_new(operation, "responses",
                        json_pack("{s:{s:s}, s:{s:s, s:o}}", "2XX", "description", "done",
                                  "default", "description", "refused or failed", "content",
                                  content_of(reference("Error"))));
    return operation;
}

/* "/connectors/{connector}/tasks/{task}/status" */
static void spell_path(char *out, size_t size, const char *pattern)
{
    const char *named = variable(pattern);
    size_t len = 0;

    out[0] = '\0';
    while (*pattern != '\0' && len + 1 < size) {
        bool braced = *pattern == '{';

        if (braced)
            len +=
                (size_t)snprintf(out + len, size - len, "{%s}", pattern[1] == 'c' ? named : "task");
        else
            len += (size_t)snprintf(out + len, size - len, "%c", *pattern);
        pattern += braced ? 3 : 1;
    }
}

static json_t *paths_of(const struct route *routes, size_t count)
{
    json_t *paths = json_object();

    for (size_t i = 0; i < count; i++) {
        char path[128], method[16] = "";
        json_t *there;

        if ((routes[i].flags & ROUTE_SIGNED) != 0)
            continue;
        spell_path(path, sizeof(path), routes[i].pattern);
        for (size_t c = 0; routes[i].method[c] != '\0' && c + 1 < sizeof(method); c++)
            method[c] = (char)(routes[i].method[c] | 0x20);
        there = json_object_get(paths, path);
        if (there == NULL && json_object_set_new(paths, path, there = json_object()) != 0)
            continue;
        json_object_set_new(there, method, operation_of(&routes[i], path));
    }
    return paths;
}

static json_t *offsets_schema(void)
{
    json_t *map = json_pack("{s:s, s:b}", "type", "object", "nullable", 1);
    json_t *entry = json_pack("{s:s, s:b, s:{s:O, s:O}}", "type", "object", "additionalProperties",
                              0, "properties", "partition", map, "offset", map);

    json_decref(map);
    return json_pack("{s:s, s:b, s:{s:{s:s, s:o}}}", "type", "object", "additionalProperties", 0,
                     "properties", "offsets", "type", "array", "items", entry);
}

static json_t *schemas(void)
{
    return json_pack(
        "{s:{s:s, s:{s:{s:s}, s:{s:s, s:b}}}, s:{s:s, s:{s:s, s:b}}, s:{s:s, s:[s, s], s:b, "
        "s:{s:{s:s}, s:o, s:{s:s, s:[s, s, s]}}}, s:o}",
        /* Error */
        "Error", "type", "object", "properties", "error_code", "type", "integer", "message", "type",
        "string", "nullable", 1,
        /* Config */
        "Config", "type", "object", "additionalProperties", "type", "string", "nullable", 1,
        /* CreateConnectorRequest */
        "CreateConnectorRequest", "type", "object", "required", "name", "config",
        "additionalProperties", 0, "properties", "name", "type", "string", "config",
        reference("Config"), "initial_state", "type", "string", "enum", "RUNNING", "PAUSED",
        "STOPPED", "ConnectorOffsets", offsets_schema());
}

json_t *openapi_document(const struct route *routes, size_t count, const char *version)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.0.3", "info", "title",
                     "Millrace", "description",
                     "Kafka Connect's REST API, as this worker answers it", "version", version,
                     "paths", paths_of(routes, count), "components", "schemas", schemas());
}
