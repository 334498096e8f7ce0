/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar under date_format: an instant to fields, and fields to an instant with Java's rules
 * of which of them count. Days are counted from 1970-01-01 and are 64 bits, so that nothing a
 * 32-bit field holds runs over. Pure. */
#include "date_calendar.h"

#define CUTOVER (-141427) /* 1582-10-15, in days */
#define CUTOVER_YEAR 1582
#define SUNDAY 1

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a % b + (a % b < 0 ? b : 0);
}

/* --- days and dates --------------------------------------------------------------------------- */

/* Days before March 1 of a year that begins in March, and back: leap days then come last. month: 0
 * January. */
static int64_t days_of(int64_t year, int64_t month, bool gregorian)
{
    int64_t y = year - (month < 2), m = floor_mod(month - 2, 12);
    int64_t days = 365 * y + floor_div(y, 4) + (153 * m + 2) / 5;

    return gregorian ? days - floor_div(y, 100) + floor_div(y, 400) - 719468 : days - 719470;
}

static void date_of(int64_t day, int64_t *year, int64_t *month, int64_t *mday)
{
    int64_t y, m, d;

    if (day >= CUTOVER) {
        int64_t z = day + 719468, era = floor_div(z, 146097), doe = z - era * 146097;
        int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;

        y = yoe + era * 400;
        d = doe - (365 * yoe + yoe / 4 - yoe / 100);
    } else {
        int64_t z = day + 719470, era = floor_div(z, 1461), doe = z - era * 1461;
        int64_t yoe = (doe - doe / 1460) / 365;

        y = yoe + era * 4;
        d = doe - 365 * yoe;
    }
    m = (5 * d + 2) / 153;
    *mday = d - (153 * m + 2) / 5 + 1;
    *month = (m + 2) % 12;
    *year = y + (*month < 2);
}

/* The first day of a month in the calendar of its time. */
static int64_t first_of(int64_t year, int64_t month)
{
    int64_t day = days_of(year, month, true);

    return day >= CUTOVER ? day : days_of(year, month, false);
}

static int64_t weekday_of(int64_t day)
{
    return floor_mod(day + 4, 7) + SUNDAY;
}

static int64_t weekday_on_or_before(int64_t day, int64_t weekday)
{
    return day - floor_mod(day + 4 - (weekday - SUNDAY), 7);
}

static int64_t week_since(int64_t first, int64_t day)
{
    return (day - weekday_on_or_before(first, SUNDAY)) / 7 + 1;
}

void date_calendar_fields(int64_t ms, int64_t fields[DATE_FIELDS])
{
    int64_t day = floor_div(ms, DATE_DAY_MS), rest = floor_mod(ms, DATE_DAY_MS);
    int64_t year, month, mday, january, month_first;
    bool next;

    date_of(day, &year, &month, &mday);
    january = first_of(year, 0);
    month_first = first_of(year, month);
    next = day >= weekday_on_or_before(first_of(year + 1, 0), SUNDAY);
    fields[DATE_ERA] = year > 0;
    fields[DATE_YEAR] = year > 0 ? year : 1 - year;
    fields[DATE_MONTH] = month;
    fields[DATE_DAY] = mday;
    fields[DATE_DAY_OF_YEAR] = day - january + 1;
    fields[DATE_WEEKDAY] = weekday_of(day);
    fields[DATE_WEEKDAY_IN_MONTH] = (mday - 1) / 7 + 1;
    fields[DATE_WEEK_OF_YEAR] = next ? 1 : week_since(january, day);
    fields[DATE_WEEK_YEAR] = year + next;
    fields[DATE_WEEK_OF_MONTH] = week_since(month_first, day);
    fields[DATE_HOUR_OF_DAY] = rest / 3600000;
    fields[DATE_AM_PM] = fields[DATE_HOUR_OF_DAY] / 12;
    fields[DATE_HOUR] = fields[DATE_HOUR_OF_DAY] % 12;
    fields[DATE_MINUTE] = rest / 60000 % 60;
    fields[DATE_SECOND] = rest / 1000 % 60;
    fields[DATE_MS] = rest % 1000;
    fields[DATE_ZONE] = 0;
}

/* --- which fields count ----------------------------------------------------------------------- */

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* The stamp of two fields that only count together. */
static int both(int a, int b)
{
    return a == 0 || b == 0 ? 0 : later(a, b);
}

/* How the day is named. */
enum day_by { BY_DAY, BY_WEEK_OF_MONTH, BY_WEEKDAY_IN_MONTH, BY_DAY_OF_YEAR, BY_WEEK_OF_YEAR };

/* No combination is whole: a week alone, a weekday alone, a month alone. */
static enum day_by day_by_part(const int *stamp)
{
    int week = stamp[DATE_WEEK_OF_MONTH];
    int in_month = later(stamp[DATE_WEEKDAY_IN_MONTH], stamp[DATE_WEEKDAY]);
    int of_year = stamp[DATE_WEEK_OF_YEAR], best = later(later(week, in_month), of_year);

    if (best == 0)
        return BY_DAY;
    if (best == week && week >= of_year)
        return BY_WEEK_OF_MONTH;
    if (best == in_month && stamp[DATE_WEEKDAY_IN_MONTH] >= of_year)
        return BY_WEEKDAY_IN_MONTH;
    return BY_WEEK_OF_YEAR;
}

static enum day_by day_by(const int *stamp)
{
    int weekday = stamp[DATE_WEEKDAY], day = stamp[DATE_DAY], of_year = stamp[DATE_DAY_OF_YEAR];
    int week = both(stamp[DATE_WEEK_OF_MONTH], weekday);
    int in_month = both(stamp[DATE_WEEKDAY_IN_MONTH], weekday);
    int year_week = both(stamp[DATE_WEEK_OF_YEAR], weekday);
    int best = later(later(later(day, week), later(in_month, of_year)), year_week);

    if (best == 0)
        return day_by_part(stamp);
    if (best == day)
        return BY_DAY;
    if (best == week && stamp[DATE_WEEK_OF_MONTH] >= stamp[DATE_WEEK_OF_YEAR] &&
        (week != in_month || stamp[DATE_WEEK_OF_MONTH] >= stamp[DATE_WEEKDAY_IN_MONTH]))
        return BY_WEEK_OF_MONTH;
    if (best == in_month && stamp[DATE_WEEKDAY_IN_MONTH] >= stamp[DATE_WEEK_OF_YEAR])
        return BY_WEEKDAY_IN_MONTH;
    return best == of_year ? BY_DAY_OF_YEAR : BY_WEEK_OF_YEAR;
}

/* --- the day ---------------------------------------------------------------------------------- */

static int64_t or_else(const struct date_set *set, enum date_field field, int64_t otherwise)
{
    return set->stamp[field] != 0 ? set->value[field] : otherwise;
}

/* Where the weeks of a month or year begin that has its first day there. */
static int64_t weeks_from(int64_t first)
{
    int64_t week = weekday_on_or_before(first + 6, SUNDAY);

    return week - first >= 1 ? week - 7 : week;
}

static int64_t by_weekday_in_month(const struct date_set *set, int64_t first, int64_t year,
                                   int64_t month, bool gregorian)
{
    int64_t weekday = or_else(set, DATE_WEEKDAY, SUNDAY);
    int64_t n = or_else(set, DATE_WEEKDAY_IN_MONTH, 1), last;

    if (n >= 0)
        return weekday_on_or_before(first + 7 * n - 1, weekday);
    last = days_of(year + (month == 11), (month + 1) % 12, gregorian) - first + 7 * (n + 1);
    return weekday_on_or_before(first + last - 1, weekday);
}

static int64_t by_week(const struct date_set *set, int64_t first, enum date_field week)
{
    int64_t start = weeks_from(first);

    if (set->stamp[DATE_WEEKDAY] != 0)
        start = weekday_on_or_before(start + 6, set->value[DATE_WEEKDAY]);
    return start + 7 * ((int64_t)set->value[week] - 1);
}

/* The day in one of the two calendars. */
static int64_t day_in(const struct date_set *set, int64_t year, enum day_by by, bool gregorian)
{
    bool monthly = by <= BY_WEEKDAY_IN_MONTH;
    int64_t month = monthly ? or_else(set, DATE_MONTH, 0) : 0, first;

    year += floor_div(month, 12);
    month = floor_mod(month, 12);
    first = days_of(year, month, gregorian);
    switch (by) {
    case BY_DAY:
        return first + or_else(set, DATE_DAY, 1) - 1;
    case BY_WEEK_OF_MONTH:
        return by_week(set, first, DATE_WEEK_OF_MONTH);
    case BY_WEEKDAY_IN_MONTH:
        return by_weekday_in_month(set, first, year, month, gregorian);
    case BY_DAY_OF_YEAR:
        return first + set->value[DATE_DAY_OF_YEAR] - 1;
    default:
        return by_week(set, first, DATE_WEEK_OF_YEAR);
    }
}

/* more: days that the time of day runs over; they count when it comes to the cut-over. */
static int64_t day_of(const struct date_set *set, int64_t year, int64_t more)
{
    enum day_by by = day_by(set->stamp);
    int64_t gregorian = day_in(set, year, by, true) + more;
    int64_t julian = day_in(set, year, by, false) + more;

    if (year > CUTOVER_YEAR && gregorian >= CUTOVER)
        return gregorian;
    if (year < CUTOVER_YEAR && julian < CUTOVER)
        return julian;
    if (year < CUTOVER_YEAR)
        gregorian = julian;
    if (by == BY_DAY_OF_YEAR || by == BY_WEEK_OF_YEAR)
        return julian;
    return gregorian >= CUTOVER ? gregorian : julian;
}

/* Of a year that counts in weeks, its week and weekday; a weekday out of range runs over into other
 * weeks. */
static int64_t week_date(const struct date_set *set)
{
    int64_t week = or_else(set, DATE_WEEK_OF_YEAR, 1);
    int64_t weekday = or_else(set, DATE_WEEKDAY, SUNDAY);
    struct date_set first = {.next = 0};

    if (weekday >= 8) {
        weekday--;
        week += weekday / 7;
        weekday = weekday % 7 + 1;
        weekday = weekday == 7 ? SUNDAY : weekday + 1;
    } else if (weekday <= 0) {
        week -= (7 - weekday) / 7;
        weekday = floor_mod(weekday - 1, 7) + 1;
        weekday = weekday == 7 ? SUNDAY : weekday + 1;
    }
    date_calendar_set(&first, DATE_WEEK_OF_YEAR, 1);
    date_calendar_set(&first, DATE_WEEKDAY, SUNDAY);
    return day_of(&first, set->value[DATE_WEEK_YEAR], 0) + weekday - SUNDAY + 7 * (week - 1);
}

static int64_t time_of(const struct date_set *set)
{
    const int *stamp = set->stamp;
    int half = both(stamp[DATE_HOUR], stamp[DATE_AM_PM]);
    int64_t hours;

    if (half == 0 && stamp[DATE_HOUR_OF_DAY] == 0)
        half = later(stamp[DATE_HOUR], stamp[DATE_AM_PM]);
    if (half > stamp[DATE_HOUR_OF_DAY])
        hours = set->value[DATE_HOUR] + INT64_C(12) * set->value[DATE_AM_PM];
    else
        hours = set->value[DATE_HOUR_OF_DAY];
    return ((hours * 60 + set->value[DATE_MINUTE]) * 60 + set->value[DATE_SECOND]) * 1000 +
           set->value[DATE_MS];
}

bool date_calendar_ms(const struct date_set *set, int64_t *ms)
{
    int64_t time = time_of(set), more = floor_div(time, DATE_DAY_MS), day;
    int64_t year = or_else(set, DATE_YEAR, 1970), era = or_else(set, DATE_ERA, 1);

    if (era != 0 && era != 1)
        return false;
    if (set->stamp[DATE_WEEK_YEAR] > set->stamp[DATE_YEAR])
        day = week_date(set) + more;
    else
        day = day_of(set, era == 0 ? 1 - year : year, more);
    time = floor_mod(time, DATE_DAY_MS) - set->value[DATE_ZONE];
    *ms = (int64_t)((uint64_t)day * (uint64_t)DATE_DAY_MS + (uint64_t)time); /* wraps as in Java */
    return true;
}
