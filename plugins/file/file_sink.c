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
 * attribute says that it is one. */
#include "file_sink.h"

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
    size_t len;
    char buffer[BUFFER];
};

static const struct mr_config_key sink_keys[] = {
    {.name = "file",
     .doc = "Destination filename. If not specified, the standard output will be used.",
     .importance = MR_CFG_HIGH},
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

    while (s->regular && fcntl(s->fd, F_OFD_SETLKW, &whole) != 0 && errno == EINTR)
        if (stopping(s))
            return mr_fail(err, MR_ERR_RETRY, "Stopped while another holds the lock of %s",
                           s->path);
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
    if (!s->regular)
        return MR_OK;
    rc = lock(s, err);
    if (rc == MR_OK)
        rc = check_end(s, err);
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

static int write_buffer(struct file_sink *s, struct mr_error *err)
{
    size_t len = s->len;

    s->len = 0;
    return write_out(s, s->buffer, len, err);
}

static int add_line(struct file_sink *s, const char *text, size_t len, struct mr_error *err)
{
    int rc = MR_OK;

    if (len + 1 > BUFFER - s->len)
        rc = write_buffer(s, err);
    if (rc == MR_OK && len >= LARGE) {
        rc = write_buffer(s, err);
        if (rc == MR_OK)
            rc = write_out(s, text, len, err);
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

/* Halves of surrogate pairs, which text from JSON may hold in three bytes, become '?' as in
 * Java. */
static const char *without_halves(struct mr_arena *arena, const char *text, size_t *len)
{
    const char *half = (const char *)memchr(text, 0xed, *len);
    char *copy;
    size_t n = 0;

    if (half == NULL)
        return text;
    copy = (char *)mr_alloc(arena, *len);
    for (size_t i = 0; i < *len; n++) {
        bool is_half = *len - i >= 3 && text[i] == '\xed' && (unsigned char)text[i + 1] >= 0xa0;

        copy[n] = is_half ? '?' : text[i];
        i += is_half ? 3 : 1;
    }
    *len = n;
    return copy;
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

        text = without_halves(in->arena, text, &len);
        rc = add_line(s, text, len, err);
    }
    if (rc == MR_OK)
        rc = write_buffer(s, err);
    if (rc != MR_OK)
        cut_back(s);
    return rc;
}

static int put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct file_sink *s = (struct file_sink *)self;
    int rc;

    if (mr_batch_count(in) == 0)
        return MR_OK;
    rc = follow_name(s, err);
    if (rc == MR_OK)
        rc = lock(s, err);
    if (rc != MR_OK)
        return rc;
    rc = put_lines(s, in, err);
    unlock(s);
    return rc;
}

/* --- on the disk ------------------------------------------------------------------------------ */

/* A new file is only there after a crash when its folder is on the disk too. */
static int sync_folder(struct file_sink *s, struct mr_error *err)
{
    const char *slash = strrchr(s->path, '/');
    size_t len = slash == NULL ? 0 : slash == s->path ? 1 : (size_t)(slash - s->path);
    char *folder = len == 0 ? strdup(".") : strndup(s->path, len);
    int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = MR_OK;

    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL)
        rc = mr_fail(err, MR_ERR_FATAL, "Can't bring the folder %s to the disk: %s", folder,
                     strerror(errno));
    if (fd >= 0)
        close(fd);
    free(folder);
    s->created = rc != MR_OK;
    return rc;
}

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
    return s->created ? sync_folder(s, err) : MR_OK;
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct file_sink *s = (struct file_sink *)self;

    s->fd = -1;
    s->task = task;
    s->path = mr_config_str(task, "file");
    if (s->path != NULL)
        return open_file(s, err);
    s->fd = STDOUT_FILENO;
    return MR_OK;
}

static void stop(void *self)
{
    struct file_sink *s = (struct file_sink *)self;

    if (s->task != NULL)
        close_file(s);
}

static const char *const sink_aliases[] = {"org.apache.kafka.connect.file.FileStreamSinkConnector",
                                           NULL};

/* Nothing is kept but what Connect has: where in the file a record went is not known. */
static int alter_offsets(struct mr_task *connector, const struct mr_partition_list *offsets,
                         struct mr_error *err)
{
    (void)connector;
    (void)offsets;
    (void)err;
    return MR_OK;
}

const struct mr_sink file_sink_plugin = MR_DESCRIPTOR(
    mr_sink, MR_PLUGIN_SINK, "FileStreamSink", "4.3.1", .aliases = sink_aliases, .keys = sink_keys,
    .doc = "The text of each record as a line of a file", .state_size = sizeof(struct file_sink),
    .start = start, .put = put, .flush = flush, .stop = stop, .alter_offsets = alter_offsets);
