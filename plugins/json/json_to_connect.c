/* SPDX-License-Identifier: Apache-2.0 */
/* From a JSON tree to the value that a schema makes of it: JsonConverter.convertToConnect, on the
 * task's thread.
 *
 * Lenient on purpose, as Jackson's accessors are: a string where an integer is expected is 0, a
 * number where text is expected is null. Only a struct checks afterwards that no null stands where
 * none may (Struct.put), which is why a null made from a wrong type is remembered until the struct
 * around it closes. */
#include "json_private.h"

#include <stdlib.h>

#include <millrace/hash.h>

/* What a conversion carries along. */
struct way_in {
    struct json_converter *c;
    struct mr_arena *arena;
    bool made_null; /* a STRING or BYTES came out null from something that was not null */
    struct mr_error *err;
};

static int convert(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out);

/* JsonNodeType. */
static const char *node_type(uint8_t kind)
{
    switch (kind) {
    case MR_KIND_NULL:
        return "NULL";
    case MR_KIND_BOOL:
        return "BOOLEAN";
    case MR_KIND_STRING:
        return "STRING";
    case MR_KIND_LIST:
        return "ARRAY";
    case MR_KIND_MAP:
        return "OBJECT";
    case JSON_MISSING:
        return "MISSING";
    default:
        return "NUMBER";
    }
}

static bool is_integral(uint8_t kind)
{
    return kind == MR_KIND_INT64 || kind == JSON_BIGINT;
}

static bool is_number(uint8_t kind)
{
    return is_integral(kind) || kind == JSON_FRACTION;
}

/* Low 64 bits of the integer part; 0 for what is no number. */
static int64_t long_of(struct mr_value tree)
{
    if (tree.kind == MR_KIND_INT64)
        return tree.u.i;
    return is_number(tree.kind) ? record_json_long((const char *)tree.u.p, tree.len) : 0;
}

/* --- base64 ----------------------------------------------------------------------------------- */

static int sextet(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Standard alphabet, padded; blanks and controls only between units of four, as Jackson's
 * MIME_NO_LINEFEEDS reads it. false: it is not. */
static bool base64(struct mr_arena *arena, struct mr_value text, struct mr_value *out)
{
    const unsigned char *p = (const unsigned char *)text.u.p, *end = p + text.len;
    unsigned char *copy = (unsigned char *)mr_alloc(arena, (size_t)text.len / 4 * 3 + 3),
                  *to = copy;

    for (;;) {
        unsigned bits = 0;
        int digits = 0;

        while (p < end && *p <= ' ')
            p++;
        if (p == end)
            break;
        if (end - p < 4)
            return false;
        for (; digits < 4 && sextet(p[digits]) >= 0; digits++)
            bits = bits << 6 | (unsigned)sextet(p[digits]);
        if (digits < 2 || (digits < 4 && p[3] != '=') || (digits == 2 && p[2] != '='))
            return false;
        bits <<= 6 * (4 - digits);
        *to++ = (unsigned char)(bits >> 16);
        if (digits > 2)
            *to++ = (unsigned char)(bits >> 8);
        if (digits > 3)
            *to++ = (unsigned char)bits;
        p += 4;
    }
    *out = mr_bytes(copy, (size_t)(to - copy));
    return true;
}

/* --- logical types ---------------------------------------------------------------------------- */

#define DAY_MS 86400000
#define CAUSE "java.lang.IllegalArgumentException: "
#define MAX_DECIMAL 16384u /* bytes; the host refuses longer ones */

static int bad_decimal(struct way_in *w)
{
    return mr_fail(w->err, MR_ERR_DATA, "Invalid bytes for Decimal field");
}

/* Big-endian two's complement made minimal. */
static int decimal_of_bytes(struct way_in *w, const struct mr_schema *schema, struct mr_value bytes,
                            struct mr_value *out)
{
    const unsigned char *p = (const unsigned char *)bytes.u.p;
    struct mr_error cause;
    struct mr_decimal *d;
    size_t len = bytes.len, size;
    int32_t scale = 0;

    memset(&cause, 0, sizeof(cause));
    if (json_decimal_scale(schema, &scale, &cause) != MR_OK)
        return mr_caused_by(w->err, bad_decimal(w), CAUSE "%s", cause.text);
    if (len == 0)
        return mr_caused_by(w->err, bad_decimal(w), CAUSE "Zero length BigInteger");
    for (; len > 1 && p[0] == (p[1] & 0x80 ? 0xff : 0x00); len--)
        p++;
    if (len > MAX_DECIMAL)
        return mr_caused_by(w->err, bad_decimal(w), CAUSE "%zu bytes, more than %u", len,
                            MAX_DECIMAL);
    size = sizeof(*d) + len;
    d = (struct mr_decimal *)mr_alloc(w->arena, size);
    memset(d, 0, size);
    d->scale = scale;
    d->len = (uint32_t)len;
    memcpy(d->bytes, p, len);
    *out = mr_ptr_of(MR_KIND_DECIMAL, d, 0);
    return MR_OK;
}

static int to_decimal(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                      struct mr_value *out)
{
    struct mr_value bytes;

    if (tree.kind == MR_KIND_INT64)
        *out = record_json_decimal_long(w->arena, tree.u.i);
    else if (is_number(tree.kind))
        *out = record_json_decimal(w->arena, (const char *)tree.u.p, tree.len);
    else if (tree.kind != MR_KIND_STRING)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Invalid type for Decimal, underlying representation should be numeric or "
                       "bytes but was %s",
                       node_type(tree.kind));
    else if (!base64(w->arena, tree, &bytes))
        return mr_caused_by(w->err, bad_decimal(w), CAUSE "broken base64");
    else
        return decimal_of_bytes(w, schema, bytes, out);
    return MR_OK;
}

/* An integer of 32 bits, for Date and Time. */
static int int_of(struct way_in *w, const char *type, struct mr_value tree, int32_t *out)
{
    if (tree.kind != MR_KIND_INT64 || tree.u.i < INT32_MIN || tree.u.i > INT32_MAX)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Invalid type for %s, underlying representation should be integer but was %s", type,
            node_type(tree.kind));
    *out = (int32_t)tree.u.i;
    return MR_OK;
}

static int to_date(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    int32_t days = 0;
    int rc = int_of(w, "Date", tree, &days);

    if (rc == MR_OK)
        *out = mr_date(days);
    return rc;
}

static int to_time(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    int32_t ms = 0;
    int rc = int_of(w, "Time", tree, &ms);

    if (rc != MR_OK)
        return rc;
    if (ms < 0 || ms > DAY_MS)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Time values must use number of milliseconds greater than 0 and less than 86400000");
    *out = mr_time(ms);
    return MR_OK;
}

static int to_timestamp(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                        struct mr_value *out)
{
    if (!is_integral(tree.kind))
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Invalid type for Timestamp, underlying representation should be integral but was %s",
            node_type(tree.kind));
    *out = mr_timestamp(long_of(tree));
    return MR_OK;
}

/* --- primitives ------------------------------------------------------------------------------- */

static int to_integer(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                      struct mr_value *out)
{
    int64_t i = long_of(tree);

    *out = schema->kind == MR_KIND_INT8    ? mr_int8((int8_t)i)
           : schema->kind == MR_KIND_INT16 ? mr_int16((int16_t)i)
           : schema->kind == MR_KIND_INT32 ? mr_int((int32_t)i)
                                           : mr_long(i);
    return MR_OK;
}

static int to_float(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                    struct mr_value *out)
{
    if (tree.kind == MR_KIND_INT64)
        *out = mr_float((float)tree.u.i);
    else
        *out = mr_float(is_number(tree.kind) ? record_json_float((const char *)tree.u.p, tree.len)
                                             : 0.0F);
    return MR_OK;
}

static int to_double(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                     struct mr_value *out)
{
    if (tree.kind == MR_KIND_INT64)
        *out = mr_double((double)tree.u.i);
    else
        *out = mr_double(is_number(tree.kind) ? record_json_double((const char *)tree.u.p, tree.len)
                                              : 0.0);
    return MR_OK;
}

static int to_bool(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    *out = mr_bool(tree.kind == MR_KIND_BOOL && tree.u.i != 0);
    return MR_OK;
}

static int to_text(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    *out = tree.kind == MR_KIND_STRING ? tree : mr_null();
    w->made_null = w->made_null || tree.kind != MR_KIND_STRING;
    return MR_OK;
}

static int to_bytes(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                    struct mr_value *out)
{
    if (tree.kind != MR_KIND_STRING)
        return to_text(w, schema, tree, out);
    if (!base64(w->arena, tree, out))
        return mr_caused_by(w->err, mr_fail(w->err, MR_ERR_DATA, "Invalid bytes field"),
                            CAUSE "broken base64");
    return MR_OK;
}

/* --- containers ------------------------------------------------------------------------------- */

/* An object's values are taken like an array's; a scalar is an empty list. */
static int to_list(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    bool object = tree.kind == MR_KIND_MAP;
    uint32_t count = object || tree.kind == MR_KIND_LIST ? tree.len : 0;
    struct mr_value list = mr_list(w->arena, count);
    int rc = MR_OK;

    for (uint32_t i = 0; i < count && rc == MR_OK; i++)
        rc = convert(w, schema->value, object ? mr_pairs(tree)[i].value : mr_items(tree)[i],
                     &mr_items(list)[i]);
    if (rc == MR_OK)
        *out = list;
    return rc;
}

static int to_text_map(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                       struct mr_value *out)
{
    struct mr_value map;
    int rc = MR_OK;

    if (tree.kind != MR_KIND_MAP)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Maps with string fields should be encoded as JSON objects, but found %s",
                       node_type(tree.kind));
    map = mr_map(w->arena, tree.len);
    for (uint32_t i = 0; i < tree.len && rc == MR_OK; i++) {
        mr_pairs(map)[i].key = mr_pairs(tree)[i].key;
        rc = convert(w, schema->value, mr_pairs(tree)[i].value, &mr_pairs(map)[i].value);
    }
    if (rc == MR_OK)
        *out = map;
    return rc;
}

/* Floats are the same key by their bits, as Float.equals has it. */
static uint32_t float_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* Keys that are equal are one entry, the last one, as in Java's HashMap: by kind and content, but
 * each byte[] by itself. */
static bool same_key(struct mr_value a, struct mr_value b);

static bool same_items(const struct mr_value *a, const struct mr_value *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_key(a[i], b[i]))
            return false;
    return true;
}

/* In any order. Mostly it is one; else each pair of a is looked for in a table of b's. */
static bool same_pairs(struct mr_value a, struct mr_value b)
{
    const struct mr_pair *pairs = mr_pairs(a), *others = mr_pairs(b);
    size_t mask = 15;
    uint32_t *slots, i;
    bool same = true;

    if (same_items(&pairs->key, &others->key, 2 * (size_t)a.len))
        return true;
    while (mask < 2 * (size_t)a.len)
        mask = 2 * mask + 1;
    slots = (uint32_t *)calloc(mask + 1, sizeof(*slots));
    if (slots == NULL)
        return false;
    for (i = 0; i < b.len; i++) {
        size_t at = (size_t)mr_hash_value(mr_hash_seed(slots), others[i].key) & mask;

        while (slots[at] != 0)
            at = (at + 1) & mask;
        slots[at] = i + 1;
    }
    for (i = 0; i < a.len && same; i++) {
        size_t at = (size_t)mr_hash_value(mr_hash_seed(slots), pairs[i].key) & mask;

        while (slots[at] != 0 && !same_key(others[slots[at] - 1].key, pairs[i].key))
            at = (at + 1) & mask;
        same = slots[at] != 0 && same_key(others[slots[at] - 1].value, pairs[i].value);
    }
    free(slots);
    return same;
}

static bool same_decimal(const struct mr_decimal *a, const struct mr_decimal *b)
{
    return a->scale == b->scale && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool same_key(struct mr_value a, struct mr_value b)
{
    if (a.kind != b.kind || a.len != b.len || a.kind == MR_KIND_BYTES)
        return false;
    switch (a.kind) {
    case MR_KIND_FLOAT32:
        return float_bits(a.u.f) == float_bits(b.u.f);
    case MR_KIND_STRING:
        return memcmp(a.u.p, b.u.p, a.len) == 0;
    case MR_KIND_LIST:
        return same_items(mr_items(a), mr_items(b), a.len);
    case MR_KIND_MAP:
        return same_pairs(a, b);
    case MR_KIND_STRUCT:
        return same_items(mr_slots(a), mr_slots(b), a.len);
    case MR_KIND_DECIMAL:
        return same_decimal((const struct mr_decimal *)a.u.p, (const struct mr_decimal *)b.u.p);
    default:
        return a.u.i == b.u.i;
    }
}

static bool has_bytes(struct mr_value v);

static bool any_has_bytes(const struct mr_value *items, size_t count)
{
    size_t i = 0;

    while (i < count && !has_bytes(items[i]))
        i++;
    return i < count;
}

static bool has_bytes(struct mr_value v)
{
    switch (v.kind) {
    case MR_KIND_LIST:
        return any_has_bytes(mr_items(v), v.len);
    case MR_KIND_MAP:
        return any_has_bytes(&mr_pairs(v)->key, 2 * (size_t)v.len);
    case MR_KIND_STRUCT:
        return any_has_bytes(mr_slots(v), v.len);
    default:
        return v.kind == MR_KIND_BYTES;
    }
}

/* What equals no other key needs no place in the table. */
static uint32_t merge_keys(struct mr_arena *arena, struct mr_pair *pairs, uint32_t count)
{
    size_t size = 16;
    uint32_t kept = 0, *slots;

    while (size < 2 * (size_t)count)
        size *= 2;
    slots = (uint32_t *)mr_alloc(arena, size * sizeof(*slots));
    memset(slots, 0, size * sizeof(*slots));
    for (uint32_t i = 0; i < count; i++) {
        size_t slot;

        if (has_bytes(pairs[i].key)) {
            pairs[kept++] = pairs[i];
            continue;
        }
        slot = (size_t)mr_hash_value(mr_hash_seed(slots), pairs[i].key) & (size - 1);
        while (slots[slot] != 0 && !same_key(pairs[slots[slot] - 1].key, pairs[i].key))
            slot = (slot + 1) & (size - 1);
        if (slots[slot] == 0)
            slots[slot] = ++kept;
        pairs[slots[slot] - 1] = pairs[i];
    }
    return kept;
}

static int to_pair(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_pair *out)
{
    int rc;

    if (tree.kind != MR_KIND_LIST)
        return mr_fail(w->err, MR_ERR_DATA, "Found invalid map entry instead of array tuple: %s",
                       node_type(tree.kind));
    if (tree.len != 2)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Found invalid map entry, expected length 2 but found :%u", tree.len);
    rc = convert(w, schema->key, mr_item(tree, 0), &out->key);
    return rc == MR_OK ? convert(w, schema->value, mr_item(tree, 1), &out->value) : rc;
}

static int to_map(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                  struct mr_value *out)
{
    struct mr_value map;
    int rc = MR_OK;

    if (schema->key == NULL || schema->key->kind == MR_KIND_STRING)
        return to_text_map(w, schema, tree, out);
    if (tree.kind != MR_KIND_LIST)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Maps with non-string fields should be encoded as JSON array of tuples, but found %s",
            node_type(tree.kind));
    map = mr_map(w->arena, tree.len);
    for (uint32_t i = 0; i < tree.len && rc == MR_OK; i++)
        rc = to_pair(w, schema, mr_items(tree)[i], &mr_pairs(map)[i]);
    if (rc != MR_OK)
        return rc;
    if (map.len > 1)
        map.len = merge_keys(w->arena, mr_pairs(map), map.len);
    *out = map;
    return MR_OK;
}

/* Struct.put refuses a null where the schema has none, in the field itself and inside lists and
 * maps. place is what the text names, from the outside in. */
static int refuse_nulls(struct way_in *w, const struct mr_schema *schema, struct mr_value v,
                        const char *place)
{
    char inner[256];
    int rc = MR_OK;

    if (v.kind == MR_KIND_NULL)
        return schema->optional
                   ? MR_OK
                   : mr_fail(w->err, MR_ERR_DATA,
                             "Invalid value: null used for required %s, schema type: %s", place,
                             mr_java_type(schema->kind));
    if (v.kind == MR_KIND_LIST) {
        snprintf(inner, sizeof(inner), "element of array %.230s", place);
        for (uint32_t i = 0; i < v.len && rc == MR_OK; i++)
            rc = refuse_nulls(w, schema->value, mr_items(v)[i], inner);
    }
    for (uint32_t i = 0; v.kind == MR_KIND_MAP && i < v.len && rc == MR_OK; i++) {
        snprintf(inner, sizeof(inner), "key of map %.230s", place);
        rc = refuse_nulls(w, schema->key, mr_pairs(v)[i].key, inner);
        snprintf(inner, sizeof(inner), "value of map %.230s", place);
        if (rc == MR_OK)
            rc = refuse_nulls(w, schema->value, mr_pairs(v)[i].value, inner);
    }
    return rc;
}

static int to_field(struct way_in *w, const struct mr_schema_field *field, struct mr_value tree,
                    struct mr_value *out)
{
    bool before = w->made_null;
    char place[256];
    int rc;

    w->made_null = false;
    rc = convert(w, field->schema, tree, out);
    if (rc == MR_OK && w->made_null) {
        snprintf(place, sizeof(place), "field: \"%.200s\"", field->name);
        rc = refuse_nulls(w, field->schema, *out, place);
    }
    w->made_null = before;
    return rc;
}

static int to_struct(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                     struct mr_value *out)
{
    struct record_json_members members;
    const struct mr_pair *pair;
    struct mr_value made;
    uint32_t hint = 0;
    int rc = MR_OK;

    if (tree.kind != MR_KIND_MAP)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Structs should be encoded as JSON objects, but found %s",
                       node_type(tree.kind));
    made = mr_struct_new(w->arena, schema);
    record_json_members(&members, w->arena, tree);
    for (uint32_t i = 0; i < schema->field_count && rc == MR_OK; i++) {
        pair = record_json_member(&members, schema->fields[i].name, hint);
        if (pair != NULL)
            hint = (uint32_t)(pair - members.pairs) + 1;
        rc = to_field(w, &schema->fields[i], pair == NULL ? mr_null() : pair->value,
                      &mr_slots(made)[i]);
    }
    if (rc == MR_OK)
        *out = made;
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

typedef int (*convert_fn)(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                          struct mr_value *out);

/* By what the schema takes: a logical type's name counts, whatever the type under it. */
static const convert_fn converters[] = {
    [MR_KIND_BOOL] = to_bool,           [MR_KIND_INT8] = to_integer,  [MR_KIND_INT16] = to_integer,
    [MR_KIND_INT32] = to_integer,       [MR_KIND_INT64] = to_integer, [MR_KIND_FLOAT32] = to_float,
    [MR_KIND_FLOAT64] = to_double,      [MR_KIND_STRING] = to_text,   [MR_KIND_BYTES] = to_bytes,
    [MR_KIND_LIST] = to_list,           [MR_KIND_MAP] = to_map,       [MR_KIND_STRUCT] = to_struct,
    [MR_KIND_DECIMAL] = to_decimal,     [MR_KIND_DATE] = to_date,     [MR_KIND_TIME] = to_time,
    [MR_KIND_TIMESTAMP] = to_timestamp,
};

/* Numbers in place; the tree is the converter's own. */
static void without_schema(struct mr_value *v)
{
    if (v->kind == JSON_BIGINT)
        *v = mr_long(record_json_long((const char *)v->u.p, v->len));
    else if (v->kind == JSON_FRACTION)
        *v = mr_double(record_json_double((const char *)v->u.p, v->len));
    else if (v->kind == JSON_MISSING)
        *v = mr_null();
    for (uint32_t i = 0; v->kind == MR_KIND_LIST && i < v->len; i++)
        without_schema(&mr_items(*v)[i]);
    for (uint32_t i = 0; v->kind == MR_KIND_MAP && i < v->len; i++)
        without_schema(&mr_pairs(*v)[i].value);
}

static int convert(struct way_in *w, const struct mr_schema *schema, struct mr_value tree,
                   struct mr_value *out)
{
    if (schema == NULL) {
        without_schema(&tree);
        *out = tree;
        return MR_OK;
    }
    if (tree.kind != MR_KIND_NULL)
        return converters[schema->logical](w, schema, tree, out);
    if (schema->has_default && w->c->defaults)
        *out = schema->default_value;
    else if (schema->optional)
        *out = mr_null();
    else
        return mr_fail(w->err, MR_ERR_DATA, "Invalid null value for required %s field",
                       mr_java_type(schema->kind));
    return MR_OK;
}

int json_to_connect(struct json_converter *c, struct mr_arena *arena,
                    const struct mr_schema *schema, struct mr_value tree, struct mr_value *out,
                    struct mr_error *err)
{
    struct way_in w = {.c = c, .arena = arena, .err = err};

    return convert(&w, schema, tree, out);
}
