/* SPDX-License-Identifier: Apache-2.0 */
/* What a host does about signals: deadly ones leave a note in the black box and then kill as they
 * would have, a nudge ends blocking calls, and a child that a plugin forks is cut off from the
 * worker. */
#ifndef HOST_THREAD_GUARD_H
#define HOST_THREAD_GUARD_H

#include "link/black_box.h"

#include <signal.h>

/* Sent to a thread whose blocking system call is to end with EINTR: a handler that does nothing,
 * without SA_RESTART. */
#define THREAD_GUARD_NUDGE SIGURG

#define THREAD_GUARD_NO_SLOT ((size_t)-1)

/* Once, on the main thread, before any other thread exists: handlers for deadly signals and the
 * nudge, SIGPIPE ignored, everything else blocked here and in every thread made later; the guard
 * against forked children. The box must stay mapped while the process lives. */
void thread_guard_install(struct black_box *box);

/* First and last act of a thread that runs plugin code: an alternate signal stack, so that a stack
 * overflow leaves its note too, the thread's slot in the black box, and the C locale. */
void thread_guard_enter(size_t slot);
void thread_guard_leave(void);

#endif
