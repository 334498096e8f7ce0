/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins that are installed: found by the throwaway `millrace scan`, never opened by the
 * worker. Immutable once made; any thread may read it. */
#ifndef WORKER_CATALOG_H
#define WORKER_CATALOG_H

#include "base/json.h"
#include "model/config_def.h"

#include <millrace/plugin.h>

struct catalog_plugin {
    const char *name;
    const char *version;
    const char *library;              /* absolute path */
    const char *doc;                  /* NULL none */
    uint32_t kind;                    /* enum mr_plugin_kind */
    const char *const *aliases;       /* ended by NULL */
    const struct mr_config_key *keys; /* ended by a zeroed entry; never NULL */
    const char *exactly_once;         /* of a source, see struct mr_source; NULL not said */
    bool boundaries;                  /* of a source, likewise */
    bool emits;                       /* of a sink: it writes to topics, in transactions */
    const char *stores_offsets;       /* of a sink, see struct mr_sink; NULL it does not */
    bool checks;            /* it can judge values of its keys by itself: plugin_check.h */
    const char *java_class; /* the first alias that looks like a Java class, else name: for REST */
};

struct catalog;

/* Scan every *.so directly inside each folder and one level down; a folder may also be a library
 * itself. A library that is refused (mismatch, crash, time-out) is logged with one line and left
 * out, a folder that can't be read too; a plugin that is in two libraries is logged. exe: binary
 * to run as `exe scan LIBRARY...`; folders: ended by NULL. NULL with err: exe itself can't be
 * run, or MR_ERR_CLOSED: cancel_fd (-1 none) became readable, and no scanner is left. Blocks, 10
 * s for each library that hangs; any thread. */
struct catalog *catalog_scan(const char *exe, const char *const *folders, int cancel_fd,
                             struct mr_error *err);
void catalog_free(struct catalog **cat);

/* By name, alias, full Java class name or its last part, each without or with the kind's suffix
 * ("Connector", "Converter", "ConfigProvider", "RestExtension"). A whole name goes before one that
 * lacks a suffix, then the highest version, then the folder that was named first. kind 0 = a source
 * or a sink; MR_PLUGIN_HEADER_CONVERTER = any converter that headers may have. NULL: none. */
const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind,
                                          const char *name);
size_t catalog_count(const struct catalog *cat);
/* Sinks, sources, what REST lists besides, config providers, REST filters; by class. */
const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i);

/* --- the output of `millrace scan`, as untrusted bytes (link/scan_format.h); for catalog_scan.c,
 * tests and the fuzzer --- */

struct catalog *catalog_new(void); /* empty */

enum catalog_line_kind { CATALOG_LINE_BEGIN, CATALOG_LINE_PLUGINS, CATALOG_LINE_ERROR };

struct catalog_line {
    enum catalog_line_kind kind;
    char library[4096];
    char error[512]; /* of CATALOG_LINE_ERROR: printable */
};

/* Read one line, and add the plugins in it. MR_ERR_PROTOCOL: it breaks the format; nothing is added
 * then. out is written as far as the line could be understood: library "" when it names none. */
int catalog_read_line(struct catalog *cat, const char *line, size_t len, struct catalog_line *out,
                      struct mr_error *err);

/* Add a plugin that is described by an object of the format. For catalog_read.c. */
int catalog_add(struct catalog *cat, const char *library, const json_t *plugin,
                struct mr_error *err);
/* Forget all but the first count that were added. */
void catalog_cut(struct catalog *cat, size_t count);

#endif
