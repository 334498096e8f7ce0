/* SPDX-License-Identifier: Apache-2.0 */
/* The one header a plugin includes: descriptors of the plugin kinds, and the macros that export
 * them.
 *
 * A library exports one function, millrace_module, that gives static data. Descriptors begin with
 * their size; the host reads no further than that, and takes what is missing as NULL. All slots but
 * those marked "must" may be NULL. Every slot returns MR_OK or a negative enum mr_code with err
 * filled by mr_fail. */
#ifndef MILLRACE_PLUGIN_H
#define MILLRACE_PLUGIN_H

#include <millrace/config.h>
#include <millrace/emit.h>
#include <millrace/error.h>
#include <millrace/filter.h>
#include <millrace/hash.h>
#include <millrace/java_names.h>
#include <millrace/lookup.h>
#include <millrace/pattern.h>
#include <millrace/record.h>
#include <millrace/schema.h>
#include <millrace/task.h>
#include <millrace/value.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_MODULE_MAGIC 0x3152524du /* "MRR1" in memory, little endian */

enum mr_plugin_kind {
    MR_PLUGIN_SOURCE = 1,
    MR_PLUGIN_SINK = 2,
    MR_PLUGIN_CONVERTER = 3,
    MR_PLUGIN_TRANSFORM = 4,
    MR_PLUGIN_PREDICATE = 5,
    MR_PLUGIN_HEADER_CONVERTER = 6,
    MR_PLUGIN_CONFIG_PROVIDER = 7,
    MR_PLUGIN_REST_FILTER = 8
};

/* What all descriptors begin with.
 *
 * size        bytes of the whole descriptor, as the plugin was compiled
 * kind        enum mr_plugin_kind
 * name        the class name: value of connector.class, of *.converter, of transforms.*.type, of
 *             config.providers.*.class, or in rest.extension.classes
 * version     shown in REST
 * aliases     NULL-terminated list of further names, such as the Java class it stands in for; may
 *             be NULL
 * doc         one sentence
 * keys        its configuration, ended by a zeroed entry; key_size bytes apart; NULL = no key of
 *             its own
 * state_size  bytes of `self`: allocated zeroed by the host for each instance, and freed by it
 *             after stop */
#define MR_PLUGIN_HEAD \
    uint32_t size; \
    uint32_t kind; \
    const char *name; \
    const char *version; \
    size_t key_size; \
    const struct mr_config_key *keys; \
    size_t state_size; \
    const char *const *aliases; \
    const char *doc;

struct mr_plugin {
    MR_PLUGIN_HEAD
};

/* A source connector and its task.
 *
 * start      once, before the first poll; what it opens is closed in stop
 * poll       must: add records to out; they are delivered whenever it returns >= 0, also while
 *            stopping. On a negative return they are dropped, and self must not have moved on: the
 *            next poll is to give them again (MR_ERR_RETRY), or there is none (all other codes: the
 *            task is FAILED)
 * committed  after offsets of delivered records were stored; what they cover may be forgotten at
 *            the origin
 * interrupt  the task must stop: end any wait of poll soon. Must not block
 * stop       once, last, whenever start was called, also if it failed
 * tasks      the tasks' configurations, at most max, by mr_task_add; NULL = one task
 * alter_offsets
 *            a user wants offsets changed, or forgotten, while the connector is stopped: refuse
 *            what can't be (the text goes to the user), and change what is kept elsewhere. Only
 *            after MR_OK are the stored ones changed; the same may come again. MR_ERR_UNSUPPORTED:
 *            not for this connector. NULL = the stored ones are changed, and the user is told that
 *            others are not
 * exactly_once
 *            do its offsets say all that it takes to go on, after any crash, with nothing lost and
 *            nothing doubled? NULL = not said; "" = yes; else the name of the key that must be set
 *            for that. For configurations with exactly.once.support=required
 * boundaries it says where transactions end (mr_record_commit …). For configurations with
 *            transaction.boundary=connector
 * check      what data can't say of one of its keys, or of some together, when a user validates or
 *            gives a configuration: as a transform's, below. Not before start, and nothing that
 *            takes a connection: what is away now may be there when the connector runs
 *
 * Thread: start, poll, committed and stop on the task's own; interrupt on another, at any time
 * until stop is called; tasks on the connector's own; alter_offsets and check in a process of its
 * own, for at most 20 s. Blocking is allowed everywhere but in interrupt.
 * Spec: org.apache.kafka.connect.source.SourceConnector, SourceTask. */
struct mr_source {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*poll)(void *self, struct mr_batch *out, struct mr_error *err);
    int (*committed)(void *self, struct mr_error *err);
    void (*interrupt)(void *self);
    void (*stop)(void *self);
    int (*tasks)(struct mr_task *connector, int max, struct mr_task_list *list,
                 struct mr_error *err);
    int (*alter_offsets)(struct mr_task *connector, const struct mr_offset_list *offsets,
                         struct mr_error *err);
    const char *exactly_once;
    bool boundaries;
    int (*check)(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err);
};

/* A sink connector and its task.
 *
 * put        must, or emits: take all records of in, in order, but those it refuses (mr_reject).
 *            MR_ERR_RETRY: the same batch comes again. Other negative codes: the task is FAILED,
 *            and no offset of the batch is committed; but see put_atomic
 * flush      make durable what put took: offsets are committed only after it returned MR_OK
 * tasks      NULL = tasks.max tasks, each with the connector's configuration
 * open       partitions came: where reading of each begins (-1: by auto.offset.reset); mr_sink_seek
 *            changes that
 * close      partitions went, after the last flush or pre_commit for them, before their offsets are
 *            committed; lost: the group gave them away already, nothing of them is committed any
 *            more. At the end of the task for all that are left
 * pre_commit in place of flush, for sinks that write behind: offsets says where each partition may
 *            be committed, from what put took. Lower an offset to what is durable, -1: not now.
 *            MR_ERR_RETRY: nothing is committed now
 * put_atomic a put that fails has had no effect, on self neither. Then a batch that fails with
 *            MR_ERR_DATA, where errors.tolerance=all and a dead-letter topic are set, comes again
 *            in ever smaller parts, until the guilty record stands alone: that one becomes a dead
 *            letter, all others are put
 * alter_offsets
 *            as for sources; offsets as they are to be committed, -1: forgotten
 * stores_offsets
 *            it keeps its offsets in its own system, with the data: exactly once. NULL = no; "" =
 *            yes; else the name of the BOOLEAN key that must be true for that. Then open must say
 *            what is stored for each partition, and reading goes on there; a put stores its
 *            records and mr_batch_offsets in one act, or has no effect (put_atomic goes without
 *            saying). After MR_ERR_STALE, and after an open that gave MR_ERR_RETRY, open comes
 *            again, for all partitions. alter_offsets must change what is stored. flush and
 *            pre_commit are not called: the group's offsets follow what is stored. mr_reject is
 *            not for such a sink, whose offsets may be ahead of the dead letter: MR_ERR_DATA is
 * emits      in place of put, for a sink that writes to topics: as put, but all records of in are
 *            of one partition, and what it adds to out (emit.h) becomes visible together with
 *            their offsets, or not at all. Of a call that fails nothing stays, and self must not
 *            keep anything of it either: put_atomic goes without saying. Without pre_commit
 *
 * The rest as for sources. Spec: org.apache.kafka.connect.sink.SinkConnector, SinkTask. */
struct mr_sink {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*put)(void *self, struct mr_batch *in, struct mr_error *err);
    int (*flush)(void *self, struct mr_error *err);
    void (*interrupt)(void *self);
    void (*stop)(void *self);
    int (*tasks)(struct mr_task *connector, int max, struct mr_task_list *list,
                 struct mr_error *err);
    bool put_atomic;
    int (*open)(void *self, const struct mr_partition_list *parts, struct mr_error *err);
    int (*close)(void *self, const struct mr_partition_list *parts, bool lost,
                 struct mr_error *err);
    int (*pre_commit)(void *self, struct mr_partition_list *offsets, struct mr_error *err);
    int (*alter_offsets)(struct mr_task *connector, const struct mr_partition_list *offsets,
                         struct mr_error *err);
    const char *stores_offsets;
    int (*emits)(void *self, const struct mr_batch *in, struct mr_emitter *out,
                 struct mr_error *err);
    int (*check)(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err);
};

/* A converter between values and the bytes in a topic; one instance per task and role. Kind
 * MR_PLUGIN_CONVERTER does for keys, values and headers, MR_PLUGIN_HEADER_CONVERTER for headers
 * alone.
 *
 * start         task gives the converter's own configuration (key.converter.* or value.converter.*
 *               without prefix), with converter.type = "key", "value" or "header" filled in
 * from_connect  must: value with schema (NULL = schemaless) → *data, *len in the arena, or borrowed
 *               from value; *data NULL = a null (tombstone)
 * to_connect    must: len bytes (data NULL = null) → *value and *schema in the arena; may borrow
 *               from data
 *
 * MR_ERR_DATA: errors.tolerance decides. Outputs are written on MR_OK only.
 * Thread: the task's. Spec: org.apache.kafka.connect.storage.Converter. */
struct mr_converter {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*from_connect)(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err);
    int (*to_connect)(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err);
    void (*stop)(void *self);
};

/* A transform of single records; one instance per task and alias.
 *
 * start   task gives the transform's own configuration (transforms.<alias>.* without prefix)
 * apply   must: change rec, by mr_record_put_value, mr_record_topic, mr_record_header … or by its
 *         plain members (partition, timestamp). MR_OK; MR_DROP: the record is left out, which
 *         counts as done. What is new goes into the arena or into what lives as long as the
 *         transform; what stays is shared, and values are never written to. On a negative return
 *         the host puts the record back as it was
 * check   what data can't say of one key, such as a bad regular expression: for validation, and
 *         before start. The key has a value, of its type, unless it is declared with
 *         MR_CFG_CHECK_NULL; others may still lack theirs (NULL, 0, an empty list). key: as
 *         declared; shown: as the user wrote it, for the text. MR_ERR_CONFIG with Connect's whole
 *         text. Without an instance: nothing is kept
 *
 * MR_ERR_RETRY: errors.retry.timeout decides; MR_ERR_DATA: errors.tolerance does; all others: the
 * task is FAILED.
 * Thread: the task's. Spec: org.apache.kafka.connect.transforms.Transformation. */
struct mr_transform {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*apply)(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err);
    void (*stop)(void *self);
    int (*check)(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err);
};

/* A predicate: which records a transform is for. test (must) gives 1 or 0, or fails like apply; it
 * changes nothing. The rest as for transforms, its configuration is predicates.<alias>.*.
 * Spec: org.apache.kafka.connect.transforms.predicates.Predicate. */
struct mr_predicate {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*test)(void *self, const struct mr_record *rec, struct mr_error *err);
    void (*stop)(void *self);
    int (*check)(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err);
};

/* A config provider: what ${provider:path:key} stands for in configurations. One instance for all
 * of a worker, in a process of its own.
 *
 * start  once, before the first get; task gives the settings config.providers.<name>.param.*
 *        without prefix. A failure ends the worker's start
 * get    must: give the values of the keys that at asks for (lookup.h). Calls come one after the
 *        other. MR_OK, also where keys have no value; on a negative return whoever asked fails with
 *        the text, which therefore names no value
 * stop   once, last, when the worker ends in order; no effect may depend on it
 *
 * start and get together, and each further get, have millrace.services.timeout.ms; a process that
 * takes longer is killed and, like one that crashed, started again for the next call.
 * Thread: one for all. Blocking is allowed.
 * Spec: org.apache.kafka.common.config.provider.ConfigProvider (KIP-297, KIP-421). */
struct mr_config_provider {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*get)(void *self, struct mr_lookup *at, struct mr_error *err);
    void (*stop)(void *self);
};

/* A REST filter: who may do what, by a worker's REST. One instance for all of a worker, in a
 * process of its own; it is asked about each request of `listeners` that a resource was found for,
 * but not about what workers sign and send each other.
 *
 * start  once, before the first request; task gives the worker's settings millrace.rest.filter.*
 *        without prefix. A failure ends the worker's start
 * admit  must: MR_OK lets the request through, unless mr_refuse was called (filter.h). On a
 *        negative return it is refused with 503, and the text goes to the log. Calls come one after
 *        the other
 * stop   as of a config provider, above, and so are its deadline and thread: a request that no
 *        answer came for in time is refused with 503
 *
 * Spec: org.apache.kafka.connect.rest.ConnectRestExtension (KIP-285). */
struct mr_rest_filter {
    MR_PLUGIN_HEAD
    int (*start)(void *self, struct mr_task *task, struct mr_error *err);
    int (*admit)(void *self, struct mr_request *req, struct mr_error *err);
    void (*stop)(void *self);
};

/* abi_minor keeps promises: on an older Millrace, which would not see a slot that stands behind its
 * own end of a descriptor, a sink with stores_offsets or emits is refused, and not run without. */
struct mr_module {
    uint32_t magic;     /* MR_MODULE_MAGIC */
    uint32_t size;      /* bytes of this struct, as the plugin was compiled */
    uint16_t abi_major; /* must equal the host's */
    uint16_t abi_minor; /* must not be above the host's */
    uint32_t plugin_count;
    const struct mr_plugin *const *plugins;
};

#if defined(__GNUC__)
#define MR_VISIBLE __attribute__((visibility("default")))
#else
#define MR_VISIBLE
#endif

#if defined(__cplusplus)
#define MR_EXPORT extern "C" MR_VISIBLE
#else
#define MR_EXPORT MR_VISIBLE
#endif

/* Export several plugins: MR_MODULE(&a, &b), each cast to struct mr_plugin by its own macro or by
 * hand. */
#define MR_MODULE(...) \
    MR_EXPORT const struct mr_module *millrace_module(void); \
    MR_EXPORT const struct mr_module *millrace_module(void) \
    { \
        static const struct mr_plugin *const mr_plugins[] = {__VA_ARGS__}; \
        static const struct mr_module mr_module_data = {MR_MODULE_MAGIC, \
                                                        sizeof(struct mr_module), \
                                                        MR_ABI_MAJOR, \
                                                        MR_ABI_MINOR, \
                                                        sizeof(mr_plugins) / \
                                                            sizeof(mr_plugins[0]), \
                                                        mr_plugins}; \
        return &mr_module_data; \
    }

/* A descriptor's initialiser, for a library whose plugins stand in files of their own: such a file
 * defines
 *     const struct mr_source ticks_plugin =
 *         MR_DESCRIPTOR(mr_source, MR_PLUGIN_SOURCE, "Ticks", "1.0", .poll = ...);
 * the file with MR_MODULE(MR_PLUGIN(ticks), ...) sees it by `extern`. C only: in C++ a function
 * sets the members of a struct that is all zero. */
#define MR_DESCRIPTOR(type, plugin_kind, class_name, release, ...) \
    { \
        .size = sizeof(struct type), .kind = plugin_kind, .name = class_name, .version = release, \
        .key_size = sizeof(struct mr_config_key), __VA_ARGS__ \
    }

/* Define a static descriptor called <id>_plugin; use with MR_MODULE(MR_PLUGIN(<id>), ...). */
#define MR_DESCRIBE(type, plugin_kind, id, class_name, release, ...) \
    static const struct type id##_plugin = \
        MR_DESCRIPTOR(type, plugin_kind, class_name, release, __VA_ARGS__)

#define MR_DEFINE_SOURCE(id, class_name, release, ...) \
    MR_DESCRIBE(mr_source, MR_PLUGIN_SOURCE, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_SINK(id, class_name, release, ...) \
    MR_DESCRIBE(mr_sink, MR_PLUGIN_SINK, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_CONVERTER(id, class_name, release, ...) \
    MR_DESCRIBE(mr_converter, MR_PLUGIN_CONVERTER, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_HEADER_CONVERTER(id, class_name, release, ...) \
    MR_DESCRIBE(mr_converter, MR_PLUGIN_HEADER_CONVERTER, id, class_name, release, __VA_ARGS__)

#define MR_DEFINE_TRANSFORM(id, class_name, release, ...) \
    MR_DESCRIBE(mr_transform, MR_PLUGIN_TRANSFORM, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_PREDICATE(id, class_name, release, ...) \
    MR_DESCRIBE(mr_predicate, MR_PLUGIN_PREDICATE, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_CONFIG_PROVIDER(id, class_name, release, ...) \
    MR_DESCRIBE(mr_config_provider, MR_PLUGIN_CONFIG_PROVIDER, id, class_name, release, __VA_ARGS__)
#define MR_DEFINE_REST_FILTER(id, class_name, release, ...) \
    MR_DESCRIBE(mr_rest_filter, MR_PLUGIN_REST_FILTER, id, class_name, release, __VA_ARGS__)

#define MR_PLUGIN(id) ((const struct mr_plugin *)&id##_plugin)

/* A library with one plugin: MR_SOURCE(Ticks, "1.0", .keys = ticks_keys, .poll = ticks_poll) */
#define MR_SOURCE(id, release, ...) \
    MR_DEFINE_SOURCE(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_SINK(id, release, ...) \
    MR_DEFINE_SINK(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_CONVERTER(id, release, ...) \
    MR_DEFINE_CONVERTER(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_TRANSFORM(id, release, ...) \
    MR_DEFINE_TRANSFORM(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_PREDICATE(id, release, ...) \
    MR_DEFINE_PREDICATE(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_CONFIG_PROVIDER(id, release, ...) \
    MR_DEFINE_CONFIG_PROVIDER(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))
#define MR_REST_FILTER(id, release, ...) \
    MR_DEFINE_REST_FILTER(id, #id, release, __VA_ARGS__); \
    MR_MODULE(MR_PLUGIN(id))

#ifdef __cplusplus
}
#endif

#endif
