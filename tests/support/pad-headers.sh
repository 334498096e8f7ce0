#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pad-headers.sh OUT: the public headers with 8 bytes behind every struct that may grow, in OUT/millrace. A build against them
# stands for a later Millrace of the same ABI major; plugin binaries of today must run on it (tests/integration/test_abi.c).
#
# A struct of the headers that is in neither list is an error: whoever adds one decides whether plugins may index, copy, size
# or create it.
set -euo pipefail
out=$1
here=$(cd "$(dirname "$0")/../.." && pwd)

growing="mr_config_key mr_error mr_host mr_plugin mr_source mr_sink mr_converter mr_transform mr_predicate mr_module mr_arena mr_header
         mr_record mr_batch mr_schema mr_schema_spec mr_task mr_pattern mr_partition mr_partition_list mr_offset_change mr_offset_list
         mr_emitter mr_lookup mr_request mr_config_provider mr_rest_filter"
frozen="mr_value mr_pair mr_struct mr_decimal mr_param mr_schema_field mr_span mr_pattern_search"

mkdir -p "$out/millrace"
for header in "$here"/include/millrace/*.h; do
    awk -v growing=" $(echo $growing) " -v frozen=" $(echo $frozen) " '
        /^struct [a-z_]+ \{/ {
            name = $2
            if (!index(growing, " " name " ") && !index(frozen, " " name " ")) {
                print "pad-headers.sh: " FILENAME ": struct " name " is in neither list" > "/dev/stderr"
                bad = 1
            }
        }
        /^};/ && name != "" {
            if (index(growing, " " name " "))
                print "    char mr_padding[8];"
            name = ""
        }
        { print }
        END { exit bad }' "$header" >"$out/millrace/$(basename "$header").new"
    # An unchanged header keeps its time, and what was built with it.
    if cmp -s "$out/millrace/$(basename "$header").new" "$out/millrace/$(basename "$header")"; then
        rm "$out/millrace/$(basename "$header").new"
    else
        mv "$out/millrace/$(basename "$header").new" "$out/millrace/$(basename "$header")"
    fi
done
