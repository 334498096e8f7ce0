/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers of the transforms' options and of the texts they read: Cast's spec, field paths,
 * pairs, date patterns and dates, replacements, numbers. The first byte chooses; where two texts
 * are wanted a newline stands between them. */
#include "host/data/record_arena.h"
#include "host/host_api.h"
#include "transforms/cast_value.h"
#include "transforms/date_format.h"
#include "transforms/field_path.h"
#include "transforms/mapping.h"
#include "transforms/number_text.h"
#include "transforms/replacement.h"

#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1795900000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cast_spec(struct mr_arena *arena, char *text, char *other)
{
    struct cast_spec spec;
    size_t parts;

    if (cast_spec_parse(text, &spec, &parts, NULL) == MR_OK && spec.name != NULL)
        mr_text_copy(arena, spec.name, spec.name_len);
}

static void pairs(struct mr_arena *arena, char *text, char *other)
{
    struct mapping map;
    size_t parts = mapping_split(text, &map);

    if (parts > 0)
        mr_text_copy(arena, map.left, map.left_len);
    if (parts > 1)
        mr_text_copy(arena, map.right, map.right_len);
}

static void path(struct mr_arena *arena, char *text, char *other)
{
    struct mr_value map = mr_map(arena, 1), found;
    struct field_path p;

    mr_pairs(map)->key = mr_str(other);
    mr_pairs(map)->value = mr_map(arena, 0);
    if (field_path_parse(&p, text, true, NULL) != MR_OK)
        return;
    field_path_get(&p, map, &found, NULL);
    field_path_free(&p);
}

/* A date that was read is one that can be written. */
static void date(struct mr_arena *arena, char *text, char *other)
{
    struct date_format format;
    int64_t ms = 0;
    size_t len;

    if (date_format_parse(&format, text, NOW, NULL) != MR_OK)
        return;
    date_format_read(&format, other, strlen(other), &ms);
    date_format_text(&format, arena, ms, &len);
    date_format_text(&format, arena, INT64_MIN, &len);
    date_format_text(&format, arena, INT64_MAX, &len);
    date_format_free(&format);
}

static void replacement(struct mr_arena *arena, char *text, char *other)
{
    struct mr_pattern *pattern = mr_pattern_make(&host_api_table, "(a)(?<name>b*)|(c)", NULL);
    struct mr_span spans[4];
    struct mr_value out;

    if (mr_pattern_find(pattern, other, strlen(other), 0, false, spans, 4, NULL) == 1)
        replacement_expand(text, pattern, spans, other, arena, &out, NULL);
    mr_pattern_free(pattern);
}

static void number(struct mr_arena *arena, char *text, char *other)
{
    size_t len = strlen(text);
    int64_t i;
    double d;
    float f;

    number_text_long(text, len, INT8_MIN, INT8_MAX, &i);
    number_text_long(text, len, INT64_MIN, INT64_MAX, &i);
    number_text_double(arena, text, len, &d);
    number_text_float(arena, text, len, &f);
}

/* Bytes as an unscaled integer, the first as the scale. */
static void decimal(struct mr_arena *arena, char *text, char *other)
{
    size_t len = strlen(other);
    struct mr_decimal *d = mr_alloc(arena, sizeof(*d) + len);
    struct mr_value v = mr_ptr_of(MR_KIND_DECIMAL, d, 0);

    if (len == 0)
        return;
    d->scale = atoi(text);
    d->len = (uint32_t)len;
    memcpy(d->bytes, other, len);
    number_text_low_bits(arena, d);
    mr_to_text(arena, v, &len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(struct mr_arena * arena, char *text, char *other) = {
        cast_spec, pairs, path, date, replacement, number, decimal,
    };
    static struct batch_pool *pool;
    struct batch *batch;
    char *text, *other;

    if (size == 0 || size > 4096)
        return 0;
    if (pool == NULL)
        pool = batch_pool_new(&host_api_table, 1 << 24, 1000);
    batch = batch_pool_take(pool);
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    other = strchr(text, '\n');
    if (other != NULL)
        *other++ = '\0';
    parsers[data[0] % 7](&batch->arena, text, other != NULL ? other : text + strlen(text));
    free(text);
    batch_pool_give(pool, batch);
    return 0;
}
