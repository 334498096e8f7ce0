/* SPDX-License-Identifier: Apache-2.0 */
/* Maps out of texts that may repeat a key. The parser of header values puts what it reads, then
 * once more what it converted; on the task's thread, all in its arena.
 *
 * A few keys are compared one by one; more go by a table, whose hash begins with the table's
 * address: which keys collide can't be known by who made the text. */
#include "host/data/map_build.h"

#include "host/data/temporal_text.h"
#include "host/data/values.h"

#include <millrace/hash.h>

#define FEW 8
#define MOST ((uint32_t)1 << 28)

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
    size_t at = (size_t)mr_hash_value(mr_hash_seed(m->slots), as_key(key)) & (m->slot_count - 1);

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
