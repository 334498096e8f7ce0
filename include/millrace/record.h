/* SPDX-License-Identifier: Apache-2.0 */
/* Records, batches and the memory they stand in.
 * Spec: org.apache.kafka.connect.connector.ConnectRecord, source.SourceRecord, sink.SinkRecord. */
#ifndef MILLRACE_RECORD_H
#define MILLRACE_RECORD_H

#include <millrace/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bump memory, freed as a whole with the batch it belongs to. Thread: the one that was handed the
 * batch. */
struct mr_arena {
    const struct mr_host *host;
    char *next; /* first free byte, aligned to 8 */
    char *end;
};

struct mr_header {
    const char *name; /* name_len bytes, NUL-terminated too */
    size_t name_len;
    const struct mr_schema *schema; /* NULL = schemaless */
    struct mr_value value;
};

#define MR_NO_PARTITION (-1) /* the producer chooses, by key as Java does */
#define MR_NO_TIMESTAMP (-1) /* the time of sending */

/* One record. Sinks read it, sources fill it through mr_record_*.
 *
 * topic           NUL-terminated; sources: destination
 * partition       sinks: where it was read; sources: MR_NO_PARTITION or a number
 * offset          sinks: offset in the topic partition; sources: unused
 * timestamp       ms since 1970, or MR_NO_TIMESTAMP
 * *_schema        NULL = schemaless
 * headers         header_count of them, header_size bytes apart
 *
 * Lives as long as its batch. */
struct mr_record {
    const struct mr_host *host;
    const char *topic;
    int32_t partition;
    uint32_t header_count;
    int64_t offset;
    int64_t timestamp;
    struct mr_value key;
    struct mr_value value;
    const struct mr_schema *key_schema;
    const struct mr_schema *value_schema;
    const struct mr_header *headers;
    size_t header_size;
};

struct mr_partition_list;

/* An ordered set of records, at most as many as fit the framework's budget. */
struct mr_batch {
    const struct mr_host *host;
    struct mr_arena *arena;
    char *records;      /* the first struct mr_record */
    size_t record_size; /* bytes from one record to the next */
    size_t count;
    const struct mr_partition_list *offsets;
};

static inline size_t mr_batch_count(const struct mr_batch *batch)
{
    return batch->count;
}

/* Record i of 0 to count - 1. */
static inline struct mr_record *mr_record_at(const struct mr_batch *batch, size_t i)
{
    return (struct mr_record *)(void *)(batch->records + i * batch->record_size);
}

static inline struct mr_value mr_key(const struct mr_record *rec)
{
    return rec->key;
}
static inline struct mr_value mr_value(const struct mr_record *rec)
{
    return rec->value;
}

static inline const struct mr_header *mr_header_at(const struct mr_record *rec, size_t i)
{
    return (const struct mr_header *)(const void *)((const char *)rec->headers +
                                                    i * rec->header_size);
}

/* size bytes of zero or old content, aligned to 8, valid as long as the arena's batch. Never NULL:
 * when memory or the batch's budget is exhausted the bytes are usable but the batch is marked and
 * the task fails after the call. */
static inline void *mr_alloc(struct mr_arena *arena, size_t size)
{
    char *p = arena->next;

    if (size > (size_t)(arena->end - p))
        return arena->host->arena_more(arena, size);
    size = (size + 7) & ~(size_t)7;
    arena->next = size > (size_t)(arena->end - p) ? arena->end : p + size;
    return p;
}

static inline struct mr_value mr_text_copy(struct mr_arena *arena, const char *p, size_t len)
{
    void *to = mr_alloc(arena, len);

    memcpy(to, p, len);
    return mr_text((const char *)to, len);
}

static inline uint64_t mr_word(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

/* Only bytes below 128? 32 at a time, then eight; the last eight may overlap those before. */
static inline bool mr_is_ascii(const void *bytes, size_t len)
{
    const char *p = (const char *)bytes, *end = p + len;
    uint64_t seen = 0;

    if (len < 8) {
        for (; p < end; p++)
            seen |= (unsigned char)*p;
        return seen < 0x80;
    }
    for (; end - p >= 32; p += 32)
        seen |= mr_word(p) | mr_word(p + 8) | mr_word(p + 16) | mr_word(p + 24);
    for (; end - p > 8; p += 8)
        seen |= mr_word(p);
    return ((seen | mr_word(end - 8)) & 0x8080808080808080u) == 0;
}

/* Bytes from outside as text. UTF-8 is borrowed as it is; anything else is copied into the arena
 * with one U+FFFD for each malformed part, as Java's decoder counts them. */
static inline struct mr_value mr_text_from(struct mr_arena *arena, const void *bytes, size_t len)
{
    return mr_is_ascii(bytes, len) ? mr_text((const char *)bytes, len)
                                   : arena->host->text_from(arena, bytes, len);
}

/* A LIST of n items, a MAP of n pairs, a STRUCT with empty slots: fill what mr_items, mr_pairs,
 * mr_slots point to. */
static inline struct mr_value mr_list(struct mr_arena *arena, size_t n)
{
    void *p = mr_alloc(arena, n * sizeof(struct mr_value));

    memset(p, 0, n * sizeof(struct mr_value));
    return mr_ptr_of(MR_KIND_LIST, p, n);
}

static inline struct mr_value mr_map(struct mr_arena *arena, size_t n)
{
    void *p = mr_alloc(arena, n * sizeof(struct mr_pair));

    memset(p, 0, n * sizeof(struct mr_pair));
    return mr_ptr_of(MR_KIND_MAP, p, n);
}

static inline struct mr_value mr_struct_new(struct mr_arena *arena, const struct mr_schema *schema)
{
    size_t size = sizeof(struct mr_struct) + schema->field_count * sizeof(struct mr_value);
    struct mr_struct *s = (struct mr_struct *)mr_alloc(arena, size);

    memset(s, 0, size);
    s->schema = schema;
    return mr_ptr_of(MR_KIND_STRUCT, s, schema->field_count);
}

static inline struct mr_value *mr_items(struct mr_value v)
{
    return (struct mr_value *)(uintptr_t)v.u.p;
}
static inline struct mr_pair *mr_pairs(struct mr_value v)
{
    return (struct mr_pair *)(uintptr_t)v.u.p;
}
static inline struct mr_value *mr_slots(struct mr_value v)
{
    return ((struct mr_struct *)(uintptr_t)v.u.p)->slots;
}

/* The text that Java's toString gives a value, NUL-terminated in the arena, *len bytes ("null" for
 * null). Text values come back as they are, not copied and not terminated. */
static inline const char *mr_to_text(struct mr_arena *arena, struct mr_value v, size_t *len)
{
    if (v.kind != MR_KIND_STRING || v.u.p == NULL)
        return arena->host->value_text(arena, v, len);
    *len = v.len;
    return (const char *)v.u.p;
}

/* Does v fit the schema? MR_ERR_DATA with Connect's text, which names the field; field NULL: a
 * value of none.
 * Spec: ConnectSchema.validateValue. */
static inline int mr_value_check(const struct mr_arena *arena, const struct mr_schema *schema,
                                 struct mr_value v, const char *field, struct mr_error *err)
{
    return arena->host->value_check(schema, v, field, err);
}

/* --- Connect's conversions -------------------------------------------------------------------- */

/* What a text says: the rule by which header values are read. "12" is an INT8, "[1,2.5]" an ARRAY
 * of FLOAT32, "2019-08-23" a Date, and what is nothing else is a STRING: the text itself, borrowed.
 *
 * text, len  UTF-8; may be borrowed by the value
 * *schema    may be an ARRAY or MAP whose elements' schema is NULL; with the text null both outputs
 *            are null
 *
 * MR_ERR_DATA: nested deeper than 1000 levels, or a number beyond all bounds (Java runs out of
 * stack or memory); MR_ERR_FULL: too many different schemas in this process, or ten thousand that
 * texts made: nested containers, and Decimals, which only numbers beyond a double are. Spec:
 * org.apache.kafka.connect.data.Values.parseString. */
static inline int mr_value_parse(struct mr_arena *arena, const char *text, size_t len,
                                 const struct mr_schema **schema, struct mr_value *value,
                                 struct mr_error *err)
{
    return arena->host->value_parse(arena, text, len, schema, value, err);
}

/* The text that mr_value_parse reads again, *len bytes: a STRING as it is, bytes in base64,
 * containers as in JSON, texts within them in quotes. NULL for null. Not NUL-terminated. Spec:
 * Values.convertToString. */
static inline const char *mr_value_string(struct mr_arena *arena, struct mr_value v, size_t *len)
{
    return arena->host->value_string(arena, v, len);
}

/* v as a value of another schema.
 *
 * to    what is wanted; its name counts (Decimal, Date, Time, Timestamp), its members' schemas
 *       don't
 * from  v's own schema, or NULL
 *
 * A null gives null where `to` is optional or no container and no logical type. MR_ERR_DATA with
 * Connect's text: no such conversion. Spec: Values.convertToBoolean to convertToTimestamp, by the
 * type of `to`. */
static inline int mr_value_convert(struct mr_arena *arena, const struct mr_schema *to,
                                   const struct mr_schema *from, struct mr_value v,
                                   struct mr_value *out, struct mr_error *err)
{
    return arena->host->value_convert(arena, to, from, v, out, err);
}

/* A value of a logical type as what its schema's kind holds (a Decimal as BYTES, a Date as INT32
 * …), and back. schema: a logical one. MR_ERR_DATA with Connect's text: out of range, or of another
 * scale than the schema's.
 * Spec: Decimal, Date, Time, Timestamp: fromLogical, toLogical. */
static inline int mr_value_encode(struct mr_arena *arena, const struct mr_schema *schema,
                                  struct mr_value v, struct mr_value *out, struct mr_error *err)
{
    return arena->host->value_encode(arena, schema, v, out, err);
}
static inline int mr_value_decode(struct mr_arena *arena, const struct mr_schema *schema,
                                  struct mr_value v, struct mr_value *out, struct mr_error *err)
{
    return arena->host->value_decode(arena, schema, v, out, err);
}

/* May a header have this schema (NULL = schemaless) and value? Looks at the outermost kind only.
 * MR_ERR_DATA with Connect's text. Spec: ConnectHeaders.add, checkSchemaMatches. */
static inline int mr_header_check(struct mr_arena *arena, const struct mr_schema *schema,
                                  struct mr_value v, struct mr_error *err)
{
    return arena->host->header_check(arena, schema, v, err);
}

/* The schema of a schemaless value, or *schema NULL when there is none (null, mixed or empty
 * containers, Decimals and kinds of time). MR_ERR_DATA: a container of nothing but nulls. Spec:
 * Values.inferSchema. */
static inline int mr_schema_infer(const struct mr_arena *arena, struct mr_value v,
                                  const struct mr_schema **schema, struct mr_error *err)
{
    return arena->host->schema_infer(v, schema, err);
}

/* v of schema `from` as a value of schema `to`: numbers widen, fields that `to` lacks go, fields
 * that `from` lacks take their default. What does not change is shared with v. MR_ERR_DATA with
 * Connect's text. Spec: SchemaProjector.project. */
static inline int mr_schema_project(struct mr_arena *arena, const struct mr_schema *from,
                                    struct mr_value v, const struct mr_schema *to,
                                    struct mr_value *out, struct mr_error *err)
{
    return arena->host->schema_project(arena, from, v, to, out, err);
}

/* --- for sinks -------------------------------------------------------------------------------- */

/* In put: this record can't be taken, and why (one sentence); put goes on with the others. What
 * becomes of it is up to the user: errors.tolerance, the log, the dead-letter topic. It counts only
 * when put returns MR_OK. Several records: each once.
 * Spec: org.apache.kafka.connect.sink.ErrantRecordReporter. */
MR_PRINTF(3, 4)
static inline void mr_reject(const struct mr_batch *in, size_t i, const char *fmt, ...)
{
    char text[1001];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    in->host->batch_reject((struct mr_batch *)(uintptr_t)in, i, text);
}

/* In put of a sink with stores_offsets: what is to be stored with these records, in one act. Each
 * partition's `stored` becomes `offset`; where it is not `stored` that the system has, another task
 * was there, and nothing may be changed (MR_ERR_STALE). Of records that were left out before put
 * the offsets are there too, so there may be offsets without records. */
static inline const struct mr_partition_list *mr_batch_offsets(const struct mr_batch *in)
{
    return in->offsets;
}

/* --- for sources and transforms --------------------------------------------------------------- */

/* Append a record for topic (copied once per batch). Never NULL; see mr_alloc. */
static inline struct mr_record *mr_batch_add(struct mr_batch *batch, const char *topic)
{
    return batch->host->batch_add(batch, topic);
}

/* The framework has as much as it wants in one batch; adding more is allowed but not wise. */
static inline bool mr_batch_full(const struct mr_batch *batch)
{
    return batch->host->batch_full(batch);
}

/* Where a transaction ends, for sources whose descriptor says `boundaries`. Under exactly-once, and
 * where the user has set transaction.boundary=connector, one is open from the first record on until
 * the plugin says here what becomes of all since the last end; in all other cases these do nothing.
 *
 * commit  they become visible, and their offsets are stored
 * abort   they vanish, and their offsets are stored all the same: they do not come again
 *
 * Behind a record, or behind the last one of a batch, which may be empty. Both for the same one:
 * the task is FAILED. What is never ended is lost after the producer's transaction.timeout.ms, or
 * with the task, and comes again.
 * Thread: the task's, in poll. Spec: KIP-618,
 * org.apache.kafka.connect.source.TransactionContext. */
static inline void mr_record_commit(struct mr_record *rec)
{
    rec->host->record_ends(rec, true);
}
static inline void mr_record_abort(struct mr_record *rec)
{
    rec->host->record_ends(rec, false);
}
static inline void mr_batch_commit(struct mr_batch *batch)
{
    batch->host->batch_ends(batch, true);
}
static inline void mr_batch_abort(struct mr_batch *batch)
{
    batch->host->batch_ends(batch, false);
}

/* For transforms: another topic (len bytes, copied). */
static inline void mr_record_topic(struct mr_record *rec, const char *topic, size_t len)
{
    rec->host->record_topic(rec, topic, len);
}

/* For transforms: drop all headers of this name; the others keep their order. Gives how many
 * went. */
static inline size_t mr_record_header_drop(struct mr_record *rec, const char *name)
{
    return rec->host->record_header_drop(rec, name);
}

/* Values may point into the batch's arena, which is free of cost; anything else is copied there
 * now. */
static inline void mr_record_key(struct mr_record *rec, struct mr_value v)
{
    rec->host->record_key(rec, v);
}
static inline void mr_record_value(struct mr_record *rec, struct mr_value v)
{
    rec->host->record_value(rec, v);
}

/* For transforms, at no cost: a new key or value with its schema. Nothing is copied: v is made of
 * the arena, of what the record held before, and of what lives as long as the transform. */
static inline void mr_record_put_key(struct mr_record *rec, const struct mr_schema *schema,
                                     struct mr_value v)
{
    rec->key_schema = schema;
    rec->key = v;
}
static inline void mr_record_put_value(struct mr_record *rec, const struct mr_schema *schema,
                                       struct mr_value v)
{
    rec->value_schema = schema;
    rec->value = v;
}

/* Schemas of key and value; NULL = schemaless, which is what a record starts with. */
static inline void mr_record_schema(struct mr_record *rec, const struct mr_schema *key,
                                    const struct mr_schema *value)
{
    rec->key_schema = key;
    rec->value_schema = value;
}

static inline void mr_record_header(struct mr_record *rec, const char *name,
                                    const struct mr_schema *schema, struct mr_value v)
{
    rec->host->record_header(rec, name, schema, v);
}

/* Where the source stands after this record: partition {"name": name}, offset {key: next}. Kafka
 * Connect's source offset; it is stored once this record and all before it have been delivered.
 * name and key are UTF-8: others fail the task. */
static inline void mr_record_offset(struct mr_record *rec, const char *name, const char *key,
                                    int64_t next)
{
    rec->host->record_offset(rec, rec->host->source_partition(rec->host, "name", name), key, next);
}

/* The general form, for a partition made by mr_source_partition. */
static inline void mr_record_offset_in(struct mr_record *rec,
                                       const struct mr_source_partition *part, const char *key,
                                       int64_t next)
{
    rec->host->record_offset(rec, part, key, next);
}

/* What a poll returns when there is nothing more to hand over: the records added so far are sent
 * now, and the next poll comes after ms milliseconds, or when fd is readable (whichever is first;
 * ms < 0 waits for fd alone), or never after a stop. The framework waits; the plugin needs no
 * loop. */
static inline int mr_again_in(struct mr_batch *batch, int64_t ms)
{
    return batch->host->batch_again(batch, ms, -1);
}

static inline int mr_again_on_fd(struct mr_batch *batch, int fd, int64_t ms)
{
    return batch->host->batch_again(batch, ms, fd);
}

#ifdef __cplusplus
}
#endif

#endif
