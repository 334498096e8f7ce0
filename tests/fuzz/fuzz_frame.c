/* SPDX-License-Identifier: Apache-2.0 */
/* The link, from a socket to what the herder is told: bytes of a host through chan.c, frame.c and
 * tenant.c. The process behind it (child.c) is played by this file: the first byte chooses the
 * state of the link, the rest is what a host wrote. Whatever it is, the herder hears only of the
 * host's own connector and of tasks that it was given. Seeds hold kinds as numbers (link/msg.h): a
 * kind that comes in between moves them. */
#include "link/chan.h"
#include "model/topic_tracking.h"
#include "worker/supervisor/tenant.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GENERATION 0
#define TASKS 3

struct child {
    const struct child_events *events;
    void *arg;
    struct loop *loop;
    struct chan *link;
    bool killed;
};

/* --- what tenant.c asks of a child ------------------------------------------------------------ */

static void on_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct child *c = arg;

    if (!c->killed && kind != MSG_HELLO && kind != MSG_PONG && kind != MSG_DRAINED)
        c->events->frame(c->arg, kind, body);
}

static void on_closed(void *arg, const struct mr_error *err)
{
    struct child *c = arg;

    mr_assert(err == NULL || (err->code != 0 && err->text[0] != '\0'));
    loop_stop(c->loop);
}

struct child *child_new(struct loop *loop, const struct child_options *options,
                        const struct child_events *events, void *arg, struct mr_error *err)
{
    struct child *c = calloc(1, sizeof(*c));

    (void)options;
    (void)err;
    mr_assert(c != NULL);
    c->events = events;
    c->arg = arg;
    c->loop = loop;
    return c;
}

void child_free(struct child **c)
{
    if (*c != NULL)
        chan_free(&(*c)->link);
    free(*c);
    *c = NULL;
}

int child_send_take(struct child *c, enum msg_kind kind, json_t *body)
{
    return c->link != NULL ? chan_send_take(c->link, kind, body) : (json_decref(body), 0);
}

void child_kill(struct child *c, const char *fmt, ...)
{
    c->killed = true;
    mr_assert(fmt[0] != '\0');
}

void child_end(struct child *c, const char *reason)
{
    (void)c;
    (void)reason;
}

void child_drain(struct child *c, int64_t within_ms, const char *reason)
{
    (void)c;
    (void)within_ms;
    (void)reason;
}

void child_set_culprit(struct child *c, int task)
{
    (void)c;
    (void)task;
}

void child_call(const struct child *c, int task, struct buf *out)
{
    (void)c;
    (void)task;
    (void)out;
}

bool child_serving(const struct child *c)
{
    return !c->killed;
}

pid_t child_pid(const struct child *c)
{
    (void)c;
    return 1;
}

/* --- the herder ------------------------------------------------------------------------------- */

static void check_text(const char *text)
{
    json_t *copy = text == NULL ? json_null() : json_string(text);

    mr_assert(copy != NULL);
    json_decref(copy);
}

static void connector_status(void *arg, const char *conn, enum state state, const char *trace,
                             const char *version)
{
    (void)arg;
    mr_assert(strcmp(conn, "src") == 0 && state != STATE_RESTARTING);
    check_text(trace);
    check_text(version);
}

static void task_configs(void *arg, const char *conn, const json_t *configs, const char *error)
{
    (void)arg;
    mr_assert(strcmp(conn, "src") == 0 && (configs == NULL) != (error == NULL));
    mr_assert(configs == NULL || json_is_array(configs));
}

static void task_status(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    (void)arg;
    mr_assert(strcmp(conn, "src") == 0 && task >= 0 && task < TASKS);
    mr_assert(state != STATE_STOPPED && state != STATE_RESTARTING);
    check_text(trace);
}

static void offsets_get(void *arg, const char *conn, int64_t id, const json_t *partitions)
{
    struct tenant *tenant = *(struct tenant **)arg;

    mr_assert(strcmp(conn, "src") == 0 && json_is_array(partitions));
    tenant_answer_take(tenant, &(struct tenant_answer){.id = id, .entries = json_array()});
}

static void offsets_put(void *arg, const char *conn, int64_t id, const json_t *entries)
{
    struct tenant *tenant = *(struct tenant **)arg;

    mr_assert(strcmp(conn, "src") == 0 && json_is_array(entries));
    if (json_array_size(entries) != 1)
        tenant_answer_take(tenant, &(struct tenant_answer){.id = id, .error = "full"});
}

static void start_check(void *arg, const char *conn, int64_t id, int task, int64_t generation)
{
    struct tenant *tenant = *(struct tenant **)arg;

    mr_assert(strcmp(conn, "src") == 0 && task >= 0 && task < TASKS && generation == GENERATION);
    tenant_answer_take(tenant, &(struct tenant_answer){.id = id, .ok = true});
}

static void fence(void *arg, const char *conn, int64_t id)
{
    struct tenant *tenant = *(struct tenant **)arg;

    mr_assert(strcmp(conn, "src") == 0);
    tenant_answer_take(tenant, &(struct tenant_answer){.id = id, .error = "not here"});
}

static void task_member(void *arg, const char *conn, int task, const char *member)
{
    (void)arg;
    mr_assert(strcmp(conn, "src") == 0 && task >= 0 && task < TASKS && member[0] != '\0');
    check_text(member);
}

static void topic_used(void *arg, const char *conn, int task, const char *topic)
{
    (void)arg;
    mr_assert(strcmp(conn, "src") == 0 && task >= 0 && task < TASKS);
    mr_assert(topic_tracking_is_topic(topic));
}

static json_t *welcome(void *arg, const char *lock_path)
{
    (void)arg;
    (void)lock_path;
    return NULL;
}

static json_t *lease(void *arg)
{
    (void)arg;
    return NULL;
}

static void gone(void *arg, struct tenant *tenant)
{
    (void)arg;
    (void)tenant;
}

static void config_stale(void *arg, const char *conn)
{
    (void)arg;
    mr_assert(conn != NULL);
}

static const struct supervisor_events events = {.connector_status = connector_status,
                                                .task_configs = task_configs,
                                                .task_status = task_status,
                                                .offsets_get = offsets_get,
                                                .offsets_put = offsets_put,
                                                .task_member = task_member,
                                                .start_check = start_check,
                                                .fence = fence,
                                                .topic_used = topic_used,
                                                .config_stale = config_stale};

static void give_tasks(struct tenant *tenant)
{
    for (int i = 0; i < TASKS; i++)
        mr_assert(tenant_start_task_take(tenant, i, GENERATION, json_object()) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum msg_state states[] = {MSG_STATE_HELLO, MSG_STATE_OPEN, MSG_STATE_DRAINING};
    static const struct chan_events link_events = {.frame = on_frame, .closed = on_closed};
    struct tenant *tenant = NULL;
    struct tenant_owner owner = {.events = &events,
                                 .events_arg = &tenant,
                                 .welcome = welcome,
                                 .lease = lease,
                                 .gone = gone,
                                 .graceful_ms = 1000};
    struct loop *loop = loop_new(NULL);
    struct child *c;
    int pair[2];

    if (size < 1 || size > 100000) {
        loop_free(&loop);
        return 0;
    }
    tenant =
        tenant_new(loop, &(struct child_options){.name = "src"}, &owner, "/nonexistent/lock", NULL);
    give_tasks(tenant);
    c = tenant_child(tenant);
    mr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    c->link = chan_new(loop, pair[0], true, &link_events, c, NULL);
    chan_set_state(c->link, states[data[0] % 3]);
    mr_assert(send(pair[1], data + 1, size - 1, MSG_NOSIGNAL) == (ssize_t)(size - 1));
    shutdown(pair[1], SHUT_WR);
    loop_run(loop);
    tenant_free(&tenant);
    close(pair[1]);
    loop_free(&loop);
    return 0;
}
