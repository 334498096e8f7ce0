/* SPDX-License-Identifier: Apache-2.0 */
/* The connection. All of libpq's waiting is done here, by poll, so that a stop ends it: a task that
 * must stop closes the connection, and the server rolls back. The task's thread.
 *
 *   closed ─ready─► connecting ─► open ─query, next, flush─► open
 *     ▲                │ not within CONNECT_MS, refused        │ lost, or in an unknown state
 *     └────────────────┴───────────────────────────────────────┘
 *
 * A failure is the records' (SQLSTATE 22, 23), passing (connections, locks, shutdown, resources),
 * or for good. Passing ones are tried again after retry.backoff.ms, max.retries times. */
#include "pg_conn.h"

#include "pg_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_MS 30000
#define POLL_MS 1000

void pg_conn_init(struct pg_conn *c, const struct mr_task *task)
{
    *c = (struct pg_conn){.task = task};
}

void pg_conn_close(struct pg_conn *c)
{
    PQfinish(c->pg);
    c->pg = NULL;
}

/* --- failures --------------------------------------------------------------------------------- */

/* Classes of SQLSTATE, and whole ones, by their first characters. */
static const struct {
    const char *state;
    int code;
} states[] = {
    {"08", MR_ERR_RETRY},    /* connection */
    {"22", MR_ERR_DATA},     /* values out of range, of another form */
    {"23", MR_ERR_DATA},     /* constraints */
    {"25P03", MR_ERR_RETRY}, /* idle in a transaction for too long */
    {"40", MR_ERR_RETRY},    /* deadlock, serialization */
    {"42804", MR_ERR_DATA},  /* of another type than the column */
    {"53", MR_ERR_RETRY},    /* disk, memory, connections */
    {"55P03", MR_ERR_RETRY}, /* a lock */
    {"57", MR_ERR_RETRY},    /* shutdown, starting, cancelled */
    {"58", MR_ERR_RETRY},    /* the server's system */
    {"42P01", MR_ERR_RETRY}, /* tables changed under us: they are looked at anew */
    {"42P07", MR_ERR_RETRY}, {"42701", MR_ERR_RETRY},
    {"42703", MR_ERR_RETRY}, {"0A000", MR_ERR_RETRY},
};

static int code_of(const char *state)
{
    for (size_t i = 0; state != NULL && i < sizeof(states) / sizeof(states[0]); i++)
        if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
            return states[i].code;
    return MR_ERR_FATAL;
}

static int64_t limit(const struct pg_conn *c)
{
    return mr_config_long(c->task, "max.retries");
}

/* text is the server's or libpq's: its lines become one. */
static int give(struct pg_conn *c, int code, const char *what, const char *text,
                struct mr_error *err)
{
    char line[800];
    size_t len = 0;

    for (; *text != '\0' && len < sizeof(line) - 2; text++)
        if ((unsigned char)*text > ' ') {
            line[len++] = *text;
        } else if (len > 0 && line[len - 1] != ' ' && text[1] != '\0') {
            if (*text == '\n')
                line[len++] = ';';
            line[len++] = ' ';
        }
    line[len] = '\0';
    if (code == MR_ERR_RETRY && ++c->failures > limit(c))
        return mr_fail(err, MR_ERR_FATAL, "Can't %s, after %" PRId64 " retries (max.retries): %s",
                       what, limit(c), line);
    mr_fail(err, code, "Can't %s: %s", what, line);
    if (code == MR_ERR_RETRY)
        return mr_retry_after(err, mr_config_long(c->task, "retry.backoff.ms"));
    return code;
}

static int fail_told(struct pg_conn *c, const PGresult *res, const char *what, struct mr_error *err)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);
    const char *context = PQresultErrorField(res, PG_DIAG_CONTEXT);
    const char *message = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    char text[800];

    snprintf(text, sizeof(text), "%s%s%s%s%s%s (SQLSTATE %s)",
             message == NULL ? PQresultErrorMessage(res) : message, detail == NULL ? "" : ": ",
             detail == NULL ? "" : detail, context == NULL ? "" : " [",
             context == NULL ? "" : context, context == NULL ? "" : "]",
             state == NULL ? "unknown" : state);
    return give(c, code_of(state), what, text, err);
}

int pg_conn_fail(struct pg_conn *c, const PGresult *res, const char *what, struct mr_error *err)
{
    int rc;

    if (res != NULL && PQresultErrorField(res, PG_DIAG_SQLSTATE) != NULL)
        rc = fail_told(c, res, what, err);
    else if (c->pg != NULL)
        rc = give(c, MR_ERR_RETRY, what, PQerrorMessage(c->pg), err);
    else
        rc = give(c, MR_ERR_RETRY, what, "the connection is lost", err);
    if (rc != MR_ERR_DATA || c->pg == NULL || PQstatus(c->pg) != CONNECTION_OK)
        pg_conn_close(c);
    return rc;
}

void pg_conn_worked(struct pg_conn *c)
{
    c->failures = 0;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* MR_ERR_CLOSED: the task stops. 0 too when nothing has come for a second. */
static int wait_for(const struct pg_conn *c, short events)
{
    struct pollfd fds[] = {{.fd = PQsocket(c->pg), .events = events},
                           {.fd = mr_stop_fd(c->task), .events = POLLIN}};

    (void)poll(fds, 2, POLL_MS);
    return (fds[1].revents & POLLIN) != 0 ? MR_ERR_CLOSED : MR_OK;
}

static int stopped(struct pg_conn *c, struct mr_error *err)
{
    pg_conn_close(c);
    return mr_fail(err, MR_ERR_RETRY, "Stopped while waiting for PostgreSQL");
}

int pg_conn_flush(struct pg_conn *c, struct mr_error *err)
{
    int left;

    while ((left = PQflush(c->pg)) > 0) {
        if (wait_for(c, POLLIN | POLLOUT) != MR_OK)
            return stopped(c, err);
        if (!PQconsumeInput(c->pg))
            break;
    }
    return left == 0 ? MR_OK : pg_conn_fail(c, NULL, "send to PostgreSQL", err);
}

PGresult *pg_conn_next(struct pg_conn *c, struct mr_error *err)
{
    if (pg_conn_flush(c, err) != MR_OK)
        return NULL;
    while (PQisBusy(c->pg)) {
        if (wait_for(c, POLLIN) != MR_OK) {
            stopped(c, err);
            return NULL;
        }
        if (!PQconsumeInput(c->pg)) {
            pg_conn_fail(c, NULL, "hear from PostgreSQL", err);
            return NULL;
        }
    }
    return PQgetResult(c->pg);
}

/* --- queries ---------------------------------------------------------------------------------- */

static bool is_good(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN;
}

PGresult *pg_conn_query(struct pg_conn *c, const char *sql, const char *what, struct mr_error *err)
{
    PGresult *last = NULL, *res;
    struct mr_error *failed = err;

    if (!PQsendQuery(c->pg, sql)) {
        pg_conn_fail(c, NULL, what, err);
        return NULL;
    }
    while ((res = pg_conn_next(c, failed)) != NULL) {
        if (last != NULL && is_good(last)) {
            PQclear(last);
            last = res;
        } else if (last == NULL) {
            last = res;
        } else {
            PQclear(res); /* the first failure stays */
        }
        if (PQresultStatus(last) == PGRES_COPY_IN)
            return last;
    }
    if (c->pg == NULL || last == NULL || !is_good(last)) {
        if (c->pg != NULL || err->code == 0)
            pg_conn_fail(c, last, what, err);
        PQclear(last);
        return NULL;
    }
    return last;
}

int pg_conn_run(struct pg_conn *c, const char *sql, const char *what, struct mr_error *err)
{
    PGresult *res = pg_conn_query(c, sql, what, err);

    PQclear(res);
    return res != NULL ? MR_OK : err->code;
}

/* --- connecting ------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Defaults of ours, which the user's URL overrides, then what must be. A server that is cut off is
 * given up after a minute; one that we are cut off from does so by itself, so that nothing of ours
 * is locked for long. */
static PGconn *begin(const struct mr_task *task)
{
    const char *user = mr_config_str(task, "connection.user");
    const char *password = mr_config_secret(task, "connection.password");
    const char *name = mr_config_raw(task, "name");
    const char *keys[] = {"tcp_user_timeout",
                          "keepalives_idle",
                          "fallback_application_name",
                          "dbname",
                          "client_encoding",
                          user != NULL ? "user" : "client_encoding",
                          password != NULL ? "password" : "client_encoding",
                          NULL};
    const char *values[] = {"60000",
                            "30",
                            name == NULL ? "millrace" : name,
                            pg_settings_url(task),
                            "UTF8",
                            user != NULL ? user : "UTF8",
                            password != NULL ? password : "UTF8",
                            NULL};

    return PQconnectStartParams(keys, values, 1);
}

static int finish(struct pg_conn *c, struct mr_error *err)
{
    int64_t until_ms = now_ms() + CONNECT_MS;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        if (now_ms() >= until_ms)
            return mr_fail(err, MR_ERR_TIMEOUT, "no answer within %d s", CONNECT_MS / 1000);
        if (wait_for(c, status == PGRES_POLLING_READING ? POLLIN : POLLOUT) != MR_OK)
            return stopped(c, err);
        status = PQconnectPoll(c->pg);
    }
    return status == PGRES_POLLING_OK ? MR_OK : MR_ERR_IO;
}

/* libpq has no SQLSTATE for a connection that was refused: by its words. */
static bool is_refused_for_good(const char *text)
{
    static const char *const words[] = {
        "authentication failed",      "no pg_hba.conf entry", "does not exist",
        "no password supplied",       "permission denied",    "certificate verify failed",
        "server does not support SSL"};

    if (strstr(text, "starting up") != NULL || strstr(text, "shutting down") != NULL)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i]) != NULL)
            return true;
    return false;
}

static int fail_connect(struct pg_conn *c, int rc, struct mr_error *err)
{
    char text[sizeof(err->text)];
    int code;

    if (c->pg == NULL) /* stopped */
        return err->code;
    snprintf(text, sizeof(text), "%s", rc == MR_ERR_TIMEOUT ? err->text : PQerrorMessage(c->pg));
    code = is_refused_for_good(text) ? MR_ERR_FATAL : MR_ERR_RETRY;
    pg_conn_close(c);
    err->code = 0;
    return give(c, code, "connect to PostgreSQL", text, err);
}

/* Texts are what pg_text.c writes; times are UTC; a task that is frozen in the middle of a
 * transaction holds no locks for long. */
static const char settings[] = "SET standard_conforming_strings = on; SET timezone = 'UTC'; "
                               "SET datestyle = 'ISO, YMD'; "
                               "SET idle_in_transaction_session_timeout = '20s'";

int pg_conn_ready(struct pg_conn *c, struct mr_error *err)
{
    int rc;

    if (c->pg != NULL && PQstatus(c->pg) == CONNECTION_OK)
        return MR_OK;
    pg_conn_close(c);
    c->pg = begin(c->task);
    if (c->pg == NULL)
        return mr_fail(err, MR_ERR_FATAL, "Out of memory for a connection to PostgreSQL");
    rc = PQstatus(c->pg) == CONNECTION_BAD ? MR_ERR_IO : finish(c, err);
    if (rc != MR_OK)
        return fail_connect(c, rc, err);
    c->life++;
    PQsetnonblocking(c->pg, 1);
    return pg_conn_run(c, settings, "set up a connection to PostgreSQL", err);
}
