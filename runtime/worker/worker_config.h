/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's own settings, read and checked once at start. Immutable after that.
 * Spec: org.apache.kafka.connect.runtime.WorkerConfig, standalone.StandaloneConfig. */
#ifndef WORKER_WORKER_CONFIG_H
#define WORKER_WORKER_CONFIG_H

#include "base/props.h"

#include <stdint.h>

#define WORKER_CONFIG_LISTENERS 8

struct worker_listener {
    char *host;             /* "" = all interfaces */
    int port;               /* 0 = any free one */
    bool https;
};

struct worker_config {
    const char *path;               /* of the file, for messages */
    struct props props;             /* everything, as read (hosts get it whole) */
    struct worker_listener listeners[WORKER_CONFIG_LISTENERS];
    size_t listener_count;
    char *worker_id;                /* advertised host:port; filled in when the port is known */
    int64_t graceful_ms;            /* task.shutdown.graceful.timeout.ms */
    int64_t offset_flush_ms;        /* offset.flush.interval.ms */
    int restart_max;                /* millrace.restart.max */
    char *run_dir;                  /* millrace.run.dir */
    char *offset_file;              /* offset.storage.file.filename; standalone */
    char **plugin_path;             /* folders, ended by NULL: plugin.path, then the bundled folder */
};

/* Load and check. MR_ERR_CONFIG: "worker.properties:12: Invalid value … for configuration …". Unknown keys are logged as
 * warnings with the nearest known name. */
int worker_config_load(struct worker_config *config, const char *path, struct mr_error *err);
void worker_config_deinit(struct worker_config *config);

#endif
