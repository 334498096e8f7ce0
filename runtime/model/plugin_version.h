/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of plugins, and ranges of them as connector.plugin.version and its twins ask for them.
 * Pure.
 * Spec: Maven's ComparableVersion and VersionRange (3.9); KIP-891;
 * PluginUtils.connectorVersionRequirement. */
#ifndef MODEL_PLUGIN_VERSION_H
#define MODEL_PLUGIN_VERSION_H

#include "base/buf.h"

/* Order of two versions, both NUL-terminated: "1.9" before "1.10", "1.0-rc1" before "1.0", which
 * is the same as "1". < 0, 0, > 0. */
int plugin_version_compare(const char *a, const char *b);

struct plugin_version_range;

/* What a text asks for: NULL or "latest" nothing (*out is NULL then), "1.2" that version alone,
 * "[1.0,2.0)" or "[1],[3,)" as they say. MR_ERR_CONFIG with Maven's own sentence ("Unbounded
 * range: [1.0"); *out is not written then. The caller frees *out. */
int plugin_version_range_parse(const char *text, struct plugin_version_range **out,
                               struct mr_error *err);
void plugin_version_range_free(struct plugin_version_range **range);
/* NULL range: all. */
bool plugin_version_range_holds(const struct plugin_version_range *range, const char *version);
void plugin_version_range_write(const struct plugin_version_range *range,
                                struct buf *out); /* "[1.2,1.2]" */

#endif
