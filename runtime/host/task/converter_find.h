/* SPDX-License-Identifier: Apache-2.0 */
/* From a converter's class name in a configuration to the plugin, through the list that came with the WELCOME frame. */
#ifndef HOST_CONVERTER_FIND_H
#define HOST_CONVERTER_FIND_H

#include "base/json.h"
#include "host/plugin_load.h"

/* plugins: [{"name", "kind", "library", "aliases"}]. A name matches exactly (name or alias), else by its last part after
 * a dot, with or without "Converter". The library is opened. NULL: MR_ERR_CONFIG names the class and those installed. */
const struct plugin *converter_find(const json_t *plugins, const char *name, struct mr_error *err);

#endif
