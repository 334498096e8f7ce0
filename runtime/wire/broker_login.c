/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a connection to READY: what the broker speaks, then who we are; and the renewal of a
 * login that ends.
 *
 *   VERSIONS ──ApiVersions v0──► HANDSHAKE ──SaslHandshake v1──► TOKENS ──► READY
 *                                   SaslAuthenticate, as often as it takes
 *
 * The requests go ahead of everything that is held. A broker that ends sessions (KIP-368) tells
 * their length with the last answer; at four fifths of it renew_due holds back new calls, and once
 * none is in flight the login is done again on the same connection. That may be after the session's
 * end, when a JoinGroup was parked: the broker allows it, since the next thing that it hears is the
 * handshake. Called by broker_conn.c. */
#include "broker_private.h"
#include "wire/kafka_code.h"

#include <string.h>

#define LEAST_SESSION_MS 1000

const struct answer_range *broker_login_range(const struct broker_conn *conn, enum request_api api)
{
    return conn->known[api] ? &conn->ranges[api] : NULL;
}

static void fail_with(struct broker_conn *conn, struct mr_error *err)
{
    broker_conn_fail(conn, err);
}

static void send_or_fail(struct broker_conn *conn, const struct request *request, answer_fn fn)
{
    struct mr_error err = {0};

    if (broker_conn_send(conn, request, conn->conf->setup_timeout_ms, true, fn, conn, &err) != 0)
        fail_with(conn, &err);
}

static void become_ready(struct broker_conn *conn)
{
    bool first = !conn->was_ready;

    conn->state = BROKER_READY;
    conn->was_ready = true;
    if (conn->failure.code == 0)
        loop_timer_cancel(&conn->timer);
    broker_conn_enter(conn);
    if (first)
        conn->events->ready(conn->arg);
    if (!conn->dead && conn->state == BROKER_READY)
        broker_conn_release(conn);
    broker_conn_leave(conn);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static void on_token(void *arg, const struct answer *answer, const struct mr_error *err);

static void renew(void *arg)
{
    struct broker_conn *conn = arg;

    conn->renew_due = true;
    broker_conn_release(conn);
}

static void send_token(struct broker_conn *conn, struct codec_bytes in)
{
    struct mr_error err = {0};
    struct buf out;
    int rc;

    buf_init(&out, 1 << 20);
    rc = sasl_step(conn->sasl, in, &out, &err);
    if (rc == 0) {
        struct request request = {
            .api = REQUEST_SASL_AUTHENTICATE,
            .sasl_authenticate.token = {.data = (const uint8_t *)out.data, .len = out.len}};

        send_or_fail(conn, &request, on_token);
    } else if (rc == MR_AGAIN) {
        sasl_free(&conn->sasl);
        if (conn->conf->token != NULL)
            wire_token_accepted(conn->conf->token);
        become_ready(conn);
    } else {
        err_prefix(&err, "login at broker %s", conn->name);
        fail_with(conn, &err);
    }
    buf_deinit(&out);
}

static void refuse_login(struct broker_conn *conn, int16_t code, const char *what)
{
    struct mr_error err = {0};
    bool again = kafka_code_act(code) != KAFKA_CODE_FATAL;
    const char *hint = kafka_code_hint(code);

    if (conn->conf->token != NULL && conn->state == BROKER_TOKENS)
        again = wire_token_refused(conn->conf->token, conn->token_number) || again;
    mr_fail(&err, again ? MR_ERR_IO : MR_ERR_FATAL,
            "broker %s refused the login by %s with %s: %.300s%s%s", conn->name,
            sasl_name(conn->conf->sasl.mechanism), kafka_code_name(code), what,
            hint[0] != '\0' ? "; " : "", hint);
    fail_with(conn, &err);
}

static void on_token(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct broker_conn *conn = arg;
    const struct answer_sasl_authenticate *a;

    if (err != NULL)
        return; /* the connection ended, and says so itself */
    a = &answer->sasl_authenticate;
    if (answer->error != 0) {
        refuse_login(conn, answer->error, a->message != NULL ? a->message : "no reason is given");
        return;
    }
    if (a->session_lifetime_ms > 0) {
        int64_t ms = a->session_lifetime_ms / 5 * 4;

        loop_timer_start(conn->loop, &conn->renew_timer,
                         ms > LEAST_SESSION_MS ? ms : LEAST_SESSION_MS, renew, conn);
    }
    send_token(conn, a->token);
}

/* --- handshake -------------------------------------------------------------------------------- */

static void refuse_mechanism(struct broker_conn *conn, const struct answer *answer)
{
    char list[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < answer->sasl_handshake.mechanism_count && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i > 0 ? ", " : "it takes ", answer->sasl_handshake.mechanisms[i]);
    refuse_login(conn, answer->error, list);
}

static void take_token(struct broker_conn *conn);

static void on_fetched(void *arg, const struct mr_error *err)
{
    struct broker_conn *conn = arg;
    struct mr_error why = err != NULL ? *err : (struct mr_error){0};

    wire_token_wait_free(&conn->token_wait);
    if (err == NULL) {
        take_token(conn);
        return;
    }
    err_prefix(&why, "login at broker %s", conn->name);
    fail_with(conn, &why);
}

/* The broker is in no hurry between the handshake and the token. */
static void take_token(struct broker_conn *conn)
{
    struct mr_error err = {0};
    char *token = NULL;
    int rc = wire_token_get(conn->conf->token, &token, &conn->token_number, &err);

    if (rc == MR_AGAIN)
        conn->token_wait =
            wire_token_wait_new(conn->conf->token, conn->loop, on_fetched, conn, &err);
    if (rc == 0) {
        sasl_give_token(conn->sasl, token);
        send_token(conn, (struct codec_bytes){0});
    } else if (conn->token_wait == NULL) {
        fail_with(conn, &err);
    }
}

static void on_handshake(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct broker_conn *conn = arg;

    if (err != NULL)
        return;
    if (answer->error != 0) {
        refuse_mechanism(conn, answer);
        return;
    }
    conn->state = BROKER_TOKENS;
    sasl_free(&conn->sasl);
    conn->sasl = sasl_new(&conn->conf->sasl);
    if (conn->conf->token != NULL)
        take_token(conn);
    else
        send_token(conn, (struct codec_bytes){0});
}

void broker_login_start(struct broker_conn *conn)
{
    struct request request = {.api = REQUEST_SASL_HANDSHAKE,
                              .sasl_handshake.mechanism = sasl_name(conn->conf->sasl.mechanism)};

    conn->renew_due = false;
    conn->state = BROKER_HANDSHAKE;
    send_or_fail(conn, &request, on_handshake);
}

/* --- versions --------------------------------------------------------------------------------- */

static void keep_ranges(struct broker_conn *conn, const struct answer_api_versions *v)
{
    for (size_t i = 0; i < v->range_count; i++)
        for (int api = 0; api < REQUEST_API_COUNT; api++)
            if (request_key((enum request_api)api) == v->ranges[i].key) {
                conn->ranges[api] = v->ranges[i];
                conn->known[api] = true;
            }
}

static void on_versions(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct broker_conn *conn = arg;
    struct mr_error why = {0};

    if (err != NULL)
        return;
    if (answer->error != 0) {
        mr_fail(&why,
                kafka_code_act(answer->error) == KAFKA_CODE_FATAL ? MR_ERR_UNSUPPORTED : MR_ERR_IO,
                "broker %s answered ApiVersions with %s (%d)%s%s", conn->name,
                kafka_code_name(answer->error), answer->error,
                kafka_code_hint(answer->error)[0] != '\0' ? ": " : "",
                kafka_code_hint(answer->error));
        fail_with(conn, &why);
        return;
    }
    keep_ranges(conn, &answer->api_versions);
    if (conn->conf->login)
        broker_login_start(conn);
    else
        become_ready(conn);
}

void broker_login_begin(struct broker_conn *conn)
{
    conn->state = BROKER_VERSIONS;
    send_or_fail(conn, &(struct request){.api = REQUEST_API_VERSIONS}, on_versions);
}
