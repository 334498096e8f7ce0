/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's settings that give tasks their times: names, defaults and ranges in one place, for
 * the worker's table of settings and for the tasks. Pure. */
#ifndef MODEL_TASK_TIMES_H
#define MODEL_TASK_TIMES_H

#include "base/err.h"
#include "base/props.h"

#define TASK_TIMES_GRACEFUL "task.shutdown.graceful.timeout.ms"
#define TASK_TIMES_GRACEFUL_DEFAULT "5000"
#define TASK_TIMES_GRACEFUL_MIN 0
#define TASK_TIMES_GRACEFUL_MAX INT32_MAX

#define TASK_TIMES_FLUSH_INTERVAL "offset.flush.interval.ms"
#define TASK_TIMES_FLUSH_INTERVAL_DEFAULT "60000"
#define TASK_TIMES_FLUSH_INTERVAL_MIN 1
#define TASK_TIMES_FLUSH_INTERVAL_MAX INT64_MAX

#define TASK_TIMES_FLUSH_TIMEOUT "offset.flush.timeout.ms"
#define TASK_TIMES_FLUSH_TIMEOUT_DEFAULT "5000"
#define TASK_TIMES_FLUSH_TIMEOUT_MIN 0
#define TASK_TIMES_FLUSH_TIMEOUT_MAX INT64_MAX

/* Milliseconds; none above INT64_MAX / 4, so that a clock can be added. */
struct task_times {
    int64_t graceful_ms;
    int64_t flush_interval_ms;
    int64_t flush_timeout_ms;
};

/* From the worker's properties. MR_ERR_CONFIG names a value that is no whole number in its range;
 * out is not written then. */
int task_times_read(const struct props *worker, struct task_times *out, struct mr_error *err);

#endif
