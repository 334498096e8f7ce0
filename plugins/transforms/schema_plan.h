/* SPDX-License-Identifier: Apache-2.0 */
/* What a transform makes of a schema, worked out once and kept: the new schema, and for each of its
 * slots where the value comes from. Per record there is then a loop over slots. One transform, one
 * thread. */
#ifndef TRANSFORMS_SCHEMA_PLAN_H
#define TRANSFORMS_SCHEMA_PLAN_H

#include <millrace/plugin.h>

#define SCHEMA_PLANS 16 /* a transform keeps, as Java's caches do */

struct schema_step {
    int32_t from; /* slot of the input; -1: stays null */
    int32_t what; /* the transform's own; 0: as it is */
};

struct schema_plan {
    const struct mr_schema *from;
    const struct mr_schema *to;
    size_t count;
    struct schema_step steps[]; /* one a slot of `to`, unless the transform says otherwise */
};

/* The most recently used first. Zeroed: empty. */
struct schema_plans {
    struct schema_plan *recent[SCHEMA_PLANS];
};

/* Works a plan out: `from` is there, the steps are zeroed. What fails is forgotten. */
typedef int (*schema_plan_fill)(void *self, struct mr_arena *arena, struct schema_plan *plan,
                                struct mr_error *err);

struct schema_planner {
    schema_plan_fill fill;
    void *self;
    struct mr_arena *arena;
    size_t steps;
};

/* The plan for a schema: the one that is kept, or else one that is worked out now, and kept. */
int schema_plans_of(struct schema_plans *plans, const struct mr_schema *from,
                    const struct schema_planner *planner, struct schema_plan **out,
                    struct mr_error *err);
void schema_plans_free(struct schema_plans *plans);

/* Its parts, for a plan whose steps have to be counted first. find: NULL: then make one, and keep
 * it. keep: takes plan; the least recently used one goes. new: count steps, zeroed; NULL with
 * MR_ERR_NOMEM. */
struct schema_plan *schema_plans_find(struct schema_plans *plans, const struct mr_schema *from);
void schema_plans_keep(struct schema_plans *plans, struct schema_plan *plan);
struct schema_plan *schema_plan_new(const struct mr_schema *from, size_t count,
                                    struct mr_error *err);

/* name, version, doc and parameters of a schema, for one of that kind; fields: room in the arena
 * for that many, with field_count 0. Spec: SchemaUtil.copySchemaBasics. */
struct mr_schema_spec schema_plan_basics(const struct mr_schema *of, uint8_t kind);
struct mr_schema_field *schema_plan_fields(struct mr_arena *arena, size_t count);

/* The schema of a spec, with mr_schema_make's code where there is none: that a table is full is no
 * fault of the record's. err: not NULL. */
int schema_plan_make(const struct mr_task *task, const struct mr_schema_spec *spec,
                     const struct mr_schema **to, struct mr_error *err);

/* A slot's value as Struct.get gives it: the default for null, when defaults are wanted. */
static inline struct mr_value schema_plan_get(const struct mr_schema *schema, struct mr_value raw,
                                              bool defaults)
{
    return raw.kind == MR_KIND_NULL && defaults && schema->has_default ? schema->default_value
                                                                       : raw;
}

/* Struct.put for a value that is of the field's kind: only a null may be wrong, and a struct of
 * another schema, as the default of a field is. */
static inline int schema_plan_put(const struct mr_arena *arena, const struct mr_schema_field *field,
                                  struct mr_value v, struct mr_value *slot, struct mr_error *err)
{
    bool wrong = v.kind == MR_KIND_NULL
                     ? !field->schema->optional
                     : v.kind == MR_KIND_STRUCT &&
                           ((const struct mr_struct *)v.u.p)->schema != field->schema;

    *slot = v;
    if (wrong)
        return mr_value_check(arena, field->schema, v, field->name, err);
    return MR_OK;
}

/* Changes the value of a step whose `what` is not 0. schema: the input slot's. */
typedef int (*schema_step_fn)(void *self, struct mr_arena *arena, int32_t what,
                              const struct mr_schema *schema, struct mr_value *v,
                              struct mr_error *err);

/* A new struct of plan->to from the slots of v, a struct of plan->from. fn: may be NULL when every
 * `what` is 0. */
int schema_plan_run(const struct schema_plan *plan, struct mr_arena *arena, struct mr_value v,
                    bool defaults, schema_step_fn fn, void *self, struct mr_value *out,
                    struct mr_error *err);

#endif
