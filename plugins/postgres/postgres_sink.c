/* SPDX-License-Identifier: Apache-2.0 */
/* PostgresSink, the plugin: records of topics as rows of tables, exactly once. On the task's
 * thread.
 *
 *   put: plans (tables made, statements prepared) ─► BEGIN ─► rows ─► offsets, on their condition
 *                                                     ─► COMMIT
 *
 * Offsets stand in a table of the same database and are moved last, so their rows are locked for as
 * long as a commit takes. Whatever fails before the COMMIT has had no effect. A COMMIT whose answer
 * is lost may have had one: the same batch comes again, and the condition of its offsets tells
 * (MR_ERR_STALE). */
#include "pg_offsets.h"
#include "pg_plan.h"
#include "pg_settings.h"
#include "pg_write.h"

#include <inttypes.h>
#include <string.h>

#define LOOK_MS 5000 /* how often it is seen in idle times whether the server is the same */

struct postgres_sink {
    struct mr_task *task;
    struct pg_conn conn;
    struct pg_settings settings;
    struct pg_plans plans;
    struct pg_write write;
    unsigned life; /* the connection that offsets were read by; 0 none */
};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct postgres_sink *s = self;
    int rc = pg_settings_read(&s->settings, task, err);

    s->task = task;
    s->plans.settings = &s->settings;
    s->write.conn = &s->conn;
    pg_conn_init(&s->conn, task);
    return rc;
}

static void stop(void *self)
{
    struct postgres_sink *s = self;

    pg_conn_close(&s->conn);
    pg_plans_deinit(&s->plans);
    pg_write_deinit(&s->write);
}

static int open_partitions(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    struct postgres_sink *s = self;
    int rc = pg_conn_ready(&s->conn, err);

    if (rc == MR_OK)
        rc = pg_offsets_prepare(&s->conn, err);
    if (rc == MR_OK)
        rc = pg_offsets_read(&s->conn, parts, err);
    if (rc != MR_OK)
        return rc;
    pg_conn_worked(&s->conn);
    s->life = s->life == 0 ? s->conn.life : s->life;
    mr_sink_put_in(s->task, LOOK_MS);
    return MR_OK;
}

/* --- put -------------------------------------------------------------------------------------- */

static int fail_record(const struct mr_record *rec, struct mr_error *err)
{
    struct mr_error why = *err;

    if (why.code != MR_ERR_DATA)
        return why.code;
    err->code = 0;
    return mr_fail(err, MR_ERR_DATA, "Record %s-%d@%" PRId64 ": %s", rec->topic,
                   (int)rec->partition, rec->offset, why.text);
}

/* In front of the transaction. */
static int make_plans(struct postgres_sink *s, const struct mr_batch *in, struct pg_plan **plans,
                      struct mr_error *err)
{
    pg_plans_trim(&s->plans);
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        plans[i] = pg_plan_of(&s->plans, &s->conn, mr_record_at(in, i), err);
        if (plans[i] == NULL)
            return fail_record(mr_record_at(in, i), err);
    }
    return MR_OK;
}

static int write_rows(struct postgres_sink *s, const struct mr_batch *in,
                      struct pg_plan *const *plans, struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; i < mr_batch_count(in) && rc == MR_OK; i++)
        if (!plans[i]->absent)
            rc = pg_write_row(&s->write, plans[i], mr_record_at(in, i), err);
    return rc == MR_OK ? pg_write_end(&s->write, err) : rc;
}

/* Also that of a transaction which the server had given up is answered well, by another word. */
static int commit(struct postgres_sink *s, struct mr_error *err)
{
    PGresult *res = pg_conn_query(&s->conn, "COMMIT", "commit", err);
    bool done = res != NULL && strcmp(PQcmdStatus(res), "COMMIT") == 0;

    PQclear(res);
    if (done || err->code != 0)
        return err->code;
    pg_conn_close(&s->conn);
    return mr_fail(err, MR_ERR_RETRY, "PostgreSQL rolled back in place of a commit");
}

static int write_batch(struct postgres_sink *s, const struct mr_batch *in,
                       struct pg_plan *const *plans, struct mr_error *err)
{
    int rc = pg_conn_run(&s->conn, "BEGIN", "begin a transaction", err);

    if (rc == MR_OK)
        rc = write_rows(s, in, plans, err);
    if (rc == MR_OK)
        rc = pg_offsets_move(&s->conn, mr_batch_offsets(in), err);
    return rc == MR_OK ? commit(s, err) : rc;
}

/* Nothing of it was committed, as far as we know. Tables may not be what they were taken for. */
static void roll_back(struct postgres_sink *s, int rc)
{
    struct mr_error ignored = {0};

    pg_write_drop(&s->write);
    if (s->conn.pg != NULL && PQtransactionStatus(s->conn.pg) != PQTRANS_IDLE)
        (void)pg_conn_run(&s->conn, "ROLLBACK", "roll back", &ignored);
    if (rc != MR_ERR_DATA && rc != MR_ERR_STALE)
        pg_plans_clear(&s->plans);
}

/* A new connection may lead to what came back from a backup, or to a standby that lags: then
 * partitions without records have older offsets too. */
static int look_for_new_life(struct postgres_sink *s, struct mr_error *err)
{
    if (s->life == s->conn.life)
        return MR_OK;
    s->life = s->conn.life;
    return mr_fail(err, MR_ERR_STALE, "PostgreSQL was away, and may have other offsets by now");
}

/* With nothing to write a server that is away is no failure, and counts for none. */
static int look(struct postgres_sink *s, struct mr_error *err)
{
    int64_t failures = s->conn.failures;
    struct mr_error away = {0};
    int rc = pg_conn_ready(&s->conn, &away);

    if (rc == MR_OK)
        rc = pg_conn_run(&s->conn, "SELECT 1", "see whether it is there", &away);
    s->conn.failures = failures;
    return rc == MR_OK ? look_for_new_life(s, err) : MR_OK;
}

static int put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct postgres_sink *s = self;
    struct pg_plan **plans = mr_alloc(in->arena, mr_batch_count(in) * sizeof(*plans));
    int rc;

    mr_sink_put_in(s->task, LOOK_MS);
    if (mr_batch_count(in) == 0 && mr_batch_offsets(in)->count == 0)
        return look(s, err);
    s->write.arena = in->arena;
    rc = pg_conn_ready(&s->conn, err);
    if (rc == MR_OK)
        rc = look_for_new_life(s, err);
    if (rc == MR_OK)
        rc = make_plans(s, in, plans, err);
    if (rc == MR_OK)
        rc = write_batch(s, in, plans, err);
    if (rc == MR_OK)
        pg_conn_worked(&s->conn);
    else
        roll_back(s, rc);
    return rc;
}

static int alter_offsets(struct mr_task *connector, const struct mr_partition_list *offsets,
                         struct mr_error *err)
{
    struct pg_settings settings;
    struct pg_conn conn;
    int rc = pg_settings_read(&settings, connector, err);

    pg_conn_init(&conn, connector);
    if (rc == MR_OK)
        rc = pg_conn_ready(&conn, err);
    if (rc == MR_OK)
        rc = pg_offsets_prepare(&conn, err);
    if (rc == MR_OK)
        rc = pg_offsets_alter(&conn, offsets, err);
    pg_conn_close(&conn);
    return rc;
}

MR_SINK(PostgresSink, "0.1.0", .doc = "Records as rows of PostgreSQL's tables, exactly once",
        .keys = pg_settings_keys, .state_size = sizeof(struct postgres_sink), .start = start,
        .put = put, .stop = stop, .open = open_partitions, .alter_offsets = alter_offsets,
        .stores_offsets = "", .check = pg_settings_check)
