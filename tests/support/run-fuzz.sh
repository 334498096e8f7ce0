#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzzers built with clang, one after the other: run-fuzz.sh BUILD SECONDS FUZZER...
# New inputs are kept in BUILD/corpus/<what>, findings in BUILD/findings; exit 1 when there is one.
set -uo pipefail
build=$1
seconds=$2
shift 2
rc=0
mkdir -p "$build/findings"
for fuzzer in "$@"; do
    what=$(basename "$fuzzer")
    what=${what#fuzz_}
    mkdir -p "$build/corpus/$what"
    echo "fuzz: $what for $seconds s"
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$build/findings/$what-" "$build/corpus/$what" "tests/fuzz/seeds/$what" >"$build/$what.log" 2>&1 </dev/null
    if [ $? = 0 ]; then
        sed -n 's/^stat::number_of_executed_units: */      runs: /p; s/^stat::peak_rss_mb: */      MB:   /p' "$build/$what.log"
    else
        rc=1
        echo "fuzz: $what found something (build/fuzz/findings):"
        tail -n 60 "$build/$what.log"
    fi
done
exit $rc
