/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a record that can't be processed: it is tried again, reported, and then skipped
 * and counted, or the task fails.
 * Owner: the task's thread.
 * Spec: org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator, LogReporter. */
#ifndef HOST_TOLERANCE_H
#define HOST_TOLERANCE_H

#include "base/err.h"
#include "base/props.h"
#include "host/data/record_arena.h"

#define TOLERANCE_LOG_MS 10000 /* skipped records are logged at once, then at most this often */

/* One record that a stage could not process.
 *
 * stage       Connect's name: "VALUE_CONVERTER"
 * class_name  what ran in it */
struct failure {
    const char *stage;
    const char *class_name;
    const struct record *rec;
};

struct dead_letters;

struct tolerance {
    bool all;                  /* errors.tolerance=all */
    bool log;                  /* errors.log.enable */
    bool log_records;          /* errors.log.include.messages */
    int64_t retry_ms;          /* errors.retry.timeout; -1: for ever */
    int64_t retry_delay_ms;    /* errors.retry.delay.max.ms */
    const char *connector;     /* borrowed */
    int task;                  /* of it */
    struct dead_letters *dead; /* where such records go; NULL: nowhere. Borrowed */
    uint64_t skipped;
    uint64_t logged; /* of them told in the log */
    int64_t next_log_ms;
};

/* Read errors.*; what is borrowed is the caller's to fill in. */
int tolerance_init(struct tolerance *t, const struct props *config, struct mr_error *err);

/* A stage failed for one record for good: it is reported (log, dead letters). true: skip it, err is
 * cleared. false: the task must fail, and err has become the failure to show: "Tolerance exceeded
 * in error handler", then a line "Caused by: <class>: <text>", and the letter is delivered; or what
 * kept it from being written. */
bool tolerance_skips(struct tolerance *t, const struct failure *failure, struct mr_error *err);

/* "VALUE_CONVERTER of JsonConverter, record t-0@15" and the like. */
void tolerance_place(const struct failure *failure, char *out, size_t size);

/* A stage asked for another try, at now_ms; the first of them was at since_ms, and tries says which
 * one this is, from 1. How long to wait before it; -1: no more. */
int64_t tolerance_retry_in(const struct tolerance *t, int64_t since_ms, unsigned tries,
                           int64_t now_ms);

#endif
