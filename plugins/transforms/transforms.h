/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of this library, each in a file of its own. */
#ifndef TRANSFORMS_TRANSFORMS_H
#define TRANSFORMS_TRANSFORMS_H

#include <millrace/plugin.h>

extern const struct mr_transform cast_key_plugin, cast_value_plugin;
extern const struct mr_transform drop_headers_plugin;
extern const struct mr_transform extract_field_key_plugin, extract_field_value_plugin;
extern const struct mr_transform filter_plugin;
extern const struct mr_transform flatten_key_plugin, flatten_value_plugin;
extern const struct mr_transform header_from_key_plugin, header_from_value_plugin;
extern const struct mr_transform hoist_field_key_plugin, hoist_field_value_plugin;
extern const struct mr_transform insert_field_key_plugin, insert_field_value_plugin;
extern const struct mr_transform insert_header_plugin;
extern const struct mr_transform mask_field_key_plugin, mask_field_value_plugin;
extern const struct mr_transform regex_router_plugin;
extern const struct mr_transform replace_field_key_plugin, replace_field_value_plugin;
extern const struct mr_transform set_schema_metadata_key_plugin, set_schema_metadata_value_plugin;
extern const struct mr_transform timestamp_converter_key_plugin, timestamp_converter_value_plugin;
extern const struct mr_transform timestamp_router_plugin;
extern const struct mr_transform value_to_key_plugin;
extern const struct mr_predicate has_header_key_plugin;
extern const struct mr_predicate record_is_tombstone_plugin;
extern const struct mr_predicate topic_name_matches_plugin;

#endif
