/* SPDX-License-Identifier: Apache-2.0 */
/* From days to dates, and from fields to milliseconds. Asked by the texts of dates, by the parser
 * of temporal literals and by conversions between the kinds of time; any thread.
 *
 * Both calendars count years from March here, so that the leap day comes last. Fields that name a
 * day which the change of calendars left out, or which both have, are taken as GregorianCalendar
 * takes them. */
#include "host/data/calendar.h"

#define GREGORIAN_START (-141427) /* 1582-10-15, in days since 1970-01-01 */
#define GREGORIAN_YEAR 1582

int64_t calendar_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* day_of_year: since 1 March of year */
static void from_march(struct calendar *c, int64_t year, int64_t day_of_year)
{
    int month = (int)((5 * day_of_year + 2) / 153);

    c->day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    c->month = (month + 2) % 12;
    c->year = year + (month >= 10);
}

static void gregorian(struct calendar *c, int64_t days)
{
    int64_t since = days + 719468;
    int64_t era = calendar_floor_div(since, 146097);
    int64_t day = since - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;

    from_march(c, era * 400 + year, day - (365 * year + year / 4 - year / 100));
}

static void julian(struct calendar *c, int64_t days)
{
    int64_t since = days + 719470;
    int64_t era = calendar_floor_div(since, 1461);
    int64_t day = since - era * 1461;
    int64_t year = (day - day / 1460) / 365;

    from_march(c, era * 4 + year, day - 365 * year);
}

void calendar_from_days(struct calendar *c, int64_t days)
{
    if (days >= GREGORIAN_START)
        gregorian(c, days);
    else
        julian(c, days);
}

/* Days since 1970-01-01 of the first of a month, in one calendar. */
static int64_t month_start(int64_t year, int32_t month, bool is_gregorian)
{
    int64_t years, days;

    year = (int32_t)(uint32_t)(uint64_t)(year + calendar_floor_div(month, 12)); /* an int in Java */
    month -= (int32_t)calendar_floor_div(month, 12) * 12;
    years = month < 2 ? year - 1 : year;
    days = (153 * ((month + 10) % 12) + 2) / 5 + 365 * years + calendar_floor_div(years, 4);
    if (!is_gregorian)
        return days - 719470;
    return days - calendar_floor_div(years, 100) + calendar_floor_div(years, 400) - 719468;
}

int64_t calendar_ms(const struct calendar_fields *f)
{
    int64_t of_day =
        ((f->hour * INT64_C(60) + f->minute) * INT64_C(60) + f->second) * INT64_C(1000) + f->ms;
    int64_t extra = calendar_floor_div(of_day, CALENDAR_DAY_MS);
    int64_t add = extra + f->day - 1;
    int64_t by_gregorian = month_start(f->year, f->month, true) + add;
    int64_t by_julian = month_start(f->year, f->month, false) + add;
    int64_t days =
        f->year >= GREGORIAN_YEAR && by_gregorian >= GREGORIAN_START ? by_gregorian : by_julian;

    return (int64_t)((uint64_t)days * (uint64_t)CALENDAR_DAY_MS +
                     (uint64_t)(of_day - extra * CALENDAR_DAY_MS));
}
