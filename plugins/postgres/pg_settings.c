/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the sink. What can be said of a key as data stands in the table of keys; the
 * rest, such as keys that contradict each other, in a table of checks: run when a user validates or
 * gives a configuration, in a process of its own, and once more when a task starts, which may have
 * another one than was validated. Nothing here connects anywhere: a database may be away while its
 * sink is set up. */
#include "pg_settings.h"

#include <libpq-fe.h>
#include <string.h>

const struct mr_config_key pg_settings_keys[] = {
    {"connection.url", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "The database: jdbc:postgresql://host:5432/database, postgresql://host/database, or "
            "libpq's keywords.",
     .importance = MR_CFG_HIGH, .group = "Connection", .order = 1},
    {"connection.user", MR_CFG_STRING, .doc = "User of the database.", .importance = MR_CFG_HIGH,
     .group = "Connection", .order = 2},
    {"connection.password", MR_CFG_PASSWORD, .doc = "Password of the user.",
     .importance = MR_CFG_HIGH, .group = "Connection", .order = 3},
    {"insert.mode", MR_CFG_STRING, .fallback = "insert", .choices = "insert|upsert|update",
     .doc = "insert: new rows, by COPY. upsert: a row of the same primary key is replaced. update: "
            "only rows that are there.",
     .importance = MR_CFG_HIGH, .group = "Writes", .order = 1},
    {"delete.enabled", MR_CFG_BOOLEAN, .fallback = "false",
     .doc = "A record without a value deletes the row of its key. Needs pk.mode=record_key.",
     .importance = MR_CFG_MEDIUM, .group = "Writes", .order = 2},
    {"table.name.format", MR_CFG_STRING, MR_CFG_NON_EMPTY | MR_CFG_CHECK_NULL,
     .fallback = "${topic}",
     .doc = "The table, with ${topic} for the record's topic; a dot parts schema and table.",
     .importance = MR_CFG_MEDIUM, .group = "Data Mapping", .order = 1},
    {"pk.mode", MR_CFG_STRING, .fallback = "none", .choices = "none|kafka|record_key|record_value",
     .doc =
         "What the primary key is: nothing, the record's topic, partition and offset, its key, or "
         "fields of its value.",
     .importance = MR_CFG_HIGH, .group = "Data Mapping", .order = 2},
    {"pk.fields", MR_CFG_LIST, MR_CFG_DISTINCT, .fallback = "",
     .doc =
         "Columns of the primary key: the name for a key that is a single value; those fields of a "
         "struct that count, none = all; three names with pk.mode=kafka.",
     .importance = MR_CFG_MEDIUM, .group = "Data Mapping", .order = 3},
    {"fields.whitelist", MR_CFG_LIST, .fallback = "",
     .doc = "Fields of the value that become columns; none = all.", .importance = MR_CFG_MEDIUM,
     .group = "Data Mapping", .order = 4},
    {"auto.create", MR_CFG_BOOLEAN, .fallback = "false",
     .doc = "Create tables that are missing, by the schemas of records.",
     .importance = MR_CFG_MEDIUM, .group = "DDL Support", .order = 1},
    {"auto.evolve", MR_CFG_BOOLEAN, .fallback = "false",
     .doc = "Add columns that are missing, by the schemas of records.", .importance = MR_CFG_MEDIUM,
     .group = "DDL Support", .order = 2},
    {"max.retries", MR_CFG_INT, .fallback = "10", .has_range = true, .min = 0, .max = INT32_MAX,
     .doc =
         "How often in a row a batch is tried again before the task fails, when the server is away "
         "or busy.",
     .importance = MR_CFG_MEDIUM, .group = "Retries", .order = 1},
    {"retry.backoff.ms", MR_CFG_INT, .fallback = "3000", .has_range = true, .min = 0,
     .max = INT32_MAX, .doc = "The wait before that.", .importance = MR_CFG_MEDIUM,
     .group = "Retries", .order = 2},
    {"millrace.offsets.table", MR_CFG_STRING, MR_CFG_NON_EMPTY | MR_CFG_CHECK_NULL,
     .fallback = "millrace_offsets",
     .doc = "The table of offsets; a dot parts schema and table. Made when it is missing.",
     .importance = MR_CFG_LOW, .group = "Writes", .order = 3},
    {0},
};

/* --- single values ---------------------------------------------------------------------------- */

const char *pg_settings_url(const struct mr_task *task)
{
    const char *url = mr_config_str(task, "connection.url");

    return url != NULL && strncmp(url, "jdbc:", 5) == 0 ? url + 5 : url;
}

/* What libpq says of it may hold a password. */
static int fail_url(const char *url, const char *shown, const char *why, struct mr_error *err)
{
    bool secret = strchr(url, '@') != NULL || strcasestr(url, "password") != NULL;
    size_t len = why != NULL && !secret ? strcspn(why, "\n") : 0;

    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value for configuration %s: it is neither a URL of PostgreSQL, such as "
                   "jdbc:postgresql://host:5432/database, nor libpq's keywords, such as host=h "
                   "dbname=d%s%.*s",
                   shown, len > 0 ? ": " : "", (int)len, len > 0 ? why : "");
}

static int check_url(const struct mr_task *config, const char *shown, struct mr_error *err)
{
    const char *url = pg_settings_url(config);
    char *why = NULL;
    PQconninfoOption *options;
    int rc = MR_OK;

    if (url == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "Configuration %s must not be null", shown);
    options = PQconninfoParse(url, &why);
    if (options == NULL)
        rc = fail_url(url, shown, why, err);
    PQconninfoFree(options);
    PQfreemem(why);
    return rc;
}

/* Names with dots between them, at most max, none of them empty. */
static int check_name(const char *name, int max, const char *shown, struct mr_error *err)
{
    const char *at = name;
    int parts = 1;

    if (name == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "Configuration %s must not be null", shown);
    for (const char *dot; (dot = strchr(at, '.')) != NULL && dot > at; at = dot + 1)
        parts++;
    if (*at == '\0' || *at == '.')
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %s for configuration %s: an empty name beside a dot", name,
                       shown);
    if (parts > max)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %s for configuration %s: more than %d names with dots "
                       "between them",
                       name, shown, max);
    return MR_OK;
}

static int check_format(const struct mr_task *config, const char *shown, struct mr_error *err)
{
    return check_name(mr_config_str(config, "table.name.format"), 3, shown, err);
}

static int check_offsets_table(const struct mr_task *config, const char *shown,
                               struct mr_error *err)
{
    return check_name(mr_config_str(config, "millrace.offsets.table"), 2, shown, err);
}

/* --- several together ------------------------------------------------------------------------- */

/* A value that is wrong by itself counts as not set, and contradicts nothing. */
static bool is(const struct mr_task *config, const char *key, const char *value)
{
    const char *given = mr_config_str(config, key);

    return given != NULL && strcmp(given, value) == 0;
}

static int check_insert(const struct mr_task *config, const char *shown, struct mr_error *err)
{
    if (is(config, "insert.mode", "insert") || !is(config, "pk.mode", "none"))
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %s for configuration %s: it needs a key: set pk.mode to "
                   "record_key, record_value or kafka",
                   mr_config_str(config, "insert.mode"), shown);
}

static int check_deletes(const struct mr_task *config, const char *shown, struct mr_error *err)
{
    if (!mr_config_bool(config, "delete.enabled") || is(config, "pk.mode", "record_key") ||
        mr_config_str(config, "pk.mode") == NULL)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value true for configuration %s: it needs pk.mode=record_key: a record "
                   "without a value has nothing but its key",
                   shown);
}

static int check_pk_fields(const struct mr_task *config, const char *shown, struct mr_error *err)
{
    size_t count = mr_config_count(config, "pk.fields");

    if (!is(config, "pk.mode", "kafka") || count == 0 || count == 3)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %s for configuration %s: pk.mode=kafka takes three names, for "
                   "topic, partition and offset, or none",
                   mr_config_raw(config, "pk.fields"), shown);
}

/* --- the doors -------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    int (*check)(const struct mr_task *config, const char *shown, struct mr_error *err);
} checks[] = {
    {"connection.url", check_url},       {"insert.mode", check_insert},
    {"delete.enabled", check_deletes},   {"pk.fields", check_pk_fields},
    {"table.name.format", check_format}, {"millrace.offsets.table", check_offsets_table},
};

#define CHECKS (sizeof(checks) / sizeof(checks[0]))

int pg_settings_check(const struct mr_task *config, const char *key, const char *shown,
                      struct mr_error *err)
{
    for (size_t i = 0; i < CHECKS; i++)
        if (strcmp(checks[i].key, key) == 0)
            return checks[i].check(config, shown, err);
    return MR_OK;
}

int pg_settings_read(struct pg_settings *s, const struct mr_task *task, struct mr_error *err)
{
    *s = (struct pg_settings){
        .task = task,
        .insert = is(task, "insert.mode", "insert")   ? PG_INSERT
                  : is(task, "insert.mode", "upsert") ? PG_UPSERT
                                                      : PG_UPDATE,
        .pk = is(task, "pk.mode", "none")         ? PG_PK_NONE
              : is(task, "pk.mode", "kafka")      ? PG_PK_KAFKA
              : is(task, "pk.mode", "record_key") ? PG_PK_KEY
                                                  : PG_PK_VALUE,
        .table_format = mr_config_str(task, "table.name.format"),
        .create = mr_config_bool(task, "auto.create"),
        .evolve = mr_config_bool(task, "auto.evolve"),
        .deletes = mr_config_bool(task, "delete.enabled"),
    };
    for (size_t i = 0; i < CHECKS; i++)
        if (checks[i].check(task, checks[i].key, err) != MR_OK)
            return err->code;
    return MR_OK;
}
