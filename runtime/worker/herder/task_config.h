/* SPDX-License-Identifier: Apache-2.0 */
/* What Connect adds to the configurations that a connector makes for its tasks. Pure.
 * Spec: org.apache.kafka.connect.runtime.Worker.connectorTaskConfigs. */
#ifndef WORKER_TASK_CONFIG_H
#define WORKER_TASK_CONFIG_H

#include "base/props.h"

struct catalog_plugin;

/* task.class, and a sink's topics as its connector has them. */
void task_config_complete(struct props *task, const struct catalog_plugin *plugin,
                          const struct props *connector);

#endif
