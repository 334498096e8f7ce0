#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the demos share, to be sourced. They set: dir (their folder), kafka (the script that runs one), url and path (of the
# next call), workers (pids that must live).
bold='' plain=''
if [ -t 1 ]; then bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true); fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { sed 's/^/    /'; }

die() {
    local log
    echo "demo: $*" >&2
    for log in "$dir"/worker*.log; do
        [ -e "$log" ] && { echo "The end of $log:"; tail -n 20 "$log"; } >&2
    done
    exit 1
}

finish() {
    local pid
    for pid in "${workers[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    "$kafka" stop
    return 0
}
trap finish EXIT
trap 'exit 130' INT TERM

wait_for() { # seconds what command...
    local left=$(($1 * 20)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $((left--)) -gt 0 ] || die "$what did not come"
        kill -0 "${workers[@]}" 2>/dev/null || die "a worker has ended"
        sleep 0.05
    done
}

# Print a call as one would type it, do it, print the answer.
call() {
    local word
    printf '    $ curl -s'
    for word; do [[ "$word" == *[\ \{]* ]] && printf " '%s'" "$word" || printf ' %s' "$word"; done
    printf ' %s%s\n' "$url" "$path"
    curl -s --fail-with-body "$@" "$url$path" | show || die "curl failed"
    echo
}

create() { # name config
    path=/connectors
    call -H 'Content-Type: application/json' -d "{\"name\": \"$1\", \"config\": {$2}}"
}
