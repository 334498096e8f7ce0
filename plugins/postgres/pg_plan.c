/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: from schemas to tables.
 *
 *   record ─► pg_plan_of: known? ─no─► columns by pk.mode, pk.fields, fields.whitelist ─► SQL
 *                                      ─► table there? auto.create, auto.evolve ─► prepared
 *
 * Tables are looked at, made and changed before the transaction of a batch begins, each in one of
 * its own: of two tasks that make the same one the slower finds it there. Schemas are interned, so
 * pointers tell them apart. The task's thread. */
#include "pg_plan.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 63
#define PLANS_MAX 1000 /* then all are forgotten: schemas that never come again */
#define COLUMNS_MAX 1600

/* --- columns ---------------------------------------------------------------------------------- */

static bool is_listed(const struct mr_task *task, const char *key, const char *name)
{
    size_t count = mr_config_count(task, key);

    for (size_t i = 0; i < count; i++)
        if (strcmp(mr_config_item(task, key, i), name) == 0)
            return true;
    return count == 0;
}

static bool has_column(const struct pg_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->column_count; i++)
        if (strcmp(plan->columns[i].name, name) == 0)
            return true;
    return false;
}

static int add_column(struct pg_plan *plan, const char *name, struct pg_column column,
                      struct mr_error *err)
{
    if (has_column(plan, name))
        return MR_OK; /* the key's stands for the value's */
    if (plan->column_count == COLUMNS_MAX)
        return mr_fail(err, MR_ERR_DATA, "it has more than %d fields", COLUMNS_MAX);
    if ((plan->column_count & (plan->column_count - 1)) == 0) { /* room for as many again */
        size_t cap = plan->column_count == 0 ? 1 : plan->column_count * 2;
        struct pg_column *columns = realloc(plan->columns, cap * sizeof(*columns));

        if (columns == NULL)
            return mr_fail(err, MR_ERR_FATAL, "Out of memory for the columns of a table");
        plan->columns = columns;
    }
    column.name = strdup(name);
    if (column.name == NULL)
        return mr_fail(err, MR_ERR_FATAL, "Out of memory for the columns of a table");
    plan->columns[plan->column_count++] = column;
    return MR_OK;
}

static int add_kafka(const struct pg_settings *s, struct pg_plan *plan, struct mr_error *err)
{
    static const char *const names[] = {"__connect_topic", "__connect_partition",
                                        "__connect_offset"};
    bool own = mr_config_count(s->task, "pk.fields") == 3;
    int rc = MR_OK;

    for (size_t i = 0; i < 3 && rc == MR_OK; i++)
        rc = add_column(plan, own ? mr_config_item(s->task, "pk.fields", i) : names[i],
                        (struct pg_column){.from = (enum pg_from)(PG_FROM_TOPIC + i)}, err);
    return rc;
}

/* Those fields of a struct that are the primary key: pk.fields, or all. */
static int add_pk_fields(const struct pg_settings *s, struct pg_plan *plan,
                         const struct mr_schema *schema, enum pg_from from, struct mr_error *err)
{
    size_t count = mr_config_count(s->task, "pk.fields");
    int rc = MR_OK;

    for (size_t i = 0; i < count; i++)
        if (mr_schema_index(schema, mr_config_item(s->task, "pk.fields", i)) < 0)
            return mr_fail(err, MR_ERR_DATA, "its %s has no field %s, which pk.fields names",
                           from == PG_FROM_KEY_FIELD ? "key" : "value",
                           mr_config_item(s->task, "pk.fields", i));
    for (uint32_t i = 0; i < schema->field_count && rc == MR_OK; i++)
        if (is_listed(s->task, "pk.fields", schema->fields[i].name))
            rc = add_column(
                plan, schema->fields[i].name,
                (struct pg_column){.from = from, .field = i, .schema = schema->fields[i].schema},
                err);
    return rc;
}

static int add_key(const struct pg_settings *s, struct pg_plan *plan, struct mr_error *err)
{
    if (plan->key == NULL)
        return mr_fail(
            err, MR_ERR_DATA,
            "its key has no schema, which pk.mode=record_key needs: use a converter with "
            "schemas, such as key.converter.schemas.enable=true of JsonConverter");
    if (plan->key->kind == MR_KIND_STRUCT)
        return add_pk_fields(s, plan, plan->key, PG_FROM_KEY_FIELD, err);
    if (plan->key->kind == MR_KIND_MAP || plan->key->kind == MR_KIND_LIST)
        return mr_fail(err, MR_ERR_DATA,
                       "its key is a map or an array, which can be no column of a "
                       "primary key");
    if (mr_config_count(s->task, "pk.fields") != 1)
        return mr_fail(err, MR_ERR_DATA,
                       "its key is a single value: pk.fields must give its column "
                       "one name");
    return add_column(plan, mr_config_item(s->task, "pk.fields", 0),
                      (struct pg_column){.from = PG_FROM_KEY, .schema = plan->key}, err);
}

static int add_pk(const struct pg_settings *s, struct pg_plan *plan, struct mr_error *err)
{
    switch (s->pk) {
    case PG_PK_KAFKA:
        return add_kafka(s, plan, err);
    case PG_PK_KEY:
        return add_key(s, plan, err);
    case PG_PK_VALUE:
        return add_pk_fields(s, plan, plan->value, PG_FROM_VALUE_FIELD, err);
    default:
        return MR_OK;
    }
}

static int add_value_fields(const struct pg_settings *s, struct pg_plan *plan, struct mr_error *err)
{
    const struct mr_schema *value = plan->value;
    int rc = MR_OK;

    for (uint32_t i = 0; value != NULL && i < value->field_count && rc == MR_OK; i++)
        if (is_listed(s->task, "fields.whitelist", value->fields[i].name))
            rc = add_column(plan, value->fields[i].name,
                            (struct pg_column){.from = PG_FROM_VALUE_FIELD,
                                               .field = i,
                                               .schema = value->fields[i].schema},
                            err);
    return rc;
}

static int check_record(const struct pg_settings *s, const struct mr_record *rec,
                        struct mr_error *err)
{
    if (mr_is_null(mr_value(rec)) && !s->deletes)
        return mr_fail(err, MR_ERR_DATA,
                       "it has no value: delete.enabled=true would delete the row "
                       "of its key");
    if (s->pk == PG_PK_KEY && mr_is_null(mr_key(rec)))
        return mr_fail(err, MR_ERR_DATA, "it has no key, which pk.mode=record_key needs");
    if (!mr_is_null(mr_value(rec)) &&
        (rec->value_schema == NULL || rec->value_schema->kind != MR_KIND_STRUCT ||
         mr_value(rec).kind != MR_KIND_STRUCT))
        return mr_fail(
            err, MR_ERR_DATA,
            "its value is no struct with a schema, as rows need it: use a converter with "
            "schemas, such as value.converter.schemas.enable=true of JsonConverter, or "
            "the transform HoistField");
    return MR_OK;
}

static int add_columns(const struct pg_settings *s, struct pg_plan *plan, struct mr_error *err)
{
    int rc = add_pk(s, plan, err);

    plan->pk_count = plan->column_count;
    if (rc == MR_OK)
        rc = add_value_fields(s, plan, err);
    if (rc == MR_OK && plan->column_count == 0)
        rc = mr_fail(err, MR_ERR_DATA, "none of its fields is to be written");
    return rc;
}

struct mr_value pg_column_value(const struct pg_column *column, const struct mr_record *rec)
{
    switch (column->from) {
    case PG_FROM_KEY:
        return mr_key(rec);
    case PG_FROM_KEY_FIELD:
        return mr_slot(mr_key(rec), column->field);
    case PG_FROM_VALUE_FIELD:
        return mr_slot(mr_value(rec), column->field);
    case PG_FROM_TOPIC:
        return mr_str(rec->topic);
    case PG_FROM_PARTITION:
        return mr_int(rec->partition);
    default:
        return mr_long(rec->offset);
    }
}

/* --- SQL -------------------------------------------------------------------------------------- */

/* Dots of the format part schema and table, those of the topic do not. */
static void put_table(struct pg_text *out, const char *format, const char *topic)
{
    static const char mark[] = "${topic}";
    struct pg_text name = {0};

    for (const char *at = format; *at != '\0'; at++) {
        if (strncmp(at, mark, sizeof(mark) - 1) == 0) {
            pg_text_put(&name, topic);
            at += sizeof(mark) - 2;
        } else if (*at == '.') {
            pg_text_name(out, name.p == NULL ? "" : name.p);
            pg_text_put(out, ".");
            pg_text_clear(&name);
        } else {
            pg_text_add(&name, at, 1);
        }
    }
    pg_text_name(out, name.p == NULL ? "" : name.p);
    pg_text_deinit(&name);
}

/* "a", "b" of the columns from … to - 1. */
static void put_names(struct pg_text *out, const struct pg_plan *plan, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        pg_text_put(out, i > from ? ", " : "");
        pg_text_name(out, plan->columns[i].name);
    }
}

/* "a" = $1 AND … of the primary key. */
static void put_where(struct pg_text *out, const struct pg_plan *plan)
{
    pg_text_put(out, " WHERE ");
    for (size_t i = 0; i < plan->pk_count; i++) {
        pg_text_put(out, i > 0 ? " AND " : "");
        pg_text_name(out, plan->columns[i].name);
        pg_text_printf(out, " = $%zu", i + 1);
    }
}

static void put_upsert(struct pg_text *out, const struct pg_plan *plan)
{
    pg_text_printf(out, "INSERT INTO ");
    pg_text_put(out, plan->table);
    pg_text_put(out, " (");
    put_names(out, plan, 0, plan->column_count);
    pg_text_put(out, ") VALUES (");
    for (size_t i = 0; i < plan->column_count; i++)
        pg_text_printf(out, "%s$%zu", i > 0 ? ", " : "", i + 1);
    pg_text_put(out, ") ON CONFLICT (");
    put_names(out, plan, 0, plan->pk_count);
    pg_text_put(out, plan->pk_count < plan->column_count ? ") DO UPDATE SET " : ") DO NOTHING");
    for (size_t i = plan->pk_count; i < plan->column_count; i++) {
        pg_text_put(out, i > plan->pk_count ? ", " : "");
        pg_text_name(out, plan->columns[i].name);
        pg_text_put(out, " = EXCLUDED.");
        pg_text_name(out, plan->columns[i].name);
    }
}

static void put_update(struct pg_text *out, const struct pg_plan *plan)
{
    bool only_key = plan->pk_count == plan->column_count;

    pg_text_put(out, "UPDATE ");
    pg_text_put(out, plan->table);
    pg_text_put(out, " SET ");
    for (size_t i = only_key ? 0 : plan->pk_count; i < plan->column_count; i++) {
        pg_text_put(out, i > plan->pk_count ? ", " : "");
        pg_text_name(out, plan->columns[i].name);
        pg_text_printf(out, " = $%zu", i + 1);
        if (only_key)
            break;
    }
    put_where(out, plan);
}

static void put_sql(struct pg_text *out, const struct pg_settings *s, struct pg_plan *plan)
{
    plan->deletes = plan->value == NULL;
    plan->copies = !plan->deletes && s->insert == PG_INSERT;
    if (plan->deletes) {
        pg_text_put(out, "DELETE FROM ");
        pg_text_put(out, plan->table);
        put_where(out, plan);
    } else if (plan->copies) {
        pg_text_put(out, "COPY ");
        pg_text_put(out, plan->table);
        pg_text_put(out, " (");
        put_names(out, plan, 0, plan->column_count);
        pg_text_put(out, ") FROM STDIN");
    } else if (s->insert == PG_UPSERT) {
        put_upsert(out, plan);
    } else {
        put_update(out, plan);
    }
}

/* --- tables ----------------------------------------------------------------------------------- */

static const char *type_of(const struct pg_column *column)
{
    if (column->schema != NULL)
        return pg_text_type(column->schema);
    return column->from == PG_FROM_TOPIC    ? "text"
           : column->from == PG_FROM_OFFSET ? "bigint"
                                            : "integer";
}

static void put_definition(struct pg_text *out, const struct pg_column *column)
{
    pg_text_name(out, column->name);
    pg_text_put(out, " ");
    pg_text_put(out, type_of(column));
}

static int create(const struct pg_plan *plan, struct pg_conn *conn, struct mr_error *err)
{
    struct pg_text sql = {0};
    int rc;

    pg_text_put(&sql, "CREATE TABLE IF NOT EXISTS ");
    pg_text_put(&sql, plan->table);
    pg_text_put(&sql, " (");
    for (size_t i = 0; i < plan->column_count; i++) {
        const struct mr_schema *schema = plan->columns[i].schema;

        pg_text_put(&sql, i > 0 ? ", " : "");
        put_definition(&sql, &plan->columns[i]);
        if (schema != NULL && !schema->optional && !schema->has_default)
            pg_text_put(&sql, " NOT NULL");
    }
    if (plan->pk_count > 0) {
        pg_text_put(&sql, ", PRIMARY KEY (");
        put_names(&sql, plan, 0, plan->pk_count);
        pg_text_put(&sql, ")");
    }
    pg_text_put(&sql, ")");
    rc = pg_conn_run(conn, sql.p, "create a table", err);
    pg_text_deinit(&sql);
    return rc;
}

/* What rows that are there would have in it is null. */
static int add_to_table(const struct pg_plan *plan, const struct pg_column *column,
                        struct pg_conn *conn, struct mr_error *err)
{
    struct pg_text sql = {0};
    int rc;

    pg_text_put(&sql, "ALTER TABLE ");
    pg_text_put(&sql, plan->table);
    pg_text_put(&sql, " ADD COLUMN IF NOT EXISTS ");
    put_definition(&sql, column);
    rc = pg_conn_run(conn, sql.p, "add a column", err);
    pg_text_deinit(&sql);
    return rc;
}

/* The names of its columns; none: there is no such table. */
static PGresult *look(const struct pg_plan *plan, struct pg_conn *conn, struct mr_error *err)
{
    struct pg_text sql = {0};
    PGresult *res;

    pg_text_put(&sql, "SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND "
                      "attrelid = to_regclass(");
    pg_text_literal(&sql, plan->table, strlen(plan->table));
    pg_text_put(&sql, ")");
    res = pg_conn_query(conn, sql.p, "look at a table", err);
    pg_text_deinit(&sql);
    return res;
}

/* PostgreSQL cuts names at 63 bytes, in front of the character that goes beyond. */
static size_t name_bytes(const char *name)
{
    size_t len = strnlen(name, NAME_BYTES + 1);

    if (len <= NAME_BYTES)
        return len;
    for (len = NAME_BYTES; len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80;)
        len--;
    return len;
}

static bool is_there(const PGresult *columns, const char *name)
{
    size_t len = name_bytes(name);

    for (int i = 0; i < PQntuples(columns); i++) {
        const char *there = PQgetvalue(columns, i, 0);

        if (strlen(there) == len && strncmp(there, name, len) == 0)
            return true;
    }
    return false;
}

static int check_columns(const struct pg_plans *plans, const struct pg_plan *plan,
                         struct pg_conn *conn, const PGresult *columns, struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; i < plan->column_count && rc == MR_OK; i++) {
        if (is_there(columns, plan->columns[i].name))
            continue;
        if (!plans->settings->evolve)
            return mr_fail(err, MR_ERR_DATA,
                           "table %s has no column %s for its field: add it, or set "
                           "auto.evolve=true, or leave it out by fields.whitelist",
                           plan->table, plan->columns[i].name);
        rc = add_to_table(plan, &plan->columns[i], conn, err);
    }
    return rc;
}

static int find_table(const struct pg_plans *plans, struct pg_plan *plan, struct pg_conn *conn,
                      struct mr_error *err)
{
    PGresult *columns = look(plan, conn, err);
    struct mr_error failed = {0};
    int rc;

    plan->absent = columns != NULL && PQntuples(columns) == 0 && plan->deletes;
    if (plan->absent) {
        PQclear(columns);
        return MR_OK;
    }
    if (columns != NULL && PQntuples(columns) == 0 && plans->settings->create) {
        PQclear(columns);
        rc = create(plan, conn, &failed);
        columns = conn->pg != NULL ? look(plan, conn, err) : NULL;
        if (columns == NULL || PQntuples(columns) == 0) { /* no other task has made it either */
            PQclear(columns);
            *err = failed;
            return rc;
        }
    }
    if (columns == NULL)
        return err->code;
    if (PQntuples(columns) == 0)
        rc = mr_fail(err, MR_ERR_FATAL, "There is no table %s: create it, or set auto.create=true",
                     plan->table);
    else
        rc = check_columns(plans, plan, conn, columns, err);
    PQclear(columns);
    return rc;
}

static int prepare(struct pg_plan *plan, struct pg_conn *conn, struct mr_error *err)
{
    PGresult *res, *last = NULL;

    if (plan->copies || plan->prepared_life == conn->life)
        return MR_OK;
    if (!PQsendPrepare(conn->pg, plan->name, plan->sql, 0, NULL))
        return pg_conn_fail(conn, NULL, "prepare a statement", err);
    while ((res = pg_conn_next(conn, err)) != NULL) {
        PQclear(last);
        last = res;
    }
    if (err->code == 0 && PQresultStatus(last) != PGRES_COMMAND_OK)
        pg_conn_fail(conn, last, "prepare a statement", err);
    PQclear(last);
    plan->prepared_life = err->code == 0 ? conn->life : 0;
    return err->code;
}

/* --- plans ------------------------------------------------------------------------------------ */

static void plan_free(struct pg_plan *plan)
{
    for (size_t i = 0; i < plan->column_count; i++)
        free(plan->columns[i].name);
    free(plan->columns);
    free(plan->topic);
    free(plan->table);
    free(plan->sql);
    free(plan);
}

void pg_plans_clear(struct pg_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++)
        plan_free(plans->items[i]);
    plans->count = 0;
}

void pg_plans_trim(struct pg_plans *plans)
{
    if (plans->count > PLANS_MAX)
        pg_plans_clear(plans);
}

void pg_plans_deinit(struct pg_plans *plans)
{
    pg_plans_clear(plans);
    free(plans->items);
    plans->items = NULL;
}

static struct pg_plan *plan_new(struct pg_plans *plans, const struct mr_record *rec,
                                struct mr_error *err)
{
    struct pg_plan *plan = calloc(1, sizeof(*plan));
    struct pg_text table = {0}, sql = {0};

    if (plan == NULL || (plan->topic = strdup(rec->topic)) == NULL) {
        free(plan);
        mr_fail(err, MR_ERR_FATAL, "Out of memory for a table");
        return NULL;
    }
    plan->key = plans->settings->pk == PG_PK_KEY ? rec->key_schema : NULL;
    plan->value = mr_is_null(mr_value(rec)) ? NULL : rec->value_schema;
    snprintf(plan->name, sizeof(plan->name), "m%u", plans->made++);
    put_table(&table, plans->settings->table_format, rec->topic);
    plan->table = table.p;
    if (add_columns(plans->settings, plan, err) == MR_OK)
        put_sql(&sql, plans->settings, plan);
    plan->sql = sql.p;
    if (err->code != 0 || table.over || sql.over) {
        mr_fail(err, MR_ERR_FATAL, "Out of memory for a table");
        plan_free(plan);
        return NULL;
    }
    return plan;
}

static struct pg_plan *find(const struct pg_plans *plans, const struct mr_record *rec)
{
    const struct mr_schema *key = plans->settings->pk == PG_PK_KEY ? rec->key_schema : NULL;
    const struct mr_schema *value = mr_is_null(mr_value(rec)) ? NULL : rec->value_schema;

    for (size_t i = plans->count; i > 0; i--) {
        struct pg_plan *plan = plans->items[i - 1];

        if (plan->value == value && plan->key == key && strcmp(plan->topic, rec->topic) == 0)
            return plan;
    }
    return NULL;
}

static int keep(struct pg_plans *plans, struct pg_plan *plan, struct mr_error *err)
{
    if (plans->count == plans->cap) {
        size_t cap = plans->cap == 0 ? 16 : plans->cap * 2;
        struct pg_plan **items = realloc(plans->items, cap * sizeof(*items));

        if (items == NULL)
            return mr_fail(err, MR_ERR_FATAL, "Out of memory for a table");
        plans->items = items;
        plans->cap = cap;
    }
    plans->items[plans->count++] = plan;
    return MR_OK;
}

struct pg_plan *pg_plan_of(struct pg_plans *plans, struct pg_conn *conn,
                           const struct mr_record *rec, struct mr_error *err)
{
    struct pg_plan *plan;

    if (check_record(plans->settings, rec, err) != MR_OK)
        return NULL;
    plan = find(plans, rec);
    if (plan == NULL && (plan = plan_new(plans, rec, err)) != NULL &&
        keep(plans, plan, err) != MR_OK) {
        plan_free(plan);
        plan = NULL;
    }
    if (plan == NULL)
        return NULL;
    if (!plan->ready && find_table(plans, plan, conn, err) != MR_OK)
        return NULL;
    if (plan->absent)
        return plan;
    plan->ready = true;
    return prepare(plan, conn, err) == MR_OK ? plan : NULL;
}
