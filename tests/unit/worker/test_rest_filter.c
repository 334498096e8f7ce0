/* SPDX-License-Identifier: Apache-2.0 */
/* rest_filter: what lets a request through, and that nothing else does. The services are a thread
 * of this test. */
#include "base/clock.h"
#include "base/service_link.h"
#include "worker/rest/rest_auth.h"
#include "worker/rest/rest_filter.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 60000 /* bounds a fault, not the machine */
#define SHORT_MS 3000
#define SLOW_MS 2500
#define ADMIT "{\"admit\":true}"
#define CLOSED "A REST filter did not say whether this request may pass: it is refused"

/* Answers, one a question; "" hangs until the test's end, NULL closes the connection, slow admits
 * after SLOW_MS. */
static const char *const slow = "slow";

struct fixture {
    struct worker_config config;
    struct rest_filter *filter;
    char socket[64];
    int fd;
    const char *answers[16];
    int held[16];
    size_t held_count;
    pthread_mutex_t lock; /* of asked */
    char asked[4096];
    pthread_t thread;
};

struct waiting {
    struct rest_filter_call call; /* first */
    sem_t ended;
};

/* --- answers ---------------------------------------------------------------------------------- */

static void only_one_answer_admits(void **state)
{
    static const struct {
        const char *answer;
        int rc;
        const char *text;
    } cases[] = {
        {ADMIT, 0, NULL},
        {"{\"status\":403,\"text\":\"no\"}", 403, "no"},
        {"{\"status\":599,\"text\":\"\"}", 599, ""},
        {"{\"error\":\"dead\"}", MR_ERR_IO, NULL},
        {"{\"admit\":true,\"error\":\"dead\"}", MR_ERR_IO, NULL},
        {"{\"admit\":true,\"status\":403}", MR_ERR_PROTOCOL, NULL},
        {"{\"admit\":1}", MR_ERR_PROTOCOL, NULL},
        {"{\"admit\":false}", MR_ERR_PROTOCOL, NULL},
        {"{\"admit\":\"true\"}", MR_ERR_PROTOCOL, NULL},
        {"{\"status\":200,\"text\":\"come in\"}", MR_ERR_PROTOCOL, NULL},
        {"{\"status\":403}", MR_ERR_PROTOCOL, NULL},
        {"{\"started\":true}", MR_ERR_PROTOCOL, NULL},
        {"{}", MR_ERR_PROTOCOL, NULL},
        {"true", MR_ERR_PROTOCOL, NULL},
        {"{\"admit\":true", MR_ERR_PROTOCOL, NULL},
        {"", MR_ERR_PROTOCOL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;

        assert_int_equal(rest_filter_read(cases[i].answer, strlen(cases[i].answer), &text, NULL),
                         cases[i].rc);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
        else
            assert_null(text);
        free(text);
    }
}

/* --- asking ----------------------------------------------------------------------------------- */

static void *serve(void *arg)
{
    struct fixture *f = arg;

    for (size_t i = 0; i < 16; i++) {
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        struct buf body;
        int fd;

        while (poll(&p, 1, -1) < 0)
            ;
        fd = accept(f->fd, NULL, NULL);
        if (fd < 0)
            break; /* the test's end */
        buf_init(&body, SERVICE_LINK_QUESTION_MAX);
        assert_int_equal(service_link_read(fd, body.max, -1, &body, NULL), 0);
        pthread_mutex_lock(&f->lock);
        snprintf(f->asked + strlen(f->asked), sizeof(f->asked) - strlen(f->asked), "%s\n",
                 body.data);
        pthread_mutex_unlock(&f->lock);
        buf_deinit(&body);
        if (f->answers[i] != NULL && f->answers[i][0] == '\0') {
            f->held[f->held_count++] = fd;
            continue;
        }
        if (f->answers[i] == slow) {
            poll(NULL, 0, SLOW_MS);
            f->answers[i] = ADMIT;
        }
        if (f->answers[i] != NULL)
            service_link_write(fd, f->answers[i], strlen(f->answers[i]), -1, NULL);
        close(fd);
    }
    return NULL;
}

/* Since the last call. */
static const char *asked(struct fixture *f)
{
    static char copy[sizeof(f->asked)];

    pthread_mutex_lock(&f->lock);
    snprintf(copy, sizeof(copy), "%s", f->asked);
    f->asked[0] = '\0';
    pthread_mutex_unlock(&f->lock);
    return copy;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    pthread_mutex_init(&f->lock, NULL);
    snprintf(f->socket, sizeof(f->socket), "millrace-test-filter-%d", (int)getpid());
    f->fd = service_link_listen(f->socket);
    assert_true(f->fd >= 0);
    f->config.path = "w.properties";
    props_init(&f->config.props);
    props_set(&f->config.props, "rest.extension.classes",
              "One, BasicAuthSecurityRestExtension,org.x.Two");
    props_set(&f->config.props, PROVIDER_SOCKET_KEY, f->socket);
    f->config.services_ms = PATIENCE_MS;
    *state = f;
    return 0;
}

/* The first two answers are for the start. */
static int begin(struct fixture *f, struct mr_error *err)
{
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    return rest_filter_new(&f->config, &f->filter, err);
}

static void begin_well(struct fixture *f)
{
    f->answers[0] = f->answers[1] = "{\"started\":true}";
    assert_int_equal(begin(f, NULL), 0);
    assert_non_null(f->filter);
    asked(f);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    rest_filter_free(&f->filter);
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    for (size_t i = 0; i < f->held_count; i++)
        close(f->held[i]);
    close(f->fd);
    props_deinit(&f->config.props);
    free(f);
    return 0;
}

static void on_done(struct rest_filter_call *call)
{
    sem_post(&((struct waiting *)call)->ended);
}

static void pass(struct fixture *f, struct waiting *w, const char *method)
{
    *w = (struct waiting){
        .call = {.question = json_pack("{s:s}", "method", method), .done = on_done}};
    sem_init(&w->ended, 0, 0);
    rest_filter_pass(f->filter, &w->call);
}

static void assert_ends(struct waiting *w, int status, const char *text)
{
    while (sem_wait(&w->ended) != 0)
        ;
    assert_int_equal(w->call.status, status);
    if (text != NULL)
        assert_string_equal(w->call.text, text);
    else
        assert_null(w->call.text);
    free(w->call.text);
    sem_destroy(&w->ended);
}

static void each_filter_is_asked_in_order_until_one_refuses(void **state)
{
    struct fixture *f = *state;
    struct waiting w;

    begin_well(f);
    f->answers[2] = f->answers[3] = ADMIT;
    f->answers[4] = ADMIT;
    f->answers[5] = "{\"status\":403,\"text\":\"not you\"}";
    f->answers[6] = "{\"status\":401,\"text\":\"who?\"}";
    pass(f, &w, "GET");
    assert_ends(&w, 0, NULL);
    assert_string_equal(asked(f), "{\"method\":\"GET\",\"service\":\"filter.One\"}\n"
                                  "{\"method\":\"GET\",\"service\":\"filter.org.x.Two\"}\n");
    pass(f, &w, "PUT");
    assert_ends(&w, 403, "not you");
    asked(f);
    pass(f, &w, "POST");
    assert_ends(&w, 401, "who?");
    assert_string_equal(asked(f), "{\"method\":\"POST\",\"service\":\"filter.One\"}\n");
}

static void what_is_no_answer_refuses(void **state)
{
    struct fixture *f = *state;
    struct waiting w;

    begin_well(f);
    f->answers[2] = NULL;
    f->answers[3] = "{\"error\":\"its process died\"}";
    f->answers[4] = "nonsense";
    for (int i = 0; i < 3; i++) {
        pass(f, &w, "GET");
        assert_ends(&w, 503, CLOSED);
    }
}

static void one_that_hangs_refuses_in_time_and_so_for_those_behind(void **state)
{
    struct fixture *f = *state;
    struct waiting w[3];

    f->config.services_ms = SHORT_MS;
    begin_well(f);
    f->answers[2] = "";
    for (int i = 0; i < 3; i++)
        pass(f, &w[i], "GET");
    for (int i = 0; i < 3; i++)
        assert_ends(&w[i], 503, CLOSED);
    assert_string_equal(asked(f), "{\"method\":\"GET\",\"service\":\"filter.One\"}\n");
}

/* Each answers in its own time, but all of them together take too long. */
static void many_slow_ones_refuse_in_time(void **state)
{
    struct fixture *f = *state;
    struct waiting w;

    f->config.services_ms = SHORT_MS;
    props_set(&f->config.props, "rest.extension.classes", "One,Two,Three,Four");
    for (int i = 0; i < 4; i++)
        f->answers[i] = "{\"started\":true}";
    assert_int_equal(begin(f, NULL), 0);
    for (int i = 4; i < 8; i++)
        f->answers[i] = slow;
    pass(f, &w, "GET");
    assert_ends(&w, 503, CLOSED);
}

static void closing_refuses_whoever_waits_and_comes(void **state)
{
    struct fixture *f = *state;
    struct waiting w, late;

    begin_well(f);
    f->answers[2] = "";
    pass(f, &w, "GET");
    rest_filter_close(f->filter);
    assert_ends(&w, 503, CLOSED);
    pass(f, &late, "GET");
    assert_ends(&late, 503, "Too many requests wait for a REST filter; try again later");
}

static void a_filter_that_does_not_start_ends_the_start(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    f->answers[0] = "{\"started\":true}";
    f->answers[1] = "{\"error\":\"no guards\"}";
    assert_int_equal(begin(f, &err), MR_ERR_CONFIG);
    assert_null(f->filter);
    assert_string_equal(err.text, "w.properties: Invalid value org.x.Two for configuration "
                                  "rest.extension.classes: no guards");
}

static void filters_that_nothing_serves_end_the_start(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    props_remove(&f->config.props, PROVIDER_SOCKET_KEY);
    assert_int_equal(begin(f, &err), MR_ERR_CONFIG);
    assert_null(f->filter);
}

static void without_filters_nobody_is_asked(void **state)
{
    struct fixture *f = *state;

    props_set(&f->config.props, "rest.extension.classes", "BasicAuthSecurityRestExtension");
    assert_int_equal(begin(f, NULL), 0);
    assert_null(f->filter);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_answer_admits),
        test(each_filter_is_asked_in_order_until_one_refuses),
        test(what_is_no_answer_refuses),
        test(one_that_hangs_refuses_in_time_and_so_for_those_behind),
        test(many_slow_ones_refuse_in_time),
        test(closing_refuses_whoever_waits_and_comes),
        test(a_filter_that_does_not_start_ends_the_start),
        test(filters_that_nothing_serves_end_the_start),
        test(without_filters_nobody_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
