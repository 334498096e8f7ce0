/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on their way: by COPY, or as prepared statements in a pipeline; in the order of the records.
 * Between a BEGIN and its end. */
#ifndef PG_WRITE_H
#define PG_WRITE_H

#include "pg_plan.h"

struct pg_write {
    struct pg_conn *conn;
    struct mr_arena *arena;  /* of the batch */
    struct pg_plan *copying; /* COPY is open; NULL: none */
    size_t queued;           /* statements whose answers are out */
    bool piping;
    struct pg_text text; /* rows of a COPY, or one row's values */
    struct pg_text cell; /* of a row of a COPY */
};

void pg_write_deinit(struct pg_write *w);

/* MR_ERR_DATA: this record can be no row, or one before it (the text says what PostgreSQL says).
 * After a failure pg_write_drop is due. */
int pg_write_row(struct pg_write *w, const struct pg_plan *plan, const struct mr_record *rec,
                 struct mr_error *err);
/* All rows are with PostgreSQL, and good so far. */
int pg_write_end(struct pg_write *w, struct mr_error *err);
/* Forget what is under way; the connection, if it still is one, can take a ROLLBACK. */
void pg_write_drop(struct pg_write *w);

#endif
