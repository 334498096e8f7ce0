/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets that the sink keeps beside its file: <file>.offsets, with the file's size as of its
 * last commit. To put that in place is the commit; whatever the file has behind that size never
 * was. Whoever reads or writes it holds the file's lock. */
#ifndef FILE_OFFSETS_H
#define FILE_OFFSETS_H

#include <millrace/plugin.h>

struct file_offset {
    char *topic;
    int32_t partition;
    int64_t offset;
};

struct file_offsets {
    char *path;     /* of the offsets; NULL: not kept */
    char *new_path; /* of those that are written */
    int64_t size;   /* of the file, as far as it is committed */
    struct file_offset *items;
    size_t count;
    size_t cap;
};

int file_offsets_init(struct file_offsets *o, const char *file, struct mr_error *err);
void file_offsets_deinit(struct file_offsets *o);

/* What is committed now. MR_ERR_NOT_FOUND: there is no such file yet (size and count are 0);
 * MR_ERR_FATAL: it can't be read, or was not written by us. */
int file_offsets_read(struct file_offsets *o, struct mr_error *err);
/* Commit: when this returns MR_OK it is on the disk. MR_ERR_FATAL: nothing is changed;
 * MR_ERR_STALE: it is in place, but perhaps not on the disk. */
int file_offsets_write(const struct file_offsets *o, struct mr_error *err);

/* A name is only there after a crash when its folder is on the disk too. MR_ERR_FATAL: it isn't. */
int file_offsets_sync_folder(const char *path, struct mr_error *err);

int64_t file_offsets_get(const struct file_offsets *o, const char *topic, int32_t partition);
/* offset -1: forget it. MR_ERR_FATAL: out of memory. */
int file_offsets_set(struct file_offsets *o, const struct mr_partition *part, int64_t offset,
                     struct mr_error *err);
void file_offsets_clear(struct file_offsets *o); /* forget all */

#endif
