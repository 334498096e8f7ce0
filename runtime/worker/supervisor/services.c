/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the processes of services (service_process.c) and hands them the questions that come by a
 * socket, one a connection. A thread with a loop of its own, since configurations are resolved
 * before the worker's loop runs, and while it is busy.
 *
 *   caller ══ socket ══ caller ─► queue of its service ─► process ══ socket pair ══ host/service.c
 *     IDLE: reads the question   WAITING: in the queue, or with the process   ANSWERED: is written
 *
 * A process is given one question at a time, so what it dies or hangs of is known: that caller is
 * told (of a death, once a second process has died too), the next one meets a new process. Services
 * share nothing: one that hangs holds up no other (promise 2). Callers are hosts too, and an answer
 * comes from a plugin's process: lengths are capped before anything is read, of a question only the
 * service's name is looked at, and an answer is passed on as it is, to be judged by who asked
 * (base/provider_service.c). */
#define LOGGER "worker.services"
#include "worker/supervisor/services.h"

#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/service_link.h"
#include "base/text.h"
#include "base/thread.h"
#include "worker/supervisor/service_process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLERS_MAX 512
#define CALLER_MS 10000 /* to send its question, and to take its answer */
#define STOP_MS 500
#define CHUNK 65536

enum caller_state { CALLER_ASKING, CALLER_WAITING, CALLER_ANSWERED };

struct caller {
    struct services *services;
    struct caller *next, *prev; /* of all */
    struct caller *behind;      /* in its service's queue */
    struct service *service;    /* CALLER_WAITING */
    enum caller_state state;
    bool again; /* a process has died of its question already, or on its own when it was given */
    int fd;
    struct loop_fd *watch;
    struct loop_timer timer;
    struct buf bytes; /* the question, with its head; then the answer that is not written yet */
};

struct service {
    struct services *services;
    struct services_spec spec; /* what it points to is its own */
    struct props params;
    struct service_process process; /* pid 0: none, and nothing of what follows but the queue */
    struct loop_fd *exit_watch, *watch;
    struct buf in;          /* what came of an answer */
    struct buf to;          /* what is not written of a question */
    bool busy;              /* it has a question */
    struct caller *running; /* whose; NULL: its caller has gone */
    struct caller *first, **last;
    struct loop_timer deadline;
};

struct services {
    char *exe;
    char socket[SERVICE_LINK_NAME_MAX];
    int64_t patience_ms;
    struct loop *loop;
    int listen_fd;
    struct loop_fd *listening;
    struct caller *callers;
    size_t caller_count;
    struct service *list;
    size_t count;
    pthread_t thread;
};

/* Read on until in holds a frame with a body of at most max bytes: 1; 0: not yet; -1: the other
 * side has gone; -2: it breaks the rules. */
static int read_frame(int fd, struct buf *in, size_t max)
{
    for (;;) {
        size_t want = SERVICE_LINK_HEAD;
        ssize_t n;

        if (in->len >= SERVICE_LINK_HEAD)
            want += service_link_length(in->data);
        if (want > SERVICE_LINK_HEAD + max)
            return -2;
        if (in->len >= SERVICE_LINK_HEAD && in->len == want)
            return 1;
        want = want - in->len < CHUNK ? want - in->len : CHUNK;
        if (buf_reserve(in, want) != 0)
            return -2;
        n = recv(fd, in->data + in->len, want, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -1;
        in->len += (size_t)n;
        in->data[in->len] = '\0';
    }
}

/* --- callers ---------------------------------------------------------------------------------- */

static void unqueue(struct caller *c)
{
    struct service *s = c->service;

    if (s->running == c)
        s->running = NULL;
    for (struct caller **at = &s->first; *at != NULL; at = &(*at)->behind) {
        if (*at != c)
            continue;
        *at = c->behind;
        if (s->last == &c->behind)
            s->last = at;
        break;
    }
    c->service = NULL;
}

static void drop_caller(struct caller *c)
{
    struct services *services = c->services;

    if (c->service != NULL)
        unqueue(c);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        services->callers = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    services->caller_count--;
    loop_fd_events(services->listening, EPOLLIN);
    loop_timer_cancel(&c->timer);
    loop_fd_remove(&c->watch);
    close(c->fd);
    if (c->bytes.data != NULL)
        explicit_bzero(c->bytes.data, c->bytes.len);
    buf_deinit(&c->bytes);
    free(c);
}

static void on_caller_late(void *arg)
{
    drop_caller(arg);
}

/* c is gone when this returns if it could be written at once, or could not be at all. */
static void write_answer(struct caller *c)
{
    while (c->bytes.len > 0) {
        ssize_t n = send(c->fd, c->bytes.data, c->bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            loop_fd_events(c->watch, EPOLLOUT);
            return;
        }
        if (n < 0)
            break;
        buf_consume(&c->bytes, (size_t)n);
    }
    drop_caller(c);
}

/* The frame of an answer, whole. c: may be NULL, and gone afterwards. */
static void answer_frame(struct caller *c, const char *frame, size_t len)
{
    if (c == NULL)
        return;
    if (c->service != NULL)
        unqueue(c);
    c->state = CALLER_ANSWERED;
    buf_deinit(&c->bytes);
    buf_init(&c->bytes, SERVICE_LINK_HEAD + SERVICE_LINK_ANSWER_MAX);
    loop_timer_start(c->services->loop, &c->timer, CALLER_MS, on_caller_late, c);
    if (buf_append(&c->bytes, frame, len) != 0)
        drop_caller(c);
    else
        write_answer(c);
}

static void answer_error(struct caller *c, const char *text)
{
    json_t *object = json_pack("{s:s}", "error", text);
    char head[SERVICE_LINK_HEAD];
    struct buf body, frame;

    buf_init(&body, CHUNK);
    buf_init(&frame, CHUNK);
    mr_assert(object != NULL && json_write(&body, object) == 0);
    service_link_head(head, body.len);
    buf_append(&frame, head, sizeof(head));
    mr_assert(buf_append(&frame, body.data, body.len) == 0);
    answer_frame(c, frame.data, frame.len);
    buf_deinit(&frame);
    buf_deinit(&body);
    json_decref(object);
}

/* --- the process of a service ----------------------------------------------------------------- */

static void ask_next(struct service *s);

/* Its process is no more, or soon; how: in words, size bytes. */
static void bury(struct service *s, char *how, size_t size)
{
    loop_timer_cancel(&s->deadline);
    loop_fd_remove(&s->exit_watch);
    loop_fd_remove(&s->watch);
    service_process_end(&s->process, how, size);
    buf_deinit(&s->in);
    buf_deinit(&s->to);
}

/* It may have died before it was given the question, so that is given to another, once. */
static bool ask_again(struct service *s)
{
    struct caller *c = s->running;

    if (c == NULL || c->again)
        return false;
    c->again = true;
    c->behind = s->first;
    if (s->first == NULL)
        s->last = &c->behind;
    s->first = c;
    s->running = NULL;
    return true;
}

/* It has died, or must: whoever it was asked for is told why, and the next question meets a new
 * one. why NULL: it has ended by itself. */
static void lose(struct service *s, const char *why)
{
    bool busy = s->busy;
    int pid = (int)s->process.pid;
    char how[64], text[512];

    bury(s, how, sizeof(how));
    if (why != NULL)
        snprintf(text, sizeof(text), "%s: its process %d was killed, the next call starts another",
                 why, pid);
    else
        snprintf(text, sizeof(text), "its process %d %s%s, the next call starts another", pid, how,
                 busy ? " when it was asked" : "");
    log_error("%s: %s", s->spec.what, text);
    s->busy = false;
    if (why != NULL || !ask_again(s))
        answer_error(s->running, text);
    ask_next(s);
}

static void on_deadline(void *arg)
{
    struct service *s = arg;
    char why[128];

    snprintf(why, sizeof(why), "it gave no answer within %lld ms (millrace.services.timeout.ms)",
             (long long)s->services->patience_ms);
    lose(s, why);
}

static void on_exit_seen(void *arg, uint32_t events)
{
    (void)events;
    lose(arg, NULL);
}

/* --- questions and answers -------------------------------------------------------------------- */

/* That it can't be written is seen when its answer is read. */
static void write_question(struct service *s)
{
    while (s->to.len > 0) {
        ssize_t n = send(s->process.fd, s->to.data, s->to.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EINTR)
            break;
        buf_consume(&s->to, n > 0 ? (size_t)n : 0);
    }
    loop_fd_events(s->watch, EPOLLIN | (s->to.len > 0 ? EPOLLOUT : 0));
}

static void on_answer(struct service *s)
{
    struct caller *c = s->running;

    loop_timer_cancel(&s->deadline);
    s->busy = false;
    answer_frame(c, s->in.data, s->in.len);
    explicit_bzero(s->in.data, s->in.len);
    buf_reset(&s->in);
    ask_next(s);
}

static void on_service(void *arg, uint32_t events)
{
    struct service *s = arg;
    int rc;

    if (events == EPOLLOUT) {
        write_question(s);
        return;
    }
    rc = s->busy ? read_frame(s->process.fd, &s->in, SERVICE_LINK_ANSWER_MAX) : -2;
    if (!s->busy && (events & (EPOLLHUP | EPOLLERR)))
        rc = -1;
    if (rc > 0)
        on_answer(s);
    else if (rc < 0)
        lose(s, rc == -2 ? "it said what it was not asked" : NULL);
    else if (events & EPOLLOUT)
        write_question(s);
}

static int start(struct service *s, struct mr_error *err)
{
    struct loop *loop = s->services->loop;
    char how[64];
    int rc = service_process_start(&s->process, loop, s->services->exe, &s->spec, err);

    if (rc != 0)
        return rc;
    buf_init(&s->in, SERVICE_LINK_HEAD + SERVICE_LINK_ANSWER_MAX);
    buf_init(&s->to, SERVICE_LINK_HEAD + SERVICE_LINK_QUESTION_MAX);
    s->exit_watch = loop_fd_add(loop, s->process.pidfd, EPOLLIN, on_exit_seen, s, err);
    if (s->exit_watch != NULL)
        s->watch = loop_fd_add(loop, s->process.fd, EPOLLIN, on_service, s, err);
    if (s->watch != NULL) {
        log_info("%s: process %d starts", s->spec.what, (int)s->process.pid);
        return 0;
    }
    bury(s, how, sizeof(how));
    return err->code;
}

/* Hand the first of the queue to the process, if that is free. */
static void ask_next(struct service *s)
{
    struct caller *c;
    struct mr_error err = {0};

    while (!s->busy && s->first != NULL) {
        c = s->first;
        if (s->process.pid == 0 && start(s, &err) != 0) {
            log_error("%s: %s", s->spec.what, err.text);
            answer_error(c, err.text);
            err_clear(&err);
            continue;
        }
        s->first = c->behind;
        if (s->first == NULL)
            s->last = &s->first;
        c->behind = NULL;
        s->running = c;
        s->busy = true;
        mr_assert(buf_append(&s->to, c->bytes.data, c->bytes.len) == 0);
        loop_timer_start(s->services->loop, &s->deadline, s->services->patience_ms, on_deadline, s);
        write_question(s);
    }
}

/* --- questions from outside ------------------------------------------------------------------- */

static struct service *find(const struct services *services, const struct caller *c)
{
    json_t *question =
        json_parse(c->bytes.data + SERVICE_LINK_HEAD, c->bytes.len - SERVICE_LINK_HEAD, NULL);
    struct service *found = NULL;
    const char *name;

    if (json_get_text(question, "service", &name))
        for (size_t i = 0; i < services->count && found == NULL; i++)
            if (strcmp(services->list[i].spec.name, name) == 0)
                found = &services->list[i];
    json_decref(question);
    return found;
}

static void enqueue(struct caller *c)
{
    struct service *s = find(c->services, c);

    loop_timer_cancel(&c->timer);
    if (s == NULL) {
        answer_error(c, "the worker has no service of this name");
        return;
    }
    c->state = CALLER_WAITING;
    c->service = s;
    *s->last = c;
    s->last = &c->behind;
    ask_next(s);
}

static void on_caller(void *arg, uint32_t events)
{
    struct caller *c = arg;
    int rc;

    (void)events;
    if (c->state == CALLER_ANSWERED) {
        write_answer(c);
    } else if (c->state == CALLER_WAITING) {
        drop_caller(c); /* it has gone, or says more than one question */
    } else {
        rc = read_frame(c->fd, &c->bytes, SERVICE_LINK_QUESTION_MAX);
        if (rc > 0)
            enqueue(c);
        else if (rc < 0)
            drop_caller(c);
    }
}

static void add_caller(struct services *services, int fd)
{
    struct caller *c = calloc(1, sizeof(*c));

    mr_assert(c != NULL);
    *c = (struct caller){.services = services, .fd = fd, .next = services->callers};
    buf_init(&c->bytes, SERVICE_LINK_HEAD + SERVICE_LINK_QUESTION_MAX);
    c->watch = loop_fd_add(services->loop, fd, EPOLLIN, on_caller, c, NULL);
    if (c->watch == NULL) {
        close(fd);
        free(c);
        return;
    }
    if (services->callers != NULL)
        services->callers->prev = c;
    services->callers = c;
    services->caller_count++;
    loop_timer_start(services->loop, &c->timer, CALLER_MS, on_caller_late, c);
}

static void on_connection(void *arg, uint32_t events)
{
    struct services *services = arg;
    int fd;

    (void)events;
    if (services->caller_count >= CALLERS_MAX) {
        loop_fd_events(services->listening, 0); /* until one has gone */
        return;
    }
    fd = accept4(services->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && service_link_is_ours(fd))
        add_caller(services, fd);
    else if (fd >= 0)
        close(fd);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* In order where they can: end of file is what they wait for. */
static void end_all(struct services *services)
{
    char how[64];

    while (services->callers != NULL)
        drop_caller(services->callers);
    loop_fd_remove(&services->listening);
    for (size_t i = 0; i < services->count; i++)
        if (services->list[i].process.pid != 0)
            shutdown(services->list[i].process.fd, SHUT_RDWR);
    for (size_t i = 0; i < services->count; i++) {
        struct service *s = &services->list[i];
        struct pollfd p = {.fd = s->process.pidfd, .events = POLLIN};

        if (s->process.pid == 0)
            continue;
        poll(&p, 1, STOP_MS);
        bury(s, how, sizeof(how));
    }
}

static void *thread_main(void *arg)
{
    struct services *services = arg;

    pthread_setname_np(pthread_self(), "services");
    loop_run(services->loop);
    end_all(services);
    return NULL;
}

static void add(struct services *services, const struct services_spec *spec)
{
    struct service *s = &services->list[services->count++];

    *s = (struct service){.services = services, .spec = *spec, .last = &s->first};
    s->spec.name = text_dup(spec->name);
    s->spec.what = text_dup(spec->what);
    s->spec.library = text_dup(spec->library);
    s->spec.class_name = text_dup(spec->class_name);
    mr_assert(props_copy(&s->params, spec->params) == 0);
    s->spec.params = &s->params;
}

static int open_socket(struct services *services, struct mr_error *err)
{
    unsigned long long random[2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_errno(err, "no random bytes");
    snprintf(services->socket, sizeof(services->socket), "millrace-services-%d-%016llx%016llx",
             (int)getpid(), random[0], random[1]);
    services->listen_fd = service_link_listen(services->socket);
    if (services->listen_fd < 0)
        return err_errno(err, "no socket for services");
    services->loop = loop_new(err);
    if (services->loop != NULL)
        services->listening =
            loop_fd_add(services->loop, services->listen_fd, EPOLLIN, on_connection, services, err);
    return services->listening != NULL ? 0 : MR_ERR_IO;
}

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

static void destroy(struct services *services)
{
    for (size_t i = 0; i < services->count; i++) {
        struct service *s = &services->list[i];

        free_text(s->spec.name);
        free_text(s->spec.what);
        free_text(s->spec.library);
        free_text(s->spec.class_name);
        props_deinit(&s->params);
    }
    if (services->loop != NULL)
        loop_free(&services->loop);
    if (services->listen_fd >= 0)
        close(services->listen_fd);
    free(services->list);
    free(services->exe);
    free(services);
}

struct services *services_new(const struct services_options *options, struct mr_error *err)
{
    struct services *services = calloc(1, sizeof(*services));
    int rc;

    mr_assert(services != NULL);
    *services = (struct services){.exe = text_dup(options->exe),
                                  .patience_ms = options->patience_ms,
                                  .listen_fd = -1,
                                  .list = calloc(options->count + 1, sizeof(struct service))};
    mr_assert(services->list != NULL);
    for (size_t i = 0; i < options->count; i++)
        add(services, &options->specs[i]);
    rc = open_socket(services, err);
    if (rc == 0) {
        errno = thread_start(&services->thread, thread_main, services);
        if (errno == 0)
            return services;
        err_errno(err, "no thread for services");
        loop_fd_remove(&services->listening);
    }
    destroy(services);
    return NULL;
}

const char *services_socket(const struct services *services)
{
    return services->socket;
}

static void on_end(void *arg)
{
    struct services *services = arg;

    loop_stop(services->loop);
}

void services_free(struct services **servicesp)
{
    struct services *services = *servicesp;

    *servicesp = NULL;
    if (services == NULL)
        return;
    mr_assert(loop_post(services->loop, on_end, services) == 0);
    pthread_join(services->thread, NULL);
    destroy(services);
}
