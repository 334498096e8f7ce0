/* SPDX-License-Identifier: Apache-2.0 */
/* Days and dates, in the two calendars that Java knows: Julian until 4 October 1582, Gregorian from
 * the next day, the 15th. Pure. Spec: java.util.GregorianCalendar in UTC, lenient. */
#ifndef HOST_CALENDAR_H
#define HOST_CALENDAR_H

#include "base/err.h"

#include <stdint.h>

#define CALENDAR_DAY_MS INT64_C(86400000)

struct calendar {
    int64_t year; /* 0 is 1 BC */
    int month;    /* 0 to 11 */
    int day;      /* from 1 */
};

/* days: since 1970-01-01 */
void calendar_from_days(struct calendar *c, int64_t days);

/* A moment by its fields, any of which may be out of range: 13 months are a year and a month.
 * Gives ms since 1970; beyond int64 it wraps, as in Java. */
struct calendar_fields {
    int32_t year, month, day; /* month: 0 to 11, day: from 1, as they should be */
    int32_t hour, minute, second, ms;
};
int64_t calendar_ms(const struct calendar_fields *f);

/* Quotient rounded down; b > 0. */
int64_t calendar_floor_div(int64_t a, int64_t b);

#endif
