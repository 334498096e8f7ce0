#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real PostgreSQL server of Debian's package, on loopback, for tests and benchmarks.
#
#   postgres.sh start           a new database in a folder of its own; prints its URL, with user and password
#   postgres.sh url             print that again
#   postgres.sh kill            end it at once, as in a crash
#   postgres.sh restart         start it again, on the same port
#   postgres.sh sql QUERY       print what psql gives, values only
#   postgres.sh stop            end it and remove the folder
#
# The server does not run as root: there, it gets the user postgres, or nobody.
#   POSTGRES_RUN   that folder    (millrace-postgres in the temporary directory)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=${POSTGRES_RUN:-${TMPDIR:-/tmp}/millrace-postgres}

die() { echo "postgres.sh: $*" >&2; exit 1; }

bin=$(find /usr/lib/postgresql/*/bin -name pg_ctl 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || die "PostgreSQL is missing: apt-get install postgresql (or: make deps)"
bin=$(dirname "$bin")

as_server=()
if [ "$(id -u)" = 0 ]; then
    owner=$(id -un postgres 2>/dev/null || echo nobody)
    as_server=(setpriv "--reuid=$owner" "--regid=$(id -gn "$owner")" --clear-groups env "HOME=$run")
fi

# No part of the data outlives a test: fsync is off. A killed server loses nothing by that, a killed machine would.
launch() {
    (cd "$run" && "${as_server[@]}" "$bin/pg_ctl" -s -w -t 120 -D "$run/data" -l "$run/log" \
        -o "-c listen_addresses=127.0.0.1 -c port=$(cat "$run/port") -c unix_socket_directories= -c fsync=off" start) >/dev/null 2>&1 ||
        { cat "$run/log" >&2; die "the server did not start"; }
}

start() {
    [ ! -e "$run/data" ] || die "$run is in use: postgres.sh stop"
    mkdir -p "$run"
    "$here/../kafka/kafka.sh" port >"$run/port"
    echo secret >"$run/password"
    [ ${#as_server[@]} = 0 ] || chown -R "$owner" "$run"
    (cd "$run" && "${as_server[@]}" "$bin/initdb" -N -D "$run/data" -U millrace --pwfile="$run/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C) >"$run/initdb.log" 2>&1 || { cat "$run/initdb.log" >&2; die "initdb failed"; }
    launch
    url
}

url() { echo "postgresql://millrace:secret@127.0.0.1:$(cat "$run/port")/postgres"; }

control() { (cd "$run" && "${as_server[@]}" "$bin/pg_ctl" -s -w -D "$run/data" "$@") >/dev/null 2>&1; }

case "${1:-}" in
start) start ;;
url) url ;;
kill) control -m immediate stop ;;
restart) launch ;;
sql) "$bin/psql" -X -A -t -q -v ON_ERROR_STOP=1 "$(url)" -c "$2" ;;
stop)
    control -m immediate stop || true
    rm -rf "$run"
    ;;
*) sed -n '4,13s/^# \{0,1\}//p' "$0"; exit 1 ;;
esac
