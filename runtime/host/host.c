/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread of a host process: the link to the worker, signals, deadlines, the end. Born
 * by worker/supervisor/spawn.c with the descriptors of link/inherit.h; what the host runs is in
 * hosted.c.
 *
 *   HELLO ─WELCOME─► OPEN ─DRAIN, SIGTERM─► DRAINING ─nothing left─► FAREWELL ─DRAINED─► exit 0
 *                      └──── link lost ───► ORPHAN ─nothing left─► exit, with the whole group
 *
 * Deadlines that no plugin can hold up are the kernel's (kill_timer.c): 2 s for an orphan, the hard
 * end of a lease for every host. The lease's soft end makes the tasks quiet (task/task_lease.c):
 * once all are, the hard one is disarmed, since nothing runs that it would have to end (promise 1);
 * with a new lease they go on.
 * The end is always _exit: exit handlers, destructors and threads of plugins have no say in it. */
#include "host/host.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log_hide.h"
#include "base/log_levels.h"
#include "base/loop.h"
#include "base/provider.h"
#include "host/hosted.h"
#include "host/group_guard.h"
#include "host/kill_timer.h"
#include "host/plugin_places.h"
#include "host/thread_guard.h"
#include "link/chan.h"
#include "link/inherit.h"
#include "model/conn_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#define LOGGER "host.control"

#define EXIT_USAGE 1
#define EXIT_INTERNAL 70
#define ORPHAN_MS 2000                 /* an orphan is gone by then, whatever its plugins do */
#define ORPHAN_GROUP_MS 1800           /* its whole process group a little earlier */
#define CONNECTOR_END_MS 500           /* a connector thread has no state worth more waiting */
#define FAREWELL_MS 1000               /* for the last frame to be read */
#define TASK_MAX CONN_CONFIG_TASKS_MAX /* numbers of tasks, tasks.max */

enum phase { PHASE_HELLO, PHASE_OPEN, PHASE_DRAINING, PHASE_ORPHAN, PHASE_FAREWELL };

struct host {
    struct loop *loop;
    struct chan *chan; /* NULL: the link is lost */
    struct black_box *box;
    struct hosted *hosted; /* NULL before WELCOME */
    enum phase phase;
    bool asked_to_drain;   /* by a frame: DRAINED is expected */
    bool connectors_ended; /* or not waited for any longer */
    struct props worker;
    struct providers *providers;
    int lock_fd;
    int signal_fd;
    int soft_fd; /* timerfd on CLOCK_BOOTTIME: the lease's soft end */
    int64_t hard_boot_ms;
    bool lost;  /* the soft end of the lease has passed */
    bool armed; /* the hard timer is */
    struct kill_timer hard;
    struct kill_timer orphan;
    struct loop_fd *signal_watch;
    struct loop_fd *soft_watch;
    struct loop_timer end_wait;
    struct loop_timer farewell;
    struct loop_timer group_kill;
    struct loop_timer deaf;
    int64_t farewell_until_ms;
};

/* --- the end ---------------------------------------------------------------------------------- */

/* Children that plugins have forked go with us: the group that this process was born to lead, by
 * its number. Never the one that it is in now, since a plugin may have moved it, to the worker's
 * even. */
static void signal_own_group(int sig)
{
    (void)kill(-getpid(), sig);
}

static void end_process(int code)
{
    signal(SIGTERM, SIG_IGN);
    signal_own_group(SIGTERM);
    _exit(code);
}

static void end_group(void *arg)
{
    (void)arg;
    signal_own_group(SIGKILL);
    _exit(EXIT_INTERNAL);
}

static void on_farewell(void *arg)
{
    struct host *host = arg;

    if (host->chan == NULL || chan_idle(host->chan) || clock_ms() >= host->farewell_until_ms)
        end_process(0);
    loop_timer_start(host->loop, &host->farewell, 2, on_farewell, host);
}

static void say_farewell(struct host *host)
{
    host->phase = PHASE_FAREWELL;
    host->farewell_until_ms = clock_ms() + FAREWELL_MS;
    if (host->asked_to_drain && host->chan != NULL)
        (void)chan_send_take(host->chan, MSG_DRAINED, NULL);
    on_farewell(host);
}

static void look_for_the_end(struct host *host)
{
    size_t tasks = hosted_task_count(host->hosted);

    if (host->armed && hosted_quiet(host->hosted)) {
        log_info("all tasks are quiet: the lease's hard end is lifted");
        kill_timer_disarm(&host->hard);
        host->armed = false;
    }
    if (host->phase != PHASE_DRAINING && host->phase != PHASE_ORPHAN)
        return;
    if (tasks > 0 || (hosted_connector_count(host->hosted) > 0 && !host->connectors_ended))
        return;
    if (host->phase == PHASE_ORPHAN)
        end_group(host);
    say_farewell(host);
}

static void on_ended(void *arg)
{
    look_for_the_end(arg);
}

static void on_end_wait(void *arg)
{
    struct host *host = arg;

    host->connectors_ended = true;
    look_for_the_end(host);
}

static void stop_everything(struct host *host, enum phase phase)
{
    host->phase = phase;
    hosted_stop_tasks(host->hosted);
    hosted_end_connectors(host->hosted);
    loop_timer_start(host->loop, &host->end_wait, CONNECTOR_END_MS, on_end_wait, host);
    look_for_the_end(host);
}

static void drain(struct host *host)
{
    if (host->phase == PHASE_HELLO)
        end_process(0);
    if (host->phase == PHASE_OPEN)
        stop_everything(host, PHASE_DRAINING);
}

/* The worker is gone, or can't be understood. The timer comes first: from here on nothing can keep
 * this process alive. */
static void link_lost(struct host *host, const struct mr_error *err)
{
    struct mr_error failed = {0};

    if (kill_timer_arm(&host->orphan, clock_boot_ms() + ORPHAN_MS, &failed) != 0)
        end_group(host);
    group_guard_start();
    chan_free(&host->chan);
    if (err != NULL)
        log_error("the link to the worker is broken: %s; stopping", err->text);
    else
        log_warn("the worker is gone; stopping");
    if (host->hosted == NULL || host->phase == PHASE_FAREWELL)
        end_process(host->hosted == NULL ? EXIT_USAGE : 0);
    loop_timer_start(host->loop, &host->group_kill, ORPHAN_GROUP_MS, end_group, host);
    hosted_worker_gone(host->hosted);
    if (host->phase == PHASE_DRAINING)
        host->phase = PHASE_ORPHAN;
    else
        stop_everything(host, PHASE_ORPHAN);
    look_for_the_end(host);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int missing(const char *member, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_PROTOCOL, "its member %s is missing or wrong", member);
}

static int get_text(const json_t *body, const char *key, const char **out, struct mr_error *err)
{
    return json_get_text(body, key, out) ? 0 : missing(key, err);
}

static int get_target(const json_t *body, enum target_state *out, struct mr_error *err)
{
    const char *text;

    return json_get_text(body, "target", &text) && target_state_from(text, out)
               ? 0
               : missing("target", err);
}

static int get_task(const json_t *body, int *out, struct mr_error *err)
{
    int64_t number;

    if (!json_get_int(body, "task", 0, TASK_MAX, &number))
        return missing("task", err);
    *out = (int)number;
    return 0;
}

/* props is initialised, whatever comes of it. */
static int get_props(const json_t *body, const char *key, struct props *props, struct mr_error *err)
{
    const json_t *object = json_object_get(body, key);

    props_init(props);
    return json_is_object(object) ? json_to_props(object, props, err) : missing(key, err);
}

static bool is_question(enum msg_kind kind)
{
    return kind == MSG_OFFSETS_GET || kind == MSG_OFFSETS_PUT || kind == MSG_START_CHECK ||
           kind == MSG_FENCE;
}

static void on_worker_deaf(void *arg)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FULL, "the worker does not read what this host tells it");
    link_lost(arg, &err);
}

/* A question that can't be sent is answered at once by hosted.c; a status that can't be sent would
 * leave the worker wrong for ever, so the link counts as lost. */
static int send_frame(void *arg, enum msg_kind kind, json_t *body)
{
    struct host *host = arg;
    int rc;

    if (host->chan == NULL) {
        json_decref(body);
        return MR_ERR_CLOSED;
    }
    rc = chan_send_take(host->chan, kind, body);
    if (rc == MR_ERR_FULL && !is_question(kind))
        loop_timer_start(host->loop, &host->deaf, 0, on_worker_deaf, host);
    return rc;
}

/* A cleaner of /tmp may have removed the folder since the worker began, which does not look at
 * disks. */
static int take_lock(struct host *host, const char *path, struct mr_error *err)
{
    char folder[PATH_MAX];
    int64_t pid = 0;
    const char *slash = strrchr(path, '/');
    int rc;

    if (strlen(path) >= sizeof(folder))
        return mr_fail(err, MR_ERR_PROTOCOL, "the lock's path is too long");
    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
    rc = folder[0] == '\0' ? 0 : file_mkdirs(folder, err);
    if (rc == 0)
        return file_lock(path, &host->lock_fd, &pid, err);
    err_prefix(err, "the run folder (millrace.run.dir) is gone and cannot be made again");
    return rc;
}

/* What is no level is left out. */
static void take_levels(const json_t *body)
{
    const char *name;
    const json_t *value;
    enum log_level level;

    json_object_foreach(json_object_get(body, "loggers"), name, value)
    {
        if (json_is_string(value) && log_level_from(json_string_value(value), &level))
            log_levels_give(name, level);
    }
}

static int on_log_levels(struct host *host, const json_t *body, struct mr_error *err)
{
    (void)host;
    (void)err;
    take_levels(body);
    return 0;
}

/* The worker has looked at them already; and it has resolved its own properties, so what is in
 * there must not be shown either. */
static int take_providers(struct host *host, const json_t *body, struct mr_error *err)
{
    struct secrets *secrets = secrets_new();
    const char *reference;
    const json_t *value;

    json_object_foreach(json_object_get(body, "secrets"), reference, value)
    {
        if (json_is_string(value))
            secrets_add(secrets, reference, json_string_value(value));
    }
    log_hide(secrets);
    secrets_free(&secrets);
    host->providers = providers_new(&host->worker, false, NULL, err);
    return host->providers != NULL ? 0 : MR_ERR_PROTOCOL;
}

static int on_welcome(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *lock;
    int64_t version;
    int rc;

    if (!json_get_int(body, "version", 0, INT32_MAX, &version) || version != INHERIT_LINK_VERSION)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "the worker speaks another version of the link than this host's %d",
                       INHERIT_LINK_VERSION);
    take_levels(body);
    rc = get_text(body, "lock", &lock, err);
    if (rc == 0)
        rc = get_props(body, "worker", &host->worker, err);
    if (rc == 0)
        rc = take_providers(host, body, err);
    if (rc == 0)
        rc = take_lock(host, lock, err);
    if (rc != 0)
        return rc;
    host->hosted = hosted_new(&(struct hosted_options){.loop = host->loop,
                                                       .box = host->box,
                                                       .worker = &host->worker,
                                                       .providers = host->providers,
                                                       .send = send_frame,
                                                       .ended = on_ended,
                                                       .arg = host});
    host->phase = PHASE_OPEN;
    chan_set_state(host->chan, MSG_STATE_OPEN);
    return 0;
}

static int on_connector_start(struct host *host, const json_t *body, struct mr_error *err)
{
    struct hosted_connector spec = {0};
    struct props config;
    int rc = get_props(body, "config", &config, err);

    spec.config = &config;
    if (rc == 0)
        rc = get_text(body, "conn", &spec.name, err);
    if (rc == 0)
        rc = get_text(body, "library", &spec.library, err);
    if (rc == 0)
        rc = get_text(body, "class", &spec.class_name, err);
    spec.plugins = json_object_get(body, "plugins");
    if (rc == 0 && plugin_places_check(spec.plugins, NULL) != 0)
        rc = missing("plugins", err);
    if (rc == 0)
        rc = get_target(body, &spec.target, err);
    spec.tasks_only = json_is_false(json_object_get(body, "object"));
    if (rc == 0)
        rc = hosted_connector_start(host->hosted, &spec, err);
    props_deinit(&config);
    return rc;
}

static int on_connector_target(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *conn;
    enum target_state target;
    int rc = get_text(body, "conn", &conn, err);

    if (rc == 0)
        rc = get_target(body, &target, err);
    return rc != 0 ? rc : hosted_connector_target(host->hosted, conn, target, err);
}

static int on_task_configs(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *conn;
    int64_t max;
    int rc = get_text(body, "conn", &conn, err);

    if (rc == 0 && !json_get_int(body, "max", 1, TASK_MAX, &max))
        rc = missing("max", err);
    return rc != 0 ? rc : hosted_connector_task_configs(host->hosted, conn, (int)max, err);
}

static int on_topics_forget(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *conn;
    int rc = get_text(body, "conn", &conn, err);

    return rc != 0 ? rc : hosted_connector_forget_topics(host->hosted, conn, err);
}

static int on_task_start(struct host *host, const json_t *body, struct mr_error *err)
{
    struct hosted_task spec = {0};
    struct props config;
    int rc = get_props(body, "config", &config, err);

    spec.config = &config;
    if (rc == 0)
        rc = get_text(body, "conn", &spec.conn, err);
    if (rc == 0)
        rc = get_task(body, &spec.number, err);
    if (rc == 0)
        rc = get_target(body, &spec.target, err);
    if (rc == 0 && !json_get_int(body, "generation", 0, INT64_MAX, &spec.generation))
        rc = missing("generation", err);
    if (rc == 0 && host->phase == PHASE_OPEN)
        rc = hosted_task_start(host->hosted, &spec, err);
    else if (rc == 0) /* not while ending: the answer is UNASSIGNED */
        rc = hosted_task_stop(host->hosted, spec.conn, spec.number, err);
    props_deinit(&config);
    return rc;
}

static int on_task_target(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *conn;
    enum target_state target = TARGET_STARTED;
    int number = 0;
    int rc = get_text(body, "conn", &conn, err);

    if (rc == 0)
        rc = get_task(body, &number, err);
    if (rc == 0)
        rc = get_target(body, &target, err);
    return rc != 0 ? rc : hosted_task_target(host->hosted, conn, number, target, err);
}

static int on_task_stop(struct host *host, const json_t *body, struct mr_error *err)
{
    const char *conn;
    int number = 0;
    int rc = get_text(body, "conn", &conn, err);

    if (rc == 0)
        rc = get_task(body, &number, err);
    return rc != 0 ? rc : hosted_task_stop(host->hosted, conn, number, err);
}

/* OFFSETS, OFFSETS_STORED, START_CHECKED, FENCED: what a kind does not have is absent. The entries
 * go to the task's thread, so they are a copy that shares nothing with the frame. */
static int on_answer(struct host *host, const json_t *body, struct mr_error *err)
{
    struct hosted_answer answer = {0};

    if (!json_get_int(body, "id", 0, INT64_MAX, &answer.id))
        return missing("id", err);
    (void)json_get_text(body, "error", &answer.error);
    (void)json_get_bool(body, "ok", &answer.ok);
    answer.entries = json_deep_copy(json_object_get(body, "entries"));
    hosted_question_answer_take(host->hosted, &answer);
    return 0;
}

static int arm_soft(struct host *host, int64_t boot_ms, struct mr_error *err)
{
    struct itimerspec at = {0};

    if (boot_ms > 0) {
        at.it_value.tv_sec = (time_t)(boot_ms / 1000);
        at.it_value.tv_nsec = (long)(boot_ms % 1000) * 1000000;
    }
    if (timerfd_settime(host->soft_fd, TFD_TIMER_ABSTIME, &at, NULL) != 0)
        return err_errno(err, "cannot arm the lease's soft end");
    return 0;
}

static void lease_lost(struct host *host)
{
    if (!host->lost && hosted_task_count(host->hosted) > 0)
        log_warn("the lease was not renewed: tasks are quiet until it is");
    host->lost = true;
    hosted_lease_lost(host->hosted, host->hard_boot_ms);
    look_for_the_end(host);
}

static void lease_renewed(struct host *host)
{
    if (host->lost && hosted_task_count(host->hosted) > 0)
        log_info("the lease is renewed: tasks go on");
    host->lost = false;
    hosted_lease_renewed(host->hosted);
}

/* Both ends are moments of CLOCK_BOOTTIME; 0: none is needed. The hard timer is armed before
 * anything goes on. A lease whose soft end has passed on its way here lets nothing go on; nor does
 * it kill, whatever its hard end, where all is quiet. */
static int on_lease(struct host *host, const json_t *body, struct mr_error *err)
{
    int64_t soft_ms, hard_ms;
    bool passed;
    int rc = 0;

    if (!json_get_int(body, "hard_ms", 0, INT64_MAX / 2, &hard_ms))
        return missing("hard_ms", err);
    if (!json_get_int(body, "soft_ms", hard_ms > 0 ? 1 : 0, hard_ms, &soft_ms))
        return missing("soft_ms", err);
    passed = hard_ms > 0 && soft_ms <= clock_boot_ms();
    host->armed = hard_ms > 0;
    host->hard_boot_ms = hard_ms;
    if (passed)
        lease_lost(host);
    if (host->armed)
        rc = kill_timer_arm(&host->hard, hard_ms, err);
    else
        kill_timer_disarm(&host->hard);
    if (rc == 0)
        rc = arm_soft(host, soft_ms, err);
    if (rc == 0 && !passed)
        lease_renewed(host);
    return rc;
}

static void on_soft_end(void *arg, uint32_t events)
{
    struct host *host = arg;
    uint64_t count;

    (void)events;
    if (read(host->soft_fd, &count, sizeof(count)) == (ssize_t)sizeof(count) &&
        host->hosted != NULL)
        lease_lost(host);
}

static int on_drain(struct host *host, const json_t *body, struct mr_error *err)
{
    (void)body;
    (void)err;
    host->asked_to_drain = true;
    chan_set_state(host->chan, MSG_STATE_DRAINING);
    drain(host);
    return 0;
}

static int on_ping(struct host *host, const json_t *body, struct mr_error *err)
{
    int64_t id;

    if (!json_get_int(body, "id", INT64_MIN, INT64_MAX, &id))
        return missing("id", err);
    (void)send_frame(host, MSG_PONG, json_pack("{s:I}", "id", (json_int_t)id));
    return 0;
}

typedef int (*frame_fn)(struct host *host, const json_t *body, struct mr_error *err);

static const frame_fn frame_table[MSG_KIND_END] = {
    [MSG_WELCOME] = on_welcome,
    [MSG_CONNECTOR_START] = on_connector_start,
    [MSG_CONNECTOR_TARGET] = on_connector_target,
    [MSG_TASK_CONFIGS] = on_task_configs,
    [MSG_TASK_START] = on_task_start,
    [MSG_TASK_TARGET] = on_task_target,
    [MSG_TASK_STOP] = on_task_stop,
    [MSG_OFFSETS] = on_answer,
    [MSG_OFFSETS_STORED] = on_answer,
    [MSG_START_CHECKED] = on_answer,
    [MSG_FENCED] = on_answer,
    [MSG_TOPICS_FORGET] = on_topics_forget,
    [MSG_LEASE] = on_lease,
    [MSG_LOG_LEVELS] = on_log_levels,
    [MSG_DRAIN] = on_drain,
    [MSG_PING] = on_ping,
};

/* The link lets only kinds through that a worker may send in this state, so each has its entry. */
static void on_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct host *host = arg;
    struct mr_error err = {0};

    mr_assert(frame_table[kind] != NULL);
    if (frame_table[kind](host, body, &err) == 0)
        return;
    err_prefix(&err, "frame %s", msg_rule((uint32_t)kind)->name);
    link_lost(host, &err);
}

static void on_closed(void *arg, const struct mr_error *err)
{
    link_lost(arg, err);
}

static const struct chan_events chan_events = {.frame = on_frame, .closed = on_closed};

/* --- birth ------------------------------------------------------------------------------------ */

static void on_signal(void *arg, uint32_t events)
{
    struct host *host = arg;
    struct signalfd_siginfo info;

    (void)events;
    if (read(host->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    log_info("asked to end by signal %u", info.ssi_signo);
    drain(host);
}

/* Are the inherited descriptors what they should be? A user who types `millrace host` has others,
 * or none. */
static bool born_right(void)
{
    struct stat st;
    int type = 0;
    socklen_t len = sizeof(type);

    if (getsockopt(INHERIT_LINK_FD, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM)
        return false;
    return fstat(INHERIT_BOX_FD, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_size == (off_t)sizeof(struct black_box) && fcntl(INHERIT_BOX_FD, F_GET_SEALS) >= 0;
}

/* Not for programs that a plugin starts. */
static int keep_descriptors(struct mr_error *err)
{
    if (fcntl(INHERIT_LINK_FD, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(INHERIT_BOX_FD, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(INHERIT_LINK_FD, F_SETFL, O_RDWR | O_NONBLOCK) != 0)
        return err_errno(err, "cannot take over the inherited descriptors");
    return 0;
}

static struct black_box
    *witness_box; /* set once, before other threads exist: a log witness has no argument */

static void witness(const char *line, size_t len)
{
    black_box_say(witness_box, line, len);
}

static int open_signals(struct host *host, struct mr_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    host->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    host->soft_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (host->signal_fd < 0 || host->soft_fd < 0)
        return err_errno(err, "cannot open descriptors for signals and deadlines");
    host->signal_watch = loop_fd_add(host->loop, host->signal_fd, EPOLLIN, on_signal, host, err);
    host->soft_watch = loop_fd_add(host->loop, host->soft_fd, EPOLLIN, on_soft_end, host, err);
    return host->signal_watch == NULL || host->soft_watch == NULL ? MR_ERR_IO : 0;
}

static int open_link(struct host *host, struct mr_error *err)
{
    host->chan = chan_new(host->loop, INHERIT_LINK_FD, false, &chan_events, host, err);
    if (host->chan == NULL)
        return MR_ERR_IO;
    return chan_send_take(host->chan, MSG_HELLO,
                          json_pack("{s:i, s:s, s:i}", "version", INHERIT_LINK_VERSION, "build",
                                    MILLRACE_VERSION, "pid", (int)getpid()));
}

static int host_open(struct host *host, struct mr_error *err)
{
    int rc = keep_descriptors(err);

    if (rc != 0)
        return rc;
    host->box = witness_box = black_box_map(INHERIT_BOX_FD);
    if (host->box == NULL)
        return err_errno(err, "cannot map the black box");
    log_witness(witness);
    thread_guard_install(host->box);
    thread_guard_enter(THREAD_GUARD_NO_SLOT);
    host->loop = loop_new(err);
    if (host->loop == NULL)
        return MR_ERR_IO;
    rc = kill_timer_init(&host->hard, err);
    if (rc == 0)
        rc = kill_timer_init(&host->orphan, err);
    if (rc == 0)
        rc = open_signals(host, err);
    return rc == 0 ? open_link(host, err) : rc;
}

int host_main(int argc, char **argv)
{
    struct host host = {.lock_fd = -1, .signal_fd = -1, .soft_fd = -1};
    struct mr_error err = {0};

    if (argc < 2 || !born_right()) {
        fprintf(stderr, "millrace host: this command is started by the worker, not by hand\n");
        return EXIT_USAGE;
    }
    if (getpgrp() != getpid())
        setpgid(0, 0);
    /* What plugins fork stays below this host while it lives, and comes to the worker with its
     * death. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    log_relay_to(STDERR_FILENO);
    log_context(argv[1], -1);
    if (host_open(&host, &err) != 0) {
        log_error("the host of %s cannot start: %s", argv[1], err.text);
        _exit(EXIT_INTERNAL);
    }
    loop_run(host.loop);
    _exit(EXIT_INTERNAL);
}
