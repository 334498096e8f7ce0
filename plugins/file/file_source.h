/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of FileStreamSource share. */
#ifndef FILE_SOURCE_H
#define FILE_SOURCE_H

#include "file_watch.h"

#include <millrace/plugin.h>

#include <sys/stat.h>

/* A regular file being read. */
struct file_tail {
    int fd;              /* -1: not open */
    int64_t position;    /* bytes handed over: the next line begins here */
    int64_t seen;        /* bytes from position up to here hold no end of a line */
    struct stat id;      /* of the open file: device and inode */
    int64_t replaced_ms; /* since when another file has its name; 0: none has */
};

/* Stdin, a pipe or a device: what was read and not handed over yet. */
struct file_stream {
    int fd; /* -1: not open */
    char *data;
    size_t len;
    size_t cap;
    size_t seen;      /* as above */
    int64_t position; /* bytes handed over */
    int error;        /* errno of a read that failed; it stays */
    bool ended;
};

struct file_source {
    struct mr_task *task;
    const char *path; /* NULL: stdin */
    const char *topic;
    const struct mr_source_partition *partition;
    const struct mr_schema *schema; /* required STRING */
    /* Of this poll: when its lines were read, as in Java the time of their records. */
    int64_t now_ms;
    size_t batch_size;
    size_t line_max;
    bool restart; /* millrace.file.truncated=restart */
    bool missing; /* and that was said */
    struct file_watch watch;
    struct file_tail tail;
    struct file_stream stream;
    char scan[16384]; /* for looking through the middle of a long line */
};

/* One record of the line that ends before `next`. */
void file_source_add(struct file_source *s, struct mr_batch *out, const char *line, size_t len,
                     int64_t next);
/* The framework or batch.size has enough. */
bool file_source_full(const struct file_source *s, const struct mr_batch *out);

/* file_tail.c: hand over what is there, then MR_AGAIN; or MR_OK when a batch is full. */
int file_tail_poll(struct file_source *s, struct mr_batch *out, struct mr_error *err);
void file_tail_close(struct file_tail *tail);

/* file_stream.c: the same for a stream. It can't be read twice, so lines go out before what failed
 * behind them is said. */
int file_stream_poll(struct file_source *s, struct mr_batch *out, struct mr_error *err);
void file_stream_close(struct file_stream *stream);

extern const struct mr_source file_source_plugin;

#endif
