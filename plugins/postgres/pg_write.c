/* SPDX-License-Identifier: Apache-2.0 */
/* Writing. Inserts go by COPY, in blocks; everything else by prepared statements in libpq's
 * pipeline, of which some hundred are sent before their answers are read, so few that neither side
 * can wait for the other to read. The task's thread.
 *
 *   none ─row, copies─► COPY open ─row of another plan, end─► none
 *   none ─row, else──► pipeline ─QUEUE_MAX, end: answers read─► none */
#include "pg_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)64 * 1024)
#define QUEUE_MAX 256

void pg_write_deinit(struct pg_write *w)
{
    pg_text_deinit(&w->text);
    pg_text_deinit(&w->cell);
}

/* --- COPY ------------------------------------------------------------------------------------- */

static int send_block(struct pg_write *w, struct mr_error *err)
{
    struct pg_conn *conn = w->conn;
    int sent = 1;

    if (w->text.len > 0)
        while ((sent = PQputCopyData(conn->pg, w->text.p, (int)w->text.len)) == 0)
            if (pg_conn_flush(conn, err) != MR_OK)
                return err->code;
    pg_text_clear(&w->text);
    return sent > 0 ? pg_conn_flush(conn, err)
                    : pg_conn_fail(conn, NULL, "send rows to PostgreSQL", err);
}

static int begin_copy(struct pg_write *w, struct pg_plan *plan, struct mr_error *err)
{
    PGresult *res = pg_conn_query(w->conn, plan->sql, "write rows", err);
    bool open = res != NULL && PQresultStatus(res) == PGRES_COPY_IN;

    PQclear(res);
    pg_text_clear(&w->text);
    w->copying = open ? plan : NULL;
    return open ? MR_OK : err->code;
}

/* Answers until there are none; the first failure is told. */
static int take_answers(struct pg_conn *conn, struct mr_error *err)
{
    PGresult *res, *failed = NULL;

    while ((res = pg_conn_next(conn, err)) != NULL) {
        if (failed == NULL && PQresultStatus(res) != PGRES_COMMAND_OK)
            failed = res;
        else
            PQclear(res);
    }
    if (err->code == 0 && failed != NULL)
        pg_conn_fail(conn, failed, "write rows", err);
    PQclear(failed);
    return err->code;
}

static int end_copy(struct pg_write *w, struct mr_error *err)
{
    int rc = send_block(w, err);

    w->copying = NULL;
    if (rc != MR_OK)
        return rc;
    if (PQputCopyEnd(w->conn->pg, NULL) < 0)
        return pg_conn_fail(w->conn, NULL, "send rows to PostgreSQL", err);
    return take_answers(w->conn, err);
}

/* Which field, of which record. */
static int fail_field(const struct mr_record *rec, const struct pg_column *column,
                      struct mr_error *err)
{
    struct mr_error why = *err;

    err->code = 0;
    return mr_fail(err, why.code, "Record %s-%d@%" PRId64 ", column %s: %s", rec->topic,
                   (int)rec->partition, rec->offset, column->name, why.text);
}

static int add_line(struct pg_write *w, const struct pg_plan *plan, const struct mr_record *rec,
                    struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; i < plan->column_count && rc == MR_OK; i++) {
        struct mr_value v = pg_column_value(&plan->columns[i], rec);

        pg_text_add(&w->text, "\t", i > 0);
        if (mr_is_null(v)) {
            pg_text_put(&w->text, "\\N");
            continue;
        }
        pg_text_clear(&w->cell);
        rc = pg_text_value(&w->cell, w->arena, plan->columns[i].schema, v, err);
        if (rc == MR_OK)
            pg_text_copy_cell(&w->text, w->cell.len == 0 ? "" : w->cell.p, w->cell.len);
        else
            rc = fail_field(rec, &plan->columns[i], err);
    }
    pg_text_put(&w->text, "\n");
    if (rc == MR_OK && w->text.over)
        rc = mr_fail(err, MR_ERR_DATA, "A row is larger than %zu bytes", PG_TEXT_MAX);
    return rc;
}

/* --- the pipeline ----------------------------------------------------------------------------- */

static int read_answers(struct pg_conn *conn, struct mr_error *err)
{
    PGresult *failed = NULL, *res;
    bool synced = false;

    while (!synced) {
        res = pg_conn_next(conn, err);
        if (res == NULL && err->code != 0)
            break;
        synced = PQresultStatus(res) == PGRES_PIPELINE_SYNC;
        if (failed == NULL && res != NULL && PQresultStatus(res) == PGRES_FATAL_ERROR)
            failed = res;
        else
            PQclear(res);
        if (conn->pg != NULL && PQstatus(conn->pg) != CONNECTION_OK)
            break;
    }
    if (err->code == 0 && (failed != NULL || !synced)) {
        if (conn->pg != NULL)
            PQexitPipelineMode(conn->pg);
        pg_conn_fail(conn, failed, "write rows", err);
    }
    PQclear(failed);
    return err->code;
}

static int sync_pipe(struct pg_write *w, struct mr_error *err)
{
    w->queued = 0;
    if (!PQpipelineSync(w->conn->pg))
        return pg_conn_fail(w->conn, NULL, "write rows", err);
    return read_answers(w->conn, err);
}

static int end_pipe(struct pg_write *w, struct mr_error *err)
{
    int rc = sync_pipe(w, err);

    w->piping = false;
    if (rc == MR_OK && !PQexitPipelineMode(w->conn->pg))
        rc = pg_conn_fail(w->conn, NULL, "write rows", err);
    return rc;
}

/* The values one behind the other in w->text, a NUL behind each; at[i] where, SIZE_MAX: null. */
static int add_values(struct pg_write *w, const struct pg_plan *plan, const struct mr_record *rec,
                      size_t *at, struct mr_error *err)
{
    pg_text_clear(&w->text);
    for (size_t i = 0; i < plan->column_count; i++) {
        struct mr_value v = pg_column_value(&plan->columns[i], rec);

        at[i] = SIZE_MAX;
        if (mr_is_null(v))
            continue;
        at[i] = w->text.len;
        if (pg_text_value(&w->text, w->arena, plan->columns[i].schema, v, err) != MR_OK)
            return fail_field(rec, &plan->columns[i], err);
        pg_text_add(&w->text, "", 1);
    }
    return w->text.over ? mr_fail(err, MR_ERR_DATA, "A row is larger than %zu bytes", PG_TEXT_MAX)
                        : MR_OK;
}

static int send_statement(struct pg_write *w, const struct pg_plan *plan,
                          const struct mr_record *rec, struct mr_error *err)
{
    size_t *at = mr_alloc(w->arena, plan->column_count * sizeof(*at));
    const char **values = mr_alloc(w->arena, plan->column_count * sizeof(*values));

    if (add_values(w, plan, rec, at, err) != MR_OK)
        return err->code;
    for (size_t i = 0; i < plan->column_count; i++)
        values[i] = at[i] == SIZE_MAX ? NULL : w->text.p + at[i];
    if (!PQsendQueryPrepared(w->conn->pg, plan->name, (int)plan->column_count, values, NULL, NULL,
                             0))
        return pg_conn_fail(w->conn, NULL, "write rows", err);
    return ++w->queued < QUEUE_MAX ? MR_OK : sync_pipe(w, err);
}

/* --- rows ------------------------------------------------------------------------------------- */

int pg_write_end(struct pg_write *w, struct mr_error *err)
{
    if (w->copying != NULL)
        return end_copy(w, err);
    return w->piping ? end_pipe(w, err) : MR_OK;
}

static int write_copied(struct pg_write *w, const struct pg_plan *plan, const struct mr_record *rec,
                        struct mr_error *err)
{
    int rc = MR_OK;

    if (w->copying != plan) {
        rc = pg_write_end(w, err);
        if (rc == MR_OK)
            rc = begin_copy(w, (struct pg_plan *)(uintptr_t)plan, err);
    }
    if (rc == MR_OK)
        rc = add_line(w, plan, rec, err);
    return rc == MR_OK && w->text.len >= BLOCK ? send_block(w, err) : rc;
}

int pg_write_row(struct pg_write *w, const struct pg_plan *plan, const struct mr_record *rec,
                 struct mr_error *err)
{
    if (plan->copies)
        return write_copied(w, plan, rec, err);
    if (w->copying != NULL && end_copy(w, err) != MR_OK)
        return err->code;
    if (!w->piping && !PQenterPipelineMode(w->conn->pg))
        return pg_conn_fail(w->conn, NULL, "write rows", err);
    w->piping = true;
    return send_statement(w, plan, rec, err);
}

/* What is still to come does not matter. */
static void pass_over(struct pg_conn *conn, bool piping)
{
    struct mr_error ignored = {0};
    bool done = false;

    while (!done && conn->pg != NULL && PQstatus(conn->pg) == CONNECTION_OK) {
        PGresult *res = pg_conn_next(conn, &ignored);

        done = piping ? PQresultStatus(res) == PGRES_PIPELINE_SYNC : res == NULL;
        PQclear(res);
    }
}

void pg_write_drop(struct pg_write *w)
{
    PGconn *pg = w->conn->pg;

    if (pg != NULL && w->copying != NULL) {
        if (PQputCopyEnd(pg, "given up") < 0)
            pg_conn_close(w->conn);
        pass_over(w->conn, false);
    } else if (pg != NULL && PQpipelineStatus(pg) != PQ_PIPELINE_OFF) {
        if (!PQpipelineSync(pg))
            pg_conn_close(w->conn);
        pass_over(w->conn, true);
        if (w->conn->pg != NULL && !PQexitPipelineMode(pg))
            pg_conn_close(w->conn);
    }
    w->copying = NULL;
    w->piping = false;
    w->queued = 0;
    pg_text_clear(&w->text);
}
