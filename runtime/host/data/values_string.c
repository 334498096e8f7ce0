/* SPDX-License-Identifier: Apache-2.0 */
/* Connect's string form of a value, which values_parse reads again: what SimpleHeaderConverter
 * writes, and Cast and others use. On the task's thread; a STRING is borrowed, all else stands in
 * the arena.
 *
 * Spec: Values.convertToString. Scalars have Java's toString; texts within containers are quoted,
 * with \ before \ and "; kinds of time print by the size of their moment and not by their schema; a
 * struct prints defaults. */
#include "host/data/values.h"

#include "host/data/temporal_text.h"
#include "host/data/text_buf.h"

static void add(struct text_buf *t, struct mr_value v, int depth);

static void add_quoted(struct text_buf *t, const char *p, size_t len)
{
    text_buf_add(t, "\"", 1);
    while (len > 0) {
        size_t plain = 0;

        while (plain < len && p[plain] != '"' && p[plain] != '\\')
            plain++;
        text_buf_add(t, p, plain);
        if (plain < len) {
            text_buf_add(t, "\\", 1);
            text_buf_add(t, p + plain++, 1);
        }
        p += plain;
        len -= plain;
    }
    text_buf_add(t, "\"", 1);
}

static void add_comma(struct text_buf *t, uint32_t i)
{
    if (i > 0)
        text_buf_add(t, ",", 1);
}

static void add_list(struct text_buf *t, struct mr_value v, int depth)
{
    text_buf_add(t, "[", 1);
    for (uint32_t i = 0; i < v.len; i++) {
        add_comma(t, i);
        add(t, mr_items(v)[i], depth + 1);
    }
    text_buf_add(t, "]", 1);
}

static void add_map(struct text_buf *t, struct mr_value v, int depth)
{
    text_buf_add(t, "{", 1);
    for (uint32_t i = 0; i < v.len; i++) {
        add_comma(t, i);
        add(t, mr_pairs(v)[i].key, depth + 1);
        text_buf_add(t, ":", 1);
        add(t, mr_pairs(v)[i].value, depth + 1);
    }
    text_buf_add(t, "}", 1);
}

static void add_struct(struct text_buf *t, struct mr_value v, int depth)
{
    const struct mr_schema *schema = ((const struct mr_struct *)v.u.p)->schema;

    text_buf_add(t, "{", 1);
    for (uint32_t i = 0; i < v.len; i++) {
        add_comma(t, i);
        add_quoted(t, schema->fields[i].name, strlen(schema->fields[i].name));
        text_buf_add(t, ":", 1);
        add(t, mr_slot(v, i), depth + 1);
    }
    text_buf_add(t, "}", 1);
}

static void add_scalar(struct text_buf *t, struct mr_value v, bool inside)
{
    char time[48];
    const char *p = time;
    size_t len;

    if (v.kind >= MR_KIND_DATE)
        len = temporal_text_write(temporal_text_ms(v), time);
    else
        p = values_text(t->arena, v, &len);
    if (inside && (v.kind == MR_KIND_STRING || v.kind == MR_KIND_BYTES))
        add_quoted(t, p, len);
    else
        text_buf_add(t, p, len);
}

static void add(struct text_buf *t, struct mr_value v, int depth)
{
    if (depth > VALUES_MAX_DEPTH)
        text_buf_puts(t, "...");
    else if (v.kind == MR_KIND_LIST)
        add_list(t, v, depth);
    else if (v.kind == MR_KIND_MAP)
        add_map(t, v, depth);
    else if (v.kind == MR_KIND_STRUCT)
        add_struct(t, v, depth);
    else
        add_scalar(t, v, depth > 0);
}

const char *values_string(struct mr_arena *arena, struct mr_value v, size_t *len)
{
    struct text_buf t = {.arena = arena};

    *len = 0;
    if (v.kind == MR_KIND_NULL)
        return NULL;
    if (v.kind < MR_KIND_LIST || v.kind == MR_KIND_DECIMAL) {
        const char *p = values_text(arena, v, len);

        return p == NULL ? "" : p;
    }
    add(&t, v, 0);
    *len = t.len;
    return t.p;
}
