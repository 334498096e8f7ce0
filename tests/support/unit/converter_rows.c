/* SPDX-License-Identifier: Apache-2.0 */
/* One row, one converter: configured as the row says, fed its input, compared with its output or
 * error. */
#include "support/unit/converter_rows.h"

#include "host/data/values.h"
#include "support/unit/plugin_host.h"

#include <string.h>

static const char *show(struct plugin_host *h, struct mr_value v)
{
    size_t len;
    const char *p = values_text(plugin_host_arena(h), v, &len);
    char *copy = mr_alloc(plugin_host_arena(h), 201);

    len = len > 200 ? 200 : len;
    memcpy(copy, p, len);
    copy[len] = '\0';
    return copy;
}

/* Has it a map with an order that Java's HashMap may have changed? */
static bool has_map(const json_t *from)
{
    const json_t *inner;
    const char *key;
    size_t i;

    if (json_array_size(json_object_get(from, "map")) > 1)
        return true;
    json_array_foreach(from, i, inner)
    {
        if (has_map(inner))
            return true;
    }
    json_object_foreach((json_t *)(uintptr_t)from, key, inner)
    {
        if (has_map(inner))
            return true;
    }
    return false;
}

/* Member order of maps has no meaning in Java. */
static bool same_json(const char *a, size_t a_len, const char *b, size_t b_len)
{
    json_t *x = json_loadb(a, a_len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    json_t *y = json_loadb(b, b_len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    bool same = a_len == b_len && x != NULL && json_equal(x, y);

    json_decref(x);
    json_decref(y);
    return same;
}

static bool from_connect(struct plugin_host *h, const json_t *row)
{
    struct mr_arena *arena = plugin_host_arena(h);
    const json_t *input = json_object_get(row, "input");
    const struct mr_schema *schema;
    const char *expected;
    const void *data = "";
    size_t len = 0, expected_len;
    struct mr_value v;
    int rc;

    if (!oracle_schema(arena, json_object_get(input, "schema"), &schema, &h->err) ||
        !oracle_value(arena, json_object_get(input, "value"), schema, &v))
        return false;
    rc = plugin_host_from_connect(h, schema, v, &data, &len);
    if (json_object_get(row, "error") != NULL)
        return oracle_failure(row, &h->err, true);
    if (rc != 0)
        return oracle_wrong("refused: %s", h->err.text);
    oracle_bytes(arena, json_object_get(row, "output"), &expected, &expected_len);
    if ((data == NULL) != (expected == NULL))
        return oracle_wrong(data == NULL ? "null" : "not null");
    return data == NULL || (len == expected_len && memcmp(data, expected, len) == 0) ||
           (has_map(input) && same_json(data, len, expected, expected_len)) ||
           oracle_wrong("%.*s where Java has %.*s", (int)len, (const char *)data, (int)expected_len,
                        expected);
}

static bool to_connect(struct plugin_host *h, const json_t *row)
{
    struct mr_arena *arena = plugin_host_arena(h);
    const json_t *output = json_object_get(row, "output");
    const struct mr_schema *schema = NULL, *expected_schema;
    struct mr_value v = {0}, expected;
    const char *data;
    size_t len;
    int rc;

    oracle_bytes(arena, json_object_get(row, "input"), &data, &len);
    rc = plugin_host_to_connect(h, data, len, &schema, &v);
    if (json_object_get(row, "error") != NULL)
        return oracle_failure(row, &h->err, true);
    if (rc != 0)
        return oracle_wrong("refused: %s", h->err.text);
    if (!oracle_schema(arena, json_object_get(output, "schema"), &expected_schema, &h->err) ||
        !oracle_value(arena, json_object_get(output, "value"), expected_schema, &expected))
        return oracle_wrong("the row's output can't be made: %s", h->err.text);
    if (schema != expected_schema)
        return oracle_wrong("another schema");
    return values_equal(v, expected) ||
           oracle_wrong("%s where Java has %s", show(h, v), show(h, expected));
}

bool converter_row(const json_t *row, void *name)
{
    const char *op = json_string_value(json_object_get(row, "op"));
    const char *keys[40] = {"converter.type", strstr(op, "Header") != NULL ? "header"
                                              : json_is_true(json_object_get(row, "isKey"))
                                                  ? "key"
                                                  : "value"};
    bool from = strncmp(op, "from", 4) == 0;
    struct plugin_host h = {.stored = -1};
    const char *key;
    json_t *value;
    size_t n = 2;
    bool good;

    json_object_foreach(json_object_get(row, "config"), key, value)
    {
        if (strcmp(key, "converter.type") == 0) {
            keys[1] = json_string_value(value);
            continue;
        }
        keys[n++] = key;
        keys[n++] = json_string_value(value);
    }
    if (name == NULL)
        name = (void *)(uintptr_t)json_string_value(json_object_get(row, "class"));
    if (plugin_host_open(&h, name, keys) != 0)
        good = json_object_get(row, "error") != NULL ? oracle_failure(row, &h.err, false)
                                                     : oracle_wrong("not started: %s", h.err.text);
    else
        good = from ? from_connect(&h, row) : to_connect(&h, row);
    if (good && h.batch->over)
        good = oracle_wrong("broke a rule: %s", h.batch->fault);
    plugin_host_close(&h);
    return good;
}
