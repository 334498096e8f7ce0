/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the worker's settings share: worker_keys.c has the tables of keys,
 * worker_config.c what needs more than one key or a look outside. */
#ifndef WORKER_WORKER_KEYS_H
#define WORKER_WORKER_KEYS_H

#include "base/buf.h"
#include "worker/worker_config.h"

#define WORKER_KEYS_SERVERS "localhost:9092" /* default of bootstrap.servers */

/* Everything found wrong with one file. */
struct problems {
    const struct worker_config *config;
    struct buf text;  /* as many as an error has room for */
    size_t untold;    /* the others */
    const char *told; /* key of the setting that was found wrong last */
    bool cluster;
};

/* Add "FILE:LINE: text". arg: struct problems; for config_def_check. */
void worker_keys_problem(void *arg, const char *key, const char *text);
MR_PRINTF(3, 4)
void worker_keys_problem_of(struct problems *problems, const char *key, const char *fmt, ...);

bool worker_keys_blank(const char *text);

/* Check every key of the tables, and fill the fields of config that they name. */
void worker_keys_check(struct worker_config *config, struct problems *problems);
/* Warn about keys that are unknown, another mode's, or without effect. */
void worker_keys_warn(const struct worker_config *config, bool cluster);

#endif
