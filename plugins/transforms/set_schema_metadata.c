/* SPDX-License-Identifier: Apache-2.0 */
/* SetSchemaMetadata: another name or version for the key's or value's schema, which must be a
 * struct's, as Java's must. On the task's thread. */
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

struct set_schema_metadata {
    enum half_side side;
    bool defaults;
    bool has_version;
    int32_t version;
    const char *name;
    const struct mr_task *task;
    struct schema_plans plans;
};

static const struct mr_config_key set_schema_metadata_keys[] = {
    {.name = "schema.name", .doc = "The new name.", .importance = MR_CFG_HIGH},
    {.name = "schema.version",
     .type = MR_CFG_INT,
     .doc = "The new version.",
     .importance = MR_CFG_HIGH},
    HALF_DEFAULTS_KEY,
    {0},
};

static int set_schema_metadata_start(void *self, struct mr_task *task, enum half_side side,
                                     struct mr_error *err)
{
    struct set_schema_metadata *s = (struct set_schema_metadata *)self;

    s->side = side;
    s->task = task;
    s->defaults = half_defaults(task);
    s->name = mr_config_str(task, "schema.name");
    s->has_version = mr_config_raw(task, "schema.version") != NULL;
    s->version = (int32_t)mr_config_long(task, "schema.version");
    if (s->name == NULL && !s->has_version)
        return mr_fail(err, MR_ERR_CONFIG, "Neither schema name nor version configured");
    return MR_OK;
}

static void set_schema_metadata_stop(void *self)
{
    schema_plans_free(&((struct set_schema_metadata *)self)->plans);
}

static int rename_schema(void *self, struct mr_arena *arena, struct schema_plan *plan,
                         struct mr_error *err)
{
    const struct set_schema_metadata *s = self;
    const struct mr_schema *of = plan->from;
    struct mr_schema_spec spec = schema_plan_basics(of, of->kind);
    int rc;

    for (uint32_t i = 0; i < of->field_count; i++)
        plan->steps[i].from = (int32_t)i;
    spec.optional = of->optional;
    spec.fields = of->fields;
    spec.field_count = of->field_count;
    if (s->name != NULL)
        spec.name = s->name;
    if (s->has_version) {
        spec.has_version = true;
        spec.version = s->version;
    }
    rc = schema_plan_make(s->task, &spec, &plan->to, err);
    if (rc != MR_OK || mr_is_null(of->default_value))
        return rc;
    spec.has_default = true; /* a struct of the new schema, as it is without a default */
    rc = schema_plan_run(plan, arena, of->default_value, false, NULL, NULL, &spec.default_value,
                         err);
    return rc == MR_OK ? schema_plan_make(s->task, &spec, &plan->to, err) : rc;
}

static int set_schema_metadata_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                                     struct mr_error *err)
{
    struct set_schema_metadata *s = (struct set_schema_metadata *)self;
    const struct mr_schema *schema = half_schema(rec, s->side);
    struct mr_value v = half_value(rec, s->side);
    struct schema_plan *plan;
    int rc;

    if (schema == NULL && mr_is_null(v))
        return MR_OK;
    if (schema == NULL)
        return mr_fail(err, MR_ERR_DATA, "Schema required for [updating schema metadata]");
    rc = requirement_fields(schema, err);
    if (rc == MR_OK)
        rc = schema_plans_of(&s->plans, schema,
                             &(struct schema_planner){rename_schema, s, arena, schema->field_count},
                             &plan, err);
    if (rc == MR_OK && !mr_is_null(v))
        rc = requirement_struct(schema, v, "updating schema metadata", err);
    if (rc == MR_OK && !mr_is_null(v))
        rc = schema_plan_run(plan, arena, v, s->defaults, NULL, NULL, &v, err);
    return rc == MR_OK ? half_put(rec, s->side, plan->to, v) : rc;
}

HALF_TRANSFORM(set_schema_metadata, "SetSchemaMetadata", .keys = set_schema_metadata_keys,
               .doc = "Sets a schema's name or version",
               .state_size = sizeof(struct set_schema_metadata), .apply = set_schema_metadata_apply,
               .stop = set_schema_metadata_stop);
