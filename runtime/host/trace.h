/* SPDX-License-Identifier: Apache-2.0 */
/* The trace texts of statuses, in one shape for connectors and tasks. Pure. */
#ifndef HOST_TRACE_H
#define HOST_TRACE_H

#include "base/err.h"

/* The class that Kafka Connect would have thrown for a code:
 * "org.apache.kafka.connect.errors.RetriableException". */
const char *trace_class(int code);

#define TRACE_MAX 4096 /* room for any, where included */

/* An error as an exception. Neither name is NUL-terminated; both are borrowed from err, or live for
 * ever. A plugin's text may begin with the class that it stands for ("java.lang.X: text"); else the
 * code's counts. Where the message ends, the error says, or the first line "Caused by: ". */
struct trace_parts {
    const char *class_name;
    size_t class_len;
    const char *message;
    size_t message_len; /* up to the causes */
};
struct trace_parts trace_parts(const struct mr_error *err);

/* "<class>: <text>", then a line "\tin <where>" unless where is NULL. where is such as "poll of
 * FileStreamSource 1.0". NUL-terminated, cut to size. Returns out. */
const char *trace_write(char *out, size_t size, const struct mr_error *err, const char *where);

#endif
