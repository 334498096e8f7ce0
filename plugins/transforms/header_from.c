/* SPDX-License-Identifier: Apache-2.0 */
/* HeaderFrom: fields of the key or value, copied or moved into headers. The step after the slots of
 * the new schema are, one for each named field, the slots that headers take. On the task's
 * thread. */
#include "field_name.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

struct header_from {
    enum half_side side;
    bool move;
    bool defaults;
    const char *purpose;
    const struct mr_task *task;
    struct field_names fields;
    struct field_names headers;
    struct schema_plans plans;
};

static const struct mr_config_key header_from_keys[] = {
    {.name = "fields",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Names of the fields that become headers.",
     .importance = MR_CFG_HIGH},
    {.name = "headers",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Names of the headers, in the order of the fields.",
     .importance = MR_CFG_HIGH},
    {.name = "operation",
     .flags = MR_CFG_REQUIRED,
     .doc = "move, which takes the fields out of the key or value, or copy, which leaves them.",
     .choices = "move|copy",
     .importance = MR_CFG_HIGH},
    HALF_DEFAULTS_KEY,
    {0},
};

static int header_from_check(const struct mr_task *config, const char *key, const char *shown,
                             struct mr_error *err)
{
    bool list = strcmp(key, "fields") == 0 || strcmp(key, "headers") == 0;

    if (!list || mr_config_count(config, key) > 0)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG, "Invalid value %s for configuration %s: Empty list",
                   mr_config_raw(config, key) != NULL ? "[]" : "null", shown);
}

static int header_from_start(void *self, struct mr_task *task, enum half_side side,
                             struct mr_error *err)
{
    struct header_from *h = (struct header_from *)self;
    int rc = field_names_read(&h->fields, task, "fields", err);

    h->side = side;
    h->task = task;
    h->defaults = half_defaults(task);
    h->move = strcmp(mr_config_str(task, "operation"), "move") == 0;
    h->purpose = h->move ? "header move" : "header copy";
    if (rc == MR_OK)
        rc = field_names_read(&h->headers, task, "headers", err);
    if (rc == MR_OK && h->fields.count != h->headers.count)
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "'fields' config must have the same number of elements as 'headers' config.");
    return rc;
}

static void header_from_stop(void *self)
{
    struct header_from *h = (struct header_from *)self;

    schema_plans_free(&h->plans);
    field_names_free(&h->fields);
    field_names_free(&h->headers);
}

static int add_header(const struct header_from *h, struct mr_arena *arena, struct mr_record *rec,
                      size_t i, const struct mr_schema *schema, struct mr_value v,
                      struct mr_error *err)
{
    int rc = mr_header_check(arena, schema, v, err);

    if (rc == MR_OK)
        mr_record_header(rec, h->headers.at[i].text, schema, v);
    return rc;
}

/* --- with a schema ---------------------------------------------------------------------------- */

/* The slots that stay, and the schema of these. */
static int plan_rest(const struct header_from *h, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    struct mr_schema_spec spec = schema_plan_basics(plan->from, MR_KIND_STRUCT);
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->from->field_count);

    for (uint32_t i = 0; i < plan->from->field_count; i++) {
        if (field_names_have(&h->fields, plan->from->fields[i].name))
            continue;
        plan->steps[spec.field_count].from = (int32_t)i;
        fields[spec.field_count++] = plan->from->fields[i];
    }
    spec.fields = fields;
    plan->count = spec.field_count;
    return schema_plan_make(h->task, &spec, &plan->to, err);
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct header_from *h = self;
    struct schema_step *taken = &plan->steps[plan->from->field_count];

    plan->count = plan->from->field_count;
    for (size_t i = 0; i < h->fields.count; i++) {
        taken[i].from = mr_schema_index(plan->from, h->fields.at[i].text);
        if (taken[i].from < 0)
            return mr_fail(err, MR_ERR_DATA,
                           "java.lang.NullPointerException: Field does not exist: %s",
                           h->fields.at[i].text);
    }
    plan->to = plan->from;
    return h->move ? plan_rest(h, arena, plan, err) : MR_OK;
}

static int from_struct(struct header_from *h, struct mr_arena *arena,
                       const struct mr_schema *schema, struct mr_record *rec, struct mr_error *err)
{
    struct mr_value v = half_value(rec, h->side), rest = v;
    const struct schema_step *taken;
    struct schema_plan *plan;
    int rc = requirement_struct(schema, v, h->purpose, err);

    if (rc == MR_OK)
        rc = schema_plans_of(
            &h->plans, schema,
            &(struct schema_planner){plan_fill, h, arena, schema->field_count + h->fields.count},
            &plan, err);
    if (rc == MR_OK && h->move)
        rc = schema_plan_run(plan, arena, v, h->defaults, NULL, NULL, &rest, err);
    if (rc != MR_OK)
        return rc;
    taken = &plan->steps[schema->field_count];
    for (size_t i = 0; i < h->fields.count && rc == MR_OK; i++) {
        const struct mr_schema *of = schema->fields[taken[i].from].schema;

        rc = add_header(h, arena, rec, i, of,
                        schema_plan_get(of, mr_slots(v)[taken[i].from], h->defaults), err);
    }
    return rc == MR_OK ? half_put(rec, h->side, plan->to, rest) : rc;
}

/* --- without a schema ------------------------------------------------------------------------- */

static void remove_at(struct mr_value *map, size_t at)
{
    struct mr_pair *pairs = mr_pairs(*map);

    memmove(&pairs[at], &pairs[at + 1], (map->len - at - 1) * sizeof(*pairs));
    map->len--;
}

static int from_map(struct header_from *h, struct mr_arena *arena, struct mr_record *rec,
                    struct mr_error *err)
{
    struct mr_value v = half_value(rec, h->side), rest;
    int rc = requirement_map(v, h->purpose, err);

    if (rc != MR_OK)
        return rc;
    rest = h->move ? field_name_map(arena, v, 0) : v;
    for (size_t i = 0; i < h->fields.count && rc == MR_OK; i++) {
        struct field_name *name = &h->fields.at[i];
        int64_t at = field_name_find(name, mr_pairs(v), v.len);

        rc = add_header(h, arena, rec, i, NULL, at < 0 ? mr_null() : mr_pairs(v)[at].value, err);
        if (!h->move || at < 0)
            continue;
        at = field_name_find(&(struct field_name){name->text, name->len, 0}, mr_pairs(rest),
                             rest.len);
        if (at >= 0)
            remove_at(&rest, (size_t)at);
    }
    return rc == MR_OK ? half_put(rec, h->side, NULL, rest) : rc;
}

static int header_from_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                             struct mr_error *err)
{
    struct header_from *h = (struct header_from *)self;
    const struct mr_schema *schema = half_schema(rec, h->side);

    return schema == NULL ? from_map(h, arena, rec, err) : from_struct(h, arena, schema, rec, err);
}

HALF_TRANSFORM(header_from, "HeaderFrom", .keys = header_from_keys,
               .doc = "Copies or moves fields into headers",
               .state_size = sizeof(struct header_from), .apply = header_from_apply,
               .stop = header_from_stop, .check = header_from_check);
