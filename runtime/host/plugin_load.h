/* SPDX-License-Identifier: Apache-2.0 */
/* Opens plugins. The only file that knows dlfcn.h. */
#ifndef HOST_PLUGIN_LOAD_H
#define HOST_PLUGIN_LOAD_H

#include "base/err.h"

#include <millrace/plugin.h>

/* A descriptor copied into the host's own layout: what the plugin's is too short for is NULL. Never
 * unloaded. */
struct plugin {
    uint32_t kind;
    const char *name;
    const char *version;
    const char *doc;
    const char *exactly_once;   /* of a source; NULL: not said */
    const char *library;        /* path */
    const char *const *aliases; /* ended by NULL, never NULL */
    struct mr_config_key *keys; /* copied, key_count and a zeroed entry */
    size_t key_count;
    size_t state_size;
    struct mr_source source; /* kind says which one is filled */
    struct mr_sink sink;
    struct mr_converter converter;
    struct mr_transform transform;
    struct mr_predicate predicate;
    struct mr_config_provider provider;
    struct mr_rest_filter filter;
};

/* Where a plugin is, as the worker has found it: a library, and a descriptor's own name in it. */
struct plugin_place {
    const char *library; /* NULL: none */
    const char *name;
};

/* "converter", "transform"; "connector" for 0 too. */
const char *plugin_load_kind_name(uint32_t kind);

/* The class that it stands in for, as users know it: the first alias that looks like one of Java's,
 * else its name. The worker's catalog has the same rule. */
const char *plugin_load_class(const struct plugin *plugin);

/* Open a library and check, in this order: ELF file of this machine, symbol, magic, ABI major and
 * minor, sizes, each descriptor, its must slots. One clear line in err; never crashes on a wrong
 * one (but its constructors run). Gives an array of *count plugins that lives until the process
 * ends. The same path is opened once. */
const struct plugin *plugin_load(const char *path, size_t *count, struct mr_error *err);
/* The plugin whose descriptor has this name, and this kind, in a library; kind 0: a source or a
 * sink. (Aliases and short names are the worker's business.) Runs code of the library's: never on
 * the control thread. */
const struct plugin *plugin_load_find(const char *path, uint32_t kind, const char *name,
                                      struct mr_error *err);

#endif
