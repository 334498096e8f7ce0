/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins that are installed: found by the throwaway `millrace scan`, never opened by the worker.
 * Immutable once made; any thread may read it. */
#ifndef WORKER_CATALOG_H
#define WORKER_CATALOG_H

#include "base/json.h"
#include "model/config_def.h"

#include <millrace/plugin.h>

struct catalog_plugin {
    const char *name;
    const char *version;
    const char *library;                /* absolute path */
    uint32_t kind;                      /* enum mr_plugin_kind */
    const char *const *aliases;         /* ended by NULL */
    const struct mr_config_key *keys;   /* ended by a zeroed entry; never NULL */
    const char *java_class;             /* the first alias that looks like a Java class, else name: for REST */
};

struct catalog;

/* Scan every *.so directly inside each folder and one level down. A library that is refused (mismatch, crash, time-out)
 * is logged with one line and left out. exe: binary to run as `exe scan LIBRARY...`. Blocks; start-up only. */
struct catalog *catalog_scan(const char *exe, const char *const *folders, struct mr_error *err);
void catalog_free(struct catalog **cat);

/* By name, alias, full Java class name, or either without or with the kind's suffix ("Connector", "Converter").
 * kind 0 = a source or a sink. NULL: none. */
const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind, const char *name);
size_t catalog_count(const struct catalog *cat);
const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i);   /* sinks, sources, converters; by class */

/* The output of `millrace scan`, as untrusted bytes: one JSON object a line. Split out for the fuzzer. */
int catalog_read_scan(struct catalog *cat, const char *data, size_t len, struct mr_error *err);
struct catalog *catalog_new(void);

#endif
