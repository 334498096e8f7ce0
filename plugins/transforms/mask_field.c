/* SPDX-License-Identifier: Apache-2.0 */
/* MaskField: nothing, or a fixed replacement, in place of what fields hold; their kinds stay. On
 * the task's thread. */
#include "field_name.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#define PURPOSE "mask fields"

struct mask_field {
    enum half_side side;
    bool defaults;
    const struct mr_task *task;
    const char *replacement; /* NULL: nothing */
    struct field_names fields;
    struct mr_value made[MR_KIND_FLOAT64 + 1]; /* the replacement as a number of each kind */
    bool known[MR_KIND_FLOAT64 + 1];
    struct schema_plans plans;
};

static const struct mr_config_key mask_field_keys[] = {
    {.name = "fields",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Names of the fields to mask.",
     .importance = MR_CFG_HIGH},
    {.name = "replacement",
     .flags = MR_CFG_NON_EMPTY,
     .doc = "What numbers and texts among the fields are replaced with; without it they become 0 "
            "and empty.",
     .importance = MR_CFG_LOW},
    HALF_DEFAULTS_KEY,
    {0},
};

static int mask_field_start(void *self, struct mr_task *task, enum half_side side,
                            struct mr_error *err)
{
    struct mask_field *m = (struct mask_field *)self;

    m->side = side;
    m->task = task;
    m->defaults = half_defaults(task);
    m->replacement = mr_config_str(task, "replacement");
    return field_names_read(&m->fields, task, "fields", err);
}

static void mask_field_stop(void *self)
{
    struct mask_field *m = (struct mask_field *)self;

    schema_plans_free(&m->plans);
    field_names_free(&m->fields);
}

/* --- values ----------------------------------------------------------------------------------- */

static int mask_with_nothing(struct mr_value *v, struct mr_error *err)
{
    static const struct mr_decimal zero = {.scale = 0, .len = 1, .bytes = {0}};

    switch (v->kind) {
    case MR_KIND_BYTES:
    case MR_KIND_STRUCT:
        return mr_fail(err, MR_ERR_DATA, "Cannot mask value of type: class %s", mr_java_class(*v));
    case MR_KIND_FLOAT32:
        *v = mr_float(0);
        return MR_OK;
    case MR_KIND_FLOAT64:
        *v = mr_double(0);
        return MR_OK;
    case MR_KIND_STRING:
    case MR_KIND_LIST:
    case MR_KIND_MAP:
        *v = mr_ptr_of(v->kind, "", 0);
        return MR_OK;
    case MR_KIND_DECIMAL:
        *v = mr_ptr_of(MR_KIND_DECIMAL, &zero, 0);
        return MR_OK;
    default: /* integers, and time as the epoch */
        *v = mr_int_of(v->kind, 0);
        return MR_OK;
    }
}

static int wanted(const struct mask_field *m, uint8_t kind, const struct mr_schema **schema,
                  struct mr_error *err)
{
    static const struct mr_param scale = {"scale", "0"};
    const struct mr_schema_spec plain = {.kind = kind};
    const struct mr_schema_spec decimal = {.kind = MR_KIND_BYTES,
                                           .name = MR_LOGICAL_DECIMAL,
                                           .has_version = true,
                                           .version = 1,
                                           .params = &scale,
                                           .param_count = 1};

    return schema_plan_make(m->task, kind == MR_KIND_DECIMAL ? &decimal : &plain, schema, err);
}

static int convert(const struct mask_field *m, struct mr_arena *arena, uint8_t kind,
                   struct mr_value *out, struct mr_error *err)
{
    const struct mr_schema *schema;
    struct mr_error own = {0};
    int rc = wanted(m, kind, &schema, err);

    if (rc != MR_OK)
        return rc;
    if (kind != MR_KIND_DECIMAL)
        return mr_value_convert(arena, schema, NULL, mr_str(m->replacement), out, err);
    if (mr_value_convert(arena, schema, NULL, mr_str(m->replacement), out, &own) == MR_OK)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA, "Unable to convert %.300s (class java.lang.String) to number",
                   m->replacement);
}

/* Numbers are converted once a kind; a decimal each time, since it stands in the arena. */
static int mask_with_text(struct mask_field *m, struct mr_arena *arena, struct mr_value *v,
                          struct mr_error *err)
{
    uint8_t kind = v->kind;
    int rc;

    if (kind == MR_KIND_STRING) {
        *v = mr_str(m->replacement);
        return MR_OK;
    }
    if (kind != MR_KIND_DECIMAL && (kind < MR_KIND_INT8 || kind > MR_KIND_FLOAT64))
        return mr_fail(err, MR_ERR_DATA,
                       "Cannot mask value of type class %s with custom replacement.",
                       mr_java_class(*v));
    if (kind <= MR_KIND_FLOAT64 && m->known[kind]) {
        *v = m->made[kind];
        return MR_OK;
    }
    rc = convert(m, arena, kind, v, err);
    if (rc == MR_OK && kind <= MR_KIND_FLOAT64) {
        m->made[kind] = *v;
        m->known[kind] = true;
    }
    return rc;
}

static int mask(void *self, struct mr_arena *arena, int32_t what, const struct mr_schema *schema,
                struct mr_value *v, struct mr_error *err)
{
    struct mask_field *m = (struct mask_field *)self;

    if (mr_is_null(*v))
        return MR_OK;
    return m->replacement == NULL ? mask_with_nothing(v, err) : mask_with_text(m, arena, v, err);
}

/* --- records ---------------------------------------------------------------------------------- */

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct mask_field *m = self;

    plan->to = plan->from;
    for (uint32_t i = 0; i < plan->count; i++) {
        plan->steps[i].from = (int32_t)i;
        plan->steps[i].what = field_names_have(&m->fields, plan->from->fields[i].name);
    }
    return MR_OK;
}

static int mask_struct(struct mask_field *m, struct mr_arena *arena, const struct mr_schema *schema,
                       struct mr_record *rec, struct mr_error *err)
{
    struct mr_value v = half_value(rec, m->side);
    struct schema_plan *plan;
    int rc = requirement_struct(schema, v, PURPOSE, err);

    if (rc == MR_OK)
        rc = schema_plans_of(&m->plans, schema,
                             &(struct schema_planner){plan_fill, m, arena, schema->field_count},
                             &plan, err);
    if (rc == MR_OK)
        rc = schema_plan_run(plan, arena, v, m->defaults, mask, m, &v, err);
    return rc == MR_OK ? half_put(rec, m->side, schema, v) : rc;
}

static int mask_map(struct mask_field *m, struct mr_arena *arena, struct mr_record *rec,
                    struct mr_error *err)
{
    struct mr_value v = half_value(rec, m->side);
    int rc = requirement_map(v, PURPOSE, err);

    if (rc != MR_OK)
        return rc;
    v = field_name_map(arena, v, m->fields.count);
    for (size_t i = 0; i < m->fields.count && rc == MR_OK; i++) {
        struct field_name *name = &m->fields.at[i];
        int64_t at = field_name_find(name, mr_pairs(v), v.len);
        struct mr_value member = at < 0 ? mr_null() : mr_pairs(v)[at].value;

        rc = mask(m, arena, 1, NULL, &member, err);
        field_name_put(name, &v, member);
    }
    return rc == MR_OK ? half_put(rec, m->side, NULL, v) : rc;
}

static int mask_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                            struct mr_error *err)
{
    struct mask_field *m = (struct mask_field *)self;
    const struct mr_schema *schema = half_schema(rec, m->side);

    return schema == NULL ? mask_map(m, arena, rec, err) : mask_struct(m, arena, schema, rec, err);
}

HALF_TRANSFORM(mask_field, "MaskField", .keys = mask_field_keys, .doc = "Hides what fields hold",
               .state_size = sizeof(struct mask_field), .apply = mask_field_apply,
               .stop = mask_field_stop);
