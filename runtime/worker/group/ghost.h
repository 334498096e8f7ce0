/* SPDX-License-Identifier: Apache-2.0 */
/* The record of which member this worker is, so that its successor can make it leave if it dies
 * without a word. One file in millrace.state.dir, whose lock the worker holds: two workers never
 * share it. */
#ifndef WORKER_GROUP_GHOST_H
#define WORKER_GROUP_GHOST_H

#include "base/err.h"

#define GHOST_ID_MAX 1024

/* The member id that the file has for this group, whenever it was written: the folder's lock says
 * that its writer is dead. false: none. An odd file is none. Blocks for a small file. */
bool ghost_read(const char *path, const char *group, char *id, size_t size);
/* Replace it. Survives the end of the process, not of the machine: no fsync. */
int ghost_write(const char *path, const char *group, const char *id, struct mr_error *err);
void ghost_remove(const char *path); /* said goodbye: nothing is left behind */

#endif
