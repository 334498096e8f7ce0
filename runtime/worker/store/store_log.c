/* SPDX-License-Identifier: Apache-2.0 */
/* One internal topic and the requests about it, on the store thread's loop.
 *
 *              another job about the          all writes of the step            end asked,
 *              same subject goes first        are confirmed, no read_back       and reached
 *   ask ──► WAITING ────────────► WRITING ──────────────► next step ◄──────────────── FOLLOWING
 *              │  turn()             │ read_back                                          ▲
 *              │                     └──────────► MARKING ───────── ask_ends() ───────────┘
 *              └── any state: answered with an error: its time is over, a write failed, or the
 *                  topic is lost
 *
 * (WRITING goes back to WAITING where the client has no room for the first record of the step.) A
 * job whose request is answered stays (req NULL) until the reports of its writes came, since they
 * point to it. Moves are made in look(), in one timer round, never inside librdkafka's reports. One
 * question about the end serves all jobs that wait for one; it is asked after they came, so they
 * see what was confirmed before. */
#include "worker/store/store_private.h"

#define LOGGER "worker.store"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/map.h"

#include <sys/epoll.h>

#define BYTES_MAX ((size_t)64 << 20) /* appended and not confirmed, a topic */
#define VALUE_MAX ((size_t)64 << 20)
/* One question about the end. The other topics wait meanwhile, so it gets twice what the last one
 * took; after a failure it gets twice as much as it had, and as long a rest. */
#define ASK_MIN_MS 250
#define ASK_MAX_MS 2000
#define TICK_MS 200   /* deadlines are looked at */
#define IDLE_MS 2000  /* the client is served */
#define SLICE_MS 5000 /* of the first replay, between two lines in the log */
#define SAY_MS 10000
#define PROVE_MS 3000 /* a right to read may come that late: brokers learn of it one by one */
#define VERIFY_MS 5000
#define LEASE_MARGIN_MS 200 /* what is sent until then has come before the group gives work away */

enum job_state { WAITING, WRITING, MARKING, FOLLOWING };

struct store_job {
    struct store_job *prev;
    struct store_job *next;
    struct store_log *log;
    struct store_request *req; /* NULL: answered */
    enum job_state state;
    size_t step;
    size_t unconfirmed;
    struct mr_error err; /* of the first write that failed */
    int64_t *mark;
};

static void soon(struct store_log *log, int64_t delay_ms);

/* --- jobs ------------------------------------------------------------------------------------- */

static void unlink_job(struct store_job *job)
{
    struct store_log *log = job->log;

    *(job->prev != NULL ? &job->prev->next : &log->first) = job->next;
    *(job->next != NULL ? &job->next->prev : &log->last) = job->prev;
    free(job->mark);
    free(job);
}

/* The answer, if it was not given; err 0: it went well. The job may be gone after this. */
static void finish(struct store_job *job, const struct mr_error *err)
{
    struct store_request *req = job->req;
    struct store_log *log = job->log;

    if (req != NULL) {
        job->req = NULL;
        if (err != NULL && err->code != 0)
            req->err = *err;
        log->events->flush(log);
        log->events->answer(log, req);
    }
    if (job->unconfirmed == 0)
        unlink_job(job);
    soon(log, 0); /* somebody may wait for its turn */
}

static void on_confirmed(void *arg, int code, const char *text)
{
    struct store_job *job = arg;

    CRASH_POINT(RECORD_WRITTEN);
    job->unconfirmed--;
    if (code != 0)
        mr_fail(&job->err, code, "%s", text != NULL ? text : "not delivered");
    if (job->unconfirmed == 0)
        soon(job->log, 0);
}

static int append(struct store_job *job, const char *key, size_t key_len, const char *value,
                  size_t value_len, struct mr_error *err)
{
    int rc;

    CRASH_POINT(RECORD);
    rc = topic_log_append(job->log->log,
                          &(struct topic_log_append){.key = key,
                                                     .key_len = key_len,
                                                     .value = value,
                                                     .value_len = value_len,
                                                     .done = on_confirmed,
                                                     .arg = job},
                          err);
    if (rc == 0)
        job->unconfirmed++;
    return rc;
}

/* --- writing offsets -------------------------------------------------------------------------- */

struct offset_write {
    struct store_job *job;
    const struct buf *value; /* NULL: tombstone */
    struct mr_error *err;
};

static int append_offset(void *arg, const char *key, size_t len)
{
    struct offset_write *write = arg;

    return append(write->job, key, len, write->value != NULL ? write->value->data : NULL,
                  write->value != NULL ? write->value->len : 0, write->err);
}

static int write_offset(struct store_job *job, const json_t *partition, const json_t *offset,
                        struct mr_error *err)
{
    bool tombstone = json_is_null(offset);
    struct buf value;
    struct offset_write write = {job, tombstone ? NULL : &value, err};
    int rc = 0;

    buf_init(&value, VALUE_MAX);
    if (!tombstone)
        rc = offset_records_render(offset, &value);
    if (rc == 0)
        rc = offset_table_keys(job->log->offsets, job->req->subject, partition, tombstone,
                               append_offset, &write);
    buf_deinit(&value);
    return rc == 0 ? 0
                   : mr_fail(err, rc, "an offset can't be written: out of memory, or too large");
}

static int write_offsets(struct store_job *job, struct mr_error *err)
{
    json_t *pair;
    size_t i;
    int rc = 0;

    json_array_foreach(job->req->body, i, pair)
    {
        rc = write_offset(job, json_array_get(pair, 0), json_array_get(pair, 1), err);
        if (rc != 0)
            break;
    }
    return rc;
}

/* --- steps ------------------------------------------------------------------------------------ */

static int write_records(struct store_job *job, struct mr_error *err)
{
    const struct store_request *req = job->req;
    size_t i = job->step > 0 ? req->steps[job->step - 1].end : 0;
    int rc = 0;

    for (; rc == 0 && i < req->steps[job->step].end; i++)
        rc = append(job, req->writes[i].key, req->writes[i].key_len, req->writes[i].value,
                    req->writes[i].value_len, err);
    return rc;
}

int64_t store_log_lease_left(const struct store_log *log)
{
    int64_t end = log->lease_ms != NULL ? atomic_load(log->lease_ms) : 0;
    int64_t left = end - LEASE_MARGIN_MS - clock_boot_ms();

    return end == 0 ? -1 : left > 0 ? left : 0;
}

static const struct mr_error lapsed = {
    .code = MR_ERR_STATE,
    .text =
        "the worker is not sure to be in its group any more, and others may write these offsets"};

/* Entries that the question asked for. What the loop gets shares nothing with the table: jansson's
 * values are not for two threads. */
static void look_up(struct store_job *job)
{
    struct store_request *req = job->req;
    json_t *found = NULL, *partition, *shared;
    size_t i;

    if (req->task == STORE_OFFSETS_LIST) {
        shared = offset_table_list(job->log->offsets, req->subject);
    } else {
        shared = json_array();
        mr_assert(shared != NULL);
        json_array_foreach(req->body, i, partition)
        {
            const json_t *offset = offset_table_get(job->log->offsets, req->subject, partition);

            if (offset != NULL)
                json_array_append_new(shared, json_pack("[OO]", partition, offset));
        }
    }
    found = json_deep_copy(shared);
    json_decref(shared);
    json_decref(req->body);
    req->body = found;
    if (found == NULL)
        mr_fail(&req->err, MR_ERR_NOMEM, "cannot read offsets: out of memory");
}

static void complete(struct store_job *job)
{
    if (job->req->task == STORE_OFFSETS_GET || job->req->task == STORE_OFFSETS_LIST)
        look_up(job);
    finish(job, NULL);
}

/* The whole step is one transaction. */
static void write_fenced(struct store_job *job)
{
    const struct store_request *req = job->req;
    size_t from = job->step > 0 ? req->steps[job->step - 1].end : 0;
    size_t count = req->steps[job->step].end - from;
    struct fenced_write *writes = calloc(count + 1, sizeof(*writes));

    mr_assert(writes != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct store_write *write = &req->writes[from + i];

        writes[i] =
            (struct fenced_write){write->key, write->key_len, write->value, write->value_len};
    }
    job->unconfirmed++;
    fenced_writer_write(job->log->writer, writes, count, req->deadline_ms, on_confirmed, job);
    free(writes);
}

static int write_step(struct store_job *job, struct mr_error *err)
{
    size_t from = job->step > 0 ? job->req->steps[job->step - 1].end : 0;

    if (job->req->task == STORE_OFFSETS_PUT)
        return write_offsets(job, err);
    if (!job->req->privileged || job->log->writer == NULL || job->req->steps[job->step].end == from)
        return write_records(job, err);
    write_fenced(job);
    return 0;
}

static void begin_step(struct store_job *job)
{
    struct mr_error err = {0};
    int rc;

    if (job->step == job->req->step_count) {
        complete(job);
        return;
    }
    if (job->req->task == STORE_OFFSETS_PUT && store_log_lease_left(job->log) == 0) {
        finish(job, &lapsed);
        return;
    }
    job->state = WRITING;
    rc = write_step(job, &err);
    job->log->full = rc == MR_ERR_FULL;
    if (rc == MR_ERR_FULL && job->unconfirmed == 0 && topic_log_unconfirmed(job->log->log) > 0)
        job->state = WAITING; /* for what others have appended to be confirmed */
    else if (rc != 0)
        finish(job, &err);
    else
        soon(job->log, 0);
}

static void end_step(struct store_job *job)
{
    job->step++;
    if (job->step < job->req->step_count)
        CRASH_POINT(STEP_DONE);
    begin_step(job);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Is it the oldest about its subject? busy: subjects of those before it, and then of this one
 * too. */
static bool my_turn(const struct store_job *job, struct map *busy)
{
    const char *subject = job->req->subject;

    return subject == NULL || map_set(busy, subject, busy) == NULL;
}

static void written(struct store_job *job)
{
    if (job->unconfirmed > 0)
        return;
    if (job->err.code != 0 && job->req->task == STORE_OFFSETS_PUT &&
        store_log_lease_left(job->log) == 0)
        finish(job, &lapsed); /* and was cut short for that */
    else if (job->err.code != 0)
        finish(job, &job->err);
    else if (job->req->steps[job->step].read_back)
        job->state = MARKING;
    else
        end_step(job);
}

static void expire(struct store_job *job)
{
    static const char *const what[] = {
        [WAITING] = "what was asked before it was not done",
        [WRITING] = "the brokers did not confirm",
        [MARKING] = "the brokers did not say where it ends",
        [FOLLOWING] = "it was not read to its end",
    };
    const char *trouble = topic_log_trouble(job->log->log);
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_TIMEOUT, "topic %s: %s in time%s%s%s", job->log->topic->name,
            what[job->state], job->state == WRITING ? "; what was sent may still arrive" : "",
            trouble[0] != '\0' ? ": " : "", trouble);
    finish(job, &err);
}

static bool has_marking(const struct store_log *log)
{
    for (const struct store_job *job = log->first; job != NULL; job = job->next)
        if (job->req != NULL && job->state == MARKING)
            return true;
    return false;
}

static void give_mark(struct store_job *job, const int64_t *ends)
{
    size_t size = (size_t)job->log->partitions * sizeof(*ends);

    if (job->mark == NULL)
        job->mark = malloc(size);
    mr_assert(job->mark != NULL);
    memcpy(job->mark, ends, size);
    job->state = FOLLOWING;
}

static int64_t ask_time(int64_t ms)
{
    return ms < ASK_MIN_MS ? ASK_MIN_MS : ms > ASK_MAX_MS ? ASK_MAX_MS : ms;
}

/* One question for all that wait for an end; who is at the end already hears nothing more. */
static void ask_ends(struct store_log *log)
{
    int64_t from_ms = clock_ms();
    struct mr_error err = {0};
    int64_t *ends;
    int rc;

    if (!has_marking(log))
        return;
    if (from_ms < log->rest_until_ms) {
        soon(log, log->rest_until_ms - from_ms);
        return;
    }
    ends = calloc((size_t)log->partitions, sizeof(*ends));
    mr_assert(ends != NULL);
    rc = topic_log_mark(log->log, log->ask_ms, ends, &err);
    for (struct store_job *job = log->first; rc == 0 && job != NULL; job = job->next)
        if (job->req != NULL && job->state == MARKING)
            give_mark(job, ends);
    free(ends);
    log->rest_until_ms = rc == 0 ? 0 : clock_ms() + log->ask_ms;
    soon(log, rc == 0 ? 0 : log->ask_ms);
    log->ask_ms = ask_time(2 * (rc == 0 ? clock_ms() - from_ms : log->ask_ms));
}

/* Make every move that can be made. A job may be freed by its move, and others not. */
static void look(struct store_log *log)
{
    static const struct mr_error closed = {.code = MR_ERR_CLOSED, .text = "the worker is stopping"};
    struct map *busy = map_new();
    struct store_job *next;

    log->full = false;
    for (struct store_job *job = log->first; job != NULL; job = next) {
        bool turn = job->req != NULL && my_turn(job, busy);

        next = job->next;
        if (job->req == NULL) {
            if (job->unconfirmed == 0)
                unlink_job(job);
        } else if (log->lost.code != 0) {
            finish(job, &log->lost);
        } else if (log->ending && (job->state == MARKING || job->state == FOLLOWING)) {
            finish(job, &closed);
        } else if (clock_ms() >= job->req->deadline_ms) {
            expire(job);
        } else if (job->state == WAITING && !log->full && turn) {
            begin_step(job);
        } else if (job->state == WRITING) {
            written(job);
        } else if (job->state == FOLLOWING && topic_log_reached(log->log, job->mark)) {
            end_step(job);
        }
    }
    map_free(&busy, NULL);
    if (log->lost.code == 0)
        ask_ends(log);
}

/* --- serving ---------------------------------------------------------------------------------- */

static void lose(struct store_log *log, const struct mr_error *err)
{
    if (log->lost.code != 0)
        return;
    log->lost.code = MR_ERR_FATAL;
    snprintf(log->lost.text, sizeof(log->lost.text), "%.900s; %s", err->text,
             "what needs it is refused until the worker is started again");
    if (log->watch != NULL)
        loop_fd_remove(&log->watch);
    log->events->lost(log, &log->lost);
}

/* Its log began anew: is it still a topic that keeps what it is given? */
static void look_again(struct store_log *log)
{
    struct mr_error err = {0};
    int partitions, rc;

    log->moved = false;
    rc = internal_topics_verify(log->topic, log->admin, VERIFY_MS, &partitions, &err);
    if (rc == MR_ERR_CONFIG || rc == MR_ERR_NOT_FOUND)
        lose(log, &err);
}

static void say(struct store_log *log, const char *text)
{
    int64_t now = clock_ms();

    if (log->said_ms != 0 && now - log->said_ms < SAY_MS)
        return;
    log->said_ms = now;
    log_warn("topic %s: %s", log->topic->name, text);
}

static void serve(struct store_log *log)
{
    struct mr_error err = {0};
    int rc;

    if (log->lost.code != 0)
        return;
    rc = topic_log_serve(log->log, &err);
    log->events->flush(log);
    if (rc == MR_ERR_RETRY)
        say(log, err.text);
    else if (rc != 0)
        lose(log, &err);
    if (log->moved && log->lost.code == 0)
        look_again(log);
}

static void on_readable(void *arg, uint32_t events)
{
    (void)events;
    serve(arg);
    look(arg);
}

static void on_round(void *arg)
{
    look(arg);
}

static void soon(struct store_log *log, int64_t delay_ms)
{
    if (log->loop != NULL && (log->round.slot == 0 || delay_ms == 0))
        loop_timer_start(log->loop, &log->round, delay_ms, on_round, log);
}

/* Deadlines, and what comes without ringing: errors of the client. */
static void on_later(void *arg)
{
    struct store_log *log = arg;

    serve(log);
    look(log);
    loop_timer_start(log->loop, &log->later, log->first != NULL ? TICK_MS : IDLE_MS, on_later, log);
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_record(void *arg, const struct topic_log_record *rec)
{
    struct store_log *log = arg;

    log->events->record(log, rec);
}

static void on_moved(void *arg, int32_t partition, int64_t offset)
{
    struct store_log *log = arg;

    log->moved = true;
    log_warn(
        "topic %s, partition %d: its log begins again at offset %lld: it was cut, or the topic "
        "made anew. What it holds is read again, what was in memory stays",
        log->topic->name, (int)partition, (long long)offset);
}

/* The first time, with a line in the log every few seconds. Not behind what open transactions hold
 * up: it may be the worker itself, or a leader that it would join, who is to end them. Who asks for
 * an end later does wait. */
static int replay(struct store_log *log, struct mr_error *err)
{
    int64_t since = clock_ms();
    int rc;

    for (;;) {
        struct mr_error own = {0};

        rc = topic_log_replay(log->log, clock_ms() + SLICE_MS, &own);
        log->events->flush(log);
        if (rc == 0)
            return 0;
        if (rc != MR_ERR_TIMEOUT || log->topic->optional)
            return mr_fail(err, rc, "%s", own.text);
        log_warn("topic %s: still being read after %lld s%s%s", log->topic->name,
                 (long long)((clock_ms() - since) / 1000),
                 topic_log_trouble(log->log)[0] != '\0' ? ": " : "", topic_log_trouble(log->log));
    }
}

int store_log_open(struct store_log *log, int64_t give_up_ms, struct mr_error *err)
{
    static const struct topic_log_events events = {on_record, on_moved};
    struct topic_log_options options = {
        .topic = log->topic->name,
        .consumer = &log->topic->consumer,
        .producer = &log->topic->producer,
        .seldom = log->seldom,
        .admin = log->admin,
        .max_bytes = BYTES_MAX,
        .events = &events,
        .arg = log,
    };
    int64_t since = clock_ms();
    int rc = internal_topics_ensure(log->topic, log->admin, give_up_ms, &log->partitions, err);

    if (rc != 0)
        return rc;
    options.partitions = log->partitions;
    log->log = topic_log_open(&options, err);
    if (log->log == NULL)
        return MR_ERR_CONFIG;
    log->ask_ms = ASK_MIN_MS;
    rc = replay(log, err);
    if (rc == 0)
        log_debug("topic %s: read to its end in %lld ms", log->topic->name,
                  (long long)(clock_ms() - since));
    return rc;
}

int store_log_prove(struct store_log *log, struct mr_error *err)
{
    int rc = topic_log_prove(log->log, clock_ms() + PROVE_MS, err);

    log->events->flush(log);
    return rc == 0 ? 0 : (err_prefix(err, "%s", log->topic->name_key), rc);
}

int store_log_start(struct store_log *log, struct mr_error *err)
{
    log->watch = loop_fd_add(log->loop, topic_log_fd(log->log), EPOLLIN, on_readable, log, err);
    if (log->watch == NULL)
        return err != NULL ? err->code : MR_ERR_IO;
    loop_timer_start(log->loop, &log->later, 0, on_later, log);
    if (!log->topic->fenced)
        return 0;
    log->writer = fenced_writer_new(
        &(struct fenced_writer_options){log->loop, log->topic->name, &log->topic->leader}, err);
    return log->writer != NULL ? 0 : MR_ERR_IO;
}

void store_log_claim(const struct store_log *log, bool anew)
{
    if (log->writer != NULL)
        fenced_writer_claim(log->writer, anew);
}

void store_log_ask(struct store_log *log, struct store_request *req)
{
    struct store_job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    job->log = log;
    job->req = req;
    job->prev = log->last;
    *(log->last != NULL ? &log->last->next : &log->first) = job;
    log->last = job;
    loop_timer_start(log->loop, &log->later, TICK_MS, on_later, log);
    soon(log, 0);
}

int64_t store_log_look_at_lease(struct store_log *log)
{
    int64_t left = store_log_lease_left(log);
    struct store_job *next;
    size_t dropped = 0;

    for (struct store_job *job = log->first; left == 0 && job != NULL; job = next) {
        next = job->next;
        if (job->req == NULL || job->req->task != STORE_OFFSETS_PUT)
            continue;
        finish(job, &lapsed);
        dropped++;
    }
    if (dropped > 0 && log->log != NULL) {
        log_warn("topic %s: %zu writes of source offsets are given up: %s", log->topic->name,
                 dropped, lapsed.text);
        topic_log_purge(log->log);
    }
    return left;
}

void store_log_cut(const struct store_log *log)
{
    if (log->log != NULL)
        topic_log_purge(log->log);
}

bool store_log_end(struct store_log *log)
{
    log->ending = true;
    if (log->log == NULL || log->lost.code != 0)
        return true;
    look(log);
    return log->first == NULL;
}

void store_log_close(struct store_log *log)
{
    loop_timer_cancel(&log->round);
    loop_timer_cancel(&log->later);
    if (log->watch != NULL)
        loop_fd_remove(&log->watch);
    fenced_writer_free(&log->writer);
    log->loop = NULL; /* reports that still come move nothing */
    topic_log_close(&log->log);
    while (log->first != NULL)
        unlink_job(log->first);
}
