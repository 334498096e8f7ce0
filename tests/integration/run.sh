#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs integration tests one after another against one broker: run.sh LOGS TEST... What waits for a minute, for faults and what
# comes right after them, goes on beside the others. Each test may take 400 s. What workers and brokers wrote stays below LOGS/integration.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
logs=$1
shift
[ $# -gt 0 ] || exec "$here/support/run-tests.sh" "$logs" integration 1 400
export KAFKA_RUN=${TMPDIR:-/tmp}/millrace-check-$$
stop() { "$here/kafka/kafka.sh" logs "$logs/integration/broker" 2>/dev/null; "$here/kafka/kafka.sh" stop; }
trap stop EXIT
trap 'exit 130' INT TERM
"$here/kafka/kafka.sh" start 1 >/dev/null || exit 1
MILLRACE_TEST_KAFKA=$("$here/kafka/kafka.sh" bootstrap | cut -d= -f2)
export MILLRACE_TEST_KAFKA MILLRACE_TEST_KAFKA_FOLDER=$KAFKA_RUN
KAFKA_RUN='' BESIDE=test_exactly_once_faults "$here/support/run-tests.sh" "$logs" integration 1 400 "$@"
