/* SPDX-License-Identifier: Apache-2.0 */
/* JsonConverter's two caches, each of at most schemas.cache.size entries and emptied as a whole
 * when full. One converter, one thread.
 *
 * Envelopes: in a topic with schemas every record repeats the schema, often longer than the
 * payload. The bytes up to the payload are compared with those seen last; equal bytes mean the same
 * schema without reading them. Otherwise a light scan finds where the payload would begin, and the
 * bytes before it are looked up by hash. The scan may be wrong about broken JSON: an entry is only
 * ever made from a document that was read properly, and only equal bytes match.
 *
 * Plans: what writing needs of a schema, by the schema's address, since schemas are interned and
 * live for ever. */
#include "json_private.h"

#include <millrace/hash.h>

#include <stdlib.h>

#define ENVELOPE_BYTES ((size_t)16 * 1024 * 1024) /* all entries together */

/* --- envelopes -------------------------------------------------------------------------------- */

static const char *after_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : end;
}

/* Behind the next `what` that is outside strings and brackets opened from here on. */
static const char *after_byte(const char *p, const char *end, char what)
{
    int depth = 0;

    while (p < end) {
        char c = *p;

        if (c == '"') {
            p = after_string(p, end);
            continue;
        }
        p++;
        if (c == what && depth == 0)
            return p;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth < 0)
            return end;
    }
    return end;
}

/* Length of {"schema":…,"payload": at the start of data, as far as one can tell; 0: it is something
 * else. */
static size_t prefix_length(const char *data, size_t len)
{
    const char *p = data, *end = data + len;

    if (len < 2 || *p != '{')
        return 0;
    p = after_byte(p + 1, end, ':');
    p = after_byte(p, end, ',');
    p = after_byte(p, end, ':');
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p < end ? (size_t)(p - data) : 0;
}

static struct json_envelope *envelope_slot(const struct json_envelopes *set, uint64_t hash,
                                           const char *bytes, size_t len)
{
    size_t at = hash & (set->size - 1);

    while (set->slots[at].bytes != NULL &&
           !(set->slots[at].hash == hash && set->slots[at].len == len &&
             memcmp(set->slots[at].bytes, bytes, len) == 0))
        at = (at + 1) & (set->size - 1);
    return &set->slots[at];
}

const struct json_envelope *json_envelopes_match(struct json_envelopes *set, const char *data,
                                                 size_t len)
{
    const struct json_envelope *entry = set->last;

    if (entry != NULL && entry->len < len && memcmp(entry->bytes, data, entry->len) == 0)
        return entry;
    if (set->count == 0)
        return NULL;
    len = prefix_length(data, len);
    if (len == 0)
        return NULL;
    entry = envelope_slot(set, mr_hash(mr_hash_seed(set), data, len), data, len);
    if (entry->bytes == NULL)
        return NULL;
    set->last = entry;
    return entry;
}

static void envelopes_clear(struct json_envelopes *set)
{
    for (size_t i = 0; i < set->size; i++)
        free(set->slots[i].bytes);
    if (set->size > 0)
        memset(set->slots, 0, set->size * sizeof(*set->slots));
    set->count = 0;
    set->bytes = 0;
    set->last = NULL;
}

void json_envelopes_free(struct json_envelopes *set)
{
    envelopes_clear(set);
    free(set->slots);
    memset(set, 0, sizeof(*set));
}

/* At most half full. */
static bool envelopes_room(struct json_envelopes *set)
{
    struct json_envelopes bigger = *set;

    if (set->count >= set->max || set->bytes > ENVELOPE_BYTES)
        envelopes_clear(set);
    if (2 * (set->count + 1) <= set->size)
        return true;
    bigger.size = set->size == 0 ? 16 : set->size * 2;
    bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < set->size; i++)
        if (set->slots[i].bytes != NULL)
            *envelope_slot(&bigger, set->slots[i].hash, set->slots[i].bytes, set->slots[i].len) =
                set->slots[i];
    free(set->slots);
    bigger.last = NULL;
    *set = bigger;
    return true;
}

void json_envelopes_add(struct json_envelopes *set, const char *bytes, size_t len,
                        const struct mr_schema *schema)
{
    uint64_t hash = mr_hash(mr_hash_seed(set), bytes, len);
    struct json_envelope *entry;
    char *copy;

    if (len > ENVELOPE_BYTES / 4 || !envelopes_room(set))
        return;
    entry = envelope_slot(set, hash, bytes, len);
    if (entry->bytes == NULL) {
        copy = malloc(len);
        if (copy == NULL)
            return;
        memcpy(copy, bytes, len);
        *entry = (struct json_envelope){.hash = hash, .bytes = copy, .len = len, .schema = schema};
        set->count++;
        set->bytes += len;
    }
    set->last = entry;
}

/* --- plans ------------------------------------------------------------------------------------ */

static size_t plan_slot(const struct json_plans *plans, const struct mr_schema *schema)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)schema * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
                (plans->size - 1);

    while (plans->slots[at] != NULL && plans->slots[at]->schema != schema)
        at = (at + 1) & (plans->size - 1);
    return at;
}

static void plan_free(struct json_plan *plan)
{
    if (plan == NULL)
        return;
    for (uint32_t i = 0; plan->fields != NULL && i < plan->schema->field_count; i++)
        free(plan->fields[i]);
    free(plan->fields);
    free(plan->field_lens);
    free(plan->prefix);
    free(plan);
}

/* ,"name": of each field, once and for all. */
static bool plan_fields(struct json_plan *plan)
{
    const struct mr_schema *schema = plan->schema;
    struct json_out out = {0};

    plan->fields = calloc(schema->field_count, sizeof(*plan->fields));
    plan->field_lens = calloc(schema->field_count, sizeof(*plan->field_lens));
    if (plan->fields == NULL || plan->field_lens == NULL)
        return false;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        json_out_reset(&out);
        json_out_add(&out, ",", 1);
        json_out_string(&out, schema->fields[i].name, strlen(schema->fields[i].name));
        json_out_add(&out, ":", 1);
        plan->fields[i] = out.failed ? NULL : malloc(out.len);
        if (plan->fields[i] == NULL)
            break;
        memcpy(plan->fields[i], out.p, out.len);
        plan->field_lens[i] = (uint32_t)out.len;
    }
    json_out_free(&out);
    return schema->field_count == 0 || plan->fields[schema->field_count - 1] != NULL;
}

static bool plans_grow(struct json_plans *plans)
{
    struct json_plans bigger = *plans;

    bigger.size = plans->size == 0 ? 16 : plans->size * 2;
    bigger.slots = calloc(bigger.size, sizeof(struct json_plan *));
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < plans->size; i++)
        if (plans->slots[i] != NULL)
            bigger.slots[plan_slot(&bigger, plans->slots[i]->schema)] = plans->slots[i];
    free(plans->slots);
    *plans = bigger;
    return true;
}

static struct json_plan *plan_add(struct json_plans *plans, const struct mr_schema *schema)
{
    struct json_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return NULL;
    plan->schema = schema;
    if ((schema->field_count > 0 && !plan_fields(plan)) ||
        (2 * (plans->count + 1) > plans->size && !plans_grow(plans))) {
        plan_free(plan);
        return NULL;
    }
    plans->slots[plan_slot(plans, schema)] = plan;
    plans->count++;
    return plan;
}

struct json_plan *json_plan_get(struct json_plans *plans, const struct mr_schema *schema)
{
    struct json_plan *plan = plans->last;

    if (plan != NULL && plan->schema == schema)
        return plan;
    plan = plans->size > 0 ? plans->slots[plan_slot(plans, schema)] : NULL;
    if (plan == NULL)
        plan = plan_add(plans, schema);
    if (plan != NULL)
        plans->last = plan;
    return plan;
}

void json_plans_trim(struct json_plans *plans)
{
    size_t max = plans->max;

    if (plans->count <= max)
        return;
    json_plans_free(plans);
    plans->max = max;
}

void json_plans_free(struct json_plans *plans)
{
    for (size_t i = 0; i < plans->size; i++)
        plan_free(plans->slots[i]);
    free(plans->slots);
    memset(plans, 0, sizeof(*plans));
}
