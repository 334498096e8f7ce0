/* SPDX-License-Identifier: Apache-2.0 */
/* Reads *.log files of brokers: record batches one behind the other, of which only heads matter.
 * Spec: "Record Batch" in Kafka's documentation, magic 2. */
#include "chaos/chaos_segments.h"

#include "support/scratch.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BROKERS 3
#define HEAD_BYTES 61
#define TRANSACTIONAL 0x10
#define CONTROL 0x20

static int64_t number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;

    for (int i = 0; i < bytes; i++)
        n = n << 8 | at[i];
    return bytes == 8 ? (int64_t)n : bytes == 4 ? (int32_t)n : (int16_t)n;
}

static const unsigned char *skip_varint(const unsigned char *at)
{
    while ((*at & 0x80) != 0)
        at++;
    return at + 1;
}

/* The only record of a control batch: its key is a version and a type, 0 abort and 1 commit. */
static enum chaos_batch_kind marker_kind(const unsigned char *record)
{
    const unsigned char *at = skip_varint(record) + 1; /* length, attributes */

    at = skip_varint(skip_varint(skip_varint(at))); /* time, offset, key's length */
    return number(at + 2, 2) == 1 ? CHAOS_COMMIT : CHAOS_ABORT;
}

static struct chaos_batch read_batch(const unsigned char *data)
{
    int64_t attributes = number(data + 21, 2);
    struct chaos_batch batch = {.first = number(data, 8),
                                .producer = number(data + 43, 8),
                                .epoch = (int16_t)number(data + 51, 2)};

    batch.last = batch.first + number(data + 23, 4);
    if ((attributes & CONTROL) != 0)
        batch.kind = marker_kind(data + HEAD_BYTES);
    else
        batch.kind = (attributes & TRANSACTIONAL) != 0 ? CHAOS_IN_TRANSACTION : CHAOS_PLAIN;
    return batch;
}

/* Segments of one replica, in their order; bytes in all. */
static int64_t find(const struct kafka_run *kafka, int broker, const char *topic, int partition,
                    glob_t *files)
{
    int64_t bytes = 0;

    glob(scratch_text("%s/data-%d/%s-%d/*.log", kafka_run_folder_of(kafka), broker, topic,
                      partition),
         0, NULL, files);
    for (size_t i = 0; i < files->gl_pathc; i++) {
        struct stat st;

        bytes += stat(files->gl_pathv[i], &st) == 0 ? st.st_size : 0;
    }
    return bytes;
}

/* The last batch may be half written: it is of no matter yet. */
static int64_t walk_file(const char *file, void (*each)(void *arg, const struct chaos_batch *batch),
                         void *arg)
{
    size_t len = 0;
    const unsigned char *data = (unsigned char *)scratch_read(file, &len);
    int64_t count = 0;

    assert_non_null(data);
    for (size_t at = 0; at + HEAD_BYTES + 16 <= len; count++) {
        struct chaos_batch batch;
        int64_t bytes = number(data + at + 8, 4) + 12;

        if (bytes < HEAD_BYTES || at + (size_t)bytes > len)
            break;
        if (data[at + 16] != 2)
            fail_msg("%s: a batch with magic %d at byte %zu", file, data[at + 16], at);
        batch = read_batch(data + at);
        each(arg, &batch);
        at += (size_t)bytes;
    }
    return count;
}

int64_t chaos_segments_walk(const struct kafka_run *kafka, const char *topic, int partition,
                            void (*each)(void *arg, const struct chaos_batch *batch), void *arg)
{
    int64_t most = -1, count = 0;
    int from = 0;
    glob_t files;

    for (int broker = 1; broker <= BROKERS; broker++) {
        int64_t bytes = find(kafka, broker, topic, partition, &files);

        from = bytes > most ? broker : from;
        most = bytes > most ? bytes : most;
        globfree(&files);
    }
    find(kafka, from, topic, partition, &files);
    for (size_t i = 0; i < files.gl_pathc; i++)
        count += walk_file(files.gl_pathv[i], each, arg);
    globfree(&files);
    return count;
}
