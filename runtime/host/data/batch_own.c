/* SPDX-License-Identifier: Apache-2.0 */
/* A value with everything that it points to inside its batch's arena, so that it lives as long as
 * the batch. What lies there already, such as text that the plugin made by mr_alloc, is not copied.
 * Called for each key, value and header that a plugin sets, and for a sink's batch that must wait.
 * What the plugin got wrong becomes the batch's fault. Thread: the task's. */
#include "host/data/record_arena.h"
#include "host/data/values.h"

static struct mr_value own(struct batch *batch, struct mr_value v, int depth);

/* v with its memory (len bytes at v.u.p) inside the arena. */
static bool own_memory(struct batch *batch, struct mr_value *v, size_t len)
{
    const void *copy;

    if (len == 0 || batch_holds(batch, v->u.p, len))
        return true;
    if (v->u.p == NULL) {
        batch_fault(batch, "a value with a length and no pointer");
        return false;
    }
    copy = batch_copy(batch, v->u.p, len);
    if (copy == NULL)
        return false;
    v->u.p = copy;
    return true;
}

static bool own_list(struct batch *batch, struct mr_value *v, int depth)
{
    struct mr_value *items;

    if (!own_memory(batch, v, v->len * sizeof(struct mr_value)))
        return false;
    items = mr_items(*v);
    for (uint32_t i = 0; i < v->len; i++)
        items[i] = own(batch, items[i], depth + 1);
    return true;
}

static bool own_map(struct batch *batch, struct mr_value *v, int depth)
{
    struct mr_pair *pairs;

    if (!own_memory(batch, v, v->len * sizeof(struct mr_pair)))
        return false;
    pairs = mr_pairs(*v);
    for (uint32_t i = 0; i < v->len; i++) {
        pairs[i].key = own(batch, pairs[i].key, depth + 1);
        pairs[i].value = own(batch, pairs[i].value, depth + 1);
    }
    return true;
}

static bool own_struct(struct batch *batch, struct mr_value *v, int depth)
{
    const struct mr_struct *s = v->u.p;
    struct mr_value *slots;

    if (s == NULL || s->schema == NULL || s->schema->kind != MR_KIND_STRUCT ||
        s->schema->field_count != v->len) {
        batch_fault(batch, "a struct value whose schema does not fit it");
        return false;
    }
    if (!own_memory(batch, v, offsetof(struct mr_struct, slots) + v->len * sizeof(struct mr_value)))
        return false;
    slots = mr_slots(*v);
    for (uint32_t i = 0; i < v->len; i++)
        slots[i] = own(batch, slots[i], depth + 1);
    return true;
}

static bool own_decimal(struct batch *batch, struct mr_value *v)
{
    const struct mr_decimal *d = v->u.p;

    if (d == NULL || d->len == 0) {
        batch_fault(batch, "a decimal value without digits");
        return false;
    }
    return own_memory(batch, v, offsetof(struct mr_decimal, bytes) + d->len);
}

static bool own_pointers(struct batch *batch, struct mr_value *v, int depth)
{
    switch (v->kind) {
    case MR_KIND_STRING:
    case MR_KIND_BYTES:
        return own_memory(batch, v, v->len);
    case MR_KIND_LIST:
        return own_list(batch, v, depth);
    case MR_KIND_MAP:
        return own_map(batch, v, depth);
    case MR_KIND_STRUCT:
        return own_struct(batch, v, depth);
    case MR_KIND_DECIMAL:
        return own_decimal(batch, v);
    default:
        batch_fault(batch, "a value of an unknown kind");
        return false;
    }
}

static bool is_scalar(uint8_t kind)
{
    return kind <= MR_KIND_FLOAT64 || (kind >= MR_KIND_DATE && kind <= MR_KIND_TIMESTAMP);
}

static struct mr_value own(struct batch *batch, struct mr_value v, int depth)
{
    if (is_scalar(v.kind))
        return v;
    if (depth > VALUES_MAX_DEPTH) {
        batch_fault(batch, "a value nested deeper than 1000 levels");
        return mr_null();
    }
    return own_pointers(batch, &v, depth) ? v : mr_null();
}

struct mr_value batch_own(struct batch *batch, struct mr_value v)
{
    return own(batch, v, 0);
}
