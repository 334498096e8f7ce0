#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make compat: one sequence of REST requests to the Java standalone worker and to ours; every difference is printed that is
# not in known-differences.txt. run.sh BUILD [CASE...]
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
kafka=tests/kafka/kafka.sh
dir=$PWD/$build/logs/compat
export KAFKA_RUN=${TMPDIR:-/tmp}/millrace-compat-$$
worker=''
finish() {
    [ -n "$worker" ] && kill "$worker" 2>/dev/null && wait "$worker" 2>/dev/null
    "$kafka" logs "$dir" 2>/dev/null
    "$kafka" stop
}
trap finish EXIT
trap 'exit 130' INT TERM
rm -rf "$dir"
mkdir -p "$dir"
"$kafka" start 1 >/dev/null || exit 1
java=$("$kafka" standalone java) || exit 1
port=$("$kafka" port)
cat >"$dir/worker.properties" <<END
$("$kafka" bootstrap)
listeners=http://127.0.0.1:$port
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename=$dir/offsets
offset.flush.interval.ms=1000
millrace.run.dir=$dir/run
END
"$build/millrace" standalone "$dir/worker.properties" >"$dir/worker.log" 2>&1 &
worker=$!
for ((left = 200; left > 0; left--)); do
    curl -fs "http://127.0.0.1:$port/" >/dev/null && break
    kill -0 "$worker" || { cat "$dir/worker.log"; exit 1; }
    sleep 0.05
done

cases=()
for name; do cases+=(--case "$name"); done
echo "the Java worker answers ..."
python3 tests/compat/rest_diff.py record "$java" tests/compat/rest_cases.json "$dir/java.json" ${cases[@]+"${cases[@]}"}
echo "Millrace answers ..."
python3 tests/compat/rest_diff.py compare "http://127.0.0.1:$port" "$dir/java.json" --meant tests/compat/known-differences.txt \
    ${cases[@]+"${cases[@]}"}
