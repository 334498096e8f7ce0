/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the installed versions of a class a configuration gets. Pure; any thread.
 * Spec: KIP-891, DelegatingClassLoader.findPluginLoader. */
#ifndef WORKER_PLUGIN_PICK_H
#define WORKER_PLUGIN_PICK_H

#include "base/err.h"
#include "worker/supervisor/catalog.h"

/* kind, name: as for catalog_find. version: as ….plugin.version has it; NULL: any. near: the
 * library of the connector, whose own version of a class goes before higher ones; NULL: none. */
struct plugin_wish {
    uint32_t kind;
    const char *name;
    const char *version;
    const char *near;
};

/* 0 and *out, the highest version that is asked for. MR_ERR_NOT_FOUND: there is no such class.
 * Both with Connect's own text: MR_ERR_CONFIG, what is asked for is no version;
 * MR_ERR_UNSUPPORTED, the class is here in other versions only. */
int plugin_pick(const struct catalog *cat, const struct plugin_wish *wish,
                const struct catalog_plugin **out, struct mr_error *err);

/* The next installed version of a plugin's class after `after`, NULL: the lowest; NULL: that was
 * the highest. */
const char *plugin_pick_next(const struct catalog *cat, const struct catalog_plugin *plugin,
                             const char *after);

/* Is the i-th one in a list where each class stands once, or each version of it? false: one before
 * it says the same, as when a library lies in several folders. */
bool plugin_pick_first_of_class(const struct catalog *cat, size_t i);
bool plugin_pick_first_of_version(const struct catalog *cat, size_t i);

#endif
