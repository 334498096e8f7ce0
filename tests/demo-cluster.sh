#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make demo-cluster: three workers share the work of one cluster; the one that reads the source is killed while it works, and
# another goes on, with nothing lost (it counts). Ends by itself, stops what it started, and leaves its files in
# build/demo-cluster.
#
#   demo-cluster.sh MILLRACE        the binary
set -euo pipefail
cd "$(dirname "$0")/.."
millrace=$1
dir=$PWD/build/demo-cluster
kafka=tests/kafka/kafka.sh
export KAFKA_RUN=$dir/kafka
workers=()
. tests/demo-kit.sh

lines=2000 # of each of the two halves
urls=()

worker() { # number: of the worker whose name its port is
    local port
    port=$("$kafka" port)
    cat >"$dir/worker$1.properties" <<PROPERTIES
bootstrap.servers=$servers
group.id=demo
config.storage.topic=demo-configs
offset.storage.topic=demo-offsets
status.storage.topic=demo-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
listeners=http://127.0.0.1:$port
session.timeout.ms=6000
heartbeat.interval.ms=2000
scheduled.rebalance.max.delay.ms=1000
offset.flush.interval.ms=1000
millrace.run.dir=$dir/run$1
PROPERTIES
    echo "    \$ $millrace worker build/demo-cluster/worker$1.properties"
    "$millrace" worker "$dir/worker$1.properties" >"$dir/worker$1.log" 2>&1 &
    workers+=("$!")
    urls+=("http://127.0.0.1:$port")
}

ready() { curl -fs "$1/health"; }
running() { # connector tasks
    [ "$(curl -fs "$url/connectors/$1/status" | grep -o '"id":[0-9]*,"state":"RUNNING"' | wc -l)" = "$2" ]
}
reader() { # number of the worker that the source's task is on, by what $url says
    local id i
    id=$(curl -fs "$url/connectors/demo-source/status" | sed -n 's/.*"id":0,"state":"[A-Z]*","worker_id":"\([^"]*\)".*/\1/p')
    for i in 0 1 2; do [ "${urls[i]}" = "http://$id" ] && echo "$i"; done
    return 0
}
moved() { # from
    local now
    now=$(reader)
    [ -n "$now" ] && [ "$now" != "$1" ] && running demo-source 1
}
arrived() { [ "$(sort -u "$dir/out.txt" | wc -l)" = "$1" ]; }

"$kafka" stop
rm -rf "$dir"
mkdir -p "$dir"

say "1. A real Apache Kafka"
"$kafka" start 1 >/dev/null || die "Kafka did not start"
servers=$("$kafka" bootstrap | cut -d= -f2)
echo "    listens on $servers"

say "2. Three workers of one group"
for i in 1 2 3; do worker "$i"; done
for i in 0 1 2; do wait_for 30 "worker ${urls[i]}" ready "${urls[i]}"; done

say "3. A source and a sink, created on the first; any worker answers for all"
url=${urls[0]}
seq 1 $lines >"$dir/in.txt"
create demo-source "\"connector.class\": \"FileStreamSource\", \"file\": \"$dir/in.txt\", \"topic\": \"demo\""
create demo-sink "\"connector.class\": \"FileStreamSink\", \"file\": \"$dir/out.txt\", \"topics\": \"demo\", \"tasks.max\": \"2\""
url=${urls[2]}
wait_for 30 "the source" running demo-source 1
wait_for 30 "the sink" running demo-sink 2
wait_for 30 "line $lines" arrived $lines
path=/connectors/demo-source/status
call
path=/connectors/demo-sink/status
call

say "4. The worker that reads the file is killed, while the file grows"
victim=$(reader)
[ -n "$victim" ] || die "the source runs nowhere"
echo "    \$ kill -9 ${workers[victim]}     (${urls[victim]})"
kill -9 "${workers[victim]}"
wait "${workers[victim]}" 2>/dev/null || true
unset "workers[victim]"
url=${urls[(victim + 1) % 3]}
seq $((lines + 1)) $((2 * lines)) >>"$dir/in.txt"
from=$SECONDS
wait_for 60 "another reader" moved "$victim"
wait_for 60 "line $((2 * lines))" arrived $((2 * lines))
path=/connectors/demo-source/status
call
echo "    It went on after $((SECONDS - from)) s: session.timeout.ms, 6 s here, and scheduled.rebalance.max.delay.ms, 1 s."

say "5. Nothing is lost"
written=$(wc -l <"$dir/out.txt") kinds=$(sort -un "$dir/out.txt" | wc -l)
echo "    in.txt has $((2 * lines)) lines, out.txt has $kinds different ones of them, $((written - kinds)) of them twice:"
echo "    at least once. What was delivered behind the last stored position is read again; \"Exactly once\" in README.md avoids it."
cmp -s <(sort -n "$dir/in.txt") <(sort -un "$dir/out.txt") || die "in.txt and out.txt differ"

say "What you can look at now"
cat <<END
    build/demo-cluster/in.txt              what the source read
    build/demo-cluster/out.txt             what the sink wrote
    build/demo-cluster/worker1.properties  the settings of a worker
    build/demo-cluster/worker1.log         what it said
    Kafka and the workers have been stopped. README.md has "A cluster in one minute".
END
