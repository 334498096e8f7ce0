#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make demo: lines of a file travel through a source plugin, in a process of its own, into a real Kafka topic, and through a
# sink plugin out again into another file; everything is managed with curl. Ends by itself, stops what it started, and
# leaves its files in build/demo.
#
#   demo.sh MILLRACE        the binary
set -euo pipefail
cd "$(dirname "$0")/.."
millrace=$1
dir=$PWD/build/demo
kafka=tests/kafka/kafka.sh
export KAFKA_RUN=$dir/kafka
workers=()
. tests/demo-kit.sh

state_is() { curl -s "$url/connectors/$1/status" | grep -q '"connector":{"state":"RUNNING".*"tasks":\[{"id":0,"state":"RUNNING"'; }
sink_has() { [ "$(wc -l <"$dir/out.txt")" -ge "$1" ]; }

hosts() { # the processes of connectors: pid and name
    local pid args
    for pid in $(cat "/proc/$worker/task/"*/children); do
        mapfile -d '' -t args <"/proc/$pid/cmdline" 2>/dev/null || continue
        [ "${args[1]:-}" = host ] && echo "process $pid: millrace host ${args[2]:-}"
    done
    return 0
}

"$kafka" stop
rm -rf "$dir"
mkdir -p "$dir"

say "1. A real Apache Kafka"
"$kafka" start 1 >/dev/null || die "Kafka did not start"
servers=$("$kafka" bootstrap | cut -d= -f2)
echo "    listens on $servers"

say "2. A Millrace worker"
port=$("$kafka" port)
url=http://127.0.0.1:$port
cat >"$dir/worker.properties" <<END
bootstrap.servers=$servers
listeners=$url
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=$dir/offsets
offset.flush.interval.ms=1000
millrace.run.dir=$dir/run
END
echo "    \$ $millrace standalone build/demo/worker.properties"
"$millrace" standalone "$dir/worker.properties" >"$dir/worker.log" 2>&1 &
worker=$!
workers=("$worker")
wait_for 20 "an answer of $url" curl -fs "$url/"
path=/
call

say "3. A source and a sink, by the JSON that a Java worker takes"
printf '%s\n' 'The first line was in the file before.' >"$dir/in.txt"
create demo-source "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSourceConnector\", \"file\": \"$dir/in.txt\", \"topic\": \"demo\""
create demo-sink "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSinkConnector\", \"file\": \"$dir/out.txt\", \"topics\": \"demo\""
wait_for 20 "the source" state_is demo-source
wait_for 20 "the sink" state_is demo-sink
path=/connectors/demo-source/status
call
echo "    Each connector has a process of its own:"
hosts | show

say "4. Lines are appended to build/demo/in.txt"
for line in 'Through a plugin into Kafka,' 'out of Kafka through a plugin,' 'millrace: the stream that drives the wheel. ÄÖÜ €'; do
    echo "    \$ echo '$line' >>build/demo/in.txt"
    echo "$line" >>"$dir/in.txt"
done
wait_for 20 "the last line" sink_has 4
echo
echo "    build/demo/out.txt, written by the sink:"
show <"$dir/out.txt"
echo
echo "    topic demo, read by Kafka's own console consumer:"
"$kafka" read demo 4 2>/dev/null | tee "$dir/topic.txt" | show

say "5. The source's process is killed; its work goes on"
victim=$(hosts | sed -n 's/^process \([0-9]*\): millrace host demo-source$/\1/p')
[ -n "$victim" ] || die "the source has no process"
echo "    \$ kill -9 $victim"
kill -9 "$victim"
echo 'This line came after the kill.' >>"$dir/in.txt"
wait_for 20 "the line after the kill" grep -q 'after the kill' "$dir/out.txt"
tail -n 1 "$dir/out.txt" | show
hosts | show

say "6. Pause, and in order out"
path=/connectors/demo-source/pause
call -X PUT
path=/connectors/demo-source/status
wait_for 20 "the pause" bash -c "curl -s $url$path | grep -q '\"tasks\":.*PAUSED'"
call
path=/connectors
call
kill "$worker"
if wait "$worker"; then echo "    The worker has stopped in order."; else die "the worker ended with exit code $?"; fi
workers=()

cmp -s "$dir/in.txt" "$dir/out.txt" || echo "    (out.txt holds lines twice where the killed process had not yet told Kafka what it wrote.)"
say "What you can look at now"
cat <<END
    build/demo/in.txt             the lines that the source read
    build/demo/topic.txt          the same lines, as they were in the topic
    build/demo/out.txt            the same lines, as the sink wrote them
    build/demo/worker.properties  the worker's settings
    build/demo/worker.log         what the worker said
    build/demo/offsets            how far the source has read
    Kafka and the worker have been stopped. README.md goes on from here; make check runs the tests.
END
