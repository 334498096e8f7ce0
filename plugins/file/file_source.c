/* SPDX-License-Identifier: Apache-2.0 */
/* FileStreamSource, the plugin: each line of a file is a record. Stands in for
 * FileStreamSourceConnector of Kafka 4.3.1; the differences are told in this folder's README.md.
 * file_tail.c reads files, file_stream.c whatever is none. Also the module of this folder, which
 * has FileStreamSink beside it. */
#include "file_source.h"

#include "file_sink.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct mr_config_key source_keys[] = {
    {.name = "file",
     .doc = "Source filename. If not specified, the standard input will be used.",
     .importance = MR_CFG_HIGH},
    {.name = "topic",
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "The topic to publish data to.",
     .importance = MR_CFG_HIGH},
    {.name = "batch.size",
     .type = MR_CFG_INT,
     .fallback = "2000",
     .doc = "The maximum number of records the source task can read from the file each time it is "
            "polled."},
    {.name = "millrace.file.truncated",
     .flags = MR_CFG_INTERNAL,
     .fallback = "fail",
     .choices = "fail|restart",
     .doc = "What to do with a file that has fewer bytes than were read from it."},
    {.name = "millrace.file.line.max.bytes",
     .type = MR_CFG_INT,
     .flags = MR_CFG_INTERNAL,
     .fallback = "134217728",
     .has_range = true,
     .min = 1024,
     .max = 1073741824,
     .doc = "A longer line fails the task."},
    {0},
};

void file_source_add(struct file_source *s, struct mr_batch *out, const char *line, size_t len,
                     int64_t next)
{
    struct mr_record *rec = mr_batch_add(out, s->topic);

    mr_record_schema(rec, NULL, s->schema);
    mr_record_value(rec, mr_text_from(out->arena, line, len));
    mr_record_offset_in(rec, s->partition, "position", next);
    rec->timestamp = s->now_ms;
}

bool file_source_full(const struct file_source *s, const struct mr_batch *out)
{
    return mr_batch_count(out) >= s->batch_size || mr_batch_full(out);
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct file_source *s = (struct file_source *)self;
    int64_t batch_size = mr_config_long(task, "batch.size");
    const char *truncated = mr_config_str(task, "millrace.file.truncated");
    int rc;

    s->tail.fd = s->stream.fd = s->watch.fd = -1;
    s->task = task;
    s->path = mr_config_str(task, "file");
    s->topic = mr_config_str(task, "topic");
    s->batch_size = batch_size < 1 ? 1 : (size_t)batch_size;
    s->line_max = (size_t)mr_config_long(task, "millrace.file.line.max.bytes");
    s->restart = truncated != NULL && strcmp(truncated, "restart") == 0;
    s->schema = mr_schema_of(task, MR_KIND_STRING, false);
    s->partition = mr_source_partition(task, "filename", s->path);
    if (s->path == NULL) {
        s->stream.fd = STDIN_FILENO;
        return MR_OK;
    }
    rc = mr_offset_long_in(task, s->partition, "position", 0, &s->tail.position, err);
    if (rc == MR_OK && s->tail.position < 0)
        rc = mr_fail(err, MR_ERR_DATA,
                     "The stored position in %s is negative: reset the connector's offsets",
                     s->path);
    if (rc == MR_OK)
        file_watch_start(&s->watch, task, s->path);
    return rc;
}

static int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* On failure nothing was handed over, so nothing has been read. */
static int poll_lines(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct file_source *s = (struct file_source *)self;
    int64_t position = s->tail.position, seen = s->tail.seen;
    int rc;

    s->now_ms = wall_ms();
    if (s->stream.fd >= 0)
        return file_stream_poll(s, out, err);
    rc = file_tail_poll(s, out, err);
    if (rc < 0) {
        s->tail.position = position;
        s->tail.seen = seen;
    }
    return rc;
}

static void stop(void *self)
{
    struct file_source *s = (struct file_source *)self;

    if (s->task == NULL)
        return; /* never started */
    file_watch_stop(&s->watch);
    file_tail_close(&s->tail);
    file_stream_close(&s->stream);
}

static const char *const source_aliases[] = {
    "org.apache.kafka.connect.file.FileStreamSourceConnector", NULL};

/* Offsets that make no sense can be forgotten, but not made. Whether the file is so long is seen
 * when its task starts. */
static int check_offset(const struct mr_offset_change *change, struct mr_error *err)
{
    struct mr_value position, name;
    int64_t n = 0;

    if (mr_is_null(change->offset))
        return MR_OK;
    if (!mr_map_find(change->offset, "position", &position))
        return mr_fail(err, MR_ERR_DATA,
                       "Offset objects should either be null or contain the key 'position'");
    if (!mr_as_long(position, &n))
        return mr_fail(err, MR_ERR_DATA,
                       "The value for the 'position' key in the offset is expected to be a Long "
                       "value");
    if (n < 0)
        return mr_fail(err, MR_ERR_DATA,
                       "The value for the 'position' key in the offset should be a non-negative "
                       "value");
    if (mr_is_null(change->partition))
        return mr_fail(err, MR_ERR_DATA, "Partition objects cannot be null");
    if (!mr_map_find(change->partition, "filename", &name))
        return mr_fail(err, MR_ERR_DATA, "Partition objects should contain the key 'filename'");
    return MR_OK;
}

static int alter_offsets(struct mr_task *connector, const struct mr_offset_list *offsets,
                         struct mr_error *err)
{
    const char *path = mr_config_str(connector, "file");
    int rc = MR_OK;

    if (path == NULL || path[0] == '\0')
        return mr_fail(err, MR_ERR_STATE,
                       "Offsets cannot be modified if the 'file' configuration is unspecified. "
                       "This is because stdin is used for input and offsets are not tracked.");
    for (size_t i = 0; rc == MR_OK && i < offsets->count; i++)
        rc = check_offset(mr_offset_change_at(offsets, i), err);
    return rc;
}

const struct mr_source file_source_plugin = MR_DESCRIPTOR(
    mr_source, MR_PLUGIN_SOURCE, "FileStreamSource", "4.3.1", .aliases = source_aliases,
    .keys = source_keys, .doc = "Each line of a file as a record",
    .state_size = sizeof(struct file_source), .start = start, .poll = poll_lines, .stop = stop,
    .alter_offsets = alter_offsets, .exactly_once = "file");

MR_MODULE(MR_PLUGIN(file_source), MR_PLUGIN(file_sink))
