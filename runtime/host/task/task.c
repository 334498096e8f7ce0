/* SPDX-License-Identifier: Apache-2.0 */
/* A task from outside: its thread, what control tells it, what it tells control, and the frame
 * around every plugin call.
 *
 * Threads: the upper half runs on the host's control thread (new, set_target, stop, nudge, answers,
 * serve, free), the lower half on the task's own, where source_task or sink_task loop. Between them
 * stand a few words under `lock`, a queue of answers, and three eventfds on which every wait of the
 * task ends. Control never waits for the task but in task_free, after `ended`.
 *
 * Invariants: interrupt runs only between start and stop of the plugin; one status of UNASSIGNED or
 * FAILED is the last; `ended` is the thread's last act, also when a plugin ends the thread by
 * pthread_exit. */
#include "host/task/task.h"

#include "base/clock.h"
#include "host/host_references.h"
#include "host/task/task_inside.h"
#include "host/thread_guard.h"
#include "host/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define LOGGER "host.task"
#include "base/log.h"

#define ANSWERS_MAX 64

static void wake_fd_write(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));

    (void)n; /* full means that it is readable already */
}

/* --- the task's thread ------------------------------------------------------------------------ */

static void set_where(struct task *task, const char *slot)
{
    snprintf(task->where, sizeof(task->where), "%s() of plugin %.100s %.40s", slot,
             task->plugin->name, task->plugin->version == NULL ? "" : task->plugin->version);
}

static void report_end(struct task *task)
{
    char trace[TRACE_MAX];

    if (task->failed && !task_stopping(task))
        task->events->status(task->arg, task, STATE_FAILED,
                             trace_write(trace, sizeof(trace), &task->failure,
                                         task->where[0] == '\0' ? NULL : task->where));
    else
        task->events->status(task->arg, task, STATE_UNASSIGNED, NULL);
}

static void set_interruptible(struct task *task, bool on)
{
    pthread_mutex_lock(&task->call_lock);
    task->interruptible = on;
    pthread_mutex_unlock(&task->call_lock);
}

void task_broken_off(struct task *task)
{
    task->started = false;
    set_interruptible(task, false);
}

/* pthread_exit in a call of plugin code. What the loop had under way is lost with its stack; the
 * instance stays, since the plugin was not stopped and may have threads that use it. */
static void fail_broken_off(struct task *task)
{
    struct mr_error err = {0};
    const char *slot = task->slot;

    task_broken_off(task);
    task_left(task);
    task_set_waker(task, NULL, NULL);
    task_set_server(task, NULL, NULL);
    mr_fail(&err, MR_ERR_FATAL, "the plugin ended its thread in %s", slot);
    set_where(task, slot);
    task_fail(task, &err, task->where);
}

/* The end of the thread, which a plugin may have brought about. */
static void end_thread(void *arg)
{
    struct task *task = arg;

    if (task->slot != NULL)
        fail_broken_off(task);
    else
        instance_deinit(&task->inst);
    report_end(task);
    thread_guard_leave();
    log_context(NULL, -1);
    task->events->ended(task->arg, task);
}

static void *task_main(void *arg)
{
    struct task *task = arg;

    log_context(task->connector, task->number);
    thread_guard_enter(task->box_slot);
    pthread_cleanup_push(end_thread, task);
    if (task->plugin->kind == MR_PLUGIN_SOURCE)
        source_task_run(task);
    else
        sink_task_run(task);
    pthread_cleanup_pop(1);
    return NULL;
}

/* --- control's side: birth and death ---------------------------------------------------------- */

static void locks_init(struct task *task)
{
    pthread_mutex_init(&task->lock, NULL);
    pthread_mutex_init(&task->call_lock, NULL);
    pthread_mutex_init(&task->serve_lock, NULL);
}

static void fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void answer_free(void *answer)
{
    task_answer_free(answer);
}

static void destroy(struct task *task)
{
    fd_close(task->stop_fd);
    fd_close(task->wake_fd);
    fd_close(task->command_fd);
    if (task->answers != NULL)
        queue_free(&task->answers, answer_free);
    for (size_t i = 0; i < task->kept_count; i++)
        task_answer_free(task->kept[i]);
    json_decref(task->left);
    pthread_mutex_destroy(&task->lock);
    pthread_mutex_destroy(&task->call_lock);
    pthread_mutex_destroy(&task->serve_lock);
    props_deinit(&task->raw_config);
    props_deinit(&task->raw_connector_config);
    props_deinit(&task->config);
    props_deinit(&task->connector_config);
    task_topics_deinit(task);
    free(task->connector);
    free(task);
}

static int fill(struct task *task, const struct task_spec *spec, struct mr_error *err)
{
    task->number = spec->number;
    task->plugin = spec->plugin;
    task->worker = spec->worker;
    task->providers = spec->providers;
    task->plugins = spec->plugins;
    task->target = spec->target;
    task->lease_lost = spec->lease_lost;
    task->lease_hard_boot_ms = spec->lease_hard_boot_ms;
    task->resting = true;
    task->box = spec->box;
    task->box_slot = spec->box_slot;
    task->events = spec->events;
    task->arg = spec->arg;
    task->reported = STATE_UNASSIGNED;
    task->connector = strdup(spec->connector);
    if (task->connector == NULL || props_copy(&task->raw_config, spec->config) != 0 ||
        props_copy(&task->raw_connector_config, spec->connector_config) != 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for task %s-%d", spec->connector,
                       spec->number);
    task->answers = queue_new(ANSWERS_MAX);
    task->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    task->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    task->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    task_topics_init(task);
    if (task->stop_fd < 0 || task->wake_fd < 0 || task->command_fd < 0)
        return err_errno(err, "no descriptors for task %s-%d", spec->connector, spec->number);
    return MR_OK;
}

struct task *task_new(const struct task_spec *spec, struct mr_error *err)
{
    struct task *task = calloc(1, sizeof(*task));
    int rc;

    if (task == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for task %s-%d", spec->connector, spec->number);
        return NULL;
    }
    locks_init(task);
    task->stop_fd = task->wake_fd = task->command_fd = -1;
    rc = fill(task, spec, err);
    if (rc == MR_OK) {
        errno = pthread_create(&task->thread, NULL, task_main, task);
        if (errno != 0)
            rc = err_errno(err, "no thread for task %s-%d", spec->connector, spec->number);
    }
    if (rc == MR_OK)
        return task;
    destroy(task);
    return NULL;
}

void task_free(struct task **task)
{
    if (*task == NULL)
        return;
    pthread_join((*task)->thread, NULL);
    destroy(*task);
    *task = NULL;
}

/* --- control's side: words to the task -------------------------------------------------------- */

/* With the lock held, so that the waker's object still lives. Wakers never block. */
void task_wake_locked(struct task *task)
{
    wake_fd_write(task->command_fd);
    if (task->waker != NULL)
        task->waker(task->waker_arg);
}

void task_set_target(struct task *task, enum target_state target)
{
    pthread_mutex_lock(&task->lock);
    task->target = target;
    task_wake_locked(task);
    pthread_mutex_unlock(&task->lock);
}

/* Plugin code, on a thread that control lends for task_stop. Should it crash, the last words name
 * it: the black box's slot is the task's. */
static void interrupt_plugin(struct task *task)
{
    void (*interrupt)(void *self) = task->plugin->kind == MR_PLUGIN_SOURCE
                                        ? task->plugin->source.interrupt
                                        : task->plugin->sink.interrupt;
    char words[320];
    int n;

    if (interrupt == NULL)
        return;
    n = snprintf(words, sizeof(words), "calling interrupt() of %.100s for task %.100s-%d",
                 task->plugin->name, task->connector, task->number);
    pthread_mutex_lock(&task->call_lock);
    if (task->interruptible) {
        if (task->box != NULL && n > 0)
            black_box_say(task->box, words,
                          (size_t)n < sizeof(words) ? (size_t)n : sizeof(words) - 1);
        interrupt(task->inst.self);
    }
    pthread_mutex_unlock(&task->call_lock);
}

void task_stop(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    if (!task->stopping)
        task->stop_ms = clock_ms();
    task->stopping = true;
    wake_fd_write(task->stop_fd);
    task_wake_locked(task);
    pthread_mutex_unlock(&task->lock);
    interrupt_plugin(task);
    task_nudge(task);
}

void task_nudge(struct task *task)
{
    if (atomic_load(&task->nudgeable))
        pthread_kill(task->thread, THREAD_GUARD_NUDGE);
}

void task_answer_take(struct task *task, struct task_answer *answer)
{
    if (queue_push(task->answers, answer) != 0) {
        log_write_for(LOG_WARN, LOGGER, task->connector, task->number,
                      "more answers than questions: one was dropped");
        task_answer_free(answer);
    }
    wake_fd_write(task->command_fd);
}

void task_serve(struct task *task)
{
    pthread_mutex_lock(&task->serve_lock);
    if (task->server != NULL)
        task->server(task->server_arg);
    pthread_mutex_unlock(&task->serve_lock);
}

/* --- for the loops ---------------------------------------------------------------------------- */

bool task_stopping(struct task *task)
{
    bool stopping;

    pthread_mutex_lock(&task->lock);
    stopping = task->stopping;
    pthread_mutex_unlock(&task->lock);
    return stopping;
}

int64_t task_stop_since(struct task *task)
{
    int64_t ms;

    pthread_mutex_lock(&task->lock);
    ms = task->stop_ms;
    pthread_mutex_unlock(&task->lock);
    return ms;
}

bool task_paused(struct task *task)
{
    bool paused;

    pthread_mutex_lock(&task->lock);
    paused = task->target != TARGET_STARTED;
    pthread_mutex_unlock(&task->lock);
    return paused;
}

void task_report(struct task *task, enum state state)
{
    if (task->reported == state)
        return;
    task->reported = state;
    task->events->status(task->arg, task, state, NULL);
}

void task_fail(struct task *task, const struct mr_error *err, const char *where)
{
    if (task->failed)
        return;
    task->failed = true;
    task->failed_ms = clock_ms();
    task->failure = *err;
    if (where != task->where)
        snprintf(task->where, sizeof(task->where), "%s", where == NULL ? "" : where);
    log_write(task_stopping(task) ? LOG_WARN : LOG_ERROR, LOGGER, "the task failed%s%s: %s",
              task->where[0] == '\0' ? "" : " in ", task->where, err->text);
}

int task_failure_code(const struct task *task)
{
    return task->failure.code;
}

void task_set_waker(struct task *task, void (*waker)(void *arg), void *arg)
{
    pthread_mutex_lock(&task->lock);
    task->waker = waker;
    task->waker_arg = arg;
    pthread_mutex_unlock(&task->lock);
}

void task_set_server(struct task *task, void (*server)(void *arg), void *arg)
{
    pthread_mutex_lock(&task->serve_lock);
    task->server = server;
    task->server_arg = arg;
    pthread_mutex_unlock(&task->serve_lock);
}

void task_client_warning(void *arg, const char *key, const char *text)
{
    (void)arg;
    log_warn("client setting %s: %s", key, text);
}

/* --- waiting ---------------------------------------------------------------------------------- */

void task_drain_fd(int fd)
{
    uint64_t n;
    ssize_t got = read(fd, &n, sizeof(n));

    (void)got;
}

void task_wait(struct task *task, struct pollfd *fds, size_t count, int64_t deadline_ms)
{
    struct pollfd all[6] = {{.fd = task->stop_fd, .events = POLLIN},
                            {.fd = task->command_fd, .events = POLLIN}};
    int64_t left = deadline_ms - clock_ms();
    int n;

    mr_assert(count <= 4);
    if (count > 0)
        memcpy(all + 2, fds, count * sizeof(*fds));
    if (task_stopping(task))
        all[0].fd = -1; /* readable for ever; the caller waits for something else now */
    if (left < 0)
        left = 0;
    n = poll(all, (nfds_t)(2 + count),
             deadline_ms == INT64_MAX ? -1
             : left > INT32_MAX       ? INT32_MAX
                                      : (int)left);
    for (size_t i = 0; i < count; i++)
        fds[i].revents = n > 0 ? all[2 + i].revents : 0;
    if (n > 0 && all[1].revents != 0)
        task_drain_fd(task->command_fd);
}

void task_answer_free(struct task_answer *answer)
{
    if (answer == NULL)
        return;
    json_decref(answer->entries);
    free(answer);
}

struct task_answer *task_answer_next(struct task *task)
{
    struct task_answer *answer;

    if (task->kept_count == 0)
        return queue_pop(task->answers, 0);
    answer = task->kept[0];
    task->kept_count--;
    memmove(task->kept, task->kept + 1, task->kept_count * sizeof(task->kept[0]));
    return answer;
}

static void keep(struct task *task, struct task_answer *answer)
{
    if (task->kept_count < TASK_KEPT)
        task->kept[task->kept_count++] = answer;
    else
        task_answer_free(answer); /* the worker answers what was not asked */
}

struct task_answer *task_answer_wait(struct task *task, int64_t id)
{
    while (!task_stopping(task)) {
        struct task_answer *answer = queue_pop(task->answers, 0);

        if (answer == NULL)
            task_wait(task, NULL, 0, INT64_MAX);
        else if (answer->id == id)
            return answer;
        else
            keep(task, answer);
    }
    return NULL;
}

/* --- plugin calls ----------------------------------------------------------------------------- */

void task_enter(struct task *task, const char *slot, bool nudgeable)
{
    if (task->box != NULL)
        black_box_enter(task->box, task->box_slot, task->connector, task->number, slot);
    task->slot = slot;
    /* A nudge that came too early is repeated by control. */
    atomic_store(&task->nudgeable, nudgeable);
}

void task_left(struct task *task)
{
    atomic_store(&task->nudgeable, false);
    task->slot = NULL;
    if (task->box != NULL)
        black_box_leave(task->box, task->box_slot);
}

int task_leave(struct task *task, const char *slot, int rc, struct mr_error *err)
{
    task_left(task);
    if (task->inst.misuse.code != 0) {
        *err = task->inst.misuse;
        rc = MR_ERR_FATAL;
    }
    if (rc >= 0)
        return rc;
    if (rc < MR_ERR_STALE)
        rc = MR_ERR_FATAL; /* a code that this host does not know */
    err_without_text(err, rc, slot);
    err->code = rc;
    set_where(task, slot);
    return rc;
}

/* The worker says whether this task is still to run here. */
static bool start_check(struct task *task)
{
    struct task_answer *answer = task_answer_wait(task, task->events->ask_start(task->arg, task));
    bool asked = answer == NULL || answer->error[0] == '\0';
    bool ok = answer != NULL && asked && answer->ok;
    struct mr_error err = {0};

    if (!asked) {
        mr_fail(&err, MR_ERR_FATAL, "The worker could not be asked whether the task is to run: %s",
                answer->error);
        task_fail(task, &err, NULL);
    } else if (answer != NULL && !ok) {
        log_info("this start is overtaken: the worker has decided anew about the task meanwhile");
    }
    if (answer != NULL) {
        json_decref(task->left);
        task->left = answer->entries;
        answer->entries = NULL;
    }
    task_answer_free(answer);
    return ok;
}

/* Claim and answer are worth as much as the lease: both anew when that was lost meanwhile. */
static bool may_begin(struct task *task, bool (*claim)(void *arg), void *arg)
{
    bool claimed;

    do {
        while (!task_lease_held(task) && !task_stopping(task))
            task_wait(task, NULL, 0, INT64_MAX);
        if (task_stopping(task))
            return false;
        claimed = claim == NULL || claim(arg);
        if (task->failed || task_stopping(task) || (claimed && !start_check(task)))
            return false;
    } while (!claimed || !task_lease_act(task));
    return true;
}

/* Of what was resolved before nothing stays: a secret may be another by now, and one that looks
 * like a reference is none. */
static int resolve(const struct task *task, const struct props *raw, struct props *out,
                   struct mr_error *err)
{
    /* The task's own is made of the connector's. */
    struct host_references of = {
        .providers = task->providers, .config = raw, .tell = raw == &task->raw_connector_config};

    props_deinit(out);
    return host_references_resolve(&of, out, err);
}

static bool resolve_all(struct task *task)
{
    struct mr_error err = {0};

    if (resolve(task, &task->raw_connector_config, &task->connector_config, &err) != 0 ||
        resolve(task, &task->raw_config, &task->config, &err) != 0) {
        task_fail(task, &err, NULL);
        return false;
    }
    return true;
}

bool task_begin(struct task *task, bool (*claim)(void *arg), void *arg)
{
    struct mr_error err = {0};

    while (task_paused(task) && !task_stopping(task)) {
        task_report(task, STATE_PAUSED);
        task_wait(task, NULL, 0, INT64_MAX);
    }
    if (!resolve_all(task) || !may_begin(task, claim, arg))
        return false;
    if (instance_init(&task->inst, task->plugin, &task->config, &err) != MR_OK) {
        task_fail(task, &err, NULL);
        return false;
    }
    task->inst.stop_fd = task->stop_fd;
    task->inst.wake_fd = task->wake_fd;
    task->inst.connector = task->connector;
    task->inst.task = task->number;
    return true;
}

void task_unmake(struct task *task)
{
    instance_deinit(&task->inst);
    task->inst = (struct instance){0};
}

bool task_start_plugin(struct task *task)
{
    int (*start)(void *, struct mr_task *, struct mr_error *) =
        task->plugin->kind == MR_PLUGIN_SOURCE ? task->plugin->source.start
                                               : task->plugin->sink.start;
    struct mr_error err = {0};
    int rc = MR_OK;

    if (task_stopping(task))
        return false;
    task->started = true;
    set_interruptible(task, true);
    if (start != NULL) {
        task_enter(task, "start", true);
        rc = start(task->inst.self, &task->inst.pub, &err);
        rc = task_leave(task, "start", rc, &err);
    }
    if (rc < 0) {
        task_fail(task, &err, task->where);
        return false;
    }
    if (task_stopping(task))
        return false;
    task_report(task, task_paused(task) ? STATE_PAUSED : STATE_RUNNING);
    return true;
}

void task_stop_plugin(struct task *task)
{
    void (*stop)(void *self) = task->plugin->kind == MR_PLUGIN_SOURCE ? task->plugin->source.stop
                                                                      : task->plugin->sink.stop;

    if (!task->started)
        return;
    task->started = false;
    set_interruptible(task, false);
    task_lease_end(task);
    if (stop == NULL)
        return;
    task_enter(task, "stop", false);
    stop(task->inst.self);
    task_left(task);
}
