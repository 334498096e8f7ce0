/* SPDX-License-Identifier: Apache-2.0 */
/* From topic to topic: what a sink with `.emits` writes to Kafka. All of it, and the offsets of the
 * records that it was made of, become visible in one transaction, or not at all; what a call
 * emitted that then failed never does. Spec: KIP-447. */
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

#ifdef __cplusplus
}
#endif

#endif
