/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_check: what comes of a question, whatever the process does that asks the class. That
 * process is this binary again, and behaves as the class in the question says. */
#include "base/clock.h"
#include "link/check_format.h"
#include "worker/supervisor/plugin_check.h"
#include "worker/supervisor/spawn.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 60000 /* bounds a fault, not the machine */

/* --- the process ------------------------------------------------------------------------------ */

static void say(const char *line)
{
    dprintf(STDOUT_FILENO, "%s\n", line);
}

static void behave(const char *class_name)
{
    if (strcmp(class_name, "Early") == 0)
        _exit(7);
    if (strcmp(class_name, "Nonsense") == 0)
        say("hello");
    if (strcmp(class_name, "Stranger") == 0)
        say("{\"stage\":0,\"key\":\"c\"}");
    if (strcmp(class_name, "Far") == 0)
        say("{\"stage\":2,\"key\":\"a\"}");
    if (strcmp(class_name, "Unbegun") == 0)
        say("{\"stage\":0,\"key\":\"a\",\"error\":\"no\"}");
    say("{\"stage\":0,\"key\":\"a\"}\n{\"stage\":0,\"key\":\"b\"}");
    if (strcmp(class_name, "Strict") == 0)
        say("{\"stage\":0,\"key\":\"b\",\"error\":\"It is\\nwrong\"}");
    if (strcmp(class_name, "Crash") == 0)
        raise(SIGSEGV);
    if (strcmp(class_name, "Exit") == 0)
        _exit(5);
    if (strcmp(class_name, "Silent") == 0)
        _exit(0);
    while (strcmp(class_name, "Hang") == 0)
        pause();
    while (strcmp(class_name, "Flood") == 0)
        say("{\"stage\":0,\"key\":\"b\"}");
    if (strcmp(class_name, "Fork") == 0 && fork() == 0)
        for (;;)
            pause(); /* keeps the pipe */
    say("{\"end\":true}");
    if (strcmp(class_name, "More") == 0)
        say("{\"end\":true}");
    _exit(0);
}

static void be_checker(void)
{
    struct rlimit no_core = {0, 0};
    json_t *question = json_loadf(stdin, 0, NULL);

    setrlimit(RLIMIT_CORE, &no_core);
    behave(json_string_value(json_object_get(json_array_get(question, 0), "class")));
}

/* --- the fixture ------------------------------------------------------------------------------ */

struct fixture {
    struct loop *loop;
    struct plugin_check *pc;
    char got[4096];
    int answers, wanted, refused;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->loop = loop_new(NULL);
    f->pc = plugin_check_new(f->loop, "/proc/self/exe", PATIENCE_MS);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    plugin_check_free(&f->pc);
    loop_free(&f->loop);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    free(f);
    return 0;
}

static void on_done(void *arg, json_t *problems)
{
    struct fixture *f = arg;
    char *text = problems != NULL ? json_text(problems) : strdup("called off");

    snprintf(f->got, sizeof(f->got), "%s", text);
    f->refused += strstr(text, "wait already") != NULL;
    free(text);
    json_decref(problems);
    if (++f->answers == f->wanted)
        loop_stop(f->loop);
}

static void begin_of(struct fixture *f, const char *library, const char *class_name)
{
    plugin_check_ask(f->pc,
                     json_pack("[{s:s, s:s, s:i, s:{}, s:[s, s]}, {s:s, s:[s]}]", "library",
                               library, "class", class_name, "kind", 4, "config", "keys", "a", "b",
                               "library", "/p/all.so", "keys", "a"),
                     on_done, f);
}

static void begin(struct fixture *f, const char *class_name)
{
    begin_of(f, "/p/x.so", class_name);
}

static void expect(struct fixture *f, const char *class_name, const char *want)
{
    f->answers = 0;
    f->wanted = 1;
    begin(f, class_name);
    loop_run(f->loop);
    assert_string_equal(f->got, want);
}

static void what_a_class_says_is_told(void **state)
{
    expect(*state, "Good", "[]");
    expect(*state, "Strict", "[{\"stage\":0,\"key\":\"b\",\"error\":\"It is\\nwrong\"}]");
}

static void ask_at_length(struct fixture *f, size_t bytes, const char *want)
{
    char *text = malloc(bytes + 1);

    memset(text, 'x', bytes);
    text[bytes] = '\0';
    f->answers = 0;
    f->wanted = 1;
    plugin_check_ask(
        f->pc,
        json_pack("[{s:s, s:[s, s], s:s}]", "class", "Good", "keys", "a", "b", "offsets", text),
        on_done, f);
    free(text);
    if (f->answers == 0)
        loop_run(f->loop);
    assert_string_equal(f->got, want);
}

static void a_question_may_be_long_and_is_told_when_too_long(void **state)
{
    ask_at_length(*state, (size_t)32 << 20, "[]");
    ask_at_length(*state, CHECK_FORMAT_QUESTION_MAX,
                  "[{\"stage\":0,\"key\":\"a\",\"broken\":\"the question about it takes more than "
                  "64 MiB, or more memory than there is\"}]");
}

static void a_broken_class_is_a_problem_of_the_key_that_it_was_at(void **state)
{
    expect(*state, "Crash",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"its class was killed by signal 11 "
           "(SIGSEGV)\"}]");
    expect(*state, "Exit",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"its class ended the process with code 5\"}]");
    expect(*state, "Silent",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"its class ended the process with code 0\"}]");
    expect(*state, "Early",
           "[{\"stage\":0,\"key\":\"a\",\"broken\":\"its class ended the process with code 7\"}]");
}

static void nonsense_is_not_believed(void **state)
{
    static const char *const liars[] = {"Nonsense", "Stranger", "Far", "Unbegun"};

    for (size_t i = 0; i < 4; i++)
        expect(*state, liars[i],
               "[{\"stage\":0,\"key\":\"a\",\"broken\":\"the process that asked its class printed "
               "what it should not\"}]");
    expect(*state, "More",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"the process that asked its class printed "
           "what it should not\"}]");
    expect(*state, "Flood",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"the process that asked its class printed "
           "what it should not\"}]");
}

static void a_process_that_is_left_behind_delays_nothing(void **state)
{
    expect(*state, "Fork", "[]");
}

static void what_hangs_is_killed_in_time(void **state)
{
    struct fixture *f = *state;

    plugin_check_free(&f->pc);
    f->pc = plugin_check_new(f->loop, "/proc/self/exe", 1500);
    expect(f, "Hang",
           "[{\"stage\":0,\"key\":\"b\",\"broken\":\"its class took longer than 1.5 s\"}]");
}

static size_t children(void)
{
    FILE *in = fopen("/proc/thread-self/children", "re");
    size_t count = 0;
    int pid;

    assert_non_null(in);
    while (fscanf(in, "%d", &pid) == 1)
        count++;
    fclose(in);
    return count;
}

/* Their classes share a library with the one that is well, where they are not stuck. */
static void classes_that_hang_do_not_hold_up_others(void **state)
{
    struct fixture *f = *state;
    int64_t from = clock_ms();

    f->wanted = 1;
    for (int i = 0; i < 40; i++)
        begin(f, "Hang");
    begin_of(f, "/p/y.so", "Good");
    loop_run(f->loop);
    assert_string_equal(f->got, "[]");
    assert_true(clock_ms() - from < PATIENCE_MS / 4);
    assert_true(children() <= 8 + 4);
}

/* Also when nobody listens any more: what hangs must not add up behind itself. */
static void what_waits_behind_classes_that_hang_is_told_in_time(void **state)
{
    struct fixture *f = *state, late = {.loop = f->loop, .wanted = 1};

    plugin_check_free(&f->pc);
    f->pc = plugin_check_new(f->loop, "/proc/self/exe", 3000);
    for (int i = 0; i < 40; i++)
        begin(f, "Hang");
    late.pc = f->pc;
    begin(&late, "Good");
    loop_run(f->loop);
    assert_string_equal(late.got, "[{\"stage\":0,\"key\":\"a\",\"broken\":\"others that take long "
                                  "kept it from being asked for 3 s\"}]");
    plugin_check_free(&f->pc);
}

static void questions_that_are_held_leave_room_for_others(void **state)
{
    struct fixture *f = *state;

    f->wanted = 1;
    for (int i = 0; i < 250; i++)
        begin(f, "Hang");
    begin_of(f, "/p/y.so", "Good");
    loop_run(f->loop);
    assert_string_equal(f->got, "[]");
    begin(f, "Good");
    assert_string_equal(f->got, "[{\"stage\":0,\"key\":\"a\",\"broken\":\"more than 32 questions "
                                "wait already for others that hang in its library\"}]");
    f->answers = f->refused = 0;
    f->wanted = 40;
    for (int i = 0; i < 40; i++)
        begin_of(f, "/p/y.so", "Good");
    loop_run(f->loop);
    assert_int_equal(f->refused, 0);
}

static void many_questions_are_all_answered(void **state)
{
    struct fixture *f = *state;

    f->wanted = 20;
    for (int i = 0; i < 20; i++)
        begin(f, i % 2 == 0 ? "Good" : "Crash");
    loop_run(f->loop);
    assert_int_equal(f->answers, 20);
}

static void questions_beyond_a_bound_are_answered_at_once(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 260; i++)
        begin(f, "Hang");
    assert_int_equal(f->answers, 0);
    begin(f, "Good");
    assert_int_equal(f->answers, 1);
    assert_string_equal(f->got,
                        "[{\"stage\":0,\"key\":\"a\",\"broken\":\"more than 256 questions wait "
                        "already\"}]");
    plugin_check_free(&f->pc);
    assert_int_equal(f->answers, 261);
    assert_string_equal(f->got, "called off");
}

static void a_binary_that_is_not_there_is_told(void **state)
{
    struct fixture *f = *state;

    plugin_check_free(&f->pc);
    f->pc = plugin_check_new(f->loop, "/no/such/binary", PATIENCE_MS);
    begin(f, "Good");
    assert_int_equal(f->answers, 1);
    assert_string_equal(f->got,
                        "[{\"stage\":0,\"key\":\"a\",\"broken\":\"no process that would ask its "
                        "class: No such file or directory\"}]");
}

#define check_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        check_test(what_a_class_says_is_told),
        check_test(a_question_may_be_long_and_is_told_when_too_long),
        check_test(a_broken_class_is_a_problem_of_the_key_that_it_was_at),
        check_test(nonsense_is_not_believed),
        check_test(a_process_that_is_left_behind_delays_nothing),
        check_test(what_hangs_is_killed_in_time),
        check_test(classes_that_hang_do_not_hold_up_others),
        check_test(what_waits_behind_classes_that_hang_is_told_in_time),
        check_test(questions_that_are_held_leave_room_for_others),
        check_test(many_questions_are_all_answered),
        check_test(questions_beyond_a_bound_are_answered_at_once),
        check_test(a_binary_that_is_not_there_is_told),
    };

    if (argc > 1 && strcmp(argv[1], "check") == 0)
        be_checker();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
