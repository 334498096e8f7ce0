/* SPDX-License-Identifier: Apache-2.0 */
/* From topic to topic: what a sink with `.emits` writes to Kafka, and what it keeps. All of it, and
 * the offsets of the records that it was made of, become visible in one transaction, or not at all;
 * what a call emitted that then failed never does. Spec: KIP-447. */
#ifndef MILLRACE_EMIT_H
#define MILLRACE_EMIT_H

#include <millrace/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lives as long as the call of emits that it came with, on its thread. arena: memory for what a
 * call makes up. */
struct mr_emitter {
    const struct mr_host *host;
    struct mr_arena *arena;
};

/* Append a record for topic, to be filled by mr_record_key, mr_record_value, mr_record_header,
 * mr_record_schema and its plain members, until the next one is added. The connector's converters
 * make bytes of it; its transforms are for what is read, and not for this. Never NULL. */
static inline struct mr_record *mr_emit_add(struct mr_emitter *out, const char *topic)
{
    return out->host->emit_add(out, topic);
}

/* The same for a key and a value without schema. Values are copied. */
static inline void mr_emit(struct mr_emitter *out, const char *topic, struct mr_value key,
                           struct mr_value value)
{
    struct mr_record *rec = out->host->emit_add(out, topic);

    rec->host->record_key(rec, key);
    rec->host->record_value(rec, value);
}

/* --- state ------------------------------------------------------------------------------------ */

/* What a plugin carries from call to call: values by key, for each partition of a consumed topic on
 * its own; these calls are about the partition whose records the call of emits was given. Changes
 * commit with what was emitted and the offsets, and are taken back with them; they stand in a
 * compacted topic, <consumer group>-state-<consumed topic>, of as many partitions, and are there
 * again wherever the partition goes. Keys and values: of any kind, schemas are not kept, and a
 * struct comes back as the map of its fields. All of a task's state stands in memory, at most
 * millrace.state.max.bytes. Only within a call of emits that was given records. */

/* false: the key has none, and *value is as it was. Lives as long as the call. */
static inline bool mr_state_get(struct mr_emitter *out, struct mr_value key, struct mr_value *value)
{
    return out->host->state_get(out, key, value);
}

/* A null value: the same as mr_state_delete. */
static inline void mr_state_set(struct mr_emitter *out, struct mr_value key, struct mr_value value)
{
    out->host->state_set(out, key, value);
}

static inline void mr_state_delete(struct mr_emitter *out, struct mr_value key)
{
    out->host->state_set(out, key, mr_null());
}

/* The fallback also for what is no integer. */
static inline int64_t mr_state_long(struct mr_emitter *out, struct mr_value key, int64_t fallback)
{
    struct mr_value value;

    if (out->host->state_get(out, key, &value))
        mr_as_long(value, &fallback);
    return fallback;
}

#ifdef __cplusplus
}
#endif

#endif
