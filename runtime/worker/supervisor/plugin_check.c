/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `millrace check` (host/check.c) for the herder while it validates, so that a plugin's
 * opinion of a value is had without its code in the worker (promises 2 and 4). Worker's loop
 * thread.
 *
 *   plugin_check_ask ─► WAITING ─► RUNNING ─ a second ─► slow ─► done
 *                                     └── process ends, or is over its time and killed ──┘
 *
 * check_answers.c reads what it prints: a crash, a hang or nonsense is the problem of the key that
 * it was at. A process is waited for also after its question was answered; until then it counts as
 * running.
 *
 * A class that hangs holds up nobody else's question for long: what is slow takes no place of those
 * that are quick, and while STUCK_MAX are stuck in a library, what would ask it is held until they
 * are gone. What is held takes no place of what only waits for its turn, and nothing waits for
 * longer than a process has time, whether or not its asker is still there. */
#include "worker/supervisor/plugin_check.h"

#include "link/check_format.h"
#include "worker/supervisor/check_answers.h"
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

#define RUNNING_MAX 4 /* at work; those that are slow come on top */
#define SLOW_MS 1000
#define STUCK_MAX 8 /* slow in one library */
#define SLOW_MAX 64
#define WAITING_MAX 256 /* for their turn */
#define HELD_MAX 32     /* by one library */
#define END_MS 1000     /* for a killed process, when the worker ends */
#define READS_MAX 8     /* of 16 KiB, at a look: a pipe holds 64 */

struct inquiry {
    struct plugin_check *pc;
    struct inquiry *next;
    json_t *question;
    plugin_check_done done; /* NULL: was called */
    void *arg;
    bool running;
    bool slow; /* for so long */
    pid_t pid;
    int pidfd, out_fd, question_fd; /* -1 none; the last is written beforehand */
    struct loop_fd *exit_watch, *out_watch;
    struct loop_timer patience, slowness;
    struct check_answers answers;
};

struct plugin_check {
    struct loop *loop;
    const char *exe;
    int64_t patience_ms;
    struct inquiry *inquiries;   /* in the order of asking */
    size_t waiting, quick, slow; /* the last two run */
};

static void run_next(struct plugin_check *pc);

/* --- answers ---------------------------------------------------------------------------------- */

/* What is there, or the first of it where that is much: others wait for the loop. false: nothing
 * more will come. */
static bool read_out(struct inquiry *q)
{
    for (int i = 0; i < READS_MAX; i++) {
        char bytes[16384];
        ssize_t n = read(q->out_fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        if (!check_answers_take(&q->answers, bytes, (size_t)n))
            return false;
    }
    return true;
}

/* --- the end of one --------------------------------------------------------------------------- */

static void answer(struct inquiry *q)
{
    plugin_check_done done = q->done;
    json_t *problems = q->answers.problems;

    if (done == NULL)
        return;
    q->done = NULL;
    q->answers.problems = NULL;
    loop_timer_cancel(&q->patience);
    done(q->arg, problems);
}

static void call_off(struct inquiry *q)
{
    json_decref(q->answers.problems);
    q->answers.problems = NULL;
    answer(q);
}

static void forget(struct inquiry *q)
{
    struct inquiry **at = &q->pc->inquiries;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    if (!q->running)
        q->pc->waiting--;
    else if (q->slow)
        q->pc->slow--;
    else
        q->pc->quick--;
    loop_timer_cancel(&q->patience);
    loop_timer_cancel(&q->slowness);
    if (q->exit_watch != NULL)
        loop_fd_remove(&q->exit_watch);
    if (q->out_watch != NULL)
        loop_fd_remove(&q->out_watch);
    if (q->pidfd >= 0)
        close(q->pidfd);
    if (q->out_fd >= 0)
        close(q->out_fd);
    if (q->question_fd >= 0)
        close(q->question_fd);
    check_answers_deinit(&q->answers);
    json_decref(q->question);
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

    if (q->answers.nonsense)
        check_answers_broken(&q->answers,
                             "the process that asked its class printed what it should not");
    else if (q->answers.ended)
        return;
    else if (end->si_code != CLD_EXITED)
        check_answers_broken(&q->answers, "its class was killed by signal %d (SIG%s)",
                             end->si_status, name != NULL ? name : "?");
    else
        check_answers_broken(&q->answers, "its class ended the process with code %d",
                             end->si_status);
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
        answer(q);
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
    if (q->answers.nonsense)
        kill_group(q);
}

static void on_patience(void *arg)
{
    struct inquiry *q = arg;

    kill_group(q);
    if (q->out_watch != NULL)
        loop_fd_remove(&q->out_watch);
    check_answers_broken(&q->answers, "its class took longer than %g s",
                         (double)q->pc->patience_ms / 1000);
    answer(q);
}

static void on_waited(void *arg)
{
    struct inquiry *q = arg;

    check_answers_broken(&q->answers, "others that take long kept it from being asked for %g s",
                         (double)q->pc->patience_ms / 1000);
    answer(q);
    forget(q);
}

static void on_slow(void *arg)
{
    struct inquiry *q = arg;

    q->slow = true;
    q->pc->quick--;
    q->pc->slow++;
    run_next(q->pc);
}

/* --- the beginning of one --------------------------------------------------------------------- */

static bool write_all(int fd, const struct buf *text)
{
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->data + at, text->len - at);

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

static int write_file(const struct buf *text, struct mr_error *err)
{
    int fd = memfd_create("millrace-check", MFD_CLOEXEC);

    if (fd >= 0 && write_all(fd, text))
        return fd;
    err_errno(err, "the question about it can't be written");
    if (fd >= 0)
        close(fd);
    return -1;
}

int plugin_check_write(const json_t *question, struct mr_error *err)
{
    struct buf text;
    int fd = -1;

    buf_init(&text, CHECK_FORMAT_QUESTION_MAX);
    if (json_write(&text, question) == 0)
        fd = write_file(&text, err);
    else
        mr_fail(err, MR_ERR_TOO_LARGE,
                "the question about it takes more than %zu MiB, or more memory than there is",
                CHECK_FORMAT_QUESTION_MAX >> 20);
    buf_deinit(&text);
    return fd;
}

static int start_process(struct inquiry *q, struct mr_error *err)
{
    char program[] = "millrace", verb[] = "check";
    char *argv[] = {program, verb, NULL};
    int question = q->question_fd, out[2];

    q->question_fd = -1;
    if (question < 0)
        question = plugin_check_write(q->question, err);
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

    loop_timer_cancel(&q->patience);
    q->running = true;
    q->pc->waiting--;
    q->pc->quick++;
    if (start_process(q, &err) == 0 && watch_process(q, &err) == 0) {
        loop_timer_start(q->pc->loop, &q->patience, q->pc->patience_ms, on_patience, q);
        loop_timer_start(q->pc->loop, &q->slowness, SLOW_MS, on_slow, q);
        return;
    }
    check_answers_broken(&q->answers, "%s", err.text);
    answer(q);
    forget(q);
}

/* NULL: it reads an own topic, whosever. */
static const char *library_of(const struct inquiry *q, size_t stage)
{
    return json_string_value(json_object_get(json_array_get(q->question, stage), "library"));
}

static bool would_ask(const struct inquiry *q, const char *library)
{
    for (size_t i = 0; i < json_array_size(q->question); i++) {
        const char *own = library_of(q, i);

        if (own == library || (own != NULL && library != NULL && strcmp(own, library) == 0))
            return true;
    }
    return false;
}

/* The library that a slow one is at. */
static const char *stuck_in(const struct inquiry *q)
{
    return library_of(q, q->answers.stage > 0 ? (size_t)q->answers.stage : 0);
}

/* So many are stuck where this one would go that it waits for them. */
static bool is_held(const struct inquiry *q)
{
    size_t stuck = 0;

    for (const struct inquiry *at = q->pc->inquiries; at != NULL; at = at->next)
        if (at->slow && would_ask(q, stuck_in(at)))
            stuck++;
    return stuck >= STUCK_MAX;
}

static bool wait_for_the_same(const struct inquiry *a, const struct inquiry *b)
{
    for (const struct inquiry *at = a->pc->inquiries; at != NULL; at = at->next)
        if (at->slow && would_ask(a, stuck_in(at)) && would_ask(b, stuck_in(at)))
            return true;
    return false;
}

/* How many wait that count against this one: held where it is held, or not held as it is not. */
static size_t count_alike(const struct inquiry *q, bool held)
{
    size_t count = 0;

    for (const struct inquiry *at = q->pc->inquiries; at != NULL; at = at->next)
        if (at != q && !at->running && is_held(at) == held && (!held || wait_for_the_same(q, at)))
            count++;
    return count;
}

/* Says so in its answers. */
static bool is_one_too_many(struct inquiry *q)
{
    bool held = is_held(q);
    size_t max = held ? HELD_MAX : WAITING_MAX;

    if (q->pc->waiting <= max || count_alike(q, held) < max)
        return false;
    check_answers_broken(&q->answers, "more than %zu questions wait already%s", max,
                         held ? " for others that hang in its library" : "");
    return true;
}

static struct inquiry *next_of(const struct plugin_check *pc)
{
    struct inquiry *q = pc->quick < RUNNING_MAX && pc->slow < SLOW_MAX ? pc->inquiries : NULL;

    while (q != NULL && (q->running || is_held(q)))
        q = q->next;
    return q;
}

static void run_next(struct plugin_check *pc)
{
    struct inquiry *q;

    while ((q = next_of(pc)) != NULL)
        run(q);
}

/* --- the doors -------------------------------------------------------------------------------- */

void plugin_check_ask(struct plugin_check *pc, json_t *question, plugin_check_done done, void *arg)
{
    plugin_check_ask_written(pc, question, -1, done, arg);
}

void plugin_check_ask_written(struct plugin_check *pc, json_t *question, int fd,
                              plugin_check_done done, void *arg)
{
    struct inquiry *q = calloc(1, sizeof(*q)), **at = &pc->inquiries;

    mr_assert(q != NULL);
    *q = (struct inquiry){.pc = pc,
                          .question = question,
                          .done = done,
                          .arg = arg,
                          .pidfd = -1,
                          .out_fd = -1,
                          .question_fd = fd};
    check_answers_init(&q->answers, question);
    while (*at != NULL)
        at = &(*at)->next;
    *at = q;
    pc->waiting++;
    if (is_one_too_many(q)) {
        answer(q);
        forget(q);
        return;
    }
    loop_timer_start(pc->loop, &q->patience, pc->patience_ms, on_waited, q);
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
        call_off(q);
        forget(q);
    }
    free(pc);
}
