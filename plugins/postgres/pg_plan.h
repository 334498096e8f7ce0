/* SPDX-License-Identifier: Apache-2.0 */
/* How records of one topic with one pair of schemas become rows: the table, its columns, the SQL.
 * Made once for each, kept until a failure says that tables may have changed. */
#ifndef PG_PLAN_H
#define PG_PLAN_H

#include "pg_conn.h"
#include "pg_settings.h"
#include "pg_text.h"

enum pg_from {
    PG_FROM_KEY, /* the whole of it */
    PG_FROM_KEY_FIELD,
    PG_FROM_VALUE_FIELD,
    PG_FROM_TOPIC,
    PG_FROM_PARTITION,
    PG_FROM_OFFSET
};

struct pg_column {
    char *name;
    enum pg_from from;
    uint32_t field;                 /* of key or value */
    const struct mr_schema *schema; /* NULL: Kafka's coordinates, by `from` */
};

struct pg_plan {
    char *topic;
    const struct mr_schema *key;
    const struct mr_schema *value; /* NULL: rows are deleted */
    char *table;                   /* as SQL names it */
    struct pg_column *columns;     /* those of the primary key first */
    size_t column_count;
    size_t pk_count;
    bool deletes;
    bool copies; /* sql is for COPY; else it is prepared, with a parameter a column */
    char *sql;
    char name[24];          /* of what is prepared */
    unsigned prepared_life; /* in this life of the connection */
    bool ready;             /* the table has these columns */
    bool absent;            /* there is no table to delete from */
};

struct pg_plans {
    const struct pg_settings *settings;
    struct pg_plan **items;
    size_t count;
    size_t cap;
    unsigned made; /* names are never used twice */
};

void pg_plans_clear(struct pg_plans *plans); /* all of them are gone */
void pg_plans_trim(struct pg_plans *plans);  /* likewise, when there are very many */
void pg_plans_deinit(struct pg_plans *plans);

/* The plan for this record, with its table there. MR_ERR_DATA: it can be no row, and why. Others as
 * pg_conn_fail. */
struct pg_plan *pg_plan_of(struct pg_plans *plans, struct pg_conn *conn,
                           const struct mr_record *rec, struct mr_error *err);

/* What stands in this column for this record; null: nothing. */
struct mr_value pg_column_value(const struct pg_column *column, const struct mr_record *rec);

#endif
