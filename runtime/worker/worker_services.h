/* SPDX-License-Identifier: Apache-2.0 */
/* The services that a worker's properties name: config providers and REST filters that plugins
 * bring. Part of
 * worker_references.c's work, at start. */
#ifndef WORKER_WORKER_SERVICES_H
#define WORKER_WORKER_SERVICES_H

#include "worker/worker_config.h"

/* Open config->services anew, by config->props as they are, and say in these where they are asked
 * (PROVIDER_SOCKET_KEY). Nothing is opened where no class needs it. MR_ERR_CONFIG: no plugin has a
 * class, "worker.properties:12: Invalid value …"; MR_ERR_IO: they can't be had. Blocks for a look
 * at the plugins, the first time. */
int worker_services_open(struct worker_config *config, struct mr_error *err);

#endif
