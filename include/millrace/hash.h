/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes for tables in memory whose keys come from outside, as names and keys of records do. seed:
 * what their author can't know, such as the address of the table; then nobody can make keys that
 * all fall into one place of it. What a value's hash is may change with each version: keep none. */
#ifndef MILLRACE_HASH_H
#define MILLRACE_HASH_H

#include <millrace/record.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline uint64_t mr_hash_seed(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static inline uint64_t mr_hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

static inline uint64_t mr_hash(uint64_t seed, const void *data, size_t len)
{
    const char *p = (const char *)data;
    uint64_t hash = mr_hash_word(seed, len), word;

    for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        hash = mr_hash_word(hash, word);
    }
    for (word = 0; len > 0; len--)
        word = word << 8 | (unsigned char)p[len - 1];
    return mr_hash_word(hash, word);
}

static inline uint64_t mr_hash_value(uint64_t seed, struct mr_value v);

static inline uint64_t mr_hash_values(uint64_t seed, const struct mr_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        seed = mr_hash_value(seed, values[i]);
    return mr_hash_word(seed, count);
}

static inline uint64_t mr_hash_double(uint64_t seed, double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof(bits));
    return mr_hash_word(seed, d == d ? bits : 0);
}

/* By kind and content: maps have no order, all NaN are one, a struct's schema does not count. */
static inline uint64_t mr_hash_value(uint64_t seed, struct mr_value v)
{
    const struct mr_decimal *d = (const struct mr_decimal *)v.u.p;
    uint64_t sum = 0;

    seed = mr_hash_word(seed, v.kind);
    switch (v.kind) {
    case MR_KIND_NULL:
        return seed;
    case MR_KIND_FLOAT32:
        return mr_hash_double(seed, (double)v.u.f);
    case MR_KIND_FLOAT64:
        return mr_hash_double(seed, v.u.d);
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        return mr_hash(seed, v.u.p, v.len);
    case MR_KIND_LIST:
        return mr_hash_values(seed, mr_items(v), v.len);
    case MR_KIND_STRUCT:
        return mr_hash_values(seed, mr_slots(v), v.len);
    case MR_KIND_MAP:
        for (uint32_t i = 0; i < v.len; i++)
            sum += mr_hash_values(seed, &mr_pairs(v)[i].key, 2);
        return mr_hash_word(seed, sum + v.len);
    case MR_KIND_DECIMAL:
        return mr_hash(mr_hash_word(seed, (uint32_t)d->scale), d->bytes, d->len);
    default:
        return mr_hash_word(seed, (uint64_t)v.u.i);
    }
}

#ifdef __cplusplus
}
#endif

#endif
