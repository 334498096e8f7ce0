/* SPDX-License-Identifier: Apache-2.0 */
/* Days and dates of Java's GregorianCalendar: Julian before 1582-10-15, Gregorian since; weeks as
 * in the US (they begin on Sunday, and January 1 is in week 1). Pure.
 * Spec: java.util.GregorianCalendar, lenient, in UTC. */
#ifndef TRANSFORMS_DATE_CALENDAR_H
#define TRANSFORMS_DATE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define DATE_DAY_MS INT64_C(86400000)

enum date_field {
    DATE_ERA, /* 0 BC, 1 AD */
    DATE_YEAR,
    DATE_MONTH, /* 0 January */
    DATE_WEEK_OF_YEAR,
    DATE_WEEK_OF_MONTH,
    DATE_DAY, /* of the month */
    DATE_DAY_OF_YEAR,
    DATE_WEEKDAY, /* 1 Sunday */
    DATE_WEEKDAY_IN_MONTH,
    DATE_AM_PM,
    DATE_HOUR,        /* 0 to 11 */
    DATE_HOUR_OF_DAY, /* 0 to 23 */
    DATE_MINUTE,
    DATE_SECOND,
    DATE_MS,
    DATE_ZONE, /* ms east of Greenwich */
    DATE_WEEK_YEAR,
    DATE_FIELDS
};

/* All fields of an instant, ms since 1970. Years before 1 count from 1 in era 0. */
void date_calendar_fields(int64_t ms, int64_t fields[DATE_FIELDS]);

/* Fields in the order in which they were set; the latest combination that names a day wins, values
 * out of range run over. */
struct date_set {
    int32_t value[DATE_FIELDS];
    int stamp[DATE_FIELDS]; /* 0: not set; greater: set later */
    int next;
};

static inline void date_calendar_set(struct date_set *set, enum date_field field, int32_t value)
{
    set->value[field] = value;
    set->stamp[field] = ++set->next;
}

/* The instant; false when the era is none. */
bool date_calendar_ms(const struct date_set *set, int64_t *ms);

#endif
