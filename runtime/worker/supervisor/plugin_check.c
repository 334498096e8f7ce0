/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `millrace check` (host/check.c) for the herder while it validates, so that a plugin's
 * opinion of a value is had without its code in the worker (promises 2 and 4). Worker's loop
 * thread.
 *
 *   plugin_check_ask ─► WAITING ─► RUNNING ── process ends, or is over its time and killed ─► done
 *
 * What the process prints is read as untrusted bytes. It names each key before it runs code for it,
 * so a crash, a hang or nonsense is that key's problem. A process is waited for also after its
 * question was answered; until then it counts as running. */
#include "worker/supervisor/plugin_check.h"

#include "link/check_format.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNNING_MAX 4
#define WAITING_MAX 256
#define END_MS 1000 /* for a killed process, when the worker ends */

struct inquiry {
    struct plugin_check *pc;
    struct inquiry *next;
    json_t *question;
    json_t *problems;
    plugin_check_done done; /* NULL: was called */
    void *arg;
    bool running;
    pid_t pid;
    int pidfd, out_fd;
    struct loop_fd *exit_watch, *out_watch;
    struct loop_timer patience;
    struct buf out; /* of it, what is not read as a line yet */
    size_t seen;    /* bytes of all lines */
    int64_t stage;  /* what it is at; -1 nothing yet */
    char *key;
    bool ended; /* it said so */
    bool nonsense;
};

struct plugin_check {
    struct loop *loop;
    const char *exe;
    int64_t patience_ms;
    struct inquiry *inquiries; /* in the order of asking */
    size_t running, waiting;
};

static void run_next(struct plugin_check *pc);

/* --- answers ---------------------------------------------------------------------------------- */

static void add_problem(struct inquiry *q, const char *member, const char *text)
{
    const json_t *first = json_object_get(json_array_get(q->question, 0), "keys");
    const char *key = q->key != NULL ? q->key : json_string_value(json_array_get(first, 0));

    json_array_append_new(q->problems, json_pack("{s:I, s:s, s:s}", "stage",
                                                 (json_int_t)(q->stage >= 0 ? q->stage : 0), "key",
                                                 key, member, text));
}

static MR_PRINTF(2, 3)
void broken(struct inquiry *q, const char *fmt, ...)
{
    char text[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add_problem(q, "broken", text);
}

static bool was_asked(const struct inquiry *q, int64_t stage, const char *key)
{
    const json_t *keys = json_object_get(json_array_get(q->question, (size_t)stage), "keys");
    size_t i;
    const json_t *item;

    json_array_foreach(keys, i, item)
    {
        if (strcmp(json_string_value(item), key) == 0)
            return true;
    }
    return false;
}

/* false: nonsense. */
static bool take_object(struct inquiry *q, const json_t *line)
{
    const char *key, *error = NULL;
    int64_t stage;

    if (q->ended)
        return false;
    if (json_get_bool(line, "end", &q->ended))
        return q->ended;
    if (!json_get_int(line, "stage", 0, (int64_t)json_array_size(q->question) - 1, &stage) ||
        !json_get_text(line, "key", &key) || !was_asked(q, stage, key))
        return false;
    if (json_get_text(line, "error", &error)) {
        if (stage != q->stage || q->key == NULL || strcmp(q->key, key) != 0)
            return false;
        add_problem(q, "error", error);
        return true;
    }
    free(q->key);
    q->key = strdup(key);
    mr_assert(q->key != NULL);
    q->stage = stage;
    return true;
}

static void take_lines(struct inquiry *q)
{
    char *end;

    while (!q->nonsense && q->out.len > 0 &&
           (end = memchr(q->out.data, '\n', q->out.len)) != NULL) {
        size_t len = (size_t)(end - q->out.data);
        json_t *line = json_parse(q->out.data, len, NULL);

        q->nonsense = !json_is_object(line) || !take_object(q, line);
        json_decref(line);
        buf_consume(&q->out, len + 1);
    }
}

/* What is there; false: nothing more will come. */
static bool read_out(struct inquiry *q)
{
    for (;;) {
        ssize_t n;

        if (q->seen > CHECK_FORMAT_ANSWERS_MAX || buf_reserve(&q->out, 65536) != 0)
            q->nonsense = true;
        if (q->nonsense)
            return false;
        n = read(q->out_fd, q->out.data + q->out.len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        q->out.len += (size_t)n;
        q->seen += (size_t)n;
        take_lines(q);
    }
}

/* --- the end of one --------------------------------------------------------------------------- */

static void answer(struct inquiry *q, const json_t *problems)
{
    plugin_check_done done = q->done;

    q->done = NULL;
    loop_timer_cancel(&q->patience);
    if (done != NULL)
        done(q->arg, problems);
}

static void forget(struct inquiry *q)
{
    struct inquiry **at = &q->pc->inquiries;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    if (q->running)
        q->pc->running--;
    else
        q->pc->waiting--;
    loop_timer_cancel(&q->patience);
    if (q->exit_watch != NULL)
        loop_fd_remove(&q->exit_watch);
    if (q->out_watch != NULL)
        loop_fd_remove(&q->out_watch);
    if (q->pidfd >= 0)
        close(q->pidfd);
    if (q->out_fd >= 0)
        close(q->out_fd);
    buf_deinit(&q->out);
    json_decref(q->question);
    json_decref(q->problems);
    free(q->key);
    free(q);
}

static void kill_group(const struct inquiry *q)
{
    kill(-q->pid, SIGKILL);
    kill(q->pid, SIGKILL); /* a library may have moved it out of its group */
}

static void judge_end(struct inquiry *q, const siginfo_t *end)
{
    const char *name = sigabbrev_np(end->si_status);

    if (q->nonsense)
        broken(q, "the process that asked its class printed what it should not");
    else if (q->ended)
        return;
    else if (end->si_code != CLD_EXITED)
        broken(q, "its class was killed by signal %d (SIG%s)", end->si_status,
               name != NULL ? name : "?");
    else
        broken(q, "its class ended the process with code %d", end->si_status);
}

/* What it has forked goes with it; its own number is nobody else's before waitid. */
static void on_exit_event(void *arg, uint32_t events)
{
    struct inquiry *q = arg;
    struct plugin_check *pc = q->pc;
    siginfo_t end = {0};

    (void)events;
    kill_group(q);
    if (waitid(P_PIDFD, (id_t)q->pidfd, &end, WEXITED | WNOHANG) != 0 || end.si_pid == 0)
        return;
    spawn_forget(q->pid);
    if (q->done != NULL) {
        read_out(q);
        judge_end(q, &end);
        answer(q, q->problems);
    }
    forget(q);
    run_next(pc);
}

static void on_output(void *arg, uint32_t events)
{
    struct inquiry *q = arg;

    (void)events;
    if (read_out(q))
        return;
    loop_fd_remove(&q->out_watch);
    if (q->nonsense)
        kill_group(q);
}

static void on_patience(void *arg)
{
    struct inquiry *q = arg;

    kill_group(q);
    if (q->out_watch != NULL)
        loop_fd_remove(&q->out_watch);
    broken(q, "its class took longer than %g s", (double)q->pc->patience_ms / 1000);
    answer(q, q->problems);
}

/* --- the beginning of one --------------------------------------------------------------------- */

static int write_question(const json_t *question, struct mr_error *err)
{
    int fd = memfd_create("millrace-check", MFD_CLOEXEC);
    struct buf text;
    size_t at = 0;

    buf_init(&text, CHECK_FORMAT_QUESTION_MAX);
    if (fd >= 0 && json_write(&text, question) == 0)
        for (ssize_t n = 0; at < text.len && n >= 0; at += (size_t)n)
            n = write(fd, text.data + at, text.len - at);
    if (fd < 0 || at == 0 || at < text.len || lseek(fd, 0, SEEK_SET) != 0) {
        err_errno(err, "the question about it can't be written");
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    buf_deinit(&text);
    return fd;
}

static int start_process(struct inquiry *q, struct mr_error *err)
{
    char program[] = "millrace", verb[] = "check";
    char *argv[] = {program, verb, NULL};
    int question = write_question(q->question, err), out[2];

    if (question < 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(question);
        return err_errno(err, "no pipe to the process that would ask its class");
    }
    errno = spawn_run(q->pc->exe, argv, (const int[]){question, out[1], -1}, 3, &q->pid);
    close(question);
    close(out[1]);
    if (errno != 0) {
        close(out[0]);
        return err_errno(err, "no process that would ask its class");
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    q->out_fd = out[0];
    q->pidfd = pidfd_open(q->pid, 0);
    return 0;
}

static int watch_process(struct inquiry *q, struct mr_error *err)
{
    struct loop *loop = q->pc->loop;

    if (q->pidfd >= 0)
        q->exit_watch = loop_fd_add(loop, q->pidfd, EPOLLIN, on_exit_event, q, err);
    if (q->exit_watch != NULL)
        q->out_watch = loop_fd_add(loop, q->out_fd, EPOLLIN, on_output, q, err);
    if (q->out_watch != NULL)
        return 0;
    kill_group(q);
    spawn_forget(q->pid); /* a stray from now on, and reaped as one */
    return mr_fail(err, MR_ERR_IO, "the process that would ask its class can't be watched");
}

static void run(struct inquiry *q)
{
    struct mr_error err = {0};

    q->running = true;
    q->pc->waiting--;
    q->pc->running++;
    if (start_process(q, &err) == 0 && watch_process(q, &err) == 0) {
        loop_timer_start(q->pc->loop, &q->patience, q->pc->patience_ms, on_patience, q);
        return;
    }
    broken(q, "%s", err.text);
    answer(q, q->problems);
    forget(q);
}

static void run_next(struct plugin_check *pc)
{
    while (pc->waiting > 0 && pc->running < RUNNING_MAX) {
        struct inquiry *q = pc->inquiries;

        while (q->running)
            q = q->next;
        run(q);
    }
}

/* --- the doors -------------------------------------------------------------------------------- */

void plugin_check_ask(struct plugin_check *pc, json_t *question, plugin_check_done done, void *arg)
{
    struct inquiry *q = calloc(1, sizeof(*q)), **at = &pc->inquiries;

    mr_assert(q != NULL);
    *q = (struct inquiry){.pc = pc,
                          .question = question,
                          .problems = json_array(),
                          .done = done,
                          .arg = arg,
                          .pidfd = -1,
                          .out_fd = -1,
                          .stage = -1};
    buf_init(&q->out, CHECK_FORMAT_ANSWERS_MAX + 65536);
    while (*at != NULL)
        at = &(*at)->next;
    *at = q;
    pc->waiting++;
    if (pc->waiting > WAITING_MAX) {
        broken(q, "more than %d questions wait already", WAITING_MAX);
        answer(q, q->problems);
        forget(q);
        return;
    }
    run_next(pc);
}

struct plugin_check *plugin_check_new(struct loop *loop, const char *exe, int64_t patience_ms)
{
    struct plugin_check *pc = calloc(1, sizeof(*pc));

    mr_assert(pc != NULL);
    *pc = (struct plugin_check){.loop = loop, .exe = exe, .patience_ms = patience_ms};
    return pc;
}

void plugin_check_free(struct plugin_check **pcp)
{
    struct plugin_check *pc = *pcp;

    *pcp = NULL;
    while (pc != NULL && pc->inquiries != NULL) {
        struct inquiry *q = pc->inquiries;

        if (q->pidfd >= 0) {
            kill_group(q);
            poll(&(struct pollfd){.fd = q->pidfd, .events = POLLIN}, 1, END_MS);
            waitid(P_PIDFD, (id_t)q->pidfd, &(siginfo_t){0}, WEXITED | WNOHANG);
            spawn_forget(q->pid);
        }
        answer(q, NULL);
        forget(q);
    }
    free(pc);
}
