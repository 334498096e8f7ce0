/* SPDX-License-Identifier: Apache-2.0 */
/* The host's function table: the first member of every handle points to it. It only grows at the
 * end. Plugins use the accessors of the other headers and never name a slot. */
#ifndef MILLRACE_HOST_H
#define MILLRACE_HOST_H

#include <millrace/config.h>
#include <millrace/error.h>
#include <millrace/schema.h>
#include <millrace/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0: until sources, sinks, emitting sinks, converters and transforms all stand on it. The minor
 * goes up whenever a descriptor or the host's table has grown
 * (tests/unit/host/test_abi_minor.c). */
#define MR_ABI_MAJOR 0
#define MR_ABI_MINOR 3

struct mr_arena;
struct mr_batch;
struct mr_emitter;
struct mr_lookup;
struct mr_request;
struct mr_record;
struct mr_task;
struct mr_task_list;
struct mr_pattern;
struct mr_pattern_search;
struct mr_source_partition;

struct mr_host {
    uint32_t size; /* bytes of this table */
    uint16_t abi_major;
    uint16_t abi_minor;

    void *(*arena_more)(struct mr_arena *arena, size_t size);
    const char *(*value_text)(struct mr_arena *arena, struct mr_value v, size_t *len);

    struct mr_record *(*batch_add)(struct mr_batch *batch, const char *topic);
    bool (*batch_full)(const struct mr_batch *batch);
    int (*batch_again)(struct mr_batch *batch, int64_t ms, int fd);
    void (*record_key)(struct mr_record *rec, struct mr_value v);
    void (*record_value)(struct mr_record *rec, struct mr_value v);
    void (*record_header)(struct mr_record *rec, const char *name, const struct mr_schema *schema,
                          struct mr_value v);
    void (*record_offset)(struct mr_record *rec, const struct mr_source_partition *part,
                          const char *key, int64_t next);

    const struct mr_schema *(*schema_make)(const struct mr_schema_spec *spec, size_t spec_size,
                                           struct mr_error *err);

    const char *(*config_text)(const struct mr_task *task, const char *key);
    int64_t (*config_long)(const struct mr_task *task, const char *key);
    double (*config_double)(const struct mr_task *task, const char *key);
    const char *(*config_secret)(const struct mr_task *task, const char *key);
    size_t (*config_count)(const struct mr_task *task, const char *key);
    const char *(*config_item)(const struct mr_task *task, const char *key, size_t i);
    const char *(*config_raw)(const struct mr_task *task, const char *key);

    void (*log)(const struct mr_task *task, int level, const char *text);
    int (*stop_fd)(const struct mr_task *task);
    void (*wake)(struct mr_task *task);
    int (*task_add)(struct mr_task_list *list);
    void (*task_set)(struct mr_task_list *list, const char *key, const char *value);

    const struct mr_source_partition *(*source_partition)(const struct mr_host *host,
                                                          const char *key, const char *value);
    int (*offset_long)(struct mr_task *task, const struct mr_source_partition *part,
                       const char *key, int64_t fallback, int64_t *out, struct mr_error *err);

    struct mr_value (*text_from)(struct mr_arena *arena, const void *bytes, size_t len);

    void (*record_topic)(struct mr_record *rec, const char *topic, size_t len);
    size_t (*record_header_drop)(struct mr_record *rec, const char *name);
    void (*batch_reject)(struct mr_batch *batch, size_t i, const char *text);
    int (*sink_hold)(struct mr_task *task, const char *topic, int32_t partition, bool hold,
                     struct mr_error *err);
    int (*sink_seek)(struct mr_task *task, const char *topic, int32_t partition, int64_t offset,
                     struct mr_error *err);
    void (*sink_put_in)(struct mr_task *task, int64_t ms);
    void (*sink_commit)(struct mr_task *task);
    int (*value_check)(const struct mr_schema *schema, struct mr_value v, const char *field,
                       struct mr_error *err);

    int (*value_parse)(struct mr_arena *arena, const char *text, size_t len,
                       const struct mr_schema **schema, struct mr_value *value,
                       struct mr_error *err);
    const char *(*value_string)(struct mr_arena *arena, struct mr_value v, size_t *len);
    int (*value_convert)(struct mr_arena *arena, const struct mr_schema *to,
                         const struct mr_schema *from, struct mr_value v, struct mr_value *out,
                         struct mr_error *err);
    int (*value_encode)(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                        struct mr_value *out, struct mr_error *err);
    int (*value_decode)(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                        struct mr_value *out, struct mr_error *err);
    int (*header_check)(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                        struct mr_error *err);
    int (*schema_infer)(struct mr_value v, const struct mr_schema **schema, struct mr_error *err);
    int (*schema_project)(struct mr_arena *arena, const struct mr_schema *from, struct mr_value v,
                          const struct mr_schema *to, struct mr_value *out, struct mr_error *err);

    struct mr_pattern *(*pattern_make)(const struct mr_host *host, const char *regex,
                                       struct mr_error *err);
    void (*pattern_free)(struct mr_pattern *pattern);
    int (*pattern_find)(struct mr_pattern *pattern, const struct mr_pattern_search *search,
                        struct mr_error *err);
    int (*pattern_group)(const struct mr_pattern *pattern, const char *name);

    void (*batch_ends)(struct mr_batch *batch, bool commit);
    void (*record_ends)(struct mr_record *rec, bool commit);

    struct mr_record *(*emit_add)(struct mr_emitter *out, const char *topic);
    bool (*state_get)(struct mr_emitter *out, struct mr_value key, struct mr_value *value);
    void (*state_set)(struct mr_emitter *out, struct mr_value key, struct mr_value value);

    const char *(*lookup_path)(const struct mr_lookup *at);
    const char *(*lookup_key)(const struct mr_lookup *at, size_t i);
    void (*lookup_set)(struct mr_lookup *at, size_t i, const char *value, size_t len);
    void (*lookup_ttl)(struct mr_lookup *at, int64_t ms);

    const char *(*request_text)(const struct mr_request *req, int which);
    const char *(*request_header)(const struct mr_request *req, const char *name);
    void (*request_refuse)(struct mr_request *req, int status, const char *text);
};

#ifdef __cplusplus
}
#endif

#endif
