/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's own settings, read and checked once at start. Immutable after that.
 * Spec: org.apache.kafka.connect.runtime.WorkerConfig, standalone.StandaloneConfig. */
#ifndef WORKER_WORKER_CONFIG_H
#define WORKER_WORKER_CONFIG_H

#include "base/provider.h"

#include <stdint.h>

#define WORKER_CONFIG_LISTENERS 8 /* and as many of admin.listeners */

struct catalog;
struct services;

struct worker_listener {
    char *host; /* "" = all interfaces; IPv6 without brackets */
    int port;   /* 0 = any free one */
    bool https;
    bool admin; /* of admin.listeners */
};

/* What a worker of a cluster needs besides. Times in ms, by the properties' names. */
struct worker_cluster {
    char *group_id; /* NULL: the worker is standalone */
    int session_ms;
    int heartbeat_ms;
    int rebalance_ms;
    int sync_ms;
    int max_delay_ms; /* scheduled.rebalance.max.delay.ms */
    int64_t retry_backoff_ms;
    char *exactly_once; /* exactly.once.source.support: disabled, preparing, enabled, in any case */
    char *protocol;     /* connect.protocol: eager, compatible, sessioned, in any case */
    char *assignor;     /* millrace.assignor: millrace, java, in any case; see group/assignor.h */
    char *client_id;
    int key_ttl_ms;
    int key_bits;        /* inter.worker.key.size; 0: as the algorithm has it */
    char *key_algorithm; /* inter.worker.key.generation.algorithm */
    char *signature_algorithm;
    char **verification_algorithms; /* ended by NULL */
};

struct worker_config {
    const char *path;            /* of the file, for messages; borrowed */
    struct props props;          /* everything, references resolved (hosts get it whole) */
    struct providers *providers; /* config.providers */
    struct secrets *secrets;     /* what was resolved in props */
    struct services *services;   /* those of providers that plugins bring; NULL: none */
    struct worker_listener listeners[2 * WORKER_CONFIG_LISTENERS];
    size_t listener_count;
    /* Admin.listeners is set: /admin is served there only, which may be nowhere. */
    bool admin_apart;
    char *worker_id;         /* advertised host:port; filled in when the port is known */
    bool advertises_https;   /* likewise: others reach it by https */
    int64_t graceful_ms;     /* task.shutdown.graceful.timeout.ms */
    int64_t offset_flush_ms; /* offset.flush.interval.ms */
    int64_t services_ms;     /* millrace.services.timeout.ms */
    int restart_max;         /* millrace.restart.max */
    char *run_dir;           /* millrace.run.dir */
    char *state_dir;         /* millrace.state.dir; of a cluster */
    char *log_level;         /* millrace.log.level: a name of base/log.h, in any case */
    char *offset_file;       /* offset.storage.file.filename; standalone */
    char **plugin_path;      /* folders, ended by NULL: plugin.path, then the bundled folder */
    struct catalog *found;   /* what is there, where services made us look; NULL: nobody has yet */
    struct worker_cluster cluster;
};

/* Load and check, also that the Kafka clients can be what the file asks them to be. MR_ERR_CONFIG:
 * "worker.properties:12: Invalid value … for configuration …", several joined by "; ". Unknown keys
 * are logged as warnings with the nearest known name. path "" = no file, all defaults, as Connect
 * has it. What is left behind on failure: config deinitialised. */
int worker_config_load(struct worker_config *config, const char *path, struct mr_error *err);
/* The same for a worker of a cluster. Spec:
 * org.apache.kafka.connect.runtime.distributed.DistributedConfig. */
int worker_config_load_cluster(struct worker_config *config, const char *path,
                               struct mr_error *err);
void worker_config_deinit(struct worker_config *config);

/* "FILE:LINE: " of a key, or "FILE: " where it was not set: what stands before a message about
 * it. */
void worker_config_where(const struct worker_config *config, const char *key, char *out,
                         size_t size);

const char *worker_config_servers(const struct worker_config *config); /* of Kafka, as given */

#endif
