/* SPDX-License-Identifier: Apache-2.0 */
/* One host process. Made by tenant.c for a connector; watches the process by its pidfd, the link by
 * chan.c, stdout and stderr by output.c. Worker's loop thread.
 *
 *   AWAITED (of the nest; ended or failed: at once GONE)
 *      │ on_spawned
 *   SPAWNED ──HELLO──► READY ──child_drain──► DRAINING ──deadline, child_end──► TERM ─200 ms─► KILL
 *      │                │                        │                                │               │
 *      │ (child_end → TERM, child_kill → KILL from any of them)                   │               │
 *      └────────────────┴────────────────────────┴───────── process ends ─────────┴───────────────┘
 *                                                                ▼
 *                                               GONE (link read to its end) ─► bury
 *
 * on_hello makes READY, child_drain DRAINING, child_end TERM, child_kill and on_deadline KILL,
 * on_exit_event GONE.
 *
 * Invariants
 * - The whole group is killed before the leader is reaped: as long as it is a zombie its number
 *   belongs to nobody else.
 * - A child that is killed for breaking a rule is not listened to any more.
 * - Frames that a host wrote before it died are delivered before its death is told (promise: a
 *   task's own error is not lost behind the exit of its process), but a forked child that holds the
 *   link open delays this by LINK_WAIT_MS only.
 * - A slow call of a plugin is no reason to end a host. Missed pings are: for a warning, never for
 *   a signal. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/child.h"

#include "base/clock.h"
#include "base/log.h"
#include "link/black_box.h"
#include "link/chan.h"
#include "link/inherit.h"
#include "link/printable.h"
#include "worker/supervisor/obituary.h"
#include "worker/supervisor/output.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_MAGIC 0x63686c64u
#define LINK_WAIT_MS 150    /* for the end of the link after the process ended */
#define CLOSED_WAIT_MS 1000 /* for the process to end after it closed the link */
#define UNKILLABLE_MS 10000 /* between two complaints about a process that SIGKILL does not end */
#define PING_MS 10000
#define SILENT_MS 30000 /* a ping unanswered for so long is worth a warning */
#define EARLY_MAX 1000  /* frames kept until HELLO */
#define OBITUARY_MAX 16384
#define REASON_BYTES 256

enum child_state { AWAITED, SPAWNED, READY, DRAINING, TERM, KILL, GONE };

static const char *const state_names[] = {"AWAITED", "SPAWNED", "READY", "DRAINING",
                                          "TERM",    "KILL",    "GONE"};

struct child {
    unsigned magic;
    struct loop *loop;
    const struct child_events *events;
    void *arg;
    char *name;
    enum child_state state;
    struct spawn_job *job; /* AWAITED */
    pid_t pid;             /* 0: there is no process yet, or never was */
    int pidfd;
    int box_fd;
    struct chan *link; /* NULL: closed */
    struct output *out;
    struct output *err;
    struct loop_fd *exit_watch;
    struct loop_timer deadline; /* of the present state */
    struct loop_timer ping;
    int64_t due_ms; /* when deadline fires; 0 none */
    int64_t hello_ms;
    int64_t ping_id;
    int64_t ping_sent_ms; /* of the oldest unanswered one; 0: all answered */
    bool silence_told;
    json_t *early;         /* [[kind, body]] sent before HELLO */
    int64_t lease_hard_ms; /* CLOCK_BOOTTIME, as it was sent last; 0: none */
    int culprit;
    bool unneeded;                   /* it was to drain before it said hello: nothing ran in it */
    char reason[REASON_BYTES];       /* why it is ended by a signal */
    char drain_reason[REASON_BYTES]; /* what that will be when the time to drain is over */
    siginfo_t end;
};

static void on_deadline(void *arg);

static void set_deadline(struct child *c, int64_t ms)
{
    c->due_ms = loop_now_ms(c->loop) + ms;
    loop_timer_start(c->loop, &c->deadline, ms, on_deadline, c);
}

/* The first one stays. */
static void set_reason(char to[REASON_BYTES], const char *reason)
{
    if (to[0] != '\0')
        return;
    snprintf(to, REASON_BYTES, "%.*s", REASON_BYTES - 1, reason);
    printable_clean(to, strlen(to));
}

/* The group it was born to lead, and itself: a plugin may have moved it into another one. */
static void signal_all(const struct child *c, int number)
{
    int rc = kill(-c->pid, number);

    if (rc == 0 || errno == ESRCH)
        rc = pidfd_send_signal(c->pidfd, number, NULL, 0);
    if (rc != 0 && errno != ESRCH)
        log_write_for(LOG_ERROR, LOGGER, c->name, -1, "cannot signal the host process %d: %s",
                      (int)c->pid, strerror(errno));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void destroy(struct child *c)
{
    loop_timer_cancel(&c->deadline);
    loop_timer_cancel(&c->ping);
    loop_fd_remove(&c->exit_watch);
    spawn_cancel(&c->job);
    chan_free(&c->link);
    output_free(&c->out);
    output_free(&c->err);
    if (c->pidfd >= 0)
        close(c->pidfd);
    if (c->box_fd >= 0)
        close(c->box_fd);
    json_decref(c->early);
    free(c->name);
    c->magic = 0;
    free(c);
}

/* There never was a process that could be used. */
static void write_failure(const struct child *c, struct buf *line, struct buf *trace)
{
    buf_printf(line, "no host process: %s", c->reason);
    buf_printf(trace, "no host process: %s", c->reason);
}

static void write_obituary(struct child *c, struct buf *line, struct buf *trace)
{
    struct black_box *box = malloc(sizeof(*box));
    struct buf tail;
    struct obituary obit = {.pid = c->pid,
                            .exited = c->end.si_code == CLD_EXITED,
                            .status = c->end.si_status,
                            .core = c->end.si_code == CLD_DUMPED,
                            .reason = c->reason,
                            .lease_over =
                                c->lease_hard_ms > 0 && clock_boot_ms() >= c->lease_hard_ms,
                            .culprit = c->culprit,
                            .now_ms = clock_boot_ms()};

    buf_init(&tail, OBITUARY_MAX);
    output_last_lines(c->err, &tail);
    obit.output = tail.data;
    if (box != NULL && black_box_read(c->box_fd, box))
        obit.box = box;
    obituary_sentence(&obit, line);
    obituary_trace(&obit, trace);
    buf_deinit(&tail);
    free(box);
}

/* The process is reaped and the link read to its end: tell, and forget. */
static void bury(struct child *c)
{
    const struct child_events *events = c->events;
    void *arg = c->arg;
    struct child_death death = {.forced = c->reason[0] != '\0' && !c->unneeded};
    struct buf line, trace;

    buf_init(&line, OBITUARY_MAX);
    buf_init(&trace, OBITUARY_MAX);
    if (c->pid > 0) {
        output_finish(c->out);
        output_finish(c->err);
        write_obituary(c, &line, &trace);
    } else {
        write_failure(c, &line, &trace);
    }
    destroy(c);
    death.line = line.data != NULL ? line.data : "the host process died";
    death.trace = trace.data != NULL ? trace.data : death.line;
    events->gone(arg, &death);
    buf_deinit(&line);
    buf_deinit(&trace);
}

static void on_exit_event(void *arg, uint32_t events)
{
    struct child *c = arg;

    (void)events;
    mr_assert(c->magic == CHILD_MAGIC);
    signal_all(c, SIGKILL);
    if (waitid(P_PIDFD, (id_t)c->pidfd, &c->end, WEXITED | WNOHANG) != 0 || c->end.si_pid == 0)
        return;
    spawn_forget(c->pid);
    loop_fd_remove(&c->exit_watch);
    c->state = GONE;
    if (c->link == NULL)
        bury(c);
    else
        set_deadline(c, LINK_WAIT_MS);
}

/* It is not there yet: what comes about is nobody's. Told in a later round, as every death is. */
static void call_off(struct child *c)
{
    spawn_cancel(&c->job);
    c->state = GONE;
    set_deadline(c, 0);
}

static void begin_kill(struct child *c)
{
    if (c->state == KILL || c->state == GONE)
        return;
    if (c->state == AWAITED) {
        call_off(c);
        return;
    }
    c->state = KILL;
    signal_all(c, SIGKILL);
    set_deadline(c, UNKILLABLE_MS);
}

void child_kill(struct child *c, const char *fmt, ...)
{
    char reason[REASON_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    set_reason(c->reason, reason);
    chan_free(&c->link);
    begin_kill(c);
}

void child_end(struct child *c, const char *reason)
{
    if (c->state >= TERM)
        return;
    set_reason(c->reason, reason != NULL ? reason : c->drain_reason);
    if (c->state == AWAITED) {
        call_off(c);
        return;
    }
    c->state = TERM;
    signal_all(c, SIGTERM);
    set_deadline(c, CHILD_TERM_MS);
}

void child_drain(struct child *c, int64_t within_ms, const char *reason)
{
    if (c->state <= SPAWNED) {
        c->unneeded = true;
        child_end(c, "it was to stop before it had said hello");
        return;
    }
    if (c->state > DRAINING)
        return;
    set_reason(c->drain_reason, reason);
    if (c->state == READY || loop_now_ms(c->loop) + within_ms < c->due_ms)
        set_deadline(c, within_ms);
    if (c->state == DRAINING)
        return;
    c->state = DRAINING;
    if (c->link == NULL)
        return;
    chan_set_state(c->link, MSG_STATE_DRAINING);
    chan_send_take(c->link, MSG_DRAIN, NULL);
}

static void on_deadline(void *arg)
{
    struct child *c = arg;

    mr_assert(c->magic == CHILD_MAGIC);
    c->due_ms = 0;
    switch (c->state) {
    case AWAITED: /* has none */
    case SPAWNED:
    case READY:
        if (c->link == NULL)
            child_kill(c, "it closed the link and lived on");
        else
            child_kill(c, "it did not say hello within %lld ms", (long long)c->hello_ms);
        break;
    case DRAINING:
        child_end(c, NULL);
        break;
    case TERM:
        begin_kill(c);
        break;
    case KILL:
        log_write_for(LOG_ERROR, LOGGER, c->name, -1,
                      "the kernel can't end the host process %d: still waiting for it",
                      (int)c->pid);
        set_deadline(c, UNKILLABLE_MS);
        break;
    case GONE:
        bury(c);
        break;
    }
}

/* --- the link --------------------------------------------------------------------------------- */

static void flush_early(struct child *c)
{
    json_t *early = c->early;
    json_t *pair;
    size_t i;

    c->early = NULL;
    json_array_foreach(early, i, pair)
    {
        json_t *body = json_incref(json_array_get(pair, 1));

        if (child_send_take(c, (enum msg_kind)json_integer_value(json_array_get(pair, 0)), body) ==
            MR_ERR_TOO_LARGE)
            child_kill(c, "what it is to run does not fit into a frame");
    }
    json_decref(early);
}

static void on_ping(void *arg)
{
    struct child *c = arg;
    int64_t silent = child_silent_ms(c);

    loop_timer_start(c->loop, &c->ping, PING_MS, on_ping, c);
    if (silent >= SILENT_MS && !c->silence_told) {
        c->silence_told = true;
        log_write_for(LOG_WARN, LOGGER, c->name, -1,
                      "the host process %d has not answered for %lld s; it is left alone",
                      (int)c->pid, (long long)(silent / 1000));
    }
    if (c->ping_sent_ms != 0 || c->state > DRAINING)
        return;
    c->ping_sent_ms = loop_now_ms(c->loop);
    child_send_take(c, MSG_PING, json_pack("{s:I}", "id", (json_int_t)++c->ping_id));
}

static void on_pong(struct child *c, const json_t *body)
{
    int64_t id;

    if (!json_get_int(body, "id", 0, INT64_MAX, &id) || id != c->ping_id)
        return;
    if (c->silence_told)
        log_write_for(LOG_INFO, LOGGER, c->name, -1, "the host process %d answers again",
                      (int)c->pid);
    c->silence_told = false;
    c->ping_sent_ms = 0;
}

static void on_hello(struct child *c, const json_t *body)
{
    int64_t version = -1, pid = -1;

    json_get_int(body, "version", 0, INT32_MAX, &version);
    json_get_int(body, "pid", 1, INT32_MAX, &pid);
    if (version != INHERIT_LINK_VERSION) {
        child_kill(c, "it speaks version %lld of the link and this worker version %d",
                   (long long)version, INHERIT_LINK_VERSION);
        return;
    }
    if (pid != c->pid)
        log_write_for(LOG_DEBUG, LOGGER, c->name, -1, "host process %d calls itself %lld",
                      (int)c->pid, (long long)pid);
    if (c->state != SPAWNED)
        return;
    c->state = READY;
    loop_timer_cancel(&c->deadline);
    c->due_ms = 0;
    chan_set_state(c->link, MSG_STATE_OPEN);
    loop_timer_start(c->loop, &c->ping, PING_MS, on_ping, c);
    c->events->ready(c->arg);
    flush_early(c);
}

static void on_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct child *c = arg;

    mr_assert(c->magic == CHILD_MAGIC);
    if (kind == MSG_HELLO)
        on_hello(c, body);
    else if (kind == MSG_PONG)
        on_pong(c, body);
    else if (kind != MSG_DRAINED)
        c->events->frame(c->arg, kind, body);
}

static void on_link_closed(void *arg, const struct mr_error *err)
{
    struct child *c = arg;

    mr_assert(c->magic == CHILD_MAGIC);
    chan_free(&c->link);
    if (c->state == GONE) {
        bury(c);
        return;
    }
    if (err != NULL)
        child_kill(c, "it broke the rules of the link: %s", err->text);
    else if (c->state == SPAWNED || c->state == READY)
        set_deadline(c, CLOSED_WAIT_MS);
}

int child_send_take(struct child *c, enum msg_kind kind, json_t *body)
{
    int rc;

    if (body == NULL)
        body = json_object();
    if (kind == MSG_LEASE)
        c->lease_hard_ms = json_integer_value(json_object_get(body, "hard_ms"));
    if (c->state <= SPAWNED) {
        if (json_dumpb(body, NULL, 0, JSON_COMPACT) > msg_rule((uint32_t)kind)->max_body) {
            json_decref(body);
            return MR_ERR_TOO_LARGE;
        }
        if (c->early == NULL)
            c->early = json_array();
        if (json_array_size(c->early) < EARLY_MAX &&
            json_array_append_new(c->early, json_pack("[i, o]", (int)kind, body)) == 0)
            return 0;
        child_kill(c, "more is waiting for it than it can take");
        return MR_ERR_CLOSED;
    }
    if (c->state > DRAINING || c->link == NULL) {
        json_decref(body);
        return MR_ERR_CLOSED;
    }
    rc = chan_send_take(c->link, kind, body);
    if (rc == MR_ERR_FULL || rc == MR_ERR_NOMEM) {
        child_kill(c, "it does not read what the worker sends it");
        return MR_ERR_CLOSED;
    }
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static const struct chan_events link_events = {.frame = on_frame, .closed = on_link_closed};

/* Each of these takes its descriptor from s, also when it fails. */
static int watch(struct child *c, const struct spawn *s, struct mr_error *err)
{
    c->pid = s->pid;
    c->pidfd = s->pidfd;
    c->box_fd = s->box_fd;
    c->link = chan_new(c->loop, s->link_fd, true, &link_events, c, err);
    c->out = output_new(c->loop, s->out_fd, c->name, "plugin.stdout", err);
    c->err = output_new(c->loop, s->err_fd, c->name, "plugin.stderr", err);
    c->exit_watch = loop_fd_add(c->loop, s->pidfd, EPOLLIN, on_exit_event, c, err);
    return c->link != NULL && c->out != NULL && c->err != NULL && c->exit_watch != NULL ? 0
                                                                                        : MR_ERR_IO;
}

/* One that can't be watched is killed, and reaped with the strays. */
static void on_spawned(void *arg, const struct spawn *s, const struct mr_error *why)
{
    struct child *c = arg;
    struct mr_error err = {0};

    mr_assert(c->magic == CHILD_MAGIC);
    c->job = NULL;
    if (s != NULL && watch(c, s, &err) == 0) {
        c->state = SPAWNED;
        log_write_for(LOG_DEBUG, LOGGER, c->name, -1, "host process %d started", (int)c->pid);
        set_deadline(c, c->hello_ms);
        return;
    }
    if (s != NULL) {
        signal_all(c, SIGKILL);
        spawn_forget(c->pid);
        c->pid = 0;
    }
    c->state = GONE;
    set_reason(c->reason, s != NULL ? err.text : why->text);
    c->unneeded = true; /* nothing ran in it */
    bury(c);
}

struct child *child_new(struct loop *loop, const struct child_options *options,
                        const struct child_events *events, void *arg, struct mr_error *err)
{
    struct child *c = calloc(1, sizeof(*c));

    if (c == NULL || (c->name = strdup(options->name)) == NULL) {
        free(c);
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a host process");
        return NULL;
    }
    c->magic = CHILD_MAGIC;
    c->loop = loop;
    c->events = events;
    c->arg = arg;
    c->culprit = c->pidfd = c->box_fd = -1;
    c->hello_ms = options->hello_ms;
    c->job = spawn_host(options->nest, options->name, on_spawned, c, err);
    if (c->job != NULL)
        return c;
    free(c->name);
    free(c);
    return NULL;
}

void child_free(struct child **cp)
{
    struct child *c = *cp;
    struct pollfd p;

    *cp = NULL;
    if (c == NULL)
        return;
    if (c->state != GONE && c->state != AWAITED) {
        signal_all(c, SIGKILL);
        p = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
        poll(&p, 1, 1000);
        signal_all(c, SIGKILL);
        waitid(P_PIDFD, (id_t)c->pidfd, &c->end, WEXITED | WNOHANG);
        spawn_forget(c->pid);
    }
    destroy(c);
}

void child_set_culprit(struct child *c, int task)
{
    c->culprit = task;
}

void child_call(const struct child *c, int task, struct buf *out)
{
    struct black_box *box = c->box_fd >= 0 ? malloc(sizeof(*box)) : NULL;

    if (box != NULL && black_box_read(c->box_fd, box))
        obituary_call(box, task, clock_boot_ms(), out);
    free(box);
}

bool child_greeted(const struct child *c)
{
    return (c->state == READY || c->state == DRAINING) && c->link != NULL;
}

bool child_serving(const struct child *c)
{
    return c->state <= SPAWNED || (c->state == READY && c->link != NULL);
}

pid_t child_pid(const struct child *c)
{
    return c->pid;
}

const char *child_state_name(const struct child *c)
{
    return state_names[c->state];
}

uint64_t child_dropped_bytes(const struct child *c)
{
    return c->out != NULL ? output_dropped_bytes(c->out) + output_dropped_bytes(c->err) : 0;
}

int64_t child_silent_ms(const struct child *c)
{
    return c->ping_sent_ms == 0 ? 0 : loop_now_ms(c->loop) - c->ping_sent_ms;
}
