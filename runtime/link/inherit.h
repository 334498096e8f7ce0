/* SPDX-License-Identifier: Apache-2.0 */
/* What a host process is born with. */
#ifndef LINK_INHERIT_H
#define LINK_INHERIT_H

#define INHERIT_LINK_FD 3 /* stream socket pair end to the worker: frames of link/msg.h */
#define INHERIT_BOX_FD 4  /* memfd of link/black_box.h, sealed against shrinking and growing */
/* 0 is /dev/null; 1 and 2 are pipes to the worker, non-blocking. argv: millrace host <connector
 * name> (for ps only). It is forked from the worker's nest (nest_format.h), or executed where that
 * one fails: no difference but in memory.
 * Signals: all unblocked, default handlers; a process group of its own. The host makes itself the
 * heir of its descendants (PR_SET_CHILD_SUBREAPER) before it opens a plugin, as the worker does of
 * its hosts: so an unknown child of the worker can only be the leftover of a dead host, and is
 * killed. */

/* Of the frames: worker and host of different builds talk if this is equal. Given on the compiler's
 * command line only to make a build of another age for `make chaos`. */
#ifndef INHERIT_LINK_VERSION
#define INHERIT_LINK_VERSION 2
#endif

#endif
