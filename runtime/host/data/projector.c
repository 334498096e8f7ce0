/* SPDX-License-Identifier: Apache-2.0 */
/* From a writer's schema to a reader's, and from values to schemas. Plugins call through the host's
 * table; on the task's thread.
 *
 * Projection copies nothing that stays the same under an equal schema. A struct's fields are mostly
 * found in the place where they stand in the other schema, so wide structs take no square of time.
 * Schemas come from the tree and are finite, but values need not follow theirs: each step looks at
 * the value's kind first, and depth is bounded by the schemas'. */
#include "host/data/projector.h"

#include "host/data/schema_tree.h"
#include "host/data/values.h"

/* --- projection ------------------------------------------------------------------------------- */

struct projection {
    struct mr_arena *arena;
    struct mr_error *err;
    int depth;
};

static bool is_numeric(uint8_t kind)
{
    return kind >= MR_KIND_INT8 && kind <= MR_KIND_FLOAT64;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const char *param(const struct mr_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->param_count; i++)
        if (strcmp(schema->params[i].name, name) == 0)
            return schema->params[i].value;
    return NULL;
}

static bool same_params(const struct mr_schema *a, const struct mr_schema *b)
{
    if (a->param_count != b->param_count)
        return false;
    for (uint32_t i = 0; i < a->param_count; i++) {
        const char *other = param(b, a->params[i].name);

        if (other == NULL || strcmp(other, a->params[i].value) != 0)
            return false;
    }
    return true;
}

/* "{scale=2}" or "null". */
static void params_text(const struct mr_schema *schema, char *out, size_t size)
{
    size_t len = 0;

    snprintf(out, size, "null");
    for (uint32_t i = 0; i < schema->param_count && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%.60s=%.60s%s", i == 0 ? "{" : ", ",
                                schema->params[i].name, schema->params[i].value,
                                i + 1 == schema->param_count ? "}" : "");
}

static int check_compatible(struct projection *p, const struct mr_schema *from,
                            const struct mr_schema *to)
{
    char a[300], b[300];

    if (from->kind != to->kind &&
        (!is_numeric(from->kind) || !is_numeric(to->kind) || from->kind > to->kind))
        return mr_fail(p->err, MR_ERR_DATA,
                       "Schema type mismatch. source type: %s and target type: %s",
                       mr_java_type(from->kind), mr_java_type(to->kind));
    if (!same_text(from->name, to->name))
        return mr_fail(p->err, MR_ERR_DATA,
                       "Schema name mismatch. source name: %.200s and target name: %.200s",
                       from->name == NULL ? "null" : from->name,
                       to->name == NULL ? "null" : to->name);
    if (same_params(from, to))
        return MR_OK;
    params_text(from, a, sizeof(a));
    params_text(to, b, sizeof(b));
    return mr_fail(p->err, MR_ERR_DATA,
                   "Schema parameters not equal. source parameters: %s and target parameters: %s",
                   a, b);
}

static int project(struct projection *p, const struct mr_schema *from, struct mr_value v,
                   const struct mr_schema *to, struct mr_value *out);

static int fail_value(struct projection *p, const struct mr_schema *to, struct mr_value v)
{
    return mr_fail(p->err, MR_ERR_DATA, "a value of class %s is none of a schema of type %s",
                   mr_java_class(v), mr_java_type(to->kind));
}

/* Numbers widen; what is no number stays what it is, as in Java. */
static struct mr_value widen(struct mr_value v, uint8_t to)
{
    double d;

    if (!is_numeric(v.kind) || v.kind == to)
        return v;
    if (to <= MR_KIND_INT64 && v.kind <= MR_KIND_INT64)
        return mr_int_of(to, to == MR_KIND_INT8    ? (int8_t)v.u.i
                             : to == MR_KIND_INT16 ? (int16_t)v.u.i
                             : to == MR_KIND_INT32 ? (int32_t)v.u.i
                                                   : v.u.i);
    if (!mr_as_double(v, &d))
        return to == MR_KIND_FLOAT32 ? mr_float((float)v.u.i) : mr_double((double)v.u.i);
    return to == MR_KIND_FLOAT32 ? mr_float((float)d) : to == MR_KIND_FLOAT64 ? mr_double(d) : v;
}

/* A field's index in the other schema: likely the next one. */
static int find_field(const struct mr_schema *schema, const char *name, uint32_t guess)
{
    if (guess < schema->field_count && strcmp(schema->fields[guess].name, name) == 0)
        return (int)guess;
    return mr_schema_index(schema, name);
}

/* Java wraps what fails within a field. */
static int project_field(struct projection *p, const struct mr_schema *from, struct mr_value v,
                         const struct mr_schema_field *to, struct mr_value *out)
{
    struct mr_error inner = {0};
    struct projection within = {p->arena, &inner, p->depth};
    int rc = project(&within, from, v, to->schema, out);

    if (rc != MR_OK)
        return mr_caused_by(p->err, mr_fail(p->err, rc, "Error projecting %.200s", to->name),
                            "org.apache.kafka.connect.errors.SchemaProjectorException: %s",
                            inner.text);
    return values_validate_field(to->name, to->schema, *out, p->err);
}

static int missing_field(struct projection *p, const struct mr_schema *from,
                         const struct mr_schema_field *to, struct mr_value *out)
{
    char text[VALUES_SCHEMA_TEXT];

    if (to->schema->optional)
        return MR_OK;
    if (!to->schema->has_default)
        return mr_fail(p->err, MR_ERR_DATA,
                       "Required field `%.200s` is missing from source schema: %s", to->name,
                       values_schema_text(from, text));
    *out = to->schema->default_value;
    return MR_OK;
}

static int project_struct(struct projection *p, const struct mr_schema *from, struct mr_value v,
                          const struct mr_schema *to, struct mr_value *out)
{
    struct mr_value made = mr_struct_new(p->arena, to);
    uint32_t guess = 0;

    for (uint32_t i = 0; i < to->field_count; i++) {
        const struct mr_schema_field *field = &to->fields[i];
        int at = find_field(from, field->name, guess);
        int own = at < 0 ? -1
                         : find_field(((const struct mr_struct *)v.u.p)->schema, field->name,
                                      (uint32_t)at);
        int rc;

        if (at >= 0 && own < 0)
            return mr_fail(p->err, MR_ERR_DATA, "%.200s is not a valid field name", field->name);
        if (at < 0)
            rc = missing_field(p, from, field, &mr_slots(made)[i]);
        else
            rc = project_field(p, from->fields[at].schema, mr_slot(v, (uint32_t)own), field,
                               &mr_slots(made)[i]);
        if (rc != MR_OK)
            return rc;
        guess = at < 0 ? guess : (uint32_t)at + 1;
    }
    *out = made;
    return MR_OK;
}

static int project_list(struct projection *p, const struct mr_schema *from, struct mr_value v,
                        const struct mr_schema *to, struct mr_value *out)
{
    struct mr_value made = mr_list(p->arena, v.len);
    int rc = MR_OK;

    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++)
        rc = project(p, from->value, mr_items(v)[i], to->value, &mr_items(made)[i]);
    if (rc == MR_OK)
        *out = made;
    return rc;
}

/* Keys of one numeric kind that widen may become equal (as floats); then both stay. */
static int project_map(struct projection *p, const struct mr_schema *from, struct mr_value v,
                       const struct mr_schema *to, struct mr_value *out)
{
    struct mr_value made = mr_map(p->arena, v.len);
    int rc = MR_OK;

    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        rc = project(p, from->key, mr_pairs(v)[i].key, to->key, &mr_pairs(made)[i].key);
        if (rc == MR_OK)
            rc = project(p, from->value, mr_pairs(v)[i].value, to->value, &mr_pairs(made)[i].value);
    }
    if (rc == MR_OK)
        *out = made;
    return rc;
}

static int project_value(struct projection *p, const struct mr_schema *from, struct mr_value v,
                         const struct mr_schema *to, struct mr_value *out)
{
    if (to->kind < MR_KIND_LIST) {
        *out = is_numeric(to->kind) ? widen(v, to->kind) : v;
        return MR_OK;
    }
    if (v.kind != to->kind)
        return fail_value(p, to, v);
    return to->kind == MR_KIND_STRUCT ? project_struct(p, from, v, to, out)
           : to->kind == MR_KIND_LIST ? project_list(p, from, v, to, out)
                                      : project_map(p, from, v, to, out);
}

static int project(struct projection *p, const struct mr_schema *from, struct mr_value v,
                   const struct mr_schema *to, struct mr_value *out)
{
    int rc;

    if (from == NULL || to == NULL)
        return mr_fail(p->err, MR_ERR_DATA, "members without a schema can't be projected");
    rc = check_compatible(p, from, to);
    if (rc == MR_OK && p->depth >= VALUES_MAX_DEPTH)
        rc = mr_fail(p->err, MR_ERR_DATA, "a value is nested deeper than %d levels",
                     VALUES_MAX_DEPTH);
    if (rc != MR_OK)
        return rc;
    if (from->optional && !to->optional && !to->has_default)
        return mr_fail(p->err, MR_ERR_DATA,
                       "Writer schema is optional, however, target schema does not provide a "
                       "default value.");
    if (v.kind == MR_KIND_NULL) {
        *out = from->optional && !to->optional ? to->default_value : mr_null();
        return MR_OK;
    }
    p->depth++;
    rc = project_value(p, from, v, to, out);
    p->depth--;
    return rc;
}

int projector_project(struct mr_arena *arena, const struct mr_schema *from, struct mr_value v,
                      const struct mr_schema *to, struct mr_value *out, struct mr_error *err)
{
    struct projection p = {.arena = arena, .err = err};
    struct mr_value made = mr_null();
    int rc = project(&p, from, v, to, &made);

    if (rc == MR_OK)
        *out = made;
    return rc;
}

/* --- inference -------------------------------------------------------------------------------- */

/* What members have in common: their type alone, as Java's detector keeps nothing else of them. */
struct detector {
    uint8_t kind; /* 0: nulls only, so far */
    bool optional;
};

static int infer(struct mr_value v, int depth, const struct mr_schema **out, struct mr_error *err);

/* *same: false when there is no common type. */
static int detect(struct detector *d, struct mr_value v, int depth, bool *same,
                  struct mr_error *err)
{
    const struct mr_schema *schema = NULL;
    int rc;

    *same = true;
    if (v.kind == MR_KIND_NULL) {
        d->optional = true;
        return MR_OK;
    }
    rc = infer(v, depth + 1, &schema, err);
    if (rc != MR_OK)
        return rc;
    if (d->kind == 0 && schema != NULL)
        d->kind = schema->kind;
    *same = schema != NULL && schema->kind == d->kind;
    return MR_OK;
}

static const struct mr_schema *detected(const struct detector *d, struct mr_error *err)
{
    struct mr_schema_spec spec = {.kind = d->kind, .optional = d->optional};

    if (d->kind == 0) {
        mr_fail(err, MR_ERR_DATA, "type cannot be null");
        return NULL;
    }
    return schema_tree_bare(&spec, err);
}

static int infer_container(struct mr_value v, int depth, const struct mr_schema **out,
                           struct mr_error *err)
{
    struct detector keys = {0}, values = {0};
    const struct mr_schema *key = NULL, *value;
    bool map = v.kind == MR_KIND_MAP, same = v.len > 0;
    int rc = MR_OK;

    if (depth >= VALUES_MAX_DEPTH)
        return mr_fail(err, MR_ERR_DATA, "a value is nested deeper than %d levels",
                       VALUES_MAX_DEPTH);
    for (uint32_t i = 0; i < v.len && rc == MR_OK && same; i++) {
        if (map)
            rc = detect(&keys, mr_pairs(v)[i].key, depth, &same, err);
        if (rc == MR_OK && same)
            rc = detect(&values, map ? mr_pairs(v)[i].value : mr_items(v)[i], depth, &same, err);
    }
    *out = NULL;
    if (rc != MR_OK || !same)
        return rc;
    if (map && (key = detected(&keys, err)) == NULL)
        return err->code;
    value = detected(&values, err);
    *out = value == NULL
               ? NULL
               : schema_tree_bare(
                     &(struct mr_schema_spec){.kind = v.kind, .key = key, .value = value}, err);
    return *out != NULL ? MR_OK : err->code;
}

static int infer(struct mr_value v, int depth, const struct mr_schema **out, struct mr_error *err)
{
    if (v.kind == MR_KIND_LIST || v.kind == MR_KIND_MAP)
        return infer_container(v, depth, out, err);
    *out = NULL;
    if (v.kind == MR_KIND_NULL || v.kind >= MR_KIND_DECIMAL)
        return MR_OK;
    *out = v.kind == MR_KIND_STRUCT ? ((const struct mr_struct *)v.u.p)->schema
                                    : schema_tree_plain(v.kind);
    return MR_OK;
}

int projector_infer(struct mr_value v, const struct mr_schema **schema, struct mr_error *err)
{
    const struct mr_schema *made = NULL;
    struct mr_error own = {0};
    int rc = infer(v, 0, &made, err == NULL ? &own : err);

    if (rc == MR_OK)
        *schema = made;
    return rc;
}
