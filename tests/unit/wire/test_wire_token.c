/* SPDX-License-Identifier: Apache-2.0 */
/* Logins by OAUTHBEARER with tokens of an endpoint: waited for without holding up the loop, renewed
 * in time, and what comes of an endpoint or a broker that refuses. */
#include "support/unit/token_endpoint.h"
#include "wire_rig.h"

#include "base/clock.h"
#include "wire/broker_conn.h"
#include "wire/wire_private.h"

#include <pthread.h>

static struct token_endpoint *endpoint;
static struct broker_conn *conn;
static int ready_count;
static int closed_count;
static struct mr_error closed_err;

/* What the broker got and says. */
static struct {
    pthread_mutex_t lock;
    int logins;
    char token[4096]; /* the newest */
    int error;
    int64_t lifetime_ms;
} broker = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct buf *out = &reply->body;

    pthread_mutex_lock(&broker.lock);
    if (request->key == 17) {
        codec_put_i16(out, 0);
        codec_put_count(out, 0);
    } else if (request->key == 36) {
        broker.logins++;
        snprintf(broker.token, sizeof(broker.token), "%.*s", (int)request->body.len - 4,
                 (const char *)request->body.data + 4);
        codec_put_i16(out, (int16_t)broker.error);
        codec_put_text(out, broker.error != 0 ? "no such token" : NULL);
        codec_put_count(out, 0);
        codec_put_i64(out, broker.lifetime_ms);
    } else {
        stub_broker_fine(NULL, request, reply);
    }
    pthread_mutex_unlock(&broker.lock);
}

static void broker_says(int error, int64_t lifetime_ms)
{
    pthread_mutex_lock(&broker.lock);
    broker.error = error;
    broker.lifetime_ms = lifetime_ms;
    pthread_mutex_unlock(&broker.lock);
}

static int logins(void)
{
    int count;

    pthread_mutex_lock(&broker.lock);
    count = broker.logins;
    pthread_mutex_unlock(&broker.lock);
    return count;
}

static void on_ready(void *arg)
{
    ready_count++;
}

static void on_closed(void *arg, const struct mr_error *err)
{
    closed_count++;
    closed_err = *err;
}

static const struct wire_conf *oauth_conf(const char *secret, const char *key, const char *value)
{
    return rig_conf("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "OAUTHBEARER",
                    "sasl.oauthbearer.token.endpoint.url", token_endpoint_url(endpoint),
                    "sasl.oauthbearer.client.credentials.client.id", "alice",
                    "sasl.oauthbearer.client.credentials.client.secret", secret, "sasl.jaas.config",
                    "OAuthBearerLoginModule required extension_a=\"b\";", key, value, NULL);
}

static void open_to(const struct wire_conf *conf)
{
    static const struct broker_conn_events events = {.ready = on_ready, .closed = on_closed};
    struct mr_error err = {0};

    ready_count = closed_count = 0;
    conn = broker_conn_new(
        rig_loop, conf,
        &(struct broker_conn_to){.host = "127.0.0.1", .port = stub_broker_port(rig_stub)}, &events,
        NULL, &err);
    if (conn == NULL)
        fail_msg("%s", err.text);
}

static bool is_up(void *arg)
{
    return ready_count > 0 || closed_count > 0;
}

static bool both_are_up(void *arg)
{
    return ready_count + closed_count >= 2;
}

static bool is_asked(void *arg)
{
    return token_endpoint_asked(endpoint) >= *(int *)arg;
}

static void await_asked(int count)
{
    rig_run_until(is_asked, &count, "the endpoint is asked");
}

static void beat(int expected_failure)
{
    struct request request = rig_heartbeat();
    struct rig_call c = {0};
    struct mr_error err = {0};

    if (broker_conn_call(conn, &request, 10000, rig_note, &c, &err) != 0)
        fail_msg("%s", err.text);
    rig_await(&c);
    assert_int_equal(c.failed, expected_failure);
}

static int setup(void **state)
{
    broker.logins = 0;
    broker_says(0, 0);
    endpoint = token_endpoint_start();
    if (rig_setup(state) != 0)
        return 1;
    rig_stub = stub_broker_start(&(struct stub_options){.answer = answer});
    return 0;
}

static int teardown(void **state)
{
    broker_conn_free(&conn);
    rig_teardown(state);
    token_endpoint_stop(&endpoint);
    return 0;
}

/* --- getting in ------------------------------------------------------------------------------- */

static void a_login_waits_for_its_token_and_the_loop_does_not(void **state)
{
    token_endpoint_hang(endpoint, true);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL));
    await_asked(1);
    rig_run_for(50); /* the loop's timer comes */
    assert_int_equal(ready_count + closed_count, 0);
    assert_int_equal(logins(), 0);
    token_endpoint_hang(endpoint, false);
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(ready_count, 1);
    assert_int_equal(logins(), 1);
    rig_has(broker.token, "n,,\1auth=Bearer eyJhbGciOiJub25lIn0.");
    rig_has(broker.token, ".\1a=b\1\1");
    beat(0);
}

static void an_endpoint_that_refuses_is_fatal(void **state)
{
    open_to(oauth_conf("hunter2", NULL, NULL));
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "login at broker 127.0.0.1:");
    rig_has(closed_err.text, "invalid_client");
    assert_null(strstr(closed_err.text, "hunter2"));
    assert_int_equal(logins(), 0);
}

static void an_endpoint_that_is_silent_is_named_when_the_time_is_over(void **state)
{
    token_endpoint_hang(endpoint, true);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, "socket.connection.setup.timeout.ms", "300"));
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(closed_err.code, MR_ERR_IO);
    rig_has(closed_err.text, "the token endpoint did not answer");
}

static void one_fetch_serves_all_that_wait(void **state)
{
    const struct wire_conf *conf = oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL);
    struct broker_conn *first;

    token_endpoint_hang(endpoint, true);
    open_to(conf);
    first = conn;
    await_asked(1);
    open_to(conf);
    rig_run_for(50);
    token_endpoint_hang(endpoint, false);
    rig_run_until(both_are_up, NULL, "both are ready");
    assert_int_equal(closed_count, 0);
    assert_int_equal(token_endpoint_asked(endpoint), 1);
    broker_conn_free(&first);
}

/* --- staying in ------------------------------------------------------------------------------- */

static bool has_asked_twice_and_beats(void *arg)
{
    beat(0);
    return token_endpoint_given(endpoint) >= 2;
}

static void calls_keep_the_token_fresh(void **state)
{
    char first[4096];

    token_endpoint_life(endpoint, 1);
    broker_says(0, 60000);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL));
    rig_run_until(is_up, NULL, "ready or closed");
    snprintf(first, sizeof(first), "%s", broker.token);
    rig_run_until(has_asked_twice_and_beats, NULL, "a second token");
    assert_int_equal(logins(), 1);
    broker_conn_free(&conn);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL));
    rig_run_until(is_up, NULL, "ready or closed");
    assert_string_not_equal(broker.token, first);
}

static bool has_logged_in_again_and_beats(void *arg)
{
    beat(0);
    return logins() > *(int *)arg;
}

/* The broker wants a new login each second; the endpoint is asked after 4 s and says nothing. */
static void a_silent_endpoint_holds_up_nothing_while_a_token_lasts(void **state)
{
    int before;

    token_endpoint_life(endpoint, 8);
    broker_says(0, 1000);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, "sasl.login.refresh.window.factor", "0.5"));
    rig_run_until(is_up, NULL, "ready or closed");
    token_endpoint_hang(endpoint, true);
    while (token_endpoint_asked(endpoint) < 2) {
        int64_t from = clock_ms();

        beat(0);
        assert_true(clock_ms() - from < 3000);
    }
    before = logins();
    rig_run_until(has_logged_in_again_and_beats, &before, "a renewed login");
    assert_int_equal(closed_count, 0);
    assert_int_equal(stub_broker_connections(rig_stub), 1);
}

static void a_token_that_a_broker_took_before_may_be_refused_once(void **state)
{
    const struct wire_conf *conf = oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL);

    open_to(conf);
    rig_run_until(is_up, NULL, "ready or closed");
    broker_conn_free(&conn);
    broker_says(58, 0);
    open_to(conf);
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(closed_err.code, MR_ERR_IO);
    broker_conn_free(&conn);
    broker_says(0, 0);
    open_to(conf);
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(ready_count, 1);
    assert_int_equal(token_endpoint_given(endpoint), 2); /* a new one */
}

static void a_first_token_that_is_refused_is_fatal(void **state)
{
    broker_says(58, 0);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL));
    rig_run_until(is_up, NULL, "ready or closed");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "no such token");
    assert_null(strstr(closed_err.text, "eyJ"));
}

static void everything_may_end_while_a_token_is_fetched(void **state)
{
    int64_t from;

    token_endpoint_hang(endpoint, true);
    open_to(oauth_conf(TOKEN_ENDPOINT_SECRET, "sasl.login.read.timeout.ms", "600000"));
    await_asked(1);
    from = clock_ms();
    broker_conn_free(&conn);
    rig_conf(NULL); /* the one before is freed */
    assert_true(clock_ms() - from < 20000);
}

/* --- beside a connection ---------------------------------------------------------------------- */

static int told_count;
static struct mr_error told;

static void on_told(void *arg, const struct mr_error *err)
{
    told_count++;
    told = err != NULL ? *err : (struct mr_error){0};
}

static bool is_told(void *arg)
{
    return told_count > 0;
}

static void a_token_that_is_over_before_it_is_heard_of_says_so(void **state)
{
    struct wire_token *token = oauth_conf(TOKEN_ENDPOINT_SECRET, NULL, NULL)->token;
    struct wire_token_wait *wait;
    struct mr_error err = {0};
    char *text = NULL;
    uint64_t number = 0;

    told_count = 0;
    token_endpoint_hang(endpoint, true);
    assert_int_equal(wire_token_get(token, &text, &number, &err), MR_AGAIN);
    wait = wire_token_wait_new(token, rig_loop, on_told, NULL, &err);
    token_endpoint_hang(endpoint, false);
    for (int64_t end = clock_ms() + 5000; clock_ms() < end && text == NULL;)
        wire_token_get(token, &text, &number, &err);
    wire_token_refused(token, number); /* as if its time were over */
    rig_run_until(is_told, NULL, "the wait is told");
    assert_int_equal(told.code, MR_ERR_IO);
    rig_has(told.text, "before it could be used");
    wire_token_wait_free(&wait);
    free(text);
}

static void an_endpoint_that_refused_is_not_asked_at_every_login(void **state)
{
    const struct wire_conf *conf = oauth_conf("hunter2", NULL, NULL);

    for (int i = 0; i < 3; i++) {
        open_to(conf);
        rig_run_until(is_up, NULL, "ready or closed");
        assert_int_equal(closed_err.code, MR_ERR_FATAL);
        rig_has(closed_err.text, "invalid_client");
        broker_conn_free(&conn);
    }
    assert_int_equal(token_endpoint_asked(endpoint), 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_login_waits_for_its_token_and_the_loop_does_not),
        test(an_endpoint_that_refuses_is_fatal),
        test(an_endpoint_that_is_silent_is_named_when_the_time_is_over),
        test(one_fetch_serves_all_that_wait),
        test(calls_keep_the_token_fresh),
        test(a_silent_endpoint_holds_up_nothing_while_a_token_lasts),
        test(a_token_that_a_broker_took_before_may_be_refused_once),
        test(a_first_token_that_is_refused_is_fatal),
        test(a_token_that_is_over_before_it_is_heard_of_says_so),
        test(an_endpoint_that_refused_is_not_asked_at_every_login),
        test(everything_may_end_while_a_token_is_fetched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
