/* SPDX-License-Identifier: Apache-2.0 */
/* A library that misbehaves on demand: in callback `where`, in the way of `how`, at its `after`-th
 * call.
 *
 * Until then (and in every other callback) it behaves: the source counts upwards, one record every
 * `interval.ms`, value "<task> <number>", and keeps its place in the offsets {"name":
 * "hostile-<task>"} → {"next": number}; the sink appends one line per record to `file`,
 * "<partition> <offset> <value>", and writes it out in flush. The converter takes and gives text.
 *
 *   where   start poll put flush committed interrupt stop tasks convert (the converter's own key is
 *           just `how`)
 *   how     see hows[] at the end: crashes, hangs, lies
 *   only    number of the task that misbehaves, -1 all of them
 *   once    a file: misbehave only when it is not there, and make it first
 *
 * A constructor misbehaves too, when the environment names a file in HOSTILE_LOAD: its content is
 * the `how`. */
#include <millrace/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What one instance needs to know about being bad. */
struct mood {
    struct mr_task *task;
    const char *where;
    const char *how;
    const char *once;
    int64_t after;
    int64_t calls;
    bool mine;
};

struct act {
    struct mood *mood;
    struct mr_batch *batch; /* poll only */
    struct mr_error *err;
};

typedef int (*how_fn)(struct act *act);

static how_fn how_of(const char *name);

static bool first_time(const char *file)
{
    int fd;

    if (file == NULL)
        return true;
    fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* 0 in a good mood, else what the callback is to return. */
static int maybe(struct mood *mood, const char *here, struct mr_batch *batch, struct mr_error *err)
{
    struct act act = {mood, batch, err};

    if (mood->where == NULL || !mood->mine || strcmp(mood->where, here) != 0)
        return 0;
    if (++mood->calls < mood->after || !first_time(mood->once))
        return 0;
    return how_of(mood->how)(&act);
}

static void set_mood(struct mood *mood, struct mr_task *task, int64_t number)
{
    int64_t only = mr_config_long(task, "only");

    mood->task = task;
    mood->where = mr_config_str(task, "where");
    mood->how = mr_config_str(task, "how");
    mood->once = mr_config_str(task, "once");
    mood->after = mr_config_long(task, "after");
    mood->mine = only < 0 || only == number;
}

/* --- the ways --------------------------------------------------------------------------------- */

static void forever(void)
{
    for (;;)
        pause();
}

static int do_segv(struct act *act)
{
    int *volatile nowhere = (int *)(uintptr_t)8;

    *nowhere = 1;
    return 0;
}

static int do_abort(struct act *act)
{
    abort();
}

static int do_exit(struct act *act)
{
    exit(3);
}

static int do_double_free(struct act *act)
{
    void *volatile p = malloc(4000);

    free(p);
    free(p);
    abort(); /* an allocator that did not notice */
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#endif
/* Steps smaller than a guard page: it must be hit, not leapt over. */
__attribute__((noinline)) static int overflow(volatile char *above)
{
    volatile char frame[512];

    frame[0] = above == NULL ? 0 : above[0];
    frame[511] = (char)overflow(frame);
    return frame[511] + frame[0];
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

static int do_overflow(struct act *act)
{
    return overflow(NULL);
}

static int do_ill(struct act *act)
{
    raise(SIGILL);
    return 0;
}

static int do_fpe(struct act *act)
{
    raise(SIGFPE);
    return 0;
}

static int do_sleep(struct act *act)
{
    forever();
    return 0;
}

static int do_spin(struct act *act)
{
    volatile int on = 1;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (on)
        continue;
    return 0;
}

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;

static int do_lock(struct act *act)
{
    pthread_mutex_lock(&wanted);
    forever();
    return 0;
}

/* Another one that wants the lock which `lock` keeps. */
static int do_want_lock(struct act *act)
{
    pthread_mutex_lock(&wanted);
    pthread_mutex_unlock(&wanted);
    return 0;
}

static int do_read(struct act *act)
{
    int fds[2];
    char byte;

    if (pipe(fds) != 0)
        abort();
    while (read(fds[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    return 0;
}

/* A read() that a polite plugin would do: it ends with EINTR when the task must stop. */
static int do_polite_read(struct act *act)
{
    int fds[2];
    char byte;

    if (pipe(fds) != 0)
        abort();
    return read(fds[0], &byte, 1) < 0 && errno == EINTR ? 0 : -1;
}

static pid_t fork_idle(void)
{
    pid_t pid = fork();

    if (pid == 0)
        forever();
    return pid;
}

static int do_fork(struct act *act)
{
    pid_t pid = fork_idle();

    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}

static int do_fork_off(struct act *act)
{
    fork_idle();
    return 0;
}

/* Out of the group it was born to lead, into its parent's. */
static int do_leave_group(struct act *act)
{
    return setpgid(0, getpgid(getppid())) == 0 ? 0 : -1;
}

static void *flood(void *arg)
{
    char block[100000];

    memset(block, 'x', sizeof(block));
    block[sizeof(block) - 1] = '\n';
    for (;;) {
        struct timespec ms = {0, 1000000};

        if (write(STDOUT_FILENO, block, sizeof(block)) < 0)
            write(STDERR_FILENO, block, 200);
        nanosleep(&ms, NULL);
    }
    return arg;
}

static void *idle(void *arg)
{
    forever();
    return arg;
}

static void start_thread(void *(*fn)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, fn, NULL) == 0)
        pthread_detach(thread);
}

static int do_flood(struct act *act)
{
    start_thread(flood);
    return 0;
}

static int do_threads(struct act *act)
{
    for (int i = 0; i < 8; i++)
        start_thread(idle);
    return 0;
}

static int do_exit_hook(struct act *act)
{
    atexit(forever);
    return 0;
}

static void hang_key(void *arg)
{
    forever();
}

/* Thread-local destructor that never returns. */
static int do_thread_end(struct act *act)
{
    pthread_key_t key;

    pthread_key_create(&key, hang_key);
    pthread_setspecific(key, &wanted);
    return 0;
}

static int do_end_thread(struct act *act)
{
    pthread_exit(NULL);
}

static int do_nothing(struct act *act)
{
    return 0;
}

static int do_length(struct act *act)
{
    if (act->batch != NULL)
        mr_record_value(mr_batch_add(act->batch, "hostile"), mr_text(NULL, (size_t)3 << 30));
    return 0;
}

static int do_kind(struct act *act)
{
    if (act->batch != NULL)
        mr_record_value(mr_batch_add(act->batch, "hostile"), mr_ptr_of(200, &wanted, 7));
    return 0;
}

static int do_null_topic(struct act *act)
{
    if (act->batch != NULL)
        mr_record_value(mr_batch_add(act->batch, NULL), mr_null());
    return 0;
}

static int do_undeclared(struct act *act)
{
    mr_config_str(act->mood->task, "no.such.key");
    return 0;
}

static int do_wrong_type(struct act *act)
{
    mr_config_str(act->mood->task, "after");
    return 0;
}

static int do_error(struct act *act)
{
    return mr_fail(act->err, MR_ERR_FATAL, "hostile was told to fail");
}

static int do_full(struct act *act)
{
    return mr_fail(act->err, MR_ERR_FULL, "hostile was refused a schema");
}

static int do_retry(struct act *act)
{
    return mr_fail(act->err, MR_ERR_RETRY, "hostile wants to be called again");
}

static int do_minus_one(struct act *act)
{
    (void)act;
    return -1;
}

static int do_data(struct act *act)
{
    return mr_fail(act->err, MR_ERR_DATA, "hostile does not like this record");
}

/* Gives the process a locale of another decimal sign, and says what the host makes of a text. */
static int do_locale(struct act *act)
{
    const char *name = getenv("HOSTILE_LOCALE");
    const struct mr_schema *schema;
    struct mr_value v = mr_null();

    if (name == NULL || setlocale(LC_ALL, name) == NULL)
        return mr_fail(act->err, MR_ERR_FATAL, "there is no locale %s", name);
    schema = mr_schema_of(act->mood->task, MR_KIND_FLOAT64, false);
    if (mr_value_convert(act->batch->arena, schema, NULL, mr_str("2.5"), &v, act->err) != MR_OK)
        return act->err->code;
    return mr_fail(act->err, MR_ERR_FATAL, "with %s, 2.5 is %d quarters",
                   localeconv()->decimal_point, (int)(v.u.d * 4));
}

static int do_strange_code(struct act *act)
{
    return -12345;
}

static int do_not_utf8(struct act *act)
{
    return mr_fail(act->err, MR_ERR_FATAL, "\xff\xfe\x01 is what hostile says");
}

/* What it was told in confidence. */
static int do_tell(struct act *act)
{
    const char *word = mr_config_str(act->mood->task, "word");

    mr_log(act->mood->task, MR_LOG_WARN, "the word is %s", word);
    return mr_fail(act->err, MR_ERR_FATAL, "it does not open with %s", word);
}

static const struct {
    const char *name;
    how_fn fn;
} hows[] = {
    {"segv", do_segv},
    {"abort", do_abort},
    {"exit", do_exit},
    {"double-free", do_double_free},
    {"overflow", do_overflow},
    {"ill", do_ill},
    {"fpe", do_fpe},
    {"sleep", do_sleep},
    {"spin", do_spin},
    {"lock", do_lock},
    {"want-lock", do_want_lock},
    {"read", do_read},
    {"polite-read", do_polite_read},
    {"fork", do_fork},
    {"fork-off", do_fork_off},
    {"leave-group", do_leave_group},
    {"flood", do_flood},
    {"threads", do_threads},
    {"exit-hook", do_exit_hook},
    {"thread-end", do_thread_end},
    {"end-thread", do_end_thread},
    {"null-batch", do_nothing},
    {"length", do_length},
    {"kind", do_kind},
    {"null-topic", do_null_topic},
    {"undeclared", do_undeclared},
    {"wrong-type", do_wrong_type},
    {"error", do_error},
    {"full", do_full},
    {"retry", do_retry},
    {"minus-one", do_minus_one},
    {"data", do_data},
    {"locale", do_locale},
    {"strange-code", do_strange_code},
    {"not-utf8", do_not_utf8},
    {"tell", do_tell},
};

static how_fn how_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof(hows) / sizeof(hows[0]); i++)
        if (strcmp(hows[i].name, name) == 0)
            return hows[i].fn;
    return do_nothing;
}

__attribute__((constructor)) static void misbehave_at_load(void)
{
    struct mood mood = {0};
    struct act act = {&mood, NULL, NULL};
    const char *file = getenv("HOSTILE_LOAD");
    char how[32] = "";
    int fd = file == NULL ? -1 : open(file, O_RDONLY);

    if (fd < 0)
        return;
    if (read(fd, how, sizeof(how) - 1) > 0)
        how_of(how)(&act);
    close(fd);
}

/* --- connector: its tasks --------------------------------------------------------------------- */

static int add_tasks(struct mr_task *conn, struct mr_task_list *list, int64_t count)
{
    const char *word = mr_config_str(conn, "word");
    char number[24], copy[512];

    for (int64_t i = 0; i < count; i++) {
        if (mr_task_add(conn, list) < 0)
            return MR_ERR_FULL;
        snprintf(number, sizeof(number), "%lld", (long long)i);
        mr_task_set(conn, list, "number", number);
        if (word != NULL) {
            snprintf(copy, sizeof(copy), "user=a;password=%.400s;retries=1", word);
            mr_task_set(conn, list, "login", copy);
        }
    }
    return MR_OK;
}

static int tasks(struct mr_task *conn, int max, struct mr_task_list *list, struct mr_error *err)
{
    struct mood mood = {0};
    int64_t count = mr_config_long(conn, "count");
    int rc;

    set_mood(&mood, conn, mr_config_long(conn, "only"));
    rc = maybe(&mood, "tasks", NULL, err);
    if (rc < 0)
        return rc;
    return add_tasks(conn, list, count > 0 ? count : max);
}

/* --- source ----------------------------------------------------------------------------------- */

struct hostile_source {
    struct mood mood;
    const char *topic;
    int64_t number;
    int64_t interval_ms;
    int64_t next;
    char name[32];
};

static const struct mr_config_key source_keys[] = {
    {"topic", MR_CFG_STRING, .fallback = "hostile", .doc = "Topic to write to"},
    {"interval.ms", MR_CFG_LONG, .fallback = "10", .doc = "Between two records"},
    {"where", MR_CFG_STRING, .doc = "Callback in which to misbehave"},
    {"how", MR_CFG_STRING, .doc = "What to do there"},
    {"after", MR_CFG_LONG, .fallback = "1", .doc = "At this call of it and all further ones"},
    {"once", MR_CFG_STRING, .doc = "File that is made by misbehaving, and ends it"},
    {"only", MR_CFG_LONG, .fallback = "-1", .doc = "Task that misbehaves"},
    {"count", MR_CFG_LONG, .fallback = "0", .doc = "Tasks to ask for; 0 = tasks.max"},
    {"word", MR_CFG_STRING, .doc = "A secret: each task's login has it, and `tell` tells it"},
    {"number", MR_CFG_LONG, .fallback = "0", .doc = "Of this task"},
    {0},
};

static int source_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct hostile_source *s = self;
    int rc;

    s->topic = mr_config_str(task, "topic");
    s->number = mr_config_long(task, "number");
    s->interval_ms = mr_config_long(task, "interval.ms");
    set_mood(&s->mood, task, s->number);
    rc = maybe(&s->mood, "start", NULL, err);
    if (rc < 0)
        return rc;
    snprintf(s->name, sizeof(s->name), "hostile-%lld", (long long)s->number);
    return mr_offset_long(task, s->name, "next", 0, &s->next, err);
}

static int source_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct hostile_source *s = self;
    struct mr_record *rec;
    char text[64];
    int rc = maybe(&s->mood, "poll", out, err);

    if (rc < 0 || (s->mood.how != NULL && strcmp(s->mood.how, "null-batch") == 0))
        return rc;
    rec = mr_batch_add(out, s->topic);
    snprintf(text, sizeof(text), "%lld %lld", (long long)s->number, (long long)s->next++);
    mr_record_value(rec, mr_str(text));
    mr_record_offset(rec, s->name, "next", s->next);
    return mr_again_in(out, s->interval_ms);
}

static int source_committed(void *self, struct mr_error *err)
{
    return maybe(&((struct hostile_source *)self)->mood, "committed", NULL, err);
}

static void source_interrupt(void *self)
{
    maybe(&((struct hostile_source *)self)->mood, "interrupt", NULL, NULL);
}

static void source_stop(void *self)
{
    maybe(&((struct hostile_source *)self)->mood, "stop", NULL, NULL);
}

MR_DEFINE_SOURCE(source, "HostileSource", "1.0", .keys = source_keys,
                 .state_size = sizeof(struct hostile_source), .start = source_start,
                 .poll = source_poll, .committed = source_committed, .interrupt = source_interrupt,
                 .stop = source_stop, .tasks = tasks);

/* --- sink ------------------------------------------------------------------------------------- */

struct hostile_sink {
    struct mood mood;
    int fd;
    char *text;
    size_t len;
    size_t cap;
};

static const struct mr_config_key sink_keys[] = {
    {"file", MR_CFG_STRING, .doc = "Where the lines go"},
    {"where", MR_CFG_STRING, .doc = "Callback in which to misbehave"},
    {"how", MR_CFG_STRING, .doc = "What to do there"},
    {"after", MR_CFG_LONG, .fallback = "1", .doc = "At this call of it and all further ones"},
    {"once", MR_CFG_STRING, .doc = "File that is made by misbehaving, and ends it"},
    {"only", MR_CFG_LONG, .fallback = "-1", .doc = "Task that misbehaves"},
    {"count", MR_CFG_LONG, .fallback = "0", .doc = "Tasks to ask for; 0 = tasks.max"},
    {"word", MR_CFG_STRING, .doc = "A secret: each task's login has it, and `tell` tells it"},
    {"number", MR_CFG_LONG, .fallback = "0", .doc = "Of this task"},
    {0},
};

static int sink_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct hostile_sink *s = self;
    const char *file = mr_config_str(task, "file");
    int rc;

    set_mood(&s->mood, task, mr_config_long(task, "number"));
    rc = maybe(&s->mood, "start", NULL, err);
    if (rc < 0)
        return rc;
    s->fd = file == NULL ? -1 : open(file, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    return file == NULL || s->fd >= 0 ? MR_OK
                                      : mr_fail(err, MR_ERR_IO, "%s: %s", file, strerror(errno));
}

static int take_line(struct hostile_sink *s, const struct mr_record *rec)
{
    const char *text = "";
    size_t len = 0, need;

    mr_as_text(mr_value(rec), &text, &len);
    need = s->len + len + 64;
    if (need > s->cap) {
        s->cap = need * 2;
        s->text = realloc(s->text, s->cap);
        if (s->text == NULL)
            return MR_ERR_NOMEM;
    }
    s->len += (size_t)snprintf(s->text + s->len, s->cap - s->len, "%d %lld %.*s\n", rec->partition,
                               (long long)rec->offset, (int)len, text);
    return MR_OK;
}

static int sink_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct hostile_sink *s = self;
    int rc = mr_batch_count(in) == 0 ? 0 : maybe(&s->mood, "put", NULL, err);

    for (size_t i = 0; rc == 0 && i < mr_batch_count(in); i++)
        rc = take_line(s, mr_record_at(in, i));
    return rc;
}

static int sink_flush(void *self, struct mr_error *err)
{
    struct hostile_sink *s = self;
    int rc = maybe(&s->mood, "flush", NULL, err);
    size_t at = 0;

    while (rc == 0 && s->fd >= 0 && at < s->len) {
        ssize_t n = write(s->fd, s->text + at, s->len - at);

        if (n < 0 && errno != EINTR)
            return mr_fail(err, MR_ERR_IO, "cannot write: %s", strerror(errno));
        at += n < 0 ? 0 : (size_t)n;
    }
    if (rc == 0)
        s->len = 0;
    return rc;
}

static void sink_interrupt(void *self)
{
    maybe(&((struct hostile_sink *)self)->mood, "interrupt", NULL, NULL);
}

static void sink_stop(void *self)
{
    struct hostile_sink *s = self;

    maybe(&s->mood, "stop", NULL, NULL);
    free(s->text);
    if (s->fd > 0)
        close(s->fd);
}

MR_DEFINE_SINK(sink, "HostileSink", "1.0", .keys = sink_keys,
               .state_size = sizeof(struct hostile_sink), .start = sink_start, .put = sink_put,
               .flush = sink_flush, .interrupt = sink_interrupt, .stop = sink_stop, .tasks = tasks);

/* --- converter -------------------------------------------------------------------------------- */

static const struct mr_config_key converter_keys[] = {
    {"how", MR_CFG_STRING, .doc = "What to do instead of converting"},
    {"after", MR_CFG_LONG, .fallback = "1", .doc = "At this call and all further ones"},
    {"once", MR_CFG_STRING, .doc = "File that is made by misbehaving, and ends it"},
    {0},
};

static int converter_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct mood *mood = self;

    mood->task = task;
    mood->where = "convert";
    mood->how = mr_config_str(task, "how");
    mood->once = mr_config_str(task, "once");
    mood->after = mr_config_long(task, "after");
    mood->mine = mood->how != NULL;
    return MR_OK;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    int rc = maybe(self, "convert", NULL, err);

    if (rc < 0)
        return rc;
    *data = mr_is_null(value) ? NULL : mr_to_text(arena, value, len);
    return MR_OK;
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    int rc = maybe(self, "convert", NULL, err);

    if (rc < 0)
        return rc;
    *schema = NULL;
    *value = data == NULL ? mr_null() : mr_text_from(arena, data, len);
    return MR_OK;
}

MR_DEFINE_CONVERTER(converter, "HostileConverter", "1.0", .keys = converter_keys,
                    .state_size = sizeof(struct mood), .start = converter_start,
                    .from_connect = from_connect, .to_connect = to_connect);

MR_MODULE(MR_PLUGIN(source), MR_PLUGIN(sink), MR_PLUGIN(converter))
