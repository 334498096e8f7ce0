#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Apache Kafka (KRaft) and the Java Connect worker of the same version, on loopback, for tests, benchmarks and the demo.
#
#   kafka.sh fetch                        resolve the jars once (about 55 MB from Maven Central)
#   kafka.sh start [1|3|3+1]              one broker, three, or three and a controller apart; prints bootstrap.servers=...
#   kafka.sh bootstrap                    print that line again
#   kafka.sh kill N | pause N | resume N | restart N       fault one broker (N = 1..3; the controller apart is 4)
#   kafka.sh connect NAME [GROUP]         a Java Connect worker (distributed); prints its URL. Group and topics are GROUP*, or NAME*
#   kafka.sh standalone NAME [FILE...]    a Java standalone worker with these connector files; prints its URL
#   kafka.sh use SERVERS                  no broker: this folder's Java workers are to use that Kafka
#   kafka.sh leave NAME                   ask what `connect` or `standalone` started to stop, and wait until it has
#   kafka.sh end NAME                     kill it
#   kafka.sh read TOPIC COUNT             print the values of the first COUNT records, by Kafka's console consumer
#   kafka.sh libs                         print the folder of the jars
#   kafka.sh tool CLASS [ARGS]            run one of Kafka's tools: tool org.apache.kafka.tools.TopicCommand --list ...
#   kafka.sh logs FOLDER                  copy all logs there
#   kafka.sh port                         print a free port for a server of yours
#   kafka.sh stop                         end what was started in this folder, and remove the folder
#
# Ports are free ones, found at start. Several Kafkas live beside each other, each in a folder of its own.
#   KAFKA_RUN          that folder                        (millrace-kafka in the temporary directory)
#   KAFKA_VERSION      another version than pom.xml has   (3.9 or newer)
#   KAFKA_LIBS         the jars                           (millrace/kafka-VERSION in the user's cache)
#   KAFKA_HOST         address that brokers listen on     (127.0.0.1)
#   KAFKA_PORT         of the first broker                (a free one)
#   KAFKA_AUTO_CREATE  topics spring into being by use    (true)
#   KAFKA_JAVA_OPTS    heap and compiler of the JVMs      (small and quick to start)
#   KAFKA_SECURE       port of a second listener, SASL_SSL, of a single broker; KAFKA_EXTRA must say the rest
#   KAFKA_EXTRA        more broker properties, a line each
#   CONNECT_EXTRA      more Java worker properties, a line each
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=${KAFKA_RUN:-${TMPDIR:-/tmp}/millrace-kafka}
host=${KAFKA_HOST:-127.0.0.1}
version=${KAFKA_VERSION:-$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")}
libs=${KAFKA_LIBS:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/millrace/kafka-$version}
read -r -a jvm <<<"${KAFKA_JAVA_OPTS:--Xms128m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto}"
ready_seconds=180 # bounds a fault; a busy machine takes a minute

die() { echo "kafka.sh: $*" >&2; exit 1; }

need_java() {
    command -v java >/dev/null || die "java is missing: apt-get install openjdk-17-jdk-headless (or: make deps)"
    local major
    major=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ] || die "java is version ${major:-unknown}, Kafka needs 17: apt-get install openjdk-17-jdk-headless"
}

# The jars come into a folder beside the final one, which then appears whole: several runs may fetch at once.
fetch() {
    need_java
    [ -e "$libs/.complete" ] && return
    command -v mvn >/dev/null || die "mvn is missing: apt-get install maven (or: make deps)"
    mkdir -p "$libs"
    exec 9>"$libs/.lock"
    flock 9
    if [ ! -e "$libs/.complete" ]; then
        echo "kafka.sh: fetching Apache Kafka $version from Maven Central into $libs" >&2
        mvn -q -B -f "$here/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs" >&2 ||
            die "Maven could not fetch Apache Kafka $version: see above"
        touch "$libs/.complete"
    fi
    exec 9>&-
}

# --- ports -------------------------------------------------------------------------------------------------------------

# All local ports of TCP sockets in any state, as hexadecimal words.
ports_in_use() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | sed -n 's/^ *[0-9]*: [0-9A-F]*:\([0-9A-F]\{4\}\) .*/\1/p'; }

ports_listened_on() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | sed -n 's/^ *[0-9]*: [0-9A-F]*:\([0-9A-F]\{4\}\) [0-9A-F]*:0000 0A .*/\1/p'; }

# Below the range that the kernel gives to outgoing connections, so that none of these takes it before the server does.
free_ports() { # count
    local used found=() port hex
    used=" $(ports_in_use | tr '\n' ' ') "
    while [ ${#found[@]} -lt "$1" ]; do
        port=$((20000 + RANDOM % 12000))
        printf -v hex '%04X' "$port"
        [[ "$used" == *" $hex "* ]] && continue
        used+="$hex "
        found+=("$port")
    done
    echo "${found[@]}"
}

# --- processes ---------------------------------------------------------------------------------------------------------

# A pid alone may have been given to somebody else since: the kernel's start time tells.
start_time() { sed -n 's/^[0-9]* (.*) //p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
is_zombie() { [ "$(sed -n 's/^[0-9]* (.*) //p' "/proc/$1/stat" 2>/dev/null | cut -c1)" = Z ]; }

alive() { # name
    local pid born
    [ -e "$run/$1.pid" ] || return 1
    read -r pid born <"$run/$1.pid"
    [ -n "$born" ] && [ "$(start_time "$pid")" = "$born" ] && ! is_zombie "$pid"
}

signal() { # signal name
    alive "$2" || die "$2 is not running in $run"
    local pid
    read -r pid _ <"$run/$2.pid"
    kill "-$1" "$pid"
}

launch() { # name, then java arguments
    local name=$1 pid
    shift
    [ -e "$run/$name.log" ] && cat "$run/$name.log" >>"$run/$name.earlier.log"
    setsid java "${jvm[@]}" -Dlog4j2.configurationFile="$run/log4j2.properties" \
        -Dlog4j.configuration="file:$run/log4j.properties" -Dkafka.logs.dir="$run" -cp "$libs/*" "$@" \
        >"$run/$name.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid $(start_time "$pid")" >"$run/$name.pid"
}

wait_until_gone() { # name
    local left=$((60 * 20))
    while alive "$1"; do
        [ $((left--)) -gt 0 ] || die "$1 does not end"
        sleep 0.05
    done
}

lost_port() { grep -qs 'Address already in use' "$run"/$1.log; } # name, or a pattern

# The command succeeds in time, or the process has died, or the time is over.
wait_ready() { # name command...
    local name=$1 left=$((ready_seconds * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        alive "$name" || { lost_port "$name" || tail -n 5 "$run/$name.log" >&2; return 1; }
        [ $((left--)) -gt 0 ] || { echo "kafka.sh: $name is not ready after $ready_seconds s" >&2; return 1; }
        sleep 0.05
    done
}

leave() { # name
    signal TERM "$1"
    wait_until_gone "$1"
}

end() { # name
    alive "$1" || return 0
    local pid
    read -r pid _ <"$run/$1.pid"
    kill -KILL "$pid" 2>/dev/null || true
    wait_until_gone "$1"
}

# --- brokers -----------------------------------------------------------------------------------------------------------

started() { [ -e "$run/bootstrap.servers" ] || die "no Kafka was started in $run"; }
bootstrap() { started; echo "bootstrap.servers=$(cat "$run/bootstrap.servers")"; }
broker_ready() { grep -q 'Kafka Server started' "$run/broker-$1.log"; }
broker_count() { ls "$run" | grep -c '^broker-[0-9]\.properties$'; }

log_config() {
    cat >"$run/log4j2.properties" <<END
status = error
appender.o.type = Console
appender.o.name = o
appender.o.layout.type = PatternLayout
appender.o.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} %m%n
rootLogger.level = ${KAFKA_LOG_LEVEL:-info}
rootLogger.appenderRef.o.ref = o
END
    # Before Kafka 4: another library for the same.
    cat >"$run/log4j.properties" <<END
log4j.rootLogger=${KAFKA_LOG_LEVEL:-info}, o
log4j.appender.o=org.apache.log4j.ConsoleAppender
log4j.appender.o.layout=org.apache.log4j.PatternLayout
log4j.appender.o.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} %m%n
END
}

broker_config() { # node count port controller-port quorum
    local copies=$(($2 < 3 ? 1 : 3)) in_sync=$(($2 < 3 ? 1 : 2)) secure=${KAFKA_SECURE:+,SECURE://localhost:$KAFKA_SECURE}
    local roles=broker,controller listeners=PLAINTEXT://$host:$3,CONTROLLER://$host:$4$secure inter=PLAINTEXT
    if [ "$2" = 3+1 ]; then
        if [ "$1" = 4 ]; then roles=controller listeners=CONTROLLER://$host:$4 inter=; else roles=broker listeners=PLAINTEXT://$host:$3; fi
    fi
    cat >"$run/broker-$1.properties" <<END
process.roles=$roles
node.id=$1
listeners=$listeners
advertised.listeners=$listeners
controller.listener.names=CONTROLLER
${inter:+inter.broker.listener.name=$inter}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL
controller.quorum.bootstrap.servers=$5
log.dirs=$run/data-$1
auto.create.topics.enable=${KAFKA_AUTO_CREATE:-true}
default.replication.factor=$copies
min.insync.replicas=$in_sync
offsets.topic.replication.factor=$copies
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$in_sync
transaction.state.log.num.partitions=3
share.coordinator.state.topic.replication.factor=$copies
share.coordinator.state.topic.min.isr=$in_sync
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=16777216
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
${KAFKA_EXTRA:-}
END
}

format() { # node arguments...
    local node=$1
    shift
    java "${jvm[@]}" -Dlog4j2.configurationFile="$run/log4j2.properties" -cp "$libs/*" kafka.tools.StorageTool format "$@" \
        -t MkU3OEVBNTcwNTJENDM2Qk -c "$run/broker-$node.properties" >>"$run/format.log" 2>&1 ||
        { tail -n 5 "$run/format.log" >&2; die "could not format the folder of broker $node: see $run/format.log"; }
}

try_start() { # count
    local count=$1 nodes=$(($1)) node ports quorum='' controllers='' servers=''
    local dirs=('' Qm9keTAwMDAwMDAwMDAwMQ Qm9keTAwMDAwMDAwMDAwMg Qm9keTAwMDAwMDAwMDAwMw)
    read -r -a ports <<<"$(free_ports $((nodes * 2)))"
    ports[0]=${KAFKA_PORT:-${ports[0]}}
    for ((node = 1; node <= nodes; node++)); do
        [ "$node" = 4 ] || servers+=${servers:+,}$host:${ports[node * 2 - 2]}
        [ "$count" = 3+1 ] && [ "$node" != 4 ] || quorum+=${quorum:+,}$host:${ports[node * 2 - 1]}
        controllers+=${controllers:+,}$node@$host:${ports[node * 2 - 1]}:${dirs[node]-}
    done
    for ((node = 1; node <= nodes; node++)); do
        broker_config "$node" "$count" "${ports[node * 2 - 2]}" "${ports[node * 2 - 1]}" "$quorum"
        case $count,$node in
        1,1 | 3+1,4) format "$node" --standalone ;;
        3+1,*) format "$node" --no-initial-controllers ;;
        *) format "$node" --initial-controllers "$controllers" ;;
        esac
    done
    for ((node = nodes; node >= 1; node--)); do launch "broker-$node" kafka.Kafka "$run/broker-$node.properties"; done
    for ((node = nodes; node >= 1; node--)); do wait_ready "broker-$node" broker_ready "$node" || return 1; done
    echo "$servers" >"$run/bootstrap.servers"
}

not_running() {
    local node
    for node in 1 2 3 4; do
        alive "broker-$node" || continue
        [ -e "$run/bootstrap.servers" ] || die "a Kafka is being started in $run: wait for it, or set KAFKA_RUN to another folder"
        die "a Kafka runs in $run already, at $(cat "$run/bootstrap.servers"): use it, end it by '$0 stop', or set KAFKA_RUN to another folder"
    done
}

# A folder of our own. What a Kafka left there that was killed, or did not start, is removed.
take_folder() {
    if [ -e "$run" ] && [ -n "$(ls -A "$run")" ] && [ ! -e "$run/.millrace-kafka" ]; then
        die "$run is not a folder of mine: KAFKA_RUN names another"
    fi
    stop
    mkdir -p "$run"
    touch "$run/.millrace-kafka"
}

port_is_free() {
    local hex
    [[ "$1" =~ ^[0-9]+$ ]] && [ "$1" -ge 1 ] && [ "$1" -le 65535 ] || die "KAFKA_PORT is a number from 1 to 65535, not '$1'"
    printf -v hex '%04X' "$1"
    [[ " $(ports_listened_on | tr '\n' ' ') " != *" $hex "* ]] || die "port $1 is in use by another process: end it, or set KAFKA_PORT to another"
}

start() {
    local count=${1:-1} try node
    [[ "$count" =~ ^(1|3|3\+1)$ ]] || die "start: 1 or 3 brokers, or 3+1, not $count"
    fetch
    not_running
    [ -z "${KAFKA_PORT:-}" ] || port_is_free "$KAFKA_PORT"
    take_folder
    for try in 1 2 3; do
        log_config
        if try_start "$count"; then bootstrap; return; fi
        for ((node = 1; node <= $((count)); node++)); do end "broker-$node"; done
        # Somebody took a port between the look and the bind: look again. Anything else would fail again.
        lost_port 'broker-*' || die "Kafka did not start: see $run/broker-1.log"
        rm -rf "$run"/*
    done
    die "others took the ports of Kafka in each of $try tries"
}

restart() {
    started
    [ -e "$run/broker-$1.properties" ] || die "there is no broker $1"
    alive "broker-$1" && { end "broker-$1"; }
    launch "broker-$1" kafka.Kafka "$run/broker-$1.properties"
    wait_ready "broker-$1" broker_ready "$1" || die "broker $1 did not come back: see $run/broker-$1.log"
}

# --- the Java Connect worker -------------------------------------------------------------------------------------------

worker_config() { # name port
    cat <<END
bootstrap.servers=$(cat "$run/bootstrap.servers")
listeners=HTTP://127.0.0.1:$2
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
plugin.path=$run/plugins
plugin.discovery=service_load
offset.flush.interval.ms=1000
config.providers=file,env,directory
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.directory.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
END
}

cluster_config() { # group
    local copies=1
    [ "$(broker_count)" -ge 3 ] && copies=3
    cat <<END
group.id=$1
config.storage.topic=$1-configs
offset.storage.topic=$1-offsets
status.storage.topic=$1-status
config.storage.replication.factor=$copies
offset.storage.replication.factor=$copies
offset.storage.partitions=5
status.storage.replication.factor=$copies
exactly.once.source.support=enabled
scheduled.rebalance.max.delay.ms=0
END
}

java_worker() { # name class; the mode's own configuration on stdin; then connector files
    local name=$1 class=$2 port
    shift 2
    started
    [[ "$name" =~ ^[a-z0-9][a-z0-9_-]*$ ]] || die "a worker's name is made of a-z, 0-9, _ and -, not '$name'"
    alive "$name" && die "$name is running already"
    mkdir -p "$run/plugins"
    port=$(free_ports 1)
    { worker_config "$name" "$port"; cat; echo "${CONNECT_EXTRA:-}"; } >"$run/$name.properties"
    launch "$name" "$class" "$run/$name.properties" "$@"
    wait_ready "$name" curl -fs "http://127.0.0.1:$port/health" || die "$name did not start: see $run/$name.log"
    echo "http://127.0.0.1:$port"
}

use() { # servers
    take_folder
    log_config
    echo "$1" >"$run/bootstrap.servers"
}

connect() { cluster_config "${2:-$1}" | java_worker "$1" org.apache.kafka.connect.cli.ConnectDistributed; }

standalone() {
    local name=$1
    shift
    echo "offset.storage.file.filename=$run/$name.offsets" |
        java_worker "$name" org.apache.kafka.connect.cli.ConnectStandalone "$@"
}

# --- the rest ----------------------------------------------------------------------------------------------------------

tool() { need_java; exec java "${jvm[@]}" -Dlog4j2.level=error -cp "$libs/*" "$@"; }

read_topic() {
    started
    tool org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$(cat "$run/bootstrap.servers")" \
        --topic "$1" --from-beginning --max-messages "$2" --timeout-ms 30000
}

logs() {
    mkdir -p "$1"
    find "$run" -maxdepth 1 -name '*.log' -exec cp {} "$1"/ \;
}

stop() {
    [ -e "$run/.millrace-kafka" ] || return 0
    local file name
    for file in "$run"/*.pid; do
        [ -e "$file" ] || continue
        name=$(basename "$file" .pid)
        end "$name"
    done
    rm -rf "$run"
}

usage() { sed -n '3,31s/^# \{0,1\}//p' "$0"; }
want() { [ "$1" -ge "$2" ] || { usage >&2; exit 1; }; }

case ${1:-help} in
fetch) fetch ;;
start) start "${2:-1}" ;;
bootstrap) bootstrap ;;
port) free_ports 1 ;;
kill) want $# 2; signal KILL "broker-$2"; wait_until_gone "broker-$2" ;;
pause) want $# 2; signal STOP "broker-$2" ;;
resume) want $# 2; signal CONT "broker-$2" ;;
restart) want $# 2; restart "$2" ;;
connect) want $# 2; connect "$2" "${3:-}" ;;
standalone) want $# 2; shift; standalone "$@" ;;
use) want $# 2; use "$2" ;;
leave) want $# 2; leave "$2" ;;
end) want $# 2; end "$2" ;;
read) want $# 3; read_topic "$2" "$3" ;;
libs) fetch; echo "$libs" ;;
tool) want $# 2; shift; tool "$@" ;;
logs) want $# 2; logs "$2" ;;
stop) stop ;;
help | -h | --help) usage ;;
*) usage >&2; exit 1 ;;
esac
