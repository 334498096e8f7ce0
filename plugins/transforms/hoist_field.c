/* SPDX-License-Identifier: Apache-2.0 */
/* HoistField: wraps the key or value, whatever it is, into a struct or map of one field. On the
 * task's thread. */
#include "half.h"
#include "schema_plan.h"
#include "transforms.h"

struct hoist_field {
    enum half_side side;
    const struct mr_task *task;
    const char *field;
    size_t len;
    struct schema_plans plans;
};

static const struct mr_config_key hoist_field_keys[] = {
    {.name = "field",
     .flags = MR_CFG_REQUIRED,
     .doc = "Name of the single field in the new struct or map.",
     .importance = MR_CFG_MEDIUM},
    {0},
};

static int hoist_field_start(void *self, struct mr_task *task, enum half_side side,
                             struct mr_error *err)
{
    struct hoist_field *h = (struct hoist_field *)self;

    h->side = side;
    h->task = task;
    h->field = mr_config_str(task, "field");
    h->len = strlen(h->field);
    return MR_OK;
}

static int wrap(void *self, struct mr_arena *arena, struct schema_plan *plan, struct mr_error *err)
{
    const struct hoist_field *h = self;
    const struct mr_schema_field field = {h->field, plan->from};
    const struct mr_schema_spec spec = {.kind = MR_KIND_STRUCT, .fields = &field, .field_count = 1};

    return schema_plan_make(h->task, &spec, &plan->to, err);
}

static int hoist_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                             struct mr_error *err)
{
    struct hoist_field *h = (struct hoist_field *)self;
    const struct mr_schema *schema = half_schema(rec, h->side);
    struct mr_value v = half_value(rec, h->side), made;
    struct schema_plan *plan;
    int rc;

    if (schema == NULL) {
        made = mr_map(arena, 1);
        mr_pairs(made)->key = mr_text(h->field, h->len);
        mr_pairs(made)->value = v;
        return half_put(rec, h->side, NULL, made);
    }
    rc =
        schema_plans_of(&h->plans, schema, &(struct schema_planner){wrap, h, arena, 0}, &plan, err);
    if (rc == MR_OK)
        rc = mr_value_check(arena, schema, v, h->field, err);
    if (rc != MR_OK)
        return rc;
    made = mr_struct_new(arena, plan->to);
    mr_slots(made)[0] = v;
    return half_put(rec, h->side, plan->to, made);
}

static void hoist_field_stop(void *self)
{
    schema_plans_free(&((struct hoist_field *)self)->plans);
}

HALF_TRANSFORM(hoist_field, "HoistField", .keys = hoist_field_keys,
               .doc = "Wraps a key or value into a struct or map of one field",
               .state_size = sizeof(struct hoist_field), .apply = hoist_field_apply,
               .stop = hoist_field_stop);
