/* SPDX-License-Identifier: Apache-2.0 */
/* FileStreamSink, the plugin: the text of each record's value as a line at the end of a file.
 * Stands in for FileStreamSinkConnector of Kafka 4.3.1; on the task's thread. Where it differs
 * (README.md of this folder): no failed write is swallowed, and flush means on the disk, so that no
 * offset is ever committed above what a reader of the file will find.
 *
 * All tasks of a connector append to one file. A put takes the file's lock (of the open file, so it
 * holds between tasks and processes alike), gathers the lines in a buffer and appends them. If that
 * fails half way, the file is cut back to where the put began: the batch will come again, and there
 * is no half line and none twice.
 *
 * A process that is killed while it writes leaves half a line. Only a file that we ended with a
 * whole line ourselves can be cut back then without harm to what others wrote: an extended
 * attribute says that it is one.
 *
 * With millrace.file.exactly.once the offsets are kept beside the file (file_offsets.c): a put
 * appends its lines, syncs them, and puts the new offsets with the new size of the file in place,
 * all under the lock; what the file has behind the committed size is cut off before anything
 * else. */
#include "file_sink.h"
#include "file_offsets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BUFFER ((size_t)256 * 1024)
#define LARGE (BUFFER / 4) /* a text of this size is written by itself */
#define WHOLE_LINES "user.millrace.whole-lines"
#define WAIT_MS 1000
#define EXACTLY_ONCE "millrace.file.exactly.once"

struct file_sink {
    struct mr_task *task;
    const char *path; /* NULL: stdout */
    int fd;           /* -1: not open */
    struct stat id;   /* of the open file */
    bool regular;
    bool dirty;      /* written to since the last flush */
    bool created;    /* its name may not be on the disk yet */
    int64_t begin;   /* where this put began; -1: unknown, or no regular file */
    int64_t written; /* bytes of this put so far */
    bool once;       /* offsets are kept beside the file */
    struct file_offsets offsets;
    size_t len;
    char buffer[BUFFER];
};

static const struct mr_config_key sink_keys[] = {
    {.name = "file",
     .doc = "Destination filename. If not specified, the standard output will be used.",
     .importance = MR_CFG_HIGH},
    {.name = EXACTLY_ONCE,
     .type = MR_CFG_BOOLEAN,
     .flags = MR_CFG_INTERNAL,
     .fallback = "false",
     .doc = "Keep the offsets beside the file, so that each line is there exactly once."},
    {0},
};

static const char *name_of(const struct file_sink *s)
{
    return s->path == NULL ? "stdout" : s->path;
}

/* --- stopping and the lock -------------------------------------------------------------------- */

static bool stopping(const struct file_sink *s)
{
    struct pollfd stop = {.fd = mr_stop_fd(s->task), .events = POLLIN};

    return stop.fd >= 0 && poll(&stop, 1, 0) > 0;
}

static void unlock(const struct file_sink *s)
{
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    if (s->regular)
        fcntl(s->fd, F_OFD_SETLK, &whole);
}

/* Where there is no such lock (some network file systems) tasks rely on O_APPEND alone. */
static int lock(const struct file_sink *s, struct mr_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool locked = false;

    while (s->regular && !(locked = fcntl(s->fd, F_OFD_SETLKW, &whole) == 0) && errno == EINTR)
        if (stopping(s))
            return mr_fail(err, MR_ERR_RETRY, "Stopped while another holds the lock of %s",
                           s->path);
    if (s->once && !locked)
        return mr_fail(err, MR_ERR_FATAL, "Can't lock %s, as " EXACTLY_ONCE " needs it: %s",
                       s->path, strerror(errno));
    return MR_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Behind the last '\n' among the first size bytes; 0: there is none. */
static int64_t last_line_end(int fd, int64_t size)
{
    char block[4096];

    while (size > 0) {
        int64_t from = size > (int64_t)sizeof(block) ? size - (int64_t)sizeof(block) : 0;
        ssize_t n = pread(fd, block, (size_t)(size - from), from);
        const char *found = n <= 0 ? NULL : memrchr(block, '\n', (size_t)n);

        if (found != NULL)
            return from + (found - block) + 1;
        if (n <= 0)
            return size;
        size = from;
    }
    return 0;
}

/* The file ends in the middle of a line: cut off what we were writing when we were killed, end what
 * others wrote. */
static int mend_end(struct file_sink *s, int reader, int64_t size, struct mr_error *err)
{
    char mark[8];
    int64_t end;

    if (fgetxattr(s->fd, WHOLE_LINES, mark, sizeof(mark)) < 0) {
        if (write(s->fd, "\n", 1) != 1)
            return mr_fail(err, MR_ERR_FATAL, "Can't write to %s: %s", s->path, strerror(errno));
        mr_log(s->task, MR_LOG_INFO, "%s ended without a line break: added one", s->path);
        return MR_OK;
    }
    end = last_line_end(reader, size);
    if (ftruncate(s->fd, end) != 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't cut half a line off the end of %s: %s", s->path,
                       strerror(errno));
    mr_log(s->task, MR_LOG_WARN,
           "Cut %" PRId64 " bytes off %s: half a line, from a run that was killed while it wrote. "
           "Its record comes again",
           size - end, s->path);
    return MR_OK;
}

static int check_end(struct file_sink *s, struct mr_error *err)
{
    struct stat st;
    int reader, rc = MR_OK;
    char last = '\n';

    if (fstat(s->fd, &st) != 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't look at %s: %s", s->path, strerror(errno));
    reader = st.st_size == 0 ? -1 : open(s->path, O_RDONLY | O_CLOEXEC);
    if (reader >= 0 && pread(reader, &last, 1, st.st_size - 1) == 1 && last != '\n')
        rc = mend_end(s, reader, st.st_size, err);
    if (reader >= 0)
        close(reader);
    if (rc == MR_OK)
        (void)fsetxattr(s->fd, WHOLE_LINES, "1", 1, 0); /* where there are none, see mend_end */
    return rc;
}

/* Offsets are kept from here on; what the file has by now counts as committed. */
static int begin_once(struct file_sink *s, struct mr_error *err)
{
    struct stat st;
    int rc = check_end(s, err);

    if (rc == MR_OK && (fdatasync(s->fd) != 0 || fstat(s->fd, &st) != 0))
        rc = mr_fail(err, MR_ERR_FATAL, "Can't bring %s to the disk: %s", s->path, strerror(errno));
    if (rc != MR_OK)
        return rc;
    s->offsets.size = st.st_size;
    return file_offsets_write(&s->offsets, err);
}

static int cut_uncommitted(struct file_sink *s, int64_t size, struct mr_error *err)
{
    if (size == s->offsets.size)
        return MR_OK;
    if (size < s->offsets.size)
        return mr_fail(err, MR_ERR_FATAL,
                       "%s has %" PRId64 " bytes, of which %" PRId64
                       " are committed as %s says: it was cut, or another file has its name. Bring "
                       "it back, or move %s away, too",
                       s->path, size, s->offsets.size, s->offsets.path, s->offsets.path);
    if (ftruncate(s->fd, s->offsets.size) != 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't cut what was not committed off %s: %s", s->path,
                       strerror(errno));
    mr_log(s->task, MR_LOG_WARN,
           "Cut %" PRId64 " bytes off %s that were not committed: their records come again",
           size - s->offsets.size, s->path);
    return MR_OK;
}

/* With the lock held: what is committed, and nothing behind it in the file. */
static int settle(struct file_sink *s, struct mr_error *err)
{
    struct stat st;
    int rc = file_offsets_read(&s->offsets, err);

    if (rc == MR_ERR_NOT_FOUND)
        return begin_once(s, err);
    if (rc == MR_OK && fstat(s->fd, &st) != 0)
        rc = mr_fail(err, MR_ERR_FATAL, "Can't look at %s: %s", s->path, strerror(errno));
    return rc == MR_OK ? cut_uncommitted(s, st.st_size, err) : rc;
}

static int check_once(const struct file_sink *s, struct mr_error *err)
{
    if (s->path == NULL || (s->fd >= 0 && !s->regular))
        return mr_fail(err, MR_ERR_CONFIG, EXACTLY_ONCE " needs a regular file: %s is none",
                       name_of(s));
    return MR_OK;
}

static int open_file(struct file_sink *s, struct mr_error *err)
{
    int rc = MR_OK;

    s->created = access(s->path, F_OK) != 0;
    s->fd = open(s->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (s->fd < 0 && errno == EISDIR)
        return mr_fail(err, MR_ERR_FATAL, "%s is a directory: `file` must name a file", s->path);
    if (s->fd < 0 || fstat(s->fd, &s->id) != 0)
        return mr_fail(err, MR_ERR_FATAL,
                       "Couldn't find or create file '%s' for FileStreamSinkTask: %s", s->path,
                       strerror(errno));
    s->regular = S_ISREG(s->id.st_mode);
    if (s->once)
        rc = check_once(s, err);
    if (!s->regular || rc != MR_OK)
        return rc;
    rc = lock(s, err);
    if (rc == MR_OK)
        rc = s->once ? settle(s, err) : check_end(s, err);
    unlock(s);
    return rc;
}

static void close_file(struct file_sink *s)
{
    if (s->fd > STDERR_FILENO)
        close(s->fd);
    s->fd = -1;
}

/* Was the file renamed or removed? Then the next lines belong into a new one. */
static int follow_name(struct file_sink *s, struct mr_error *err)
{
    struct stat st;

    if (!s->regular ||
        (stat(s->path, &st) == 0 && st.st_dev == s->id.st_dev && st.st_ino == s->id.st_ino))
        return MR_OK;
    if (s->once)
        return mr_fail(err, MR_ERR_FATAL,
                       "%s was renamed or removed: with " EXACTLY_ONCE " it must stay while the "
                       "connector runs. Bring it back, or move %s away, too",
                       s->path, s->offsets.path);
    mr_log(s->task, MR_LOG_INFO, "%s was renamed or removed: opening it anew", s->path);
    if (s->dirty && fdatasync(s->fd) != 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't bring %s to the disk: %s", s->path,
                       strerror(errno));
    close_file(s);
    return open_file(s, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A pipe is full: wait until it is not, or until the task must stop. */
static void wait_writable(const struct file_sink *s)
{
    struct pollfd fds[] = {{.fd = s->fd, .events = POLLOUT},
                           {.fd = mr_stop_fd(s->task), .events = POLLIN}};

    (void)poll(fds, 2, WAIT_MS);
}

static int fail_write(const struct file_sink *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "Can't write to %s: %s", name_of(s), strerror(errno));
}

static int write_out(struct file_sink *s, const char *p, size_t len, struct mr_error *err)
{
    while (len > 0) {
        ssize_t n = write(s->fd, p, len);

        if (n > 0) {
            s->dirty = true;
            s->written += n;
            p += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return fail_write(s, err);
        } else if (stopping(s)) {
            return mr_fail(err, MR_ERR_RETRY, "Stopped while %s takes no more", name_of(s));
        } else if (n == 0 || errno == EAGAIN) {
            wait_writable(s);
        }
    }
    return MR_OK;
}

/* Halves of surrogate pairs, which text from JSON may hold in three bytes, become '?' as in Java.
 * In place; gives the length that is left. */
static size_t replace_halves(char *text, size_t len)
{
    char *to = text, *from = text, *end = text + len, *lead;

    while ((lead = (char *)memchr(from, 0xed, (size_t)(end - from))) != NULL) {
        bool half =
            end - lead >= 3 && (unsigned char)lead[1] >= 0xa0 && (unsigned char)lead[2] >= 0x80;
        size_t whole = (size_t)(lead - from) + !half;

        if (to != from)
            memmove(to, from, whole);
        to += whole;
        from = lead + (half ? 3 : 1);
        if (half)
            *to++ = '?';
    }
    if (to != from)
        memmove(to, from, (size_t)(end - from));
    return (size_t)(to - text) + (size_t)(end - from);
}

static int write_buffer(struct file_sink *s, struct mr_error *err)
{
    size_t len = replace_halves(s->buffer, s->len);

    s->len = 0;
    return write_out(s, s->buffer, len, err);
}

static int write_large(struct file_sink *s, struct mr_arena *arena, const char *text, size_t len,
                       struct mr_error *err)
{
    if (memchr(text, 0xed, len) != NULL) {
        text = (const char *)mr_text_copy(arena, text, len).u.p;
        len = replace_halves((char *)(uintptr_t)text, len);
    }
    return write_out(s, text, len, err);
}

static int add_line(struct file_sink *s, struct mr_arena *arena, const char *text, size_t len,
                    struct mr_error *err)
{
    int rc = MR_OK;

    if (len + 1 > BUFFER - s->len)
        rc = write_buffer(s, err);
    if (rc == MR_OK && len >= LARGE) {
        rc = write_buffer(s, err);
        if (rc == MR_OK)
            rc = write_large(s, arena, text, len, err);
        len = 0;
    }
    if (len > 0)
        memcpy(s->buffer + s->len, text, len);
    s->len += len;
    s->buffer[s->len++] = '\n';
    return rc;
}

/* Undo a put that failed, unless someone else has written behind it. */
static void cut_back(struct file_sink *s)
{
    struct stat st;

    if (s->begin < 0 || s->written == 0)
        return;
    if (fstat(s->fd, &st) == 0 && st.st_size == s->begin + s->written &&
        ftruncate(s->fd, s->begin) == 0)
        return;
    mr_log(s->task, MR_LOG_ERROR,
           "%s can't be cut back to byte %" PRId64 " (does another program append to it?): the "
           "%" PRId64 " bytes behind it will be written again",
           s->path, s->begin, s->written);
}

static int put_lines(struct file_sink *s, struct mr_batch *in, struct mr_error *err)
{
    size_t count = mr_batch_count(in);
    int rc = MR_OK;

    s->len = 0;
    s->written = 0;
    s->begin = s->regular ? lseek(s->fd, 0, SEEK_END) : -1;
    for (size_t i = 0; i < count && rc == MR_OK; i++) {
        size_t len;
        const char *text = mr_to_text(in->arena, mr_value(mr_record_at(in, i)), &len);

        rc = add_line(s, in->arena, text, len, err);
    }
    if (rc == MR_OK)
        rc = write_buffer(s, err);
    if (rc != MR_OK)
        cut_back(s);
    return rc;
}

/* Another task of the connector may have been at it, or one in our place. */
static int check_stored(const struct file_sink *s, const struct mr_partition_list *offsets,
                        struct mr_error *err)
{
    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);
        int64_t stored = file_offsets_get(&s->offsets, part->topic, part->partition);

        if (stored != part->stored)
            return mr_fail(
                err, MR_ERR_STALE,
                "%s has offset %" PRId64 " for %s-%d, not %" PRId64 ": another task was there",
                s->offsets.path, stored, part->topic, (int)part->partition, part->stored);
    }
    return MR_OK;
}

static int commit(struct file_sink *s, const struct mr_partition_list *offsets,
                  struct mr_error *err)
{
    int rc = MR_OK;

    if (s->written > 0 && fdatasync(s->fd) != 0)
        rc = mr_fail(err, MR_ERR_FATAL, "Can't bring %s to the disk: %s", s->path, strerror(errno));
    s->offsets.size = s->begin + s->written;
    for (size_t i = 0; i < offsets->count && rc == MR_OK; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        rc = file_offsets_set(&s->offsets, part, part->offset, err);
    }
    return rc == MR_OK ? file_offsets_write(&s->offsets, err) : rc;
}

static int put_once(struct file_sink *s, struct mr_batch *in, struct mr_error *err)
{
    const struct mr_partition_list *offsets = mr_batch_offsets(in);
    int rc = settle(s, err);

    if (rc == MR_OK)
        rc = check_stored(s, offsets, err);
    if (rc == MR_OK)
        rc = put_lines(s, in, err);
    if (rc != MR_OK)
        return rc;
    rc = commit(s, offsets, err);
    if (rc == MR_ERR_FATAL)
        cut_back(s);
    return rc;
}

static int put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct file_sink *s = (struct file_sink *)self;
    int rc;

    if (mr_batch_count(in) == 0 && !s->once)
        return MR_OK;
    rc = follow_name(s, err);
    if (rc == MR_OK)
        rc = lock(s, err);
    if (rc != MR_OK)
        return rc;
    rc = s->once ? put_once(s, in, err) : put_lines(s, in, err);
    unlock(s);
    return rc;
}

static int open_partitions(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    struct file_sink *s = (struct file_sink *)self;
    int rc = s->once ? lock(s, err) : MR_OK;

    if (!s->once || rc != MR_OK)
        return rc;
    rc = settle(s, err);
    unlock(s);
    for (size_t i = 0; i < parts->count && rc == MR_OK; i++) {
        struct mr_partition *part = mr_partition_at(parts, i);

        part->stored = file_offsets_get(&s->offsets, part->topic, part->partition);
    }
    return rc;
}

/* --- on the disk ------------------------------------------------------------------------------ */

/* Offsets are committed only after this: what put took is on the disk then. */
static int flush(void *self, struct mr_error *err)
{
    struct file_sink *s = (struct file_sink *)self;

    if (!s->dirty || !s->regular)
        return MR_OK;
    if (fdatasync(s->fd) != 0)
        return mr_fail(err, MR_ERR_FATAL, "Can't bring %s to the disk: %s", s->path,
                       strerror(errno));
    s->dirty = false;
    if (s->created && file_offsets_sync_folder(s->path, err) != MR_OK)
        return MR_ERR_FATAL;
    s->created = false;
    return MR_OK;
}

static int open_sink(struct file_sink *s, struct mr_task *task, struct mr_error *err)
{
    int rc = MR_OK;

    s->fd = -1;
    s->task = task;
    s->path = mr_config_str(task, "file");
    s->once = mr_config_bool(task, EXACTLY_ONCE);
    if (s->once)
        rc = check_once(s, err);
    if (s->once && rc == MR_OK)
        rc = file_offsets_init(&s->offsets, s->path, err);
    if (rc == MR_OK && s->path != NULL)
        return open_file(s, err);
    s->fd = rc == MR_OK ? STDOUT_FILENO : -1;
    return rc;
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    return open_sink((struct file_sink *)self, task, err);
}

static void stop(void *self)
{
    struct file_sink *s = (struct file_sink *)self;

    if (s->task != NULL)
        close_file(s);
    file_offsets_deinit(&s->offsets);
}

static const char *const sink_aliases[] = {"org.apache.kafka.connect.file.FileStreamSinkConnector",
                                           NULL};

static int alter_kept(struct file_sink *s, const struct mr_partition_list *offsets,
                      struct mr_error *err)
{
    int rc = lock(s, err);

    if (rc == MR_OK)
        rc = settle(s, err);
    if (rc == MR_OK && offsets->all)
        file_offsets_clear(&s->offsets);
    for (size_t i = 0; i < offsets->count && rc == MR_OK; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        rc = file_offsets_set(&s->offsets, part, part->offset, err);
    }
    if (rc == MR_OK)
        rc = file_offsets_write(&s->offsets, err);
    return rc;
}

/* Without offsets beside the file nothing is kept but what Connect has. */
static int alter_offsets(struct mr_task *connector, const struct mr_partition_list *offsets,
                         struct mr_error *err)
{
    struct file_sink *s;
    int rc;

    if (!mr_config_bool(connector, EXACTLY_ONCE))
        return MR_OK;
    s = (struct file_sink *)calloc(1, sizeof(*s));
    if (s == NULL)
        return mr_fail(err, MR_ERR_FATAL, "Out of memory for %zu offsets", offsets->count);
    rc = open_sink(s, connector, err);
    if (rc == MR_OK)
        rc = alter_kept(s, offsets, err);
    stop(s);
    free(s);
    return rc;
}

const struct mr_sink file_sink_plugin = MR_DESCRIPTOR(
    mr_sink, MR_PLUGIN_SINK, "FileStreamSink", "4.3.1", .aliases = sink_aliases, .keys = sink_keys,
    .doc = "The text of each record as a line of a file", .state_size = sizeof(struct file_sink),
    .start = start, .put = put, .flush = flush, .stop = stop, .open = open_partitions,
    .alter_offsets = alter_offsets, .stores_offsets = EXACTLY_ONCE);
