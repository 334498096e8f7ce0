/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of what Java does. Not with the reader under test: with jansson, which refuses
 * the lone halves of surrogate pairs that some rows hold; these are first rewritten as a private
 * character and four digits, and put back in oracle_text. */
#include "support/unit/oracle.h"

#include "host/data/schema_tree.h"
#include "host/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xee\xa3\xbf" /* U+E8FF */

static char wrong[2048];

bool oracle_wrong(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(wrong, sizeof(wrong), fmt, args);
    va_end(args);
    return false;
}

/* --- running ---------------------------------------------------------------------------------- */

static bool is_half(const char *p, const char *low)
{
    return p[0] == '\\' && p[1] == 'u' && (p[2] | 0x20) == 'd' && strchr(low, p[3] | 0x20) != NULL;
}

/* A copy of the line in which no half of a pair stands alone. */
static char *without_halves(const char *line)
{
    char *copy = malloc(strlen(line) * 2 + 1), *to = copy;

    while (*line != '\0') {
        if (line[0] == '\\' && line[1] == '\\') {
            memcpy(to, line, 2);
            to += 2;
            line += 2;
        } else if (is_half(line, "89ab") && is_half(line + 6, "cdef")) {
            memcpy(to, line, 12);
            to += 12;
            line += 12;
        } else if (is_half(line, "89abcdef")) {
            to += sprintf(to, "\\uE8FF%.4s", line + 2);
            line += 6;
        } else {
            *to++ = *line++;
        }
    }
    *to = '\0';
    return copy;
}

static const char *reason_of(const struct oracle_except *except, const char *id)
{
    for (; except != NULL && except->id != NULL; except++)
        if (strcmp(except->id, id) == 0)
            return except->reason;
    return NULL;
}

static bool run_row(const char *line, const struct oracle_except *except, oracle_fn fn, void *arg)
{
    char *copy = without_halves(line);
    json_error_t error;
    json_t *row = json_loads(copy, JSON_ALLOW_NUL, &error);
    const char *id = json_string_value(json_object_get(row, "id")), *reason;
    bool good;

    free(copy);
    if (row == NULL) {
        printf("[  ROW   ] unreadable: %s: %.80s\n", error.text, line);
        return false;
    }
    reason = reason_of(except, id);
    snprintf(wrong, sizeof(wrong), "no reason given");
    good = fn(row, arg);
    if (reason != NULL)
        printf("[  ROW   ] %s differs: %s\n", id, reason);
    if (reason != NULL && good)
        printf("[  ROW   ] %s is an exception, but holds\n", id);
    if (reason == NULL && !good)
        printf("[  ROW   ] %s: %s\n", id, wrong);
    json_decref(row);
    return good == (reason == NULL);
}

int oracle_run(const char *table, const struct oracle_except *except, oracle_fn fn, void *arg)
{
    char path[512], *line = NULL;
    int failed = 0, rows = 0;
    size_t cap = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/data/oracle/%s", TEST_SOURCE, table);
    file = fopen(path, "re");
    if (file == NULL) {
        printf("[  ROW   ] can't open %s\n", path);
        return 1;
    }
    while (getline(&line, &cap, file) > 0) {
        rows++;
        failed += !run_row(line, except, fn, arg);
    }
    free(line);
    fclose(file);
    printf("[  ROW   ] %s: %d rows, %d failed\n", table, rows, failed);
    return rows == 0 ? 1 : failed;
}

/* --- bytes and text --------------------------------------------------------------------------- */

static int sextet(int c)
{
    const char *abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c == 0 ? NULL : strchr(abc, c);

    return found == NULL ? -1 : (int)(found - abc);
}

static size_t from_base64(const char *p, unsigned char *to)
{
    unsigned bits = 0;
    size_t made = 0;
    int have = 0;

    for (; sextet(*p) >= 0; p++) {
        bits = bits << 6 | (unsigned)sextet(*p);
        have += 6;
        if (have >= 8) {
            have -= 8;
            to[made++] = (unsigned char)(bits >> have);
        }
    }
    return made;
}

static void from_parts(struct mr_arena *arena, const json_t *parts, const char **data, size_t *len)
{
    size_t total = 0, at = 0;
    char *out;

    for (size_t i = 0; i < json_array_size(parts); i++)
        total += json_string_length(json_array_get(json_array_get(parts, i), 0)) *
                 (size_t)json_integer_value(json_array_get(json_array_get(parts, i), 1));
    out = mr_alloc(arena, total + 1);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *text = json_array_get(json_array_get(parts, i), 0);
        json_int_t count = json_integer_value(json_array_get(json_array_get(parts, i), 1));

        for (; count > 0; count--, at += json_string_length(text))
            memcpy(out + at, json_string_value(text), json_string_length(text));
    }
    *data = out;
    *len = total;
}

void oracle_bytes(struct mr_arena *arena, const json_t *from, const char **data, size_t *len)
{
    const json_t *base64 = json_object_get(from, "base64");
    unsigned char *out;

    *data = NULL;
    *len = 0;
    if (json_is_object(from) && base64 == NULL) {
        from_parts(arena, json_object_get(from, "parts"), data, len);
    } else if (base64 != NULL) {
        out = mr_alloc(arena, json_string_length(base64) + 1);
        *len = from_base64(json_string_value(base64), out);
        *data = (char *)out;
    }
}

struct mr_value oracle_text(struct mr_arena *arena, const json_t *from)
{
    const char *p = json_string_value(from), *end = p + json_string_length(from);
    char *copy = mr_alloc(arena, (size_t)(end - p) + 1), *to = copy;

    while (p < end) {
        unsigned unit = 0;

        if (end - p < 7 || memcmp(p, MARK, 3) != 0 || sscanf(p + 3, "%4x", &unit) != 1) {
            *to++ = *p++;
            continue;
        }
        *to++ = (char)(0xe0 | unit >> 12);
        *to++ = (char)(0x80 | (unit >> 6 & 0x3f));
        *to++ = (char)(0x80 | (unit & 0x3f));
        p += 7;
    }
    *to = '\0';
    return mr_text(copy, (size_t)(to - copy));
}

/* --- schemas ---------------------------------------------------------------------------------- */

static uint8_t kind_of(const char *type)
{
    static const char *const types[] = {"",      "BOOLEAN", "INT8",    "INT16",  "INT32",
                                        "INT64", "FLOAT32", "FLOAT64", "STRING", "BYTES",
                                        "ARRAY", "MAP",     "STRUCT"};

    for (size_t i = 1; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i], type) == 0)
            return (uint8_t)i;
    return 0;
}

static const char *optional_text(struct mr_arena *arena, const json_t *from, const char *name)
{
    const json_t *text = json_object_get(from, name);

    return json_is_string(text) ? oracle_text(arena, text).u.p : NULL;
}

static bool read_fields(struct mr_arena *arena, const json_t *list, struct mr_schema_spec *spec,
                        struct mr_error *err)
{
    size_t count = json_array_size(list);
    struct mr_schema_field *fields = mr_alloc(arena, count * sizeof(*fields) + 1);

    for (size_t i = 0; i < count; i++) {
        const json_t *field = json_array_get(list, i);

        fields[i].name = optional_text(arena, field, "name");
        if (!oracle_schema(arena, json_object_get(field, "schema"), &fields[i].schema, err))
            return false;
    }
    spec->fields = fields;
    spec->field_count = (uint32_t)count;
    return true;
}

static void read_params(struct mr_arena *arena, json_t *object, struct mr_schema_spec *spec)
{
    struct mr_param *params = mr_alloc(arena, json_object_size(object) * sizeof(*params) + 1);
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        size_t len = strlen(name) + 1;

        params[spec->param_count].name = memcpy(mr_alloc(arena, len), name, len);
        params[spec->param_count++].value = oracle_text(arena, value).u.p;
    }
    spec->params = params;
}

/* Members that are null, and said to be: the string parser makes such. */
static bool has_unknown(const json_t *from)
{
    return json_is_null(json_object_get(from, "items")) ||
           json_is_null(json_object_get(from, "keys")) ||
           json_is_null(json_object_get(from, "values"));
}

static bool read_default(struct mr_arena *arena, const json_t *from, struct mr_schema_spec *spec,
                         const struct mr_schema *plain)
{
    if (json_is_null(from))
        return true;
    spec->has_default = true;
    return oracle_value(arena, from, plain, &spec->default_value);
}

bool oracle_schema(struct mr_arena *arena, const json_t *from, const struct mr_schema **out,
                   struct mr_error *err)
{
    struct mr_schema_spec spec = {0};
    const json_t *value;

    *out = NULL;
    if (!json_is_object(from))
        return true;
    spec.kind = kind_of(json_string_value(json_object_get(from, "type")));
    spec.optional = json_is_true(json_object_get(from, "optional"));
    spec.name = optional_text(arena, from, "name");
    spec.doc = optional_text(arena, from, "doc");
    value = json_object_get(from, "version");
    spec.has_version = json_is_integer(value);
    spec.version = (int32_t)json_integer_value(value);
    if (!oracle_schema(arena, json_object_get(from, "items"), &spec.value, err) ||
        !oracle_schema(arena, json_object_get(from, "keys"), &spec.key, err) ||
        (spec.value == NULL &&
         !oracle_schema(arena, json_object_get(from, "values"), &spec.value, err)) ||
        !read_fields(arena, json_object_get(from, "fields"), &spec, err))
        return false;
    if (json_object_size(json_object_get(from, "parameters")) > 0)
        read_params(arena, json_object_get(from, "parameters"), &spec);
    if (has_unknown(from)) {
        *out = schema_tree_container(spec.kind, spec.key, spec.value, err);
        return *out != NULL;
    }
    *out = schema_tree_make(&spec, sizeof(spec), err);
    value = json_object_get(from, "default");
    if (*out == NULL || value == NULL)
        return *out != NULL;
    if (!read_default(arena, value, &spec, *out))
        return false;
    *out = schema_tree_make(&spec, sizeof(spec), err);
    return *out != NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Decimal text as a DECIMAL. */
static struct mr_value decimal(struct mr_arena *arena, const char *digits, int32_t scale)
{
    size_t len = strlen(digits) / 2 + 2, skip = 0;
    unsigned char *bytes = mr_alloc(arena, len);
    struct mr_decimal *d = mr_alloc(arena, sizeof(*d) + len);
    bool negative = *digits == '-';
    unsigned carry = 1;

    memset(bytes, 0, len);
    for (digits += negative || *digits == '+'; *digits != '\0'; digits++) {
        unsigned add = (unsigned)(*digits - '0');

        for (size_t i = len; i > 0; i--) {
            add += bytes[i - 1] * 10u;
            bytes[i - 1] = (unsigned char)add;
            add >>= 8;
        }
    }
    for (size_t i = len; negative && i > 0; i--) {
        carry += (unsigned char)~bytes[i - 1];
        bytes[i - 1] = (unsigned char)carry;
        carry >>= 8;
    }
    while (skip + 1 < len && bytes[skip] == (bytes[skip + 1] & 0x80 ? 0xff : 0))
        skip++;
    d->scale = scale;
    d->len = (uint32_t)(len - skip);
    memcpy(d->bytes, bytes + skip, len - skip);
    return mr_ptr_of(MR_KIND_DECIMAL, d, 0);
}

static bool read_date(const json_t *from, const struct mr_schema *schema, struct mr_value *out)
{
    int64_t ms = json_integer_value(from);
    uint8_t logical = schema == NULL ? MR_KIND_TIMESTAMP : schema->logical;

    if (logical == MR_KIND_DATE && ms % 86400000 == 0 && ms / 86400000 >= INT32_MIN &&
        ms / 86400000 <= INT32_MAX)
        *out = mr_date((int32_t)(ms / 86400000));
    else if (logical == MR_KIND_TIME && ms >= INT32_MIN && ms <= INT32_MAX)
        *out = mr_time((int32_t)ms);
    else
        *out = mr_timestamp(ms);
    return true;
}

static bool read_list(struct mr_arena *arena, const json_t *from, const struct mr_schema *schema,
                      struct mr_value *out)
{
    bool typed = schema != NULL && schema->kind == MR_KIND_LIST;

    *out = mr_list(arena, json_array_size(from));
    for (size_t i = 0; i < json_array_size(from); i++)
        if (!oracle_value(arena, json_array_get(from, i), typed ? schema->value : NULL,
                          &mr_items(*out)[i]))
            return false;
    return true;
}

static bool read_map(struct mr_arena *arena, const json_t *from, const struct mr_schema *schema,
                     struct mr_value *out)
{
    bool typed = schema != NULL && schema->kind == MR_KIND_MAP;

    *out = mr_map(arena, json_array_size(from));
    for (size_t i = 0; i < json_array_size(from); i++) {
        const json_t *pair = json_array_get(from, i);

        if (!oracle_value(arena, json_array_get(pair, 0), typed ? schema->key : NULL,
                          &mr_pairs(*out)[i].key) ||
            !oracle_value(arena, json_array_get(pair, 1), typed ? schema->value : NULL,
                          &mr_pairs(*out)[i].value))
            return false;
    }
    return true;
}

static bool read_struct(struct mr_arena *arena, const json_t *from, const struct mr_schema *schema,
                        struct mr_value *out)
{
    const json_t *own = json_object_get(from, "schema"), *slots = json_object_get(from, "struct");

    if (own != NULL && !oracle_schema(arena, own, &schema, NULL))
        return false;
    if (schema == NULL || schema->kind != MR_KIND_STRUCT)
        return oracle_wrong("a struct without a schema");
    *out = mr_struct_new(arena, schema);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const json_t *slot = json_object_get(slots, schema->fields[i].name);

        if (slot != NULL &&
            !oracle_value(arena, slot, schema->fields[i].schema, &mr_slots(*out)[i]))
            return false;
    }
    return true;
}

bool oracle_value(struct mr_arena *arena, const json_t *from, const struct mr_schema *schema,
                  struct mr_value *out)
{
    static const char *const integers[] = {"int8", "int16", "int32", "int64"};
    const json_t *v;

    *out = mr_null();
    if (!json_is_object(from))
        return true;
    for (size_t i = 0; i < 4; i++)
        if ((v = json_object_get(from, integers[i])) != NULL) {
            *out = mr_int_of((uint8_t)(MR_KIND_INT8 + i), json_integer_value(v));
            return true;
        }
    if ((v = json_object_get(from, "float32")) != NULL)
        *out = mr_float(strtof(json_string_value(v), NULL));
    else if ((v = json_object_get(from, "float64")) != NULL)
        *out = mr_double(strtod(json_string_value(v), NULL));
    else if ((v = json_object_get(from, "boolean")) != NULL)
        *out = mr_bool(json_is_true(v));
    else if ((v = json_object_get(from, "string")) != NULL)
        *out = oracle_text(arena, v);
    else if ((v = json_object_get(from, "bytes")) != NULL ||
             (v = json_object_get(from, "bytebuffer")) != NULL) {
        unsigned char *bytes = mr_alloc(arena, json_string_length(v) + 1);

        *out = mr_bytes(bytes, from_base64(json_string_value(v), bytes));
    } else if ((v = json_object_get(from, "decimal")) != NULL)
        *out = decimal(arena, json_string_value(v),
                       (int32_t)json_integer_value(json_object_get(from, "scale")));
    else if ((v = json_object_get(from, "date")) != NULL)
        return read_date(v, schema, out);
    else if ((v = json_object_get(from, "array")) != NULL)
        return read_list(arena, v, schema, out);
    else if ((v = json_object_get(from, "map")) != NULL)
        return read_map(arena, v, schema, out);
    else if (json_object_get(from, "struct") != NULL)
        return read_struct(arena, from, schema, out);
    else
        return oracle_wrong("a value of a kind that Connect does not have");
    return true;
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool is_bound(const json_t *row, const char *to)
{
    const json_t *bound = json_object_get(row, "bound");

    for (size_t i = 0; i < json_array_size(bound); i++)
        if (strcmp(json_string_value(json_array_get(bound, i)), to) == 0)
            return true;
    return false;
}

/* Rows are made of maps that keep their order; what Connect itself makes are HashMaps. */
static void name_maps(char *text)
{
    static const char linked[] = "java.util.LinkedHashMap", plain[] = "java.util.HashMap";

    for (char *at = text; (at = strstr(at, linked)) != NULL; at += strlen(plain)) {
        char *behind = at + strlen(linked);

        memcpy(at, plain, strlen(plain));
        memmove(at + strlen(plain), behind, strlen(behind) + 1);
    }
}

/* Without the end that Java's texts have in front of a cause. */
static size_t trimmed(const char *p, size_t len)
{
    while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == ':'))
        len--;
    return len;
}

static bool says(const struct trace_parts *parts, const char *message)
{
    char *wanted = strdup(message);
    size_t len;
    bool same;

    name_maps(wanted);
    len = trimmed(wanted, strlen(wanted));
    same = trimmed(parts->message, parts->message_len) == len &&
           memcmp(parts->message, wanted, len) == 0;
    free(wanted);
    return same;
}

bool oracle_error(const json_t *row, const struct mr_error *err)
{
    const json_t *error = json_object_get(row, "error"), *cause = json_object_get(error, "cause");
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *inner = json_string_value(json_object_get(cause, "message"));
    const struct trace_parts parts = trace_parts(err);

    if (err->code >= 0)
        return oracle_wrong("no error where Java says: %s", message);
    if (message == NULL || is_bound(row, "identity-hash") ||
        (cause == NULL && is_bound(row, "jvm-message")))
        return true;
    if (!says(&parts, message))
        return oracle_wrong("\"%.*s\" where Java says \"%s\"", (int)parts.message_len,
                            parts.message, message);
    if (inner != NULL && json_object_get(row, "bound") == NULL && strstr(err->text, inner) == NULL)
        return oracle_wrong("\"%s\" lacks Java's cause \"%s\"", err->text, inner);
    return true;
}

/* What Java tells of each record, and this of the configuration: patterns of dates, empty paths. */
static bool is_told_early(const char *message)
{
    static const char *const early[] = {"Illegal pattern character", "Unterminated quote",
                                        "invalid ISO 8601 format", "fromIndex(0) > toIndex(-1)"};

    for (size_t i = 0; message != NULL && i < sizeof(early) / sizeof(early[0]); i++)
        if (strncmp(message, early[i], strlen(early[i])) == 0)
            return true;
    return false;
}

/* Of several keys that are wrong Java tells the first, this all. */
static bool has_first(const struct mr_error *err, const char *message)
{
    size_t len = message != NULL ? strlen(message) : 0;

    return len > 0 && strncmp(err->text, message, len) == 0 &&
           strncmp(err->text + len, "; ", 2) == 0;
}

bool oracle_failure(const json_t *row, const struct mr_error *err, bool started)
{
    const json_t *error = json_object_get(row, "error");
    const char *class_name = json_string_value(json_object_get(error, "class"));
    const char *message = json_string_value(json_object_get(error, "message"));
    const struct trace_parts parts = trace_parts(err);

    if (!started && json_object_get(error, "at") == NULL)
        return is_told_early(message) ||
               oracle_wrong("refused with its configuration (%s) where Java says of the record: %s",
                            err->text, message);
    if (!started)
        return has_first(err, message) || oracle_error(row, err);
    if (!oracle_error(row, err))
        return false;
    if (json_object_get(error, "at") != NULL)
        return oracle_wrong("a configuration was taken that Java refuses: %s", message);
    if (err->code != MR_ERR_DATA)
        return oracle_wrong("the code %d, which is no record's fault", err->code);
    return (strlen(class_name) == parts.class_len &&
            memcmp(class_name, parts.class_name, parts.class_len) == 0) ||
           oracle_wrong("%.*s where Java has %s", (int)parts.class_len, parts.class_name,
                        class_name);
}
