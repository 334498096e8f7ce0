#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make compat: requests of all kinds, made by schemathesis (PyPI) from the document at /millrace/openapi.json, to a worker of a cluster; an
# answer of 500 or above is a failure. openapi.sh BUILD [EXAMPLES]
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1
examples=${2:-20}
kafka=tests/kafka/kafka.sh
dir=$PWD/$build/logs/openapi
export KAFKA_RUN=${TMPDIR:-/tmp}/millrace-openapi-$$
worker=''
finish() {
    [ -n "$worker" ] && kill "$worker" 2>/dev/null && wait "$worker" 2>/dev/null
    "$kafka" stop
}
trap finish EXIT
trap 'exit 130' INT TERM
rm -rf "$dir"
mkdir -p "$dir"
python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install -q schemathesis==4.32.5 || exit 1
"$kafka" start 1 >/dev/null || exit 1
port=$("$kafka" port)
cat >"$dir/worker.properties" <<END
$("$kafka" bootstrap)
group.id=openapi
listeners=http://127.0.0.1:$port
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=openapi-configs
offset.storage.topic=openapi-offsets
status.storage.topic=openapi-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
millrace.run.dir=$dir/run
END
"$build/millrace" worker "$dir/worker.properties" >"$dir/worker.log" 2>&1 &
worker=$!
for ((left = 600; left > 0; left--)); do
    curl -fs "http://127.0.0.1:$port/health" >/dev/null && break
    kill -0 "$worker" || { cat "$dir/worker.log"; exit 1; }
    sleep 0.05
done
(cd "$dir" && venv/bin/schemathesis run "http://127.0.0.1:$port/millrace/openapi.json" --checks not_a_server_error \
    --max-examples "$examples" --no-color) || exit 1
