/* SPDX-License-Identifier: Apache-2.0 */
/* The function table that plugins call, and the handle behind struct mr_task. */
#ifndef HOST_HOST_API_H
#define HOST_HOST_API_H

#include "base/props.h"
#include "host/plugin_load.h"

#define INSTANCE_MAGIC 0x696e7374u

/* What a sink's task does for its plugin. */
struct instance_sink {
    int (*hold)(void *arg, const char *topic, int32_t partition, bool hold, struct mr_error *err);
    int (*seek)(void *arg, const char *topic, int32_t partition, int64_t offset,
                struct mr_error *err);
    void (*put_in)(void *arg, int64_t ms);
    void (*commit)(void *arg);
};

/* What is behind struct mr_emitter. */
struct emitter {
    struct mr_emitter pub; /* first */
    struct mr_record *(*add)(struct emitter *e, const char *topic);
    bool (*get)(struct emitter *e, struct mr_value key, struct mr_value *value);
    void (*set)(struct emitter *e, struct mr_value key, struct mr_value value);
};

/* An instance of a plugin: what struct mr_task points to. Its owner (task, connector or converter
 * stage) embeds it, calls instance_init, and then fills in the members that are marked "owner".
 * values: parsed configuration, one per plugin->keys entry. */
struct instance {
    struct mr_task pub; /* first */
    uint32_t magic;     /* INSTANCE_MAGIC while it lives */
    const struct plugin *plugin;
    void *self; /* state_size bytes, zeroed */
    struct props raw;
    struct config_value *values;
    int stop_fd; /* owner: eventfd, -1 none; borrowed */
    int wake_fd; /* owner: eventfd, -1 none; borrowed */
    /* First mistake of the plugin (undeclared key …): fail after the call. */
    struct mr_error misuse;
    /* Owner. Reading offsets; NULL where there are none (MR_ERR_UNSUPPORTED). Blocks. */
    int (*offset_read)(void *arg, const struct mr_source_partition *part, const char *key,
                       bool *found, int64_t *out, struct mr_error *err);
    void *offset_arg;
    const struct instance_sink *sink; /* owner: of a sink's task, NULL none */
    void *sink_arg;
    const char *connector; /* owner: for logs; borrowed */
    int task;              /* owner: -1 none */
};

extern const struct mr_host host_api_table;

/* Note a mistake of the plugin; the first one stays. Any thread. */
MR_PRINTF(2, 3)
void instance_misused(struct instance *inst, const char *fmt, ...);

#define INSTANCE_TASKS_MAX 10000 /* entries of a task list, whatever tasks.max says */

/* Zero inst, parse config by the plugin's keys (MR_ERR_CONFIG lists every problem), allocate self
 * (never NULL). On failure there is nothing to deinit. */
int instance_init(struct instance *inst, const struct plugin *plugin, const struct props *config,
                  struct mr_error *err);
/* The same where what can't be read, or is missing, counts as not set. */
int instance_init_loose(struct instance *inst, const struct plugin *plugin,
                        const struct props *config, struct mr_error *err);
void instance_deinit(struct instance *inst);

/* .tasks of a connector: run it (or the default) into configs[*count], each initialised props
 * holding the connector's configuration overlaid with what the plugin set. *count may be above max:
 * the caller judges. Caller frees with instance_task_configs_free. */
int instance_task_configs(struct instance *connector, int max, struct props **configs,
                          size_t *count, struct mr_error *err);
void instance_task_configs_free(struct props *configs, size_t count);

#endif
