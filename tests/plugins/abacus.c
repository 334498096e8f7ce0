/* SPDX-License-Identifier: Apache-2.0 */
/* What proves exactly once where the numbers of a LedgerSource (diary.c) go: values begin with
 * their number.
 *
 *   AbacusRelay  emits each record to topic "<its topic><suffix>", its own partition, value
 *                "<number> <count>": how many records of its partition went before it, kept as
 *                state. Both are the same where nothing was lost or doubled, in topic or state.
 *   AbacusSink   stores its offsets with what it was given, in one file that all its tasks share
 *                and only append to, a line a commit:
 *                  <incarnation> <boot ms>;<topic> <partition> <stored> <next> <runs>;…;\n
 *                runs are what was put: "3-8,9-9,". stored must be what the file says last of that
 *                partition, or the put is refused. A line without an end was never committed.
 *
 * A call of either that finds a file <doze> renames it to <doze>.now, and waits until that is gone:
 * one task at a time. */
#include <millrace/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PLACES 64
#define TOPIC_BYTES 250

static int64_t number_of(const struct mr_record *rec)
{
    const char *text;
    size_t len;
    char digits[24];

    if (!mr_as_text(mr_value(rec), &text, &len))
        return -1;
    snprintf(digits, sizeof(digits), "%.*s", (int)(len < 20 ? len : 20), text);
    return strtoll(digits, NULL, 10);
}

/* --- calls that last long --------------------------------------------------------------------- */

/* Whoever wants the task to stop sends it a signal. */
static void doze(const char *file)
{
    static const struct timespec moment = {0, 10000000};
    char now[4096];

    if (file[0] == '\0')
        return;
    snprintf(now, sizeof(now), "%s.now", file);
    if (rename(file, now) == 0)
        while (access(now, F_OK) == 0 && nanosleep(&moment, NULL) == 0)
            ;
}

/* --- relay ------------------------------------------------------------------------------------ */

struct relay {
    const char *suffix;
    const char *doze;
};

static const struct mr_config_key relay_keys[] = {
    {"suffix", MR_CFG_STRING, .fallback = "-out", .doc = "Of the topics to emit to"},
    {"doze", MR_CFG_STRING, .fallback = "", .doc = "A file: see above"},
    {0},
};

static int relay_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct relay *r = self;

    (void)err;
    r->suffix = mr_config_str(task, "suffix");
    r->doze = mr_config_str(task, "doze");
    return MR_OK;
}

static int relay_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                       struct mr_error *err)
{
    const struct relay *r = self;
    struct mr_value key = mr_text("count", 5);

    (void)err;
    doze(r->doze);
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);
        int64_t count = mr_state_long(out, key, 0);
        char topic[TOPIC_BYTES], text[48];
        int len =
            snprintf(text, sizeof(text), "%lld %lld", (long long)number_of(rec), (long long)count);
        struct mr_record *made;

        snprintf(topic, sizeof(topic), "%s%s", rec->topic, r->suffix);
        made = mr_emit_add(out, topic);
        made->partition = rec->partition;
        mr_record_value(made, mr_text_copy(out->arena, text, (size_t)len));
        mr_state_set(out, key, mr_long(count + 1));
    }
    return MR_OK;
}

MR_DEFINE_SINK(relay, "AbacusRelay", "1.0", .keys = relay_keys, .state_size = sizeof(struct relay),
               .start = relay_start, .emits = relay_emits);

/* --- sink: what its file says ----------------------------------------------------------------- */

struct place {
    char topic[TOPIC_BYTES];
    int partition;
    long long next; /* -1: nothing is stored */
};

struct sink {
    int fd;
    off_t seen; /* of the file, up to the end of a line */
    const char *doze;
    char incarnation[48];
    struct place places[PLACES];
    size_t count;
};

static long long boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int lock(int fd, short how)
{
    struct flock whole = {.l_type = how, .l_whence = SEEK_SET};
    int rc;

    do
        rc = fcntl(fd, F_OFD_SETLKW, &whole);
    while (rc != 0 && errno == EINTR);
    return rc;
}

static struct place *find(struct sink *s, const char *topic, int partition)
{
    struct place *place;

    for (size_t i = 0; i < s->count; i++)
        if (s->places[i].partition == partition && strcmp(s->places[i].topic, topic) == 0)
            return &s->places[i];
    if (s->count == PLACES)
        abort();
    place = &s->places[s->count++];
    snprintf(place->topic, sizeof(place->topic), "%s", topic);
    place->partition = partition;
    place->next = -1;
    return place;
}

static void take_line(struct sink *s, const char *line)
{
    const char *at = line;
    char topic[TOPIC_BYTES];
    long long next;
    int partition;

    while ((at = strchr(at, ';')) != NULL)
        if (sscanf(++at, "%249s %d %*d %lld", topic, &partition, &next) == 3)
            find(s, topic, partition)->next = next;
}

/* What others have stored since; half a line is cut off. With the lock held. */
static int look(struct sink *s, struct mr_error *err)
{
    off_t size = lseek(s->fd, 0, SEEK_END);
    size_t more = size > s->seen ? (size_t)(size - s->seen) : 0;
    char *text = malloc(more + 1), *line = text, *end;
    int rc = MR_OK;

    if (text == NULL || pread(s->fd, text, more, s->seen) != (ssize_t)more) {
        free(text);
        return mr_fail(err, MR_ERR_RETRY, "can't read: %s", strerror(errno));
    }
    text[more] = '\0';
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        take_line(s, line);
    }
    s->seen += line - text;
    if (*line != '\0' && ftruncate(s->fd, s->seen) != 0)
        rc = mr_fail(err, MR_ERR_FATAL, "can't cut: %s", strerror(errno));
    free(text);
    return rc;
}

/* --- sink: slots ------------------------------------------------------------------------------ */

static const struct mr_config_key sink_keys[] = {
    {"file", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "What it stores"},
    {"doze", MR_CFG_STRING, .fallback = "", .doc = "As of the relay"},
    {0},
};

static int sink_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct sink *s = self;
    const char *file = mr_config_str(task, "file");

    s->doze = mr_config_str(task, "doze");
    snprintf(s->incarnation, sizeof(s->incarnation), "%d-%lld", (int)getpid(), boot_ms());
    s->fd = open(file, O_CREAT | O_APPEND | O_RDWR | O_CLOEXEC, 0600);
    return s->fd >= 0 ? MR_OK : mr_fail(err, MR_ERR_IO, "%s: %s", file, strerror(errno));
}

static int sink_open(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    struct sink *s = self;
    int rc;

    lock(s->fd, F_WRLCK);
    rc = look(s, err);
    lock(s->fd, F_UNLCK);
    for (size_t i = 0; i < parts->count; i++) {
        struct mr_partition *part = mr_partition_at(parts, i);

        part->stored = find(s, part->topic, part->partition)->next;
    }
    return rc;
}

static void write_run(FILE *out, int64_t first, int64_t last)
{
    if (first <= last)
        fprintf(out, "%lld-%lld,", (long long)first, (long long)last);
}

/* The numbers of one partition, in the order of the batch. */
static void write_runs(FILE *out, const struct mr_batch *in, const struct mr_partition *part)
{
    int64_t first = 0, last = -1;

    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);
        int64_t number;

        if (rec->partition != part->partition || strcmp(rec->topic, part->topic) != 0)
            continue;
        number = number_of(rec);
        if (number != last + 1 || first > last) {
            write_run(out, first, last);
            first = number;
        }
        last = number;
    }
    write_run(out, first, last);
}

/* in: NULL: offsets that were altered, of records that nobody puts. */
static int store(const struct sink *s, const struct mr_partition_list *offsets,
                 const struct mr_batch *in, struct mr_error *err)
{
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);
    int rc = MR_OK;

    if (out == NULL)
        abort();
    fprintf(out, "%s %lld;", s->incarnation, boot_ms());
    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        fprintf(out, "%s %d %lld %lld ", part->topic, (int)part->partition, (long long)part->stored,
                (long long)part->offset);
        if (in != NULL)
            write_runs(out, in, part);
        fputc(';', out);
    }
    fputc('\n', out);
    fclose(out);
    if (write(s->fd, line, len) != (ssize_t)len)
        rc = mr_fail(err, MR_ERR_FATAL, "can't write: %s", strerror(errno));
    free(line);
    return rc;
}

static int sink_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct sink *s = self;
    const struct mr_partition_list *offsets = mr_batch_offsets(in);
    int rc;

    doze(s->doze);
    lock(s->fd, F_WRLCK);
    rc = look(s, err);
    for (size_t i = 0; i < offsets->count && rc == MR_OK; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        if (find(s, part->topic, part->partition)->next != part->stored)
            rc = mr_fail(err, MR_ERR_STALE, "another task has moved %s-%d", part->topic,
                         (int)part->partition);
    }
    if (rc == MR_OK)
        rc = store(s, offsets, in, err);
    lock(s->fd, F_UNLCK);
    return rc;
}

static void sink_stop(void *self)
{
    struct sink *s = self;

    if (s->fd > 0)
        close(s->fd);
}

/* Not of all at once: nobody asks that of it. */
static int sink_alter(struct mr_task *connector, const struct mr_partition_list *offsets,
                      struct mr_error *err)
{
    struct sink s = {0};
    int rc = offsets->all ? mr_fail(err, MR_ERR_DATA, "name the partitions to forget") : MR_OK;

    if (rc == MR_OK)
        rc = sink_start(&s, connector, err);
    if (rc != MR_OK)
        return rc;
    lock(s.fd, F_WRLCK);
    rc = look(&s, err);
    if (rc == MR_OK)
        rc = store(&s, offsets, NULL, err);
    close(s.fd);
    return rc;
}

MR_DEFINE_SINK(sink, "AbacusSink", "1.0", .keys = sink_keys, .state_size = sizeof(struct sink),
               .start = sink_start, .put = sink_put, .stop = sink_stop, .open = sink_open,
               .alter_offsets = sink_alter, .stores_offsets = "");

MR_MODULE(MR_PLUGIN(relay), MR_PLUGIN(sink))
