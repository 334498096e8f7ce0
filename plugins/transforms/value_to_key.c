/* SPDX-License-Identifier: Apache-2.0 */
/* ValueToKey: fields of the value as the new key, in the order in which they are listed. On the
 * task's thread. */
#include "field_name.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#define PURPOSE "copying fields from value to key"

struct value_to_key {
    bool defaults;
    const struct mr_task *task;
    struct field_names fields;
    struct schema_plans plans;
};

static const struct mr_config_key keys[] = {
    {.name = "fields",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Names of the value's fields that make the key.",
     .importance = MR_CFG_HIGH},
    HALF_DEFAULTS_KEY,
    {0},
};

static const char *const aliases[] = {"ValueToKey", NULL};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct value_to_key *k = (struct value_to_key *)self;

    k->task = task;
    k->defaults = half_defaults(task);
    return field_names_read(&k->fields, task, "fields", err);
}

static void stop(void *self)
{
    struct value_to_key *k = (struct value_to_key *)self;

    schema_plans_free(&k->plans);
    field_names_free(&k->fields);
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct value_to_key *k = self;
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->count);
    struct mr_schema_spec spec = {.kind = MR_KIND_STRUCT};

    for (size_t i = 0; i < plan->count; i++) {
        int at = mr_schema_index(plan->from, k->fields.at[i].text);

        if (at < 0)
            return mr_fail(err, MR_ERR_DATA, "Field does not exist: %s", k->fields.at[i].text);
        plan->steps[i].from = at;
        fields[i] = plan->from->fields[at];
    }
    spec.fields = fields;
    spec.field_count = (uint32_t)plan->count;
    return schema_plan_make(k->task, &spec, &plan->to, err);
}

static int from_struct(struct value_to_key *k, struct mr_arena *arena, struct mr_record *rec,
                       struct mr_error *err)
{
    struct schema_plan *plan;
    struct mr_value key;
    int rc = requirement_struct(rec->value_schema, mr_value(rec), PURPOSE, err);

    if (rc == MR_OK)
        rc = schema_plans_of(&k->plans, rec->value_schema,
                             &(struct schema_planner){plan_fill, k, arena, k->fields.count}, &plan,
                             err);
    if (rc == MR_OK)
        rc = schema_plan_run(plan, arena, mr_value(rec), k->defaults, NULL, NULL, &key, err);
    if (rc == MR_OK)
        mr_record_put_key(rec, plan->to, key);
    return rc;
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    struct value_to_key *k = (struct value_to_key *)self;
    struct mr_value v = mr_value(rec), key;
    int rc;

    if (rec->value_schema != NULL)
        return from_struct(k, arena, rec, err);
    rc = requirement_map(v, PURPOSE, err);
    if (rc != MR_OK)
        return rc;
    key = mr_map(arena, k->fields.count);
    for (size_t i = 0; i < k->fields.count; i++) {
        struct field_name *name = &k->fields.at[i];
        int64_t at = field_name_find(name, mr_pairs(v), v.len);

        mr_pairs(key)[i].key = mr_text(name->text, name->len);
        mr_pairs(key)[i].value = at < 0 ? mr_null() : mr_pairs(v)[at].value;
    }
    mr_record_put_key(rec, NULL, key);
    return MR_OK;
}

const struct mr_transform value_to_key_plugin = MR_DESCRIPTOR(
    mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("ValueToKey"), HALF_RELEASE, .aliases = aliases,
    .keys = keys, .doc = "Makes the key of the value's fields",
    .state_size = sizeof(struct value_to_key), .start = start, .apply = apply, .stop = stop);
