#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the scenarios and leaves nothing running, however it ends: run.sh BUILD [WORD...]. What it starts carries a mark.
set -uo pipefail
mark=chaos-$$
sweep() {
    local file
    for file in $(grep -lszx "MILLRACE_TEST_RUN=$mark" /proc/[0-9]*/environ 2>/dev/null); do
        kill -KILL "${file//[^0-9]/}" 2>/dev/null
    done
    return 0
}
trap sweep EXIT
trap 'exit 130' INT TERM
MILLRACE_TEST_RUN=$mark "$1/tests/chaos/chaos" "${@:2}" &
wait $!
