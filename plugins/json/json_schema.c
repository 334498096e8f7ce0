/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas as JSON, both ways: the "schema" member of an envelope, and schema.content. Called once
 * for each schema that the caches don't know; on the task's thread.
 *
 * Reading follows JsonConverter.asConnectSchema, with its leniencies (an `optional` that isn't
 * `true` means required, a name that is no string isn't there) and its texts. Writing gives the
 * members in Java's order, which tests and people compare. */
#include "json_private.h"

#include <stdlib.h>

static const struct {
    const char *json;
    uint8_t kind;
} types[] = {
    {"boolean", MR_KIND_BOOL},   {"int8", MR_KIND_INT8},     {"int16", MR_KIND_INT16},
    {"int32", MR_KIND_INT32},    {"int64", MR_KIND_INT64},   {"float", MR_KIND_FLOAT32},
    {"double", MR_KIND_FLOAT64}, {"string", MR_KIND_STRING}, {"bytes", MR_KIND_BYTES},
    {"array", MR_KIND_LIST},     {"map", MR_KIND_MAP},       {"struct", MR_KIND_STRUCT},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

int json_decimal_scale(const struct mr_schema *schema, int32_t *scale, struct mr_error *err)
{
    const char *text = NULL, *digits;
    int64_t value = 0;

    for (uint32_t i = 0; i < schema->param_count; i++)
        if (strcmp(schema->params[i].name, "scale") == 0)
            text = schema->params[i].value;
    if (text == NULL)
        return mr_fail(err, MR_ERR_DATA, "Invalid Decimal schema: scale parameter not found.");
    digits = text + (*text == '-' || *text == '+');
    for (; *digits >= '0' && *digits <= '9' && value <= INT32_MAX; digits++)
        value = value * 10 + (*digits - '0');
    value = *text == '-' ? -value : value;
    if (*digits != '\0' || digits[-(digits > text)] < '0' || value < INT32_MIN || value > INT32_MAX)
        return mr_caused_by(
            err, mr_fail(err, MR_ERR_DATA, "Invalid scale parameter found in Decimal schema: "),
            "java.lang.NumberFormatException: For input string: \"%.50s\"", text);
    *scale = (int32_t)value;
    return MR_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* A member of a tree object; NULL: the tree is no object, or has none. */
static const struct mr_value *member(struct mr_value tree, const char *name)
{
    const struct record_json_members members = {.pairs = mr_pairs(tree), .count = tree.len};
    const struct mr_pair *pair =
        tree.kind == MR_KIND_MAP ? record_json_member(&members, name, 0) : NULL;

    return pair == NULL ? NULL : &pair->value;
}

/* Text as schemas hold it: NUL-terminated, in the arena. */
static int text_of(struct mr_arena *arena, struct mr_value v, const char **out,
                   struct mr_error *err)
{
    char *copy;

    if (v.len > 0 && memchr(v.u.p, '\0', v.len) != NULL)
        return mr_fail(err, MR_ERR_DATA, "a name or text in the schema holds the character U+0000");
    copy = (char *)mr_alloc(arena, (size_t)v.len + 1);
    if (v.len > 0)
        memcpy(copy, v.u.p, v.len);
    copy[v.len] = '\0';
    *out = copy;
    return MR_OK;
}

static int optional_text(struct mr_arena *arena, struct mr_value tree, const char *name,
                         const char **out, struct mr_error *err)
{
    const struct mr_value *v = member(tree, name);

    return v == NULL || v->kind != MR_KIND_STRING ? MR_OK : text_of(arena, *v, out, err);
}

static int read_kind(struct mr_value tree, uint8_t *kind, struct mr_error *err)
{
    const struct mr_value *type = member(tree, "type");
    char shown[204];

    if (type == NULL || type->kind != MR_KIND_STRING)
        return mr_fail(err, MR_ERR_DATA, "Schema must contain 'type' field");
    for (size_t i = 0; i < TYPES; i++)
        if (type->len == strlen(types[i].json) &&
            memcmp(type->u.p, types[i].json, type->len) == 0) {
            *kind = types[i].kind;
            return MR_OK;
        }
    return mr_fail(err, MR_ERR_DATA, "Unknown schema type: %s",
                   mr_quote(shown, sizeof(shown), type->u.p, type->len));
}

static int read_array(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                      struct mr_schema_spec *spec, struct mr_error *err)
{
    const struct mr_value *items = member(tree, "items");

    if (items == NULL || items->kind == MR_KIND_NULL)
        return mr_fail(err, MR_ERR_DATA, "Array schema did not specify the element type");
    return json_schema_read(c, arena, *items, &spec->value, err);
}

static int read_map(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                    struct mr_schema_spec *spec, struct mr_error *err)
{
    const struct mr_value *keys = member(tree, "keys"), *values = member(tree, "values");
    int rc;

    if (keys == NULL)
        return mr_fail(err, MR_ERR_DATA, "Map schema did not specify the key type");
    if (values == NULL)
        return mr_fail(err, MR_ERR_DATA, "Map schema did not specify the value type");
    rc = json_schema_read(c, arena, *keys, &spec->key, err);
    return rc == MR_OK ? json_schema_read(c, arena, *values, &spec->value, err) : rc;
}

static int read_fields(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                       struct mr_schema_spec *spec, struct mr_error *err)
{
    const struct mr_value *list = member(tree, "fields");
    struct mr_schema_field *fields;
    int rc = MR_OK;

    if (list == NULL || list->kind != MR_KIND_LIST)
        return mr_fail(err, MR_ERR_DATA, "Struct schema's \"fields\" argument is not an array.");
    fields = (struct mr_schema_field *)mr_alloc(arena, list->len * sizeof(*fields));
    memset(fields, 0, list->len * sizeof(*fields));
    for (uint32_t i = 0; i < list->len && rc == MR_OK; i++) {
        struct mr_value field = mr_item(*list, i);
        const struct mr_value *name = member(field, "field");

        if (name == NULL || name->kind != MR_KIND_STRING)
            return mr_fail(err, MR_ERR_DATA, "Struct schema's field name not specified properly");
        rc = text_of(arena, *name, &fields[i].name, err);
        if (rc == MR_OK)
            rc = json_schema_read(c, arena, field, &fields[i].schema, err);
    }
    spec->fields = fields;
    spec->field_count = list->len;
    return rc;
}

static int read_params(struct mr_arena *arena, struct mr_value tree, struct mr_schema_spec *spec,
                       struct mr_error *err)
{
    const struct mr_value *object = member(tree, "parameters");
    struct mr_param *params;
    int rc = MR_OK;

    if (object == NULL || object->kind != MR_KIND_MAP)
        return MR_OK;
    params = (struct mr_param *)mr_alloc(arena, object->len * sizeof(*params));
    for (uint32_t i = 0; i < object->len && rc == MR_OK; i++) {
        struct mr_pair pair = mr_pairs(*object)[i];

        if (pair.value.kind != MR_KIND_STRING)
            return mr_fail(err, MR_ERR_DATA, "Schema parameters must have string values.");
        rc = text_of(arena, pair.key, &params[i].name, err);
        if (rc == MR_OK)
            rc = text_of(arena, pair.value, &params[i].value, err);
    }
    spec->params = params;
    spec->param_count = object->len;
    return rc;
}

static bool is_integral(uint8_t kind)
{
    return kind == MR_KIND_INT64 || kind == JSON_BIGINT;
}

static int32_t int_of(struct mr_value v)
{
    return (int32_t)(v.kind == MR_KIND_INT64 ? v.u.i
                                             : record_json_long((const char *)v.u.p, v.len));
}

static int read_attributes(struct mr_arena *arena, struct mr_value tree,
                           struct mr_schema_spec *spec, struct mr_error *err)
{
    const struct mr_value *optional = member(tree, "optional"), *version = member(tree, "version");
    int rc;

    spec->optional = optional != NULL && optional->kind == MR_KIND_BOOL && optional->u.i != 0;
    spec->has_version = version != NULL && is_integral(version->kind);
    spec->version = spec->has_version ? int_of(*version) : 0;
    rc = optional_text(arena, tree, "name", &spec->name, err);
    if (rc == MR_OK)
        rc = optional_text(arena, tree, "doc", &spec->doc, err);
    return rc == MR_OK ? read_params(arena, tree, spec, err) : rc;
}

/* The code goes on as it is: a table of schemas that is full is no bad record, which tolerance
 * would skip. */
static int make(const struct json_converter *c, const struct mr_schema_spec *spec,
                const struct mr_schema **schema, struct mr_error *err)
{
    const struct mr_schema *made = mr_schema_make(c->task, spec, err);

    if (made == NULL)
        return mr_fail(err, MR_ERR_FATAL, "no schema was made");
    *schema = made;
    return MR_OK;
}

#define DATA_CAUSE "org.apache.kafka.connect.errors.DataException: "

static int bad_default(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_DATA,
                   "org.apache.kafka.connect.errors.SchemaBuilderException: Invalid default value");
}

/* The default is read by the schema as it is without one. */
static int read_default(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                        struct mr_schema_spec *spec, const struct mr_schema **schema,
                        struct mr_error *err)
{
    const struct mr_value *value = member(tree, "default");
    int rc;

    if (value == NULL)
        return MR_OK;
    rc = json_to_connect(c, arena, *schema, *value, &spec->default_value, err);
    if (rc != MR_OK || (spec->default_value.kind == MR_KIND_NULL && spec->optional))
        return rc;
    if (spec->default_value.kind == MR_KIND_NULL)
        return mr_caused_by(err, bad_default(err),
                            DATA_CAUSE
                            "Invalid value: null used for required value, schema type: %s",
                            mr_java_type(spec->kind));
    /* In Java the value's schema is the unfinished one, which equals no other. */
    if (spec->kind == MR_KIND_STRUCT)
        return mr_caused_by(err, bad_default(err), DATA_CAUSE "Struct schemas do not match.");
    spec->has_default = true;
    return make(c, spec, schema, err);
}

int json_schema_read(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                     const struct mr_schema **schema, struct mr_error *err)
{
    struct mr_schema_spec spec;
    const struct mr_schema *made = NULL;
    int rc;

    if (tree.kind == MR_KIND_NULL) {
        *schema = NULL;
        return MR_OK;
    }
    memset(&spec, 0, sizeof(spec));
    rc = read_kind(tree, &spec.kind, err);
    if (rc == MR_OK && spec.kind == MR_KIND_LIST)
        rc = read_array(c, arena, tree, &spec, err);
    else if (rc == MR_OK && spec.kind == MR_KIND_MAP)
        rc = read_map(c, arena, tree, &spec, err);
    else if (rc == MR_OK && spec.kind == MR_KIND_STRUCT)
        rc = read_fields(c, arena, tree, &spec, err);
    if (rc == MR_OK)
        rc = read_attributes(arena, tree, &spec, err);
    if (rc != MR_OK)
        return rc;
    rc = make(c, &spec, &made, err);
    if (rc == MR_OK)
        rc = read_default(c, arena, tree, &spec, &made, err);
    if (rc == MR_OK)
        *schema = made;
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_text(struct json_out *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    json_out_puts(out, name);
    json_out_string(out, text, strlen(text));
}

static int write_fields(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                        const struct mr_schema *schema, struct mr_error *err)
{
    int rc = MR_OK;

    json_out_puts(out, ",\"fields\":[");
    for (uint32_t i = 0; i < schema->field_count && rc == MR_OK; i++) {
        if (i > 0)
            json_out_putc(out, ',');
        rc =
            json_schema_write(c, arena, out, schema->fields[i].schema, schema->fields[i].name, err);
    }
    json_out_putc(out, ']');
    return rc;
}

static int write_inner(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                       const struct mr_schema *schema, struct mr_error *err)
{
    int rc = MR_OK;

    switch (schema->kind) {
    case MR_KIND_STRUCT:
        return write_fields(c, arena, out, schema, err);
    case MR_KIND_LIST:
        json_out_puts(out, ",\"items\":");
        return json_schema_write(c, arena, out, schema->value, NULL, err);
    case MR_KIND_MAP:
        json_out_puts(out, ",\"keys\":");
        rc = json_schema_write(c, arena, out, schema->key, NULL, err);
        json_out_puts(out, ",\"values\":");
        return rc == MR_OK ? json_schema_write(c, arena, out, schema->value, NULL, err) : rc;
    default:
        return rc;
    }
}

static void write_params(struct json_out *out, const struct mr_schema *schema)
{
    if (schema->param_count == 0)
        return;
    json_out_puts(out, ",\"parameters\":{");
    for (uint32_t i = 0; i < schema->param_count; i++) {
        if (i > 0)
            json_out_putc(out, ',');
        json_out_string(out, schema->params[i].name, strlen(schema->params[i].name));
        json_out_putc(out, ':');
        json_out_string(out, schema->params[i].value, strlen(schema->params[i].value));
    }
    json_out_putc(out, '}');
}

static const char *json_name(uint8_t kind)
{
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].kind == kind)
            return types[i].json;
    return "";
}

int json_schema_write(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                      const struct mr_schema *schema, const char *field, struct mr_error *err)
{
    int rc;

    if (schema == NULL) {
        json_out_puts(out, "null");
        return MR_OK;
    }
    json_out_puts(out, "{\"type\":\"");
    json_out_puts(out, json_name(schema->kind));
    json_out_putc(out, '"');
    rc = write_inner(c, arena, out, schema, err);
    json_out_puts(out, schema->optional ? ",\"optional\":true" : ",\"optional\":false");
    write_text(out, ",\"name\":", schema->name);
    if (schema->has_version) {
        json_out_puts(out, ",\"version\":");
        json_out_long(out, schema->version);
    }
    write_text(out, ",\"doc\":", schema->doc);
    write_params(out, schema);
    if (rc == MR_OK && schema->has_default) {
        json_out_puts(out, ",\"default\":");
        rc = json_from_connect(c, arena, out, schema, schema->default_value, err);
    }
    write_text(out, ",\"field\":", field);
    json_out_putc(out, '}');
    return rc;
}
