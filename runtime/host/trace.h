/* SPDX-License-Identifier: Apache-2.0 */
/* The trace texts of statuses, in one shape for connectors and tasks. Pure. */
#ifndef HOST_TRACE_H
#define HOST_TRACE_H

#include "base/err.h"

/* The class that Kafka Connect would have thrown for a code:
 * "org.apache.kafka.connect.errors.RetriableException". */
const char *trace_class(int code);

/* How much of an error's text is the message: a line "Caused by: <class>: <text>" behind it, of
 * whatever lies below, is for traces. */
size_t trace_message_len(const struct mr_error *err);

/* "<class>: <text>", then a line "\tin <where>" unless where is NULL. where is such as "poll of
 * FileStreamSource 1.0". NUL-terminated, cut to size. Returns out. */
const char *trace_write(char *out, size_t size, const struct mr_error *err, const char *where);

#endif
