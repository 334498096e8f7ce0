/* SPDX-License-Identifier: Apache-2.0 */
/* Maps out of texts that may repeat a key. The parser of header values puts what it reads, then
 * once more what it converted; on the task's thread, all in its arena.
 *
 * A few keys are compared one by one; more go by a table, whose hash begins with the table's
 * address: which keys collide can't be known by who made the text. */
#include "host/data/map_build.h"

#include "host/data/temporal_text.h"
#include "host/data/values.h"

#define FEW 8
#define MOST ((uint32_t)1 << 28)

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

static uint64_t mix_bytes(uint64_t hash, const char *p, size_t len)
{
    uint64_t word;

    hash = mix(hash, len);
    for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, p, len);
    return mix(hash, word);
}

static uint64_t hash_key(uint64_t seed, struct mr_value key);

static uint64_t hash_items(uint64_t seed, struct mr_value list)
{
    for (uint32_t i = 0; i < list.len; i++)
        seed = hash_key(seed, mr_items(list)[i]);
    return mix(seed, list.len);
}

/* Maps have no order. */
static uint64_t hash_pairs(uint64_t seed, struct mr_value map)
{
    uint64_t sum = map.len;

    for (uint32_t i = 0; i < map.len; i++)
        sum += hash_key(hash_key(seed, mr_pairs(map)[i].key), mr_pairs(map)[i].value);
    return mix(seed, sum);
}

static uint64_t hash_key(uint64_t seed, struct mr_value key)
{
    const struct mr_decimal *d = key.u.p;

    switch (key.kind) {
    case MR_KIND_STRING:
        return mix_bytes(seed, (const char *)key.u.p, key.len);
    case MR_KIND_DECIMAL:
        return mix_bytes(mix(seed, (uint64_t)(int64_t)d->scale), (const char *)d->bytes, d->len);
    case MR_KIND_LIST:
        return hash_items(seed, key);
    case MR_KIND_MAP:
        return hash_pairs(seed, key);
    default:
        return mix(seed, values_hash(key));
    }
}

static struct mr_value as_key(struct mr_value key)
{
    return key.kind >= MR_KIND_DATE ? mr_timestamp(temporal_text_ms(key)) : key;
}

static bool same_key(struct mr_value a, struct mr_value b)
{
    return values_equal(as_key(a), as_key(b));
}

static uint32_t *slot_of(const struct map_build *m, struct mr_value key)
{
    size_t at = (size_t)hash_key((uint64_t)(uintptr_t)m->slots, as_key(key)) & (m->slot_count - 1);

    while (m->slots[at] != 0 && !same_key(m->pairs[m->slots[at] - 1].key, key))
        at = (at + 1) & (m->slot_count - 1);
    return &m->slots[at];
}

static struct mr_pair *find(const struct map_build *m, struct mr_value key)
{
    uint32_t *slot;

    if (m->slots != NULL) {
        slot = slot_of(m, key);
        return *slot == 0 ? NULL : &m->pairs[*slot - 1];
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (same_key(m->pairs[i].key, key))
            return &m->pairs[i];
    return NULL;
}

static void grow(struct map_build *m)
{
    uint32_t cap = m->cap == 0 ? FEW : m->cap * 2;
    struct mr_pair *pairs = mr_alloc(m->arena, cap * sizeof(*pairs));

    if (m->count > 0)
        memcpy(pairs, m->pairs, m->count * sizeof(*pairs));
    m->pairs = pairs;
    m->cap = cap;
    if (cap == FEW)
        return;
    m->slot_count = (size_t)cap * 2;
    m->slots = mr_alloc(m->arena, m->slot_count * sizeof(*m->slots));
    memset(m->slots, 0, m->slot_count * sizeof(*m->slots));
    for (uint32_t i = 0; i < m->count; i++)
        *slot_of(m, m->pairs[i].key) = i + 1;
}

bool map_build_put(struct map_build *m, struct mr_value key, struct mr_value value)
{
    struct mr_pair *known = find(m, key);

    if (known != NULL) {
        known->value = value;
        return true;
    }
    if (m->count >= MOST)
        return false;
    if (m->count == m->cap)
        grow(m);
    m->pairs[m->count++] = (struct mr_pair){key, value};
    if (m->slots != NULL)
        *slot_of(m, key) = m->count;
    return true;
}

struct mr_value map_build_done(const struct map_build *m)
{
    return mr_ptr_of(MR_KIND_MAP, m->pairs, m->count);
}
