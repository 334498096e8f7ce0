/* SPDX-License-Identifier: Apache-2.0 */
/* FileStreamSource on stdin, a pipe or a device: bytes that can be read once only. On the task's
 * thread.
 *
 * What was read waits in a buffer of the plugin's own until its lines are complete; whole lines are
 * copied into the batch's arena in one piece. The position counts what was handed over since the
 * task began: there is no going back in a stream, so a stored one is not used. */
#include "file_source.h"
#include "line_split.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)64 * 1024)
#define KEEP ((size_t)1024 * 1024) /* of an empty buffer */
#define IDLE_MS 60000

void file_stream_close(struct file_stream *stream)
{
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    free(stream->data);
    stream->fd = -1;
    stream->data = NULL;
    stream->len = stream->cap = 0;
}

static int make_room(struct file_source *s, struct mr_error *err)
{
    struct file_stream *stream = &s->stream;
    size_t cap = stream->cap == 0 ? 2 * CHUNK : stream->cap * 2;
    char *data;

    if (stream->cap - stream->len >= CHUNK)
        return MR_OK;
    if (stream->len > s->line_max)
        return mr_fail(
            err, MR_ERR_FATAL,
            "A line of %s is longer than %zu bytes: end it, or raise millrace.file.line.max.bytes",
            s->path == NULL ? "stdin" : s->path, s->line_max);
    data = realloc(stream->data, cap);
    if (data == NULL)
        return mr_fail(err, MR_ERR_FATAL, "Out of memory for a line of more than %zu bytes",
                       stream->len);
    stream->data = data;
    stream->cap = cap;
    return MR_OK;
}

static int fail_read(const struct file_source *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "Can't read %s: %s", s->path == NULL ? "stdin" : s->path,
                   strerror(s->stream.error));
}

/* Read what is there, without waiting. MR_AGAIN: nothing. */
static int fill(struct file_source *s, struct mr_error *err)
{
    struct file_stream *stream = &s->stream;
    struct pollfd ready = {.fd = stream->fd, .events = POLLIN};
    ssize_t n;
    int rc = make_room(s, err);

    if (rc != MR_OK)
        return rc;
    if (stream->error != 0)
        return fail_read(s, err);
    if (poll(&ready, 1, 0) <= 0)
        return MR_AGAIN;
    n = read(stream->fd, stream->data + stream->len, CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return MR_AGAIN;
    if (n < 0) {
        stream->error = errno;
        return fail_read(s, err);
    }
    stream->len += (size_t)n;
    stream->ended = n == 0;
    if (stream->ended)
        mr_log(s->task, MR_LOG_INFO, "%s has ended", s->path == NULL ? "stdin" : s->path);
    return MR_OK;
}

/* Does what came since the last look end a line? */
static bool has_line(struct file_stream *stream)
{
    struct line_split split;
    const char *line;
    size_t len;

    line_split_init(&split, stream->data + stream->seen, stream->len - stream->seen);
    if (line_split_next(&split, &line, &len))
        return true;
    stream->seen = line_split_seen(stream->data, stream->len);
    return false;
}

static void drop(struct file_stream *stream, size_t len)
{
    memmove(stream->data, stream->data + len, stream->len - len);
    stream->len -= len;
    stream->seen = 0;
    if (stream->len == 0 && stream->cap > KEEP) {
        free(stream->data);
        stream->data = NULL;
        stream->cap = 0;
    }
}

/* Hand over whole lines, one at least even where they alone fill the batch; at the end of the
 * stream, its rest too. */
static void take_lines(struct file_source *s, struct mr_batch *out)
{
    struct file_stream *stream = &s->stream;
    char *block = (char *)mr_alloc(out->arena, stream->len);
    size_t taken = 0;
    struct line_split split;
    bool full = false;
    const char *line;
    size_t len;

    memcpy(block, stream->data, stream->len);
    line_split_init(&split, block, stream->len);
    while (!full && line_split_next(&split, &line, &len)) {
        taken = (size_t)(split.p - block);
        file_source_add(s, out, line, len, stream->position + (int64_t)taken);
        full = file_source_full(s, out);
    }
    if (stream->ended && !full && taken < stream->len) {
        len = line_split_seen(split.p, stream->len - taken);
        taken = stream->len;
        file_source_add(s, out, split.p, len, stream->position + (int64_t)taken);
    }
    stream->position += (int64_t)taken;
    drop(stream, taken);
}

int file_stream_poll(struct file_source *s, struct mr_batch *out, struct mr_error *err)
{
    struct file_stream *stream = &s->stream;
    int rc = MR_OK;

    while (rc == MR_OK && !file_source_full(s, out)) {
        if (stream->len > 0 && (stream->ended || has_line(stream))) {
            take_lines(s, out);
            continue;
        }
        if (stream->ended)
            return mr_again_in(out, IDLE_MS);
        rc = fill(s, mr_batch_count(out) == 0 ? err : NULL);
    }
    if (rc < 0 && mr_batch_count(out) > 0)
        return MR_OK; /* these lines can't be read again: the next poll fails likewise */
    return rc == MR_AGAIN ? mr_again_on_fd(out, stream->fd, IDLE_MS) : rc;
}
