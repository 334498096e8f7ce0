/* SPDX-License-Identifier: Apache-2.0 */
/* service: the processes of a config provider and a REST filter that do as they are told
 * (tests/plugins/steward.c, warden.c). Run as a process of its own. */
#include "base/clock.h"
#include "base/json.h"
#include "base/service_link.h"
#include "host/host.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STEWARD TEST_BUILD "/tests/plugins/steward.so"
#define WAIT_MS 20000
#define SETUP(params) \
    "{\"name\":\"s\",\"library\":\"" STEWARD \
    "\",\"class\":\"Steward\",\"kind\":7,\"params\":{" params "}}"

struct running {
    pid_t pid;
    int fd;
    int said; /* a file of what it wrote to stderr */
};

static struct running begin(const char *setup)
{
    int pair[2], in = memfd_create("setup", MFD_CLOEXEC);
    struct running r;

    assert_int_equal(write(in, setup, strlen(setup)), strlen(setup));
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    r.said = memfd_create("said", MFD_CLOEXEC);
    r.pid = fork();
    if (r.pid == 0) {
        char program[] = "millrace", verb[] = "service", name[] = "s";
        char *argv[] = {program, verb, name, NULL};
        int end = fcntl(pair[1], F_DUPFD, 16);

        dup2(in, 0);
        dup2(r.said, 2);
        dup2(end, SERVICE_LINK_FD);
        close(end);
        execv("/proc/self/exe", argv);
        _exit(99);
    }
    close(pair[1]);
    close(in);
    r.fd = pair[0];
    return r;
}

static int end(struct running *r)
{
    int status;

    close(r->fd);
    close(r->said);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    return status;
}

static bool said(const struct running *r, const char *text)
{
    char all[4096] = "";

    assert_true(pread(r->said, all, sizeof(all) - 1, 0) >= 0);
    return strstr(all, text) != NULL;
}

/* Valid until the next. "": the process gave none, and has gone. */
static const char *ask(const struct running *r, const char *question)
{
    static struct buf answer;

    buf_deinit(&answer);
    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    if (service_link_write(r->fd, question, strlen(question), clock_ms() + WAIT_MS, NULL) != 0 ||
        service_link_read(r->fd, answer.max, clock_ms() + WAIT_MS, &answer, NULL) != 0)
        return "";
    return answer.data;
}

#define GET(path, keys) "{\"service\":\"s\",\"path\":\"" path "\",\"keys\":[" keys "]}"

static void values_are_given_for_the_keys_that_have_one(void **state)
{
    struct running r = begin(SETUP("\"password\":\"p w\",\"unknown\":\"x\""));

    (void)state;
    assert_string_equal(ask(&r, GET("", "\"password\",\"other\"")),
                        "{\"values\":{\"password\":\"p w\"}}");
    assert_true(said(&r, "unknown key config.providers.s.param.unknown"));
    assert_string_equal(ask(&r, GET("a path", "\"other\"")), "{\"values\":{}}");
    assert_string_equal(ask(&r, GET("crash", "")), "{\"values\":{}}");
    assert_int_equal(end(&r), 0);
}

static void a_time_to_live_goes_with_them(void **state)
{
    struct running r = begin(SETUP("\"ttl.ms\":\"1500\",\"tl.ms\":\"1\""));

    (void)state;
    assert_string_equal(ask(&r, GET("", "\"password\"")),
                        "{\"values\":{\"password\":\"\"},\"ttl\":1500}");
    assert_true(said(&r, "unknown key config.providers.s.param.tl.ms: did you mean "
                         "config.providers.s.param.ttl.ms?"));
    assert_false(said(&r, "unknown key config.providers.s.param.ttl.ms"));
    end(&r);
    r = begin(SETUP("\"ttl.ms\":\"-1\""));
    assert_string_equal(ask(&r, GET("", "\"password\"")),
                        "{\"error\":\"its time to live of -1 ms is not possible\"}");
    end(&r);
}

static void mistakes_of_the_plugin_are_told_and_it_goes_on(void **state)
{
    static const char *const cases[][2] = {
        {GET("nul", "\"k\""),
         "{\"error\":\"its value for key k is no UTF-8 text, or holds a NUL\"}"},
        {GET("utf8", "\"k\""),
         "{\"error\":\"its value for key k is no UTF-8 text, or holds a NUL\"}"},
        {GET("huge", "\"k\""),
         "{\"error\":\"its value for key k has 1073741824 bytes, where 1048576 are possible\"}"},
        {GET("late", "\"k\""), "{\"error\":\"it gave a value for key number 1000, of 1\"}"},
        {GET("refuse", "\"k\""), "{\"error\":\"the cellar is\\nlocked\"}"},
        {GET("silent", "\"k\""), "{\"error\":\"it failed with IO and no text\"}"},
        {"{}", "{\"error\":\"the question names no path or no keys\"}"},
        {"{\"path\":\"x\",\"keys\":[1]}", "{\"error\":\"the question names no path or no keys\"}"},
        {"[", "{\"error\":\"the question is no JSON object\"}"},
        {GET("", "\"k\""), "{\"values\":{}}"},
    };
    struct running r = begin(SETUP(""));

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(ask(&r, cases[i][0]), cases[i][1]);
    end(&r);
}

static void a_start_that_fails_is_the_answer_each_time(void **state)
{
    struct running r = begin(SETUP("\"fail\":\"no cellar\""));

    (void)state;
    assert_string_equal(ask(&r, GET("", "")), "{\"error\":\"no cellar\"}");
    assert_string_equal(ask(&r, GET("", "\"k\"")), "{\"error\":\"no cellar\"}");
    assert_int_equal(end(&r), 0);
    r = begin(SETUP("\"ttl.ms\":\"soon\""));
    assert_non_null(strstr(ask(&r, GET("", "")), "Invalid value soon for configuration "
                                                 "config.providers.s.param.ttl.ms: Not a number"));
    end(&r);
    r = begin("{\"name\":\"s\",\"library\":\"" STEWARD
              "\",\"class\":\"Butler\",\"kind\":7,\"params\":{}}");
    assert_non_null(strstr(ask(&r, GET("", "")), "holds no config provider called Butler"));
    end(&r);
}

static void a_setup_that_is_none_ends_it(void **state)
{
    static const char *const setups[] = {"", "[]", "{\"name\":\"s\"}",
                                         "{\"name\":\"s\",\"library\":\"x\",\"class\":\"x\","
                                         "\"kind\":1,\"params\":{}}"};

    (void)state;
    for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        struct running r = begin(setups[i]);

        assert_string_equal(ask(&r, GET("", "")), "");
        assert_int_equal(end(&r), 70 << 8);
    }
}

static void it_dies_as_the_plugin_does(void **state)
{
    struct running r = begin(SETUP(""));

    (void)state;
    assert_string_equal(ask(&r, GET("exit", "\"k\"")), "");
    assert_int_equal(end(&r), 3 << 8);
    r = begin(SETUP(""));
    assert_string_equal(ask(&r, GET("crash", "\"k\"")), "");
    assert_int_equal(end(&r) & 0x7f, SIGSEGV);
}

/* --- REST filters ----------------------------------------------------------------------------- */

#define GUARDED \
    "{\"name\":\"f\",\"library\":\"" TEST_BUILD "/tests/plugins/warden.so\",\"class\":\"Warden\"," \
    "\"kind\":8,\"params\":{\"badge\":\"silver\"}}"
#define REQUEST(method, headers) \
    "{\"service\":\"f\",\"method\":\"" method "\",\"target\":\"/a?b\",\"client\":\"::1\"," \
    "\"headers\":[" headers "]}"

static void a_filter_admits_or_refuses_and_its_mistakes_admit_nothing(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "{\"started\":true}"},
        {REQUEST("GET", ""), "{\"admit\":true}"},
        {REQUEST("PUT", "[\"x-BADGE\",\"silver\"]"), "{\"admit\":true}"},
        {REQUEST("PUT", "[\"X-Badge\",\"tin\"],[\"X-Badge\",\"silver\"]"),
         "{\"status\":403,\"text\":\"Without a badge nothing is changed\"}"},
        {REQUEST("GET", "[\"X-Warden\",\"teapot\"]"), "{\"status\":418,\"text\":\"::1 GET /a?b\"}"},
        {REQUEST("GET", "[\"X-Warden\",\"odd\"]"),
         "{\"error\":\"it refused with status 200, which is no error\"}"},
        {REQUEST("GET", "[\"X-Warden\",\"fail\"]"), "{\"error\":\"the guards are away\"}"},
        {REQUEST("GET", "[\"X-Warden\",\"silent\"]"),
         "{\"error\":\"it failed with -10 and no text\"}"},
        {REQUEST("GET", "[\"X-Warden\",\"positive\"]"),
         "{\"error\":\"it failed with 1 and no text\"}"},
        {REQUEST("GET", "1,[],[2],[\"X-Warden\"],[\"X-Warden\",3]"), "{\"admit\":true}"},
        {"{\"method\":1}", "{\"error\":\"the question describes no request\"}"},
        {"{\"method\":\"GET\",\"target\":\"/\",\"client\":\"\",\"headers\":{}}",
         "{\"error\":\"the question describes no request\"}"},
    };
    struct running r = begin(GUARDED);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(ask(&r, cases[i][0]), cases[i][1]);
    assert_int_equal(end(&r), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_given_for_the_keys_that_have_one),
        cmocka_unit_test(a_time_to_live_goes_with_them),
        cmocka_unit_test(mistakes_of_the_plugin_are_told_and_it_goes_on),
        cmocka_unit_test(a_start_that_fails_is_the_answer_each_time),
        cmocka_unit_test(a_setup_that_is_none_ends_it),
        cmocka_unit_test(it_dies_as_the_plugin_does),
        cmocka_unit_test(a_filter_admits_or_refuses_and_its_mistakes_admit_nothing),
    };

    if (argc > 1 && strcmp(argv[1], "service") == 0)
        return service_main(argc - 1, argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
