/* SPDX-License-Identifier: Apache-2.0 */
/* services: processes that answer, die, hang and lie, which are this binary itself (fakes), and who
 * asks them. */
#include "base/clock.h"
#include "base/json.h"
#include "base/service_link.h"
#include "worker/supervisor/services.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define PATIENCE_MS 60000 /* bounds a fault, not the machine */
#define SHORT_MS 2000     /* where one hangs */

/* --- the processes ---------------------------------------------------------------------------- */

static void say(const char *text)
{
    if (service_link_write(SERVICE_LINK_FD, text, strlen(text), -1, NULL) != 0)
        _exit(9);
}

static void hang(void)
{
    for (;;)
        poll(NULL, 0, -1);
}

/* Its pid and settings, and what it was asked. */
static void act_echo(const struct buf *setup, const struct buf *question)
{
    json_t *object = json_pack("{s:i, s:s, s:s}", "pid", (int)getpid(), "setup", setup->data,
                               "question", question->data);
    char *text = json_text(object);

    say(text);
    free(text);
    json_decref(object);
}

static void act_crash(const struct buf *setup, const struct buf *question)
{
    (void)setup;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's is another death */
    if (strstr(question->data, "\"do\":\"crash\"") != NULL)
        raise(SIGSEGV);
    say("{\"well\":true}");
}

static void act_hang(const struct buf *setup, const struct buf *question)
{
    (void)setup;
    if (strstr(question->data, "\"do\":\"hang\"") != NULL)
        hang();
    say("{\"well\":true}");
}

/* Half an answer, then nothing. */
static void act_half(const struct buf *setup, const struct buf *question)
{
    (void)setup;
    (void)question;
    send(SERVICE_LINK_FD, "\x10\0\0\0half", 8, MSG_NOSIGNAL);
    hang();
}

static void act_huge(const struct buf *setup, const struct buf *question)
{
    (void)setup;
    (void)question;
    send(SERVICE_LINK_FD, "\xff\xff\xff\x7f", 4, MSG_NOSIGNAL);
    hang();
}

/* Two answers to one question. */
static void act_twice(const struct buf *setup, const struct buf *question)
{
    (void)setup;
    (void)question;
    say("{\"well\":true}");
    say("{\"well\":false}");
    hang();
}

static const struct {
    const char *name;
    void (*act)(const struct buf *setup, const struct buf *question);
} fakes[] = {
    {"echo", act_echo}, {"crash", act_crash}, {"hang", act_hang},
    {"half", act_half}, {"huge", act_huge},   {"twice", act_twice},
};
#define FAKES (sizeof(fakes) / sizeof(fakes[0]))

static void fake_main(const char *name)
{
    struct buf setup, question;
    ssize_t n;

    buf_init(&setup, SERVICE_LINK_SETUP_MAX);
    buf_reserve(&setup, 65536);
    n = read(STDIN_FILENO, setup.data, 65536);
    if (n < 0)
        _exit(9);
    setup.data[n] = '\0';
    for (;;) {
        buf_init(&question, SERVICE_LINK_QUESTION_MAX);
        if (service_link_read(SERVICE_LINK_FD, question.max, -1, &question, NULL) != 0)
            _exit(0);
        for (size_t i = 0; i < FAKES; i++)
            if (strcmp(fakes[i].name, name) == 0)
                fakes[i].act(&setup, &question);
        buf_deinit(&question);
    }
}

/* --- the tests -------------------------------------------------------------------------------- */

struct fixture {
    struct services *services;
    struct props params;
};

static int set_up_for(void **state, int64_t patience_ms)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct services_spec specs[FAKES];
    struct mr_error err = {0};

    props_init(&f->params);
    props_set(&f->params, "key", "a word");
    for (size_t i = 0; i < FAKES; i++)
        specs[i] = (struct services_spec){
            fakes[i].name, "config provider fake", "/a/library.so", "Fake", 7, &f->params};
    f->services =
        services_new(&(struct services_options){"/proc/self/exe", specs, FAKES, patience_ms}, &err);
    assert_non_null(f->services);
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_for(state, PATIENCE_MS);
}

static int set_up_short(void **state)
{
    return set_up_for(state, SHORT_MS);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    services_free(&f->services);
    props_deinit(&f->params);
    free(f);
    return 0;
}

/* The answer, parsed; NULL: there was none. */
static json_t *ask(const struct fixture *f, const char *body)
{
    const struct service_link_question q = {.socket = services_socket(f->services),
                                            .body = body,
                                            .len = strlen(body),
                                            .wait_ms = WAIT_MS};
    struct buf answer;
    json_t *object = NULL;

    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    if (service_link_ask(&q, &answer, NULL) == 0)
        object = json_parse(answer.data, answer.len, NULL);
    buf_deinit(&answer);
    return object;
}

static void assert_error(const struct fixture *f, const char *body, const char *part)
{
    json_t *object = ask(f, body);
    const char *text = json_string_value(json_object_get(object, "error"));

    if (text == NULL || strstr(text, part) == NULL)
        fail_msg("%s: \"%s\" is not in %s", body, part, text != NULL ? text : "no error");
    json_decref(object);
}

static void assert_well(const struct fixture *f, const char *body)
{
    json_t *object = ask(f, body);

    assert_true(json_is_true(json_object_get(object, "well")));
    json_decref(object);
}

static int pid_of(const struct fixture *f)
{
    json_t *object = ask(f, "{\"service\":\"echo\"}");
    int pid = (int)json_integer_value(json_object_get(object, "pid"));

    json_decref(object);
    return pid;
}

static void a_question_and_its_answer_go_through_as_they_are(void **state)
{
    struct fixture *f = *state;
    json_t *object = ask(f, "{\"service\":\"echo\",\"more\":[1,2]}");

    assert_string_equal(json_string_value(json_object_get(object, "question")),
                        "{\"service\":\"echo\",\"more\":[1,2]}");
    assert_string_equal(json_string_value(json_object_get(object, "setup")),
                        "{\"name\":\"echo\",\"library\":\"/a/library.so\",\"class\":\"Fake\","
                        "\"kind\":7,\"params\":{\"key\":\"a word\"}}");
    json_decref(object);
}

static void one_process_answers_one_question_after_the_other(void **state)
{
    int first = pid_of(*state);

    assert_true(first > 0);
    assert_int_equal(pid_of(*state), first);
}

static void one_that_crashes_is_named_and_the_next_question_meets_another(void **state)
{
    assert_well(*state, "{\"service\":\"crash\"}");
    assert_error(*state, "{\"service\":\"crash\",\"do\":\"crash\"}",
                 "was killed by signal 11 (SIGSEGV) when it was asked");
    assert_well(*state, "{\"service\":\"crash\"}");
}

/* On a busy machine a process may need longer than SHORT_MS to begin. */
static void await_well(const struct fixture *f, const char *body)
{
    int64_t before = clock_ms();
    json_t *object = ask(f, body);

    while (!json_is_true(json_object_get(object, "well")) && clock_ms() - before < WAIT_MS) {
        json_decref(object);
        object = ask(f, body);
    }
    assert_true(json_is_true(json_object_get(object, "well")));
    json_decref(object);
}

static void one_that_hangs_is_killed_and_the_next_question_meets_another(void **state)
{
    await_well(*state, "{\"service\":\"hang\"}");
    assert_error(*state, "{\"service\":\"hang\",\"do\":\"hang\"}",
                 "it gave no answer within 2000 ms (millrace.services.timeout.ms)");
    await_well(*state, "{\"service\":\"hang\"}");
    assert_error(*state, "{\"service\":\"half\"}", "it gave no answer within 2000 ms");
}

struct asking {
    const struct fixture *f;
    json_t *object;
};

static void *ask_hang(void *arg)
{
    struct asking *asking = arg;

    asking->object = ask(asking->f, "{\"service\":\"hang\",\"do\":\"hang\"}");
    return NULL;
}

static void one_that_hangs_holds_up_no_other(void **state)
{
    struct asking asking = {*state, NULL};
    pthread_t thread;

    for (int64_t before = clock_ms(); pid_of(*state) <= 0 && clock_ms() - before < WAIT_MS;)
        continue;
    assert_int_equal(pthread_create(&thread, NULL, ask_hang, &asking), 0);
    for (int i = 0; i < 20; i++)
        assert_true(pid_of(*state) > 0);
    pthread_join(thread, NULL);
    assert_non_null(json_object_get(asking.object, "error"));
    json_decref(asking.object);
}

static void an_answer_that_breaks_the_rules_ends_its_process(void **state)
{
    assert_error(*state, "{\"service\":\"huge\"}", "it said what it was not asked");
    assert_well(*state, "{\"service\":\"twice\"}");
    assert_true(pid_of(*state) > 0);
}

static void questions_that_are_none_get_an_error_or_the_end_of_the_connection(void **state)
{
    static const char *const bodies[] = {"{\"service\":\"nobody\"}", "{}", "[]", "{", "\xff"};

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        assert_error(*state, bodies[i], "the worker has no service of this name");
    assert_true(pid_of(*state) > 0);
}

static void callers_that_go_away_disturb_nobody(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 50; i++) {
        const char *body = "{\"service\":\"hang\",\"do\":\"nothing\"}";
        const struct service_link_question q = {.socket = services_socket(f->services),
                                                .body = body,
                                                .len = strlen(body),
                                                .wait_ms = 1};
        struct buf answer;

        buf_init(&answer, 1024);
        service_link_ask(&q, &answer, NULL);
        buf_deinit(&answer);
    }
    assert_well(f, "{\"service\":\"hang\"}");
    assert_true(pid_of(f) > 0);
}

static void too_long_a_question_is_not_read(void **state)
{
    struct fixture *f = *state;
    size_t len = SERVICE_LINK_QUESTION_MAX + 1;
    char *body = calloc(1, len);
    const struct service_link_question q = {
        .socket = services_socket(f->services), .body = body, .len = len, .wait_ms = WAIT_MS};
    struct buf answer;

    buf_init(&answer, 1024);
    assert_int_not_equal(service_link_ask(&q, &answer, NULL), 0);
    buf_deinit(&answer);
    free(body);
    assert_true(pid_of(f) > 0);
}

static void processes_end_with_their_worker(void **state)
{
    struct fixture *f = *state;
    int pid = pid_of(f);

    assert_int_equal(kill(pid, 0), 0);
    services_free(&f->services);
    assert_int_equal(kill(pid, 0), -1);
}

static void one_that_died_while_idle_is_replaced(void **state)
{
    struct fixture *f = *state;
    int pid = pid_of(f), next;

    assert_int_equal(kill(pid, SIGKILL), 0);
    for (int64_t before = clock_ms(); kill(pid, 0) == 0 && clock_ms() - before < WAIT_MS;)
        poll(NULL, 0, 5);
    next = pid_of(f);
    assert_true(next > 0 && next != pid);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define test_short(name) cmocka_unit_test_setup_teardown(name, set_up_short, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(a_question_and_its_answer_go_through_as_they_are),
        test(one_process_answers_one_question_after_the_other),
        test(one_that_crashes_is_named_and_the_next_question_meets_another),
        test_short(one_that_hangs_is_killed_and_the_next_question_meets_another),
        test_short(one_that_hangs_holds_up_no_other),
        test(an_answer_that_breaks_the_rules_ends_its_process),
        test(questions_that_are_none_get_an_error_or_the_end_of_the_connection),
        test(callers_that_go_away_disturb_nobody),
        test(too_long_a_question_is_not_read),
        test(processes_end_with_their_worker),
        test(one_that_died_while_idle_is_replaced),
    };

    if (argc == 3 && strcmp(argv[1], "service") == 0)
        fake_main(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
