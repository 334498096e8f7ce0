/* SPDX-License-Identifier: Apache-2.0 */
/* The function table behind every handle that a plugin holds, and the instances behind struct
 * mr_task.
 *
 * Plugin code calls in here from its task's thread, the connector's, or one of its own. Handles are
 * checked by their magic as far as that is cheap. A mistake of the plugin's (an undeclared key, a
 * wrong type) never crashes: it is noted in the instance, the call gives nothing, and the owner of
 * the instance fails the task after the slot has returned, with the text. Records and batches have
 * their own half of the table in data/record_arena.c. */
#include "host/host_api.h"

#include "base/log.h"
#include "base/utf8.h"
#include "host/data/logical.h"
#include "host/data/projector.h"
#include "host/data/record_arena.h"
#include "host/data/schema_tree.h"
#include "host/data/utf8_text.h"
#include "host/data/values.h"
#include "host/host_pattern.h"
#include "host/service_filter.h"
#include "host/service_lookup.h"
#include "model/config_def.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define LOGGER "host.api"
#define PROBLEMS_MAX 960 /* bytes of a configuration's problems that fit one error */

/* Guards the text of a first mistake against a plugin with threads; held for a few instructions, on
 * no usual path. */
static pthread_mutex_t misuse_lock = PTHREAD_MUTEX_INITIALIZER;

void instance_misused(struct instance *inst, const char *fmt, ...)
{
    struct mr_error err = {.code = MR_ERR_FATAL};
    va_list args;

    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    pthread_mutex_lock(&misuse_lock);
    if (inst->misuse.code == 0) {
        memcpy(inst->misuse.text, err.text, sizeof(err.text));
        __atomic_store_n(&inst->misuse.code, err.code, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&misuse_lock);
}

/* The instance behind a handle, or NULL when the handle is none of ours. */
static struct instance *instance_of(const struct mr_task *task, const char *function)
{
    struct instance *inst = (struct instance *)(uintptr_t)task;

    if (inst != NULL && inst->magic == INSTANCE_MAGIC)
        return inst;
    log_error("%s was called with a handle that is none, or not any more", function);
    return NULL;
}

/* --- configuration ---------------------------------------------------------------------------- */

#define TYPE(type) (1u << (type))

/* The parsed value of a key that the plugin declared with one of these types; NULL with the mistake
 * noted. */
static const struct config_value *value_of(const struct mr_task *task, const char *key,
                                           unsigned types, const char *function)
{
    struct instance *inst = instance_of(task, function);

    if (inst == NULL)
        return NULL;
    if (key == NULL) {
        instance_misused(inst, "%s: %s was called without a key", inst->plugin->name, function);
        return NULL;
    }
    for (size_t i = 0; i < inst->plugin->key_count; i++) {
        const struct mr_config_key *declared = &inst->plugin->keys[i];

        if (strcmp(declared->name, key) != 0)
            continue;
        if (types & TYPE(declared->type))
            return &inst->values[i];
        instance_misused(inst, "%s: %s reads the configuration key %.200s, which is declared as %s",
                         inst->plugin->name, function, key, config_def_type_name(declared->type));
        return NULL;
    }
    instance_misused(inst,
                     "%s: %s reads the configuration key %.200s, which the plugin does not declare",
                     inst->plugin->name, function, key);
    return NULL;
}

static const char *api_config_text(const struct mr_task *task, const char *key)
{
    const struct config_value *v =
        value_of(task, key, TYPE(MR_CFG_STRING) | TYPE(MR_CFG_CLASS), "mr_config_str");

    return v == NULL || !v->present ? NULL : v->text;
}

static int64_t api_config_long(const struct mr_task *task, const char *key)
{
    const struct config_value *v = value_of(
        task, key, TYPE(MR_CFG_BOOLEAN) | TYPE(MR_CFG_INT) | TYPE(MR_CFG_SHORT) | TYPE(MR_CFG_LONG),
        "mr_config_long or mr_config_bool");

    return v == NULL || !v->present ? 0 : v->i;
}

static double api_config_double(const struct mr_task *task, const char *key)
{
    const struct config_value *v = value_of(task, key, TYPE(MR_CFG_DOUBLE), "mr_config_double");

    return v == NULL || !v->present ? 0 : v->d;
}

static const char *api_config_secret(const struct mr_task *task, const char *key)
{
    const struct config_value *v = value_of(task, key, TYPE(MR_CFG_PASSWORD), "mr_config_secret");

    return v == NULL || !v->present ? NULL : v->text;
}

static size_t api_config_count(const struct mr_task *task, const char *key)
{
    const struct config_value *v = value_of(task, key, TYPE(MR_CFG_LIST), "mr_config_count");

    return v == NULL || !v->present ? 0 : v->item_count;
}

static const char *api_config_item(const struct mr_task *task, const char *key, size_t i)
{
    const struct config_value *v = value_of(task, key, TYPE(MR_CFG_LIST), "mr_config_item");

    return v == NULL || !v->present || i >= v->item_count ? NULL : v->items[i];
}

static const char *api_config_raw(const struct mr_task *task, const char *key)
{
    struct instance *inst = instance_of(task, "mr_config_raw");

    return inst == NULL || key == NULL ? NULL : props_get(&inst->raw, key);
}

/* --- the task's surroundings ------------------------------------------------------------------ */

static void api_log(const struct mr_task *task, int level, const char *text)
{
    static const enum log_level levels[] = {LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR};
    struct instance *inst = instance_of(task, "mr_log");
    char logger[128];

    if (inst == NULL || text == NULL)
        return;
    snprintf(logger, sizeof(logger), "plugin.%.100s", inst->plugin->name);
    log_write_for(level < 0 || level > MR_LOG_ERROR ? LOG_ERROR : levels[level], logger,
                  inst->connector, inst->task, "%.1000s", text);
}

static int api_stop_fd(const struct mr_task *task)
{
    struct instance *inst = instance_of(task, "mr_stop_fd");

    return inst == NULL ? -1 : inst->stop_fd;
}

static void api_wake(struct mr_task *task)
{
    struct instance *inst = instance_of(task, "mr_wake");
    uint64_t one = 1;

    if (inst == NULL || inst->wake_fd < 0)
        return;
    /* Full means that a wake-up is waiting already. */
    if (write(inst->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        log_error("mr_wake: cannot write to the wake-up descriptor: %s", strerror(errno));
}

static const struct mr_source_partition *api_source_partition(const struct mr_host *host,
                                                              const char *key, const char *value)
{
    (void)host;
    return source_partition_intern(key, value);
}

static int api_offset_long(struct mr_task *task, const struct mr_source_partition *part,
                           const char *key, int64_t fallback, int64_t *out, struct mr_error *err)
{
    struct instance *inst = instance_of(task, "mr_offset_long");
    bool found = false;
    int64_t value = 0;
    int rc;

    if (inst == NULL || part == NULL || key == NULL || out == NULL)
        return mr_fail(
            err, MR_ERR_FATAL,
            "mr_offset_long was called without a task, partition, key or place for the result");
    if (inst->offset_read == NULL)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "there are no source offsets to read here");
    rc = inst->offset_read(inst->offset_arg, part, key, &found, &value, err);
    if (rc == 0)
        *out = found ? value : fallback;
    return rc;
}

/* --- a sink's partitions ---------------------------------------------------------------------- */

static const struct instance_sink *sink_of(struct instance *inst, const char *function,
                                           struct mr_error *err)
{
    if (inst != NULL && inst->sink != NULL)
        return inst->sink;
    mr_fail(err, MR_ERR_STATE, "%s is for the tasks of sinks", function);
    return NULL;
}

static int api_sink_hold(struct mr_task *task, const char *topic, int32_t partition, bool hold,
                         struct mr_error *err)
{
    const char *function = hold ? "mr_sink_pause" : "mr_sink_resume";
    struct instance *inst = instance_of(task, function);
    const struct instance_sink *sink = sink_of(inst, function, err);

    return sink == NULL ? MR_ERR_STATE : sink->hold(inst->sink_arg, topic, partition, hold, err);
}

static int api_sink_seek(struct mr_task *task, const char *topic, int32_t partition, int64_t offset,
                         struct mr_error *err)
{
    struct instance *inst = instance_of(task, "mr_sink_seek");
    const struct instance_sink *sink = sink_of(inst, "mr_sink_seek", err);

    return sink == NULL ? MR_ERR_STATE : sink->seek(inst->sink_arg, topic, partition, offset, err);
}

static void api_sink_put_in(struct mr_task *task, int64_t ms)
{
    struct instance *inst = instance_of(task, "mr_sink_put_in");
    const struct instance_sink *sink = sink_of(inst, "mr_sink_put_in", NULL);

    if (sink != NULL)
        sink->put_in(inst->sink_arg, ms);
}

static void api_sink_commit(struct mr_task *task)
{
    struct instance *inst = instance_of(task, "mr_sink_commit");
    const struct instance_sink *sink = sink_of(inst, "mr_sink_commit", NULL);

    if (sink != NULL)
        sink->commit(inst->sink_arg);
}

static struct mr_record *api_emit_add(struct mr_emitter *out, const char *topic)
{
    struct emitter *e = (struct emitter *)out;

    return e->add(e, topic);
}

static bool api_state_get(struct mr_emitter *out, struct mr_value key, struct mr_value *value)
{
    struct emitter *e = (struct emitter *)out;

    return e->get(e, key, value);
}

static void api_state_set(struct mr_emitter *out, struct mr_value key, struct mr_value value)
{
    struct emitter *e = (struct emitter *)out;

    e->set(e, key, value);
}

/* --- lists of task configurations ------------------------------------------------------------- */

/* What `.tasks` fills: the values set for each task, and then the whole configurations. */
struct mr_task_list {
    struct instance *connector;
    struct props *tasks;
    size_t count;
    size_t cap;
};

static int api_task_add(struct mr_task_list *list)
{
    if (list == NULL)
        return MR_ERR_FATAL;
    if (list->count == INSTANCE_TASKS_MAX) {
        instance_misused(list->connector, "%s: more than %d task configurations",
                         list->connector->plugin->name, INSTANCE_TASKS_MAX);
        return MR_ERR_FULL;
    }
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 8 : list->cap * 2;
        struct props *grown = realloc(list->tasks, cap * sizeof(*grown));

        if (grown == NULL)
            return MR_ERR_NOMEM;
        list->tasks = grown;
        list->cap = cap;
    }
    props_init(&list->tasks[list->count]);
    return (int)list->count++;
}

static bool is_utf8(const char *text)
{
    return text == NULL || utf8_valid(text, strlen(text));
}

static void api_task_set(struct mr_task_list *list, const char *key, const char *value)
{
    if (list == NULL)
        return;
    if (key == NULL || list->count == 0)
        instance_misused(list->connector, "%s: mr_task_set was called %s",
                         list->connector->plugin->name,
                         key == NULL ? "without a key" : "before mr_task_add");
    else if (!is_utf8(key) || !is_utf8(value))
        instance_misused(list->connector, "%s: a key or value of a task configuration is not UTF-8",
                         list->connector->plugin->name);
    else if (props_set(&list->tasks[list->count - 1], key, value) != 0)
        instance_misused(list->connector, "%s: out of memory for task configurations",
                         list->connector->plugin->name);
}

static int api_value_check(const struct mr_schema *schema, struct mr_value v, const char *field,
                           struct mr_error *err)
{
    return values_validate_field(field, schema, v, err);
}

const struct mr_host host_api_table = {
    .size = sizeof(struct mr_host),
    .abi_major = MR_ABI_MAJOR,
    .abi_minor = MR_ABI_MINOR,
    .arena_more = record_arena_more,
    .value_text = values_text,
    .batch_add = record_arena_add,
    .batch_full = record_arena_full,
    .batch_again = record_arena_again,
    .record_key = record_arena_key,
    .record_value = record_arena_value,
    .record_header = record_arena_header,
    .record_offset = record_arena_offset,
    .schema_make = schema_tree_make,
    .config_text = api_config_text,
    .config_long = api_config_long,
    .config_double = api_config_double,
    .config_secret = api_config_secret,
    .config_count = api_config_count,
    .config_item = api_config_item,
    .config_raw = api_config_raw,
    .log = api_log,
    .stop_fd = api_stop_fd,
    .wake = api_wake,
    .task_add = api_task_add,
    .task_set = api_task_set,
    .source_partition = api_source_partition,
    .offset_long = api_offset_long,
    .text_from = utf8_text,
    .record_topic = record_arena_topic,
    .record_header_drop = record_arena_header_drop,
    .batch_reject = record_arena_reject,
    .sink_hold = api_sink_hold,
    .sink_seek = api_sink_seek,
    .sink_put_in = api_sink_put_in,
    .sink_commit = api_sink_commit,
    .value_check = api_value_check,
    .pattern_make = host_pattern_make,
    .pattern_free = host_pattern_free,
    .pattern_find = host_pattern_find,
    .pattern_group = host_pattern_group,
    .batch_ends = record_arena_batch_ends,
    .record_ends = record_arena_ends,
    .value_parse = values_parse,
    .value_string = values_string,
    .value_convert = values_convert,
    .value_encode = logical_encode,
    .value_decode = logical_decode,
    .header_check = logical_header_check,
    .schema_infer = projector_infer,
    .schema_project = projector_project,
    .emit_add = api_emit_add,
    .state_get = api_state_get,
    .state_set = api_state_set,
    .lookup_path = service_lookup_path,
    .lookup_key = service_lookup_key,
    .lookup_set = service_lookup_set,
    .lookup_ttl = service_lookup_ttl,
    .request_text = service_filter_text,
    .request_header = service_filter_header,
    .request_refuse = service_filter_refuse,
};

/* --- instances -------------------------------------------------------------------------------- */

struct problems {
    char text[PROBLEMS_MAX];
    size_t len;
    const char *last; /* the key it was about: what is said of it more only follows */
};

static void add_problem(void *arg, const char *key, const char *text)
{
    struct problems *problems = arg;
    size_t room = sizeof(problems->text) - problems->len;
    int n;

    if (problems->last == key)
        return;
    n = snprintf(problems->text + problems->len, room, "%s%s", problems->last == NULL ? "" : "; ",
                 text);
    problems->last = key;
    problems->len += n < 0 ? 0 : (size_t)n >= room ? room - 1 : (size_t)n;
}

static int parse_config(struct instance *inst, struct mr_error *err)
{
    const struct plugin *plugin = inst->plugin;
    struct problems problems = {.text = ""};

    for (size_t i = 0; i < plugin->key_count; i++)
        config_def_start(&plugin->keys[i], &inst->raw, &inst->values[i], add_problem, &problems);
    return problems.last == NULL ? 0 : mr_fail(err, MR_ERR_CONFIG, "%s", problems.text);
}

static int prepare(struct instance *inst, const struct plugin *plugin, const struct props *config,
                   struct mr_error *err)
{
    int rc;

    memset(inst, 0, sizeof(*inst));
    inst->pub.host = &host_api_table;
    inst->magic = INSTANCE_MAGIC;
    inst->plugin = plugin;
    inst->stop_fd = inst->wake_fd = inst->task = -1;
    inst->values = calloc(plugin->key_count + 1, sizeof(*inst->values));
    inst->self = calloc(1, plugin->state_size == 0 ? 1 : plugin->state_size);
    rc = props_copy(&inst->raw, config);
    if (inst->values == NULL || inst->self == NULL)
        rc = MR_ERR_NOMEM;
    if (rc != 0) {
        instance_deinit(inst);
        return mr_fail(err, rc, "out of memory");
    }
    return 0;
}

int instance_init(struct instance *inst, const struct plugin *plugin, const struct props *config,
                  struct mr_error *err)
{
    int rc = prepare(inst, plugin, config, err);

    if (rc != 0)
        return rc;
    rc = parse_config(inst, err);
    if (rc != 0)
        instance_deinit(inst);
    return rc;
}

int instance_init_loose(struct instance *inst, const struct plugin *plugin,
                        const struct props *config, struct mr_error *err)
{
    int rc = prepare(inst, plugin, config, err);

    if (rc == 0)
        parse_config(inst, NULL);
    return rc;
}

void instance_deinit(struct instance *inst)
{
    if (inst->magic != INSTANCE_MAGIC)
        return;
    inst->magic = 0;
    for (size_t i = 0; inst->values != NULL && i < inst->plugin->key_count; i++)
        config_value_deinit(&inst->values[i]);
    free(inst->values);
    free(inst->self);
    props_deinit(&inst->raw);
    inst->values = NULL;
    inst->self = NULL;
}

/* --- task configurations of a connector ------------------------------------------------------- */

typedef int (*tasks_fn)(struct mr_task *connector, int max, struct mr_task_list *list,
                        struct mr_error *err);

/* Without a slot of its own: a source is one task, a sink as many as it may be. */
static int default_tasks(struct mr_task_list *list, uint32_t kind, int max)
{
    for (int i = 0; i < (kind == MR_PLUGIN_SINK ? max : 1); i++)
        if (api_task_add(list) < 0)
            return MR_ERR_NOMEM;
    return 0;
}

static int call_tasks(struct mr_task_list *list, int max, struct mr_error *err)
{
    struct instance *inst = list->connector;
    tasks_fn tasks = inst->plugin->kind == MR_PLUGIN_SINK ? inst->plugin->sink.tasks
                                                          : inst->plugin->source.tasks;
    int rc = tasks == NULL ? default_tasks(list, inst->plugin->kind, max)
                           : tasks(&inst->pub, max, list, err);

    if (inst->misuse.code != 0) {
        err_clear(err);
        return mr_fail(err, inst->misuse.code, "%s", inst->misuse.text);
    }
    return rc >= 0 ? 0 : err_without_text(err, rc, "tasks");
}

static int overlay(struct props *to, const struct props *from)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < from->count; i++)
        rc = props_set(to, from->entries[i].key, from->entries[i].value);
    return rc;
}

/* Replace what was set by the whole: connector's configuration, and what was set. What the
 * framework says (task.class, topics) is the worker's to add. */
static int complete(const struct instance *inst, struct props *task)
{
    struct props whole;
    int rc = props_copy(&whole, &inst->raw);

    if (rc == 0)
        rc = overlay(&whole, task);
    if (rc != 0) {
        props_deinit(&whole);
        return rc;
    }
    props_deinit(task);
    *task = whole;
    return 0;
}

void instance_task_configs_free(struct props *configs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        props_deinit(&configs[i]);
    free(configs);
}

int instance_task_configs(struct instance *connector, int max, struct props **configs,
                          size_t *count, struct mr_error *err)
{
    struct mr_task_list list = {.connector = connector};
    struct mr_error own = {0};
    int rc;

    if (err == NULL)
        err = &own;
    memset(&connector->misuse, 0, sizeof(connector->misuse));
    rc = call_tasks(&list, max, err);
    for (size_t i = 0; rc == 0 && i < list.count; i++)
        if (complete(connector, &list.tasks[i]) != 0)
            rc =
                mr_fail(err, MR_ERR_NOMEM, "out of memory for %zu task configurations", list.count);
    if (rc != 0) {
        instance_task_configs_free(list.tasks, list.count);
        return rc;
    }
    *configs = list.tasks;
    *count = list.count;
    return 0;
}
