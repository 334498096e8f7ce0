/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Called by the state store for keys and values; bytes that are read come from a
 * topic, and are checked. Thread: the task's. */
#include "host/data/value_bytes.h"

#include "host/data/values.h"

#include <millrace/schema.h>

#include <string.h>

/* --- writing ---------------------------------------------------------------------------------- */

static void write_varint(struct buf *out, uint64_t n)
{
    char bytes[10];
    size_t len = 0;

    for (; n >= 0x80; n >>= 7)
        bytes[len++] = (char)(n | 0x80);
    bytes[len++] = (char)n;
    buf_append(out, bytes, len);
}

static uint64_t zigzag(int64_t n)
{
    return ((uint64_t)n << 1) ^ (n < 0 ? UINT64_MAX : 0);
}

static void write_bytes(struct buf *out, const void *bytes, size_t len)
{
    write_varint(out, len);
    buf_append(out, bytes, len);
}

static void write_fixed(struct buf *out, uint64_t bits, int size)
{
    char bytes[8];

    for (int i = 0; i < size; i++)
        bytes[i] = (char)(bits >> (8 * (size - 1 - i)));
    buf_append(out, bytes, (size_t)size);
}

static void write_kind(struct buf *out, uint8_t kind)
{
    char byte = (char)kind;

    buf_append(out, &byte, 1);
}

static int write_value(struct buf *out, struct mr_value v, int depth, struct mr_error *err);

static int write_pairs(struct buf *out, struct mr_value v, int depth, struct mr_error *err)
{
    int rc = 0;

    write_varint(out, v.len);
    for (size_t i = 0; rc == 0 && i < v.len; i++) {
        rc = write_value(out, mr_pairs(v)[i].key, depth, err);
        if (rc == 0)
            rc = write_value(out, mr_pairs(v)[i].value, depth, err);
    }
    return rc;
}

static int write_fields(struct buf *out, struct mr_value v, int depth, struct mr_error *err)
{
    const struct mr_struct *s = v.u.p;
    int rc = 0;

    write_varint(out, v.len);
    for (size_t i = 0; rc == 0 && i < v.len; i++) {
        const char *name = s->schema->fields[i].name;

        write_kind(out, MR_KIND_STRING);
        write_bytes(out, name, strlen(name));
        rc = write_value(out, s->slots[i], depth, err);
    }
    return rc;
}

static int write_items(struct buf *out, struct mr_value v, int depth, struct mr_error *err)
{
    int rc = 0;

    write_varint(out, v.len);
    for (size_t i = 0; rc == 0 && i < v.len; i++)
        rc = write_value(out, mr_items(v)[i], depth, err);
    return rc;
}

static void write_decimal(struct buf *out, const struct mr_decimal *d)
{
    write_varint(out, zigzag(d->scale));
    write_bytes(out, d->bytes, d->len);
}

static uint64_t bits_of(struct mr_value v)
{
    uint64_t wide;
    uint32_t narrow;

    if (v.kind == MR_KIND_FLOAT64) {
        memcpy(&wide, &v.u.d, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, &v.u.f, sizeof(narrow));
    return narrow;
}

static int write_value(struct buf *out, struct mr_value v, int depth, struct mr_error *err)
{
    if (depth > VALUE_BYTES_DEPTH)
        return mr_fail(err, MR_ERR_DATA, "a value is nested deeper than %d levels",
                       VALUE_BYTES_DEPTH);
    write_kind(out, v.kind == MR_KIND_STRUCT ? MR_KIND_MAP : v.kind);
    switch (v.kind) {
    case MR_KIND_NULL:
        return 0;
    case MR_KIND_FLOAT32:
    case MR_KIND_FLOAT64:
        write_fixed(out, bits_of(v), v.kind == MR_KIND_FLOAT32 ? 4 : 8);
        return 0;
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        write_bytes(out, v.u.p, v.len);
        return 0;
    case MR_KIND_LIST:
        return write_items(out, v, depth + 1, err);
    case MR_KIND_MAP:
        return write_pairs(out, v, depth + 1, err);
    case MR_KIND_STRUCT:
        return write_fields(out, v, depth + 1, err);
    case MR_KIND_DECIMAL:
        write_decimal(out, v.u.p);
        return 0;
    default:
        if (v.kind > MR_KIND_TIMESTAMP)
            return mr_fail(err, MR_ERR_DATA, "a value is of kind %u, which there is not", v.kind);
        write_varint(out, zigzag(v.u.i));
        return 0;
    }
}

int value_bytes_write(struct buf *out, struct mr_value v, struct mr_error *err)
{
    int rc = write_value(out, v, 0, err);

    if (rc == 0 && out->failed)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "a value is too large");
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reader {
    struct mr_arena *arena;
    const unsigned char *at;
    const unsigned char *end;
};

static bool read_varint(struct reader *r, uint64_t *n)
{
    *n = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        unsigned char byte = *r->at++;

        *n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_integer(struct reader *r, int64_t *n)
{
    uint64_t raw;

    if (!read_varint(r, &raw))
        return false;
    *n = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return true;
}

/* So many things of at least `least` bytes each can still follow. */
static bool read_count(struct reader *r, size_t least, uint64_t *n)
{
    return read_varint(r, n) && *n <= (uint64_t)(r->end - r->at) / least;
}

static bool read_fixed(struct reader *r, int size, uint64_t *bits)
{
    if (r->end - r->at < size)
        return false;
    *bits = 0;
    for (int i = 0; i < size; i++)
        *bits = *bits << 8 | *r->at++;
    return true;
}

static bool read_float(struct reader *r, struct mr_value *v, uint8_t kind)
{
    uint64_t bits;
    uint32_t narrow;

    *v = mr_make(kind, 0);
    if (!read_fixed(r, kind == MR_KIND_FLOAT32 ? 4 : 8, &bits))
        return false;
    narrow = (uint32_t)bits;
    if (kind == MR_KIND_FLOAT32)
        memcpy(&v->u.f, &narrow, sizeof(narrow));
    else
        memcpy(&v->u.d, &bits, sizeof(bits));
    return true;
}

static bool read_span(struct reader *r, struct mr_value *v, uint8_t kind)
{
    uint64_t len;
    void *copy;

    if (!read_count(r, 1, &len))
        return false;
    copy = mr_alloc(r->arena, (size_t)len);
    memcpy(copy, r->at, (size_t)len);
    r->at += len;
    *v = mr_ptr_of(kind, copy, (size_t)len);
    return true;
}

static bool read_decimal(struct reader *r, struct mr_value *v)
{
    struct mr_decimal *d;
    int64_t scale;
    uint64_t len;

    if (!read_integer(r, &scale) || scale < INT32_MIN || scale > INT32_MAX ||
        !read_count(r, 1, &len) || len == 0)
        return false;
    d = mr_alloc(r->arena, sizeof(*d) + (size_t)len);
    d->scale = (int32_t)scale;
    d->len = (uint32_t)len;
    memcpy(d->bytes, r->at, (size_t)len);
    r->at += len;
    *v = mr_ptr_of(MR_KIND_DECIMAL, d, 0);
    return true;
}

static bool read_value(struct reader *r, struct mr_value *v, int depth);

static bool read_items(struct reader *r, struct mr_value *v, int depth)
{
    uint64_t n;

    if (!read_count(r, 1, &n))
        return false;
    *v = mr_list(r->arena, (size_t)n);
    for (size_t i = 0; i < n; i++)
        if (!read_value(r, &mr_items(*v)[i], depth))
            return false;
    return true;
}

static bool read_pairs(struct reader *r, struct mr_value *v, int depth)
{
    uint64_t n;

    if (!read_count(r, 2, &n))
        return false;
    *v = mr_map(r->arena, (size_t)n);
    for (size_t i = 0; i < n; i++)
        if (!read_value(r, &mr_pairs(*v)[i].key, depth) ||
            !read_value(r, &mr_pairs(*v)[i].value, depth))
            return false;
    return true;
}

static bool read_value(struct reader *r, struct mr_value *v, int depth)
{
    int64_t i;
    uint8_t kind;

    if (r->at == r->end || depth > VALUE_BYTES_DEPTH)
        return false;
    kind = *r->at++;
    switch (kind) {
    case MR_KIND_NULL:
        *v = mr_null();
        return true;
    case MR_KIND_FLOAT32:
    case MR_KIND_FLOAT64:
        return read_float(r, v, kind);
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        return read_span(r, v, kind);
    case MR_KIND_LIST:
        return read_items(r, v, depth + 1);
    case MR_KIND_MAP:
        return read_pairs(r, v, depth + 1);
    case MR_KIND_DECIMAL:
        return read_decimal(r, v);
    default:
        if (kind > MR_KIND_TIMESTAMP || kind == MR_KIND_STRUCT || !read_integer(r, &i))
            return false;
        *v = mr_int_of(kind, i);
        return true;
    }
}

int value_bytes_read(struct mr_arena *arena, const void *bytes, size_t len, struct mr_value *v,
                     struct mr_error *err)
{
    struct reader r = {arena, bytes, (const unsigned char *)bytes + len};
    struct mr_value value;

    if (!read_value(&r, &value, 0) || r.at != r.end || values_check(value, NULL) != MR_OK)
        return mr_fail(err, MR_ERR_PROTOCOL, "%zu bytes are no value as it was written", len);
    *v = value;
    return 0;
}
