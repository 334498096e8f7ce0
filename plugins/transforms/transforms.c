/* SPDX-License-Identifier: Apache-2.0 */
/* The library's one export: transforms and predicates of Kafka Connect, by Java's names. */
#include "transforms.h"

MR_MODULE(MR_PLUGIN(cast_key), MR_PLUGIN(cast_value), MR_PLUGIN(drop_headers),
          MR_PLUGIN(extract_field_key), MR_PLUGIN(extract_field_value), MR_PLUGIN(filter),
          MR_PLUGIN(flatten_key), MR_PLUGIN(flatten_value), MR_PLUGIN(header_from_key),
          MR_PLUGIN(header_from_value), MR_PLUGIN(hoist_field_key), MR_PLUGIN(hoist_field_value),
          MR_PLUGIN(insert_field_key), MR_PLUGIN(insert_field_value), MR_PLUGIN(insert_header),
          MR_PLUGIN(mask_field_key), MR_PLUGIN(mask_field_value), MR_PLUGIN(regex_router),
          MR_PLUGIN(replace_field_key), MR_PLUGIN(replace_field_value),
          MR_PLUGIN(set_schema_metadata_key), MR_PLUGIN(set_schema_metadata_value),
          MR_PLUGIN(timestamp_converter_key), MR_PLUGIN(timestamp_converter_value),
          MR_PLUGIN(timestamp_router), MR_PLUGIN(value_to_key), MR_PLUGIN(has_header_key),
          MR_PLUGIN(record_is_tombstone), MR_PLUGIN(topic_name_matches))
