/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors and tasks of a host, as the control thread sees them.
 *
 * Commands come in from host.c; what happens on connector and task threads comes in as notes, posted to the loop in order, and
 * leaves as frames. No plugin code runs here and nothing waits: a hung plugin costs the control thread nothing. So the two
 * acts on a task that could wait for its plugin get a thread of their own for as long as they last: task_stop, which calls
 * interrupt, and task_free, which joins a thread whose destructors the plugin may have set.
 *
 *   task:  WAITING ─library open─► LIVE ─stop─► STOPPING ─thread ended─► gone (a successor that waits is launched)
 *             └─ library refused: FAILED, gone      └─ nudged each 100 ms
 *
 * Invariants
 * - A task's successor starts only after its thread has ended (promise 3).
 * - A note's task or connector is still there when the note is read: `ended` is the last note of each.
 * - Every question of a task is answered, or its task is gone. */
#include "host/hosted.h"

#include "base/log.h"
#include "base/map.h"
#include "host/connector_run.h"
#include "host/task/task.h"
#include "host/thread_guard.h"
#include "host/trace.h"
#include "link/printable.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define LOGGER "host.control"
#define NUDGE_MS 100
#define SERVE_MS 200
#define TRACE_MAX (48u * 1024)
#define QUESTIONS_MAX 4096 /* open at a time; a task has one or two */

/* One task. launched: it has a thread. */
struct tenant {
    struct conn *conn;
    struct tenant *next;
    int number;
    size_t slot;
    struct task *task; /* NULL: waits for the library, or for its predecessor */
    struct props config;
    enum target_state target;
    int64_t generation;
    bool stopping;
    bool stop_again; /* it was asked to stop after its last status: answer when it is gone */
    bool stopper;    /* a thread is inside task_stop */
    bool over;       /* its last status was sent */
    bool ended;      /* the task's thread said so */
    struct tenant *successor; /* started when this one has ended; owned */
};

struct conn {
    struct hosted *hosted;
    char *name;
    struct props config;
    struct plugin_place converters[PLUGIN_ROLES]; /* texts are ours */
    struct connector_run *run;                    /* NULL: its thread has ended */
    const struct plugin *plugin;                  /* NULL: not open yet */
    char *refused; /* why it can't be opened: trace for its tasks; NULL = not refused */
    size_t slot;
    struct tenant *tenants;
};

struct question {
    int64_t id;
    struct tenant *tenant;
};

struct hosted {
    struct hosted_options opt;
    struct map *conns;
    bool slot_taken[BLACK_BOX_SLOTS];
    struct question *questions;
    size_t question_count;
    size_t question_cap;
    bool worker_gone;
    atomic_llong next_id; /* any thread */
    struct loop_timer tick;
};

/* --- slots of the black box ---------------------------------------------------------------------------------------------- */

/* A host with more tasks than slots runs them all; those without one just leave no note. */
static size_t slot_take(struct hosted *h)
{
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++)
        if (!h->slot_taken[i]) {
            h->slot_taken[i] = true;
            return i;
        }
    return THREAD_GUARD_NO_SLOT;
}

static void slot_give(struct hosted *h, size_t slot)
{
    if (slot == THREAD_GUARD_NO_SLOT)
        return;
    black_box_leave(h->opt.box, slot);
    memset(h->opt.box->slots[slot].member_id, 0, sizeof(h->opt.box->slots[slot].member_id));
    memset(h->opt.box->slots[slot].transactional_id, 0,
           sizeof(h->opt.box->slots[slot].transactional_id));
    h->slot_taken[slot] = false;
}

/* --- frames out ------------------------------------------------------------------------------------------------------------ */

/* Plugin text may be anything; the link takes UTF-8 only. */
static json_t *json_from_text(const char *text)
{
    size_t len = printable_cut(text, strlen(text), TRACE_MAX);
    char *copy = malloc(len + 1);
    json_t *value;

    mr_assert(copy != NULL);
    memcpy(copy, text, len);
    copy[len] = '\0';
    printable_clean(copy, len);
    value = json_string(copy);
    free(copy);
    return value;
}

static void set_text(json_t *body, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(body, key, json_from_text(text));
}

static void send_task_status(struct conn *conn, int number, enum state state, const char *trace)
{
    json_t *body = json_pack("{s:s, s:i, s:s}", "conn", conn->name, "task", number, "state",
                             state_name(state));

    set_text(body, "trace", trace);
    conn->hosted->opt.send(conn->hosted->opt.arg, MSG_TASK_STATUS, body);
}

/* --- finding ------------------------------------------------------------------------------------------------------------------ */

static struct conn *find_conn(struct hosted *h, const char *name, struct mr_error *err)
{
    struct conn *conn = map_get(h->conns, name);

    if (conn == NULL)
        mr_fail(err, MR_ERR_PROTOCOL, "there is no connector %.200s here", name);
    return conn;
}

static struct tenant *find_tenant(const struct conn *conn, int number)
{
    struct tenant *t = conn->tenants;

    while (t != NULL && t->number != number)
        t = t->next;
    return t;
}

size_t hosted_task_count(const struct hosted *h)
{
    const char *name;
    void *value;
    size_t count = 0;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next)
            count++;
    return count;
}

size_t hosted_connector_count(const struct hosted *h)
{
    const char *name;
    void *value;
    size_t count = 0;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        count += ((struct conn *)value)->run != NULL;
    return count;
}

static void tenant_free(struct tenant *t)
{
    if (t == NULL)
        return;
    tenant_free(t->successor);
    props_deinit(&t->config);
    free(t);
}

static void unlink_tenant(struct tenant *t)
{
    struct tenant **at = &t->conn->tenants;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
}

/* --- questions of tasks ------------------------------------------------------------------------------------------------------- */

static void answer(struct tenant *t, const struct hosted_answer *from)
{
    struct task_answer *to = calloc(1, sizeof(*to));

    mr_assert(to != NULL);
    to->id = from->id;
    to->entries = from->entries;
    to->ok = from->ok;
    snprintf(to->error, sizeof(to->error), "%s", from->error == NULL ? "" : from->error);
    task_answer_take(t->task, to);
}

static void refuse(struct tenant *t, int64_t id, const char *why)
{
    answer(t, &(struct hosted_answer){.id = id, .error = why});
}

static const char *refusal(int code)
{
    switch (code) {
    case MR_ERR_FULL:
        return "the worker does not read what this host tells it";
    case MR_ERR_TOO_LARGE:
        return "the question is larger than the link to the worker carries";
    default:
        return "the worker is gone";
    }
}

static bool remember_question(struct hosted *h, struct tenant *t, int64_t id)
{
    if (h->question_count == h->question_cap) {
        size_t cap = h->question_cap == 0 ? 16 : h->question_cap * 2;
        struct question *grown;

        if (cap > QUESTIONS_MAX)
            return false;
        grown = realloc(h->questions, cap * sizeof(*grown));
        mr_assert(grown != NULL);
        h->questions = grown;
        h->question_cap = cap;
    }
    h->questions[h->question_count++] = (struct question){.id = id, .tenant = t};
    return true;
}

static void ask(struct tenant *t, enum msg_kind kind, int64_t id, json_t *body)
{
    struct hosted *h = t->conn->hosted;
    int rc;

    if (h->worker_gone || !remember_question(h, t, id)) {
        json_decref(body);
        refuse(t, id,
               h->worker_gone ? "the worker is gone" : "too many questions to the worker are open");
        return;
    }
    json_object_set_new(body, "id", json_integer(id));
    json_object_set_new(body, "conn", json_string(t->conn->name));
    rc = h->opt.send(h->opt.arg, kind, body);
    if (rc != 0) {
        h->question_count--;
        refuse(t, id, refusal(rc));
    }
}

void hosted_answer_take(struct hosted *h, const struct hosted_answer *from)
{
    for (size_t i = 0; i < h->question_count; i++)
        if (h->questions[i].id == from->id) {
            struct tenant *t = h->questions[i].tenant;

            h->questions[i] = h->questions[--h->question_count];
            answer(t, from);
            return;
        }
    json_decref(from->entries);
}

static void forget_questions(struct hosted *h, const struct tenant *t)
{
    for (size_t i = h->question_count; i > 0; i--)
        if (h->questions[i - 1].tenant == t)
            h->questions[i - 1] = h->questions[--h->question_count];
}

void hosted_worker_gone(struct hosted *h)
{
    h->worker_gone = true;
    while (h->question_count > 0) {
        struct question q = h->questions[--h->question_count];

        refuse(q.tenant, q.id, "the worker is gone");
    }
}

/* --- tasks -------------------------------------------------------------------------------------------------------------------- */

/* What a task's thread says, on its way to the control thread. */
struct task_note {
    struct tenant *tenant;
    void (*read)(struct task_note *note);
    enum state state;
    char *trace;
    enum msg_kind kind;
    int64_t id;
    json_t *body;
};

static void launch(struct tenant *t);
static void on_tick(void *arg);

/* How soon a task wants attention: a stopping one its nudge, a sink in a long put somebody who serves its consumer. */
static int64_t tick_delay(const struct hosted *h)
{
    const char *name;
    void *value;
    int64_t delay = -1;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next) {
            if (t->task != NULL && t->stopping)
                return NUDGE_MS;
            if (t->task != NULL && t->conn->plugin->kind == MR_PLUGIN_SINK)
                delay = SERVE_MS;
        }
    return delay;
}

static void tick_start(struct hosted *h)
{
    int64_t delay = tick_delay(h);

    if (delay >= 0)
        loop_timer_start(h->opt.loop, &h->tick, delay, on_tick, h);
}

static void on_tick(void *arg)
{
    struct hosted *h = arg;
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next) {
            if (t->task != NULL && t->stopping)
                task_nudge(t->task);
            if (t->task != NULL)
                task_serve(t->task);
        }
    tick_start(h);
}

static void read_note(void *arg)
{
    struct task_note *note = arg;

    note->read(note);
    json_decref(note->body);
    free(note->trace);
    free(note);
}

/* From a task's thread. Losing a note would leave the worker waiting for ever: better no host than such a one. */
static struct task_note *note_new(struct tenant *t, void (*read)(struct task_note *))
{
    struct task_note *note = calloc(1, sizeof(*note));

    mr_assert(note != NULL);
    note->tenant = t;
    note->read = read;
    return note;
}

static void note_post(struct task_note *note)
{
    int rc = loop_post(note->tenant->conn->hosted->opt.loop, read_note, note);

    mr_assert(rc == 0);
}

/* A failure that crosses with the order to stop is told as Connect does: logged by the task, and UNASSIGNED. */
static void read_status(struct task_note *note)
{
    struct tenant *t = note->tenant;
    bool failed = note->state == STATE_FAILED;

    t->over = failed || note->state == STATE_UNASSIGNED;
    if (failed && t->stopping)
        send_task_status(t->conn, t->number, STATE_UNASSIGNED, NULL);
    else
        send_task_status(t->conn, t->number, note->state, note->trace);
}

static void on_status(void *arg, struct task *task, enum state state, const char *trace)
{
    struct task_note *note = note_new(arg, read_status);

    (void)task;
    note->state = state;
    note->trace = trace == NULL ? NULL : strdup(trace);
    note_post(note);
}

static void read_question(struct task_note *note)
{
    json_t *body = note->body;

    note->body = NULL;
    ask(note->tenant, note->kind, note->id, body);
}

/* body is taken. */
static int64_t post_question(struct tenant *t, enum msg_kind kind, json_t *body)
{
    struct task_note *note = note_new(t, read_question);
    int64_t id = atomic_fetch_add(&t->conn->hosted->next_id, 1);

    note->kind = kind;
    note->id = id;
    note->body = body;
    mr_assert(body != NULL);
    note_post(note);
    return id;
}

static int64_t on_ask_offsets(void *arg, struct task *task, json_t *partitions)
{
    (void)task;
    return post_question(arg, MSG_OFFSETS_GET, json_pack("{s:o}", "partitions", partitions));
}

static int64_t on_put_offsets(void *arg, struct task *task, json_t *entries)
{
    (void)task;
    return post_question(arg, MSG_OFFSETS_PUT, json_pack("{s:o}", "entries", entries));
}

static int64_t on_ask_start(void *arg, struct task *task)
{
    struct tenant *t = arg;

    (void)task;
    return post_question(
        t, MSG_START_CHECK,
        json_pack("{s:i, s:I}", "task", t->number, "generation", (json_int_t)t->generation));
}

/* Run fn(arg) on a thread of its own that nobody waits for. */
static bool run_aside(void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return rc == 0;
}

static void *free_aside(void *arg)
{
    struct task *task = arg;

    task_free(&task);
    return NULL;
}

/* The place of a task that is gone goes to its successor, if one waits. */
static void bury(struct tenant *t)
{
    struct hosted *h = t->conn->hosted;
    struct tenant *successor = t->successor;

    forget_questions(h, t);
    if (!run_aside(free_aside, t->task))
        log_error("no thread to free task %d of %s: its memory is lost", t->number, t->conn->name);
    slot_give(h, t->slot);
    unlink_tenant(t);
    if (t->stop_again)
        send_task_status(t->conn, t->number, STATE_UNASSIGNED, NULL);
    t->successor = NULL;
    if (successor != NULL) {
        successor->next = t->conn->tenants;
        t->conn->tenants = successor;
        launch(successor);
    }
    tenant_free(t);
    h->opt.ended(h->opt.arg);
}

static void read_ended(struct task_note *note)
{
    note->tenant->ended = true;
    if (!note->tenant->stopper)
        bury(note->tenant);
}

static void read_stopped(struct task_note *note)
{
    note->tenant->stopper = false;
    if (note->tenant->ended)
        bury(note->tenant);
}

static void *stop_aside(void *arg)
{
    struct tenant *t = arg;

    thread_guard_enter(t->slot);
    log_context(t->conn->name, t->number);
    task_stop(t->task);
    thread_guard_leave();
    note_post(note_new(t, read_stopped));
    return NULL;
}

static void on_ended(void *arg, struct task *task)
{
    (void)task;
    note_post(note_new(arg, read_ended));
}

static const struct task_events task_events = {
    .status = on_status,
    .ask_offsets = on_ask_offsets,
    .put_offsets = on_put_offsets,
    .ask_start = on_ask_start,
    .ended = on_ended,
};

/* A task that never got a thread goes with this status. */
static void dismiss(struct tenant *t, enum state state, const char *trace)
{
    send_task_status(t->conn, t->number, state, trace);
    unlink_tenant(t);
    tenant_free(t);
}

static void launch_failed(struct tenant *t, const struct mr_error *err)
{
    char trace[2048];

    log_write_for(LOG_ERROR, LOGGER, t->conn->name, t->number, "task failed: %s", err->text);
    dismiss(t, STATE_FAILED, trace_write(trace, sizeof(trace), err, "the start of its thread"));
}

/* Give a waiting task its thread, as soon as there is a library to run. */
static void launch(struct tenant *t)
{
    struct conn *conn = t->conn;
    struct hosted *h = conn->hosted;
    struct mr_error err = {0};
    struct task_spec spec = {.connector = conn->name,
                             .number = t->number,
                             .plugin = conn->plugin,
                             .config = &t->config,
                             .connector_config = &conn->config,
                             .worker = h->opt.worker,
                             .converters = conn->converters,
                             .target = t->target,
                             .box = h->opt.box,
                             .events = &task_events,
                             .arg = t};

    if (conn->refused != NULL) {
        dismiss(t, STATE_FAILED, conn->refused);
        return;
    }
    if (conn->plugin == NULL)
        return;
    spec.box_slot = t->slot = slot_take(h);
    t->task = task_new(&spec, &err);
    if (t->task == NULL) {
        slot_give(h, t->slot);
        launch_failed(t, &err);
        return;
    }
    tick_start(h);
}

static struct tenant *tenant_new(struct conn *conn, const struct hosted_task *spec)
{
    struct tenant *t = calloc(1, sizeof(*t));

    mr_assert(t != NULL && props_copy(&t->config, spec->config) == 0);
    t->conn = conn;
    t->number = spec->number;
    t->slot = THREAD_GUARD_NO_SLOT;
    t->target = spec->target;
    t->generation = spec->generation;
    return t;
}

static void stop_tenant(struct tenant *t)
{
    if (t->task == NULL) {
        dismiss(t, STATE_UNASSIGNED, NULL);
        return;
    }
    tenant_free(t->successor);
    t->successor = NULL;
    t->stop_again = t->over;
    if (t->stopping || t->over)
        return;
    t->stopping = t->stopper = true;
    if (!run_aside(stop_aside, t)) {
        t->stopper = false;
        task_stop(
            t->task); /* no thread to be had: the only case in which plugin code may run here */
    }
    tick_start(t->conn->hosted);
}

int hosted_task_start(struct hosted *h, const struct hosted_task *spec, struct mr_error *err)
{
    struct conn *conn = find_conn(h, spec->conn, err);
    struct tenant *t, *before;

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    before = find_tenant(conn, spec->number);
    if (before != NULL && before->task == NULL) {
        unlink_tenant(before);
        tenant_free(before);
        before = NULL;
    }
    t = tenant_new(conn, spec);
    if (before != NULL) {
        if (!before->over)
            stop_tenant(before);
        tenant_free(before->successor);
        before->successor = t;
        return 0;
    }
    t->next = conn->tenants;
    conn->tenants = t;
    launch(t);
    return 0;
}

int hosted_task_target(struct hosted *h, const char *name, int number, enum target_state target,
                       struct mr_error *err)
{
    struct conn *conn = find_conn(h, name, err);
    struct tenant *t;

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    t = find_tenant(conn, number);
    if (t == NULL)
        return 0; /* it has just failed or ended: the frames have crossed */
    if (t->successor != NULL)
        t = t->successor;
    t->target = target;
    if (t->task != NULL)
        task_set_target(t->task, target);
    return 0;
}

int hosted_task_stop(struct hosted *h, const char *name, int number, struct mr_error *err)
{
    struct conn *conn = find_conn(h, name, err);
    struct tenant *t;

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    t = find_tenant(conn, number);
    if (t != NULL)
        stop_tenant(t);
    else
        send_task_status(conn, number, STATE_UNASSIGNED, NULL);
    return 0;
}

static void stop_tasks_of(struct conn *conn)
{
    struct tenant *t = conn->tenants;

    while (t != NULL) {
        struct tenant *next = t->next;

        stop_tenant(t);
        t = next;
    }
}

void hosted_stop_tasks(struct hosted *h)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        stop_tasks_of(value);
}

/* --- connectors --------------------------------------------------------------------------------------------------------------- */

struct conn_note {
    struct conn *conn;
    void (*read)(struct conn_note *note);
    const struct plugin *plugin;
    enum state state;
    char *text; /* trace or error */
    const char *version;
    json_t *configs;
};

static void read_conn_note(void *arg)
{
    struct conn_note *note = arg;

    note->read(note);
    json_decref(note->configs);
    free(note->text);
    free(note);
}

static struct conn_note *conn_note_new(struct conn *conn, void (*read)(struct conn_note *),
                                       const char *text)
{
    struct conn_note *note = calloc(1, sizeof(*note));

    mr_assert(note != NULL);
    note->conn = conn;
    note->read = read;
    note->text = text == NULL ? NULL : strdup(text);
    return note;
}

static void conn_note_post(struct conn_note *note)
{
    int rc = loop_post(note->conn->hosted->opt.loop, read_conn_note, note);

    mr_assert(rc == 0);
}

static void launch_waiting(struct conn *conn)
{
    struct tenant *t = conn->tenants;

    while (t != NULL) {
        struct tenant *next = t->next;

        if (t->task == NULL)
            launch(t);
        t = next;
    }
}

static void read_loaded(struct conn_note *note)
{
    free(note->conn->refused);
    note->conn->refused = NULL;
    note->conn->plugin = note->plugin;
    launch_waiting(note->conn);
}

static void on_loaded(void *arg, struct connector_run *run, const struct plugin *plugin)
{
    struct conn_note *note = conn_note_new(arg, read_loaded, NULL);

    (void)run;
    note->plugin = plugin;
    conn_note_post(note);
}

static void read_conn_status(struct conn_note *note)
{
    struct conn *conn = note->conn;
    json_t *body = json_pack("{s:s, s:s}", "conn", conn->name, "state", state_name(note->state));

    set_text(body, "trace", note->text);
    set_text(body, "version", note->version);
    conn->hosted->opt.send(conn->hosted->opt.arg, MSG_CONNECTOR_STATUS, body);
    if (note->state == STATE_FAILED && conn->plugin == NULL) {
        free(conn->refused);
        conn->refused = note->text == NULL ? NULL : strdup(note->text);
        launch_waiting(conn);
    }
}

static void on_conn_status(void *arg, struct connector_run *run, enum state state,
                           const char *trace, const char *version)
{
    struct conn_note *note = conn_note_new(arg, read_conn_status, trace);

    (void)run;
    note->state = state;
    note->version = version;
    conn_note_post(note);
}

static void send_configs_error(struct conn *conn, const char *error)
{
    json_t *body = json_pack("{s:s}", "conn", conn->name);

    set_text(body, "error", error);
    conn->hosted->opt.send(conn->hosted->opt.arg, MSG_TASK_CONFIGS_READY, body);
}

/* FAILED as well, or the worker would ask again for ever. */
static void refuse_large_configs(struct conn *conn)
{
    static const char text[] =
        "the task configurations are together larger than the link to the worker carries";
    json_t *body = json_pack("{s:s, s:s, s:s}", "conn", conn->name, "state",
                             state_name(STATE_FAILED), "trace", text);

    send_configs_error(conn, text);
    conn->hosted->opt.send(conn->hosted->opt.arg, MSG_CONNECTOR_STATUS, body);
}

static void read_configs(struct conn_note *note)
{
    struct conn *conn = note->conn;
    json_t *body;
    int rc;

    if (note->configs == NULL) {
        send_configs_error(conn, note->text);
        return;
    }
    body = json_pack("{s:s, s:O}", "conn", conn->name, "configs", note->configs);
    rc = conn->hosted->opt.send(conn->hosted->opt.arg, MSG_TASK_CONFIGS_READY, body);
    if (rc == MR_ERR_TOO_LARGE)
        refuse_large_configs(conn);
}

static void on_task_configs(void *arg, struct connector_run *run, json_t *configs,
                            const char *error)
{
    struct conn_note *note = conn_note_new(arg, read_configs, error);

    (void)run;
    note->configs = configs;
    conn_note_post(note);
}

static void read_conn_ended(struct conn_note *note)
{
    struct hosted *h = note->conn->hosted;

    connector_run_free(&note->conn->run);
    h->opt.ended(h->opt.arg);
}

static void on_conn_ended(void *arg, struct connector_run *run)
{
    (void)run;
    conn_note_post(conn_note_new(arg, read_conn_ended, NULL));
}

static const struct connector_run_events run_events = {
    .loaded = on_loaded,
    .status = on_conn_status,
    .task_configs = on_task_configs,
    .ended = on_conn_ended,
};

static void conn_free(void *arg)
{
    struct conn *conn = arg;

    slot_give(conn->hosted, conn->slot);
    for (size_t role = 0; role < PLUGIN_ROLES; role++) {
        free((char *)(uintptr_t)conn->converters[role].library);
        free((char *)(uintptr_t)conn->converters[role].name);
    }
    props_deinit(&conn->config);
    free(conn->refused);
    free(conn->name);
    free(conn);
}

static void copy_place(struct plugin_place *to, const struct plugin_place *from)
{
    if (from->library == NULL)
        return;
    to->library = strdup(from->library);
    to->name = strdup(from->name);
    mr_assert(to->library != NULL && to->name != NULL);
}

static struct conn *conn_new(struct hosted *h, const struct hosted_connector *spec)
{
    struct conn *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL && props_copy(&conn->config, spec->config) == 0);
    conn->hosted = h;
    conn->name = strdup(spec->name);
    mr_assert(conn->name != NULL);
    for (size_t role = 0; role < PLUGIN_ROLES; role++)
        copy_place(&conn->converters[role], &spec->converters[role]);
    conn->slot = slot_take(h);
    return conn;
}

int hosted_connector_start(struct hosted *h, const struct hosted_connector *spec,
                           struct mr_error *err)
{
    struct conn *conn;

    if (map_get(h->conns, spec->name) != NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "connector %.200s is here already", spec->name);
    conn = conn_new(h, spec);
    conn->run = connector_run_new(&(struct connector_run_spec){.name = spec->name,
                                                               .library = spec->library,
                                                               .class_name = spec->class_name,
                                                               .config = spec->config,
                                                               .target = spec->target,
                                                               .box = h->opt.box,
                                                               .box_slot = conn->slot,
                                                               .events = &run_events,
                                                               .arg = conn},
                                  err);
    if (conn->run == NULL) {
        conn_free(conn);
        return MR_ERR_NOMEM;
    }
    map_set(h->conns, spec->name, conn);
    return 0;
}

int hosted_connector_target(struct hosted *h, const char *name, enum target_state target,
                            struct mr_error *err)
{
    struct conn *conn = find_conn(h, name, err);

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    if (conn->run != NULL && connector_run_target(conn->run, target) != 0)
        log_write_for(LOG_WARN, LOGGER, name, -1,
                      "the connector hangs in plugin code: its target state %s is not applied",
                      target_state_name(target));
    return 0;
}

int hosted_task_configs(struct hosted *h, const char *name, int max, struct mr_error *err)
{
    struct conn *conn = find_conn(h, name, err);

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    if (conn->run == NULL || connector_run_task_configs(conn->run, max) != 0)
        send_configs_error(conn,
                           "the connector hangs in plugin code, too many questions wait for it");
    return 0;
}

void hosted_end_connectors(struct hosted *h)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        if (((struct conn *)value)->run != NULL)
            connector_run_end(((struct conn *)value)->run);
}

/* --- life ------------------------------------------------------------------------------------------------------------------------- */

struct hosted *hosted_new(const struct hosted_options *options)
{
    struct hosted *h = calloc(1, sizeof(*h));

    mr_assert(h != NULL);
    h->opt = *options;
    h->conns = map_new();
    atomic_init(&h->next_id, 1);
    return h;
}

void hosted_free(struct hosted **hp)
{
    struct hosted *h = *hp;

    *hp = NULL;
    if (h == NULL)
        return;
    mr_assert(hosted_task_count(h) == 0 && hosted_connector_count(h) == 0);
    loop_timer_cancel(&h->tick);
    map_free(&h->conns, conn_free);
    free(h->questions);
    free(h);
}
