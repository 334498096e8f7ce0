/* SPDX-License-Identifier: Apache-2.0 */
/* A connector's life in its host: which tasks run there, what was asked and not yet answered, and
 * the deadlines of stops. Between supervisor.c, which is told by the herder, and child.c, which
 * knows the process. Worker's loop thread.
 *
 * Every frame of a host is checked here against what the host was given: another connector, a task
 * it was never given, an unknown state, a question too many end the host, since its memory can't be
 * trusted any more.
 *
 * A stop of one task that is not answered in time takes the whole host down, in order:
 *
 *   TASK_STOP ──graceful_ms──► DRAIN ──all stopped, SIBLINGS_MS──► SIGTERM ──CHILD_TERM_MS──► KILL
 *
 * so that everything is over within graceful_ms + 1 s (promise 3). Siblings that stop on this way
 * were not asked to by the herder: their UNASSIGNED is kept back, and `died` tells that they are to
 * be started again. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/tenant.h"

#include "base/log.h"
#include "link/printable.h"
#include "model/topic_tracking.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TENANT_MAGIC 0x74656e61u
#define SIBLINGS_MS 600
#define CROSSED_MS 200     /* for UNASSIGNED of a task that failed just as it was to stop */
#define MEMBER_MAX 1024    /* bytes of a member id */
#define QUESTIONS_MAX 1024 /* open ones of one host */
#define CONFIGS_MAX 10000  /* task configurations a connector may give */
#define VERSION_MAX 256

struct tenant_task {
    int task;
    int64_t generation; /* of its last start */
    bool live;          /* started, and neither FAILED nor UNASSIGNED since */
    bool stopping;      /* a stop was asked for and UNASSIGNED not told yet */
    int64_t stop_due_ms;
};

struct question {
    int64_t id;      /* ours */
    int64_t host_id; /* the host's */
    enum msg_kind answer;
    int task;           /* of START_CHECK */
    int64_t generation; /* the same */
};

struct tenant {
    unsigned magic;
    struct loop *loop;
    struct tenant_owner *owner;
    char *conn;
    char *lock_path;
    struct child *child;
    struct tenant_task *tasks;
    size_t task_count;
    struct question *questions;
    size_t question_count;
    struct loop_timer stops; /* the next stop that is due */
    size_t topics;           /* told since they were forgotten */
    int culprit;             /* the task whose stop took the host down, -1 none */
    bool expected;           /* tenant_drain was called */
    bool spent;              /* a task failed there of what only a new process mends */
};

static void on_stops(void *arg);

static struct tenant_task *find_task(struct tenant *tenant, int task)
{
    for (size_t i = 0; i < tenant->task_count; i++)
        if (tenant->tasks[i].task == task)
            return &tenant->tasks[i];
    return NULL;
}

static struct tenant_task *add_task(struct tenant *tenant, int task)
{
    struct tenant_task *t = find_task(tenant, task);
    struct tenant_task *more;

    if (t != NULL)
        return t;
    more = realloc(tenant->tasks, (tenant->task_count + 1) * sizeof(*more));
    if (more == NULL)
        return NULL;
    tenant->tasks = more;
    t = &more[tenant->task_count++];
    *t = (struct tenant_task){.task = task};
    return t;
}

/* --- stops ------------------------------------------------------------------------------------ */

static bool overdue(const struct tenant *tenant, const struct tenant_task *t)
{
    return t->live && t->stopping && t->stop_due_ms <= loop_now_ms(tenant->loop);
}

/* Nothing is left to wait for but tasks that would not stop in time. */
static bool siblings_done(const struct tenant *tenant)
{
    for (size_t i = 0; i < tenant->task_count; i++)
        if (tenant->tasks[i].live && !overdue(tenant, &tenant->tasks[i]))
            return false;
    return true;
}

static void arm_stops(struct tenant *tenant)
{
    int64_t next = INT64_MAX;
    int64_t now = loop_now_ms(tenant->loop);

    for (size_t i = 0; i < tenant->task_count; i++)
        if (tenant->tasks[i].stopping && !overdue(tenant, &tenant->tasks[i]) &&
            tenant->tasks[i].stop_due_ms < next)
            next = tenant->tasks[i].stop_due_ms;
    if (next == INT64_MAX)
        loop_timer_cancel(&tenant->stops);
    else
        loop_timer_start(tenant->loop, &tenant->stops, next > now ? next - now : 0, on_stops,
                         tenant);
}

static void take_down(struct tenant *tenant, int task)
{
    char reason[128];
    struct buf call;

    tenant->culprit = task;
    child_set_culprit(tenant->child, task);
    snprintf(reason, sizeof(reason), "task %d did not stop within %lld ms", task,
             (long long)tenant->owner->graceful_ms);
    buf_init(&call, 1024);
    child_call(tenant->child, task, &call);
    log_write_for(LOG_WARN, LOGGER, tenant->conn, task,
                  "%s%s%s: its host process %d is ended, its siblings are stopped first", reason,
                  call.len > 0 ? "; " : "", call.len > 0 ? call.data : "",
                  (int)child_pid(tenant->child));
    buf_deinit(&call);
    if (siblings_done(tenant))
        child_end(tenant->child, reason);
    else
        child_drain(tenant->child, SIBLINGS_MS, reason);
}

static void tell_stopped(struct tenant *tenant, struct tenant_task *t)
{
    t->stopping = false;
    tenant->owner->events->task_status(tenant->owner->events_arg, tenant->conn, t->task,
                                       STATE_UNASSIGNED, NULL);
}

/* A callback may start tasks, and so move the array: it is indexed anew each time. */
static void on_stops(void *arg)
{
    struct tenant *tenant = arg;

    mr_assert(tenant->magic == TENANT_MAGIC);
    for (size_t i = 0; i < tenant->task_count; i++) {
        struct tenant_task *t = &tenant->tasks[i];

        if (!t->stopping || t->stop_due_ms > loop_now_ms(tenant->loop))
            continue;
        if (!t->live)
            tell_stopped(tenant, t);
        else if (tenant->culprit < 0)
            take_down(tenant, t->task);
    }
    arm_stops(tenant);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int get_state(const json_t *body, enum state *out, struct mr_error *err)
{
    const char *name;

    if (!json_get_text(body, "state", &name) || !state_from(name, out) || *out == STATE_RESTARTING)
        return mr_fail(err, MR_ERR_PROTOCOL, "no valid state");
    return 0;
}

static int get_task(struct tenant *tenant, const json_t *body, struct tenant_task **out,
                    struct mr_error *err)
{
    int64_t number;

    if (!json_get_int(body, "task", 0, INT32_MAX, &number))
        return mr_fail(err, MR_ERR_PROTOCOL, "no valid task");
    *out = find_task(tenant, (int)number);
    if (*out == NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "task %lld was never given to it", (long long)number);
    return 0;
}

static int on_connector_status(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const char *trace = NULL, *version = NULL;
    enum state state;
    int rc = get_state(body, &state, err);

    if (rc != 0)
        return rc;
    json_get_text(body, "trace", &trace);
    json_get_text(body, "version", &version);
    if (version != NULL && strlen(version) > VERSION_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "a version of more than %d bytes", VERSION_MAX);
    tenant->owner->events->connector_status(tenant->owner->events_arg, tenant->conn, state, trace,
                                            version);
    return 0;
}

/* The task has ended. false: the herder is not told (see the head of this file). */
static bool task_ended(struct tenant *tenant, struct tenant_task *t, enum state state)
{
    bool asked = t->stopping;
    bool was_live = t->live;

    t->live = false;
    if (state == STATE_UNASSIGNED)
        t->stopping = false;
    else if (asked)
        t->stop_due_ms = loop_now_ms(tenant->loop) + CROSSED_MS;
    if (tenant->culprit >= 0 && siblings_done(tenant))
        child_end(tenant->child, NULL);
    if (state == STATE_UNASSIGNED)
        return asked || (was_live && tenant->culprit < 0);
    return was_live;
}

static int on_task_status(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const char *trace = NULL;
    struct tenant_task *t;
    enum state state;
    bool tell;
    int task;
    int rc = get_task(tenant, body, &t, err);

    if (rc == 0)
        rc = get_state(body, &state, err);
    if (rc == 0 && state == STATE_STOPPED)
        rc = mr_fail(err, MR_ERR_PROTOCOL, "tasks are never STOPPED");
    if (rc != 0)
        return rc;
    json_get_text(body, "trace", &trace);
    task = t->task;
    tell = t->live;
    if (state == STATE_FAILED || state == STATE_UNASSIGNED)
        tell = task_ended(tenant, t, state);
    if (state == STATE_FAILED && json_is_true(json_object_get(body, "spent")))
        tenant->spent = true;
    arm_stops(tenant);
    if (tell)
        tenant->owner->events->task_status(tenant->owner->events_arg, tenant->conn, task, state,
                                           trace);
    return 0;
}

static bool all_text(const json_t *config)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)config, key,
                        value) if (!json_is_string(value) && !json_is_null(value)) return false;
    return json_is_object(config);
}

static int on_task_configs(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const json_t *configs = json_object_get(body, "configs");
    const char *error;
    size_t i;
    json_t *config;

    if (json_get_text(body, "error", &error)) {
        tenant->owner->events->task_configs(tenant->owner->events_arg, tenant->conn, NULL, error);
        return 0;
    }
    if (!json_is_array(configs) || json_array_size(configs) > CONFIGS_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "no list of at most %d configurations", CONFIGS_MAX);
    json_array_foreach(configs, i, config) if (!all_text(config)) return mr_fail(
        err, MR_ERR_PROTOCOL, "configuration %zu is not an object of texts", i);
    tenant->owner->events->task_configs(tenant->owner->events_arg, tenant->conn, configs, NULL);
    return 0;
}

static int get_id(const json_t *body, int64_t *out, struct mr_error *err)
{
    if (json_get_int(body, "id", INT64_MIN, INT64_MAX, out))
        return 0;
    return mr_fail(err, MR_ERR_PROTOCOL, "no id");
}

static int ask(struct tenant *tenant, const json_t *body, enum msg_kind answer, int64_t *id,
               struct mr_error *err)
{
    struct question *more;
    int64_t host_id;
    int rc = get_id(body, &host_id, err);

    if (rc != 0)
        return rc;
    if (tenant->question_count >= QUESTIONS_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "more than %d questions are open", QUESTIONS_MAX);
    more = realloc(tenant->questions, (tenant->question_count + 1) * sizeof(*more));
    if (more == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    tenant->questions = more;
    *id = ++tenant->owner->next_id;
    more[tenant->question_count++] =
        (struct question){.id = *id, .host_id = host_id, .answer = answer};
    return 0;
}

static int on_task_member(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    struct tenant_task *t;
    const char *member;
    int rc = get_task(tenant, body, &t, err);

    if (rc == 0 && (!json_get_text(body, "member", &member) || member[0] == '\0' ||
                    strlen(member) > MEMBER_MAX))
        rc = mr_fail(err, MR_ERR_PROTOCOL, "no member id");
    if (rc == 0)
        tenant->owner->events->task_member(tenant->owner->events_arg, tenant->conn, t->task,
                                           member);
    return rc;
}

static int on_offsets_get(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const json_t *partitions = json_object_get(body, "partitions");
    json_t *partition;
    int64_t id;
    size_t i;
    int rc;

    if (!json_is_array(partitions))
        return mr_fail(err, MR_ERR_PROTOCOL, "no list of partitions");
    json_array_foreach(partitions, i, partition) if (!json_is_object(partition)) return mr_fail(
        err, MR_ERR_PROTOCOL, "partition %zu is not an object", i);
    rc = ask(tenant, body, MSG_OFFSETS, &id, err);
    if (rc == 0)
        tenant->owner->events->offsets_get(tenant->owner->events_arg, tenant->conn, id, partitions);
    return rc;
}

static bool offset_entry(const json_t *entry)
{
    const json_t *offset = json_array_get(entry, 1);

    return json_array_size(entry) == 2 && json_is_object(json_array_get(entry, 0)) &&
           (json_is_object(offset) || json_is_null(offset));
}

static int on_offsets_put(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const json_t *entries = json_object_get(body, "entries");
    json_t *entry;
    int64_t id;
    size_t i;
    int rc;

    if (!json_is_array(entries))
        return mr_fail(err, MR_ERR_PROTOCOL, "no list of entries");
    json_array_foreach(entries, i, entry) if (!offset_entry(entry)) return mr_fail(
        err, MR_ERR_PROTOCOL, "entry %zu is not a partition and an offset", i);
    rc = ask(tenant, body, MSG_OFFSETS_STORED, &id, err);
    if (rc == 0)
        tenant->owner->events->offsets_put(tenant->owner->events_arg, tenant->conn, id, entries);
    return rc;
}

/* Is it the start that the herder wants, as far as can be seen here? A predecessor that still asks
 * has another number. */
static bool may_begin(struct tenant *tenant, int task, int64_t generation)
{
    const struct tenant_task *t = find_task(tenant, task);

    return t != NULL && t->live && !t->stopping && t->generation == generation &&
           child_serving(tenant->child);
}

static int on_start_check(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    struct tenant_task *t;
    int64_t id, generation = 0;
    int rc = get_task(tenant, body, &t, err);

    if (rc == 0 && !json_get_int(body, "generation", 0, INT64_MAX, &generation))
        rc = mr_fail(err, MR_ERR_PROTOCOL, "no generation");
    if (rc == 0)
        rc = ask(tenant, body, MSG_START_CHECKED, &id, err);
    if (rc != 0)
        return rc;
    tenant->questions[tenant->question_count - 1].task = t->task;
    tenant->questions[tenant->question_count - 1].generation = generation;
    if (may_begin(tenant, t->task, generation))
        tenant->owner->events->start_check(tenant->owner->events_arg, tenant->conn, id, t->task,
                                           generation);
    else
        tenant_answer_take(tenant, &(struct tenant_answer){.id = id});
    return 0;
}

static int on_fence(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    int64_t id;
    int rc = ask(tenant, body, MSG_FENCED, &id, err);

    if (rc == 0)
        tenant->owner->events->fence(tenant->owner->events_arg, tenant->conn, id);
    return rc;
}

static int on_config_stale(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    (void)body;
    (void)err;
    tenant->owner->events->config_stale(tenant->owner->events_arg, tenant->conn);
    return 0;
}

static int on_topic_used(struct tenant *tenant, const json_t *body, struct mr_error *err)
{
    const char *topic = NULL;
    struct tenant_task *t;
    int rc = get_task(tenant, body, &t, err);

    if (rc == 0 && (!json_get_text(body, "topic", &topic) || !topic_tracking_is_topic(topic)))
        rc = mr_fail(err, MR_ERR_PROTOCOL, "no topic's name");
    if (rc == 0 && tenant->topics++ < TOPIC_TRACKING_MAX)
        tenant->owner->events->topic_used(tenant->owner->events_arg, tenant->conn, t->task, topic);
    return rc;
}

typedef int (*frame_fn)(struct tenant *tenant, const json_t *body, struct mr_error *err);

static const frame_fn frame_table[MSG_KIND_END] = {
    [MSG_CONNECTOR_STATUS] = on_connector_status,
    [MSG_TASK_CONFIGS_READY] = on_task_configs,
    [MSG_TASK_STATUS] = on_task_status,
    [MSG_TASK_MEMBER] = on_task_member,
    [MSG_OFFSETS_GET] = on_offsets_get,
    [MSG_OFFSETS_PUT] = on_offsets_put,
    [MSG_START_CHECK] = on_start_check,
    [MSG_FENCE] = on_fence,
    [MSG_TOPIC_USED] = on_topic_used,
    [MSG_CONFIG_STALE] = on_config_stale,
};

static void on_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct tenant *tenant = arg;
    struct mr_error err = {0};
    const char *conn;

    mr_assert(tenant->magic == TENANT_MAGIC && frame_table[kind] != NULL);
    if (!json_get_text(body, "conn", &conn) || strcmp(conn, tenant->conn) != 0)
        mr_fail(&err, MR_ERR_PROTOCOL, "it is about another connector");
    else
        frame_table[kind](tenant, body, &err);
    if (err.code != 0)
        child_kill(tenant->child, "its frame %s is wrong: %s", msg_rule((uint32_t)kind)->name,
                   err.text);
}

static void on_ready(void *arg)
{
    struct tenant *tenant = arg;

    mr_assert(tenant->magic == TENANT_MAGIC);
    if (child_send_take(tenant->child, MSG_WELCOME,
                        tenant->owner->welcome(tenant->owner->arg, tenant->lock_path)) != 0) {
        child_kill(tenant->child, "the worker's properties are too large for the link");
        return;
    }
    child_send_take(tenant->child, MSG_LEASE, tenant->owner->lease(tenant->owner->arg));
}

static int find_culprit(const struct tenant *tenant, bool forced)
{
    if (tenant->culprit >= 0 || !tenant->expected || !forced)
        return tenant->culprit;
    for (size_t i = 0; i < tenant->task_count; i++)
        if (tenant->tasks[i].live)
            return tenant->tasks[i].task;
    return -1;
}

/* A culprit was named in the log when it was found out. */
static enum log_level death_level(const struct tenant *tenant, const struct child_death *end)
{
    if (tenant->culprit >= 0)
        return LOG_INFO;
    return tenant->expected && !end->forced ? LOG_DEBUG : LOG_ERROR;
}

/* The supervisor itself may be freed by the herder inside `died`: after that, only what belongs to
 * tenant is touched. */
static void on_gone(void *arg, const struct child_death *end)
{
    struct tenant *tenant = arg;
    struct supervisor_death death;

    mr_assert(tenant->magic == TENANT_MAGIC);
    tenant->child = NULL;
    death = (struct supervisor_death){.expected = tenant->expected,
                                      .culprit = find_culprit(tenant, end->forced),
                                      .text = end->trace};
    log_write_for(death_level(tenant, end), LOGGER, tenant->conn, -1, "%s", end->line);
    tenant->owner->gone(tenant->owner->arg, tenant);
    tenant->owner->events->died(tenant->owner->events_arg, tenant->conn, &death);
    tenant_free(&tenant);
}

static const struct child_events child_callbacks = {
    .ready = on_ready, .frame = on_frame, .gone = on_gone};

/* --- what the supervisor asks ----------------------------------------------------------------- */

int tenant_send_take(struct tenant *tenant, enum msg_kind kind, json_t *body)
{
    if (child_serving(tenant->child))
        return child_send_take(tenant->child, kind, body);
    json_decref(body);
    return MR_ERR_CLOSED;
}

int tenant_start_task_take(struct tenant *tenant, int task, int64_t generation, json_t *body)
{
    struct tenant_task *t = add_task(tenant, task);
    int rc;

    if (t == NULL || t->live || t->stopping) {
        json_decref(body);
        return t == NULL ? MR_ERR_NOMEM : MR_ERR_STATE;
    }
    rc = tenant_send_take(tenant, MSG_TASK_START, body);
    t->live = rc == 0;
    t->generation = generation;
    return rc;
}

bool tenant_spent(const struct tenant *tenant)
{
    return tenant->spent && child_serving(tenant->child);
}

int tenant_stop_task(struct tenant *tenant, int task)
{
    struct tenant_task *t = add_task(tenant, task);
    int rc = 0;

    if (t == NULL)
        return MR_ERR_NOMEM;
    if (!child_serving(tenant->child))
        return MR_ERR_CLOSED;
    if (t->stopping)
        return 0;
    t->stopping = true;
    t->stop_due_ms = loop_now_ms(tenant->loop);
    if (t->live) {
        t->stop_due_ms += tenant->owner->graceful_ms;
        rc = child_send_take(tenant->child, MSG_TASK_STOP,
                             json_pack("{s:s, s:i}", "conn", tenant->conn, "task", task));
    }
    arm_stops(tenant);
    return rc;
}

int tenant_forget_topics(struct tenant *tenant)
{
    tenant->topics = 0;
    return tenant_send_take(tenant, MSG_TOPICS_FORGET, json_pack("{s:s}", "conn", tenant->conn));
}

void tenant_drain(struct tenant *tenant)
{
    char reason[96];

    tenant->expected = true;
    snprintf(reason, sizeof(reason), "it did not stop within %lld ms",
             (long long)tenant->owner->graceful_ms);
    child_drain(tenant->child, tenant->owner->graceful_ms, reason);
}

static json_t *answer_body(struct tenant *tenant, const struct question *q,
                           const struct tenant_answer *answer)
{
    json_t *body = json_pack("{s:I}", "id", (json_int_t)q->host_id);
    char text[512];

    if (answer->error != NULL) {
        snprintf(text, sizeof(text), "%s", answer->error);
        printable_clean(text, strlen(text));
        json_object_set_new(body, "error", json_string(text));
    } else if (answer->entries != NULL) {
        json_object_set(body, "entries", answer->entries);
    }
    if (q->answer == MSG_START_CHECKED)
        json_object_set_new(body, "ok",
                            json_boolean(answer->ok && may_begin(tenant, q->task, q->generation)));
    return body;
}

void tenant_answer_take(struct tenant *tenant, const struct tenant_answer *answer)
{
    for (size_t i = 0; i < tenant->question_count; i++) {
        struct question q = tenant->questions[i];
        int rc;

        if (q.id != answer->id)
            continue;
        tenant->questions[i] = tenant->questions[--tenant->question_count];
        rc = child_send_take(tenant->child, q.answer, answer_body(tenant, &q, answer));
        if (rc == MR_ERR_TOO_LARGE)
            child_send_take(tenant->child, q.answer,
                            answer_body(tenant, &q,
                                        &(struct tenant_answer){
                                            .error = "the stored offsets are too large for one "
                                                     "answer"}));
        break;
    }
    json_decref(answer->entries);
}

/* --- life ------------------------------------------------------------------------------------- */

struct tenant *tenant_new(struct loop *loop, const struct child_options *options,
                          struct tenant_owner *owner, const char *lock_path, struct mr_error *err)
{
    struct tenant *tenant = calloc(1, sizeof(*tenant));

    if (tenant == NULL || (tenant->conn = strdup(options->name)) == NULL ||
        (tenant->lock_path = strdup(lock_path)) == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a host process");
        goto failed;
    }
    tenant->magic = TENANT_MAGIC;
    tenant->loop = loop;
    tenant->owner = owner;
    tenant->culprit = -1;
    tenant->child = child_new(loop, options, &child_callbacks, tenant, err);
    if (tenant->child != NULL)
        return tenant;
failed:
    tenant_free(&tenant);
    return NULL;
}

void tenant_free(struct tenant **hp)
{
    struct tenant *tenant = *hp;

    *hp = NULL;
    if (tenant == NULL)
        return;
    loop_timer_cancel(&tenant->stops);
    child_free(&tenant->child);
    if (tenant->lock_path != NULL)
        unlink(tenant->lock_path);
    free(tenant->tasks);
    free(tenant->questions);
    free(tenant->lock_path);
    free(tenant->conn);
    tenant->magic = 0;
    free(tenant);
}

const char *tenant_conn(const struct tenant *tenant)
{
    return tenant->conn;
}

struct child *tenant_child(const struct tenant *tenant)
{
    return tenant->child;
}
