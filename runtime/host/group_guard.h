/* SPDX-License-Identifier: Apache-2.0 */
/* Once the worker is gone nobody else ends what plugins have forked: a small process that waits for
 * this one's end, however it comes, and then kills the group that this process was born to lead. It
 * leaves that group itself, holds nothing open, and needs no memory of its own. Of no use against a
 * plugin that looks for it, nor for children that have left the group. */
#ifndef HOST_GROUP_GUARD_H
#define HOST_GROUP_GUARD_H

/* Thread: control. Where the kernel refuses it (no process is to be had) the host's own end is all
 * there is. */
void group_guard_start(void);

#endif
