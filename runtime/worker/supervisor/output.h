/* SPDX-License-Identifier: Apache-2.0 */
/* What a host writes to its stdout or stderr, read without ever being held up by it and logged
 * under its connector's name. Owner: the worker's loop. */
#ifndef WORKER_OUTPUT_H
#define WORKER_OUTPUT_H

#include "base/buf.h"
#include "base/loop.h"

#include <stddef.h>
#include <stdint.h>

struct output;

/* fd     read end of a non-blocking pipe, taken (closed also when this fails)
 * conn   the connector's name, for the log; borrowed for life
 * logger "plugin.stdout" or "plugin.stderr": for lines that are not log lines of the host; static
 *        text */
struct output *output_new(struct loop *loop, int fd, const char *conn, const char *logger,
                          struct mr_error *err);
void output_free(struct output **out);

/* The writer is dead: take what is still in the pipe (bounded), log an unfinished last line, and
 * tell what was dropped. */
void output_finish(struct output *out);

/* Append the last few lines that were not log lines of the host ("free(): invalid pointer", a
 * sanitizer's report): newest last, printable, each ended by a newline. */
void output_last_lines(const struct output *out, struct buf *to);

uint64_t output_dropped_bytes(const struct output *out);

#endif
