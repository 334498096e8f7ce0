/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets' table. Rows belong to a connector by its name: two connectors of one name, in two
 * clusters, must not share a table (millrace.offsets.table). A row is only changed where it has
 * what this task stored last; PostgreSQL looks again once another transaction that had it is over,
 * so of two tasks with one partition the later changes nothing. The task's thread. */
#include "pg_offsets.h"
#include "pg_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_table(struct pg_text *sql, const struct pg_conn *conn)
{
    const char *name = mr_config_str(conn->task, "millrace.offsets.table");
    const char *dot = strchr(name, '.');
    char schema[256];

    if (dot != NULL && (size_t)(dot - name) < sizeof(schema)) {
        snprintf(schema, sizeof(schema), "%.*s", (int)(dot - name), name);
        pg_text_name(sql, schema);
        pg_text_put(sql, ".");
        name = dot + 1;
    }
    pg_text_name(sql, name);
}

static void put_literal(struct pg_text *sql, const char *text)
{
    pg_text_literal(sql, text, strlen(text));
}

static void put_connector(struct pg_text *sql, const struct pg_conn *conn)
{
    const char *name = mr_config_raw(conn->task, "name");

    put_literal(sql, name == NULL ? "" : name);
}

static int finish(struct pg_text *sql, struct mr_error *err)
{
    return sql->over ? mr_fail(err, MR_ERR_FATAL, "Out of memory for offsets") : MR_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

static int is_there(struct pg_conn *conn, bool *there, struct mr_error *err)
{
    struct pg_text name = {0}, sql = {0};
    PGresult *res = NULL;

    put_table(&name, conn);
    pg_text_put(&sql, "SELECT to_regclass(");
    put_literal(&sql, name.p == NULL ? "" : name.p);
    pg_text_put(&sql, ") IS NOT NULL");
    if (finish(&sql, err) == MR_OK)
        res = pg_conn_query(conn, sql.p, "look for the table of offsets", err);
    *there = res != NULL && PQntuples(res) == 1 && strcmp(PQgetvalue(res, 0, 0), "t") == 0;
    PQclear(res);
    pg_text_deinit(&name);
    pg_text_deinit(&sql);
    return err->code;
}

int pg_offsets_prepare(struct pg_conn *conn, struct mr_error *err)
{
    struct pg_text sql = {0};
    bool there;
    int rc = is_there(conn, &there, err);

    if (rc != MR_OK || there)
        return rc;
    pg_text_put(&sql, "CREATE TABLE IF NOT EXISTS ");
    put_table(&sql, conn);
    pg_text_put(&sql,
                " (connector text, topic text, partition integer, next_offset bigint NOT NULL, "
                "PRIMARY KEY (connector, topic, partition))");
    rc = finish(&sql, err);
    if (rc == MR_OK)
        rc = pg_conn_run(conn, sql.p, "create the table of offsets (millrace.offsets.table)", err);
    pg_text_deinit(&sql);
    if (rc == MR_ERR_DATA) /* another task was making it */
        rc = err->code = MR_ERR_RETRY;
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void take(const PGresult *rows, int row, const struct mr_partition_list *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct mr_partition *part = mr_partition_at(parts, i);

        if (strcmp(part->topic, PQgetvalue(rows, row, 0)) == 0 &&
            part->partition == strtol(PQgetvalue(rows, row, 1), NULL, 10))
            part->stored = strtoll(PQgetvalue(rows, row, 2), NULL, 10);
    }
}

int pg_offsets_read(struct pg_conn *conn, const struct mr_partition_list *parts,
                    struct mr_error *err)
{
    struct pg_text sql = {0};
    PGresult *rows = NULL;

    pg_text_put(&sql, "SELECT topic, partition, next_offset FROM ");
    put_table(&sql, conn);
    pg_text_put(&sql, " WHERE connector = ");
    put_connector(&sql, conn);
    if (finish(&sql, err) == MR_OK)
        rows = pg_conn_query(conn, sql.p, "read the offsets that are stored", err);
    for (int i = 0; i < (rows == NULL ? 0 : PQntuples(rows)); i++)
        take(rows, i, parts);
    pg_text_deinit(&sql);
    PQclear(rows);
    return err->code;
}

/* --- moving ----------------------------------------------------------------------------------- */

/* ('topic', 0, next) or ('topic', 0, next, stored), of those with something stored or of the
 * others. Gives how many. */
static size_t put_values(struct pg_text *sql, const struct mr_partition_list *offsets, bool stored)
{
    size_t count = 0;

    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        if ((part->stored >= 0) != stored)
            continue;
        pg_text_put(sql, count++ > 0 ? ", (" : "(");
        put_literal(sql, part->topic);
        pg_text_printf(sql, ", %d, %" PRId64 "::bigint", (int)part->partition, part->offset);
        if (stored)
            pg_text_printf(sql, ", %" PRId64 "::bigint", part->stored);
        pg_text_put(sql, ")");
    }
    return count;
}

/* As many rows as were named, or it is stale. */
static int change(struct pg_conn *conn, struct pg_text *sql, size_t count, struct mr_error *err)
{
    PGresult *res = NULL;
    int rc = finish(sql, err);

    if (rc == MR_OK && (res = pg_conn_query(conn, sql->p, "store offsets", err)) == NULL)
        rc = err->code;
    if (rc == MR_OK && strtoull(PQcmdTuples(res), NULL, 10) != count)
        rc = mr_fail(err, MR_ERR_STALE,
                     "PostgreSQL has other offsets than this task stored last: another task was "
                     "there");
    PQclear(res);
    pg_text_clear(sql);
    return rc;
}

static int move_stored(struct pg_conn *conn, struct pg_text *sql,
                       const struct mr_partition_list *offsets, struct mr_error *err)
{
    size_t count;

    pg_text_put(sql, "UPDATE ");
    put_table(sql, conn);
    pg_text_put(sql, " AS o SET next_offset = n.next FROM (VALUES ");
    count = put_values(sql, offsets, true);
    pg_text_put(sql, ") AS n (topic, partition, next, stored) WHERE o.connector = ");
    put_connector(sql, conn);
    pg_text_put(sql, " AND o.topic = n.topic AND o.partition = n.partition AND "
                     "o.next_offset = n.stored");
    if (count > 0)
        return change(conn, sql, count, err);
    pg_text_clear(sql);
    return MR_OK;
}

static int store_first(struct pg_conn *conn, struct pg_text *sql,
                       const struct mr_partition_list *offsets, struct mr_error *err)
{
    size_t count;

    pg_text_put(sql, "INSERT INTO ");
    put_table(sql, conn);
    pg_text_put(sql, " SELECT ");
    put_connector(sql, conn);
    pg_text_put(sql, ", n.* FROM (VALUES ");
    count = put_values(sql, offsets, false);
    pg_text_put(sql, ") AS n (topic, partition, next) ON CONFLICT DO NOTHING");
    return count > 0 ? change(conn, sql, count, err) : MR_OK;
}

int pg_offsets_move(struct pg_conn *conn, const struct mr_partition_list *offsets,
                    struct mr_error *err)
{
    struct pg_text sql = {0};
    int rc = move_stored(conn, &sql, offsets, err);

    if (rc == MR_OK)
        rc = store_first(conn, &sql, offsets, err);
    pg_text_deinit(&sql);
    return rc;
}

/* --- changes by a user ------------------------------------------------------------------------ */

static void put_forget(struct pg_text *sql, const struct pg_conn *conn,
                       const struct mr_partition *part)
{
    pg_text_put(sql, "DELETE FROM ");
    put_table(sql, conn);
    pg_text_put(sql, " WHERE connector = ");
    put_connector(sql, conn);
    if (part != NULL) {
        pg_text_put(sql, " AND topic = ");
        put_literal(sql, part->topic);
        pg_text_printf(sql, " AND partition = %d", (int)part->partition);
    }
    pg_text_put(sql, "; ");
}

static void put_set(struct pg_text *sql, const struct pg_conn *conn,
                    const struct mr_partition *part)
{
    pg_text_put(sql, "INSERT INTO ");
    put_table(sql, conn);
    pg_text_put(sql, " VALUES (");
    put_connector(sql, conn);
    pg_text_put(sql, ", ");
    put_literal(sql, part->topic);
    pg_text_printf(sql, ", %d, %" PRId64 ")", (int)part->partition, part->offset);
    pg_text_put(sql, " ON CONFLICT (connector, topic, partition) DO UPDATE SET next_offset = "
                     "EXCLUDED.next_offset; ");
}

int pg_offsets_alter(struct pg_conn *conn, const struct mr_partition_list *offsets,
                     struct mr_error *err)
{
    struct pg_text sql = {0};
    int rc;

    pg_text_put(&sql, "BEGIN; ");
    if (offsets->all)
        put_forget(&sql, conn, NULL);
    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        if (part->offset < 0)
            put_forget(&sql, conn, part);
        else
            put_set(&sql, conn, part);
    }
    pg_text_put(&sql, "COMMIT");
    rc = finish(&sql, err);
    if (rc == MR_OK)
        rc = pg_conn_run(conn, sql.p, "change the offsets that are stored", err);
    pg_text_deinit(&sql);
    return rc;
}
