/* SPDX-License-Identifier: Apache-2.0 */
/* HoistField: wraps the key or value, whatever it is, into a struct or map of one field. On the
 * task's thread. */
#include "half.h"
#include "schema_plan.h"
#include "transforms.h"

#include <stdlib.h>

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

static const struct mr_schema *wrapped(struct hoist_field *h, const struct mr_schema *schema,
                                       struct mr_error *err)
{
    const struct mr_schema_field field = {h->field, schema};
    const struct mr_schema_spec spec = {.kind = MR_KIND_STRUCT, .fields = &field, .field_count = 1};
    struct schema_plan *plan = schema_plans_find(&h->plans, schema);

    if (plan != NULL)
        return plan->to;
    plan = schema_plan_new(schema, 0, err);
    if (plan == NULL)
        return NULL;
    plan->to = mr_schema_make(h->task, &spec, err);
    if (plan->to == NULL) {
        free(plan);
        return NULL;
    }
    schema_plans_keep(&h->plans, plan);
    return plan->to;
}

static int hoist_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                             struct mr_error *err)
{
    struct hoist_field *h = (struct hoist_field *)self;
    const struct mr_schema *schema = half_schema(rec, h->side), *to;
    struct mr_value v = half_value(rec, h->side), made;
    int rc;

    if (schema == NULL) {
        made = mr_map(arena, 1);
        mr_pairs(made)->key = mr_text(h->field, h->len);
        mr_pairs(made)->value = v;
        return half_put(rec, h->side, NULL, made);
    }
    to = wrapped(h, schema, err);
    if (to == NULL)
        return MR_ERR_DATA;
    rc = mr_value_check(arena, schema, v, h->field, err);
    if (rc != MR_OK)
        return rc;
    made = mr_struct_new(arena, to);
    mr_slots(made)[0] = v;
    return half_put(rec, h->side, to, made);
}

static void hoist_field_stop(void *self)
{
    schema_plans_free(&((struct hoist_field *)self)->plans);
}

HALF_TRANSFORM(hoist_field, "HoistField", .keys = hoist_field_keys,
               .doc = "Wraps a key or value into a struct or map of one field",
               .state_size = sizeof(struct hoist_field), .apply = hoist_field_apply,
               .stop = hoist_field_stop);
