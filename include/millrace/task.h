/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of one plugin instance: its configuration, its log, its source offsets, its end.
 * Spec: org.apache.kafka.connect.source.SourceTaskContext, sink.SinkTaskContext. */
#ifndef MILLRACE_TASK_H
#define MILLRACE_TASK_H

#include <millrace/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task of a source or a sink, or one converter instance. In a `.tasks` slot: the connector,
 * before it has tasks. */
struct mr_task {
    const struct mr_host *host;
};

/* Configuration: key must be declared among the plugin's keys, with the type that the reader's name
 * says. What was declared was checked before any slot ran, defaults are filled in, and the answers
 * live as long as the handle. A key that was not declared, or of another type, is the plugin's
 * mistake: the task fails and its error names the key; the reader gives NULL, 0 or false.
 * Thread: any. */
/* STRING, CLASS; may be NULL. */
static inline const char *mr_config_str(const struct mr_task *task, const char *key)
{
    return task->host->config_text(task, key);
}

/* INT, SHORT, LONG. */
static inline int64_t mr_config_long(const struct mr_task *task, const char *key)
{
    return task->host->config_long(task, key);
}

static inline bool mr_config_bool(const struct mr_task *task, const char *key)
{
    return task->host->config_long(task, key) != 0;
}

static inline double mr_config_double(const struct mr_task *task, const char *key)
{
    return task->host->config_double(task, key);
}

/* LIST: its length, and item i. */
static inline size_t mr_config_count(const struct mr_task *task, const char *key)
{
    return task->host->config_count(task, key);
}

static inline const char *mr_config_item(const struct mr_task *task, const char *key, size_t i)
{
    return task->host->config_item(task, key, i);
}

/* PASSWORD: never log or return it. */
static inline const char *mr_config_secret(const struct mr_task *task, const char *key)
{
    return task->host->config_secret(task, key);
}

/* Any property as the user wrote it, declared or not, or NULL. */
static inline const char *mr_config_raw(const struct mr_task *task, const char *key)
{
    return task->host->config_raw(task, key);
}

enum mr_log_level { MR_LOG_DEBUG = 0, MR_LOG_INFO = 1, MR_LOG_WARN = 2, MR_LOG_ERROR = 3 };

/* One line in the worker's log, under the connector's and task's name; cut at 1000 bytes. Never
 * blocks: what the worker can't take is dropped and counted. Thread: any. */
MR_PRINTF(3, 4)
static inline void mr_log(const struct mr_task *task, int level, const char *fmt, ...)
{
    char text[1001];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    task->host->log(task, level, text);
}

/* A descriptor that becomes readable when the task must stop: for plugins with a poll loop. Never
 * read, close or keep it. System calls that block also end with EINTR then. Thread: any. */
static inline int mr_stop_fd(const struct mr_task *task)
{
    return task->host->stop_fd(task);
}

/* End the wait that the last poll asked for by mr_again_in or mr_again_on_fd. Thread: any, until
 * stop returned. */
static inline void mr_wake(struct mr_task *task)
{
    task->host->wake(task);
}

/* A source partition of one text member, {key: value} (value NULL: {key: null}); the same pair
 * gives the same pointer, valid until the process ends. Thread: any. */
static inline const struct mr_source_partition *
mr_source_partition(const struct mr_task *task, const char *key, const char *value)
{
    return task->host->source_partition(task->host, key, value);
}

/* The stored offset member `key` of partition {"name": name}, or fallback when nothing is stored.
 * Blocks until the offsets are read. MR_ERR_DATA when what is stored is no integer; MR_ERR_CLOSED
 * when the task is stopping.
 * Thread: the task's, in start or poll. */
static inline int mr_offset_long(struct mr_task *task, const char *name, const char *key,
                                 int64_t fallback, int64_t *out, struct mr_error *err)
{
    return task->host->offset_long(task, task->host->source_partition(task->host, "name", name),
                                   key, fallback, out, err);
}

static inline int mr_offset_long_in(struct mr_task *task, const struct mr_source_partition *part,
                                    const char *key, int64_t fallback, int64_t *out,
                                    struct mr_error *err)
{
    return task->host->offset_long(task, part, key, fallback, out, err);
}

/* Intern a schema. spec is borrowed. NULL with err filled: MR_ERR_DATA when it breaks a rule of
 * SchemaBuilder; MR_ERR_FULL when the process may hold no more of them, or MR_ERR_NOMEM. Give the
 * code on as it is: MR_ERR_DATA would blame the record, and errors.tolerance skip it and all behind
 * it.
 * Thread: any. */
static inline const struct mr_schema *
mr_schema_make(const struct mr_task *task, const struct mr_schema_spec *spec, struct mr_error *err)
{
    return task->host->schema_make(spec, sizeof(*spec), err);
}

/* The schema of a kind without attributes, BOOL to BYTES: never NULL. */
static inline const struct mr_schema *mr_schema_of(const struct mr_task *task, uint8_t kind,
                                                   bool optional)
{
    struct mr_schema_spec spec;

    memset(&spec, 0, sizeof(spec));
    spec.kind = kind;
    spec.optional = optional;
    return task->host->schema_make(&spec, sizeof(spec), NULL);
}

/* --- for sinks -------------------------------------------------------------------------------- */

/* A partition of a consumed topic, in the coordinates of what was read, whatever transforms make of
 * its records.
 * offset  the next to read, -1 unknown
 * stored  of a sink with stores_offsets: the offset that it has stored, -1 none. In open it says so
 *         here; in put this is what it stored last
 * Lives as long as the call it came with. */
struct mr_partition {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t stored;
};

/* all: in alter_offsets, the connector's offsets are forgotten altogether, also of partitions that
 * are not in the list. */
struct mr_partition_list {
    const struct mr_host *host;
    char *parts;      /* the first struct mr_partition */
    size_t part_size; /* bytes from one to the next */
    size_t count;
    bool all;
};

/* Partition i of 0 to count - 1. */
static inline struct mr_partition *mr_partition_at(const struct mr_partition_list *list, size_t i)
{
    return (struct mr_partition *)(void *)(list->parts + i * list->part_size);
}

/* No records of this partition, until mr_sink_resume or until it goes; put is still called for the
 * others. Takes effect when the present slot returns. MR_ERR_STATE: the partition is not this
 * task's, or this is not its thread.
 * Thread: the task's, in open, put, flush or pre_commit. Spec: SinkTaskContext.pause, resume. */
static inline int mr_sink_pause(struct mr_task *task, const char *topic, int32_t partition,
                                struct mr_error *err)
{
    return task->host->sink_hold(task, topic, partition, true, err);
}

static inline int mr_sink_resume(struct mr_task *task, const char *topic, int32_t partition,
                                 struct mr_error *err)
{
    return task->host->sink_hold(task, topic, partition, false, err);
}

/* Read on from this offset: what put has taken counts as not read from there on. As mr_sink_pause.
 * Spec: offset(). */
static inline int mr_sink_seek(struct mr_task *task, const char *topic, int32_t partition,
                               int64_t offset, struct mr_error *err)
{
    return task->host->sink_seek(task, topic, partition, offset, err);
}

/* Have put called in ms milliseconds at the latest, if need be with an empty batch; once. Spec:
 * timeout(). */
static inline void mr_sink_put_in(struct mr_task *task, int64_t ms)
{
    task->host->sink_put_in(task, ms);
}

/* Commit offsets soon, not only at the next interval. Spec: requestCommit(). */
static inline void mr_sink_commit(struct mr_task *task)
{
    task->host->sink_commit(task);
}

/* --- for alter_offsets ------------------------------------------------------------------------ */

/* A partition of a source, and what its offset is to be: maps of text to text, numbers, booleans or
 * null, as they are stored.
 * partition  null: none was given
 * offset     null: it is forgotten
 * Both live as long as the call they came with. */
struct mr_offset_change {
    struct mr_value partition;
    struct mr_value offset;
};

struct mr_offset_list {
    const struct mr_host *host;
    const char *changes; /* the first struct mr_offset_change */
    size_t change_size;  /* bytes from one to the next */
    size_t count;
};

/* Change i of 0 to count - 1. */
static inline const struct mr_offset_change *mr_offset_change_at(const struct mr_offset_list *list,
                                                                 size_t i)
{
    return (const struct mr_offset_change *)(const void *)(list->changes + i * list->change_size);
}

/* In a `.tasks` slot: start the next task's configuration (its number, from 0, or a negative code
 * when the list is full), then set its keys. What is not set is taken from the connector's
 * configuration. */
static inline int mr_task_add(const struct mr_task *connector, struct mr_task_list *list)
{
    return connector->host->task_add(list);
}

static inline void mr_task_set(const struct mr_task *connector, struct mr_task_list *list,
                               const char *key, const char *value)
{
    connector->host->task_set(list, key, value);
}

#ifdef __cplusplus
}
#endif

#endif
