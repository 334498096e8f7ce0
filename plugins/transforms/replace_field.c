/* SPDX-License-Identifier: Apache-2.0 */
/* ReplaceField: leaves fields out, keeps only some, or renames them. On the task's thread. */
#include "field_name.h"
#include "half.h"
#include "mapping.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#include <stdlib.h>

#define PURPOSE "field replacement"

struct replace_field {
    enum half_side side;
    bool defaults;
    const struct mr_task *task;
    struct field_names exclude;
    struct field_names include; /* none: all */
    struct field_names renames; /* of the old names */
    struct field_name *renamed; /* the new one of each */
    char *texts;                /* of both */
    struct schema_plans plans;
};

static const struct mr_config_key replace_field_keys[] = {
    {.name = "exclude",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_DISTINCT,
     .fallback = "",
     .doc = "Fields to leave out; this wins over include.",
     .importance = MR_CFG_MEDIUM},
    {.name = "include",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_DISTINCT,
     .fallback = "",
     .doc = "Fields to keep; where it names any, no others are kept.",
     .importance = MR_CFG_MEDIUM},
    {.name = "renames",
     .type = MR_CFG_LIST,
     .fallback = "",
     .doc = "Fields to rename, as old1:new1,old2:new2.",
     .importance = MR_CFG_MEDIUM},
    HALF_DEFAULTS_KEY,
    {0},
};

/* --- configuration ---------------------------------------------------------------------------- */

static int replace_field_check(const struct mr_task *config, const char *key, const char *shown,
                               struct mr_error *err)
{
    struct mapping map;

    if (strcmp(key, "renames") != 0)
        return MR_OK;
    for (size_t i = 0; i < mr_config_count(config, "renames"); i++) {
        const char *item = mr_config_item(config, "renames", i);

        if (mapping_split(item, &map) != 2)
            return mapping_fail(config, "renames", item, err);
    }
    return MR_OK;
}

static char *copy_text(const char *p, size_t len, char *to)
{
    memcpy(to, p, len);
    to[len] = '\0';
    return to + len + 1;
}

/* The last rename of a field is the one that counts. */
static void add_rename(struct replace_field *r, const struct mapping *map, char **text)
{
    char *old = *text, *name = copy_text(map->left, map->left_len, old);
    size_t i = 0;

    *text = copy_text(map->right, map->right_len, name);
    while (i < r->renames.count && strcmp(r->renames.at[i].text, old) != 0)
        i++;
    r->renames.at[i] = field_name_of(old);
    r->renamed[i] = field_name_of(name);
    r->renames.count += i == r->renames.count;
}

static int read_renames(struct replace_field *r, const struct mr_task *task, struct mr_error *err)
{
    size_t count = mr_config_count(task, "renames"), size = 1;
    char *text;

    for (size_t i = 0; i < count; i++)
        size += strlen(mr_config_item(task, "renames", i)) + 2;
    r->renames.at = (struct field_name *)calloc(count + 1, sizeof(*r->renames.at));
    r->renamed = (struct field_name *)calloc(count + 1, sizeof(*r->renamed));
    r->texts = text = (char *)malloc(size);
    if (r->renames.at == NULL || r->renamed == NULL || text == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for renames");
    for (size_t i = 0; i < count; i++) {
        struct mapping map;

        if (mapping_split(mr_config_item(task, "renames", i), &map) == 2)
            add_rename(r, &map, &text);
    }
    return MR_OK;
}

static int replace_field_start(void *self, struct mr_task *task, enum half_side side,
                               struct mr_error *err)
{
    struct replace_field *r = (struct replace_field *)self;
    int rc = field_names_read(&r->exclude, task, "exclude", err);

    r->side = side;
    r->task = task;
    r->defaults = half_defaults(task);
    if (rc == MR_OK)
        rc = field_names_read(&r->include, task, "include", err);
    return rc == MR_OK ? read_renames(r, task, err) : rc;
}

static void replace_field_stop(void *self)
{
    struct replace_field *r = (struct replace_field *)self;

    schema_plans_free(&r->plans);
    field_names_free(&r->exclude);
    field_names_free(&r->include);
    field_names_free(&r->renames);
    free(r->renamed);
    free(r->texts);
}

/* --- with a schema ---------------------------------------------------------------------------- */

static bool is_kept(const struct replace_field *r, const char *name)
{
    return !field_names_have(&r->exclude, name) &&
           (r->include.count == 0 || field_names_have(&r->include, name));
}

static const char *new_name(const struct replace_field *r, const char *name)
{
    for (size_t i = 0; i < r->renames.count; i++)
        if (strcmp(r->renames.at[i].text, name) == 0)
            return r->renamed[i].text;
    return name;
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct replace_field *r = self;
    struct mr_schema_spec spec = schema_plan_basics(plan->from, MR_KIND_STRUCT);
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->from->field_count);

    for (uint32_t i = 0; i < plan->from->field_count; i++) {
        const struct mr_schema_field *field = &plan->from->fields[i];

        if (!is_kept(r, field->name))
            continue;
        plan->steps[spec.field_count].from = (int32_t)i;
        fields[spec.field_count].name = new_name(r, field->name);
        fields[spec.field_count++].schema = field->schema;
    }
    spec.fields = fields;
    plan->count = spec.field_count;
    return schema_plan_make(r->task, &spec, &plan->to, err);
}

static int replace_struct(struct replace_field *r, struct mr_arena *arena,
                          const struct mr_schema *schema, struct mr_record *rec,
                          struct mr_error *err)
{
    struct mr_value v = half_value(rec, r->side);
    struct schema_plan *plan;
    int rc = requirement_struct(schema, v, PURPOSE, err);

    if (rc == MR_OK)
        rc = schema_plans_of(&r->plans, schema,
                             &(struct schema_planner){plan_fill, r, arena, schema->field_count},
                             &plan, err);
    if (rc == MR_OK)
        rc = schema_plan_run(plan, arena, v, r->defaults, NULL, NULL, &v, err);
    return rc == MR_OK ? half_put(rec, r->side, plan->to, v) : rc;
}

/* --- without a schema ------------------------------------------------------------------------- */

/* Members are marked while the others keep their places: a kind that no value has. */
#define GONE UINT8_MAX

static void drop_excluded(struct replace_field *r, struct mr_pair *pairs, size_t count)
{
    for (size_t i = 0; i < r->exclude.count; i++) {
        int64_t at = field_name_find(&r->exclude.at[i], pairs, count);

        if (at >= 0)
            pairs[at].key.kind = GONE;
    }
}

static void keep_included(struct replace_field *r, const struct mr_pair *from, struct mr_pair *to,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i].key.kind = GONE;
    for (size_t i = 0; i < r->include.count; i++) {
        int64_t at = field_name_find(&r->include.at[i], from, count);

        if (at >= 0)
            to[at].key.kind = MR_KIND_STRING;
    }
}

/* New names in place of old ones; old ones are looked for in the input, so that no new name is
 * taken for one. */
static size_t rename_members(struct replace_field *r, const struct mr_pair *from,
                             struct mr_pair *to, size_t count)
{
    size_t renamed = 0;

    for (size_t i = 0; i < r->renames.count; i++) {
        int64_t at = field_name_find(&r->renames.at[i], from, count);

        if (at < 0 || to[at].key.kind == GONE)
            continue;
        to[at].key = mr_text(r->renamed[i].text, r->renamed[i].len);
        renamed++;
    }
    return renamed;
}

/* Two members of one name: the later one stays. */
static void drop_doubles(const struct replace_field *r, struct mr_pair *pairs, size_t count)
{
    for (size_t i = 0; i < r->renames.count; i++) {
        bool seen = false;

        for (size_t at = count; at > 0; at--) {
            if (!field_name_is(&r->renamed[i], pairs[at - 1].key))
                continue;
            if (seen)
                pairs[at - 1].key.kind = GONE;
            seen = true;
        }
    }
}

static uint32_t close_gaps(struct mr_pair *pairs, size_t count)
{
    uint32_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (pairs[i].key.kind != GONE)
            pairs[kept++] = pairs[i];
    return kept;
}

static int check_keys(struct mr_value map, struct mr_error *err)
{
    for (uint32_t i = 0; i < map.len; i++)
        if (mr_pairs(map)[i].key.kind != MR_KIND_STRING && !mr_is_null(mr_pairs(map)[i].key))
            return mr_fail(err, MR_ERR_DATA,
                           "java.lang.ClassCastException: class %s cannot be cast to class "
                           "java.lang.String",
                           mr_java_class(mr_pairs(map)[i].key));
    return MR_OK;
}

static int replace_map(struct replace_field *r, struct mr_arena *arena, struct mr_record *rec,
                       struct mr_error *err)
{
    struct mr_value v = half_value(rec, r->side), made;
    const struct mr_pair *from = mr_pairs(v);
    struct mr_pair *to;
    int rc = requirement_map(v, PURPOSE, err);

    if (rc == MR_OK)
        rc = check_keys(v, err);
    if (rc != MR_OK)
        return rc;
    made = field_name_map(arena, v, 0);
    to = mr_pairs(made);
    if (r->include.count > 0)
        keep_included(r, from, to, v.len);
    drop_excluded(r, to, v.len);
    if (r->renames.count > 0 && rename_members(r, from, to, v.len) > 0)
        drop_doubles(r, to, v.len);
    made.len = close_gaps(to, v.len);
    return half_put(rec, r->side, NULL, made);
}

static int replace_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                               struct mr_error *err)
{
    struct replace_field *r = (struct replace_field *)self;
    const struct mr_schema *schema = half_schema(rec, r->side);

    if (mr_is_null(half_value(rec, r->side)))
        return MR_OK;
    return schema == NULL ? replace_map(r, arena, rec, err)
                          : replace_struct(r, arena, schema, rec, err);
}

HALF_TRANSFORM(replace_field, "ReplaceField", .keys = replace_field_keys,
               .doc = "Leaves out or renames fields", .state_size = sizeof(struct replace_field),
               .apply = replace_field_apply, .stop = replace_field_stop,
               .check = replace_field_check);
