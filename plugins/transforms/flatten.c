/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: nested structs or maps as one, with the names on the way joined by a delimiter. A plan's
 * steps are a walk over the input: enter a struct, copy a leaf, leave; leaves come in the order of
 * the new schema's fields. On the task's thread.
 * Depth: a schema's is what plugins made of it, values are at most 1000 deep; both are walked by
 * recursion only while a plan is made or a map is flattened. */
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#include <millrace/hash.h>

#include <stdlib.h>

#define PURPOSE "flattening"
#define MAX_DEPTH 1000
#define MAX_FIELDS 100000 /* of one flattened struct or map */

enum {
    LEAVE = -1,
    LEAF = 0
}; /* `what` of a step; above: enter, and skip so many steps when the slot is null */

struct flatten {
    enum half_side side;
    const struct mr_task *task;
    const char *delimiter;
    size_t delimiter_len;
    struct schema_plans plans;
};

static const struct mr_config_key flatten_keys[] = {
    {.name = "delimiter",
     .fallback = ".",
     .doc = "What stands between the names of fields in a new field's name.",
     .importance = MR_CFG_MEDIUM},
    {0},
};

static int flatten_start(void *self, struct mr_task *task, enum half_side side,
                         struct mr_error *err)
{
    struct flatten *f = (struct flatten *)self;

    f->side = side;
    f->task = task;
    f->delimiter = mr_config_str(task, "delimiter");
    if (f->delimiter == NULL)
        f->delimiter = "null"; /* as Java joins it */
    f->delimiter_len = strlen(f->delimiter);
    return MR_OK;
}

static void flatten_stop(void *self)
{
    schema_plans_free(&((struct flatten *)self)->plans);
}

/* prefix, delimiter and name as one, in the arena and NUL-terminated; the name itself where there
 * is no prefix. */
static struct mr_value joined(const struct flatten *f, struct mr_arena *arena,
                              struct mr_value prefix, const char *name, size_t len)
{
    size_t total = prefix.len + f->delimiter_len + len;
    char *p;

    if (prefix.len == 0)
        return mr_text(name, len);
    p = (char *)mr_alloc(arena, total + 1);
    memcpy(p, prefix.u.p, prefix.len);
    memcpy(p + prefix.len, f->delimiter, f->delimiter_len);
    memcpy(p + prefix.len + f->delimiter_len, name, len);
    p[total] = '\0';
    return mr_text(p, total);
}

/* --- with a schema: the plan ------------------------------------------------------------------ */

/* What is counted first and filled in after. */
struct build {
    struct flatten *f;
    struct mr_arena *arena;
    struct schema_plan *plan; /* NULL while counting */
    struct mr_schema_field *fields;
    size_t field_count;
    size_t step_count;
};

/* What a struct inside hands down: its name, whether it or one around it is optional, its
 * default. */
struct around {
    struct mr_value prefix;
    bool optional;
    struct mr_value value;
    int depth;
};

static void add_step(struct build *b, size_t from, int32_t what)
{
    if (b->plan != NULL) {
        b->plan->steps[b->step_count].from = (int32_t)from;
        b->plan->steps[b->step_count].what = what;
    }
    b->step_count++;
}

static int add_leaf(struct build *b, const struct mr_schema *of, const struct around *around,
                    struct mr_error *err)
{
    struct mr_schema_spec spec = schema_plan_basics(of, of->kind);
    int rc = MR_OK;

    if (b->field_count >= MAX_FIELDS)
        return mr_fail(err, MR_ERR_DATA, "a struct of more than %d flattened fields", MAX_FIELDS);
    if (b->plan != NULL) {
        spec.value = of->value;
        spec.optional = around->optional;
        spec.has_default = !mr_is_null(around->value);
        spec.default_value = around->value;
        b->fields[b->field_count].name = (const char *)around->prefix.u.p;
        rc = schema_plan_make(b->f->task, &spec, &b->fields[b->field_count].schema, err);
    }
    b->field_count++;
    return rc;
}

static int add_fields(struct build *b, const struct mr_schema *schema, const struct around *around,
                      struct mr_error *err);

static int add_field(struct build *b, const struct mr_schema *of, size_t i,
                     const struct around *inside, struct mr_error *err)
{
    size_t enter = b->step_count;
    int rc;

    if (of->kind <= MR_KIND_LIST) {
        add_step(b, i, LEAF);
        return add_leaf(b, of, inside, err);
    }
    if (of->kind != MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA,
                       "Flatten transformation does not support %s for record with schemas (for "
                       "field %.*s).",
                       mr_java_type(of->kind), (int)inside->prefix.len,
                       (const char *)inside->prefix.u.p);
    if (inside->depth > MAX_DEPTH || enter > 2 * MAX_FIELDS)
        return mr_fail(err, MR_ERR_DATA,
                       "a schema is nested deeper than %d levels, or has more "
                       "than %d fields",
                       MAX_DEPTH, MAX_FIELDS);
    add_step(b, i, 0);
    rc = add_fields(b, of, inside, err);
    add_step(b, i, LEAVE);
    if (b->plan != NULL)
        b->plan->steps[enter].what = (int32_t)(b->step_count - enter);
    return rc;
}

/* The default of field i: its own, else that of the struct around it. */
static struct mr_value default_of(const struct mr_schema *schema, size_t i, struct mr_value around)
{
    const struct mr_schema *of = schema->fields[i].schema;

    if (of->has_default && !mr_is_null(of->default_value))
        return of->default_value;
    return around.kind == MR_KIND_STRUCT && i < around.len ? mr_slots(around)[i] : mr_null();
}

static int add_fields(struct build *b, const struct mr_schema *schema, const struct around *around,
                      struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; i < schema->field_count && rc == MR_OK; i++) {
        const struct mr_schema_field *field = &schema->fields[i];
        struct around inside = {
            .prefix = joined(b->f, b->arena, around->prefix, field->name, strlen(field->name)),
            .optional = around->optional || field->schema->optional,
            .value = default_of(schema, i, around->value),
            .depth = around->depth + 1,
        };

        rc = add_field(b, field->schema, i, &inside, err);
    }
    return rc;
}

static int build_plan(struct build *b, const struct mr_schema *schema, struct mr_error *err)
{
    const struct around top = {.optional = schema->optional, .value = schema->default_value};
    struct mr_schema_spec spec = schema_plan_basics(schema, MR_KIND_STRUCT);
    int rc = add_fields(b, schema, &top, err);

    if (rc != MR_OK)
        return rc;
    b->plan = schema_plan_new(schema, b->step_count, err);
    if (b->plan == NULL)
        return MR_ERR_NOMEM;
    b->fields = schema_plan_fields(b->arena, b->field_count);
    b->field_count = b->step_count = 0;
    rc = add_fields(b, schema, &top, err);
    spec.fields = b->fields;
    spec.field_count = (uint32_t)b->field_count;
    return rc == MR_OK ? schema_plan_make(b->f->task, &spec, &b->plan->to, err) : rc;
}

static int plan_of(struct flatten *f, struct mr_arena *arena, const struct mr_schema *schema,
                   struct schema_plan **out, struct mr_error *err)
{
    struct build build = {.f = f, .arena = arena};
    int rc;

    *out = schema_plans_find(&f->plans, schema);
    if (*out != NULL)
        return MR_OK;
    rc = requirement_fields(schema, err);
    if (rc == MR_OK)
        rc = build_plan(&build, schema, err);
    if (rc == MR_OK)
        schema_plans_keep(&f->plans, build.plan);
    else
        free(build.plan);
    *out = build.plan;
    return rc;
}

/* --- with a schema: records ------------------------------------------------------------------- */

/* Structs that were entered, the innermost last. */
struct inside {
    struct inside *outer;
    struct mr_value v;
};

static int copy_leaf(const struct schema_plan *plan, struct mr_arena *arena, struct mr_value in,
                     size_t from, size_t leaf, struct mr_value *to, struct mr_error *err)
{
    const struct mr_schema *schema = ((const struct mr_struct *)in.u.p)->schema;
    struct mr_value v = schema_plan_get(schema->fields[from].schema, mr_slots(in)[from], true);

    return schema_plan_put(arena, &plan->to->fields[leaf], v, &to[leaf], err);
}

/* Leaves in the steps from first on, up to last: those of a struct that is null stay null. */
static size_t leaves_between(const struct schema_plan *plan, size_t first, size_t last)
{
    size_t n = 0;

    for (; first < last; first++)
        n += plan->steps[first].what == LEAF;
    return n;
}

static int run(const struct schema_plan *plan, struct mr_arena *arena, struct mr_value v,
               struct mr_value *to, struct mr_error *err)
{
    struct inside *in = (struct inside *)mr_alloc(arena, sizeof(*in));
    size_t leaf = 0;
    int rc = MR_OK;

    in->outer = NULL;
    in->v = v;
    for (size_t i = 0; i < plan->count && rc == MR_OK; i++) {
        const struct schema_step *step = &plan->steps[i];
        struct mr_value slot;

        if (step->what == LEAF) {
            rc = copy_leaf(plan, arena, in->v, (size_t)step->from, leaf++, to, err);
        } else if (step->what == LEAVE) {
            in = in->outer != NULL ? in->outer : in;
        } else if (slot = mr_slots(in->v)[step->from], mr_is_null(slot)) {
            leaf += leaves_between(plan, i, i + (size_t)step->what);
            i += (size_t)step->what - 1;
        } else {
            struct inside *inner = (struct inside *)mr_alloc(arena, sizeof(*inner));
            const struct mr_schema *around = ((const struct mr_struct *)in->v.u.p)->schema;

            rc = requirement_struct(around->fields[step->from].schema, slot, PURPOSE, err);
            inner->outer = in;
            inner->v = slot;
            in = inner;
        }
    }
    return rc;
}

static int flatten_struct(struct flatten *f, struct mr_arena *arena, const struct mr_schema *schema,
                          struct mr_value v, struct mr_value *out, const struct mr_schema **to,
                          struct mr_error *err)
{
    struct schema_plan *plan;
    int rc = requirement_struct(schema, v, PURPOSE, err);

    if (rc == MR_OK)
        rc = plan_of(f, arena, schema, &plan, err);
    if (rc != MR_OK)
        return rc;
    *to = plan->to;
    *out = mr_struct_new(arena, plan->to);
    return run(plan, arena, v, mr_slots(*out), err);
}

/* --- without a schema ------------------------------------------------------------------------- */

static int key_text(struct mr_value key, struct mr_error *err)
{
    if (key.kind == MR_KIND_STRING)
        return MR_OK;
    return mr_fail(
        err, MR_ERR_DATA,
        "java.lang.ClassCastException: class %s cannot be cast to class java.lang.String",
        mr_java_class(key));
}

static int count_leaves(struct mr_value map, int depth, size_t *count, struct mr_error *err)
{
    const struct mr_pair *pairs = mr_pairs(map);
    int rc = MR_OK;

    if (depth > MAX_DEPTH)
        return mr_fail(err, MR_ERR_DATA, "a value is nested deeper than %d levels", MAX_DEPTH);
    for (uint32_t i = 0; i < map.len && rc == MR_OK; i++) {
        rc = key_text(pairs[i].key, err);
        if (rc == MR_OK && pairs[i].value.kind == MR_KIND_MAP)
            rc = count_leaves(pairs[i].value, depth + 1, count, err);
        else
            ++*count;
    }
    if (rc == MR_OK && *count > MAX_FIELDS)
        rc = mr_fail(err, MR_ERR_DATA, "a map of more than %d flattened members", MAX_FIELDS);
    return rc;
}

static int check_member(struct mr_value v, struct mr_value name, struct mr_error *err)
{
    char shown[804];

    if (v.kind == MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA,
                       "Flatten transformation does not support class %s for record without "
                       "schemas (for field %s).",
                       mr_java_class(v), mr_quote(shown, sizeof(shown), name.u.p, name.len));
    if (v.kind > MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA,
                       "Flatten transformation was passed a value of type class %s which is not "
                       "supported by Connect's data API",
                       mr_java_class(v));
    return MR_OK;
}

/* The flattened map while it grows. table: open addressing, 1-based indexes of pairs by their
 * names; size is a power of two and at least twice what comes. */
struct flat {
    const struct flatten *f;
    struct mr_arena *arena;
    struct mr_value map;
    uint32_t *table;
    size_t size;
};

/* Two members get one name where a name had the delimiter in it: then the later value stays, in the
 * earlier place. */
static void put_member(struct flat *flat, struct mr_value name, struct mr_value v)
{
    struct mr_pair *pairs = mr_pairs(flat->map), *pair;
    size_t at = (size_t)mr_hash(mr_hash_seed(flat->table), name.u.p, name.len) & (flat->size - 1);

    for (; flat->table[at] != 0; at = (at + 1) & (flat->size - 1)) {
        pair = &pairs[flat->table[at] - 1];
        if (pair->key.len == name.len && memcmp(pair->key.u.p, name.u.p, name.len) == 0) {
            pair->value = v;
            return;
        }
    }
    pair = &pairs[flat->map.len++];
    pair->key = name;
    pair->value = v;
    flat->table[at] = flat->map.len;
}

static int flatten_members(struct flat *flat, struct mr_value map, struct mr_value prefix,
                           struct mr_error *err)
{
    const struct mr_pair *pairs = mr_pairs(map);
    int rc = MR_OK;

    for (uint32_t i = 0; i < map.len && rc == MR_OK; i++) {
        struct mr_value name =
            joined(flat->f, flat->arena, prefix, (const char *)pairs[i].key.u.p, pairs[i].key.len);

        rc = check_member(pairs[i].value, name, err);
        if (rc == MR_OK && pairs[i].value.kind == MR_KIND_MAP)
            rc = flatten_members(flat, pairs[i].value, name, err);
        else if (rc == MR_OK)
            put_member(flat, name, pairs[i].value);
    }
    return rc;
}

static int flatten_map(struct flatten *f, struct mr_arena *arena, struct mr_value v,
                       struct mr_value *out, struct mr_error *err)
{
    struct flat flat = {.f = f, .arena = arena, .size = 8};
    size_t count = 0;
    int rc = requirement_map(v, PURPOSE, err);

    if (rc == MR_OK)
        rc = count_leaves(v, 0, &count, err);
    if (rc != MR_OK)
        return rc;
    while (flat.size < 2 * count)
        flat.size *= 2;
    flat.table = (uint32_t *)mr_alloc(arena, flat.size * sizeof(*flat.table));
    memset(flat.table, 0, flat.size * sizeof(*flat.table));
    flat.map = mr_map(arena, count);
    flat.map.len = 0;
    rc = flatten_members(&flat, v, mr_text("", 0), err);
    *out = flat.map;
    return rc;
}

static int flatten_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                         struct mr_error *err)
{
    struct flatten *f = (struct flatten *)self;
    const struct mr_schema *schema = half_schema(rec, f->side), *to = NULL;
    struct mr_value v = half_value(rec, f->side);
    int rc;

    if (mr_is_null(v))
        return MR_OK;
    if (schema == NULL)
        rc = flatten_map(f, arena, v, &v, err);
    else
        rc = flatten_struct(f, arena, schema, v, &v, &to, err);
    return rc == MR_OK ? half_put(rec, f->side, to, v) : rc;
}

HALF_TRANSFORM(flatten, "Flatten", .keys = flatten_keys,
               .doc = "Nested fields as one level, their names joined",
               .state_size = sizeof(struct flatten), .apply = flatten_apply, .stop = flatten_stop);
