/* SPDX-License-Identifier: Apache-2.0 */
/* FileStreamSource on a regular file: from a byte position to its end, and on as it grows. On the
 * task's thread.
 *
 *   missing ──created──► open ──end, another file has the name──► replaced ──no growth─► open it
 *      ▲                  │ ▲                                         │ gone, then back as before
 *      └──── (name gone: the open file is read on) ◄──────────────────┘
 *
 * Blocks are read into the batch's arena and lines point into them: nothing is copied. A position
 * is always the start of a line, and every poll reads from there, so nothing has to be kept between
 * polls but two numbers. A line longer than a block is first only looked through for its end
 * (`seen`), then read in one piece.
 *
 * Shrunk below what was read: the file was truncated or written anew. What was lost is unknown, so
 * the task fails and says so, unless the user has chosen to begin again. */
#include "file_source.h"
#include "line_split.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((int64_t)64 * 1024)
#define LOOK_MS 1000    /* at least so often, whatever inotify says */
#define REPLACED_MS 500 /* a writer may still finish with the file that was renamed */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int again(struct file_source *s, struct mr_batch *out)
{
    int64_t ms = s->tail.replaced_ms != 0 ? REPLACED_MS : LOOK_MS;

    return s->watch.fd >= 0 ? mr_again_on_fd(out, s->watch.fd, ms) : mr_again_in(out, ms);
}

void file_tail_close(struct file_tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
    tail->replaced_ms = 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int fail_directory(const struct file_source *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "%s is a directory: `file` must name a file", s->path);
}

/* A pipe would end with its last writer unless it is opened for writing too. */
static int open_stream(struct file_source *s, int fd, mode_t mode, struct mr_error *err)
{
    s->stream.fd = fd;
    if (!S_ISFIFO(mode))
        return MR_OK;
    s->stream.fd = open(s->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (s->stream.fd < 0)
        s->stream.fd = fd;
    else
        close(fd);
    return MR_OK;
}

/* What was read before is not what the file begins with now. */
static int begin_again(struct file_source *s, const char *why, struct mr_error *err)
{
    if (!s->restart)
        return mr_fail(err, MR_ERR_FATAL,
                       "%s %s: it was truncated, written anew or replaced. Reset the connector's "
                       "offsets or give it another name, or set millrace.file.truncated=restart "
                       "to read such a file from its beginning",
                       s->path, why);
    mr_log(s->task, MR_LOG_WARN, "%s %s: reading it from its beginning", s->path, why);
    s->tail.position = s->tail.seen = 0;
    return MR_OK;
}

static int truncated(struct file_source *s, int64_t size, struct mr_error *err)
{
    char why[128];

    snprintf(why, sizeof(why), "has %" PRId64 " bytes, but %" PRId64 " of it were read before",
             size, s->tail.position);
    return begin_again(s, why, err);
}

/* Every position is behind the end of a line. Where none ends, another file has the name: as one
 * that was rotated while nobody looked, and has grown as long as the old one. */
static int check_place(struct file_source *s, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;
    char why[128], last;

    if (tail->position == 0 || pread(tail->fd, &last, 1, tail->position - 1) != 1 || last == '\n' ||
        last == '\r')
        return MR_OK;
    snprintf(why, sizeof(why), "was read up to byte %" PRId64 ", but no line ends there now",
             tail->position);
    return begin_again(s, why, err);
}

static int open_file(struct file_source *s, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        if (!s->missing)
            mr_log(s->task, MR_LOG_WARN,
                   "Couldn't find file %s for FileStreamSourceTask, waiting for it to be created",
                   s->path);
        s->missing = true;
        file_watch_folder(&s->watch, s->path);
        return MR_AGAIN;
    }
    if (fd < 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't open %s for reading: %s", s->path,
                       strerror(errno));
    if (fstat(fd, &tail->id) != 0 || S_ISDIR(tail->id.st_mode)) {
        close(fd);
        return fail_directory(s, err);
    }
    s->missing = false;
    if (!S_ISREG(tail->id.st_mode))
        return open_stream(s, fd, tail->id.st_mode, err);
    tail->fd = fd;
    tail->replaced_ms = 0;
    tail->seen = tail->position;
    if (check_place(s, err) != MR_OK)
        return MR_ERR_FATAL;
    file_watch_file(&s->watch, fd);
    mr_log(s->task, MR_LOG_INFO, "Opened %s for reading, from byte %" PRId64, s->path,
           tail->position);
    return MR_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int fail_read(const struct file_source *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "Can't read %s: %s", s->path, strerror(errno));
}

static int fail_long(const struct file_source *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL,
                   "The line at byte %" PRId64
                   " of %s is longer than %zu bytes: end it, or raise millrace.file.line.max.bytes",
                   s->tail.position, s->path, s->line_max);
}

/* Look through the middle of a line for its end. *end: behind it, or 0 when the file has no
 * more. */
static int scan_line(struct file_source *s, int64_t size, int64_t *end, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;

    *end = 0;
    while (tail->seen < size) {
        ssize_t n = pread(tail->fd, s->scan, sizeof(s->scan), tail->seen);
        struct line_split split;
        const char *line;
        size_t len;

        if (n < 0)
            return fail_read(s, err);
        if (n == 0)
            return MR_OK;
        line_split_init(&split, s->scan, (size_t)n);
        if (line_split_next(&split, &line, &len)) {
            *end = tail->seen + (split.p - s->scan);
            return MR_OK;
        }
        len = line_split_seen(s->scan, (size_t)n);
        if (len == 0)
            return MR_OK; /* a '\r' is the last byte there is */
        tail->seen += (int64_t)len;
        if (tail->seen - tail->position > (int64_t)s->line_max)
            return fail_long(s, err);
    }
    return MR_OK;
}

/* Hand over lines of a block of n bytes at position: one at least, even where the block alone fills
 * the batch. */
static void take_lines(struct file_source *s, struct mr_batch *out, const char *block, size_t n)
{
    struct file_tail *tail = &s->tail;
    int64_t start = tail->position;
    struct line_split split;
    const char *line;
    size_t len;

    line_split_init(&split, block, n);
    while (line_split_next(&split, &line, &len)) {
        tail->position = start + (split.p - block);
        tail->seen = tail->position;
        file_source_add(s, out, line, len, tail->position);
        if (file_source_full(s, out))
            return;
    }
    tail->seen = tail->position + (int64_t)line_split_seen(split.p, (size_t)(block + n - split.p));
}

/* Read from position to the end of the file. MR_AGAIN: the end was reached. */
static int read_lines(struct file_source *s, struct mr_batch *out, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;

    while (!file_source_full(s, out)) {
        int64_t start, want = CHUNK, end = 0;
        struct stat st;
        char *block;
        ssize_t n;
        int rc;

        if (fstat(tail->fd, &st) != 0)
            return fail_read(s, err);
        if (st.st_size < tail->position) {
            rc = truncated(s, st.st_size, err);
            if (rc != MR_OK)
                return rc;
        }
        if (tail->seen > tail->position) {
            rc = scan_line(s, st.st_size, &end, err);
            if (rc != MR_OK || end == 0)
                return rc != MR_OK ? rc : MR_AGAIN;
            if (end - tail->position >= want)
                want = end - tail->position + 1; /* a '\r' is known for an end by what follows it */
        }
        if (want > st.st_size - tail->position)
            want = st.st_size - tail->position;
        if (want <= 0)
            return MR_AGAIN;
        block = (char *)mr_alloc(out->arena, (size_t)want);
        n = pread(tail->fd, block, (size_t)want, tail->position);
        if (n < 0)
            return fail_read(s, err);
        if (n == 0)
            return MR_AGAIN; /* shorter than it says: whatever it is, it has no more now */
        start = tail->position;
        take_lines(s, out, block, (size_t)n);
        if (tail->position == start && start + n >= st.st_size)
            return MR_AGAIN; /* half a line, or a '\r' alone: it is the same until the file grows */
    }
    return MR_OK;
}

/* --- replaced by another file ----------------------------------------------------------------- */

/* The rest of a file that nobody will write to any more is a line, though it has no end. What
 * follows it is the new file's first, so that is its offset. */
static int take_rest(struct file_source *s, struct mr_batch *out, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;
    struct stat st;
    size_t len;
    char *block;
    ssize_t n;

    if (fstat(tail->fd, &st) != 0)
        return fail_read(s, err);
    if (st.st_size <= tail->position)
        return MR_OK;
    len = (size_t)(st.st_size - tail->position);
    if (len > s->line_max)
        return fail_long(s, err);
    block = (char *)mr_alloc(out->arena, len);
    n = pread(tail->fd, block, len, tail->position);
    if (n < 0)
        return fail_read(s, err);
    tail->position += n;
    file_source_add(s, out, block, line_split_seen(block, (size_t)n), 0);
    return MR_OK;
}

/* At the end of the open file: does its name lead elsewhere now? MR_OK: on with the new one. */
static int look_for_successor(struct file_source *s, struct mr_batch *out, struct mr_error *err)
{
    struct file_tail *tail = &s->tail;
    struct stat st;
    int rc;

    if (stat(s->path, &st) != 0) {
        tail->replaced_ms = 0;
        if (!s->missing)
            mr_log(s->task, MR_LOG_WARN, "%s is gone (%s): waiting for another", s->path,
                   strerror(errno));
        s->missing = true;
        file_watch_folder(&s->watch, s->path);
        return MR_AGAIN;
    }
    s->missing = false;
    if (st.st_dev == tail->id.st_dev && st.st_ino == tail->id.st_ino) {
        tail->replaced_ms = 0;
        return MR_AGAIN;
    }
    if (S_ISDIR(st.st_mode))
        return fail_directory(s, err);
    if (tail->replaced_ms == 0)
        tail->replaced_ms = now_ms();
    if (now_ms() - tail->replaced_ms < REPLACED_MS)
        return MR_AGAIN;
    rc = take_rest(s, out, err);
    if (rc != MR_OK)
        return rc;
    mr_log(s->task, MR_LOG_INFO,
           "%s was replaced: read the old file to its end at byte %" PRId64 ", now the new one",
           s->path, tail->position);
    file_tail_close(tail);
    tail->position = tail->seen = 0;
    return MR_OK;
}

int file_tail_poll(struct file_source *s, struct mr_batch *out, struct mr_error *err)
{
    int64_t position = s->tail.position;
    int rc = MR_OK;

    file_watch_drain(&s->watch);
    if (s->tail.fd < 0)
        rc = open_file(s, err);
    if (rc == MR_OK && s->stream.fd >= 0)
        return file_stream_poll(s, out, err);
    if (rc == MR_OK) {
        rc = read_lines(s, out, err);
        if (s->tail.position != position)
            s->tail.replaced_ms = 0; /* it still grows */
        if (rc == MR_AGAIN)
            rc = look_for_successor(s, out, err);
    }
    return rc == MR_AGAIN ? again(s, out) : rc;
}
