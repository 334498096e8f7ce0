#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make compat: the same REST requests, and then the same connectors and records, through the Java standalone worker and
# through ours; every difference is printed that is in neither list of known ones; then clients that people have, unmodified.
# Then the same requests through a follower of three Java workers, and of three of ours.
# run.sh BUILD [rest|records|clients|follower [CASE...]]
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1
suite=${2:-all}
shift $(($# > 1 ? 2 : 1))
kafka=tests/kafka/kafka.sh
dir=$PWD/$build/logs/compat
export KAFKA_RUN=${TMPDIR:-/tmp}/millrace-compat-$$
workers=()
finish() {
    local pid
    for pid in "${workers[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    "$kafka" logs "$dir" 2>/dev/null
    "$kafka" stop
}
trap finish EXIT
trap 'exit 130' INT TERM
rm -rf "$dir"
mkdir -p "$dir"
# Records keep the old times that some cases give them.
KAFKA_EXTRA=log.retention.ms=-1 "$kafka" start 1 >/dev/null || exit 1

# Ours, with what a Java worker of kafka.sh has, but for its place and its group; sets url.
start_ours() { # name verb java-name
    local port left
    port=$("$kafka" port)
    url=http://127.0.0.1:$port
    sed -e '/^listeners=/d; /^plugin\./d' -e "s/^\(group.id\|[a-z]*\.storage\.topic\)=java/\1=ours/" \
        -e "s:^offset.storage.file.filename=.*:offset.storage.file.filename=$dir/$1.offsets:" \
        "$KAFKA_RUN/$3.properties" >"$dir/$1.properties"
    printf 'listeners=%s\nmillrace.run.dir=%s\n' "$url" "$dir/$1.run" >>"$dir/$1.properties"
    "$build/millrace" "$2" "$dir/$1.properties" >"$dir/$1.log" 2>&1 &
    workers+=($!)
    for ((left = 600; left > 0; left--)); do
        curl -fs "$url/health" >/dev/null && return
        kill -0 "${workers[-1]}" || break
        sleep 0.05
    done
    cat "$dir/$1.log"
    return 1
}

# Once: the standalone workers, java and ours.
standalone() {
    [ -n "${java:-}" ] && return
    java=$("$kafka" standalone java) && start_ours worker standalone java && ours=$url
}

# What Java answers to the cases of a file, and then what ours answers.
beside() { # name java ours cases java's-options... -- ours'-options...
    local name=$1 at=$2 us=$3 cases=$4 more=()
    shift 4
    while [ "$1" != -- ]; do more+=("$1") && shift; done
    shift
    echo "$name: the Java worker answers ..."
    python3 tests/compat/rest_diff.py record "$at" "$cases" "$dir/$name.json" ${more[@]+"${more[@]}"}
    echo "$name: Millrace answers ..."
    python3 tests/compat/rest_diff.py compare "$us" "$dir/$name.json" --meant tests/compat/known-differences.txt "$@"
}

chosen() { # case...: in the array `only`
    local name
    only=()
    for name; do only+=(--case "$name"); done
}

rest() { # case...
    local only
    standalone || return 1
    chosen "$@"
    # One at a time: requests at the same time have Java's standalone herder lock itself up.
    beside standalone "$java" "$ours" tests/compat/rest_golden.json ${only[@]+"${only[@]}"} -- --jobs 4 \
        --meant tests/compat/known-standalone-differences.txt ${only[@]+"${only[@]}"}
}

# Who leads may not send it on and says that there is none; who follows refuses. Sets leader and follower.
who_leads() { # url...
    local at
    leader='' follower=''
    for at; do
        case $(curl -s -o /dev/null -w '%{http_code}' -X DELETE "$at/connectors/none?forward=false") in
        404) leader=$at ;;
        409) follower=$at ;;
        esac
    done
    [ -n "$leader" ] && [ -n "$follower" ] || { echo "of $* nobody leads, or nobody follows"; return 1; }
}

follower() { # case...
    local only name java_urls=() our_urls=() url leader follower java_leader java_follower
    chosen "$@"
    for name in 1 2 3; do java_urls+=("$("$kafka" connect "java-$name" java)") || return 1; done
    for name in 1 2 3; do start_ours "ours-$name" worker "java-$name" && our_urls+=("$url") || return 1; done
    who_leads "${java_urls[@]}" || return 1
    java_leader=$leader java_follower=$follower
    who_leads "${our_urls[@]}" || return 1
    beside follower "$java_follower" "$follower" tests/compat/rest_golden.json --jobs 4 --leader "$java_leader" ${only[@]+"${only[@]}"} -- \
        --jobs 4 ${only[@]+"${only[@]}"}
}

records() { # case...
    local servers
    standalone || return 1
    servers=$("$kafka" bootstrap)
    python3 tests/compat/record_diff.py "$java" "$ours" "${servers#*=}" "$build/tests/compat/record_topics" "$dir/records" "$@"
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
        url=$([ "$who" = java ] && echo "$java" || echo "$ours")
        mkdir -p "$dir/$name.$who"
        timeout 300 "${use[@]}" "$url" "$dir/$name.$who" >"$dir/$name.$who.txt" 2>"$dir/$name.$who.log" </dev/null ||
            { cat "$dir/$name.$who.log"; return 1; }
    done
    diff -u "$dir/$name.java.txt" "$dir/$name.ours.txt" && echo "$name: $(wc -l <"$dir/$name.ours.txt") lines, the same"
}

clients() { # name...
    local rc=0 name registry what
    standalone || return 1
    while read -r name registry what; do
        [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
        echo "$name ..."
        client "$name" "$registry" "$what" || { echo "$name: FAILED"; rc=1; }
    done < <(grep -v '^#' tests/compat/clients/list.txt)
    return $rc
}

case $suite in
rest | records | clients | follower) "$suite" "$@" ;;
all)
    rc=0
    for part in rest records clients follower; do
        SECONDS=0
        "$part" || rc=1
        echo "$part: $SECONDS s"
    done
    exit $rc
    ;;
*) echo "run.sh: rest, records, clients or follower, not $suite" >&2; exit 2 ;;
esac
