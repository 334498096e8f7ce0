/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as text and back, by Java's SimpleDateFormat patterns: English names, weeks as in the US,
 * UTC. Format and parse: the task's thread; a pattern is read-only after it was made.
 * Spec: java.text.SimpleDateFormat, lenient, Locale.US. */
#ifndef TRANSFORMS_DATE_FORMAT_H
#define TRANSFORMS_DATE_FORMAT_H

#include <millrace/record.h>

#define DATE_FORMAT_MAX 1000 /* bytes of a pattern */

/* A run of one letter, or a literal text. */
struct date_part {
    char letter;      /* 0: literal */
    uint32_t count;   /* of the letter; bytes of the literal */
    const char *text; /* the literal */
};

struct date_format {
    struct date_part *parts;
    size_t count;
    char *texts;
    int64_t century_ms; /* two-digit years are in the 100 years from here on */
};

/* now_ms: today, for two-digit years. MR_ERR_CONFIG with Java's text ("Illegal pattern character
 * 'T'" …), or MR_ERR_NOMEM; nothing to free then. */
int date_format_parse(struct date_format *format, const char *pattern, int64_t now_ms,
                      struct mr_error *err);
void date_format_free(struct date_format *format);

/* len bytes in the arena, NUL-terminated. */
const char *date_format_text(const struct date_format *format, struct mr_arena *arena, int64_t ms,
                             size_t *len);
/* Reads the front of a text, as far as the pattern goes (date_read.c). false: it does not match. */
bool date_format_read(const struct date_format *format, const char *p, size_t len, int64_t *ms);

/* A kind of time as Connect's Values prints it, by its size: HH:mm:ss.SSS'Z', yyyy-MM-dd, or
 * both. */
const char *date_format_iso(struct mr_arena *arena, struct mr_value v, size_t *len);

int64_t date_format_ms(struct mr_value v); /* a DATE, TIME or TIMESTAMP as ms since 1970 */

/* Names by the fields' numbers (weekdays from 1); shared with date_read.c. */
extern const char *const date_format_months[12];
extern const char *const date_format_weekdays[8];

/* What lies between UTC and a zone that goes by this name at the front of a text, ms; *len of the
 * name. false: none known. */
bool date_zone_find(const char *p, size_t len, size_t *name_len, int32_t *offset_ms);

#endif
