/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that stores its offsets with its records: for tests of what happens when it dies in the
 * middle of that, or believes to own what another one has. Its system is the file `file`, of lines
 *
 *   <topic> <partition> <stored> <offset>;… | <topic>:<partition>:<offset> …\n
 *
 * of which each is one commit: offsets that were moved, records that were taken. A line without an
 * end was never committed. Several processes may write it: all look and write under its lock.
 *
 * `crash` is where it kills itself, once (then there is the file `crashed`): before, torn (half the
 * line is written), after. While there is the file `hold` a put waits before it looks, and makes
 * the file `hold`.waits. */
#include <millrace/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 64
#define HOLD_MS 10

struct place {
    char topic[250];
    int partition;
    long long offset; /* -1: forgotten */
};

struct vault {
    struct mr_task *task;
    int fd;
    struct place places[PLACES];
    size_t count;
};

static const struct mr_config_key vault_keys[] = {
    {"file", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "What it stores"},
    {"crash", MR_CFG_STRING, .fallback = "", .doc = "before, torn or after"},
    {"crashed", MR_CFG_STRING, .fallback = "", .doc = "File that tells of it"},
    {"hold", MR_CFG_STRING, .fallback = "", .doc = "File that a put waits for to go"},
    {0},
};

/* --- the file --------------------------------------------------------------------------------- */

static int lock(int fd, short how)
{
    struct flock whole = {.l_type = how, .l_whence = SEEK_SET};
    int rc;

    do
        rc = fcntl(fd, F_OFD_SETLKW, &whole);
    while (rc != 0 && errno == EINTR);
    return rc;
}

static struct place *find(struct vault *v, const char *topic, int partition)
{
    struct place *place;

    for (size_t i = 0; i < v->count; i++)
        if (v->places[i].partition == partition && strcmp(v->places[i].topic, topic) == 0)
            return &v->places[i];
    if (v->count == PLACES)
        abort();
    place = &v->places[v->count++];
    snprintf(place->topic, sizeof(place->topic), "%s", topic);
    place->partition = partition;
    place->offset = -1;
    return place;
}

static void take_line(struct vault *v, char *line)
{
    char *save = NULL, *bar = strchr(line, '|'), topic[250];
    long long stored, offset;
    int partition;

    *bar = '\0';
    if (strncmp(line, "forget", 6) == 0)
        v->count = 0;
    for (char *item = strtok_r(line, ";", &save); item != NULL; item = strtok_r(NULL, ";", &save))
        if (sscanf(item, "%249s %d %lld %lld", topic, &partition, &stored, &offset) == 4)
            find(v, topic, partition)->offset = offset;
}

/* What is stored now; half a line is cut off. With the lock held. */
static int look(struct vault *v, struct mr_error *err)
{
    off_t size = lseek(v->fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1), *line, *end;

    v->count = 0;
    if (text == NULL || pread(v->fd, text, (size_t)size, 0) != size) {
        free(text);
        return mr_fail(err, MR_ERR_RETRY, "can't read: %s", strerror(errno));
    }
    text[size] = '\0';
    for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        take_line(v, line);
    }
    if (*line != '\0' && ftruncate(v->fd, line - text) != 0)
        mr_fail(err, MR_ERR_FATAL, "can't cut: %s", strerror(errno));
    free(text);
    return err->code;
}

static int open_file(struct vault *v, struct mr_task *task, struct mr_error *err)
{
    v->task = task;
    v->fd = open(mr_config_str(task, "file"), O_CREAT | O_APPEND | O_RDWR | O_CLOEXEC, 0600);
    return v->fd >= 0 ? MR_OK : mr_fail(err, MR_ERR_IO, "vault: %s", strerror(errno));
}

/* --- dying ------------------------------------------------------------------------------------ */

static void die_at(const struct vault *v, const char *where)
{
    int fd;

    if (strcmp(mr_config_str(v->task, "crash"), where) != 0)
        return;
    fd = open(mr_config_str(v->task, "crashed"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        kill(getpid(), SIGKILL);
}

static int write_line(const struct vault *v, const char *line, size_t len, struct mr_error *err)
{
    die_at(v, "before");
    if (strcmp(mr_config_str(v->task, "crash"), "torn") == 0 &&
        access(mr_config_str(v->task, "crashed"), F_OK) != 0 &&
        write(v->fd, line, len / 2) == (ssize_t)(len / 2))
        die_at(v, "torn");
    if (write(v->fd, line, len) != (ssize_t)len)
        return mr_fail(err, MR_ERR_FATAL, "can't write: %s", strerror(errno));
    die_at(v, "after");
    return MR_OK;
}

/* --- slots ------------------------------------------------------------------------------------ */

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    return open_file(self, task, err);
}

static int on_open(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    struct vault *v = self;
    int rc;

    lock(v->fd, F_WRLCK);
    rc = look(v, err);
    lock(v->fd, F_UNLCK);
    for (size_t i = 0; i < parts->count; i++) {
        struct mr_partition *part = mr_partition_at(parts, i);

        part->stored = find(v, part->topic, part->partition)->offset;
    }
    return rc;
}

static void hold(const struct vault *v)
{
    struct pollfd stop = {.fd = mr_stop_fd(v->task), .events = POLLIN};
    const char *gate = mr_config_str(v->task, "hold");
    char waits[4096];
    int fd;

    snprintf(waits, sizeof(waits), "%s.waits", gate);
    if (access(gate, F_OK) == 0 && (fd = open(waits, O_CREAT | O_WRONLY, 0600)) >= 0)
        close(fd);
    while (access(gate, F_OK) == 0 && poll(&stop, 1, HOLD_MS) <= 0)
        ;
}

static void tell_offsets(FILE *out, const struct mr_partition_list *offsets)
{
    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        fprintf(out, "%s %d %lld %lld;", part->topic, (int)part->partition, (long long)part->stored,
                (long long)part->offset);
    }
    fputs(" |", out);
}

static int commit(struct vault *v, const struct mr_batch *in, struct mr_error *err)
{
    const struct mr_partition_list *offsets = mr_batch_offsets(in);
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);
    int rc;

    if (out == NULL)
        abort();
    tell_offsets(out, offsets);
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);

        fprintf(out, " %s:%d:%lld", rec->topic, (int)rec->partition, (long long)rec->offset);
    }
    fputc('\n', out);
    fclose(out);
    rc = write_line(v, line, len, err);
    free(line);
    return rc;
}

static int put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct vault *v = self;
    const struct mr_partition_list *offsets = mr_batch_offsets(in);
    int rc;

    hold(v);
    lock(v->fd, F_WRLCK);
    rc = look(v, err);
    for (size_t i = 0; i < offsets->count && rc == MR_OK; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        if (find(v, part->topic, part->partition)->offset != part->stored)
            rc = mr_fail(err, MR_ERR_STALE, "another task has moved %s-%d", part->topic,
                         (int)part->partition);
    }
    if (rc == MR_OK)
        rc = commit(v, in, err);
    lock(v->fd, F_UNLCK);
    return rc;
}

static void stop(void *self)
{
    struct vault *v = self;

    if (v->fd > 0)
        close(v->fd);
}

static int alter_offsets(struct mr_task *connector, const struct mr_partition_list *offsets,
                         struct mr_error *err)
{
    struct vault v = {0};
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);
    int rc = open_file(&v, connector, err);

    if (out == NULL)
        abort();
    if (offsets->all)
        fputs("forget;", out);
    tell_offsets(out, offsets);
    fputc('\n', out);
    fclose(out);
    if (rc == MR_OK) {
        lock(v.fd, F_WRLCK);
        if (write(v.fd, line, len) != (ssize_t)len)
            rc = mr_fail(err, MR_ERR_FATAL, "can't write: %s", strerror(errno));
        close(v.fd);
    }
    free(line);
    return rc;
}

MR_SINK(Vault, "1.0", .keys = vault_keys, .state_size = sizeof(struct vault), .start = start,
        .put = put, .stop = stop, .open = on_open, .alter_offsets = alter_offsets,
        .stores_offsets = "")
