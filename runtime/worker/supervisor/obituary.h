/* SPDX-License-Identifier: Apache-2.0 */
/* How a host ended, in words. Pure. */
#ifndef WORKER_OBITUARY_H
#define WORKER_OBITUARY_H

#include "base/buf.h"
#include "link/black_box.h"

/* What is known of a death.
 *
 * pid       of the host
 * exited    it ended by exit; else by a signal
 * status    exit code or number of the signal
 * core      the kernel wrote a core file
 * reason    why the worker ended it, as the end of "because …"; NULL or "": it ended by itself
 * lease_over  it ended by SIGKILL after its lease's hard end, which it kept by itself
 * culprit   number of the task that would not stop, -1 none
 * box       its black box as black_box_read gave it; NULL: not readable
 * output    its last lines on stderr, each ended by a newline; NULL or "" none
 * now_ms    CLOCK_BOOTTIME of the death */
struct obituary {
    int64_t pid;
    bool exited;
    int status;
    bool core;
    const char *reason;
    bool lease_over;
    int culprit;
    const struct black_box *box;
    const char *output;
    int64_t now_ms;
};

/* Append one sentence: "the host process 4711 was killed by signal 11 (SIGSEGV), task 0 was in poll
 * for 3 ms". */
void obituary_sentence(const struct obituary *obit, struct buf *out);

/* Append the sentence and, on indented lines below it, the last words: ready for a trace. Valid
 * UTF-8, a few KiB. */
void obituary_trace(const struct obituary *obit, struct buf *out);

/* The call that a task (-1: whichever is most telling) is in, as "task 0 was in poll for 3 ms";
 * nothing when none is. */
void obituary_call(const struct black_box *box, int task, int64_t now_ms, struct buf *out);

#endif
