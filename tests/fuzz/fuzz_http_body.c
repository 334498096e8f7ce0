/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of REST: a request as four lines (method, target, Accept, Content-Type) and a body.
 * What must hold whatever comes: nothing is read past its end, a path that is taken is clean UTF-8
 * without separators, text that is taken has no NUL inside, and an answer made of either is
 * JSON. */
#include "base/utf8.h"
#include "worker/rest/entities.h"
#include "model/conn_config.h"
#include "worker/rest/request_json.h"
#include "worker/rest/router.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds)
        abort();
}

static const struct route table[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "POST", .pattern = "/connectors", .body = ROUTE_CREATE},
    {.method = "PUT", .pattern = "/connectors/{c}/config", .body = ROUTE_CONFIG},
    {.method = "GET", .pattern = "/connectors/{c}/tasks/{t}/status", .flags = ROUTE_ANY_TYPE},
};

static void answer_with(const char *message)
{
    struct answer answer = {0};
    json_t *body;

    entities_error(&answer, 400, message);
    body = json_parse(answer.body, answer.len, NULL);
    must(json_is_string(json_object_get(body, "message")));
    json_decref(body);
    entities_deinit(&answer);
}

static void check_target(const struct router_target *target)
{
    for (size_t i = 0; i < target->segment_count && i < ROUTER_SEGMENTS; i++) {
        const char *s = target->segment[i];
        char *url;

        must(*s != '\0' && utf8_valid(s, strlen(s)) && strpbrk(s, "/\\%\x7f\n\r") == NULL);
        url = entities_location("http://h:1", s);
        must(url == NULL || strpbrk(url, " \n\r\"<>") == NULL);
        free(url);
        answer_with(s);
    }
    for (size_t i = 0; i < target->query_count; i++)
        must(strlen(target->query[i].key) <= 65536 && strlen(target->query[i].value) <= 65536);
    (void)router_flag(target, "includeTasks", false);
}

static void route(char *line[LINES])
{
    struct router_target target;
    struct router_match match = {0};
    struct mr_error err = {0};

    (void)router_accepts(line[2], "application", "json");
    (void)router_type(line[3]);
    if (router_parse(&target, line[1], &err) != 0) {
        must(err.code < 0);
        answer_with(err.text);
        return;
    }
    if (router_check_path(&target, &match, &err) == 0) /* as a user may ask */
        check_target(&target);
    else
        answer_with(err.text);
    router_match(table, sizeof(table) / sizeof(*table), line[0], &target, &match);
    if (match.status == 0)
        (void)router_check(&match, router_accepts(line[2], "application", "json"),
                           router_type(line[3]));
    router_deinit(&target);
}

static void check_config(const struct props *config)
{
    must(config->count <= CONN_CONFIG_KEYS_MAX);
    for (size_t i = 0; i < config->count; i++) {
        const struct props_entry *e = &config->entries[i];

        must(utf8_valid(e->key, strlen(e->key)));
        must(e->value == NULL || utf8_valid(e->value, strlen(e->value)));
    }
}

static void read_body(const char *body, size_t len)
{
    struct request_create create;
    struct props config;
    struct mr_error err = {0};
    bool absent;

    if (request_json_create(body, len, &create, &absent, &err) == 0) {
        check_config(&create.config);
        request_json_create_deinit(&create);
    } else {
        answer_with(err.text);
    }
    err = (struct mr_error){0};
    if (request_json_config(body, len, &config, &absent, &err) == 0) {
        check_config(&config);
        props_deinit(&config);
    } else {
        answer_with(err.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *line[LINES];
    char *at = text;

    must(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < LINES; i++) {
        char *end = memchr(at, '\n', (size_t)(text + size - at));

        line[i] = at;
        if (end == NULL) {
            for (; i < LINES; i++)
                line[i] = at;
            at = text + size;
            break;
        }
        *end = '\0';
        at = end + 1;
    }
    route(line);
    read_body(at, (size_t)(text + size - at));
    free(text);
    return 0;
}
