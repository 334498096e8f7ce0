/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens fetched over HTTP, from an endpoint that is right, wrong, slow, endless, or not there. */
#include "base/clock.h"
#include "base/oidc_fetch.h"
#include "support/unit/token_endpoint.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOUND_MS 20000 /* a fault, not the machine */

static struct token_endpoint *endpoint;
static struct oidc *oidc;
static struct oidc_fetch *fetch;
static struct oidc_token token;
static struct mr_error err;

static void made(const char *url, const char *secret, const char *key, const char *value)
{
    struct props settings, jaas;

    props_init(&settings);
    props_init(&jaas);
    props_set(&settings, "sasl.oauthbearer.token.endpoint.url", url);
    props_set(&settings, "sasl.oauthbearer.client.credentials.client.id", "alice");
    props_set(&settings, "sasl.oauthbearer.client.credentials.client.secret", secret);
    props_set(&settings, "sasl.oauthbearer.scope", "kafka all&more");
    props_set(&settings, "sasl.login.retry.backoff.max.ms", "400");
    props_set(&settings, "sasl.login.retry.backoff.ms", "10");
    props_set(&settings, key, value);
    oidc = oidc_new(&settings, &jaas, &err);
    assert_non_null(oidc);
    fetch = oidc_fetch_new(oidc, &err);
    assert_non_null(fetch);
    props_deinit(&settings);
    props_deinit(&jaas);
}

static int setup(void **state)
{
    endpoint = token_endpoint_start();
    err = (struct mr_error){0};
    return 0;
}

static int teardown(void **state)
{
    oidc_token_deinit(&token);
    oidc_fetch_free(&fetch);
    oidc_free(&oidc);
    token_endpoint_stop(&endpoint);
    return 0;
}

static int fetch_it(void)
{
    int64_t from = clock_ms();
    int rc;

    err = (struct mr_error){0};
    rc = oidc_fetch_run(fetch, &token, &err);
    assert_true(clock_ms() - from < BOUND_MS);
    assert_int_equal(rc == 0, err.code == 0);
    if (strstr(err.text, TOKEN_ENDPOINT_SECRET) != NULL || strstr(err.text, "hunter2") != NULL)
        fail_msg("a secret is in: %s", err.text);
    return rc;
}

static void has(const char *word)
{
    if (strstr(err.text, word) == NULL)
        fail_msg("\"%s\" is not in: %s", word, err.text);
}

static void a_token_is_asked_for_as_java_asks(void **state)
{
    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "x", "");
    assert_int_equal(fetch_it(), 0);
    assert_string_equal(token.principal, "alice");
    assert_int_equal(token.life_ms, 3600000);
    assert_true(token_endpoint_saw(endpoint, "POST /token?q=1 HTTP/1.1\r\n"));
    assert_true(
        token_endpoint_saw(endpoint, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"));
    assert_true(token_endpoint_saw(endpoint, "\r\nAccept: application/json\r\n"));
    assert_true(token_endpoint_saw(endpoint, "\r\nAuthorization: Basic YWxpY2U6czNjcmV0OiY9\r\n"));
    assert_true(token_endpoint_saw(endpoint,
                                   "\r\n\r\ngrant_type=client_credentials&scope=kafka+all%26more"));
}

static void id_and_secret_are_encoded_when_asked_for(void **state)
{
    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "sasl.oauthbearer.header.urlencode",
         "true");
    assert_int_equal(fetch_it(), MR_ERR_FATAL); /* this endpoint takes them as they are */
    assert_true(
        token_endpoint_saw(endpoint, "Authorization: Basic YWxpY2U6czNjcmV0JTNBJTI2JTNE\r\n"));
}

static void a_refusal_is_told_once_and_names_what_to_check(void **state)
{
    made(token_endpoint_url(endpoint), "hunter2", "x", "");
    assert_int_equal(fetch_it(), MR_ERR_FATAL);
    has("status 401 and invalid_client");
    has("client id, secret");
    assert_int_equal(token_endpoint_asked(endpoint), 1);
}

static void what_may_pass_is_tried_again(void **state)
{
    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "x", "");
    token_endpoint_answer(endpoint, "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nhunter2");
    assert_int_equal(fetch_it(), MR_ERR_IO);
    has("status 503");
    assert_true(token_endpoint_asked(endpoint) > 2);
}

static void odd_answers_fail_without_their_words(void **state)
{
    static const char *const cases[][2] = {
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/hunter2\r\nConnection: close\r\n\r\n",
         "redirects are not followed"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>hunter2</html>", "JSON object"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"access_token\":[\"hunter2\"]}",
         "text access_token"},
        {"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n{\"error\":\"hunter2\"}", "status 400:"},
        {"hunter2 is no HTTP\r\n\r\n", "can't be asked"},
        {"", "can't be asked"},
    };

    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "sasl.login.retry.backoff.max.ms",
         "0");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        token_endpoint_answer(endpoint, cases[i][0]);
        assert_true(fetch_it() < 0);
        has(cases[i][1]);
        assert_int_equal(token_endpoint_asked(endpoint), i + 1); /* the redirect was not followed */
    }
}

static void an_answer_without_end_is_cut(void **state)
{
    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "x", "");
    token_endpoint_flood(endpoint);
    assert_int_equal(fetch_it(), MR_ERR_FATAL);
    has("more than 1048576 bytes");
}

static void an_endpoint_that_does_not_answer_costs_its_time_out(void **state)
{
    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "sasl.login.connect.timeout.ms", "1");
    oidc->connect_ms = 200;
    oidc->read_ms = 100;
    token_endpoint_hang(endpoint, true);
    assert_int_equal(fetch_it(), MR_ERR_IO);
    has("can't be asked");
}

static void an_endpoint_that_is_not_there_is_named(void **state)
{
    made("http://127.0.0.1:1/token?x=hunter2", TOKEN_ENDPOINT_SECRET, "x", "");
    assert_int_equal(fetch_it(), MR_ERR_IO);
    has("http://127.0.0.1:1/token can't be asked");
}

static void *run(void *arg)
{
    *(int *)arg = oidc_fetch_run(fetch, &token, &err);
    return NULL;
}

static void a_fetch_can_be_called_off(void **state)
{
    pthread_t thread;
    int rc = 1;
    int64_t from;

    made(token_endpoint_url(endpoint), TOKEN_ENDPOINT_SECRET, "sasl.login.read.timeout.ms",
         "600000");
    oidc->connect_ms = 600000; /* no timer of libcurl's ends the wait */
    token_endpoint_hang(endpoint, true);
    assert_int_equal(pthread_create(&thread, NULL, run, &rc), 0);
    while (token_endpoint_asked(endpoint) == 0)
        sched_yield();
    from = clock_ms();
    oidc_fetch_cancel(fetch);
    pthread_join(thread, NULL);
    assert_int_equal(rc, MR_ERR_CLOSED);
    assert_true(clock_ms() - from < BOUND_MS);
    assert_int_equal(oidc_fetch_run(fetch, &token, &err), MR_ERR_CLOSED);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_token_is_asked_for_as_java_asks),
        test(id_and_secret_are_encoded_when_asked_for),
        test(a_refusal_is_told_once_and_names_what_to_check),
        test(what_may_pass_is_tried_again),
        test(odd_answers_fail_without_their_words),
        test(an_answer_without_end_is_cut),
        test(an_endpoint_that_does_not_answer_costs_its_time_out),
        test(an_endpoint_that_is_not_there_is_named),
        test(a_fetch_can_be_called_off),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
