/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a record that can't be processed: the task fails, or the record is skipped and counted.
 * Owner: the task's thread.
 * Spec: org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator. */
#ifndef HOST_TOLERANCE_H
#define HOST_TOLERANCE_H

#include "base/err.h"
#include "base/props.h"

#define TOLERANCE_LOG_MS 10000 /* skipped records are logged at once, then at most this often */

struct tolerance {
    bool all; /* errors.tolerance=all */
    uint64_t skipped;
    uint64_t logged; /* of them told in the log */
    int64_t next_log_ms;
};

int tolerance_init(struct tolerance *t, const struct props *config, struct mr_error *err);

/* A stage failed for one record. true: skip the record, err is cleared. false: the task must fail, and err has become the
 * failure to show: "Tolerance exceeded in error handler", then a line "Caused by: <class>: <text>".
 *
 * err    what failed; where: "VALUE_CONVERTER of JsonConverter, record t-0@15" and the like; both for the log too */
bool tolerance_skips(struct tolerance *t, struct mr_error *err, const char *where, int64_t now_ms);

#endif
