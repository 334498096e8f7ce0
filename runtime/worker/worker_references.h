/* SPDX-License-Identifier: Apache-2.0 */
/* References to config providers in the worker's own properties. Part of worker_config.c's reading,
 * at start. */
#ifndef WORKER_WORKER_REFERENCES_H
#define WORKER_WORKER_REFERENCES_H

#include "worker/worker_config.h"

/* Make the providers, resolve config->props by them, and note in config->secrets what came of it.
 * MR_ERR_CONFIG: "worker.properties:12: Invalid value … for configuration config.providers.x.class:
 * …", or MR_ERR_IO in Java's words. Blocks on files. */
int worker_references_resolve(struct worker_config *config, struct mr_error *err);

#endif
