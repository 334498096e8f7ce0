/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"

/* Append the file's bytes to out (whose max is the cap). MR_ERR_IO, MR_ERR_NOT_FOUND,
 * MR_ERR_TOO_LARGE; directories and special files are refused. */
int file_read(const char *path, struct buf *out, struct mr_error *err);

/* Replace a file so that after a crash at any moment the old or the new content is there: write
 * `path.tmp`, fsync, rename, fsync the folder. Blocks. */
int file_write_atomic(const char *path, const void *data, size_t len, struct mr_error *err);

int file_mkdirs(const char *path, struct mr_error *err); /* mkdir -p, mode 0700 */

/* Take the fcntl record lock of a file (created, kept open). 0 and *fd, or MR_ERR_EXISTS with *pid
 * of the holder. */
int file_lock(const char *path, int *fd, int64_t *pid, struct mr_error *err);
/* Remove the file and give the lock back: whoever waits at the old file takes a new one. *fd < 0:
 * nothing. */
void file_unlock(const char *path, int *fd);

#endif
