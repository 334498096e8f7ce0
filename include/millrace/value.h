/* SPDX-License-Identifier: Apache-2.0 */
/* Values: Kafka Connect's whole data model in 16 bytes. Reading one costs no call. */
#ifndef MILLRACE_VALUE_H
#define MILLRACE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are part of the ABI: append only.
 * Spec: org.apache.kafka.connect.data.Schema.Type and the four logical types of the same
 * package. */
enum mr_kind {
    MR_KIND_NULL = 0,
    MR_KIND_BOOL = 1, /* i: 0 or 1 */
    MR_KIND_INT8 = 2, /* i, as all integers */
    MR_KIND_INT16 = 3,
    MR_KIND_INT32 = 4,
    MR_KIND_INT64 = 5,
    MR_KIND_FLOAT32 = 6,   /* f */
    MR_KIND_FLOAT64 = 7,   /* d */
    MR_KIND_STRING = 8,    /* p: len bytes of UTF-8, no NUL at the end, may hold NUL */
    MR_KIND_BYTES = 9,     /* p: len bytes */
    MR_KIND_LIST = 10,     /* p: len struct mr_value */
    MR_KIND_MAP = 11,      /* p: len struct mr_pair, in insertion order */
    MR_KIND_STRUCT = 12,   /* p: struct mr_struct with len slots */
    MR_KIND_DECIMAL = 13,  /* p: struct mr_decimal */
    MR_KIND_DATE = 14,     /* i: days since 1970-01-01 */
    MR_KIND_TIME = 15,     /* i: ms since midnight */
    MR_KIND_TIMESTAMP = 16 /* i: ms since 1970-01-01 00:00 UTC */
};

/* One value. The layout is frozen for ever: it crosses the ABI by value. What p points to is
 * borrowed: it lives as long as the batch (or the arena) it came with. Text is UTF-8 but for one
 * thing that Java has too: half of a surrogate pair, escaped in a JSON text, is three bytes. */
struct mr_value {
    uint8_t kind;      /* enum mr_kind */
    uint8_t flags;     /* 0 */
    uint16_t reserved; /* 0 */
    uint32_t len;      /* bytes, items, pairs or slots; 0 for scalars */
    union {
        int64_t i;
        double d;
        float f;
        const void *p;
    } u;
};

struct mr_pair {
    struct mr_value key;
    struct mr_value value;
};

struct mr_schema;

struct mr_struct {
    const struct mr_schema *schema; /* kind MR_KIND_STRUCT, interned */
    struct mr_value slots[1];       /* as many as the schema has fields; null = not set */
};

struct mr_decimal {
    int32_t scale;    /* value = unscaled * 10^-scale; may be negative */
    uint32_t len;     /* bytes of the unscaled integer, at least 1 */
    uint8_t bytes[1]; /* big-endian two's complement, minimal length */
};

#if !defined(__cplusplus)
_Static_assert(sizeof(struct mr_value) == 16, "struct mr_value is frozen");
#endif

/* kind and len are one word, stored at once: a processor that copies what was stored in parts waits
 * for these to leave its store buffer. */
static inline struct mr_value mr_make(uint8_t kind, uint32_t len)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    const uint64_t head = (uint64_t)kind << 56 | (uint64_t)len;
#else
    const uint64_t head = (uint64_t)kind | (uint64_t)len << 32;
#endif
    struct mr_value v;

    memcpy(&v, &head, sizeof(head));
    v.u.i = 0;
    return v;
}

static inline struct mr_value mr_int_of(uint8_t kind, int64_t i)
{
    struct mr_value v = mr_make(kind, 0);

    v.u.i = i;
    return v;
}

static inline struct mr_value mr_ptr_of(uint8_t kind, const void *p, size_t len)
{
    struct mr_value v = mr_make(kind, (uint32_t)len);

    v.u.p = p;
    return v;
}

/* One line each, so that they read as the table they are. */
/* clang-format off */
static inline struct mr_value mr_null(void) { return mr_make(MR_KIND_NULL, 0); }
static inline struct mr_value mr_bool(bool b) { return mr_int_of(MR_KIND_BOOL, b); }
static inline struct mr_value mr_int8(int8_t i) { return mr_int_of(MR_KIND_INT8, i); }
static inline struct mr_value mr_int16(int16_t i) { return mr_int_of(MR_KIND_INT16, i); }
static inline struct mr_value mr_int(int32_t i) { return mr_int_of(MR_KIND_INT32, i); }
static inline struct mr_value mr_long(int64_t i) { return mr_int_of(MR_KIND_INT64, i); }
static inline struct mr_value mr_date(int32_t days) { return mr_int_of(MR_KIND_DATE, days); }
static inline struct mr_value mr_time(int32_t ms) { return mr_int_of(MR_KIND_TIME, ms); }
static inline struct mr_value mr_timestamp(int64_t ms) { return mr_int_of(MR_KIND_TIMESTAMP, ms); }
/* clang-format on */

static inline struct mr_value mr_float(float f)
{
    struct mr_value v = mr_make(MR_KIND_FLOAT32, 0);

    v.u.f = f;
    return v;
}

static inline struct mr_value mr_double(double d)
{
    struct mr_value v = mr_make(MR_KIND_FLOAT64, 0);

    v.u.d = d;
    return v;
}

/* Text and bytes are borrowed, not copied: at most 4 GiB - 1, text must be UTF-8. */
static inline struct mr_value mr_text(const char *p, size_t len)
{
    return mr_ptr_of(MR_KIND_STRING, p, len);
}
static inline struct mr_value mr_str(const char *z)
{
    return mr_text(z, strlen(z));
}
static inline struct mr_value mr_bytes(const void *p, size_t len)
{
    return mr_ptr_of(MR_KIND_BYTES, p, len);
}

/* Readers look at kind and range; they return false and leave *out alone when the value is
 * something else. */
static inline bool mr_is_null(struct mr_value v)
{
    return v.kind == MR_KIND_NULL;
}

static inline bool mr_as_long(struct mr_value v, int64_t *out)
{
    if (v.kind < MR_KIND_INT8 || v.kind > MR_KIND_INT64)
        return false;
    *out = v.u.i;
    return true;
}

static inline bool mr_as_double(struct mr_value v, double *out)
{
    if (v.kind == MR_KIND_FLOAT64)
        *out = v.u.d;
    else if (v.kind == MR_KIND_FLOAT32)
        *out = (double)v.u.f;
    else
        return false;
    return true;
}

static inline bool mr_as_bool(struct mr_value v, bool *out)
{
    if (v.kind != MR_KIND_BOOL)
        return false;
    *out = v.u.i != 0;
    return true;
}

/* STRING only; *text has *len bytes and no NUL. */
static inline bool mr_as_text(struct mr_value v, const char **text, size_t *len)
{
    if (v.kind != MR_KIND_STRING)
        return false;
    *text = (const char *)v.u.p;
    *len = v.len;
    return true;
}

/* BYTES only. */
static inline bool mr_as_bytes(struct mr_value v, const void **bytes, size_t *len)
{
    if (v.kind != MR_KIND_BYTES)
        return false;
    *bytes = v.u.p;
    *len = v.len;
    return true;
}

/* Item i of a LIST, or null when there is none. */
static inline struct mr_value mr_item(struct mr_value v, size_t i)
{
    return v.kind == MR_KIND_LIST && i < v.len ? ((const struct mr_value *)v.u.p)[i] : mr_null();
}

/* The value of a text key of a MAP; false when there is no such key (its value may be null). */
static inline bool mr_map_find(struct mr_value v, const char *key, struct mr_value *out)
{
    size_t i, len = strlen(key);

    for (i = 0; v.kind == MR_KIND_MAP && i < v.len; i++) {
        const struct mr_pair *pair = (const struct mr_pair *)v.u.p + i;

        if (pair->key.kind != MR_KIND_STRING || pair->key.len != len ||
            memcmp(pair->key.u.p, key, len) != 0)
            continue;
        *out = pair->value;
        return true;
    }
    return false;
}

#ifdef __cplusplus
}
#endif

#endif
