/* SPDX-License-Identifier: Apache-2.0 */
/* Cast: named fields, or the whole key or value, as other types. With a schema the types change in
 * it too, defaults included; without, only the named members are touched. On the task's thread, for
 * each record. */
#include "cast_value.h"
#include "field_name.h"
#include "half.h"
#include "mapping.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#include <stdlib.h>

#define PURPOSE "cast types"

struct cast {
    enum half_side side;
    bool defaults;
    uint8_t whole; /* kind of a cast of the whole value; 0: of fields */
    const struct mr_task *task;
    struct field_names names;
    uint8_t *kinds; /* of each name */
    char *texts;    /* of the names */
    struct schema_plans plans;
};

static const struct mr_config_key cast_keys[] = {
    {.name = "spec",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Fields and their new types, as field1:type,field2:type; or one type for the whole "
            "key or value. Types: int8, int16, int32, int64, float32, float64, boolean, string. "
            "Bytes can only become string.",
     .importance = MR_CFG_HIGH},
    HALF_DEFAULTS_KEY,
    {0},
};

/* --- configuration ---------------------------------------------------------------------------- */

static int parse_item(const struct mr_task *task, size_t i, struct cast_spec *spec,
                      struct mr_error *err)
{
    const char *item = mr_config_item(task, "spec", i);
    size_t parts;
    int rc = cast_spec_parse(item, spec, &parts, err);

    return parts == 0 || parts > 2 ? mapping_fail(task, "spec", item, err) : rc;
}

static int cast_check(const struct mr_task *config, const char *key, const char *shown,
                      struct mr_error *err)
{
    size_t count = mr_config_count(config, "spec");
    bool whole = false;

    if (strcmp(key, "spec") != 0)
        return MR_OK;
    if (count == 0)
        return mr_fail(err, MR_ERR_CONFIG, "Must specify at least one field to cast.");
    for (size_t i = 0; i < count; i++) {
        struct cast_spec spec;
        int rc = parse_item(config, i, &spec, err);

        if (rc != MR_OK)
            return rc;
        whole |= spec.name == NULL;
    }
    if (!whole || count == 1)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Cast transformations that specify a type to cast the entire value to may only "
                   "specify a single cast in their spec");
}

/* The place of a name: that of the same one before, whose type the later one replaces. */
static size_t place_of(const struct cast *c, const char *name)
{
    size_t i = 0;

    while (i < c->names.count && strcmp(c->names.at[i].text, name) != 0)
        i++;
    return i;
}

static void add_spec(struct cast *c, const struct cast_spec *spec, char **text)
{
    char *name = *text;
    size_t i;

    if (spec->name == NULL) {
        c->whole = spec->kind;
        return;
    }
    memcpy(name, spec->name, spec->name_len);
    name[spec->name_len] = '\0';
    i = place_of(c, name);
    c->kinds[i] = spec->kind;
    if (i < c->names.count)
        return;
    c->names.at[c->names.count++] = field_name_of(name);
    *text += spec->name_len + 1;
}

static int cast_start(void *self, struct mr_task *task, enum half_side side, struct mr_error *err)
{
    struct cast *c = (struct cast *)self;
    size_t count = mr_config_count(task, "spec"), size = 1;
    char *text;
    int rc = MR_OK;

    c->side = side;
    c->task = task;
    c->defaults = half_defaults(task);
    for (size_t i = 0; i < count; i++)
        size += strlen(mr_config_item(task, "spec", i)) + 1;
    c->names.at = (struct field_name *)calloc(count + 1, sizeof(*c->names.at));
    c->kinds = (uint8_t *)calloc(count + 1, 1);
    c->texts = text = (char *)malloc(size);
    if (c->names.at == NULL || c->kinds == NULL || text == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for spec");
    for (size_t i = 0; i < count && rc == MR_OK; i++) {
        struct cast_spec spec;

        rc = parse_item(task, i, &spec, err);
        if (rc == MR_OK)
            add_spec(c, &spec, &text);
    }
    return rc;
}

static void cast_stop(void *self)
{
    struct cast *c = (struct cast *)self;

    schema_plans_free(&c->plans);
    field_names_free(&c->names);
    free(c->kinds);
    free(c->texts);
}

/* --- schemas ---------------------------------------------------------------------------------- */

/* What a cast leaves of a schema: the optional flag and the default, cast. */
static int keep_rest(struct mr_arena *arena, const struct mr_schema *of,
                     struct mr_schema_spec *spec, struct mr_error *err)
{
    struct mr_value v = of->default_value;
    int rc;

    spec->optional = of->optional;
    if (!of->has_default || mr_is_null(v))
        return MR_OK;
    rc = cast_value(arena, of, spec->kind, &v, err);
    spec->has_default = true;
    spec->default_value = v;
    return rc;
}

/* The field's schema becomes another one. */
static int cast_schema(const struct cast *c, struct mr_arena *arena, struct mr_schema_field *field,
                       uint8_t kind, struct mr_error *err)
{
    struct mr_schema_spec spec = {.kind = kind};
    int rc = keep_rest(arena, field->schema, &spec, err);

    return rc == MR_OK ? schema_plan_make(c->task, &spec, &field->schema, err) : rc;
}

/* The fields of the new struct schema into spec, and the plan's steps. */
static int plan_fields(const struct cast *c, struct mr_arena *arena, struct schema_plan *plan,
                       struct mr_schema_spec *spec, struct mr_error *err)
{
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->count);
    int rc = MR_OK;

    for (size_t i = 0; i < plan->count && rc == MR_OK; i++) {
        size_t named = place_of(c, plan->from->fields[i].name);

        fields[i] = plan->from->fields[i];
        plan->steps[i].from = (int32_t)i;
        if (named == c->names.count)
            continue;
        plan->steps[i].what = c->kinds[named];
        rc = cast_schema(c, arena, &fields[i], c->kinds[named], err);
    }
    spec->fields = fields;
    spec->field_count = (uint32_t)plan->count;
    return rc;
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct cast *c = self;
    struct mr_schema_spec spec =
        schema_plan_basics(plan->from, c->whole != 0 ? c->whole : MR_KIND_STRUCT);
    int rc = c->whole != 0 ? MR_OK : requirement_fields(plan->from, err);

    if (rc == MR_OK && c->whole == 0)
        rc = plan_fields(c, arena, plan, &spec, err);
    if (rc == MR_OK)
        rc = keep_rest(arena, plan->from, &spec, err);
    return rc == MR_OK ? schema_plan_make(c->task, &spec, &plan->to, err) : rc;
}

/* --- records ---------------------------------------------------------------------------------- */

static int cast_slot(void *self, struct mr_arena *arena, int32_t what,
                     const struct mr_schema *schema, struct mr_value *v, struct mr_error *err)
{
    return cast_value(arena, schema, (uint8_t)what, v, err);
}

static int cast_struct(struct cast *c, struct mr_arena *arena, const struct mr_schema *schema,
                       struct mr_record *rec, struct mr_error *err)
{
    struct mr_value v = half_value(rec, c->side);
    struct schema_plan *plan;
    int rc = schema_plans_of(
        &c->plans, schema,
        &(struct schema_planner){plan_fill, c, arena, c->whole != 0 ? 0 : schema->field_count},
        &plan, err);

    if (rc != MR_OK)
        return rc;
    if (c->whole != 0) {
        rc = cast_value(arena, schema, c->whole, &v, err);
        return rc == MR_OK ? half_put(rec, c->side, plan->to, v) : rc;
    }
    rc = requirement_struct(schema, v, PURPOSE, err);
    if (rc == MR_OK)
        rc = schema_plan_run(plan, arena, v, c->defaults, cast_slot, c, &v, err);
    return rc == MR_OK ? half_put(rec, c->side, plan->to, v) : rc;
}

static int cast_map(struct cast *c, struct mr_arena *arena, struct mr_record *rec,
                    struct mr_error *err)
{
    struct mr_value v = half_value(rec, c->side);
    int rc = requirement_map(v, PURPOSE, err);

    if (rc != MR_OK)
        return rc;
    v = field_name_map(arena, v, c->names.count);
    for (size_t i = 0; i < c->names.count; i++) {
        int64_t at = field_name_find(&c->names.at[i], mr_pairs(v), v.len);
        struct mr_value member = at < 0 ? mr_null() : mr_pairs(v)[at].value;

        rc = cast_value(arena, NULL, c->kinds[i], &member, err);
        if (rc != MR_OK)
            return rc;
        field_name_put(&c->names.at[i], &v, member);
    }
    return half_put(rec, c->side, NULL, v);
}

static int cast_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                      struct mr_error *err)
{
    struct cast *c = (struct cast *)self;
    const struct mr_schema *schema = half_schema(rec, c->side);
    struct mr_value v = half_value(rec, c->side);
    int rc;

    if (mr_is_null(v))
        return MR_OK;
    if (schema != NULL)
        return cast_struct(c, arena, schema, rec, err);
    if (c->whole == 0)
        return cast_map(c, arena, rec, err);
    rc = cast_value(arena, NULL, c->whole, &v, err);
    return rc == MR_OK ? half_put(rec, c->side, NULL, v) : rc;
}

HALF_TRANSFORM(cast, "Cast", .keys = cast_keys, .doc = "Gives fields another type",
               .state_size = sizeof(struct cast), .apply = cast_apply, .stop = cast_stop,
               .check = cast_check);
