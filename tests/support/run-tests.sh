#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs, a bounded time each, and says what came of it.
#
#   run-tests.sh LOGS SUITE JOBS SECONDS TEST...    run these, JOBS at a time; a test's output goes to LOGS/SUITE/<name>.log
#   run-tests.sh LOGS summary SUITE...              the result that each suite left in LOGS, and the sum
#
# Tests named in BESIDE take none of the JOBS: they begin first and go on beside the others.
# A fuzzer (fuzz_<what>) gets its seeds as arguments. Exit 1 when a test failed. A program that dies without cmocka's
# summary counts as one failed test.
set -uo pipefail
logs=$1
suite=$2

result_line() { printf '%-12s %4d passed, %d failed  %3d.%d s\n' "$1" "$2" "$3" $(($4 / 1000)) $(($4 % 1000 / 100)); }
now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

summary() {
    local name passed failed ms sum_passed=0 sum_failed=0 sum_ms=0
    echo "--- time per suite"
    for name; do
        if read -r passed failed ms 2>/dev/null <"$logs/$name.result"; then
            result_line "$name" "$passed" "$failed" "$ms"
        else
            printf '%-12s did not run: see above\n' "$name"
            passed=0 failed=1 ms=0
        fi
        sum_passed=$((sum_passed + passed)) sum_failed=$((sum_failed + failed)) sum_ms=$((sum_ms + ms))
    done
    result_line all "$sum_passed" "$sum_failed" "$sum_ms"
    echo "$sum_passed passed, $sum_failed failed"
    [ "$sum_failed" = 0 ] && [ "$sum_passed" -gt 0 ]
}

seeds_of() { find "tests/fuzz/seeds/${1#fuzz_}" -type f 2>/dev/null; }

# A test that was cut off could not end what it had started: what carries its mark in the environment is of no use now.
sweep() { # mark
    local file pid
    for file in /proc/[0-9]*/environ; do
        pid=${file//[^0-9]/}
        grep -qszx "MILLRACE_TEST_RUN=$1" "$file" && [ "$pid" != "$BASHPID" ] && kill -KILL "$pid" 2>/dev/null
    done
    return 0
}

# What failed, where, and the last that its workers said: enough to judge a failure by, for whoever sees only this.
failures() { # log
    local name dir log
    sed -n 's:^\[  FAILED  \] \([^0-9 ][^ ]*\)$:\1:p' "$1" | awk '!seen[$0]++' | head -n 4 | while read -r name; do
        sed -n "/^\[ RUN      \] $name\$/,/^\[  FAILED  \] $name\$/p" "$1" | grep -v '^\[ RUN\|^\[  FAILED' | tail -n 12
        dir=$(sed -n "/^\[ RUN      \] $name\$/{n;s/^ *in //p;}" "$1")
        for log in ${dir:+"$dir"/*.log}; do
            [ -f "$log" ] && echo "$name: $(basename "$log") ends with" && grep -v ' worker.catalog ' "$log" | tail -n 8
        done
    done | cut -c 1-240
}

run_one() { # seconds test
    local name=${2#*/tests/} out from ms passed failed rc=0 args=() mark=$$-$BASHPID
    out=$logs/$suite/$(basename "$2").log
    [[ $(basename "$2") == fuzz_* ]] && mapfile -t args < <(seeds_of "$(basename "$2")")
    from=$(now_ms)
    MILLRACE_TEST_RUN=$mark timeout -k 5 "$1" "$2" ${args[@]+"${args[@]}"} >"$out" 2>&1 </dev/null || rc=$?
    ms=$(($(now_ms) - from))
    passed=$(grep -c '^\[       OK \]' "$out")
    failed=$(sed -n 's:^\[  FAILED  \] \([^0-9 ][^ ]*\).*:\1:p' "$out" | sort -u | wc -l)
    if [ "$rc" != 0 ]; then
        sweep "$mark"
        [ "$rc" = 124 ] && echo "run-tests.sh: not done after $1 s" >>"$out"
        [ "$failed" -gt 0 ] || failed=1
        printf '  FAIL  %-44s %3d.%02d s  (exit %d; %s)\n' "$name" $((ms / 1000)) $((ms % 1000 / 10)) "$rc" "$out"
        { failures "$out"; tail -n 5 "$out"; } | sed 's/^/        | /'
    else
        [[ $(basename "$2") == fuzz_* ]] && passed=1
        printf '  ok    %-44s %3d.%02d s\n' "$name" $((ms / 1000)) $((ms % 1000 / 10))
    fi
    echo "$passed $failed" >"$out.counts"
}

if [ "$suite" = summary ]; then shift 2; summary "$@"; exit; fi
jobs=$3
seconds=$4
shift 4
rm -rf "${logs:?}/$suite" "$logs/$suite.result"
mkdir -p "$logs/$suite"
from=$(now_ms)
is_beside() { [[ " ${BESIDE:-} " == *" $(basename "$1") "* ]]; }
beside=0
for test in "$@"; do
    if is_beside "$test"; then run_one "$seconds" "$test" & beside+=" $!"; fi
done
under_way() { jobs -pr | grep -cvxF -e "${beside// /$'\n'}"; }
for test in "$@"; do
    is_beside "$test" && continue
    while [ "$(under_way)" -ge "$jobs" ]; do wait -n; done
    run_one "$seconds" "$test" &
done
wait
passed=0 failed=0
while read -r p f; do passed=$((passed + p)) failed=$((failed + f)); done < <(cat "$logs/$suite"/*.counts 2>/dev/null)
ms=$(($(now_ms) - from))
result_line "$suite" "$passed" "$failed" "$ms"
echo "$passed $failed $ms" >"$logs/$suite.result"
[ "$failed" = 0 ]
