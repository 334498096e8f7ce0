/* SPDX-License-Identifier: Apache-2.0 */
/* Text for PostgreSQL: a buffer that grows, names and literals in SQL, and values of Connect as
 * PostgreSQL reads them. */
#ifndef PG_TEXT_H
#define PG_TEXT_H

#include <millrace/plugin.h>

#define PG_TEXT_MAX ((size_t)1 << 30) /* what PostgreSQL itself takes in one piece */

struct pg_text {
    char *p; /* NUL-terminated once something was added; NULL before */
    size_t len;
    size_t cap;
    bool
        over; /* it would be larger than PG_TEXT_MAX, or memory is out: what was added is missing */
};

void pg_text_deinit(struct pg_text *t);
void pg_text_clear(struct pg_text *t); /* keeps the memory */
void pg_text_add(struct pg_text *t, const char *p, size_t len);
void pg_text_put(struct pg_text *t, const char *z);
MR_PRINTF(2, 3)
void pg_text_printf(struct pg_text *t, const char *fmt, ...);

void pg_text_name(struct pg_text *t, const char *name);                /* "name" */
void pg_text_literal(struct pg_text *t, const char *text, size_t len); /* 'text' */
/* As a line of COPY has it, between two tabs: backslash, tab and line ends escaped. */
void pg_text_copy_cell(struct pg_text *t, const char *text, size_t len);

/* What a value (not null) of this schema is in a column of pg_text_type: in UTC, arrays as
 * {"a",NULL}, what has no type of its own as JSON. schema may be NULL. MR_ERR_DATA: PostgreSQL has
 * no such text (a NUL in it). arena: for numbers of Java's. */
int pg_text_value(struct pg_text *t, struct mr_arena *arena, const struct mr_schema *schema,
                  struct mr_value v, struct mr_error *err);
/* The type of a column for such values: "bigint", "text[]", "jsonb" … */
const char *pg_text_type(const struct mr_schema *schema);

#endif
