/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of schemas, and the loop that follows one. Memory is taken when a schema is met for the
 * first time (or again after 16 others); a record only takes its new struct from the arena.
 * Invariant: a plan's schemas are interned, so pointers compare.
 * Thread: the task's. */
#include "schema_plan.h"

#include <stdlib.h>

struct schema_plan *schema_plans_find(struct schema_plans *plans, const struct mr_schema *from)
{
    for (size_t i = 0; i < SCHEMA_PLANS && plans->recent[i] != NULL; i++) {
        struct schema_plan *plan = plans->recent[i];

        if (plan->from != from)
            continue;
        if (i > 0) {
            memmove(&plans->recent[1], &plans->recent[0], i * sizeof(plans->recent[0]));
            plans->recent[0] = plan;
        }
        return plan;
    }
    return NULL;
}

void schema_plans_keep(struct schema_plans *plans, struct schema_plan *plan)
{
    free(plans->recent[SCHEMA_PLANS - 1]);
    memmove(&plans->recent[1], &plans->recent[0], (SCHEMA_PLANS - 1) * sizeof(plans->recent[0]));
    plans->recent[0] = plan;
}

void schema_plans_free(struct schema_plans *plans)
{
    for (size_t i = 0; i < SCHEMA_PLANS; i++) {
        free(plans->recent[i]);
        plans->recent[i] = NULL;
    }
}

struct schema_plan *schema_plan_new(const struct mr_schema *from, size_t count,
                                    struct mr_error *err)
{
    struct schema_plan *plan = calloc(1, sizeof(*plan) + count * sizeof(plan->steps[0]));

    if (plan == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a schema of %zu fields", count);
        return NULL;
    }
    plan->from = from;
    plan->count = count;
    return plan;
}

int schema_plans_of(struct schema_plans *plans, const struct mr_schema *from,
                    const struct schema_planner *planner, struct schema_plan **out,
                    struct mr_error *err)
{
    struct schema_plan *plan = schema_plans_find(plans, from);

    if (plan == NULL) {
        int rc;

        plan = schema_plan_new(from, planner->steps, err);
        if (plan == NULL)
            return MR_ERR_NOMEM;
        rc = planner->fill(planner->self, planner->arena, plan, err);
        if (rc != MR_OK) {
            free(plan);
            return rc;
        }
        schema_plans_keep(plans, plan);
    }
    *out = plan;
    return MR_OK;
}

struct mr_schema_spec schema_plan_basics(const struct mr_schema *of, uint8_t kind)
{
    struct mr_schema_spec spec = {
        .kind = kind,
        .has_version = of->has_version,
        .version = of->version,
        .name = of->name,
        .doc = of->doc,
        .params = of->params,
        .param_count = of->param_count,
    };

    return spec;
}

int schema_plan_make(const struct mr_task *task, const struct mr_schema_spec *spec,
                     const struct mr_schema **to, struct mr_error *err)
{
    const struct mr_schema *made = mr_schema_make(task, spec, err);

    if (made == NULL)
        return err->code;
    *to = made;
    return MR_OK;
}

struct mr_schema_field *schema_plan_fields(struct mr_arena *arena, size_t count)
{
    return (struct mr_schema_field *)mr_alloc(arena, count * sizeof(struct mr_schema_field));
}

int schema_plan_run(const struct schema_plan *plan, struct mr_arena *arena, struct mr_value v,
                    bool defaults, schema_step_fn fn, void *self, struct mr_value *out,
                    struct mr_error *err)
{
    struct mr_value made = mr_struct_new(arena, plan->to);
    struct mr_value *to = mr_slots(made);
    const struct mr_value *from = mr_slots(v);
    int rc = MR_OK;

    for (size_t i = 0; i < plan->count && rc == MR_OK; i++) {
        const struct schema_step *step = &plan->steps[i];
        const struct mr_schema *schema;
        struct mr_value value;

        if (step->from < 0)
            continue;
        schema = plan->from->fields[step->from].schema;
        value = schema_plan_get(schema, from[step->from], defaults);
        if (step->what != 0)
            rc = fn(self, arena, step->what, schema, &value, err);
        if (rc == MR_OK)
            rc = schema_plan_put(arena, &plan->to->fields[i], value, &to[i], err);
    }
    if (rc == MR_OK)
        *out = made;
    return rc;
}
