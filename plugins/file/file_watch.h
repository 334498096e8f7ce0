/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when a file or the folder it stands in changes. One task. */
#ifndef FILE_WATCH_H
#define FILE_WATCH_H

#include <millrace/task.h>

struct file_watch {
    int fd;     /* inotify; readable when something changed. -1: none to be had, poll instead */
    int folder; /* watch descriptors, -1 none */
    int file;
};

/* Begin to watch the folder of path. Without inotify, or while the folder is missing, fd is -1 or
 * says less. */
void file_watch_start(struct file_watch *watch, const struct mr_task *task, const char *path);
void file_watch_stop(struct file_watch *watch);
/* Watch this open file for writes, instead of the one before; -1: none. */
void file_watch_file(struct file_watch *watch, int fd);
/* Take what has been told; then look at the file. Never blocks. */
void file_watch_drain(struct file_watch *watch);
/* The folder may have been missing: try again. */
void file_watch_folder(struct file_watch *watch, const char *path);

#endif
