/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a token endpoint, answers of all kinds, and when the next token is due. */
#include "base/oidc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WALL_MS INT64_C(1700000000000)
/* {"sub":"alice","iat":1699999990,"exp":1700000060} and {"iat":1699990000,"exp":1699990010}, and
 * {} */
#define JWT "e30.eyJzdWIiOiJhbGljZSIsImlhdCI6MTY5OTk5OTk5MCwiZXhwIjoxNzAwMDAwMDYwfQ.c2ln"
#define OLD "e30.eyJpYXQiOjE2OTk5OTAwMDAsImV4cCI6MTY5OTk5MDAxMH0."
#define BARE "e30.e30."

static struct mr_error err;

/* Of the usual settings with some changed: name, value, …, NULL. */
static struct oidc *read_with(const char *key, ...)
{
    struct props settings, jaas;
    struct oidc *o;
    va_list args;

    props_init(&settings);
    props_init(&jaas);
    props_set(&settings, "sasl.oauthbearer.token.endpoint.url",
              "https://idp.example/token?x=hidden");
    props_set(&jaas, "sasl.oauthbearer.client.id", "me");
    props_set(&jaas, "sasl.oauthbearer.client.secret", "hunter2");
    va_start(args, key);
    for (; key != NULL; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        if (value != NULL)
            props_set(&settings, key, value);
        else
            props_remove(&jaas, key);
    }
    va_end(args);
    err = (struct mr_error){0};
    o = oidc_new(&settings, &jaas, &err);
    props_deinit(&settings);
    props_deinit(&jaas);
    return o;
}

static void settings_win_over_the_login_module(void **state)
{
    struct oidc *o = read_with("sasl.oauthbearer.client.credentials.client.id", "other",
                               "sasl.oauthbearer.scope", "a b", "sasl.login.read.timeout.ms", "7",
                               "sasl.oauthbearer.header.urlencode", "TRUE",
                               "sasl.login.refresh.window.factor", "0.5", NULL);

    assert_non_null(o);
    assert_string_equal(o->client_id, "other");
    assert_string_equal(o->secret, "hunter2");
    assert_string_equal(o->scope, "a b");
    assert_string_equal(o->shown_url, "https://idp.example/token");
    assert_int_equal(o->read_ms, 7);
    assert_int_equal(o->connect_ms, 10000);
    assert_int_equal(o->buffer_ms, 300000);
    assert_true(o->encoded);
    assert_true(o->window_factor == 0.5);
    oidc_free(&o);
}

static void settings_that_can_not_work_are_named_without_the_secret(void **state)
{
    static const char *const cases[][3] = {
        {"sasl.oauthbearer.token.endpoint.url", "file:///hunter2", "http and https"},
        {"sasl.oauthbearer.token.endpoint.url", "https:///token", "no host"},
        {"sasl.oauthbearer.token.endpoint.url", "https://me:hunter2@idp/token", "no user"},
        {"sasl.oauthbearer.token.endpoint.url", "https://idp/to ken", "blank"},
        {"sasl.oauthbearer.client.id", NULL, "client.id"},
        {"sasl.oauthbearer.client.secret", NULL, "client.secret"},
        {"sasl.login.refresh.window.factor", "1.5", "from 0.5 to 1"},
        {"sasl.login.refresh.window.jitter", "nan", "window.jitter"},
        {"sasl.login.refresh.min.period.seconds", "901", "min.period"},
        {"sasl.login.read.timeout.ms", "1.5", "whole number"},
        {"sasl.login.retry.backoff.ms", "", "backoff.ms"},
        {"sasl.oauthbearer.header.urlencode", "maybe", "true or false"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_null(read_with(cases[i][0], cases[i][1], NULL));
        assert_int_equal(err.code, MR_ERR_CONFIG);
        if (strstr(err.text, cases[i][2]) == NULL)
            fail_msg("\"%s\" is not in: %s", cases[i][2], err.text);
        assert_null(strstr(err.text, "hunter2"));
    }
}

static void a_token_lives_as_long_as_its_answer_and_it_say(void **state)
{
    static const struct {
        const char *answer;
        int64_t life_ms;
        const char *principal;
    } cases[] = {
        {"{\"access_token\":\"" JWT "\"}", 60000, "alice"},
        {"{\"access_token\":\"" JWT "\",\"expires_in\":30}", 30000, "alice"},
        {"{\"access_token\":\"" JWT "\",\"expires_in\":3000}", 70000, "alice"},
        {"{\"access_token\":\"" JWT "\",\"expires_in\":\"x\"}", 60000, "alice"},
        {"{\"access_token\":\"" JWT "\",\"expires_in\":-1}", 60000, "alice"},
        {"{\"access_token\":\"" OLD "\",\"expires_in\":30}", 10000,
         "me"}, /* a clock that is wrong */
        {"{\"access_token\":\"opaque\",\"expires_in\":30}", 30000, "me"},
        {"{\"access_token\":\"a.b.c\",\"expires_in\":1e11}", INT64_C(366) * 86400000, "me"},
    };
    struct oidc *o = read_with(NULL);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct oidc_token token = {0};

        assert_int_equal(
            oidc_read(o, cases[i].answer, strlen(cases[i].answer), WALL_MS, &token, &err), 0);
        assert_int_equal(token.life_ms, cases[i].life_ms);
        assert_string_equal(token.principal, cases[i].principal);
        assert_true(strncmp(cases[i].answer + 17, token.text, strlen(token.text)) == 0);
        oidc_token_deinit(&token);
    }
    oidc_free(&o);
}

static void answers_without_a_token_are_told_without_their_words(void **state)
{
    static const char *const cases[][2] = {
        {"", "JSON object"},
        {"<html>hunter2</html>", "JSON object"},
        {"[\"hunter2\"]", "JSON object"},
        {"{\"access_token\":12,\"a\":\"hunter2\"}", "text access_token"},
        {"{\"id\":\"hunter2\"}", "text access_token"},
        {"{\"access_token\":\"\",\"expires_in\":9}", "empty"},
        {"{\"access_token\":\"hunter2 x\",\"expires_in\":9}", "blanks"},
        {"{\"access_token\":\"hunter2\\u0001auth=x\",\"expires_in\":9}", "blanks"},
        {"{\"access_token\":\"hunter2\"}", "expired"},
        {"{\"access_token\":\"" OLD "\"}", "expired"},
        {"{\"access_token\":\"" BARE "\",\"expires_in\":0}", "expired"},
        {"{\"access_token\":\"hunter2\",\"expires_in\":1e300}", "expired"},
    };
    struct oidc *o = read_with(NULL);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct oidc_token token = {.life_ms = 5};

        err = (struct mr_error){0};
        assert_int_equal(oidc_read(o, cases[i][0], strlen(cases[i][0]), WALL_MS, &token, &err),
                         MR_ERR_FATAL);
        if (strstr(err.text, cases[i][1]) == NULL)
            fail_msg("\"%s\" is not in: %s", cases[i][1], err.text);
        assert_non_null(strstr(err.text, "https://idp.example/token"));
        assert_null(strstr(err.text, "hunter2"));
        assert_null(strstr(err.text, "hidden"));
        assert_int_equal(token.life_ms, 5);
    }
    oidc_free(&o);
}

static void the_next_token_is_due_as_java_has_it(void **state)
{
    struct oidc *o = read_with(NULL);

    assert_int_equal(oidc_refresh_ms(o, 3600000, 0), 2880000);
    assert_int_equal(oidc_refresh_ms(o, 3600000, 1), 3060000);
    assert_int_equal(oidc_refresh_ms(o, 1000000, 0), 700000); /* the buffer */
    assert_int_equal(oidc_refresh_ms(o, 360000, 0), 60000);   /* and the least period */
    assert_int_equal(oidc_refresh_ms(o, 359000, 0), 287200);  /* no room for both */
    assert_int_equal(oidc_refresh_ms(o, 10000, 1), 8500);
    oidc_free(&o);
    o = read_with("sasl.login.refresh.window.factor", "1", "sasl.login.refresh.window.jitter",
                  "0.25", NULL);
    assert_int_equal(oidc_refresh_ms(o, 10000, 1), 10000);
    oidc_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_win_over_the_login_module),
        cmocka_unit_test(settings_that_can_not_work_are_named_without_the_secret),
        cmocka_unit_test(a_token_lives_as_long_as_its_answer_and_it_say),
        cmocka_unit_test(answers_without_a_token_are_told_without_their_words),
        cmocka_unit_test(the_next_token_is_due_as_java_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
