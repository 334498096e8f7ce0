/* SPDX-License-Identifier: Apache-2.0 */
/* A source that says beforehand what it will hand over, and a sink that says what it was given:
 * into side files which are outside of what is tested, so that a lost, doubled or late record
 * shows. Each life of a task (an incarnation) has a name of its own, "<pid>-<boot clock in ms>".
 * Files are only appended to, one write a line or block: their order is the order of events.
 *
 *   source  task n counts upwards into topic "<topic>-<n>", `rate` records a second, value
 *           "<number> <incarnation> <boot ms>", and keeps its place in the offsets {"name":
 *           "<connector>-<n>"} → {"next": number}. File "<ledger>.<n>":
 *             S <incarnation> <first number> <boot ms>    started there
 *             P <incarnation> <first> <last> <boot ms>    these are handed over now
 *             E <incarnation> <boot ms>                   stopped
 *           Where there is a file "<ledger>.shift" with a number in it when tasks are made, task n
 *           goes on as task n + number, which begins anew behind the last: they change places.
 *   sink    file "<ledger>": <topic> <partition> <offset> <incarnation> <boot ms>, once for each
 *           record put
 *
 * `slow.stop.ms` makes stop take that long, for members that are late at a round. */
#include <millrace/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 10
#define BATCH_MAX 500

static int64_t boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What both have. */
struct life {
    int fd;
    char incarnation[48];
};

static int open_ledger(struct life *life, const char *file, struct mr_error *err)
{
    life->fd = open(file, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    if (life->fd < 0)
        return mr_fail(err, MR_ERR_IO, "%s: %s", file, strerror(errno));
    snprintf(life->incarnation, sizeof(life->incarnation), "%d-%lld", (int)getpid(),
             (long long)boot_ms());
    return MR_OK;
}

static int append(const struct life *life, const char *text, size_t len, struct mr_error *err)
{
    ssize_t n;

    do
        n = write(life->fd, text, len);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)len ? MR_OK : mr_fail(err, MR_ERR_IO, "ledger: %s", strerror(errno));
}

static void wait_before_stop(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static int add_tasks(struct mr_task *conn, int max, int shift, struct mr_task_list *list)
{
    char number[24];

    for (int i = 0; i < max; i++) {
        if (mr_task_add(conn, list) < 0)
            return MR_ERR_FULL;
        snprintf(number, sizeof(number), "%d", (i + shift) % max);
        mr_task_set(conn, list, "number", number);
    }
    return MR_OK;
}

/* --- source ----------------------------------------------------------------------------------- */

struct ledger_source {
    struct life life;
    char topic[250];
    char name[250];
    int64_t rate;
    int64_t slow_stop_ms;
    int64_t next;
    int64_t first;
    int64_t from_ms;
};

static const struct mr_config_key source_keys[] = {
    {"name", MR_CFG_STRING, .fallback = "ledger", .doc = "Of the connector"},
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topics are <this>-<number of the task>"},
    {"ledger", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Files are <this>.<number of the task>"},
    {"rate", MR_CFG_LONG, .fallback = "100", .doc = "Records a second and task"},
    {"slow.stop.ms", MR_CFG_LONG, .fallback = "0", .doc = "How long stop takes"},
    {"number", MR_CFG_LONG, .fallback = "0", .doc = "Of this task"},
    {0},
};

static int shift_of(const char *ledger)
{
    char file[4096], digits[12] = "";
    int fd;

    snprintf(file, sizeof(file), "%s.shift", ledger);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, digits, sizeof(digits) - 1) < 0)
        digits[0] = '\0';
    if (fd >= 0)
        close(fd);
    return (int)strtol(digits, NULL, 10);
}

static int source_tasks(struct mr_task *conn, int max, struct mr_task_list *list,
                        struct mr_error *err)
{
    (void)err;
    return add_tasks(conn, max, shift_of(mr_config_str(conn, "ledger")), list);
}

static int source_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct ledger_source *s = self;
    long long number = (long long)mr_config_long(task, "number");
    char text[300], file[4096];
    int rc;

    snprintf(file, sizeof(file), "%s.%lld", mr_config_str(task, "ledger"), number);
    snprintf(s->topic, sizeof(s->topic), "%s-%lld", mr_config_str(task, "topic"), number);
    snprintf(s->name, sizeof(s->name), "%s-%lld", mr_config_str(task, "name"), number);
    s->rate = mr_config_long(task, "rate");
    s->slow_stop_ms = mr_config_long(task, "slow.stop.ms");
    rc = mr_offset_long(task, s->name, "next", 0, &s->next, err);
    if (rc == MR_OK)
        rc = open_ledger(&s->life, file, err);
    if (rc != MR_OK)
        return rc;
    s->first = s->next;
    s->from_ms = boot_ms();
    snprintf(text, sizeof(text), "S %s %lld %lld\n", s->life.incarnation, (long long)s->next,
             (long long)s->from_ms);
    return append(&s->life, text, strlen(text), err);
}

static int source_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct ledger_source *s = self;
    int64_t now_ms = boot_ms(), due = s->first + (now_ms - s->from_ms) * s->rate / 1000;
    char text[200];
    int rc;

    if (due > s->next + BATCH_MAX)
        due = s->next + BATCH_MAX;
    if (due <= s->next)
        return mr_again_in(out, POLL_MS);
    snprintf(text, sizeof(text), "P %s %lld %lld %lld\n", s->life.incarnation, (long long)s->next,
             (long long)due - 1, (long long)now_ms);
    rc = append(&s->life, text, strlen(text), err);
    while (rc == MR_OK && s->next < due) {
        struct mr_record *rec = mr_batch_add(out, s->topic);
        int len = snprintf(text, sizeof(text), "%lld %s %lld", (long long)s->next,
                           s->life.incarnation, (long long)now_ms);

        mr_record_value(rec, mr_text_copy(out->arena, text, (size_t)len));
        mr_record_offset(rec, s->name, "next", ++s->next);
    }
    return rc == MR_OK ? mr_again_in(out, POLL_MS) : rc;
}

static void source_stop(void *self)
{
    struct ledger_source *s = self;
    char text[200];

    if (s->life.incarnation[0] == '\0')
        return;
    wait_before_stop(s->slow_stop_ms);
    snprintf(text, sizeof(text), "E %s %lld\n", s->life.incarnation, (long long)boot_ms());
    append(&s->life, text, strlen(text), NULL);
    close(s->life.fd);
}

MR_DEFINE_SOURCE(source, "LedgerSource", "1.0", .keys = source_keys,
                 .state_size = sizeof(struct ledger_source), .start = source_start,
                 .poll = source_poll, .stop = source_stop, .tasks = source_tasks);

/* --- sink ------------------------------------------------------------------------------------- */

struct ledger_sink {
    struct life life;
    char *text;
};

#define LINE_MAX_BYTES 400

static const struct mr_config_key sink_keys[] = {
    {"ledger", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "File"},
    {0},
};

static int sink_tasks(struct mr_task *conn, int max, struct mr_task_list *list,
                      struct mr_error *err)
{
    (void)err;
    return add_tasks(conn, max, 0, list);
}

static int sink_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct ledger_sink *s = self;

    s->text = malloc(BATCH_MAX * LINE_MAX_BYTES);
    if (s->text == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    return open_ledger(&s->life, mr_config_str(task, "ledger"), err);
}

static int sink_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct ledger_sink *s = self;
    long long now_ms = (long long)boot_ms();
    size_t count = mr_batch_count(in), len = 0;
    int rc = MR_OK;

    for (size_t i = 0; i < count && rc == MR_OK; i++) {
        const struct mr_record *rec = mr_record_at(in, i);

        len +=
            (size_t)snprintf(s->text + len, LINE_MAX_BYTES, "%s %d %lld %s %lld\n", rec->topic,
                             rec->partition, (long long)rec->offset, s->life.incarnation, now_ms);
        if ((i + 1) % BATCH_MAX == 0 || i + 1 == count) {
            rc = append(&s->life, s->text, len, err);
            len = 0;
        }
    }
    return rc;
}

static void sink_stop(void *self)
{
    struct ledger_sink *s = self;

    free(s->text);
    if (s->life.fd > 0)
        close(s->life.fd);
}

MR_DEFINE_SINK(sink, "LedgerSink", "1.0", .keys = sink_keys,
               .state_size = sizeof(struct ledger_sink), .start = sink_start, .put = sink_put,
               .stop = sink_stop, .tasks = sink_tasks);

MR_MODULE(MR_PLUGIN(source), MR_PLUGIN(sink))
