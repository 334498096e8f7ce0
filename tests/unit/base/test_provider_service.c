/* SPDX-License-Identifier: Apache-2.0 */
/* Config providers that are services: what their answers may be, and how a configuration is
 * resolved by one, which is a thread of this test. */
#include "base/provider.h"
#include "base/provider_service.h"
#include "base/service_link.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* --- answers ---------------------------------------------------------------------------------- */

/* "key=value;…ttl" or "! error". */
static const char *read_answer(const char *answer, size_t len)
{
    static char out[1024];
    json_t *keys = json_pack("[s, s]", "a", "b");
    struct mr_error err = {0};
    struct props values;
    int64_t ttl_ms = -1;
    size_t n = 0;

    props_init(&values);
    if (provider_service_read(answer, len, keys, &values, &ttl_ms, &err) != 0) {
        snprintf(out, sizeof(out), "! %s", err.text);
    } else {
        for (size_t i = 0; i < values.count; i++)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%s=%s;", values.entries[i].key,
                                  values.entries[i].value);
        snprintf(out + n, sizeof(out) - n, "%lld",
                 ttl_ms == PROVIDER_SERVICE_NO_TTL ? 0LL : (long long)ttl_ms);
    }
    props_deinit(&values);
    json_decref(keys);
    return out;
}

static void an_answer_is_values_of_what_was_asked_or_an_error(void **state)
{
    static const char none[] = "! its process gave an answer that is none";
    static const char more[] = "! its process gave what was not asked for";
    static const char *const cases[][2] = {
        {"{\"values\":{}}", "0"},
        {"{\"values\":{\"a\":\"x\"}}", "a=x;0"},
        {"{\"values\":{\"b\":\"\",\"a\":\"x\"},\"ttl\":1}", "b=;a=x;1"},
        {"{\"error\":\"it is\\nlocked\"}", "! it is?locked"},
        {"{\"error\":1}", none},
        {"{\"values\":{\"c\":\"x\"}}", more},
        {"{\"values\":{\"a\":null}}", more},
        {"{\"values\":{\"a\":1}}", more},
        {"{\"values\":{\"a\":\"x\\u0000y\"}}", more},
        {"{\"values\":[]}", none},
        {"{\"values\":{},\"ttl\":0}", none},
        {"{\"values\":{},\"ttl\":-5}", none},
        {"{\"values\":{},\"ttl\":1e9}", none},
        {"{\"values\":{},\"ttl\":9223372036854775807}", none},
        {"{}", none},
        {"[]", "! its process gave an answer that is no JSON"},
        {"{\"values\":{}", "! its process gave an answer that is no JSON"},
        {"\xff", "! its process gave an answer that is no JSON"},
        {"", "! its process gave an answer that is no JSON"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(read_answer(cases[i][0], strlen(cases[i][0])), cases[i][1]);
}

/* --- resolving -------------------------------------------------------------------------------- */

/* A service that answers count questions with what was asked: "<path>/<key>" for each key but
 * "none". The questions, one a line, are kept. */
struct fixture {
    char socket[64];
    int fd;
    int count;
    pthread_t thread;
    char asked[1024];
    struct props worker;
    struct providers *providers;
};

static void serve(struct fixture *f, int fd)
{
    json_t *question, *values = json_object(), *answer;
    struct buf body;
    size_t i;
    const json_t *key;
    char *text;

    buf_init(&body, SERVICE_LINK_QUESTION_MAX);
    assert_int_equal(service_link_read(fd, body.max, -1, &body, NULL), 0);
    snprintf(f->asked + strlen(f->asked), sizeof(f->asked) - strlen(f->asked), "%s\n", body.data);
    question = json_parse(body.data, body.len, NULL);
    json_array_foreach(json_object_get(question, "keys"), i, key)
    {
        char value[128];

        snprintf(value, sizeof(value), "%s/%s",
                 json_string_value(json_object_get(question, "path")), json_string_value(key));
        if (strcmp(json_string_value(key), "none") != 0)
            json_object_set_new(values, json_string_value(key), json_string(value));
    }
    if (strcmp(json_string_value(json_object_get(question, "path")), "locked") == 0)
        answer = json_pack("{s:s}", "error", "it is locked");
    else if (strcmp(json_string_value(json_object_get(question, "path")), "short") == 0)
        answer = json_pack("{s:O, s:i}", "values", values, "ttl", 250);
    else
        answer = json_pack("{s:O, s:i}", "values", values, "ttl", 9000);
    text = json_text(answer);
    service_link_write(fd, text, strlen(text), -1, NULL);
    free(text);
    json_decref(answer);
    json_decref(values);
    json_decref(question);
    buf_deinit(&body);
}

static void *run(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < f->count; i++) {
        int fd;

        do
            fd = accept(f->fd, NULL, NULL);
        while (fd < 0);
        serve(f, fd);
        close(fd);
    }
    return NULL;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->socket, sizeof(f->socket), "millrace-test-%d", (int)getpid());
    f->fd = service_link_listen(f->socket);
    assert_true(f->fd >= 0);
    props_init(&f->worker);
    props_set(&f->worker, "config.providers", "s, e");
    props_set(&f->worker, "config.providers.s.class", "org.example.Steward");
    props_set(&f->worker, "config.providers.e.class", "EnvVarConfigProvider");
    props_set(&f->worker, PROVIDER_SOCKET_KEY, f->socket);
    f->providers = providers_new(&f->worker, false, NULL, NULL);
    assert_non_null(f->providers);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    providers_free(&f->providers);
    props_deinit(&f->worker);
    close(f->fd);
    free(f);
    return 0;
}

static void begin(struct fixture *f, int count)
{
    f->count = count;
    assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

static int resolve(struct fixture *f, const struct props *in, struct props *out, int64_t *ttl_ms,
                   struct mr_error *err)
{
    struct provider_job job = {.in = in, .except = "left", .ttl_ms = ttl_ms};

    return providers_resolve(f->providers, &job, out, err);
}

static void one_question_a_path_gives_all_its_keys(void **state)
{
    struct fixture *f = *state;
    struct props in, out;
    int64_t ttl_ms = 0;

    props_init(&in);
    props_set(&in, "1", "${s:p:a} and ${s:q:a}");
    props_set(&in, "2", "${s:p:b}");
    props_set(&in, "3", "${s:p:none}, again ${s:p:none}");
    props_set(&in, "left", "${s:p:d}");
    begin(f, 2);
    assert_int_equal(resolve(f, &in, &out, &ttl_ms, NULL), 0);
    pthread_join(f->thread, NULL);
    assert_string_equal(props_get(&out, "1"), "p/a and q/a");
    assert_string_equal(props_get(&out, "2"), "p/b");
    assert_string_equal(props_get(&out, "3"), "${s:p:none}, again ${s:p:none}");
    assert_string_equal(props_get(&out, "left"), "${s:p:d}");
    assert_string_equal(f->asked,
                        "{\"service\":\"s\",\"path\":\"p\",\"keys\":[\"a\",\"b\",\"none\"]}\n"
                        "{\"service\":\"s\",\"path\":\"q\",\"keys\":[\"a\"]}\n");
    assert_int_equal(ttl_ms, 9000);
    props_deinit(&out);
    props_deinit(&in);
}

static void the_least_time_to_live_counts(void **state)
{
    struct fixture *f = *state;
    struct props in, out;
    int64_t ttl_ms = 0;

    props_init(&in);
    props_set(&in, "1", "${s:p:a} ${s:short:a} ${s:a}");
    begin(f, 3);
    assert_int_equal(resolve(f, &in, &out, &ttl_ms, NULL), 0);
    pthread_join(f->thread, NULL);
    assert_string_equal(props_get(&out, "1"), "p/a short/a /a");
    assert_int_equal(ttl_ms, 250);
    props_deinit(&out);
    props_set(&in, "1", "none of it");
    assert_int_equal(resolve(f, &in, &out, &ttl_ms, NULL), 0);
    assert_true(ttl_ms == INT64_MAX);
    props_deinit(&out);
    props_deinit(&in);
}

static void an_error_names_provider_and_path_and_no_value(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    struct props in, out;

    props_init(&in);
    props_set(&in, "1", "${s:p:a} ${s:locked:a}");
    begin(f, 2);
    assert_int_equal(resolve(f, &in, &out, NULL, &err), MR_ERR_IO);
    pthread_join(f->thread, NULL);
    assert_string_equal(err.text,
                        "Could not read from config provider s, path locked: it is locked");
    props_deinit(&in);
}

static void a_service_that_is_gone_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0}, start = {0};
    struct props in, out;

    props_init(&in);
    props_set(&in, "1", "${s:a}");
    close(f->fd);
    assert_null(providers_new(&f->worker, true, NULL, &start));
    assert_string_equal(start.text,
                        "config.providers.s.class: config provider s did not start: the "
                        "worker's services cannot be reached: Connection refused");
    assert_int_equal(resolve(f, &in, &out, NULL, &err), MR_ERR_IO);
    assert_string_equal(err.text, "Could not read from config provider s: the worker's services "
                                  "cannot be reached: Connection refused");
    f->fd = -1;
    props_deinit(&in);
}

/* Whoever listens takes no connection any more: a worker that is stopped, or has too many. */
static void a_connection_that_is_not_taken_ends_in_time(void **state)
{
    struct fixture *f = *state;
    struct service_link_question q = {
        .socket = f->socket, .body = "{}", .len = 2, .wait_ms = 300, .cancel_fd = eventfd(0, 0)};
    const uint64_t one = 1;
    struct mr_error err = {0};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int taken[1024], count = 0;
    struct buf answer;

    memcpy(to.sun_path + 1, f->socket, strlen(f->socket));
    do {
        taken[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(taken[count] >= 0 && count < 1023);
    } while (connect(taken[count++], (const struct sockaddr *)&to,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(f->socket))) ==
             0);
    assert_int_equal(errno, EAGAIN);
    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    assert_int_equal(service_link_ask(&q, &answer, &err), MR_ERR_TIMEOUT);
    assert_string_equal(err.text, "the worker's services are busy");
    q.wait_ms = 600000;
    assert_int_equal(write(q.cancel_fd, &one, sizeof(one)), sizeof(one));
    assert_int_equal(service_link_ask(&q, &answer, NULL), MR_ERR_CLOSED);
    buf_deinit(&answer);
    close(q.cancel_fd);
    while (count > 0)
        close(taken[--count]);
}

static void who_may_not_wait_does_not_ask(void **state)
{
    struct fixture *f = *state;
    char *seen = providers_glance(f->providers, "${s:a}");

    assert_string_equal(seen, "${s:a}");
    free(seen);
    assert_true(providers_refer(f->providers, "${s:a}", false, true));
    assert_false(providers_refer(f->providers, "${s:a}", true, false));
    assert_false(providers_refer(f->providers, "${t:a}", true, true));
}

static void on_foreign(void *arg, const char *name, const char *class_name)
{
    size_t len = strlen(arg);

    snprintf((char *)arg + len, 256 - len, "%s=%s;", name, class_name);
}

static void foreign_classes_are_told(void **state)
{
    struct fixture *f = *state;
    char told[256] = "";

    assert_true(providers_foreign(&f->worker, on_foreign, told));
    assert_string_equal(told, "s=org.example.Steward;");
    props_set(&f->worker, "config.providers", "e, nothing");
    assert_false(providers_foreign(&f->worker, on_foreign, told));
}

static void a_start_looks_whether_it_has_started(void **state)
{
    struct fixture *f = *state;

    begin(f, 1);
    providers_free(&f->providers);
    f->providers = providers_new(&f->worker, true, NULL, NULL);
    pthread_join(f->thread, NULL);
    assert_non_null(f->providers);
    assert_string_equal(f->asked, "{\"service\":\"s\",\"path\":\"\",\"keys\":[]}\n");
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_values_of_what_was_asked_or_an_error),
        test(one_question_a_path_gives_all_its_keys),
        test(the_least_time_to_live_counts),
        test(an_error_names_provider_and_path_and_no_value),
        test(a_service_that_is_gone_is_an_error),
        test(a_connection_that_is_not_taken_ends_in_time),
        test(who_may_not_wait_does_not_ask),
        test(foreign_classes_are_told),
        test(a_start_looks_whether_it_has_started),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
