/* SPDX-License-Identifier: Apache-2.0 */
/* One row, one transform or predicate: configured as the row says, given its record, compared with
 * its output or error. */
#include "support/unit/transform_rows.h"

#include "host/data/values.h"
#include "support/unit/plugin_host.h"

#include <string.h>

#define KEYS_MAX 40

static const char *show(struct plugin_host *h, struct mr_value v)
{
    size_t len;
    const char *p = values_text(plugin_host_arena(h), v, &len);
    char *copy = mr_alloc(plugin_host_arena(h), 301);

    len = len > 300 ? 300 : len;
    memcpy(copy, p, len);
    copy[len] = '\0';
    return copy;
}

/* --- records ---------------------------------------------------------------------------------- */

static bool read_half(struct plugin_host *h, const json_t *from, const struct mr_schema **schema,
                      struct mr_value *v)
{
    return oracle_schema(plugin_host_arena(h), json_object_get(from, "schema"), schema, &h->err) &&
           oracle_value(plugin_host_arena(h), json_object_get(from, "value"), *schema, v);
}

static int64_t number_or(const json_t *from, int64_t otherwise)
{
    return json_is_integer(from) ? json_integer_value(from) : otherwise;
}

static bool read_record(struct plugin_host *h, const json_t *from, struct record **out)
{
    const char *topic = json_string_value(json_object_get(from, "topic"));
    bool sink = strcmp(json_string_value(json_object_get(from, "kind")), "sink") == 0;
    struct record *rec;
    const json_t *header;
    size_t i;

    if (topic == NULL)
        return oracle_wrong("a record without a topic");
    rec = batch_add(h->batch, topic);
    rec->pub.partition = (int32_t)number_or(json_object_get(from, "partition"), MR_NO_PARTITION);
    rec->pub.offset = sink ? number_or(json_object_get(from, "offset"), 0) : -1;
    rec->pub.timestamp = number_or(json_object_get(from, "timestamp"), MR_NO_TIMESTAMP);
    if (!read_half(h, json_object_get(from, "key"), &rec->pub.key_schema, &rec->pub.key) ||
        !read_half(h, json_object_get(from, "value"), &rec->pub.value_schema, &rec->pub.value))
        return false;
    json_array_foreach(json_object_get(from, "headers"), i, header)
    {
        const struct mr_schema *schema;
        struct mr_value v;

        if (!read_half(h, header, &schema, &v))
            return false;
        mr_record_header(&rec->pub, json_string_value(json_object_get(header, "name")), schema, v);
    }
    *out = rec;
    return true;
}

/* Without a schema the kinds of time are one, java.util.Date: TIMESTAMPs all of them. */
static struct mr_value as_java(struct plugin_host *h, struct mr_value v)
{
    struct mr_value copy = v;

    if (v.kind == MR_KIND_DATE || v.kind == MR_KIND_TIME)
        return mr_timestamp(v.kind == MR_KIND_DATE ? v.u.i * 86400000 : v.u.i);
    if (v.kind == MR_KIND_LIST)
        copy = mr_list(plugin_host_arena(h), v.len);
    for (uint32_t i = 0; v.kind == MR_KIND_LIST && i < v.len; i++)
        mr_items(copy)[i] = as_java(h, mr_items(v)[i]);
    if (v.kind == MR_KIND_MAP)
        copy = mr_map(plugin_host_arena(h), v.len);
    for (uint32_t i = 0; v.kind == MR_KIND_MAP && i < v.len; i++) {
        mr_pairs(copy)[i].key = mr_pairs(v)[i].key;
        mr_pairs(copy)[i].value = as_java(h, mr_pairs(v)[i].value);
    }
    return copy;
}

static bool same_half(struct plugin_host *h, const char *what, const struct mr_schema *schema,
                      struct mr_value v, const struct mr_schema *wanted_schema,
                      struct mr_value wanted)
{
    if (schema != wanted_schema)
        return oracle_wrong("%s: another schema (%s where Java has %s)", what, show(h, v),
                            show(h, wanted));
    if (schema == NULL)
        v = as_java(h, v);
    return (values_equal(v, wanted) && values_equal(wanted, v)) ||
           oracle_wrong("%s: %s where Java has %s", what, show(h, v), show(h, wanted));
}

static bool same_headers(struct plugin_host *h, const struct mr_record *a,
                         const struct mr_record *b)
{
    if (a->header_count != b->header_count)
        return oracle_wrong("%u headers where Java has %u", a->header_count, b->header_count);
    for (uint32_t i = 0; i < a->header_count; i++) {
        const struct mr_header *x = mr_header_at(a, i), *y = mr_header_at(b, i);

        if (strcmp(x->name, y->name) != 0 || x->name_len != strlen(x->name))
            return oracle_wrong("header %s where Java has %s", x->name, y->name);
        if (!same_half(h, x->name, x->schema, x->value, y->schema, y->value))
            return false;
    }
    return true;
}

static bool same_record(struct plugin_host *h, const struct mr_record *a, const struct mr_record *b)
{
    if (strcmp(a->topic, b->topic) != 0)
        return oracle_wrong("topic %s where Java has %s", a->topic, b->topic);
    if (a->partition != b->partition || a->offset != b->offset || a->timestamp != b->timestamp)
        return oracle_wrong("another partition, offset or timestamp");
    return same_half(h, "key", a->key_schema, a->key, b->key_schema, b->key) &&
           same_half(h, "value", a->value_schema, a->value, b->value_schema, b->value) &&
           same_headers(h, a, b);
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool untouched(struct plugin_host *h, const json_t *row, const struct mr_record *before)
{
    struct record *fresh;

    return read_record(h, json_object_get(row, "input"), &fresh) &&
           (same_record(h, before, &fresh->pub) || oracle_wrong("the input was written to"));
}

static bool apply(struct plugin_host *h, const json_t *row)
{
    const json_t *output = json_object_get(row, "output");
    struct record *rec, *wanted;
    struct mr_record before;
    int rc;

    if (!read_record(h, json_object_get(row, "input"), &rec))
        return false;
    before = rec->pub;
    rc = plugin_host_apply(h, rec);
    if (!untouched(h, row, &before))
        return false;
    if (json_object_get(row, "error") != NULL)
        return oracle_failure(row, &h->err, true);
    if (rc < 0)
        return oracle_wrong("refused: %s", h->err.text);
    if (json_is_null(output) || rc == MR_DROP)
        return (json_is_null(output) && rc == MR_DROP) || oracle_wrong("dropped, or not");
    return read_record(h, output, &wanted) && same_record(h, &rec->pub, &wanted->pub);
}

static bool test(struct plugin_host *h, const json_t *row)
{
    struct record *rec;
    int rc;

    if (!read_record(h, json_object_get(row, "input"), &rec))
        return false;
    rc = plugin_host_test(h, rec);
    if (json_object_get(row, "error") != NULL)
        return oracle_failure(row, &h->err, true);
    return rc == json_is_true(json_object_get(row, "output")) || oracle_wrong("gives %d", rc);
}

bool transform_row(const json_t *row, void *unused)
{
    const char *keys[KEYS_MAX + 1] = {NULL}, *key;
    bool (*run)(struct plugin_host * h, const json_t *row) =
        strcmp(json_string_value(json_object_get(row, "op")), "apply") == 0 ? apply : test;
    struct plugin_host h = {.stored = -1};
    json_t *value;
    size_t n = 0;
    bool good;

    (void)unused;
    json_object_foreach(json_object_get(row, "config"), key, value)
    {
        if (n + 2 > KEYS_MAX)
            break;
        keys[n++] = key;
        keys[n++] = json_string_value(value); /* NULL: null */
    }
    if (plugin_host_open(&h, json_string_value(json_object_get(row, "class")), keys) != 0)
        good = json_object_get(row, "error") != NULL ? oracle_failure(row, &h.err, false)
                                                     : oracle_wrong("not started: %s", h.err.text);
    else
        good = run(&h, row) && run(&h, row);
    if (good && h.batch->over)
        good = oracle_wrong("broke a rule: %s", h.batch->fault);
    if (good && h.started && h.inst.misuse.code != 0)
        good = oracle_wrong("misused: %s", h.inst.misuse.text);
    plugin_host_close(&h);
    return good;
}
