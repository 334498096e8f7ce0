/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL, which waits for the server and for the task's stop alike. Owner:
 * the task. */
#ifndef PG_CONN_H
#define PG_CONN_H

#include <millrace/plugin.h>

#include <libpq-fe.h>

struct pg_conn {
    const struct mr_task *task;
    PGconn *pg;       /* NULL: not connected */
    unsigned life;    /* counts connections: what was prepared in an earlier one is gone */
    int64_t failures; /* in a row */
};

/* From here on the configuration is the task's, which pg_settings.h has checked: connection.*,
 * max.retries, retry.backoff.ms. Does not connect. */
void pg_conn_init(struct pg_conn *c, const struct mr_task *task);
void pg_conn_close(struct pg_conn *c); /* what is open is rolled back; may be connected again */

/* Be connected. MR_ERR_RETRY: not now; MR_ERR_FATAL: refused, or not after max.retries. */
int pg_conn_ready(struct pg_conn *c, struct mr_error *err);
void pg_conn_worked(struct pg_conn *c); /* something went well: failures are counted anew */

/* Send SQL, and wait for its last result: the caller clears it. NULL with err, and the connection
 * is then as pg_conn_fail leaves it. what: for texts, "create the table". */
PGresult *pg_conn_query(struct pg_conn *c, const char *sql, const char *what, struct mr_error *err);
int pg_conn_run(struct pg_conn *c, const char *sql, const char *what, struct mr_error *err);

/* The next result, when it is there; NULL: none any more. A lost connection or a stop: an error in
 * err. */
PGresult *pg_conn_next(struct pg_conn *c, struct mr_error *err);
/* What was queued is with the server. */
int pg_conn_flush(struct pg_conn *c, struct mr_error *err);

/* A failure that the server told (res), or libpq did (res NULL); err is filled. MR_ERR_DATA: the
 * records are bad; MR_ERR_RETRY: the same may go well later; MR_ERR_FATAL. Whatever it is, the
 * connection is closed unless it can go on after a rollback. */
int pg_conn_fail(struct pg_conn *c, const PGresult *res, const char *what, struct mr_error *err);

#endif
