/* SPDX-License-Identifier: Apache-2.0 */
/* server: real HTTP over sockets against a herder that the test plays; every operation, and what
 * clients do wrong. */
#include "server_rig.h"
#include "worker/peer.h"
#include "worker/rest/listener.h"
#include "worker/rest/request_json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/resource.h>

/* --- operations ------------------------------------------------------------------------------- */

static void reads_answer_from_the_herder(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/", NULL), 200,
           "{\"version\":\"4.3.1\",\"commit\":\"0\",\"kafka_cluster_id\":null}");
    expect(ask(f, "GET", "/connectors/", NULL), 200, "[\"a\",\"b\",\"a b/\xC5\xBC\"]");
    expect(ask(f, "GET", "/connectors/a", NULL), 200,
           "{\"name\":\"a\",\"config\":{\"name\":\"a\"},\"tasks\":[],\"type\":\"source\"}");
    expect(ask(f, "GET", "/connectors/a/config", NULL), 200, "{\"name\":\"a\"}");
    expect(
        ask(f, "GET", "/connectors/a/status", NULL), 200,
        "{\"name\":\"a\",\"connector\":{\"state\":\"RUNNING\"},\"tasks\":[],\"type\":\"source\"}");
    expect(ask(f, "GET", "/connectors/a/tasks", NULL), 200, "[]");
    expect(ask(f, "GET", "/connectors/a/tasks/0/status", NULL), 200,
           "{\"id\":0,\"state\":\"RUNNING\"}");
    expect(ask(f, "GET", "/connector-plugins", NULL), 200, "[]");
    expect(ask(f, "GET", "/connector-plugins?connectorsOnly=false", NULL), 200,
           "[{\"class\":\"converter\"}]");
}

static void offsets_are_read_changed_and_reset(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/connectors/a/offsets", NULL), 200, "{\"offsets\":[]}");
    expect_error(ask(f, "GET", "/connectors/x/offsets", NULL), 404, "Connector x not found");
    expect(ask(f, "PATCH", "/connectors/a/offsets",
               "{\"offsets\":[{\"partition\":{\"p\":1},\"offset\":null}]}"),
           200, "{\"message\":\"done\"}");
    expect(ask(f, "DELETE", "/connectors/a/offsets", NULL), 200, "{\"message\":\"done\"}");
    assert_string_equal(f->herder.log, "offsets of a: [[{\"p\":1},null]]; offsets of a: all; ");
}

static void offsets_of_no_form_are_refused_before_anybody_is_asked(void **state)
{
    static const char none[] = "Partitions / offsets need to be provided for an alter offsets "
                               "request";
    struct fixture *f = *state;

    expect_error(ask(f, "PATCH", "/connectors/a/offsets", "{}"), 400, none);
    expect_error(ask(f, "PATCH", "/connectors/a/offsets", "{\"offsets\":null}"), 400, none);
    expect_error(ask(f, "PATCH", "/connectors/a/offsets", "null"), 400,
                 "The request body must be a JSON object with the member 'offsets'");
    expect_error(ask(f, "PATCH", "/connectors/a/offsets", "{\"offsets\":[5]}"), 400,
                 "Entry 0 of 'offsets' must be a JSON object");
    expect_error(ask_with(f, "PATCH", "/connectors/a/offsets", "", "{}"), 415,
                 "HTTP 415 Unsupported Media Type");
    assert_string_equal(f->herder.log, "");
}

static void topics_are_listed_and_reset_unless_the_worker_keeps_none(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/connectors/a/topics", NULL), 200, "{\"a\":{\"topics\":[\"t\"]}}");
    expect_error(ask(f, "GET", "/connectors/b/topics", NULL), 403, "Topic tracking is disabled.");
    expect(ask(f, "PUT", "/connectors/a/topics/reset", NULL), 202, "");
    expect_error(ask(f, "PUT", "/connectors/b/topics/reset", NULL), 403,
                 "Topic tracking reset is disabled.");
}

static void plugins_tell_their_keys_and_judge_configurations(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/connector-plugins/x.Source/config", NULL), 200,
           "[{\"name\":\"latest\"}]");
    expect(ask(f, "GET", "/connector-plugins/x.Source/config?version=2", NULL), 200,
           "[{\"name\":\"2\"}]");
    expect_error(ask(f, "GET", "/connector-plugins/nope/config", NULL), 404,
                 "Unknown plugin nope.");
    /* As Connect compares: the class ends with what the path says, both without "Connector". */
    expect(ask(f, "PUT", "/connector-plugins/Source/config/validate",
               "{\"connector.class\":\"x.FileSourceConnector\"}"),
           200, "{\"name\":\"x.FileSourceConnector\",\"error_count\":0}");
    expect(ask(f, "PUT", "/connector-plugins/x.FileSourceConnector/config/validate",
               "{\"connector.class\":\"x.FileSource\"}"),
           200, "{\"name\":\"x.FileSource\",\"error_count\":0}");
    expect_error(ask(f, "PUT", "/connector-plugins/Sink/config/validate",
                     "{\"connector.class\":\"x.FileSource\"}"),
                 400, "Included connector type x.FileSource does not match request type Sink");
    expect_error(ask(f, "PUT", "/connector-plugins/Source/config/validate", "{}"), 400,
                 "Connector config {} contains no connector type");
    expect_error(ask(f, "PUT", "/connector-plugins/Source/config/validate", ""), 400,
                 "The request body must be a JSON object");
    expect_error(ask(f, "PUT", "/connector-plugins/Source/config/validate", "["), 400,
                 "The request body must be a JSON object");
}

static void loggers_are_read_and_set(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/admin/loggers/", NULL), 200, "{\"root\":{\"level\":\"INFO\"}}");
    expect(ask(f, "GET", "/admin/loggers/root", NULL), 200, "{\"level\":\"INFO\"}");
    expect_error(ask(f, "GET", "/admin/loggers/a.b", NULL), 404, "Logger a.b not found.");
    expect(ask(f, "PUT", "/admin/loggers/a.b", "{\"level\":\"debug\"}"), 200, "[\"a.b\"]");
    expect(ask(f, "PUT", "/admin/loggers/a.b?scope=no", "{\"level\":\"debug\"}"), 200, "[\"a.b\"]");
    expect(ask(f, "PUT", "/admin/loggers/a.b?scope=CLUSTER", "{\"level\":\"debug\"}"), 204, "");
    expect_error(ask(f, "PUT", "/admin/loggers/a.b", "{\"level\":\"LOUD\"}"), 404,
                 "invalid log level 'LOUD'.");
    expect_error(ask(f, "PUT", "/admin/loggers/a.b", "{\"level\":\"\"}"), 400,
                 "Illegal null or empty Level name.");
    for (size_t i = 0; i < 3; i++)
        expect_error(
            ask(f, "PUT", "/admin/loggers/a.b", (const char *[]){"{}", "{\"level\":null}", ""}[i]),
            400, "Desired 'level' parameter was not specified in request.");
}

static void reads_of_unknown_connectors_are_404(void **state)
{
    struct fixture *f = *state;

    expect_error(ask(f, "GET", "/connectors/x%20y", NULL), 404, "Connector x y not found");
    expect_error(ask(f, "GET", "/connectors/x/config", NULL), 404, "Connector x not found");
    expect_error(ask(f, "GET", "/connectors/x/tasks", NULL), 404, "Connector x not found");
    expect_error(ask(f, "GET", "/connectors/x/status", NULL), 404,
                 "No status found for connector x");
    expect_error(ask(f, "GET", "/connectors/b/status", NULL), 404,
                 "No status found for connector b");
    expect_error(ask(f, "GET", "/connectors/a/tasks/1/status", NULL), 404,
                 "No status found for task a-1");
    expect_error(ask(f, "GET", "/connectors/a/tasks/-1/status", NULL), 404,
                 "No status found for task a--1");
    expect_error(ask(f, "GET", "/connectors/a/tasks/1.0/status", NULL), 404, "HTTP 404 Not Found");
    expect_error(ask(f, "GET", "/connectors/a/tasks/2147483648/status", NULL), 404,
                 "HTTP 404 Not Found");
}

static void lists_are_expanded(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/connectors?expand=foo", NULL), 200,
           "{\"a\":{},\"b\":{},\"a b/\xC5\xBC\":{}}");
    expect(ask(f, "GET", "/connectors?expand", NULL), 200,
           "{\"a\":{},\"b\":{},\"a b/\xC5\xBC\":{}}");
    assert_non_null(strstr(ask(f, "GET", "/connectors?expand=info&expand=status", NULL).body,
                           "{\"a\":{\"info\":{\"name\":\"a\",\"config\":{\"name\":\"a\"},\"tasks\":"
                           "[],\"type\":\"source\"},"
                           "\"status\":{\"name\":\"a\""));
    assert_non_null(
        strstr(ask(f, "GET", "/connectors?expand=info", NULL).body, "\"b\":{\"info\":"));
    assert_null(strstr(ask(f, "GET", "/connectors?expand=status&x=y", NULL).body, "\"b\""));
    expect(ask(f, "GET", "/connectors?search=b", NULL), 200, "[\"a\",\"b\",\"a b/\xC5\xBC\"]");
}

static void connectors_are_created(void **state)
{
    struct fixture *f = *state;
    struct reply reply =
        ask(f, "POST", "/connectors",
            "{\"name\":\" c \\u00e9\",\"config\":{\"x\":1.50,\"y\":true,\"z\":null},"
            "\"initial_state\":\"stopped\"}");

    expect(
        reply, 201,
        "{\"name\":\"c "
        "\xC3\xA9\",\"config\":{\"x\":\"1.50\",\"y\":\"true\",\"z\":null,\"name\":\"c \xC3\xA9\"},"
        "\"tasks\":[],\"type\":\"source\"}");
    assert_string_equal(header(&reply, "Location"), "http://test:1/connectors/c%20%C3%A9");
    assert_non_null(strstr(f->herder.log, "put new STOPPED c \xC3\xA9 {"));
    expect_error(ask(f, "POST", "/connectors", "{\"name\":\"a\",\"config\":{}}"), 409,
                 "Connector a already exists");
    expect_error(ask(f, "POST", "/connectors", "{\"config\":{}}"), 400, "String may not be empty");
    expect_error(ask(f, "POST", "/connectors", "{\"name\":\"fail\",\"config\":{}}"), 500,
                 "Failed to start connector: fail");
    expect_error(ask(f, "POST", "/connectors", "{\"name\":\"c\",\"config\":{\"name\":\"d\"}}"), 400,
                 "Connector name configuration (d) doesn't match connector name in the URL (c)");
}

static void configurations_are_put(void **state)
{
    struct fixture *f = *state;
    struct reply reply = ask(f, "PUT", "/connectors/c/config", "{\"x\":1e3,\"name\":null}");

    expect(reply, 201,
           "{\"name\":\"c\",\"config\":{\"x\":\"1e3\",\"name\":\"c\"},\"tasks\":[],\"type\":"
           "\"source\"}");
    assert_string_equal(header(&reply, "Location"), "http://test:1/connectors/c");
    reply = ask(f, "PUT", "/connectors/a/config", "{}");
    expect(reply, 200,
           "{\"name\":\"a\",\"config\":{\"name\":\"a\"},\"tasks\":[],\"type\":\"source\"}");
    assert_string_equal(header(&reply, "Location"), "");
    expect_error(ask(f, "PUT", "/connectors/a/config", "{\"name\":\" a\"}"), 400,
                 "Connector name configuration ( a) doesn't match connector name in the URL (a)");
}

static void configurations_are_patched(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "PATCH", "/connectors/a/config", "{\"x\":null,\"y\":2,\"name\":\"other\"}"), 200,
           "{\"name\":\"a\",\"config\":{\"x\":null,\"y\":\"2\",\"name\":\"other\"},\"tasks\":[],"
           "\"type\":\"source\"}");
    expect_error(ask(f, "PATCH", "/connectors/x/config", "{}"), 404, "Connector x not found");
    expect_error(ask(f, "PATCH", "/connectors/x/config", "null"), 404, "Connector x not found");
    expect_error(ask(f, "PATCH", "/connectors/a/config", "null"), 400,
                 "The request body must be a JSON object: the keys to change, null to remove one");
}

static void lives_are_changed(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "PUT", "/connectors/a/pause", NULL), 202, "");
    expect(ask(f, "PUT", "/connectors/a/resume/", NULL), 202, "");
    expect(ask(f, "PUT", "/connectors/a/stop?forward=true", NULL), 204, "");
    expect(ask(f, "PUT", "/connectors/a/stop", "{\"ignored\":"), 204, "");
    expect(ask(f, "DELETE", "/connectors/a", NULL), 204, "");
    expect(ask(f, "POST", "/connectors/a/restart", NULL), 204, "");
    expect(ask(f, "POST", "/connectors/a/restart?includeTasks=1&onlyFailed=", NULL), 204, "");
    assert_int_equal(ask(f, "POST", "/connectors/a/restart?includeTasks=TRUE", NULL).status, 202);
    expect(
        ask(f, "POST", "/connectors/a/restart?onlyFailed=true", NULL), 202,
        "{\"name\":\"a\",\"connector\":{\"state\":\"RUNNING\"},\"tasks\":[],\"type\":\"source\"}");
    expect(ask(f, "POST", "/connectors/a/tasks/3/restart", NULL), 204, "");
    assert_string_equal(f->herder.log,
                        "target a PAUSED; target a STARTED; target a STOPPED; target a STOPPED; "
                        "delete a; restart a 0 0; "
                        "restart a 0 0; restart a 1 0; restart a 0 1; restart task a 3; ");
}

static void changes_of_unknown_connectors_carry_the_herders_text(void **state)
{
    struct fixture *f = *state;

    expect_error(ask(f, "PUT", "/connectors/x/pause", NULL), 404, "Unknown connector x");
    expect_error(ask(f, "DELETE", "/connectors/x", NULL), 404, "Connector x not found");
    expect_error(ask(f, "POST", "/connectors/x/restart", NULL), 404, "Unknown connector: x");
    expect_error(ask(f, "POST", "/connectors/a/tasks/9/restart", NULL), 409, "stale configuration");
}

static void health_tells_the_stage(void **state)
{
    struct fixture *f = *state;

    expect(ask(f, "GET", "/health", NULL), 200,
           "{\"status\":\"healthy\",\"message\":\"Worker has completed startup and is ready to "
           "handle requests.\"}");
    f->herder.unwell = "No heartbeat.";
    expect(ask(f, "GET", "/health", NULL), 500,
           "{\"status\":\"unhealthy\",\"message\":\"Worker was unable to handle this request and "
           "may be "
           "unable to handle other requests. No heartbeat.\"}");
    f->herder.stage = "reading connector files";
    f->herder.ready = false;
    expect(ask(f, "GET", "/health", NULL), 503,
           "{\"status\":\"starting\",\"message\":\"Worker is still starting up. The worker is "
           "currently reading connector "
           "files.\"}");
    f->herder.since_wall_ms = 1;
    expect(ask(f, "GET", "/health", NULL), 503,
           "{\"status\":\"starting\",\"message\":\"Worker is still starting up. The worker is "
           "currently reading connector files, which began at 1970-01-01T00:00:00.001Z.\"}");
}

static void health_tells_what_kafka_keeps_from_us(void **state)
{
    struct fixture *f = *state;

    f->herder.trouble = "Kafka at k:1 has not answered.";
    assert_int_equal(ask(f, "GET", "/health", NULL).status, 200); /* there is work without it */
    f->herder.unwell = "No heartbeat.";
    expect(ask(f, "GET", "/health", NULL), 500,
           "{\"status\":\"unhealthy\",\"message\":\"Worker was unable to handle this request and "
           "may be unable to handle other requests. No heartbeat. Kafka at k:1 has not "
           "answered.\"}");
    f->herder.stage = "reading connector files";
    f->herder.ready = false;
    expect(ask(f, "GET", "/health", NULL), 503,
           "{\"status\":\"starting\",\"message\":\"Worker is still starting up. The worker is "
           "currently reading connector files. Kafka at k:1 has not answered.\"}");
}

static void a_worker_that_reads_its_topics_answers_503_with_the_stage(void **state)
{
    struct fixture *f = *state;

    f->herder.unreadable = true;
    f->herder.ready = false;
    f->herder.stage = "reading the internal topics";
    f->herder.trouble = "Kafka at k:1 has not answered.";
    expect_error(ask(f, "GET", "/connectors/a", NULL), 503,
                 "Worker is still starting up. The worker is currently reading the internal "
                 "topics. Kafka at k:1 has not answered.");
    expect_error(ask(f, "PUT", "/connectors/a/pause", NULL), 503,
                 "Worker is still starting up. The worker is currently reading the internal "
                 "topics. Kafka at k:1 has not answered.");
    assert_string_equal(f->herder.log, "");
    expect(ask(f, "GET", "/health", NULL), 503,
           "{\"status\":\"starting\",\"message\":\"Worker is still starting up. The worker is "
           "currently reading the internal topics. Kafka at k:1 has not answered.\"}");
    f->herder.unreadable = false;
    assert_int_equal(ask(f, "GET", "/connectors/a", NULL).status, 200);
}

/* --- HTTP's own rules ------------------------------------------------------------------------- */

static void head_is_get_without_a_body(void **state)
{
    struct fixture *f = *state;
    struct reply reply = ask(f, "HEAD", "/connectors", NULL);

    assert_int_equal(reply.status, 200);
    assert_string_equal(header(&reply, "Content-Type"), "application/json");
    reply = ask(f, "HEAD", "/connectors/x", NULL);
    assert_int_equal(reply.status, 404);
    reply = ask(f, "HEAD", "/connectors/a/pause", NULL);
    assert_int_equal(reply.status, 405);
}

static void options_answer_with_allow(void **state)
{
    struct fixture *f = *state;
    struct reply reply = ask(f, "OPTIONS", "/connectors", NULL);

    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "HEAD, POST, GET, OPTIONS");
    assert_string_equal(header(&reply, "Allow"), "HEAD,POST,GET,OPTIONS");
    assert_string_equal(header(&reply, "Content-Type"), "text/plain");
    reply = ask_with(f, "OPTIONS", "/connectors", "Accept: application/json\r\n", NULL);
    assert_string_equal(reply.body, "");
    assert_string_equal(header(&reply, "Allow"), "HEAD,POST,GET,OPTIONS");
    expect_unmatched(ask(f, "OPTIONS", "/nope", NULL), 404, "HTTP 404 Not Found");
}

static void wrong_paths_methods_and_types_are_refused_as_json(void **state)
{
    struct fixture *f = *state;

    expect_unmatched(ask(f, "GET", "/nope", NULL), 404, "HTTP 404 Not Found");
    expect_unmatched(ask(f, "POST", "/connectors/a", "{}"), 405, "HTTP 405 Method Not Allowed");
    expect_unmatched(ask(f, "BREWCOFFEEINALONGWAY", "/connectors", NULL), 405,
                     "HTTP 405 Method Not Allowed");
    expect_unmatched(ask_with(f, "GET", "/", "Accept: text/html\r\n", NULL), 406,
                     "HTTP 406 Not Acceptable");
    assert_int_equal(
        ask_with(f, "GET", "/", "Accept: text/html\r\nAccept: application/json\r\n", NULL).status,
        200);
    expect_unmatched(ask_with(f, "POST", "/connectors", "Content-Type: text/plain\r\n", "{}"), 415,
                     "HTTP 415 Unsupported Media Type");
    expect_error(ask_with(f, "POST", "/connectors", "", "{}"), 415,
                 "HTTP 415 Unsupported Media Type");
    expect_error(ask_with(f, "POST", "/connectors", "Content-Type: application/*\r\n", "{}"), 415,
                 "HTTP 415 Unsupported Media Type");
    expect_error(ask_with(f, "POST", "/connectors", "Content-Type: nonsense\r\n", "{}"), 400,
                 "HTTP 400 Bad Request");
    expect_unmatched(
        ask_with(f, "PUT", "/connectors/a/pause", "Content-Type: text/plain\r\n", NULL), 415,
        "HTTP 415 Unsupported Media Type");
    expect_error(ask(f, "GET", "/connectors/a%2Fb", NULL), 400,
                 "Bad request path: it holds an encoded slash (%2F)");
    expect_error(ask(f, "GET", "/connectors/a%00b", NULL), 400,
                 "Bad request path: it holds a control character");
    expect_error(ask(f, "GET", "//connectors", NULL), 400,
                 "Bad request path: it holds an empty segment (//)");
    expect_error(ask(f, "GET", "/connectors/a b", NULL), 400,
                 "Bad request path: it holds a blank that is not written as %20");
}

/* Such connectors are there, and their tasks are to run. */
static void another_worker_may_name_a_connector_as_no_user_may(void **state)
{
    struct fixture *f = *state;
    static const char path[] = "/connectors/a%20b%2F%C5%BC/tasks";

    expect_error(ask(f, "GET", path, NULL), 400,
                 "Bad request path: it holds an encoded slash (%2F)");
    expect_error(ask(f, "POST", path, "[]"), 403, "Internal request contained invalid signature.");
    assert_int_equal(ask_with(f, "POST", path, "X-Connect-Authorization: right\r\n", "[]").status,
                     204);
}

static void malformed_json_is_400(void **state)
{
    struct fixture *f = *state;

    expect_error(
        ask(f, "POST", "/connectors", "{"), 400,
        "Malformed JSON at line 1, column 2: a key in double quotes is expected, but the text "
        "ends");
    expect_error(ask(f, "POST", "/connectors", "[]"), 400,
                 "The request body must be a JSON object");
    expect_error(ask(f, "POST", "/connectors", "{\"name\":\"c\"}"), 400,
                 "The request body must be a JSON object with the members 'name' and 'config'");
    expect_error(ask(f, "POST", "/connectors", ""), 400,
                 "The request body must be a JSON object with the members 'name' and 'config'");
    expect_error(ask(f, "POST", "/connectors", NULL), 400,
                 "The request body must be a JSON object with the members 'name' and 'config'");
    expect_error(ask(f, "PUT", "/connectors/c/config", "null"), 400,
                 "The request body must be a JSON object: the connector's configuration");
    expect_error(ask(f, "PUT", "/connectors/c/config", "{\"x\":{}}"), 400,
                 "The value of the configuration 'x' must be text, a number, a boolean or null, "
                 "not an object");
    assert_string_equal(f->herder.log, "");
}

static void say_with_nuls(int fd, const char *text)
{
    for (const char *nul; (nul = strstr(text, "{}")) != NULL; text = nul + 2) {
        for (; text < nul; text++)
            assert_int_equal(send(fd, text, 1, MSG_NOSIGNAL), 1);
        assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), 1);
    }
    say(fd, text);
}

static void requests_whose_end_is_unclear_are_refused_and_cut(void **state)
{
    static const char *const bad[] = {
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip\r\n\r\n{}",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int fd = dial(f);

        say(fd, "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON);
        say(fd, bad[i]);
        assert_int_equal(hear(fd, false).status, 400);
        assert_true(ended(fd));
        close(fd);
    }
}

/* Behind each is a request that must not be seen as one. {}: a NUL. */
static void heads_that_others_may_read_differently_are_refused_and_cut(void **state)
{
    static const char *const bad[] = {
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        " Content-Length: 5\r\n",
        "X-A: y\r\n Content-Length: 5\r\n",
        "X-A: y\r\n\tb\r\nX-B: c\r\n",
        "X-A: y\r\n \r\n",
        "Content-Len: 5\r\n gth\r\n",
        "X-A: y\rContent-Length: 5\r\n",
        "X-A: y\r\rGET / HTTP/1.1\r\n",
        "X-A: y{}b\r\n",
        "X-A: y{}b\r\nX-B: c\r\n",
        "X-A: y\x01\r\n",
        "X-A: y\x7f\r\n",
        "X(A): y\r\n",
        ": y\r\n",
        "Host: y\r\n",
    };
    static const char *const first[] = {"GET /connectors", "PUT /connectors/a/pause"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2 * (sizeof(bad) / sizeof(*bad)); i++) {
        int fd = dial(f);

        say(fd, first[i % 2]);
        say(fd, " HTTP/1.1\r\nHost: x\r\n");
        say_with_nuls(fd, bad[i / 2]);
        say(fd, "\r\nGET /connectors HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(hear(fd, false).status, 400);
        assert_true(ended(fd));
        close(fd);
    }
    assert_string_equal(f->herder.log, "");
}

static void a_target_ends_at_no_nul(void **state)
{
    int fd = dial(*state);

    say_with_nuls(fd, "GET /connectors{}/a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 400);
    assert_true(ended(fd));
    close(fd);
}

static void unusual_heads_that_are_clear_are_taken(void **state)
{
    static const char *const good[] = {
        "GET /connectors?expand=info&x HTTP/1.1\r\nHost:x\r\nX-A:\r\nX-B: \r\n\r\n",
        "\r\nGET /connectors HTTP/1.1\r\nHost: \t x \t\r\nX_!a.1~:  b c\t \r\n\r\n",
        "GET /connectors HTTP/1.1\nHost: x\nCookie: a=b; c=\"d\"\n\n",
        "GET /connectors HTTP/1.1\r\nHost: x\r\nX-A: \xc3\xa9\r\nX-A: 2\r\n\r\n",
    };
    struct fixture *f = *state;
    int fd = dial(f);

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        say(fd, good[i]);
        assert_int_equal(hear(fd, false).status, 200);
    }
    close(fd);
}

static void a_host_header_is_needed_and_never_echoed_raw(void **state)
{
    struct fixture *f = *state;
    char expected[128];
    struct reply reply;
    int fd = dial(f);

    say(fd, "GET / HTTP/1.1\r\n\r\n");
    expect_error(hear(fd, false), 400, "Bad request: HTTP/1.1 asks for a Host header");
    close(fd);
    fd = dial(f);
    say(fd, "PUT /connectors/c/config HTTP/1.1\r\nHost: \"><script>\r\n" JSON
            "Content-Length: 2\r\n\r\n{}");
    reply = hear(fd, false);
    snprintf(expected, sizeof(expected), "http://127.0.0.1:%d/connectors/c", f->port);
    assert_string_equal(header(&reply, "Location"), expected);
    close(fd);
    fd = dial(f);
    say(fd, "GET / HTTP/1.0\r\n\r\n");
    assert_non_null(strstr(hear(fd, false).head, "200"));
    close(fd);
}

static void chunked_bodies_are_read_and_bad_chunks_refused(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    say(fd, "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON
            "Transfer-Encoding: chunked\r\n\r\n");
    say(fd, "3\r\n{\"x\r\n5;ext=1\r\n\":1.0\r\n1\r\n}\r\n0\r\n\r\n");
    expect(hear(fd, false), 200,
           "{\"name\":\"a\",\"config\":{\"x\":\"1.0\",\"name\":\"a\"},\"tasks\":[],\"type\":"
           "\"source\"}");
    close(fd);
    fd = dial(f);
    say(fd, "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n");
    assert_int_equal(hear(fd, false).status, 400);
    assert_true(ended(fd));
    close(fd);
}

static void connections_are_kept_alive_after_errors(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    for (int i = 0; i < 3; i++) {
        say(fd, "GET /nope HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(hear(fd, false).status, 404);
        say(fd,
            "PUT /connectors/c/config HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 1\r\n\r\n{");
        assert_int_equal(hear(fd, false).status, 400);
        say(fd, "PUT /connectors/a/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
        assert_int_equal(hear(fd, false).status, 202);
    }
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    for (int i = 0; i < 50; i++) {
        say(fd, "GET /connectors/a/config HTTP/1.1\r\nHost: x\r\n\r\n"
                "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON
                "Content-Length: 7\r\n\r\n{\"x\":1}"
                "GET /nope HTTP/1.1\r\nHost: x\r\n\r\n"
                "HEAD /connectors HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (int i = 0; i < 50; i++) {
        expect(hear(fd, false), 200, "{\"name\":\"a\"}");
        assert_non_null(strstr(hear(fd, false).body, "\"x\":\"1\""));
        assert_int_equal(hear(fd, false).status, 404);
        assert_int_equal(hear(fd, true).status, 200);
    }
    close(fd);
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* Send `total` bytes of x, to the last, as a client that listens only then; give the answer. */
static struct reply flood(int fd, size_t total)
{
    static char block[65536];
    size_t sent = 0;

    memset(block, 'x', sizeof(block));
    while (sent < total) {
        ssize_t n = send(fd, block, total - sent < sizeof(block) ? total - sent : sizeof(block),
                         MSG_NOSIGNAL);

        if (n <= 0)
            fail_msg("cut off after %zu bytes", sent);
        sent += (size_t)n;
    }
    return hear(fd, false);
}

#define MIB_100 ((size_t)100 << 20)

static void bodies_of_100_mb_are_413_to_clients_that_send_first_and_listen_then(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    say(fd, "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 104857600\r\n\r\n");
    expect_error(flood(fd, MIB_100), 413, "HTTP 413 Request Entity Too Large");
    assert_true(ended(fd));
    close(fd);
    assert_int_equal(ask(f, "GET", "/", NULL).status, 200);
    fd = dial(f);
    say(fd, "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 104857600\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 413);
    say(fd, "a client that goes on all the same");
    assert_true(ended(fd));
    close(fd);
}

static void chunked_bodies_of_100_mb_are_413(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    say(fd, "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON
            "Transfer-Encoding: chunked\r\n\r\n6400000\r\n");
    for (size_t sent = 0; sent < MIB_100;) {
        static char block[65536];
        ssize_t n = send(fd, block, sizeof(block), MSG_NOSIGNAL);

        assert_true(n > 0);
        sent += (size_t)n;
        if (MIB_100 - sent < sizeof(block) && sent < MIB_100) {
            assert_true(send(fd, block, MIB_100 - sent, MSG_NOSIGNAL) > 0);
            break;
        }
    }
    say(fd, "\r\n0\r\n\r\n");
    expect_error(hear(fd, false), 413, "HTTP 413 Request Entity Too Large");
    close(fd);
}

static void a_body_that_waits_for_100_continue_is_refused_unsent(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    say(fd, "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON
            "Expect: 100-continue\r\nContent-Length: 104857600\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 413);
    close(fd);
    fd = dial(f);
    say(fd, "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON
            "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 100);
    say(fd, "{}");
    assert_int_equal(hear(fd, false).status, 200);
    close(fd);
}

static void bodies_up_to_the_cap_are_taken(void **state)
{
    struct fixture *f = *state;
    size_t value = ((size_t)8 << 20) - 100;
    char head[256];
    int fd = dial(f);
    static char block[65536];

    memset(block, 'x', sizeof(block));
    snprintf(head, sizeof(head),
             "PUT /connectors/fail/config HTTP/1.1\r\nHost: x\r\n" JSON
             "Content-Length: %zu\r\n\r\n{\"k\":\"",
             value + 8);
    say(fd, head);
    for (size_t sent = 0; sent < value;) {
        size_t n = value - sent < sizeof(block) ? value - sent : sizeof(block);

        assert_int_equal(send(fd, block, n, MSG_NOSIGNAL), n);
        sent += n;
    }
    say(fd, "\"}");
    expect_error(hear(fd, false), 500, "Failed to start connector: fail");
    close(fd);
}

static void targets_and_headers_beyond_8_kib_are_414_and_431(void **state)
{
    struct fixture *f = *state;
    char *path = malloc(20001);
    int fd = dial(f);

    memset(path, 'p', 20000);
    path[20000] = '\0';
    path[9000] = '\0';
    say(fd, "GET /");
    say(fd, path);
    say(fd, " HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_error(hear(fd, false), 414, "HTTP 414 Request-URI Too Long");
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nX-Filler: ");
    say(fd, path);
    say(fd, "\r\n\r\n");
    expect_error(hear(fd, false), 431, "HTTP 431 Request Header Fields Too Large");
    path[7000] = '\0';
    say(fd, "GET /?q=");
    say(fd, path);
    say(fd, " HTTP/1.1\r\nHost: x\r\nX-Filler: ");
    say(fd, path);
    say(fd, "\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 200);
    close(fd);
    free(path);
}

static void a_path_of_100_mb_is_414(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    struct reply reply;

    say(fd, "GET /");
    reply = flood(fd, MIB_100);
    assert_int_equal(reply.status, 414);
    close(fd);
    fd = dial(f);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nX-Filler: ");
    reply = flood(fd, MIB_100);
    assert_int_equal(reply.status, 431);
    close(fd);
    assert_int_equal(ask(f, "GET", "/", NULL).status, 200);
}

static void all_bodies_together_are_bounded(void **state)
{
    struct fixture *f = fixture_new();
    int fds[4];
    int refused = 0;

    f->limits.body_bytes_max = 1 << 20;
    f->limits.bodies_bytes_max = 2 << 20;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    for (int i = 0; i < 4; i++) {
        char head[256];

        fds[i] = dial(f);
        snprintf(head, sizeof(head),
                 "PUT /connectors/slow%d/config HTTP/1.1\r\nHost: x\r\n" JSON
                 "Content-Length: 900008\r\n\r\n{\"k\":\"",
                 i);
        say(fds[i], head);
    }
    for (int i = 0; i < 4; i++) {
        static char block[900000];

        memset(block, 'x', sizeof(block));
        assert_int_equal(send(fds[i], block, sizeof(block), MSG_NOSIGNAL), sizeof(block));
    }
    for (int i = 0; i < 4; i++)
        say(fds[i], "\"}");
    await_waiting(f, 2);
    on_loop(f, do_release);
    for (int i = 0; i < 4; i++)
        refused += hear(fds[i], false).status == 503;
    assert_true(refused >= 1);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    fixture_free(f);
}

static void half_requests_are_cut_after_their_time(void **state)
{
    static const char *const halves[] = {
        "",
        "GET",
        "GET / HTTP/1.1\r\nHost: x\r\nX-A: b",
        "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 100\r\n\r\n{",
    };
    struct fixture *f = fixture_new();
    int fds[4];

    f->limits.idle_ms = 300;
    f->limits.reading_ms = 300;
    f->limits.sweep_ms = 50;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(f);
        say(fds[i], halves[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(ended(fds[i]));
        close(fds[i]);
    }
    fixture_free(f);
}

/* A byte now and then does not help: that is what libmicrohttpd's own timeout lets through. */
static void dripping_requests_are_cut_after_their_time(void **state)
{
    struct fixture *f = fixture_new();
    int64_t start_ms;
    int fd;

    f->limits.reading_ms = 400;
    f->limits.sweep_ms = 50;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    fd = dial(f);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nX-A: ");
    start_ms = clock_ms();
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, 50) > 0 || send(fd, "a", 1, MSG_NOSIGNAL) <= 0)
            break;
        assert_true(clock_ms() - start_ms < WAIT_MS);
    }
    assert_true(clock_ms() - start_ms >= 300);
    assert_true(ended(fd));
    close(fd);
    fixture_free(f);
}

static void a_client_that_reads_nothing_is_cut(void **state)
{
    static const char request[] = "GET /connectors?expand=info HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *f = fixture_new();
    int fd;
    bool cut = false;

    f->limits.writing_ms = 300;
    f->limits.sweep_ms = 50;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    fd = dial(f);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    /* Pipelined requests until nothing moves any more: answers then wait in the server for this
     * client to read. */
    for (int64_t until_ms = clock_ms() + WAIT_MS; !cut && clock_ms() < until_ms;) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};

        cut = send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN;
        if (!cut && errno == EAGAIN)
            poll(&p, 1, 20);
    }
    assert_true(cut);
    close(fd);
    fixture_free(f);
}

static void a_thousand_idle_connections_hold_up_nobody(void **state)
{
    struct fixture *f = fixture_new();
    static int fds[1000];
    int open = 0;

    f->limits.connections_max = 200;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    for (int i = 0; i < 1000; i++) {
        fds[i] = dial(f);
        if (i % 100 == 99)
            assert_int_equal(ask(f, "GET", "/connectors/a/status", NULL).status, 200);
        if (i >= 300)
            close(fds[i - 300]);
    }
    for (int i = 700; i < 1000; i++) {
        struct pollfd p = {.fd = fds[i], .events = POLLIN};

        open += poll(&p, 1, 0) == 0;
    }
    assert_true(open > 0 && open <= 264);
    for (int i = 700; i < 1000; i++)
        close(fds[i]);
    fixture_free(f);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void a_waiting_change_holds_up_nobody(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);

    say(fd, "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n");
    await_waiting(f, 1);
    assert_int_equal(ask(f, "GET", "/connectors/slow/config", NULL).status, 200);
    on_loop(f, do_release);
    assert_int_equal(hear(fd, false).status, 204);
    close(fd);
}

static struct fixture *impatient(void)
{
    struct fixture *f = fixture_new();

    f->limits.deadline_max_ms = 300;
    f->herder.stage = "starting connector slow";
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    return f;
}

static void a_change_that_takes_too_long_is_500_with_its_stage(void **state)
{
    struct fixture *f = impatient();
    int fd = dial(f);

    say(fd, "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_error(hear(fd, false), 500,
                 "Request timed out. The worker is currently starting connector slow.");
    /* The herder comes back for a request that is gone, and the connection goes on. */
    on_loop(f, do_release);
    say(fd, "GET /connectors/a/config HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(hear(fd, false).status, 200);
    close(fd);
    fixture_free(f);
}

static void hold_up(void *arg)
{
    sem_t *sems = arg;

    sem_post(&sems[0]);
    sem_wait(&sems[1]);
}

static void a_loop_that_is_stuck_holds_up_no_answer(void **state)
{
    struct fixture *f = impatient();
    sem_t sems[2]; /* it is stuck; it may go on */

    f->herder.ready = true;
    sem_init(&sems[0], 0, 0);
    sem_init(&sems[1], 0, 0);
    assert_int_equal(loop_post(f->loop, hold_up, sems), 0);
    sem_wait(&sems[0]);
    expect_error(ask(f, "GET", "/connectors/a/config", NULL), 500, "Request timed out");
    expect(ask(f, "GET", "/health", NULL), 500,
           "{\"status\":\"unhealthy\",\"message\":\"Worker was unable to handle this request and "
           "may be "
           "unable to handle other requests.\"}");
    sem_post(&sems[1]);
    assert_int_equal(ask(f, "GET", "/health", NULL).status, 200);
    fixture_free(f);
    sem_destroy(&sems[0]);
    sem_destroy(&sems[1]);
}

static void a_request_timed_out_without_a_stage_says_only_that(void **state)
{
    struct fixture *f = impatient();

    f->herder.stage = NULL;
    expect_error(ask(f, "DELETE", "/connectors/slow", NULL), 500, "Request timed out");
    fixture_free(f);
}

/* --- another worker, which answers every request alike ---------------------------------------- */

struct peer_call {
    peer_done done;
    void *arg;
};

static void peer_answers(void *arg)
{
    static const char body[] = "{\"name\":\"new\"}";
    struct peer_call *call = arg;

    call->done(call->arg, &(struct peer_answer){.status = 201, .body = body, .len = strlen(body)});
    free(call);
}

void peer_send(struct peer *peer, const struct peer_request *request, peer_done done, void *arg)
{
    struct peer_call *call = malloc(sizeof(*call));

    (void)peer;
    (void)request;
    assert_non_null(call);
    *call = (struct peer_call){done, arg};
    assert_int_equal(loop_post(current->loop, peer_answers, call), 0);
}

char *peer_url(const char *base, const char *path)
{
    (void)path;
    return strdup(base);
}

/* A connector is created there, and what came about is not to be read here. */
static int created_elsewhere(struct fixture *f)
{
    int fd = dial(f);

    f->herder.elsewhere = "http://other:1/";
    f->herder.behind = true;
    say(fd,
        "PUT /connectors/new/config HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 2\r\n\r\n{}");
    await_waiting(f, 1);
    return fd;
}

static void expect_created(int fd)
{
    struct reply reply = hear(fd, false);

    expect(reply, 201, "{\"name\":\"new\"}");
    assert_string_equal(header(&reply, "Location"), "http://x/connectors/new");
    close(fd);
}

static void what_another_worker_has_done_is_told_at_the_deadline_too(void **state)
{
    struct fixture *f = impatient();

    (void)state;
    expect_created(created_elsewhere(f));
    on_loop(f, do_release);
    fixture_free(f);
}

static void what_another_worker_has_done_is_told_within_seconds(void **state)
{
    struct fixture *f = *state;
    int64_t from_ms = clock_ms();

    expect_created(created_elsewhere(f));
    assert_in_range(clock_ms() - from_ms, 2900, WAIT_MS);
    on_loop(f, do_release);
}

static void what_another_worker_has_done_is_told_by_one_that_stops(void **state)
{
    struct fixture *f = *state;
    int fd = created_elsewhere(f);

    on_loop(f, do_free);
    expect_created(fd);
    on_loop(f, do_release);
}

static void block_loop(struct fixture *f)
{
    struct timespec nap = {.tv_nsec = 500 * 1000000};

    nanosleep(&nap, NULL);
}

/* A herder that was stuck for longer than health may take is unhealthy, and says so once it can. */
static void a_stuck_loop_is_unhealthy(void **state)
{
    struct fixture *f = impatient();
    struct errand errand = {.f = f, .fn = block_loop};
    int fd = dial(f);

    assert_int_equal(loop_post(f->loop, run_errand, &errand), 0);
    say(fd, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(hear(fd, false), 500,
           "{\"status\":\"unhealthy\",\"message\":\"Worker was unable to handle this request and "
           "may be unable to handle "
           "other requests. The worker is currently starting connector slow.\"}");
    on_loop(f, do_release);
    close(fd);
    fixture_free(f);
}

static void clients_that_leave_while_they_wait_do_no_harm(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 50; i++) {
        int fd = dial(f);

        say(fd, i % 2 == 0 ? "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n"
                           : "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON
                             "Content-Length: 28\r\n\r\n{\"name\":\"slow1\",\"config\":{}}");
        await_waiting(f, (size_t)i + 1);
        if (i % 3 == 0) {
            struct linger reset = {.l_onoff = 1};

            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        close(fd);
    }
    on_loop(f, do_release);
    assert_int_equal(ask(f, "GET", "/", NULL).status, 200);
}

/* Their own bounds are those of processes and connections. */
static void validations_that_wait_keep_no_change_out(void **state)
{
    struct fixture *f = fixture_new();
    int fds[3];

    f->limits.changes_max = 3;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(f);
        say(fds[i], "PUT /connector-plugins/slow/config/validate HTTP/1.1\r\nHost: x\r\n" JSON
                    "Content-Length: 26\r\n\r\n{\"connector.class\":\"slow\"}");
        await_waiting(f, (size_t)i + 1);
    }
    assert_int_equal(ask(f, "DELETE", "/connectors/a", NULL).status, 204);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    on_loop(f, do_release);
    fixture_free(f);
}

static void more_waiting_changes_than_allowed_are_503(void **state)
{
    struct fixture *f = fixture_new();
    int fds[3];

    f->limits.changes_max = 3;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(f);
        say(fds[i], "DELETE /connectors/slow HTTP/1.1\r\nHost: x\r\n\r\n");
        await_waiting(f, (size_t)i + 1);
    }
    expect_error(ask(f, "DELETE", "/connectors/slow", NULL), 503,
                 "Too many requests are waiting for this worker; try again later");
    assert_int_equal(ask(f, "GET", "/connectors", NULL).status, 200);
    on_loop(f, do_release);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hear(fds[i], false).status, 204);
        close(fds[i]);
    }
    fixture_free(f);
}

/* --- life ------------------------------------------------------------------------------------- */

static void before_it_is_open_a_worker_says_503(void **state)
{
    struct fixture *f = fixture_new();

    start(f, "127.0.0.1", 0);
    expect_error(ask(f, "GET", "/connectors/a", NULL), 503, "Worker is still starting up.");
    expect_unmatched(ask(f, "GET", "/nope", NULL), 404, "HTTP 404 Not Found");
    expect(ask(f, "GET", "/health", NULL), 503,
           "{\"status\":\"starting\",\"message\":\"Worker is still starting up.\"}");
    fixture_free(f);
}

static void stopping_answers_everyone_who_waits(void **state)
{
    struct fixture *f = *state;
    int fds[40];
    int half = dial(f);

    say(half, "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    for (int i = 0; i < 40; i++) {
        fds[i] = dial(f);
        say(fds[i], "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    await_waiting(f, 40);
    on_loop(f, do_free);
    for (int i = 0; i < 40; i++) {
        expect_error(hear(fds[i], false), 503, "Worker is shutting down");
        close(fds[i]);
    }
    assert_true(ended(half));
    close(half);
    on_loop(f, do_release);
}

/* Pipelined requests until nothing moves any more: answers then wait in the server for this client
 * to read. */
static void read_nothing(int fd)
{
    static const char request[] = "GET /connectors?expand=info HTTP/1.1\r\nHost: x\r\n\r\n";
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    fcntl(fd, F_SETFL, O_NONBLOCK);
    do
        while (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
            continue;
    while (poll(&p, 1, 300) > 0);
}

static void do_close(struct fixture *f)
{
    server_close(f->server);
}

static void closing_waits_for_nobody_and_goes_on_to_answer(void **state)
{
    struct fixture *f = *state;
    int slow = dial(f), waiting = dial(f), after = dial(f);
    int64_t from_ms;

    read_nothing(slow);
    say(waiting, "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n");
    await_waiting(f, 1);
    from_ms = clock_ms();
    on_loop(f, do_close);
    assert_true(clock_ms() - from_ms < 3000); /* server_free would wait for the slow reader */
    expect_error(hear(waiting, false), 503, "Worker is shutting down");
    say(after, "GET /connectors HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_error(hear(after, false), 503, "Worker is shutting down");
    on_loop(f, do_free);
    on_loop(f, do_release);
    close(slow);
    close(waiting);
    close(after);
}

struct storm {
    struct fixture *f;
    bool over; /* guarded by f->lock */
    size_t answers;
};

static void *storm(void *arg)
{
    struct storm *s = arg;

    for (bool over = false; !over;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)s->f->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        char answer[512];

        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
            for (int i = 0; i < 20; i++) {
                const char *text = i % 3 == 0
                                       ? "PUT /connectors/slow/stop HTTP/1.1\r\nHost: x\r\n\r\n"
                                       : "GET /connectors HTTP/1.1\r\nHost: x\r\n\r\n";

                if (send(fd, text, strlen(text), MSG_NOSIGNAL) <= 0)
                    break;
                if (i % 3 != 0 && recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
                    s->answers++;
            }
        close(fd);
        pthread_mutex_lock(&s->f->lock);
        over = s->over;
        pthread_mutex_unlock(&s->f->lock);
    }
    return NULL;
}

/* libmicrohttpd ends the process when it is stopped with a suspended request: stop in the middle of
 * many, many times. */
static void stopping_under_load_is_safe(void **state)
{
    for (int round = 0; round < 15; round++) {
        struct fixture *f = fixture_new();
        struct storm s = {.f = f};
        pthread_t threads[3];

        f->limits.changes_max = 50;
        start(f, "127.0.0.1", 0);
        on_loop(f, do_open);
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, storm, &s);
        await_waiting(f, 10);
        on_loop(f, do_free);
        pthread_mutex_lock(&f->lock);
        s.over = true;
        pthread_mutex_unlock(&f->lock);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        on_loop(f, do_release);
        fixture_free(f);
    }
}

static void a_port_in_use_is_one_clear_line(void **state)
{
    struct fixture *f = *state;
    struct fixture *second = fixture_new();
    char says[64];

    start(second, "127.0.0.1", f->port);
    assert_int_equal(second->err.code, MR_ERR_IO);
    snprintf(says, sizeof(says), "port %d is in use: ", f->port);
    assert_memory_equal(second->err.text, says, strlen(says));
    assert_non_null(strstr(second->err.text, "`listeners`"));
    fixture_free(second);
    second = fixture_new();
    start(second, "", f->port);
    snprintf(says, sizeof(says), "is on http://:%d (no host: on any interface)", f->port);
    assert_non_null(strstr(second->err.text, says));
    fixture_free(second);
    current = f;
}

static void foreign_and_unknown_hosts_are_named(void **state)
{
    struct fixture *f = fixture_new();

    start(f, "192.0.2.77", 0);
    assert_non_null(strstr(f->err.text, "this machine has no address 192.0.2.77"));
    fixture_free(f);
    f = fixture_new();
    start(f, "no-such-host.invalid", 0);
    assert_int_equal(f->err.code, MR_ERR_CONFIG);
    assert_non_null(strstr(f->err.text, "the host no-such-host.invalid cannot be resolved"));
    fixture_free(f);
}

/* worker_id of a server with one property and one listener (its host alone without a property), or
 * the error. */
static const char *advertised(const char *key, const char *value, const char *host, bool https)
{
    static char out[1100];
    struct fixture *f = fixture_new();

    props_init(&f->config.props);
    f->config.listener_count = 1;
    f->config.listeners[0] = (struct worker_listener){.host = strdup(host), .https = https};
    if (key != NULL)
        props_set(&f->config.props, key, value);
    f->loop = loop_new(NULL);
    f->server = server_new(f->loop, &f->config, &f->err);
    if (f->server == NULL)
        snprintf(out, sizeof(out), "%s", f->err.text);
    else if (key == NULL)
        snprintf(out, sizeof(out), "%.*s", (int)strcspn(f->config.worker_id, ":"),
                 f->config.worker_id);
    else
        snprintf(out, sizeof(out), "%s", f->config.worker_id);
    server_free(&f->server);
    loop_free(&f->loop);
    free(f->config.worker_id);
    free(f->config.listeners[0].host);
    props_deinit(&f->config.props);
    free(f);
    return out;
}

static void the_worker_id_is_the_advertised_address(void **state)
{
    assert_string_equal(advertised(NULL, NULL, "127.0.0.1", false), "127.0.0.1");
    assert_string_not_equal(advertised(NULL, NULL, "", false), "");
    assert_string_equal(advertised("rest.advertised.port", "9999", "127.0.0.1", false),
                        "127.0.0.1:9999");
    assert_memory_equal(advertised("rest.advertised.host.name", "example.org", "", false),
                        "example.org:", 12);
    assert_memory_equal(advertised("rest.advertised.host.name", "fe80::1", "", false),
                        "[fe80::1]:", 10);
    assert_non_null(strstr(advertised("rest.advertised.port", "0x50", "", false),
                           "Invalid value 0x50 for configuration"));
    assert_non_null(strstr(advertised("rest.advertised.listener", "https", "", false),
                           "rest.advertised.listener"));
}

static void loopback_is_known_by_its_name(void **state)
{
    static const struct {
        const char *host;
        bool local;
    } rows[] = {{"localhost", true},   {"LOCALHOST", true}, {"127.0.0.1", true},
                {"127.1.2.3", true},   {"::1", true},       {"", false},
                {"0.0.0.0", false},    {"::", false},       {"10.0.0.1", false},
                {"example.org", false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(
            listener_is_local(&(struct worker_listener){.host = (char *)(uintptr_t)rows[i].host}),
            rows[i].local);
}

static void https_without_a_certificate_ends_the_start(void **state)
{
    assert_non_null(
        strstr(advertised(NULL, NULL, "127.0.0.1", true),
               "an https listener needs a certificate and its key: set "
               "listeners.https.ssl.keystore.type=PEM and listeners.https.ssl.keystore.location"));
}

#define REST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REST_TEST(reads_answer_from_the_herder),
        REST_TEST(offsets_are_read_changed_and_reset),
        REST_TEST(offsets_of_no_form_are_refused_before_anybody_is_asked),
        REST_TEST(topics_are_listed_and_reset_unless_the_worker_keeps_none),
        REST_TEST(plugins_tell_their_keys_and_judge_configurations),
        REST_TEST(loggers_are_read_and_set),
        REST_TEST(reads_of_unknown_connectors_are_404),
        REST_TEST(lists_are_expanded),
        REST_TEST(connectors_are_created),
        REST_TEST(configurations_are_put),
        REST_TEST(configurations_are_patched),
        REST_TEST(lives_are_changed),
        REST_TEST(changes_of_unknown_connectors_carry_the_herders_text),
        REST_TEST(health_tells_the_stage),
        REST_TEST(health_tells_what_kafka_keeps_from_us),
        REST_TEST(a_worker_that_reads_its_topics_answers_503_with_the_stage),
        REST_TEST(head_is_get_without_a_body),
        REST_TEST(options_answer_with_allow),
        REST_TEST(wrong_paths_methods_and_types_are_refused_as_json),
        REST_TEST(another_worker_may_name_a_connector_as_no_user_may),
        REST_TEST(malformed_json_is_400),
        REST_TEST(requests_whose_end_is_unclear_are_refused_and_cut),
        REST_TEST(heads_that_others_may_read_differently_are_refused_and_cut),
        REST_TEST(a_target_ends_at_no_nul),
        REST_TEST(unusual_heads_that_are_clear_are_taken),
        REST_TEST(a_host_header_is_needed_and_never_echoed_raw),
        REST_TEST(chunked_bodies_are_read_and_bad_chunks_refused),
        REST_TEST(connections_are_kept_alive_after_errors),
        REST_TEST(pipelined_requests_are_answered_in_order),
        REST_TEST(bodies_of_100_mb_are_413_to_clients_that_send_first_and_listen_then),
        REST_TEST(chunked_bodies_of_100_mb_are_413),
        REST_TEST(a_body_that_waits_for_100_continue_is_refused_unsent),
        REST_TEST(bodies_up_to_the_cap_are_taken),
        REST_TEST(targets_and_headers_beyond_8_kib_are_414_and_431),
        REST_TEST(a_path_of_100_mb_is_414),
        cmocka_unit_test(all_bodies_together_are_bounded),
        cmocka_unit_test(half_requests_are_cut_after_their_time),
        cmocka_unit_test(dripping_requests_are_cut_after_their_time),
        cmocka_unit_test(a_client_that_reads_nothing_is_cut),
        cmocka_unit_test(a_thousand_idle_connections_hold_up_nobody),
        REST_TEST(a_waiting_change_holds_up_nobody),
        cmocka_unit_test(a_change_that_takes_too_long_is_500_with_its_stage),
        cmocka_unit_test(a_loop_that_is_stuck_holds_up_no_answer),
        cmocka_unit_test(a_request_timed_out_without_a_stage_says_only_that),
        cmocka_unit_test(what_another_worker_has_done_is_told_at_the_deadline_too),
        REST_TEST(what_another_worker_has_done_is_told_within_seconds),
        REST_TEST(what_another_worker_has_done_is_told_by_one_that_stops),
        cmocka_unit_test(a_stuck_loop_is_unhealthy),
        REST_TEST(clients_that_leave_while_they_wait_do_no_harm),
        cmocka_unit_test(more_waiting_changes_than_allowed_are_503),
        cmocka_unit_test(validations_that_wait_keep_no_change_out),
        cmocka_unit_test(before_it_is_open_a_worker_says_503),
        REST_TEST(stopping_answers_everyone_who_waits),
        REST_TEST(closing_waits_for_nobody_and_goes_on_to_answer),
        cmocka_unit_test(stopping_under_load_is_safe),
        REST_TEST(a_port_in_use_is_one_clear_line),
        cmocka_unit_test(foreign_and_unknown_hosts_are_named),
        cmocka_unit_test(loopback_is_known_by_its_name),
        cmocka_unit_test(https_without_a_certificate_ends_the_start),
        cmocka_unit_test(the_worker_id_is_the_advertised_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
