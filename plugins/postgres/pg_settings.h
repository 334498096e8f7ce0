/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the sink: its keys, what may be wrong with them taken together, and what
 * records need to know of it. */
#ifndef PG_SETTINGS_H
#define PG_SETTINGS_H

#include <millrace/plugin.h>

enum pg_insert { PG_INSERT, PG_UPSERT, PG_UPDATE };
enum pg_pk { PG_PK_NONE, PG_PK_KAFKA, PG_PK_KEY, PG_PK_VALUE };

/* Borrowed from the task. */
struct pg_settings {
    const struct mr_task *task;
    enum pg_insert insert;
    enum pg_pk pk;
    const char *table_format;
    bool create;
    bool evolve;
    bool deletes;
};

extern const struct mr_config_key pg_settings_keys[];

/* The sink's check, of plugin.h. Connects nowhere. */
int pg_settings_check(const struct mr_task *config, const char *key, const char *shown,
                      struct mr_error *err);

/* MR_ERR_CONFIG: pg_settings_check has something against a key. */
int pg_settings_read(struct pg_settings *settings, const struct mr_task *task,
                     struct mr_error *err);

/* What libpq is to read of connection.url: JDBC's URLs are libpq's with a word in front. */
const char *pg_settings_url(const struct mr_task *task);

#endif
