/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is another worker's: where it is sent, with what, how far, and what becomes of the
 * answer. The call and the other worker are played here. */
#include "worker/peer.h"
#include "worker/rest/rest_private.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the call, and the other worker ----------------------------------------------------------- */

struct call {
    struct exchange exchange;
    bool expired;
    bool ended;
    int64_t held_ms; /* how long at most; 0: it is not */
    int again;       /* how often it was begun again */
    char error[512];
    int status; /* of an error */
};

static char sent[1024]; /* "METHOD URL BODY AUTHORIZATION SIGNATURE" */
static peer_done answer_fn;
static void *answer_arg;

struct herder *call_herder(const struct call *call)
{
    return NULL;
}

struct exchange *call_exchange(const struct call *call)
{
    return (struct exchange *)(uintptr_t)&call->exchange;
}

struct exchange *call_take_back(struct call *call)
{
    return call->expired ? NULL : &call->exchange;
}

void call_end(struct call *call)
{
    call->ended = true;
}

void call_hold(struct call *call, int64_t max_ms)
{
    assert_int_not_equal(call->exchange.answer.status, 0);
    call->held_ms = max_ms;
}

void call_reply_error(struct call *call, int status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(call->error, sizeof(call->error), fmt, args);
    va_end(args);
    call->status = status;
    call->ended = true;
}

bool call_again(struct call *call)
{
    return call->again++ == 0;
}

struct peer *herder_peer(const struct herder *herder)
{
    return NULL;
}

static herder_done caught_up_fn; /* of whoever waits for it; NULL none */
static void *caught_up_arg;

void herder_catch_up(struct herder *herder, herder_done done, void *arg)
{
    caught_up_fn = done;
    caught_up_arg = arg;
}

static void catch_up(int code)
{
    struct mr_error err = {.code = code};
    struct herder_answer answer = {.err = code != 0 ? &err : NULL, .message = "it says no"};

    assert_non_null(caught_up_fn);
    caught_up_fn(caught_up_arg, &answer);
}

void peer_send(struct peer *peer, const struct peer_request *request, peer_done done, void *arg)
{
    snprintf(sent, sizeof(sent), "%s %s %.*s %s %s", request->method, request->url,
             (int)request->len, request->body != NULL ? request->body : "",
             request->authorization != NULL ? request->authorization : "-",
             request->signature != NULL ? request->signature : "-");
    answer_fn = done;
    answer_arg = arg;
}

char *peer_url(const char *base, const char *path)
{
    char *url = NULL;

    assert_true(asprintf(&url, "%.*s%s", (int)strlen(base) - 1, base, path) > 0);
    return url;
}

static struct call *new_call(const char *target)
{
    static const struct route route = {.method = "PUT", .pattern = "/connectors/{c}/config"};
    struct call *call = calloc(1, sizeof(*call));

    assert_int_equal(router_parse(&call->exchange.target, target, NULL), 0);
    call->exchange.match.route = &route;
    call->exchange.body = "{\"a\":1}";
    call->exchange.body_len = 7;
    call->exchange.authorization = "Basic x";
    snprintf(call->exchange.base, sizeof(call->exchange.base), "http://me:8083");
    sent[0] = '\0';
    answer_fn = NULL;
    caught_up_fn = NULL;
    return call;
}

static void end_call(struct call *call)
{
    router_deinit(&call->exchange.target);
    entities_deinit(&call->exchange.answer);
    free(call);
}

static void assert_sent(const char *target, const char *want)
{
    struct call *call = new_call(target);

    forward_call(call, "http://other:1/");
    assert_string_equal(sent, want);
    assert_false(call->ended);
    end_call(call);
}

static void the_request_goes_on_as_it_came_with_what_counts(void **state)
{
    (void)state;
    assert_sent("/connectors/a%20b/config",
                "PUT http://other:1/connectors/a%20b/config?forward=true {\"a\":1} Basic x -");
    assert_sent("http://me:8083/connectors/c%23d/config?x=y",
                "PUT http://other:1/connectors/c%23d/config?forward=true {\"a\":1} Basic x -");
    assert_sent("/connectors/c/config?x=y&forward=TRUE",
                "PUT http://other:1/connectors/c/config?forward=false {\"a\":1} Basic x -");
    assert_sent("/connectors/c/restart?includeTasks=True&onlyFailed=no",
                "PUT http://other:1/connectors/c/"
                "restart?forward=true&includeTasks=true&onlyFailed=false {\"a\":1} Basic x -");
}

static void assert_conflict(const char *target, const char *url, const char *words)
{
    struct call *call = new_call(target);

    forward_call(call, url);
    assert_int_equal(call->status, 409);
    assert_non_null(strstr(call->error, words));
    assert_null(answer_fn);
    end_call(call);
}

static void nobody_is_asked_a_third_time_and_nobody_unknown(void **state)
{
    (void)state;
    assert_conflict("/connectors/c/config?forward=false", "http://other:1/",
                    "because of a conflicting operation (e.g. worker rebalance)");
    assert_conflict("/connectors/c/config", "", "no known leader URL");
}

static struct call *answered(const struct peer_answer *answer)
{
    struct call *call = new_call("/connectors/c/config");

    forward_call(call, "http://other:1/");
    answer_fn(answer_arg, answer);
    if (call->held_ms != 0)
        catch_up(0);
    assert_true(call->ended);
    return call;
}

static void assert_answer(const struct peer_answer *answer, int status, const char *body)
{
    struct call *call = answered(answer);

    assert_int_equal(call->exchange.answer.status, status);
    if (body == NULL)
        assert_null(call->exchange.answer.body);
    else
        assert_string_equal(call->exchange.answer.body, body);
    end_call(call);
}

#define TEXT(text) .body = text, .len = sizeof(text) - 1

static void answers_are_taken_over(void **state)
{
    struct call *call;

    (void)state;
    assert_answer(&(struct peer_answer){.status = 204, TEXT("")}, 204, NULL);
    assert_answer(&(struct peer_answer){.status = 200, TEXT("{\"b\": 2}")}, 200, "{\"b\":2}");
    assert_answer(
        &(struct peer_answer){.status = 404, TEXT("{\"error_code\":404,\"message\":\"gone\"}")},
        404, "{\"error_code\":404,\"message\":\"gone\"}");
    call = answered(&(struct peer_answer){.status = 201, TEXT("{\"name\":\"n 1\"}")});
    assert_int_equal(call->exchange.answer.status, 201);
    assert_string_equal(call->exchange.answer.location, "http://me:8083/connectors/n%201");
    end_call(call);
}

static void what_is_no_answer_is_an_error_that_says_so(void **state)
{
    (void)state;
    assert_answer(&(struct peer_answer){.status = 0, TEXT(""), .error = "refused"}, 500,
                  "{\"error_code\":500,\"message\":\"IO Error trying to forward REST request: "
                  "refused; the other worker must be reachable at the address that it advertises "
                  "(rest.advertised.host.name and rest.advertised.port, else its first "
                  "listener)\"}");
    assert_answer(
        &(struct peer_answer){.status = 302, TEXT("")}, 500,
        "{\"error_code\":500,\"message\":\"Unexpected status code when handling forwarded "
        "request: 302\"}");
    assert_answer(
        &(struct peer_answer){.status = 200, TEXT("<html>")}, 500,
        "{\"error_code\":500,\"message\":\"Error trying to forward REST request: the other "
        "worker's answer is no JSON\"}");
    assert_answer(
        &(struct peer_answer){.status = 502, TEXT("<html>")}, 502,
        "{\"error_code\":502,\"message\":\"Error trying to forward REST request: the other "
        "worker's answer is no error that can be read\"}");
}

static void an_answer_that_comes_too_late_is_dropped(void **state)
{
    struct call *call = new_call("/connectors/c/config");

    (void)state;
    forward_call(call, "http://other:1/");
    call->expired = true;
    answer_fn(answer_arg, &(struct peer_answer){.status = 204, TEXT("")});
    assert_false(call->ended);
    assert_int_equal(call->exchange.answer.status, 0);
    end_call(call);
}

/* Who is told that a connector is there finds it, whomever the worker asked. */
static void an_answer_waits_until_what_it_tells_of_is_known_here(void **state)
{
    static const int codes[] = {0, MR_ERR_TIMEOUT};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct call *call = new_call("/connectors/c/config");

        forward_call(call, "http://other:1/");
        answer_fn(answer_arg, &(struct peer_answer){.status = 204, TEXT("")});
        assert_false(call->ended);
        assert_int_equal(call->held_ms, 3000);
        catch_up(codes[i]);
        assert_true(call->ended);
        assert_int_equal(call->exchange.answer.status, 204);
        end_call(call);
    }
}

static void an_error_waits_for_nothing(void **state)
{
    static const int statuses[] = {302, 400, 404, 409, 500};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct call *call = new_call("/connectors/c/config");

        forward_call(call, "http://other:1/");
        answer_fn(answer_arg, &(struct peer_answer){.status = statuses[i], TEXT("")});
        assert_true(call->ended);
        assert_null(caught_up_fn);
        end_call(call);
    }
}

static void an_answer_that_waits_too_long_is_dropped(void **state)
{
    struct call *call = new_call("/connectors/c/config");

    (void)state;
    forward_call(call, "http://other:1/");
    answer_fn(answer_arg, &(struct peer_answer){.status = 204, TEXT("")});
    call->expired = true;
    catch_up(0);
    assert_false(call->ended);
    end_call(call);
}

static const struct peer_answer given_up = {.body = "", .error = "who led", .given_up = true};

static void who_led_is_not_waited_for_but_another_asked_once(void **state)
{
    struct call *call = new_call("/connectors/c/config");

    (void)state;
    forward_call(call, "http://other:1/");
    answer_fn(answer_arg, &given_up);
    assert_int_equal(call->again, 1);
    assert_false(call->ended);
    forward_call(call, "http://next:1/");
    answer_fn(answer_arg, &given_up);
    assert_true(call->ended);
    assert_string_equal(call->exchange.answer.body,
                        "{\"error_code\":500,\"message\":\"IO Error trying to forward REST "
                        "request: who led\"}");
    end_call(call);
}

/* Whoever led may have created it. */
static void what_must_not_be_done_twice_is_not_sent_twice(void **state)
{
    static const struct route create = {.method = "POST", .pattern = "/connectors"};
    struct call *call = new_call("/connectors");

    (void)state;
    call->exchange.match.route = &create;
    forward_call(call, "http://other:1/");
    answer_fn(answer_arg, &given_up);
    assert_int_equal(call->again, 0);
    assert_int_equal(call->exchange.answer.status, 500);
    end_call(call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_goes_on_as_it_came_with_what_counts),
        cmocka_unit_test(nobody_is_asked_a_third_time_and_nobody_unknown),
        cmocka_unit_test(answers_are_taken_over),
        cmocka_unit_test(what_is_no_answer_is_an_error_that_says_so),
        cmocka_unit_test(an_answer_that_comes_too_late_is_dropped),
        cmocka_unit_test(an_answer_waits_until_what_it_tells_of_is_known_here),
        cmocka_unit_test(an_error_waits_for_nothing),
        cmocka_unit_test(an_answer_that_waits_too_long_is_dropped),
        cmocka_unit_test(who_led_is_not_waited_for_but_another_asked_once),
        cmocka_unit_test(what_must_not_be_done_twice_is_not_sent_twice),
    };

    log_set_level(LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
