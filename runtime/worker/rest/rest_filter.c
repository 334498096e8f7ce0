/* SPDX-License-Identifier: Apache-2.0 */
/* Asks REST filters about requests. An HTTP thread passes a request on here while it is suspended;
 * this file's thread asks one filter after the other, and says so by `done`, which passes it on to
 * the loop or sends the refusal.
 *
 * Invariant: only the bytes of an answer that says so let a request through; a filter that is slow,
 * dead, or says anything else refuses it with 503. A request that has waited for its turn for as
 * long as a call may take is refused without being asked about, and all filters together have twice
 * that time from when it was passed on, so that is when each has its answer. */
#define LOGGER "worker.rest"
#include "worker/rest/rest_filter.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/service_link.h"
#include "base/text.h"
#include "base/thread.h"
#include "worker/rest/rest_auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILTERS_MAX 16
#define WAITING_MAX 4096
#define SLACK_MS 1000 /* for the services' own deadline to come first */
#define STATUS_CLOSED 503
#define BUSY "Too many requests wait for a REST filter; try again later"
#define FAILED "A REST filter did not say whether this request may pass: it is refused"

struct rest_filter {
    const char *socket; /* of the configuration */
    char *names[FILTERS_MAX];
    size_t count;
    int64_t patience_ms;
    struct queue *waiting;
    int cancel_fd;
    pthread_t thread;
    bool running;
};

/* --- answers ---------------------------------------------------------------------------------- */

static int take(const json_t *object, char **text, struct mr_error *err)
{
    const char *message = NULL;
    int64_t status;

    if (json_get_text(object, "error", &message))
        return mr_fail(err, MR_ERR_IO, "%.900s", message);
    if (json_is_true(json_object_get(object, "admit")) && json_object_size(object) == 1)
        return 0;
    if (!json_get_int(object, "status", 400, 599, &status) ||
        !json_get_text(object, "text", &message))
        return mr_fail(err, MR_ERR_PROTOCOL, "its process gave an answer that is none");
    *text = text_dup(message);
    return (int)status;
}

int rest_filter_read(const char *answer, size_t len, char **text, struct mr_error *err)
{
    json_t *object = json_parse(answer, len, NULL);
    int rc = json_is_object(object)
                 ? take(object, text, err)
                 : mr_fail(err, MR_ERR_PROTOCOL, "its process gave an answer that is no JSON");

    json_decref(object);
    return rc;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* In wait_ms at most. */
static int ask(const struct rest_filter *filter, const char *name, json_t *question,
               int64_t wait_ms, struct buf *answer, struct mr_error *err)
{
    int64_t call_ms = filter->patience_ms + SLACK_MS;
    struct service_link_question q = {.socket = filter->socket,
                                      .wait_ms = wait_ms < call_ms ? wait_ms : call_ms,
                                      .cancel_fd = filter->cancel_fd};
    struct buf body;
    int rc;

    json_object_set_new(question, "service", json_string(name));
    buf_init(&body, SERVICE_LINK_QUESTION_MAX);
    rc = json_write(&body, question);
    if (rc != 0)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "the request's headers are too long");
    q.body = body.data;
    q.len = body.len;
    if (rc == 0)
        rc = service_link_ask(&q, answer, err);
    buf_deinit(&body);
    return rc;
}

static int judge(const struct rest_filter *filter, const char *name, struct rest_filter_call *call)
{
    int64_t due_ms = call->passed_ms + 2 * filter->patience_ms;
    struct mr_error err = {0};
    struct buf answer;
    int status;

    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    status = ask(filter, name, call->question, due_ms - clock_ms(), &answer, &err);
    if (status == 0)
        status = rest_filter_read(answer.data, answer.len, &call->text, &err);
    buf_deinit(&answer);
    if (status >= 0)
        return status;
    log_warn("REST filter %s: %s: the request is refused", name + strlen(REST_AUTH_FILTER),
             err.text);
    call->text = text_dup(FAILED);
    return STATUS_CLOSED;
}

static void finish(struct rest_filter_call *call, int status, const char *text)
{
    json_decref(call->question);
    call->question = NULL;
    call->status = status;
    if (text != NULL)
        call->text = text_dup(text);
    call->done(call);
}

static void *thread_main(void *arg)
{
    struct rest_filter *filter = arg;
    struct rest_filter_call *call;

    pthread_setname_np(pthread_self(), "rest-filter");
    while ((call = queue_pop(filter->waiting, -1)) != NULL) {
        bool late = clock_ms() >= call->passed_ms + filter->patience_ms;
        int status = late ? STATUS_CLOSED : 0;

        if (late)
            call->text = text_dup(FAILED);
        for (size_t i = 0; status == 0 && i < filter->count; i++)
            status = judge(filter, filter->names[i], call);
        finish(call, status, NULL);
    }
    return NULL;
}

void rest_filter_pass(struct rest_filter *filter, struct rest_filter_call *call)
{
    call->status = 0;
    call->text = NULL;
    call->passed_ms = clock_ms();
    if (queue_push(filter->waiting, call) != 0)
        finish(call, STATUS_CLOSED, BUSY);
}

/* --- life ------------------------------------------------------------------------------------- */

/* Its process answers when it has started. */
static int look_at(const struct rest_filter *filter, const char *name, struct mr_error *err)
{
    json_t *question = json_object(), *object = NULL;
    struct buf answer;
    const char *text;
    int rc;

    mr_assert(question != NULL);
    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    rc = ask(filter, name, question, INT64_MAX, &answer, err);
    if (rc == 0)
        object = json_parse(answer.data, answer.len, NULL);
    if (rc == 0 && json_get_text(object, "error", &text))
        rc = mr_fail(err, MR_ERR_CONFIG, "%.900s", text);
    else if (rc == 0 && !json_is_true(json_object_get(object, "started")))
        rc = mr_fail(err, MR_ERR_CONFIG, "its process gave an answer that is none");
    buf_deinit(&answer);
    json_decref(object);
    json_decref(question);
    return rc;
}

static int look_at_all(const struct rest_filter *filter, const struct worker_config *config,
                       struct mr_error *err)
{
    char where[512];

    worker_config_where(config, "rest.extension.classes", where, sizeof(where));
    for (size_t i = 0; i < filter->count; i++) {
        struct mr_error why = {0};

        if (look_at(filter, filter->names[i], &why) != 0)
            return mr_fail(err, MR_ERR_CONFIG,
                           "%sInvalid value %.200s for configuration rest.extension.classes: %s",
                           where, filter->names[i] + strlen(REST_AUTH_FILTER), why.text);
    }
    return 0;
}

static void add(void *arg, const char *class_name)
{
    struct rest_filter *filter = arg;

    if (filter->count < FILTERS_MAX)
        mr_assert(asprintf(&filter->names[filter->count], REST_AUTH_FILTER "%s", class_name) > 0);
    filter->count++;
}

static int start(struct rest_filter *filter, struct mr_error *err)
{
    filter->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (filter->cancel_fd < 0)
        return err_errno(err, "no descriptor for REST filters");
    errno = thread_start(&filter->thread, thread_main, filter);
    if (errno != 0)
        return err_errno(err, "no thread for REST filters");
    filter->running = true;
    return 0;
}

/* One that is named and not asked would let everything through. */
static int begin(struct rest_filter *filter, const struct worker_config *config,
                 struct mr_error *err)
{
    int rc;

    if (filter->count > FILTERS_MAX || filter->socket == NULL) {
        filter->count = filter->count > FILTERS_MAX ? FILTERS_MAX : filter->count;
        return mr_fail(err, MR_ERR_CONFIG, "rest.extension.classes: %s",
                       filter->socket == NULL ? "nothing serves its filters"
                                              : "more than 16 REST filters");
    }
    rc = start(filter, err);
    return rc == 0 ? look_at_all(filter, config, err) : rc;
}

int rest_filter_new(const struct worker_config *config, struct rest_filter **out,
                    struct mr_error *err)
{
    struct rest_filter *filter = calloc(1, sizeof(*filter));
    int rc;

    mr_assert(filter != NULL);
    *out = NULL;
    rest_auth_filters(&config->props, add, filter);
    filter->socket = props_get(&config->props, PROVIDER_SOCKET_KEY);
    filter->patience_ms = config->services_ms;
    filter->waiting = queue_new(WAITING_MAX);
    filter->cancel_fd = -1;
    rc = filter->count > 0 ? begin(filter, config, err) : 0;
    if (rc != 0 || filter->count == 0)
        rest_filter_free(&filter);
    *out = filter;
    return rc;
}

void rest_filter_close(struct rest_filter *filter)
{
    uint64_t one = 1;

    queue_close(filter->waiting);
    if (filter->cancel_fd >= 0)
        mr_assert(write(filter->cancel_fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

void rest_filter_free(struct rest_filter **filterp)
{
    struct rest_filter *filter = *filterp;

    *filterp = NULL;
    if (filter == NULL)
        return;
    rest_filter_close(filter);
    if (filter->running)
        pthread_join(filter->thread, NULL);
    for (size_t i = 0; i < filter->count; i++)
        free(filter->names[i]);
    if (filter->cancel_fd >= 0)
        close(filter->cancel_fd);
    queue_free(&filter->waiting, NULL);
    free(filter);
}
