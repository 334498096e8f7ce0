/* SPDX-License-Identifier: Apache-2.0 */
/* ExtractField: one field in place of the whole key or value; the field may be nested
 * (field.syntax.version=V2). A plan's steps are the slots on the way. On the task's thread. */
#include "field_path.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#define PURPOSE "field extraction"

struct extract_field {
    enum half_side side;
    bool defaults;
    const char *text;
    struct field_path path;
    struct schema_plans plans;
};

static const struct mr_config_key extract_field_keys[] = {
    {.name = "field",
     .flags = MR_CFG_REQUIRED,
     .doc = "Name of the field to take out.",
     .importance = MR_CFG_MEDIUM},
    HALF_DEFAULTS_KEY,
    {.name = "field.syntax.version",
     .fallback = "V1",
     .doc = "How field is read: V1 as the name of a field; V2 as a path to a nested field, with "
            "dots between names, and backticks around a name that has dots.",
     .choices = "~v1|v2",
     .importance = MR_CFG_HIGH},
    {0},
};

static int extract_field_start(void *self, struct mr_task *task, enum half_side side,
                               struct mr_error *err)
{
    struct extract_field *e = (struct extract_field *)self;

    e->side = side;
    e->defaults = half_defaults(task);
    e->text = mr_config_str(task, "field");
    return field_path_parse(&e->path, e->text,
                            strcmp(mr_config_str(task, "field.syntax.version") + 1, "2") == 0, err);
}

static void extract_field_stop(void *self)
{
    struct extract_field *e = (struct extract_field *)self;

    schema_plans_free(&e->plans);
    field_path_free(&e->path);
}

/* The path's slots in a schema. */
static int walk(void *self, struct mr_arena *arena, struct schema_plan *plan, struct mr_error *err)
{
    const struct extract_field *e = self;
    const struct mr_schema *at = plan->from;

    for (size_t i = 0; i < plan->count; i++) {
        if (at->kind != MR_KIND_STRUCT)
            return mr_fail(err, MR_ERR_DATA, "Cannot look up fields on non-struct type");
        plan->steps[i].from = mr_schema_index(at, e->path.steps[i].text);
        if (plan->steps[i].from < 0)
            return mr_fail(err, MR_ERR_DATA,
                           "java.lang.IllegalArgumentException: Unknown field: %s", e->text);
        at = at->fields[plan->steps[i].from].schema;
    }
    plan->to = at;
    return MR_OK;
}

/* Defaults on the way always count, the last one's only when they are wanted. (A struct that is a
 * default is of a schema that has the same fields and no default.) */
static int follow(const struct extract_field *e, const struct schema_plan *plan, struct mr_value *v,
                  struct mr_error *err)
{
    const struct mr_schema *at = plan->from;
    bool is_default = false;

    for (size_t i = 0; i < plan->count && !mr_is_null(*v); i++) {
        struct mr_value raw;
        int rc = is_default
                     ? MR_OK
                     : requirement_struct(at, *v, i == 0 ? PURPOSE : "nested field access", err);

        if (rc != MR_OK)
            return rc;
        at = at->fields[plan->steps[i].from].schema;
        raw = mr_slots(*v)[plan->steps[i].from];
        *v = schema_plan_get(at, raw, e->defaults || i + 1 < plan->count);
        is_default = mr_is_null(raw);
    }
    return MR_OK;
}

static int extract_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                               struct mr_error *err)
{
    struct extract_field *e = (struct extract_field *)self;
    const struct mr_schema *schema = half_schema(rec, e->side);
    struct mr_value v = half_value(rec, e->side);
    struct schema_plan *plan;
    int rc = MR_OK;

    if (schema == NULL) {
        if (!mr_is_null(v))
            rc = requirement_map(v, PURPOSE, err);
        if (rc == MR_OK)
            rc = field_path_get(&e->path, v, &v, err);
        return rc == MR_OK ? half_put(rec, e->side, NULL, v) : rc;
    }
    if (!mr_is_null(v) && v.kind != MR_KIND_STRUCT)
        return requirement_struct(schema, v, PURPOSE, err);
    rc = schema_plans_of(&e->plans, schema, &(struct schema_planner){walk, e, arena, e->path.count},
                         &plan, err);
    if (rc == MR_OK)
        rc = follow(e, plan, &v, err);
    return rc == MR_OK ? half_put(rec, e->side, plan->to, v) : rc;
}

HALF_TRANSFORM(extract_field, "ExtractField", .keys = extract_field_keys,
               .doc = "Takes one field in place of the whole key or value",
               .state_size = sizeof(struct extract_field), .apply = extract_field_apply,
               .stop = extract_field_stop);
