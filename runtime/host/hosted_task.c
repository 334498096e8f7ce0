/* SPDX-License-Identifier: Apache-2.0 */
/* A task of a host, as the control thread sees it: from commands to its thread, and from its
 * thread's notes to frames.
 *
 * The two acts on a task that could wait for its plugin get a thread of their own for as long as
 * they last: task_stop, which calls interrupt, and task_free, which joins a thread whose
 * destructors the plugin may have set.
 *
 *   WAITING ─library open─► LIVE ─stop─► STOPPING ─thread ended─► gone (a successor is launched)
 *      └─ library refused: FAILED, gone      └─ nudged each 100 ms
 *
 * Invariant: a task's successor starts only after its thread has ended (promise 3). */
#include "host/hosted_private.h"

#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "host/data/schema_tree.h"
#include "host/thread_guard.h"
#include "host/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOGGER "host.control"

static json_t *status_body(struct conn *conn, int number, enum state state, const char *trace)
{
    json_t *body = json_pack("{s:s, s:i, s:s}", "conn", conn->name, "task", number, "state",
                             state_name(state));

    hosted_set_text(body, "trace", trace);
    return body;
}

static void send_task_status(struct conn *conn, int number, enum state state, const char *trace)
{
    hosted_send(conn->hosted, MSG_TASK_STATUS, status_body(conn, number, state, trace));
}

static struct tenant *find_tenant(const struct conn *conn, int number)
{
    struct tenant *t = conn->tenants;

    while (t != NULL && t->number != number)
        t = t->next;
    return t;
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

/* --- what its thread says --------------------------------------------------------------------- */

/* What a task's thread says, on its way to the control thread. */
struct task_note {
    struct tenant *tenant;
    void (*read)(struct task_note *note);
    enum state state;
    bool spent;  /* it FAILED of what only a new process mends */
    char *trace; /* or the text of its kind */
    enum msg_kind kind;
    int64_t id;
    json_t *body;
};

static void launch(struct tenant *t);

static void read_note(void *arg)
{
    struct task_note *note = arg;

    note->read(note);
    json_decref(note->body);
    free(note->trace);
    free(note);
}

/* From a task's thread. Losing a note would leave the worker waiting for ever: better no host than
 * such a one. */
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

/* A failure that crosses with the order to stop is told as Connect does: logged by the task, and
 * UNASSIGNED. */
static void read_status(struct task_note *note)
{
    struct tenant *t = note->tenant;
    bool failed = note->state == STATE_FAILED;
    json_t *body;

    t->over = failed || note->state == STATE_UNASSIGNED;
    if (failed && t->stopping) {
        send_task_status(t->conn, t->number, STATE_UNASSIGNED, NULL);
        return;
    }
    body = status_body(t->conn, t->number, note->state, note->trace);
    if (note->spent)
        json_object_set_new(body, "spent", json_true());
    hosted_send(t->conn->hosted, MSG_TASK_STATUS, body);
}

static void on_status(void *arg, struct task *task, enum state state, const char *trace)
{
    struct task_note *note = note_new(arg, read_status);

    note->state = state;
    note->spent =
        state == STATE_FAILED && task_failure_code(task) == MR_ERR_FULL && schema_tree_spent();
    note->trace = text_dup(trace);
    note_post(note);
}

static void read_question(struct task_note *note)
{
    json_t *body = note->body;

    note->body = NULL;
    hosted_question_ask(note->tenant, note->kind, note->id, body);
}

/* body is taken; NULL: no memory for it, which is answered. */
static int64_t post_question(struct tenant *t, enum msg_kind kind, json_t *body)
{
    struct task_note *note = note_new(t, read_question);
    int64_t id = atomic_fetch_add(&t->conn->hosted->next_id, 1);

    note->kind = kind;
    note->id = id;
    note->body = body;
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

static void read_member(struct task_note *note)
{
    struct conn *conn = note->tenant->conn;

    hosted_send(conn->hosted, MSG_TASK_MEMBER,
                json_pack("{s:s, s:i, s:s}", "conn", conn->name, "task", note->tenant->number,
                          "member", note->trace));
}

static void on_member(void *arg, struct task *task, const char *id)
{
    struct task_note *note = note_new(arg, read_member);

    (void)task;
    note->trace = text_dup(id);
    note_post(note);
}

static int64_t on_ask_fence(void *arg, struct task *task)
{
    (void)task;
    return post_question(arg, MSG_FENCE, json_object());
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

    hosted_question_forget(h, t);
    if (thread_start_aside(free_aside, t->task) != 0)
        log_error("no thread to free task %d of %s: its memory is lost", t->number, t->conn->name);
    hosted_slot_give(h, t->slot);
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

static void read_quiet(struct task_note *note)
{
    struct hosted *h = note->tenant->conn->hosted;

    h->opt.ended(h->opt.arg);
}

static void read_topic(struct task_note *note)
{
    hosted_connector_topic(note->tenant->conn, note->tenant->number, note->trace);
}

static void on_topic_used(void *arg, struct task *task, const char *topic)
{
    struct task_note *note = note_new(arg, read_topic);

    (void)task;
    note->trace = text_dup(topic);
    note_post(note);
}

static void on_quiet(void *arg, struct task *task)
{
    (void)task;
    note_post(note_new(arg, read_quiet));
}

static const struct task_events task_events = {
    .status = on_status,
    .ask_offsets = on_ask_offsets,
    .put_offsets = on_put_offsets,
    .ask_start = on_ask_start,
    .topic_used = on_topic_used,
    .member = on_member,
    .ask_fence = on_ask_fence,
    .quiet = on_quiet,
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
                             .providers = h->opt.providers,
                             .plugins = conn->plugins,
                             .target = t->target,
                             .lease_lost = h->lease_lost,
                             .lease_hard_boot_ms = h->lease_hard_boot_ms,
                             .box = h->opt.box,
                             .events = &task_events,
                             .arg = t};

    if (conn->refused != NULL) {
        dismiss(t, STATE_FAILED, conn->refused);
        return;
    }
    if (conn->plugin == NULL)
        return;
    spec.box_slot = t->slot = hosted_slot_take(h);
    t->task = task_new(&spec, &err);
    if (t->task == NULL) {
        hosted_slot_give(h, t->slot);
        launch_failed(t, &err);
        return;
    }
    hosted_tick_start(h);
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
    if (thread_start_aside(stop_aside, t) != 0) {
        t->stopper = false;
        /* No thread to be had: the only case in which plugin code may run here. */
        task_stop(t->task);
    }
    hosted_tick_start(t->conn->hosted);
}

int hosted_task_start(struct hosted *h, const struct hosted_task *spec, struct mr_error *err)
{
    struct conn *conn = hosted_find(h, spec->conn, err);
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
    struct conn *conn = hosted_find(h, name, err);
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
    struct conn *conn = hosted_find(h, name, err);
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

void hosted_task_stop_all(struct conn *conn)
{
    struct tenant *t = conn->tenants;

    while (t != NULL) {
        struct tenant *next = t->next;

        stop_tenant(t);
        t = next;
    }
}

void hosted_task_launch_waiting(struct conn *conn)
{
    struct tenant *t = conn->tenants;

    while (t != NULL) {
        struct tenant *next = t->next;

        if (t->task == NULL)
            launch(t);
        t = next;
    }
}

/* A new lease is none of a task's that is being stopped: it may be running elsewhere by now. */
void hosted_task_lease_all(struct conn *conn)
{
    for (struct tenant *t = conn->tenants; t != NULL; t = t->next) {
        if (t->task == NULL)
            continue;
        if (conn->hosted->lease_lost)
            task_lease_lost(t->task, conn->hosted->lease_hard_boot_ms);
        else if (!t->stopping)
            task_lease_renewed(t->task);
    }
}

/* One that has ended is not counted: its thread does nothing more. But interrupt may still run for
 * it. */
bool hosted_task_quiet_all(const struct conn *conn)
{
    for (const struct tenant *t = conn->tenants; t != NULL; t = t->next)
        if (t->task != NULL && (t->stopper || (!t->ended && !task_lease_quiet(t->task))))
            return false;
    return true;
}

void hosted_task_forget_topics(struct conn *conn)
{
    for (struct tenant *t = conn->tenants; t != NULL; t = t->next)
        if (t->task != NULL)
            task_topics_forget(t->task);
}
