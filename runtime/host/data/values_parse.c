/* SPDX-License-Identifier: Apache-2.0 */
/* Values out of text: Connect's string form, as header values are read. SimpleHeaderConverter calls
 * it for each header, the conversions for texts, and transforms for their configured values; on the
 * task's thread.
 *
 * Spec: org.apache.kafka.connect.data.Values.parseString of 4.3.1, odd corners included: a text
 * that fails to be a container is a STRING, what follows a number or a closed container at the top
 * is ignored, blanks in front of a delimiter are skipped but a blank token in front of a broken
 * container is the result. The parser of tokens works as Java's does: one token of lookahead that
 * remembers no blanks it skipped; see can_consume, mark and rewind_to.
 *
 * Results: MR_OK; NO where Java throws DataException, which ends at the top as a STRING; or a
 * negative code, where Java runs out of stack or memory. Recursion ends at VALUES_MAX_DEPTH. Each
 * token is read at most a handful of times. */
#include "host/data/values.h"

#include "host/data/decimal_text.h"
#include "host/data/java_digit.h"
#include "host/data/map_build.h"
#include "host/data/schema_tree.h"
#include "host/data/temporal_text.h"
#include "host/data/text_buf.h"

#include <math.h>

#define NO 1
#define MOST_ITEMS ((uint32_t)1 << 28)

struct token {
    const char *p;
    size_t len;
};

struct parser {
    struct mr_arena *arena;
    struct mr_error *err;
    bool unnamed; /* the schema is not asked for: none is made, and kinds do */
    const char *text;
    size_t len;
    size_t at;
    struct token next; /* with has_next: read, not consumed; ends at `at` */
    bool has_next;
    int depth;
};

/* schema NULL: no value, Java's null */
struct parsed {
    const struct mr_schema *schema;
    struct mr_value value;
};

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_delimiter(char c)
{
    return c == ':' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"';
}

/* String.trim */
static struct token trim(struct token t)
{
    while (t.len > 0 && (unsigned char)t.p[0] <= ' ') {
        t.p++;
        t.len--;
    }
    while (t.len > 0 && (unsigned char)t.p[t.len - 1] <= ' ')
        t.len--;
    return t;
}

static bool is_blank(struct token t)
{
    return trim(t).len == 0;
}

static bool is(struct token t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.p, word, t.len) == 0;
}

/* One delimiter, or what stands before the next one that has no backslash. */
static struct token read_token(struct parser *p)
{
    size_t start = p->at;
    bool escaped = false;

    for (; p->at < p->len; p->at++) {
        char c = p->text[p->at];

        if (is_delimiter(c) && !escaped) {
            p->at += p->at == start;
            break;
        }
        escaped = c == '\\' && !escaped;
    }
    return (struct token){p->text + start, p->at - start};
}

static bool has_next(const struct parser *p)
{
    return p->has_next || p->at < p->len;
}

static struct token next(struct parser *p)
{
    if (!p->has_next)
        return read_token(p);
    p->has_next = false;
    return p->next;
}

static size_t mark(const struct parser *p)
{
    return p->at - (p->has_next ? p->next.len : 0);
}

static void rewind_to(struct parser *p, size_t at)
{
    p->at = at;
    p->has_next = false;
}

/* Blank tokens in front are lost, whether or not the word follows. */
static bool can_consume(struct parser *p, const char *word)
{
    if (!has_next(p))
        return false;
    if (!p->has_next)
        p->next = read_token(p);
    p->has_next = true;
    while (is_blank(p->next) && p->at < p->len)
        p->next = read_token(p);
    if (!is(trim(p->next), word))
        return false;
    p->has_next = false;
    return true;
}

/* At the top a word stands alone; inside, whoever called sees what follows. */
static bool is_literal(struct parser *p, bool inside, const char *word)
{
    size_t start = mark(p);

    if (can_consume(p, word) && (inside || !has_next(p)))
        return true;
    rewind_to(p, start);
    return false;
}

/* --- results ---------------------------------------------------------------------------------- */

static int give(struct parsed *out, uint8_t kind, struct mr_value v)
{
    out->schema = schema_tree_plain(kind);
    out->value = v;
    return MR_OK;
}

static int give_text(struct parsed *out, const char *text, size_t len)
{
    return give(out, MR_KIND_STRING, mr_text(text, len));
}

static int give_integer(struct parsed *out, int64_t i)
{
    uint8_t kind = i == (int8_t)i    ? MR_KIND_INT8
                   : i == (int16_t)i ? MR_KIND_INT16
                   : i == (int32_t)i ? MR_KIND_INT32
                                     : MR_KIND_INT64;

    return give(out, kind, mr_int_of(kind, i));
}

/* --- numbers and temporal literals ------------------------------------------------------------ */

/* A sign and up to 18 ASCII digits. */
static bool short_integer(struct token t, int64_t *out)
{
    size_t i = t.p[0] == '-' || t.p[0] == '+';
    int64_t n = 0;

    if (i == t.len || t.len > 18)
        return false;
    for (; i < t.len; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        n = n * 10 + (t.p[i] - '0');
    }
    *out = t.p[0] == '-' ? -n : n;
    return true;
}

static int parse_number(struct parser *p, struct token t, struct parsed *out)
{
    struct decimal_text d;
    static const struct mr_schema unnamed = {.kind = MR_KIND_BYTES, .logical = MR_KIND_DECIMAL};
    int64_t whole;
    double wide;
    float narrow;

    if (short_integer(t, &whole))
        return give_integer(out, whole);
    if (!decimal_text_read(p->arena, t.p, t.len, &d))
        return NO;
    if (d.count >= DECIMAL_TEXT_MAX)
        return mr_fail(p->err, MR_ERR_DATA, "a number of %zu digits has more than %u", d.count,
                       DECIMAL_TEXT_MAX - 1);
    if (decimal_text_whole(&d, &whole))
        return give_integer(out, whole);
    narrow = decimal_text_float(p->arena, &d);
    if (d.scale != 0 && isfinite(narrow))
        return give(out, MR_KIND_FLOAT32, mr_float(narrow));
    wide = decimal_text_double(p->arena, &d);
    if (d.scale != 0 && isfinite(wide))
        return give(out, MR_KIND_FLOAT64, mr_double(wide));
    out->schema = p->unnamed ? &unnamed : schema_tree_decimal(d.scale, p->err);
    out->value = decimal_text_value(p->arena, &d);
    return out->schema != NULL ? MR_OK : p->err->code;
}

static int parse_temporal(struct token t, struct token rest, struct parsed *out)
{
    uint8_t kind;
    int64_t ms;

    if (t.len + rest.len < 10 || !temporal_text_read(t.p, t.len, rest.p, rest.len, &kind, &ms))
        return NO;
    return give(out, kind, temporal_text_value(kind, ms));
}

/* A time has two colons, so its text is five tokens. */
static int parse_tokens_as_temporal(struct parser *p, struct token t, struct parsed *out)
{
    size_t start = mark(p);
    int count = 0, rc = NO;

    while (count < 4 && has_next(p)) {
        next(p);
        count++;
    }
    if (count == 4)
        rc = parse_temporal(t, (struct token){p->text + start, p->at - start}, out);
    if (rc != NO)
        return rc;
    rewind_to(p, start);
    return parse_temporal(t, (struct token){"", 0}, out);
}

static int parse_word(struct parser *p, bool inside, struct token t, struct parsed *out)
{
    size_t len;
    bool digit = java_digit_at(t.p, t.p + t.len, &len) >= 0;
    int rc = NO;

    if (digit)
        rc = parse_tokens_as_temporal(p, t, out);
    if (rc == NO && (digit || t.p[0] == '+' || t.p[0] == '-'))
        rc = parse_number(p, t, out);
    if (rc != NO || inside)
        return rc;
    return give_text(out, p->text, p->len);
}

/* --- quoted texts ----------------------------------------------------------------------------- */

/* Tokens that follow each other in the text are not copied. */
static void quoted_add(struct text_buf *copy, struct token *all, struct token t)
{
    if (copy->p == NULL && (all->len == 0 || all->p + all->len == t.p)) {
        all->p = all->len == 0 ? t.p : all->p;
        all->len += t.len;
        return;
    }
    if (copy->p == NULL)
        text_buf_add(copy, all->p, all->len);
    text_buf_add(copy, t.p, t.len);
    *all = (struct token){copy->p, copy->len};
}

/* Up to the closing quote, or the end. */
static int parse_quoted(struct parser *p, struct parsed *out)
{
    struct text_buf copy = {.arena = p->arena};
    struct token all = {p->text, 0};
    int rc;

    while (has_next(p) && !can_consume(p, "\""))
        quoted_add(&copy, &all, next(p));
    rc = parse_temporal(all, (struct token){"", 0}, out);
    return rc == NO ? give_text(out, all.p, all.len) : rc;
}

/* --- containers ------------------------------------------------------------------------------- */

static int parse(struct parser *p, bool inside, struct parsed *out);

/* The schema that all have in common; NULL: none seen, or there is none. */
struct merger {
    const struct mr_schema *common;
    bool broken;
};

static void merge(struct merger *m, const struct mr_schema *schema)
{
    uint8_t a, b;

    if (schema == NULL || m->broken)
        return;
    a = m->common == NULL ? schema->kind : m->common->kind;
    b = schema->kind;
    if (a == b) {
        m->common = schema;
    } else if (a < MR_KIND_INT8 || a > MR_KIND_FLOAT64 || b < MR_KIND_INT8 || b > MR_KIND_FLOAT64) {
        m->common = NULL;
        m->broken = true;
    } else if (b > a) {
        m->common = schema;
    }
}

/* A member as the common schema wants it. Null never fits: the parser makes no optional schemas. */
static int align(struct parser *p, const struct mr_schema *to, struct mr_value *v)
{
    struct mr_error ignored = {0};
    int rc;

    if (v->kind == to->logical)
        return MR_OK;
    if (v->kind == MR_KIND_NULL)
        return NO;
    rc = values_convert(p->arena, to, NULL, *v, v, &ignored);
    return rc == MR_ERR_DATA ? NO : rc;
}

struct items {
    struct mr_value *p;
    uint32_t count;
    uint32_t cap;
};

static void items_add(struct mr_arena *arena, struct items *items, struct mr_value v)
{
    if (items->count == items->cap) {
        uint32_t cap = items->cap == 0 ? 4 : items->cap * 2;
        struct mr_value *grown = mr_alloc(arena, cap * sizeof(*grown));

        if (items->count > 0)
            memcpy(grown, items->p, items->count * sizeof(*grown));
        items->p = grown;
        items->cap = cap;
    }
    items->p[items->count++] = v;
}

static int close_list(struct parser *p, const struct items *items, const struct merger *m,
                      struct parsed *out)
{
    int rc = MR_OK;

    for (uint32_t i = 0; m->common != NULL && i < items->count && rc == MR_OK; i++)
        rc = align(p, m->common, &items->p[i]);
    if (rc != MR_OK)
        return rc;
    out->value = mr_ptr_of(MR_KIND_LIST, items->p, items->count);
    out->schema = schema_tree_container(MR_KIND_LIST, NULL, p->unnamed ? NULL : m->common, p->err);
    return out->schema != NULL ? MR_OK : p->err->code;
}

static int parse_list(struct parser *p, struct parsed *out)
{
    struct merger merger = {0};
    struct items items = {0};

    while (has_next(p)) {
        struct parsed item = {NULL, mr_null()};
        size_t end;
        int rc;

        if (can_consume(p, "]"))
            return close_list(p, &items, &merger, out);
        if (can_consume(p, ",") || items.count >= MOST_ITEMS)
            return NO;
        rc = parse(p, true, &item);
        if (rc != MR_OK)
            return rc;
        merge(&merger, item.schema);
        items_add(p->arena, &items, item.value);
        end = mark(p);
        if (can_consume(p, "]"))
            rewind_to(p, end);
        else if (!can_consume(p, ","))
            return NO;
    }
    return NO; /* it is not closed */
}

static int align_pairs(struct parser *p, struct mr_value map, const struct merger *keys,
                       const struct merger *values, struct map_build *to)
{
    for (uint32_t i = 0; i < map.len; i++) {
        struct mr_pair pair = mr_pairs(map)[i];
        int rc = align(p, keys->common, &pair.key);

        if (rc == MR_OK && values->common != NULL)
            rc = align(p, values->common, &pair.value);
        if (rc != MR_OK)
            return rc;
        map_build_put(to, pair.key, pair.value);
    }
    return MR_OK;
}

/* Without a common schema of keys there is none of values either. */
static int close_map(struct parser *p, const struct map_build *map, const struct merger *keys,
                     const struct merger *values, struct parsed *out)
{
    struct map_build aligned = {.arena = p->arena};
    const struct mr_schema *key = p->unnamed ? NULL : keys->common;
    const struct mr_schema *value = key == NULL ? NULL : values->common;
    int rc = MR_OK;

    if (keys->common != NULL) {
        rc = align_pairs(p, map_build_done(map), keys, values, &aligned);
        map = &aligned;
    }
    if (rc != MR_OK)
        return rc;
    out->value = map_build_done(map);
    out->schema = schema_tree_container(MR_KIND_MAP, key, value, p->err);
    return out->schema != NULL ? MR_OK : p->err->code;
}

static int parse_map(struct parser *p, struct parsed *out)
{
    struct map_build map = {.arena = p->arena};
    struct merger keys = {0}, values = {0};

    while (has_next(p)) {
        struct parsed key = {NULL, mr_null()}, value = {NULL, mr_null()};
        int rc;

        if (can_consume(p, "}"))
            return close_map(p, &map, &keys, &values, out);
        if (can_consume(p, ","))
            return NO;
        rc = parse(p, true, &key);
        if (rc == MR_OK && (mr_is_null(key.value) || !can_consume(p, ":")))
            rc = NO;
        if (rc == MR_OK)
            rc = parse(p, true, &value);
        if (rc != MR_OK)
            return rc;
        if (!map_build_put(&map, key.value, value.value))
            return NO;
        can_consume(p, ",");
        merge(&keys, key.schema);
        merge(&values, value.schema);
    }
    return NO;
}

/* Behind the opening bracket. */
static int parse_container(struct parser *p, bool list, struct parsed *out)
{
    int rc;

    if (p->depth >= VALUES_MAX_DEPTH)
        return mr_fail(p->err, MR_ERR_DATA, "a text is nested deeper than %d levels",
                       VALUES_MAX_DEPTH);
    p->depth++;
    rc = list ? parse_list(p, out) : parse_map(p, out);
    p->depth--;
    return rc;
}

static int parse_unquoted(struct parser *p, bool inside, struct parsed *out)
{
    size_t start = mark(p);
    bool list = can_consume(p, "[");
    struct token t;
    int rc;

    if (list || can_consume(p, "{")) {
        rc = parse_container(p, list, out);
        if (rc != NO || inside)
            return rc;
        rewind_to(p, start);
    }
    t = next(p);
    if (is_blank(t))
        return give_text(out, t.p, t.len);
    return parse_word(p, inside, trim(t), out);
}

static int parse(struct parser *p, bool inside, struct parsed *out)
{
    *out = (struct parsed){NULL, mr_null()};
    if (!has_next(p))
        return MR_OK;
    if (inside && can_consume(p, "\""))
        return parse_quoted(p, out);
    if (is_literal(p, inside, "null"))
        return MR_OK;
    if (is_literal(p, inside, "true"))
        return give(out, MR_KIND_BOOL, mr_bool(true));
    if (is_literal(p, inside, "false"))
        return give(out, MR_KIND_BOOL, mr_bool(false));
    return parse_unquoted(p, inside, out);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* What the first characters tell: plain words are by far the most. */
static bool is_plain_text(const char *text, size_t len)
{
    char c = *text;

    if (c == 'n' || c == 't' || c == 'f')
        return len < 4 || (memcmp(text, "null", 4) != 0 && memcmp(text, "true", 4) != 0 &&
                           memcmp(text, "fals", 4) != 0);
    if (c <= ' ' || c > '~' || c == '[' || c == '{' || c == '+' || c == '-')
        return false;
    return c < '0' || c > '9';
}

int values_parse(struct mr_arena *arena, const char *text, size_t len,
                 const struct mr_schema **schema, struct mr_value *value, struct mr_error *err)
{
    struct mr_error own = {0};
    struct parser p = {.arena = arena,
                       .err = err == NULL ? &own : err,
                       .unnamed = schema == NULL,
                       .text = text,
                       .len = len};
    struct parsed out = {NULL, mr_null()};
    int rc = MR_OK;

    if (text != NULL)
        rc = len == 0 || is_plain_text(text, len) ? give_text(&out, text, len)
                                                  : parse(&p, false, &out);
    if (rc < 0)
        return rc;
    if (schema != NULL)
        *schema = out.schema;
    *value = out.value;
    return MR_OK;
}
