/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a value without touching anything else: equality, a hash, a deep copy,
 * well-formedness, and whether it fits a schema. Called by the schema tree (defaults), by the host
 * when a plugin hands values over, and by converters' callers; on any thread.
 *
 * values_check comes first for anything that a plugin made: the other functions follow its pointers
 * and trust its kinds. The texts of values_validate are Connect's to the letter, Java class names
 * included, because users search for them. */
#include "host/data/values.h"

#include <millrace/hash.h>

#include <inttypes.h>

const char *values_schema_text(const struct mr_schema *schema, char out[VALUES_SCHEMA_TEXT])
{
    if (schema == NULL)
        snprintf(out, VALUES_SCHEMA_TEXT, "null");
    else
        snprintf(out, VALUES_SCHEMA_TEXT, "Schema{%.200s%s%s}",
                 schema->name == NULL ? "" : schema->name, schema->name == NULL ? "" : ":",
                 mr_java_type(schema->kind));
    return out;
}

/* --- equality --------------------------------------------------------------------------------- */

static bool is_integral(uint8_t kind)
{
    return (kind >= MR_KIND_BOOL && kind <= MR_KIND_INT64) || kind >= MR_KIND_DATE;
}

static uint64_t double_bits(struct mr_value v)
{
    double d = v.kind == MR_KIND_FLOAT32 ? (double)v.u.f : v.u.d;
    uint64_t bits;

    if (d != d)
        return UINT64_C(0x7ff8000000000000);
    memcpy(&bits, &d, sizeof(bits));
    return bits;
}

static bool decimals_equal(const struct mr_decimal *a, const struct mr_decimal *b)
{
    return a->scale == b->scale && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool items_equal(const struct mr_value *a, const struct mr_value *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!values_equal(a[i], b[i]))
            return false;
    return true;
}

/* A table of pairs by their keys, with open addressing; slots NULL: there was no memory for one, they
 * are compared one by one. */
struct pair_table {
    const struct mr_pair *pairs;
    uint32_t count;
    size_t mask;
    struct {
        uint64_t hash;
        uint32_t number; /* of the pair, from 1; 0: free */
    } * slots;
};

static size_t pair_slot(const struct pair_table *t, struct mr_value key, uint64_t hash)
{
    size_t at = (size_t)hash & t->mask;

    while (t->slots[at].number != 0 &&
           !(t->slots[at].hash == hash && values_equal(t->pairs[t->slots[at].number - 1].key, key)))
        at = (at + 1) & t->mask;
    return at;
}

static void pair_table_fill(struct pair_table *t)
{
    for (t->mask = 3; t->mask < 2 * (size_t)t->count; t->mask = 2 * t->mask + 1)
        continue;
    t->slots = calloc(t->mask + 1, sizeof(*t->slots));
    for (uint32_t i = 0; t->slots != NULL && i < t->count; i++) {
        uint64_t hash = mr_hash_value(mr_hash_seed(t->slots), t->pairs[i].key);
        size_t at = pair_slot(t, t->pairs[i].key, hash);

        t->slots[at].hash = hash;
        t->slots[at].number = i + 1;
    }
}

static const struct mr_pair *pair_find(const struct pair_table *t, struct mr_value key)
{
    size_t i = 0;

    if (t->slots != NULL) {
        i = t->slots[pair_slot(t, key, mr_hash_value(mr_hash_seed(t->slots), key))].number;
        return i == 0 ? NULL : &t->pairs[i - 1];
    }
    while (i < t->count && !values_equal(t->pairs[i].key, key))
        i++;
    return i < t->count ? &t->pairs[i] : NULL;
}

/* Of equal counts. Mostly they are in one order; else each pair of a is looked for in b: maps have
 * distinct keys. */
static bool maps_equal(struct mr_value a, struct mr_value b)
{
    const struct mr_pair *pairs = mr_pairs(a);
    struct pair_table in = {.pairs = mr_pairs(b), .count = b.len};
    bool equal = true;
    uint32_t i;

    for (i = 0; i < a.len && values_equal(pairs[i].key, in.pairs[i].key); i++)
        if (!values_equal(pairs[i].value, in.pairs[i].value))
            return false;
    if (i == a.len)
        return true;
    pair_table_fill(&in);
    for (; i < a.len && equal; i++) {
        const struct mr_pair *other = pair_find(&in, pairs[i].key);

        equal = other != NULL && values_equal(pairs[i].value, other->value);
    }
    free(in.slots);
    return equal;
}

static bool structs_equal(struct mr_value a, struct mr_value b)
{
    const struct mr_struct *x = a.u.p, *y = b.u.p;

    return x->schema == y->schema && items_equal(x->slots, y->slots, a.len);
}

bool values_equal(struct mr_value a, struct mr_value b)
{
    if (a.kind != b.kind)
        return false;
    if (is_integral(a.kind))
        return a.u.i == b.u.i;
    switch (a.kind) {
    case MR_KIND_FLOAT32:
    case MR_KIND_FLOAT64:
        return double_bits(a) == double_bits(b);
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        return a.len == b.len && (a.len == 0 || memcmp(a.u.p, b.u.p, a.len) == 0);
    case MR_KIND_LIST:
        return a.len == b.len && items_equal(mr_items(a), mr_items(b), a.len);
    case MR_KIND_MAP:
        return a.len == b.len && maps_equal(a, b);
    case MR_KIND_STRUCT:
        return a.len == b.len && structs_equal(a, b);
    case MR_KIND_DECIMAL:
        return decimals_equal(a.u.p, b.u.p);
    default:
        return true; /* null */
    }
}

/* --- copying ---------------------------------------------------------------------------------- */

static size_t round_up(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Bytes of what v points to, without what that points to. */
static size_t own_size(struct mr_value v)
{
    switch (v.kind) {
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        return v.len;
    case MR_KIND_LIST:
        return v.len * sizeof(struct mr_value);
    case MR_KIND_MAP:
        return v.len * sizeof(struct mr_pair);
    case MR_KIND_STRUCT:
        return offsetof(struct mr_struct, slots) + v.len * sizeof(struct mr_value);
    case MR_KIND_DECIMAL:
        return offsetof(struct mr_decimal, bytes) + ((const struct mr_decimal *)v.u.p)->len;
    default:
        return 0;
    }
}

/* The values inside a container: a run of them (a pair is two). */
static struct mr_value *inner(struct mr_value v, size_t *count)
{
    *count = v.kind == MR_KIND_MAP ? (size_t)v.len * 2 : v.len;
    switch (v.kind) {
    case MR_KIND_LIST:
        return mr_items(v);
    case MR_KIND_MAP:
        return (struct mr_value *)(void *)mr_pairs(v);
    case MR_KIND_STRUCT:
        return mr_slots(v);
    default:
        *count = 0;
        return NULL;
    }
}

size_t values_size(struct mr_value v)
{
    size_t count;
    const struct mr_value *items = inner(v, &count);
    size_t size = round_up(own_size(v));

    for (size_t i = 0; i < count; i++)
        size += values_size(items[i]);
    return size;
}

struct mr_value values_copy(struct mr_value v, char **to)
{
    size_t size = own_size(v), count;
    struct mr_value *items;

    if (size == 0)
        return v;
    memcpy(*to, v.u.p, size);
    v.u.p = *to;
    *to += round_up(size);
    items = inner(v, &count);
    for (size_t i = 0; i < count; i++)
        items[i] = values_copy(items[i], to);
    return v;
}

/* --- well-formedness -------------------------------------------------------------------------- */

static int check(struct mr_value v, int depth, struct mr_error *err);

static int check_range(struct mr_value v, int64_t min, int64_t max, struct mr_error *err)
{
    if (v.u.i >= min && v.u.i <= max)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA,
                   "a value of class %s holds %" PRId64 ", which is outside its range",
                   mr_java_class(v), v.u.i);
}

static int check_integral(struct mr_value v, struct mr_error *err)
{
    switch (v.kind) {
    case MR_KIND_BOOL:
        return check_range(v, 0, 1, err);
    case MR_KIND_INT8:
        return check_range(v, INT8_MIN, INT8_MAX, err);
    case MR_KIND_INT16:
        return check_range(v, INT16_MIN, INT16_MAX, err);
    case MR_KIND_INT32:
    case MR_KIND_DATE:
    case MR_KIND_TIME:
        return check_range(v, INT32_MIN, INT32_MAX, err);
    default:
        return MR_OK;
    }
}

static int check_decimal(struct mr_value v, struct mr_error *err)
{
    const struct mr_decimal *d = v.u.p;

    if (d == NULL || d->len == 0)
        return mr_fail(err, MR_ERR_DATA, "a decimal value has no digits");
    if (d->len > VALUES_MAX_DECIMAL)
        return mr_fail(err, MR_ERR_DATA, "a decimal value of %" PRIu32 " bytes is longer than %u",
                       d->len, VALUES_MAX_DECIMAL);
    return MR_OK;
}

static int check_struct(struct mr_value v, struct mr_error *err)
{
    const struct mr_struct *s = v.u.p;

    if (s == NULL || s->schema == NULL || s->schema->kind != MR_KIND_STRUCT ||
        s->schema->field_count != v.len)
        return mr_fail(err, MR_ERR_DATA,
                       "a struct value of %" PRIu32 " slots has no schema of as many fields",
                       v.len);
    return MR_OK;
}

static int check_inner(struct mr_value v, int depth, struct mr_error *err)
{
    size_t count;
    const struct mr_value *items = inner(v, &count);
    int rc = MR_OK;

    if (depth >= VALUES_MAX_DEPTH)
        return mr_fail(err, MR_ERR_DATA, "a value is nested deeper than %d levels",
                       VALUES_MAX_DEPTH);
    for (size_t i = 0; i < count && rc == MR_OK; i++)
        rc = check(items[i], depth + 1, err);
    return rc;
}

static int check(struct mr_value v, int depth, struct mr_error *err)
{
    int rc = MR_OK;

    if (v.kind > MR_KIND_TIMESTAMP || v.flags != 0 || v.reserved != 0)
        return mr_fail(err, MR_ERR_DATA, "a value has the unknown kind %u (flags %u)", v.kind,
                       v.flags);
    if (is_integral(v.kind))
        return check_integral(v, err);
    if (v.kind == MR_KIND_DECIMAL)
        return check_decimal(v, err);
    if (v.kind < MR_KIND_STRING)
        return MR_OK;
    if (v.kind == MR_KIND_STRUCT)
        rc = check_struct(v, err);
    else if (v.len > 0 && v.u.p == NULL)
        rc = mr_fail(err, MR_ERR_DATA,
                     "a value of class %s has a length of %" PRIu32 " and no content",
                     mr_java_class(v), v.len);
    if (rc != MR_OK || v.kind < MR_KIND_LIST)
        return rc;
    return check_inner(v, depth, err);
}

int values_check(struct mr_value v, struct mr_error *err)
{
    return check(v, 0, err);
}

/* --- fitting a schema ------------------------------------------------------------------------- */

/* Where in the value we are: what the text ends with, read from the innermost place outwards. */
struct place {
    const struct place *outer;
    const char *what; /* "element of array " …, or NULL: a field or the value itself */
    const char *field;
};

static void place_text(const struct place *place, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (; place != NULL && len < size; place = place->outer) {
        if (place->what != NULL)
            len += (size_t)snprintf(out + len, size - len, "%s", place->what);
        else if (place->field != NULL)
            len += (size_t)snprintf(out + len, size - len, "field: \"%s\"", place->field);
        else
            len += (size_t)snprintf(out + len, size - len, "value");
    }
}

static int validate(const struct mr_schema *schema, struct mr_value v, const struct place *place,
                    struct mr_error *err);

static int fail_null(const struct mr_schema *schema, const struct place *place,
                     struct mr_error *err)
{
    char where[512];

    place_text(place, where, sizeof(where));
    return mr_fail(err, MR_ERR_DATA, "Invalid value: null used for required %s, schema type: %s",
                   where, mr_java_type(schema->kind));
}

static int fail_class(const struct mr_schema *schema, struct mr_value v, const struct place *place,
                      struct mr_error *err)
{
    bool named = schema->name != NULL;
    char where[512];

    place_text(place, where, sizeof(where));
    return mr_fail(err, MR_ERR_DATA,
                   "Invalid Java object for schema%s%.200s%s with type %s: class %s for %s",
                   named ? " \"" : "", named ? schema->name : "", named ? "\"" : "",
                   mr_java_type(schema->kind), mr_java_class(v), where);
}

/* All three kinds of time are java.util.Date, so each fits where another is asked for. */
static bool kind_fits(uint8_t logical, uint8_t kind)
{
    if (logical >= MR_KIND_DATE && logical <= MR_KIND_TIMESTAMP)
        return kind >= MR_KIND_DATE && kind <= MR_KIND_TIMESTAMP;
    return kind == logical;
}

static int validate_struct(const struct mr_schema *schema, struct mr_value v, struct mr_error *err)
{
    const struct mr_struct *s = v.u.p;
    int rc = MR_OK;

    if (s->schema != schema)
        return mr_fail(err, MR_ERR_DATA, "Struct schemas do not match.");
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        const struct mr_schema_field *field = &schema->fields[i];

        if (s->slots[i].kind != MR_KIND_NULL ||
            !(field->schema->optional || field->schema->has_default))
            rc = validate(field->schema, s->slots[i], &(struct place){.field = field->name}, err);
    }
    return rc;
}

static int validate_list(const struct mr_schema *schema, struct mr_value v,
                         const struct place *place, struct mr_error *err)
{
    const struct place inside = {.outer = place, .what = "element of array "};
    int rc = MR_OK;

    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++)
        rc = validate(schema->value, mr_items(v)[i], &inside, err);
    return rc;
}

static int validate_map(const struct mr_schema *schema, struct mr_value v,
                        const struct place *place, struct mr_error *err)
{
    const struct place key = {.outer = place, .what = "key of map "};
    const struct place value = {.outer = place, .what = "value of map "};
    int rc = MR_OK;

    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        rc = validate(schema->key, mr_pairs(v)[i].key, &key, err);
        if (rc == MR_OK)
            rc = validate(schema->value, mr_pairs(v)[i].value, &value, err);
    }
    return rc;
}

static int validate(const struct mr_schema *schema, struct mr_value v, const struct place *place,
                    struct mr_error *err)
{
    char where[512];

    if (schema == NULL) {
        place_text(place, where, sizeof(where));
        return mr_fail(err, MR_ERR_DATA, "No schema defined for %s", where);
    }
    if (v.kind == MR_KIND_NULL)
        return schema->optional ? MR_OK : fail_null(schema, place, err);
    if (!kind_fits(schema->logical, v.kind))
        return fail_class(schema, v, place, err);
    /* A list that is named Date. */
    if (schema->kind >= MR_KIND_LIST && schema->logical != schema->kind)
        return mr_fail(err, MR_ERR_DATA,
                       "class %s cannot be cast to the class of a schema of type %s",
                       mr_java_class(v), mr_java_type(schema->kind));
    switch (v.kind) {
    case MR_KIND_STRUCT:
        return validate_struct(schema, v, err);
    case MR_KIND_LIST:
        return validate_list(schema, v, place, err);
    case MR_KIND_MAP:
        return validate_map(schema, v, place, err);
    default:
        return MR_OK;
    }
}

int values_validate(const struct mr_schema *schema, struct mr_value v, struct mr_error *err)
{
    return validate(schema, v, &(struct place){0}, err);
}

int values_validate_field(const char *field, const struct mr_schema *schema, struct mr_value v,
                          struct mr_error *err)
{
    return validate(schema, v, &(struct place){.field = field}, err);
}
