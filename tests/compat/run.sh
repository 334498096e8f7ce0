#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make compat: the same REST requests, and then the same connectors and records, through the Java standalone worker and
# through ours; every difference is printed that is in neither list of known ones; then clients that people have, unmodified.
# run.sh BUILD [rest|records|clients [CASE...]]
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1
suite=${2:-all}
shift $(($# > 1 ? 2 : 1))
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
# Records keep the old times that some cases give them.
KAFKA_EXTRA=log.retention.ms=-1 "$kafka" start 1 >/dev/null || exit 1
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

rest() { # case...
    local cases=() name
    for name; do cases+=(--case "$name"); done
    echo "the Java worker answers ..."
    python3 tests/compat/rest_diff.py record "$java" tests/compat/rest_cases.json "$dir/java.json" ${cases[@]+"${cases[@]}"}
    echo "Millrace answers ..."
    python3 tests/compat/rest_diff.py compare "http://127.0.0.1:$port" "$dir/java.json" --meant tests/compat/known-differences.txt \
        ${cases[@]+"${cases[@]}"}
}

records() { # case...
    local servers
    servers=$("$kafka" bootstrap)
    python3 tests/compat/record_diff.py "$java" "http://127.0.0.1:$port" "${servers#*=}" "$build/tests/compat/record_topics" "$dir/records" "$@"
}

# The command that runs a client of a registry, in the array `use`; fetched once.
fetch_pypi() { # name package
    local venv=$PWD/$build/clients/$1
    if [ ! -f "$venv/done" ]; then
        python3 -m venv "$venv" && "$venv/bin/pip" -q install uv && "$venv/bin/uv" pip install -q --python "$venv/bin/python" "$2" &&
            touch "$venv/done" || return 1
    fi
    use=("$venv/bin/python" "tests/compat/clients/with_$1.py")
}

fetch_maven() { # name class
    local libs=$PWD/$build/clients/$1
    if [ ! -f "$libs/done" ]; then
        mvn -q -B -f tests/compat/clients/pom.xml dependency:copy-dependencies -DoutputDirectory="$libs" && touch "$libs/done" || return 1
    fi
    use=(java -cp "$libs/*" "tests/compat/clients/$2.java")
}

fetch_none() { # name
    use=(python3 "tests/compat/clients/as_$1.py")
}

# What a client prints of both workers must be the same.
client() { # name registry what
    local name=$1 use who url
    "fetch_$2" "$1" "$3" || return 1
    for who in java ours; do
        url=$([ "$who" = java ] && echo "$java" || echo "http://127.0.0.1:$port")
        mkdir -p "$dir/$name.$who"
        timeout 300 "${use[@]}" "$url" "$dir/$name.$who" >"$dir/$name.$who.txt" 2>"$dir/$name.$who.log" </dev/null ||
            { cat "$dir/$name.$who.log"; return 1; }
    done
    diff -u "$dir/$name.java.txt" "$dir/$name.ours.txt" && echo "$name: $(wc -l <"$dir/$name.ours.txt") lines, the same"
}

clients() { # name...
    local rc=0 name registry what
    while read -r name registry what; do
        [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
        echo "$name ..."
        client "$name" "$registry" "$what" || { echo "$name: FAILED"; rc=1; }
    done < <(grep -v '^#' tests/compat/clients/list.txt)
    return $rc
}

case $suite in
rest | records | clients) "$suite" "$@" ;;
all)
    rc=0
    rest || rc=1
    records || rc=1
    clients || rc=1
    exit $rc
    ;;
*) echo "run.sh: rest, records or clients, not $suite" >&2; exit 2 ;;
esac
