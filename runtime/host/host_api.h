/* SPDX-License-Identifier: Apache-2.0 */
/* The function table that plugins call, and the handle behind struct mr_task. */
#ifndef HOST_HOST_API_H
#define HOST_HOST_API_H

#include "base/props.h"
#include "host/plugin_load.h"

/* An instance of a plugin: what struct mr_task points to. Its owner (task, connector or converter stage) embeds it.
 * values: parsed configuration, one per plugin->keys entry. */
struct instance {
    struct mr_task pub;                 /* first */
    const struct plugin *plugin;
    void *self;                         /* state_size bytes, zeroed */
    struct props raw;
    struct config_value *values;
    int stop_fd;                        /* eventfd, -1 none; borrowed */
    int wake_fd;                        /* eventfd, -1 none; borrowed */
    struct mr_error misuse;             /* first mistake of the plugin (undeclared key …): fail after the call */
    /* Reading offsets; NULL where there are none (MR_ERR_UNSUPPORTED). Blocks. entries come as offset_long needs them. */
    int (*offset_read)(void *arg, const struct mr_source_partition *part, const char *key, bool *found, int64_t *out,
                       struct mr_error *err);
    void *offset_arg;
    const char *connector;              /* for logs; borrowed */
    int task;                           /* -1 none */
};

extern const struct mr_host host_api_table;

/* Parse config by the plugin's keys (MR_ERR_CONFIG lists every problem), allocate self. */
int instance_init(struct instance *inst, const struct plugin *plugin, const struct props *config, struct mr_error *err);
void instance_deinit(struct instance *inst);

/* .tasks of a connector: run it (or the default) into configs[*count], each initialised props holding the connector's
 * configuration overlaid with what the plugin set. Caller frees. */
int instance_task_configs(struct instance *connector, int max, struct props **configs, size_t *count,
                          struct mr_error *err);

#endif
