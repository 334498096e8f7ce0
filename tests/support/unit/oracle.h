/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of what Java's Connect does (tests/data/oracle, README.md there): one JSON object a
 * line. */
#ifndef SUPPORT_ORACLE_H
#define SUPPORT_ORACLE_H

#include <millrace/record.h>

#include <jansson.h>

/* A row that can't hold here, and why. An array of them ends with a zeroed entry. */
struct oracle_except {
    const char *id;
    const char *reason;
};

/* Run fn for each row of tests/data/oracle/<table>; false from it is a failure, said with the row's
 * id. Gives how many rows failed. A row among the exceptions must fail, and its reason is
 * printed. */
typedef bool (*oracle_fn)(const json_t *row, void *arg);
int oracle_run(const char *table, const struct oracle_except *except, oracle_fn fn, void *arg);

/* Say what is wrong with the present row; false. */
bool oracle_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Parts of rows, in the arena. Text may hold halves of surrogate pairs, in three bytes each. */
bool oracle_schema(struct mr_arena *arena, const json_t *from, const struct mr_schema **out,
                   struct mr_error *err);
/* schema: of the place, for structs and kinds of time; may be NULL. */
bool oracle_value(struct mr_arena *arena, const json_t *from, const struct mr_schema *schema,
                  struct mr_value *out);
/* {"base64"} or {"parts"}; null gives *data NULL. */
void oracle_bytes(struct mr_arena *arena, const json_t *from, const char **data, size_t *len);
struct mr_value oracle_text(struct mr_arena *arena, const json_t *from);

/* Is it the row's error: its message to the letter, and the innermost cause behind it unless the
 * row is bound to the JVM's words? */
bool oracle_error(const json_t *row, const struct mr_error *err);

/* The same for a plugin's rows: it must fail where Java does, with its configuration or, started,
 * with the record; then as the record's fault, which tolerance decides on, and as Java's class,
 * which dead letters name. */
bool oracle_failure(const json_t *row, const struct mr_error *err, bool started);

#endif
