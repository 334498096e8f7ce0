/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sink keeps its offsets when it is to deliver exactly once. The file's lines are written
 * and brought to the disk first; then this text is written beside it and renamed into its place,
 * which happens as a whole or not at all:
 *
 *   millrace-offsets 1 <size of the file>
 *   <topic> <partition> <offset>
 *   end
 *
 * A process that is killed before the rename leaves lines behind that size, which the next one cuts
 * off. Called by file_sink.c with the file's lock held; the task's thread. */
#include "file_offsets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX ((off_t)64 * 1024 * 1024)
#define TOPIC_MAX 249 /* Kafka's own limit */

int file_offsets_init(struct file_offsets *o, const char *file, struct mr_error *err)
{
    if (asprintf(&o->path, "%s.offsets", file) < 0)
        o->path = NULL;
    if (asprintf(&o->new_path, "%s.offsets.new", file) < 0)
        o->new_path = NULL;
    return o->path != NULL && o->new_path != NULL
               ? MR_OK
               : mr_fail(err, MR_ERR_FATAL, "Out of memory for the offsets of %s", file);
}

void file_offsets_clear(struct file_offsets *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->items[i].topic);
    o->count = 0;
}

void file_offsets_deinit(struct file_offsets *o)
{
    file_offsets_clear(o);
    free(o->items);
    free(o->path);
    free(o->new_path);
}

static int fail_io(const char *what, const char *path, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "Can't %s %s: %s", what, path, strerror(errno));
}

/* --- one offset ------------------------------------------------------------------------------- */

static struct file_offset *find(const struct file_offsets *o, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->items[i].partition == partition && strcmp(o->items[i].topic, topic) == 0)
            return &o->items[i];
    return NULL;
}

int64_t file_offsets_get(const struct file_offsets *o, const char *topic, int32_t partition)
{
    const struct file_offset *item = find(o, topic, partition);

    return item == NULL ? -1 : item->offset;
}

static int add(struct file_offsets *o, const struct mr_partition *part, int64_t offset,
               struct mr_error *err)
{
    if (o->count == o->cap) {
        size_t cap = o->cap == 0 ? 16 : o->cap * 2;
        struct file_offset *items = realloc(o->items, cap * sizeof(*items));

        if (items == NULL)
            return mr_fail(err, MR_ERR_FATAL, "Out of memory for %zu offsets", cap);
        o->items = items;
        o->cap = cap;
    }
    o->items[o->count] = (struct file_offset){strdup(part->topic), part->partition, offset};
    if (o->items[o->count].topic == NULL)
        return mr_fail(err, MR_ERR_FATAL, "Out of memory for %zu offsets", o->count);
    o->count++;
    return MR_OK;
}

int file_offsets_set(struct file_offsets *o, const struct mr_partition *part, int64_t offset,
                     struct mr_error *err)
{
    struct file_offset *item = find(o, part->topic, part->partition);

    if (item == NULL)
        return offset < 0 ? MR_OK : add(o, part, offset, err);
    item->offset = offset;
    if (offset < 0) {
        free(item->topic);
        *item = o->items[--o->count];
    }
    return MR_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static char *read_text(int fd, off_t size)
{
    char *text = size > TEXT_MAX ? NULL : malloc((size_t)size + 1);

    if (text == NULL || pread(fd, text, (size_t)size, 0) != (ssize_t)size) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* A decimal number of at least 0 and at most max, and what stands behind it. */
static bool take_number(char **at, int64_t max, char behind, int64_t *out)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    if (errno != 0 || *out > max || *end != behind)
        return false;
    *at = end + 1;
    return true;
}

static bool take_entry(struct file_offsets *o, char **at, struct mr_error *err)
{
    struct mr_partition part = {.topic = *at};
    char *blank = strpbrk(*at, " \n");
    int64_t partition, offset;

    if (blank == NULL || *blank != ' ' || blank == *at || blank - *at > TOPIC_MAX)
        return false;
    *blank = '\0';
    *at = blank + 1;
    if (!take_number(at, INT32_MAX, ' ', &partition) || !take_number(at, INT64_MAX, '\n', &offset))
        return false;
    part.partition = (int32_t)partition;
    return find(o, part.topic, part.partition) == NULL && add(o, &part, offset, err) == MR_OK;
}

static int parse(struct file_offsets *o, char *text, struct mr_error *err)
{
    static const char head[] = "millrace-offsets 1 ";
    char *at = text + sizeof(head) - 1;
    bool good =
        strncmp(text, head, sizeof(head) - 1) == 0 && take_number(&at, INT64_MAX, '\n', &o->size);

    while (good && strcmp(at, "end\n") != 0)
        good = take_entry(o, &at, err);
    return good
               ? MR_OK
               : mr_fail(err, MR_ERR_FATAL,
                         "%s was not written by this sink, or is damaged: bring it back as it was, "
                         "or remove it and check the end of the file by hand; reading then goes on "
                         "at the offsets that the consumer group has",
                         o->path);
}

int file_offsets_read(struct file_offsets *o, struct mr_error *err)
{
    int fd = open(o->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    int rc;

    file_offsets_clear(o);
    o->size = 0;
    if (fd < 0 && errno == ENOENT)
        return MR_ERR_NOT_FOUND;
    if (fd < 0 || fstat(fd, &st) != 0 || (text = read_text(fd, st.st_size)) == NULL)
        rc = fail_io("read", o->path, err);
    else
        rc = parse(o, text, err);
    free(text);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool print(const struct file_offsets *o, int fd)
{
    FILE *out = fdopen(fd, "w");
    bool good;

    if (out == NULL) {
        close(fd);
        return false;
    }
    fprintf(out, "millrace-offsets 1 %" PRId64 "\n", o->size);
    for (size_t i = 0; i < o->count; i++)
        fprintf(out, "%s %d %" PRId64 "\n", o->items[i].topic, (int)o->items[i].partition,
                o->items[i].offset);
    fputs("end\n", out);
    good = fflush(out) == 0 && !ferror(out) && fdatasync(fileno(out)) == 0;
    return fclose(out) == 0 && good;
}

int file_offsets_sync_folder(const char *path, struct mr_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = len == 0 ? strdup(".") : strndup(path, len);
    int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = MR_OK;

    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL)
        rc = mr_fail(err, MR_ERR_FATAL, "Can't bring the folder %s to the disk: %s", folder,
                     strerror(errno));
    if (fd >= 0)
        close(fd);
    free(folder);
    return rc;
}

int file_offsets_write(const struct file_offsets *o, struct mr_error *err)
{
    int fd = open(o->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 || !print(o, fd) || rename(o->new_path, o->path) != 0)
        return fail_io("write", o->new_path, err);
    if (file_offsets_sync_folder(o->path, err) != MR_OK)
        return err->code = MR_ERR_STALE;
    return MR_OK;
}
