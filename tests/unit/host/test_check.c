/* SPDX-License-Identifier: Apache-2.0 */
/* check: what the process that asks plugin code prints, with a plugin that does as it is told
 * (tests/plugins/picky.c). Run as a process of its own. */
#include "base/json.h"
#include "host/host.h"
#include "link/check_format.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PICKY TEST_BUILD "/tests/plugins/picky.so"
#define BEGIN(key) "{\"stage\":0,\"key\":\"" key "\"}\n"
#define END "{\"end\":true}\n"

static pid_t run(const char *question, int *out)
{
    int fds[2], in = memfd_create("question", MFD_CLOEXEC);
    pid_t pid;

    assert_int_equal(write(in, question, strlen(question)), strlen(question));
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        char program[] = "millrace", verb[] = "check";
        char *argv[] = {program, verb, NULL};

        dup2(in, 0);
        dup2(fds[1], 1);
        dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 2);
        execv("/proc/self/exe", argv);
        _exit(99);
    }
    close(fds[1]);
    close(in);
    *out = fds[0];
    return pid;
}

/* The process prints this and ends so. */
static void expect(const char *question, const char *want, int status)
{
    char got[8192];
    size_t len = 0;
    ssize_t n;
    int out, end;
    pid_t pid = run(question, &out);

    while (len < sizeof(got) - 1 && (n = read(out, got + len, sizeof(got) - 1 - len)) > 0)
        len += (size_t)n;
    got[len] = '\0';
    close(out);
    assert_int_equal(waitpid(pid, &end, 0), pid);
    assert_string_equal(got, want);
    assert_int_equal(end, status);
}

#define ASK(config, keys) \
    "[{\"library\":\"" PICKY "\",\"class\":\"Picky\",\"kind\":4,\"prefix\":\"transforms.a.\"," \
    "\"config\":{" config "},\"keys\":[" keys "]}]"

static void a_class_is_asked_of_each_key(void **state)
{
    (void)state;
    expect(ASK("", "\"mood\",\"number\""), BEGIN("mood") BEGIN("mood") BEGIN("number") END, 0);
    expect(ASK("\"mood\":\"bad\",\"taste\":\"sour\"", "\"mood\",\"taste\""),
           BEGIN("mood") BEGIN(
               "mood") "{\"stage\":0,\"key\":\"mood\",\"error\":\"Invalid value bad for "
                       "configuration mood: it is\\nbad\"}\n" BEGIN(
                           "taste") "{\"stage\":0,\"key\":\"taste\",\"error\":\"Invalid value sour "
                                    "for configuration taste, with mood bad\"}\n" END,
           0);
    expect(ASK("\"mood\":\"mute\"", "\"mood\""),
           BEGIN("mood") BEGIN(
               "mood") "{\"stage\":0,\"key\":\"mood\",\"error\":\"check failed with CONFIG and "
                       "no text\"}\n" END,
           0);
}

#define ASK_CONNECTOR(class, kind, config, keys) \
    "[{\"library\":\"" PICKY "\",\"class\":\"" class "\",\"kind\":" kind \
                                                     ",\"prefix\":\"\",\"config\":{" config \
                                                     "},\"keys\":[" keys "]}]"

static void a_connector_is_asked_of_each_key_and_sees_them_all(void **state)
{
    (void)state;
    expect(ASK_CONNECTOR("PickyChecked", "1", "\"name\":\"c\",\"mood\":\"bad\",\"taste\":\"sour\"",
                         "\"mood\",\"taste\",\"number\""),
           BEGIN("mood") BEGIN(
               "mood") "{\"stage\":0,\"key\":\"mood\",\"error\":\"Invalid value bad for "
                       "configuration mood: it is\\nbad\"}\n" BEGIN(
                           "taste") "{\"stage\":0,\"key\":\"taste\",\"error\":\"Invalid value sour "
                                    "for configuration taste, with mood bad\"}\n" BEGIN("number")
                                        END,
           0);
    expect(ASK_CONNECTOR("PickyCheckedSink", "2", "\"mood\":\"crash\"", "\"mood\""),
           BEGIN("mood") BEGIN("mood"), SIGSEGV);
    expect(ASK_CONNECTOR("PickySilent", "1", "\"mood\":\"bad\"", "\"mood\""),
           BEGIN("mood") BEGIN("mood") END, 0);
}

/* What can't be read is no reason not to ask about the rest. */
static void values_that_are_wrong_count_as_not_set(void **state)
{
    (void)state;
    expect(ASK("\"number\":\"x\",\"taste\":\"sour\"", "\"taste\""),
           BEGIN("taste")
               BEGIN("taste") "{\"stage\":0,\"key\":\"taste\",\"error\":\"Invalid value sour for "
                              "configuration taste, with mood good\"}\n" END,
           0);
}

static void what_plugin_code_does_is_laid_at_its_key_s_door(void **state)
{
    (void)state;
    expect(ASK("\"mood\":\"exit\"", "\"taste\",\"mood\""),
           BEGIN("taste") BEGIN("taste") BEGIN("mood"), 3 << 8);
    expect(ASK("\"mood\":\"crash\"", "\"mood\""), BEGIN("mood") BEGIN("mood"), SIGSEGV);
    expect(ASK("\"mood\":\"print\"", "\"mood\""), BEGIN("mood") BEGIN("mood") END, 0);
}

static void a_library_that_is_not_there_is_told(void **state)
{
    (void)state;
    expect(
        "[{\"library\":\"/no/such.so\",\"class\":\"Picky\",\"kind\":4,\"config\":{},"
        "\"keys\":[\"mood\"]}]",
        BEGIN("mood") "{\"stage\":0,\"key\":\"mood\",\"error\":\"/no/such.so: cannot be read: No "
                      "such file or directory\"}\n" END,
        0);
}

#define OFFSETS(class, kind, mood, offsets) \
    "[{\"library\":\"" PICKY \
    "\",\"class\":\"" class "\",\"kind\":" kind ",\"config\":{\"mood\":\"" mood \
                            "\"},\"keys\":[\"offsets\"],\"offsets\":[" offsets "]}]"
#define REFUSED(text, code) \
    BEGIN("offsets") \
    "{\"stage\":0,\"key\":\"offsets\",\"error\":\"" text "\",\"code\":" code "}\n" END

static void a_connector_has_its_say_in_offsets(void **state)
{
    (void)state;
    expect(OFFSETS("PickySource", "1", "good", "[{\"name\":\"a\"},null]"), BEGIN("offsets") END, 0);
    expect(
        OFFSETS("PickySource", "1", "tell",
                "[{\"name\":\"a\"},{\"next\":7}],[null,{\"next\":\"8\"}],[{\"name\":\"b\"},null]"),
        REFUSED("a=7, ?=-1, b=-1", "-2"), 0);
    expect(OFFSETS("PickySink", "2", "tell", "[\"t\",3,9],[\"u\",0,-1]"),
           REFUSED("2, the first t-3=9", "-2"), 0);
    expect(OFFSETS("PickySource", "1", "deny", ""),
           REFUSED("alter_offsets failed with UNSUPPORTED and no text", "-5"), 0);
    expect(OFFSETS("PickySilent", "1", "good", ""), REFUSED("it has no alter_offsets", "-6"), 0);
    expect(OFFSETS("PickySource", "1", "crash", ""), BEGIN("offsets"), SIGSEGV);
}

static void a_reset_says_that_it_is_one(void **state)
{
    (void)state;
    expect("[{\"library\":\"" PICKY "\",\"class\":\"PickySink\",\"kind\":2,"
           "\"config\":{\"mood\":\"tell\"},\"keys\":[\"offsets\"],"
           "\"offsets\":[[\"t\",3,-1]],\"all\":true}]",
           REFUSED("1, the first t-3=-1, all", "-2"), 0);
}

/* As is a reset of all that a connector has stored. */
static void a_question_may_be_as_long_as_the_worker_makes_it(void **state)
{
    static const char head[] = "[{\"library\":\"" PICKY "\",\"class\":\"PickySource\",\"kind\":1,"
                               "\"config\":{\"mood\":\"good\"},\"keys\":[\"offsets\"],"
                               "\"offsets\":[[{\"name\":\"";
    static const char tail[] = "\"},null]]}]";
    char *question = malloc(CHECK_FORMAT_QUESTION_MAX + 1);

    (void)state;
    assert_non_null(question);
    memset(question, 'x', CHECK_FORMAT_QUESTION_MAX);
    memcpy(question, head, strlen(head));
    memcpy(question + CHECK_FORMAT_QUESTION_MAX - strlen(tail), tail, sizeof(tail));
    expect(question, BEGIN("offsets") END, 0);
    free(question);
}

#define MOOD_FROM(worker) \
    "[{\"library\":\"" PICKY "\",\"class\":\"PickySink\",\"kind\":2,\"worker\":{" worker \
    "},\"config\":{\"mood\":\"${env:MOOD}\"},\"keys\":[\"offsets\"],\"offsets\":[[\"t\",3,9]]}]"

static void a_connector_gets_what_config_providers_have(void **state)
{
    (void)state;
    setenv("MOOD", "tell", 1);
    expect(MOOD_FROM("\"config.providers\":\"env\",\"config.providers.env.class\":"
                     "\"org.apache.kafka.common.config.provider.EnvVarConfigProvider\""),
           REFUSED("1, the first t-3=9", "-2"), 0);
    expect(MOOD_FROM(""), BEGIN("offsets") END, 0); /* a mood that it does not know */
}

static void offsets_of_another_form_reach_no_connector(void **state)
{
    static const char *const bad[] = {"7", "[1,null]", "[null,[]]"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char question[512];

        snprintf(question, sizeof(question), OFFSETS("PickySource", "1", "tell", "%s"), bad[i]);
        expect(question, REFUSED("the worker sent offsets of another form", "-15"), 0);
    }
    expect(OFFSETS("PickySink", "2", "tell", "[null,0,0]"),
           REFUSED("the worker sent offsets of another form", "-15"), 0);
}

static void questions_that_are_none_are_usage(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "[{\"library\":\"/x.so\",\"class\":\"P\",\"kind\":4,\"config\":{},\"keys\":[]}]",
        "[{\"library\":\"/x.so\",\"class\":\"P\",\"kind\":3,\"config\":{},\"keys\":[\"a\"]}]",
        "[{\"library\":\"/x.so\",\"class\":\"P\",\"kind\":1,\"config\":{},\"keys\":[\"a\"],"
        "\"offsets\":7}]",
        "[{\"library\":\"/x.so\",\"class\":\"P\",\"kind\":4,\"config\":{},\"keys\":[\"a\"],"
        "\"offsets\":[]}]"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(bad[i], "", 1 << 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_is_asked_of_each_key),
        cmocka_unit_test(a_connector_is_asked_of_each_key_and_sees_them_all),
        cmocka_unit_test(values_that_are_wrong_count_as_not_set),
        cmocka_unit_test(what_plugin_code_does_is_laid_at_its_key_s_door),
        cmocka_unit_test(a_library_that_is_not_there_is_told),
        cmocka_unit_test(a_connector_has_its_say_in_offsets),
        cmocka_unit_test(a_reset_says_that_it_is_one),
        cmocka_unit_test(a_question_may_be_as_long_as_the_worker_makes_it),
        cmocka_unit_test(a_connector_gets_what_config_providers_have),
        cmocka_unit_test(offsets_of_another_form_reach_no_connector),
        cmocka_unit_test(questions_that_are_none_are_usage),
    };

    if (argc > 1 && strcmp(argv[1], "check") == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        return check_main(argc - 1, argv + 1);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
